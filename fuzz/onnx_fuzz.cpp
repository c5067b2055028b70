#include "fuzz.h"
#include "models/onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  return fuzz::may_refuse([&] { fuse(read_onnx(fuzz::as_bytes(data, size)).graph); });
}
