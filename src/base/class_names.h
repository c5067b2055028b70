// Class names as files carry them beside weights: a JSON list, by the network's outputs.
#pragma once

#include <string>
#include <vector>

namespace regatta {

// Where safetensors' metadata and ONNX's metadata_props keep the list.
inline constexpr const char* class_names_key = "class_names";

std::string class_names_text(const std::vector<std::string>& names);

// What is no list of names gives none.
std::vector<std::string> class_names_from(const std::string& text);

// The name of output `index`, or its number if it has none.
std::string class_name(const std::vector<std::string>& names, std::size_t index);

}  // namespace regatta
