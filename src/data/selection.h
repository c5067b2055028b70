// Some classes and samples of a data set, as `regatta data prepare --classes` and `--subset` choose
// them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

struct Selection {
  // "a,b,c", or a file with a class name on each line; the order gives the labels. Data without
  // class names has its labels as names. Empty: all classes.
  std::string classes;
  // "10000": this number of training samples, and the same share of the test samples; "0.1" or
  // "10%": this share of both; otherwise a file that names one training sample per line, by the end
  // of its path or by its index. Empty: all samples.
  std::string subset;

  bool any() const { return !classes.empty() || !subset.empty(); }
};

// The size of a subset that is given as a number or a share (Selection::subset).
struct SubsetSize {
  std::optional<std::int64_t> count;  // training samples
  double share = 1;                   // from 0 to 1, of all samples; used if there is no count
};
// None if `text` is no number, so that it names a file. Throws InputError for a number out of
// range.
std::optional<SubsetSize> parse_subset_size(const std::string& text);

// Draws `count` samples at random, each class in proportion to within one sample. `labels`: by
// sample. Returns their indices in ascending order.
std::vector<std::int64_t> drawn_by_class(const std::vector<std::int32_t>& labels,
                                         std::int64_t count, std::uint64_t seed);

// Opens the data set `spec`, reduced to the selected samples: index i is the i-th of these. A
// sample that cannot be read is replaced by the next selected one. Throws InputError that names a
// class, sample or file that does not exist.
std::shared_ptr<const Dataset> open_selection(const std::string& spec, const Selection& selection,
                                              const DatasetOptions& options);

}  // namespace regatta
