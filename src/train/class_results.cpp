#include "train/class_results.h"

#include "base/class_names.h"

namespace regatta {

std::int64_t ClassResults::answered(std::size_t of, std::size_t as) const {
  const auto found = answers.find({static_cast<std::int32_t>(of), static_cast<std::int32_t>(as)});
  return found == answers.end() ? 0 : found->second;
}

ClassResults class_results(const Evaluation& tested, std::int64_t classes,
                           const std::vector<std::string>& names) {
  ClassResults results;
  results.classes.resize(static_cast<std::size_t>(classes));
  for (std::size_t i = 0; i < results.classes.size(); ++i)
    results.classes[i].name = class_name(names, i);
  for (std::size_t i = 0; i < tested.answers.size(); ++i) {
    ClassResult& result = results.classes[static_cast<std::size_t>(tested.labels[i])];
    ++result.count;
    result.correct += tested.labels[i] == tested.answers[i];
    ++results.answers[{tested.labels[i], tested.answers[i]}];
  }
  return results;
}

Json to_json(const ClassResults& results) {
  constexpr std::size_t most = 1000;  // a million numbers; ImageNet's
  Json per_class = Json::array(), confusion = Json::array();
  for (const ClassResult& each : results.classes)
    per_class.push_back({{"name", each.name},
                         {"count", each.count},
                         {"accuracy", each.count > 0 ? Json(each.accuracy()) : Json()}});
  const std::size_t classes = results.classes.size();
  if (classes > most) return {{"per_class", per_class}, {"confusion", nullptr}};
  for (std::size_t of = 0; of < classes; ++of) {
    Json row = Json::array();
    for (std::size_t as = 0; as < classes; ++as) row.push_back(results.answered(of, as));
    confusion.push_back(row);
  }
  return {{"per_class", per_class}, {"confusion", confusion}};
}

}  // namespace regatta
