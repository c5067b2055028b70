#include "data/cifar.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  for (const CifarForm* form : {&cifar10_form(), &cifar100_form()})
    fuzz::may_refuse([&] {
      CifarRecords records;
      parse_cifar(fuzz::as_bytes(data, size), *form, "fuzz", records);
    });
  return 0;
}
