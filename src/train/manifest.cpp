#include "train/manifest.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr const char* manifest_name = "manifest.json";

}  // namespace

void write_manifest(const fs::path& folder) {
  Json files = Json::object();
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code))
    files[entry.path().filename().string()] = {{"bytes", fs::file_size(entry.path(), code)},
                                               {"sha256", sha256_of_file(entry.path())}};
  if (code) throw InputError("cannot read '" + folder.string() + "': " + code.message());
  write_file(folder / manifest_name, Json{{"files", files}}.dump(2) + "\n");
}

std::optional<std::string> manifest_fault(const fs::path& folder) {
  if (!fs::exists(folder / manifest_name))
    return "it has no manifest.json to check it by, as those of older versions";
  try {
    const Json manifest = read_json(folder / manifest_name);
    for (const auto& [name, entry] : manifest.at("files").items()) {
      const fs::path file = folder / name;
      if (!fs::exists(file)) return name + " is missing";
      const auto expected = entry.at("bytes").get<std::uint64_t>();
      if (const std::uint64_t found = fs::file_size(file); found != expected)
        return name + " has " + std::to_string(found) + " bytes instead of " +
               std::to_string(expected);
      if (sha256_of_file(file) != entry.at("sha256").get<std::string>())
        return name + " does not have the checksum it was written with";
    }
  } catch (const InputError& error) {
    return error.what();
  } catch (const Json::exception&) {
    return "its manifest.json does not tell its files";
  } catch (const fs::filesystem_error& error) {
    return error.code().message();
  }
  return std::nullopt;
}

}  // namespace regatta
