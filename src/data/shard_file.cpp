#include "data/shard_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crc32c.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/regular_file.h"
#include "data/tensor_bytes.h"

namespace regatta {
namespace {

constexpr std::size_t page = 4096;

std::uint32_t header_crc(const ShardHeader& header) {
  return crc32c({reinterpret_cast<const char*>(&header), offsetof(ShardHeader, header_crc)});
}

}  // namespace

std::size_t shard_samples_offset(std::uint64_t count) {
  return (sizeof(ShardHeader) + count * sizeof(ShardEntry) + page - 1) / page * page;
}

std::string shard_bytes(ShardHeader header, std::vector<ShardEntry> entries,
                        const std::string& samples) {
  const std::size_t sample = entries.empty() ? 0 : samples.size() / entries.size();
  for (std::size_t i = 0; i < entries.size(); ++i)
    entries[i].crc = crc32c(std::string_view(samples).substr(i * sample, sample));
  const std::string_view table(reinterpret_cast<const char*>(entries.data()),
                               entries.size() * sizeof(ShardEntry));
  std::memcpy(header.magic, ShardHeader::right_magic, sizeof header.magic);
  header.count = entries.size();
  header.table_crc = crc32c(table);
  header.header_crc = header_crc(header);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.reserve(shard_samples_offset(header.count) + samples.size());
  bytes += table;
  bytes.resize(shard_samples_offset(header.count), '\0');
  return bytes += samples;
}

MappedShard::MappedShard(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& lie) {
    if (bytes_) ::munmap(const_cast<char*>(bytes_), size_);
    throw InputError("'" + path.string() + "' is not a usable shard: " + lie +
                     "; make it again with regatta data prepare");
  };
  require_regular_file(path);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0)
    throw InputError("cannot read '" + path.string() + "': " + std::strerror(errno));
  size_ = static_cast<std::size_t>(about.st_size);
  if (size_ < sizeof(ShardHeader)) fail("it has only " + std::to_string(size_) + " bytes");
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED)
    throw InputError("cannot map '" + path.string() + "': " + std::strerror(errno));
  bytes_ = static_cast<const char*>(mapped);
  const ShardHeader& found = header();
  if (std::memcmp(found.magic, ShardHeader::right_magic, sizeof found.magic) != 0)
    fail("it does not begin as one");
  if (found.header_crc != header_crc(found)) fail("its header is damaged");
  // The checksum holds, so these should be what was written; but the file may be cut off, and
  // numbers that someone made up may not overflow what follows.
  const std::int64_t extents[]{found.channels, found.height, found.width};
  sample_bytes_ = tensor_bytes(extents, Dtype::u8).value_or(0);
  if (found.count == 0 || sample_bytes_ == 0) fail("there is nothing in it");
  if (found.count > size_ / (sizeof(ShardEntry) + std::min(sample_bytes_, size_)))
    fail("it claims " + std::to_string(found.count) + " samples, more than it can hold");
  const std::size_t whole = shard_samples_offset(found.count) + found.count * sample_bytes_;
  if (size_ != whole)
    fail("it has " + std::to_string(size_) + " of " + std::to_string(whole) + " bytes");
  if (found.table_crc != crc32c({bytes_ + sizeof(ShardHeader), found.count * sizeof(ShardEntry)}))
    fail("its table is damaged");
}

MappedShard::~MappedShard() { ::munmap(const_cast<char*>(bytes_), size_); }

bool MappedShard::sound(std::int64_t position) const {
  return crc32c(samples(position)) == entry(position).crc;
}

}  // namespace regatta
