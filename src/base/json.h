// JSON that keeps the order of its keys, so files read as they were written.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace regatta {

using Json = nlohmann::ordered_json;

// Parses `path`; throws InputError that names the file and the byte where it stops making sense.
Json read_json(const std::filesystem::path& path);

}  // namespace regatta
