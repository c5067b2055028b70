#include "base/json.h"

#include "base/error.h"
#include "base/files.h"

namespace regatta {

Json read_json(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError("'" + path.string() + "' is not valid JSON: it breaks off at byte " +
                     std::to_string(error.byte));
  }
}

}  // namespace regatta
