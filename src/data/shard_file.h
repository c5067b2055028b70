// One shard: its form on disk, written whole and checked whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/shape.h"

namespace regatta {

// In the file as it is in memory: little-endian.
struct ShardHeader {
  static constexpr char right_magic[8]{'r', 'e', 'g', 'a', 't', 't', 'a', '1'};

  char magic[8]{};
  char job[32]{};  // which preparation it belongs to: 32 hexadecimal digits
  std::uint32_t channels = 0, height = 0, width = 0;
  std::uint32_t number = 0;  // within its split
  std::uint64_t first = 0;   // position of its first sample within its split
  std::uint64_t count = 0;
  std::uint32_t table_crc = 0;
  std::uint32_t header_crc = 0;  // of all before it
};
static_assert(sizeof(ShardHeader) == 80);

struct ShardEntry {
  std::int64_t index = 0;  // in the data it was made of
  std::int32_t label = 0;
  std::uint32_t crc = 0;  // of the sample
};
static_assert(sizeof(ShardEntry) == 16);

// Where samples begin: on a page of their own.
std::size_t shard_samples_offset(std::uint64_t count);

// A whole file's bytes. Fills in magic, checksums and count.
std::string shard_bytes(ShardHeader header, std::vector<ShardEntry> entries,
                        const std::string& samples);

// A shard mapped into memory. Throws InputError that names the file and what is wrong with it:
// everything but the samples, which are checked as they are read.
class MappedShard {
 public:
  explicit MappedShard(const std::filesystem::path& path);
  ~MappedShard();
  MappedShard(const MappedShard&) = delete;
  MappedShard& operator=(const MappedShard&) = delete;

  const ShardHeader& header() const { return *reinterpret_cast<const ShardHeader*>(bytes_); }
  Shape sample() const { return {header().channels, header().height, header().width}; }
  std::int64_t count() const { return static_cast<std::int64_t>(header().count); }
  const ShardEntry& entry(std::int64_t position) const {
    return reinterpret_cast<const ShardEntry*>(bytes_ + sizeof(ShardHeader))[position];
  }
  std::string_view samples(std::int64_t position) const {
    return {bytes_ + shard_samples_offset(header().count) +
                static_cast<std::size_t>(position) * sample_bytes_,
            sample_bytes_};
  }
  // Whether the sample is what was written.
  bool sound(std::int64_t position) const;

 private:
  const char* bytes_ = nullptr;
  std::size_t size_ = 0, sample_bytes_ = 0;
};

}  // namespace regatta
