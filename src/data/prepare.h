// `regatta data prepare`: decodes, resizes and shuffles a data set once, and writes it as shards or
// TFRecord files.
//
// The files are numbered. The bytes of each depend on the data and the options alone, not on the
// number of workers or parts; so any machine may make any part, and a file that is there is kept.
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
  std::optional<Shape> input;  // this and resize_to: see DatasetOptions
  int resize_to = 0;
  Selection selection;
  bool strict = false;
  std::optional<std::string> normalise;  // as parse_normalisation reads it; default: the data's
  std::uint64_t seed = 1;                // of the shuffling, of a subset, and of synthetic data
  std::int64_t file_bytes = std::int64_t{64} << 20;
  int workers = 1;
};

// "3/20": the third of twenty parts. Throws InputError.
struct PreparePart {
  int number = 1, of = 1;
};
PreparePart parse_part(const std::string& text);

struct PrepareProgress {
  std::int64_t samples = 0;  // in files that are there
  std::int64_t kept = 0;     // of these, in files that were there before this run
  std::int64_t all = 0;      // in all files, also those still to be made
};
using OnProgress = std::function<void(const PrepareProgress&)>;

// Makes the missing files of one part. Files that an earlier run with the same options made are
// checked and kept. `on_progress` is called by any of the worker threads. Throws InputError, also
// if another process is making the part.
Prepared prepare_part(const PrepareOptions& options, const PreparePart& part,
                      const OnProgress& on_progress = {});

// Makes all missing files, then index.json: the same as part 1/1 and finish_preparation.
Prepared prepare_data(const PrepareOptions& options, const OnProgress& on_progress = {});

}  // namespace regatta
