// `regatta data prepare`: a data set decoded, resized and mixed once, as shards or TFRecord files.
//
// The files of a preparation are numbered. The bytes of each follow from the data and the options,
// not from the number of workers or of parts; so any machine may make any part of them, and a file
// that is there is never made again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/preparation.h"
#include "data/selection.h"

namespace regatta {

struct PrepareOptions {
  std::string spec;
  std::filesystem::path out;
  PreparedForm form = PreparedForm::shards;
  std::optional<Shape> input;  // as DatasetOptions has them
  int resize_to = 0;
  Selection selection;
  bool strict = false;
  std::optional<std::string> normalise;  // as parse_normalisation reads it; default: the data's
  std::uint64_t seed = 1;                // of the mixing, of a subset, and of synthetic data
  std::int64_t file_bytes = std::int64_t{64} << 20;
  int workers = 1;
};

// "3/20": the third of twenty parts. Throws InputError.
struct Part {
  int number = 1, of = 1;
};
Part parse_part(const std::string& text);

struct PrepareProgress {
  std::int64_t samples = 0;  // in files that are there
  std::int64_t kept = 0;     // of them, those that were there before
  std::int64_t all = 0;
};
using OnProgress = std::function<void(const PrepareProgress&)>;

// Makes the files of one part that are not there. Files that an earlier run of the same options
// made are checked and kept. `on_progress` is told by whichever thread made some. Throws
// InputError, also when the part is being made by another process.
Prepared prepare_part(const PrepareOptions& options, const Part& part,
                      const OnProgress& on_progress = {});

// Makes or completes all of it: the only part of one, joined.
Prepared prepare_data(const PrepareOptions& options, const OnProgress& on_progress = {});

}  // namespace regatta
