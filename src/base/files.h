// Files are written aside and renamed, so a reader sees the old file or the new one, never half.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Writes `path` through a temporary neighbour; throws InputError that names the path and the cause
// (full disk, missing folder, no permission), leaving whatever was there before.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// Makes names that were created, replaced or removed in `folder` survive a power cut.
void sync_folder(const std::filesystem::path& folder);

// True for the name of a file or folder that is being written, or was when its writer died.
bool is_unfinished(const std::filesystem::path& path);

// Throws what write_file would say, before there is anything to write: for results of long work.
void require_writable(const std::filesystem::path& path);

// The whole file; throws InputError that names it.
std::string read_file(const std::filesystem::path& path);

// $REGATTA_CACHE, else $XDG_CACHE_HOME/regatta, else ~/.cache/regatta. Not created.
std::filesystem::path cache_folder();

std::string sha256_hex(std::string_view bytes);
std::string sha256_of_file(const std::filesystem::path& path);  // read piece by piece

// The known name nearest to `name` by edit distance, as " (did you mean 'x'?)"; empty if none is
// near. For errors about unknown names.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace regatta
