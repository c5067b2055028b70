// Record files and the messages in them. A record's checksums would keep a fuzzer out, so the bytes
// are also taken for the payload itself, and for the payload of a record.
#include "data/tfrecord.h"
#include "fuzz.h"

namespace {

using namespace regatta;

void read_records(std::span<const std::byte> file) {
  for (const RecordPlace& place : parse_tfrecord(file, "fuzz"))
    parse_image_example(file.subspan(place.offset, place.bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = fuzz::as_bytes(data, size);
  fuzz::may_refuse([&] { read_records(bytes); });
  fuzz::may_refuse([&] { parse_image_example(bytes); });
  const std::string record = tfrecord_of({reinterpret_cast<const char*>(data), size});
  return fuzz::may_refuse([&] { read_records(std::as_bytes(std::span(record))); });
}
