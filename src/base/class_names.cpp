#include "base/class_names.h"

#include "base/json.h"

namespace regatta {

std::string class_names_text(const std::vector<std::string>& names) { return Json(names).dump(); }

std::vector<std::string> class_names_from(const std::string& text) try {
  return Json::parse(text).get<std::vector<std::string>>();
} catch (const Json::exception&) {
  return {};
}

std::string class_name(const std::vector<std::string>& names, std::size_t index) {
  return index < names.size() ? names[index] : std::to_string(index);
}

}  // namespace regatta
