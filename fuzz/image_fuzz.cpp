// JPEG and PNG: headers, whole images at every scale, and samples cut out of them.
#include "data/image.h"
#include "data/window.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  const std::span<const std::byte> bytes = fuzz::as_bytes(data, size);
  return fuzz::may_refuse([&] {
    const ImageHeader header = image_header(bytes);
    // Larger ones only cost time: nothing else happens to them.
    if (std::int64_t{header.size.height} * header.size.width > (1 << 20)) return;
    DecodedImage image;
    for (const int channels : {1, 3})
      for (const int eighths : {8, 4, 2, 1})
        if (eighths == 8 || header.kind == ImageKind::jpeg)
          fuzz::may_refuse([&] { decode_image(bytes, channels, eighths, {}, image); });
    for (const PixelSize target : {PixelSize{8, 8}, PixelSize{5, 9}}) {
      std::vector<std::uint8_t> sample(static_cast<std::size_t>(3 * target.height * target.width));
      fuzz::may_refuse([&] {
        decode_sample(bytes, header, 3, evaluation_framing(header.size, target), sample.data());
      });
    }
  });
}
