// Checks JSON against as much of JSON Schema as our schemas use.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"

namespace regatta {

inline void check_schema(const Json& schema, const Json& json, const Json& root,
                         const std::string& place, std::vector<std::string>& faults) {
  const auto wrong = [&](const std::string& what) { faults.push_back(place + ": " + what); };
  if (schema.contains("$ref")) {
    const std::string name = schema["$ref"].get<std::string>().substr(std::string("#").size());
    return check_schema(root.at(Json::json_pointer(name)), json, root, place, faults);
  }
  if (schema.contains("const") && schema["const"] != json) wrong("is not the constant");
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), json) == schema["enum"].end())
    wrong("is none of the words");
  const std::string type = schema.value("type", "");
  const bool fits =
      type.empty() || (type == "object" && json.is_object()) ||
      (type == "array" && json.is_array()) || (type == "string" && json.is_string()) ||
      (type == "number" && json.is_number()) || (type == "integer" && json.is_number_integer()) ||
      (type == "boolean" && json.is_boolean());
  if (!fits) return wrong("is no " + type);
  if (json.is_number() && schema.contains("minimum") && json < schema["minimum"])
    wrong("is too small");
  if (json.is_number() && schema.contains("maximum") && json > schema["maximum"])
    wrong("is too large");
  if (json.is_array()) {
    if (schema.contains("minItems") && json.size() < schema["minItems"]) wrong("is too short");
    if (schema.contains("maxItems") && json.size() > schema["maxItems"]) wrong("is too long");
    if (schema.contains("items"))
      for (std::size_t i = 0; i < json.size(); ++i)
        check_schema(schema["items"], json[i], root, place + "[" + std::to_string(i) + "]", faults);
  }
  if (!json.is_object()) return;
  for (const Json& key : schema.value("required", Json::array()))
    if (!json.contains(key.get<std::string>())) wrong("has no " + key.get<std::string>());
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [key, value] : json.items()) {
    if (properties.contains(key))
      check_schema(properties[key], value, root, place + "." + key, faults);
    else if (!schema.value("additionalProperties", true))
      wrong("key " + key + " is not known");
  }
}

inline std::vector<std::string> schema_faults(const Json& schema, const Json& json) {
  std::vector<std::string> faults;
  check_schema(schema, json, schema, "", faults);
  return faults;
}

}  // namespace regatta
