// Images a second of a core's own time, from encoded bytes in memory to samples: what a data set of
// images does, beside decoding alone. `scripts/bench-decode` sets it beside Pillow and torchvision.
//
//   regatta_decode_bench FOLDER [SIDE [SECONDS [SAMPLES.npy]]]
//
// SAMPLES.npy gets the evaluation samples, in the order of the files' names.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/image.h"
#include "data/npy.h"

namespace {

using namespace regatta;

// What this process got of its core: other programs on the machine do not count.
double seconds_used() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Encoded {
  std::string bytes;
  ImageHeader header;

  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes)); }
};

std::vector<Encoded> images_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Encoded> images;
  for (const auto& file : files) try {
      Encoded image{read_file(file), {}};
      image.header = image_header(image.span());
      images.push_back(std::move(image));
    } catch (const InputError&) {
      // Other files may lie there.
    }
  if (images.empty()) throw InputError("'" + folder.string() + "' has no images");
  return images;
}

// Whole rounds over the images for at least `seconds`, and one before that does not count.
double images_per_second(const std::vector<Encoded>& images, double seconds,
                         const std::function<void(const Encoded&, std::uint64_t)>& work) {
  std::uint64_t done = 0;
  for (const Encoded& image : images) work(image, done++);
  const double begin = seconds_used();
  double elapsed = 0;
  done = 0;
  do {
    for (const Encoded& image : images) work(image, done++);
    elapsed = seconds_used() - begin;
  } while (elapsed < seconds);
  return static_cast<double>(done) / elapsed;
}

int run(int count, char** arguments) {
  if (count < 2)
    throw InputError("usage: regatta_decode_bench FOLDER [SIDE [SECONDS [SAMPLES.npy]]]");
  const int side = count > 2 ? std::atoi(arguments[2]) : 224;
  const double seconds = count > 3 ? std::atof(arguments[3]) : 3;
  if (side < 1 || side > 4096) throw InputError("SIDE is a number of pixels");
  const std::vector<Encoded> images = images_in(arguments[1]);
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(3 * side * side));
  const PixelSize target{side, side};
  const auto report = [](const char* what, double rate) {
    std::printf("{\"what\": \"%s\", \"images_per_s\": %.1f}\n", what, rate);
    std::fflush(stdout);
  };
  const auto framed = [&](const Encoded& image, const Framing& framing) {
    decode_sample(image.span(), image.header, 3, framing, sample.data());
  };

  DecodedImage whole;
  report("libjpeg-turbo alone, whole image",
         images_per_second(images, seconds, [&](const Encoded& image, std::uint64_t) {
           decode_image(image.span(), 3, 8, {}, whole);
         }));
  report("Regatta, resize and centre crop",
         images_per_second(images, seconds, [&](const Encoded& image, std::uint64_t) {
           framed(image, evaluation_framing(image.header.size, target));
         }));
  const Augmentation::ResizedCrop crop{.height = side, .width = side};
  report("Regatta, random resized crop",
         images_per_second(images, seconds, [&](const Encoded& image, std::uint64_t number) {
           framed(image, resized_crop_framing(image.header.size, crop, random_bits(1, 2, number)));
         }));

  if (count > 4) {
    NpyArray array{Dtype::u8, {std::ssize(images), 3, side, side}, {}};
    for (const Encoded& image : images) {
      framed(image, evaluation_framing(image.header.size, target));
      array.bytes.append(reinterpret_cast<const char*>(sample.data()), sample.size());
    }
    write_npy(arguments[4], array);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const regatta::Error& error) {
    std::fprintf(stderr, "regatta_decode_bench: %s\n", error.what());
    return 2;
  }
}
