// What eval and predict share: a trained network by its flags, and its forward pass over data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "data/dataset.h"
#include "train/loop.h"

namespace regatta::app {

struct EvalFlags {
  std::optional<std::string> run, model, weights, data, input, json_file;
  std::optional<std::int64_t> classes;
  std::optional<int> workers;
  std::int64_t batch = 64;
  std::string split = "test", devices = "cpu";
  bool best = false, strict = false;
};

// `run_names` are the names of the flag that names the run folder.
void declare_evaluation(CLI::App& app, EvalFlags& flags, const std::string& run_names);

struct Evaluated {
  Evaluation evaluation;
  std::shared_ptr<const Dataset> data;
  std::int64_t classes = 0;              // outputs of the network
  std::vector<std::string> class_names;  // of them; empty if unknown
};

// Evaluates the data of the flags or, if there are any, these image files: of them, one that cannot
// be read is black, and told of by data->skipped(). Throws InputError.
Evaluated evaluate_by(const EvalFlags& flags, bool keep_logits,
                      const std::vector<std::string>& images = {});

}  // namespace regatta::app
