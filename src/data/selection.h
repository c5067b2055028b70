// Part of a data set: some of its classes, some of its samples. What `regatta data prepare
// --classes` and `--subset` take.
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
  // "10000": so many training samples, and the same share of the test samples; "0.1" or "10%": this
  // share of both; otherwise a file that names training samples, each on a line of its own, by the
  // end of their path or by their index. Empty: all.
  std::string subset;

  bool any() const { return !classes.empty() || !subset.empty(); }
};

// How much of a data set a Selection::subset that is no file keeps.
struct SubsetSize {
  std::optional<std::int64_t> count;  // of training samples
  double share = 1;                   // if there is no count
};
// Nothing if `text` is the name of a file. Throws InputError when it is a number that makes no
// sense.
std::optional<SubsetSize> parse_subset_size(const std::string& text);

// `count` of the samples with these labels, each class with its share of them to within one sample,
// drawn by `seed`; ascending indices.
std::vector<std::int64_t> drawn_by_class(const std::vector<std::int32_t>& labels,
                                         std::int64_t count, std::uint64_t seed);

// Opens the selected samples of `spec`; indices count these alone. A sample that cannot be read is
// replaced by the next one of the selection. Throws InputError that names the class, sample or file
// that is not there.
std::shared_ptr<const Dataset> open_selection(const std::string& spec, const Selection& selection,
                                              const DatasetOptions& options);

}  // namespace regatta
