#include "data/mask.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  return fuzz::may_refuse([&] { parse_mask(fuzz::as_bytes(data, size), "fuzz"); });
}
