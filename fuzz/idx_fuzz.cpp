#include "data/idx.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = regatta::fuzz::as_file(data, size);
  return regatta::fuzz::may_refuse([&] { regatta::read_idx(file); });
}
