// The sizes and checksums of a folder's files, so that damage is found before anything is used.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace regatta {

// Writes folder/manifest.json for all files that are in `folder`.
void write_manifest(const std::filesystem::path& folder);

// What is wrong with the folder, such as "model.safetensors has 12 bytes instead of 20"; nothing if
// every file of its manifest is there, whole.
std::optional<std::string> manifest_fault(const std::filesystem::path& folder);

}  // namespace regatta
