#include "base/json.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json_depth.h"

namespace regatta {

Json read_json(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  if (nests_too_deep(text))
    throw InputError("'" + path.string() + "' is not usable JSON: it is nested too deep");
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError("'" + path.string() + "' is not valid JSON: it breaks off at byte " +
                     std::to_string(error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw InputError("'" + path.string() + "' is not usable JSON: it holds a number too large");
  }
}

}  // namespace regatta
