#include "data/fashion_package.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "data/fetch.h"
#include "data/idx.h"

namespace regatta {
namespace {

constexpr std::size_t classes = 10;
constexpr std::size_t train_images = 6000, test_images = 1000;  // of each class
constexpr std::int64_t side = 28;
constexpr std::size_t pixels = side * side;

// The images of one class, one after another.
std::string read_class(const std::filesystem::path& file) {
  std::string images;
  try {
    const Json json = read_json(file);
    for (const auto& image : json.at("data")) {
      if (image.empty()) continue;  // class 0 has two of these
      if (image.size() != pixels) throw InputError("'" + file.string() + "' has a torn image");
      for (const auto& pixel : image) images += static_cast<char>(pixel.get<std::uint8_t>());
    }
  } catch (const Json::exception&) {
    throw InputError("'" + file.string() + "' does not hold lists of pixels");
  }
  if (images.size() != (train_images + test_images) * pixels)
    throw InputError("'" + file.string() + "' has " + std::to_string(images.size() / pixels) +
                     " images instead of " + std::to_string(train_images + test_images));
  return images;
}

}  // namespace

void convert_fashion_package(const std::filesystem::path& package,
                             const std::filesystem::path& folder) {
  std::array<std::string, classes> by_class;
  for (std::size_t label = 0; label < classes; ++label)
    by_class[label] = read_class(package / "src" / "clothes" / (std::to_string(label) + ".json"));

  const auto write_split = [&](std::size_t first, std::size_t count, std::size_t first_file) {
    const auto total = static_cast<std::int64_t>(count * classes);
    NpyArray images{.dtype = Dtype::u8, .shape = {total, side, side}, .bytes = {}};
    NpyArray labels{.dtype = Dtype::u8, .shape = {total}, .bytes = {}};
    for (std::size_t i = first; i < first + count; ++i)
      for (std::size_t label = 0; label < classes; ++label) {
        images.bytes.append(by_class[label], i * pixels, pixels);
        labels.bytes += static_cast<char>(label);
      }
    write_idx(folder / idx_file_names[first_file], images);
    write_idx(folder / idx_file_names[first_file + 1], labels);
  };
  write_split(0, train_images, 0);
  write_split(train_images, test_images, 2);
}

}  // namespace regatta
