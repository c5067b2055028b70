// A test class by class: how often each was recognised, and what it was taken for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "train/loop.h"

namespace regatta {

struct ClassResult {
  std::string name;
  std::int64_t count = 0, correct = 0;  // samples of the class, and those recognised

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(count); }
};

struct ClassResults {
  std::vector<ClassResult> classes;  // by output of the network
  // How many samples of a class (first) got an answer (second); pairs that never met are missing.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> answers;

  std::int64_t answered(std::size_t of, std::size_t as) const;
};

// Outputs without a name are called by their number.
ClassResults class_results(const Evaluation& tested, std::int64_t classes,
                           const std::vector<std::string>& names);

// `per_class`: name, count, and accuracy, which is null without samples. `confusion`: a row for
// each class with the number of each answer; null for more than 1000 classes.
Json to_json(const ClassResults& results);

}  // namespace regatta
