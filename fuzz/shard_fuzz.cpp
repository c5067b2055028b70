// Shards whose checksums hold, whatever else they say.
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "data/shard_file.h"
#include "fuzz.h"

namespace {

std::uint32_t crc_of(const std::uint8_t* data, std::size_t size) {
  return regatta::crc32c({reinterpret_cast<const char*>(data), size});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  std::vector<std::uint8_t> bytes(data, data + size);
  ShardHeader header;
  if (size >= sizeof header) {
    std::memcpy(&header, data, sizeof header);
    const std::size_t table = header.count * sizeof(ShardEntry);
    if (table <= size - sizeof header) header.table_crc = crc_of(data + sizeof header, table);
    header.header_crc =
        crc_of(reinterpret_cast<const std::uint8_t*>(&header), offsetof(ShardHeader, header_crc));
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  const auto file = fuzz::as_file(bytes.data(), bytes.size());
  return fuzz::may_refuse([&] {
    const MappedShard shard(file);
    for (std::int64_t i = 0; i < shard.count(); ++i) (void)shard.sound(i);
  });
}
