#include "data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "data/tensor_bytes.h"

namespace regatta {
namespace {

constexpr unsigned char unsigned_byte = 0x08;  // the format's code for the only type we read
constexpr int highest_rank = 4;

// A deflate stream cannot grow by more than this, so a header that claims more is lying.
constexpr std::size_t deflate_growth = 1032;

// Bytes as they are, or inflated as they are asked for if they begin as a gzip file does.
class Stream {
 public:
  explicit Stream(std::span<const std::byte> bytes) : left_(bytes) {
    gzipped_ = bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
    if (gzipped_ && inflateInit2(&zlib_, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() {
    if (gzipped_) inflateEnd(&zlib_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool gzipped() const { return gzipped_; }
  // Why a gzip stream gave too little; empty if it just ended.
  const std::string& fault() const { return fault_; }

  // Fewer than `count` at the end, or where the stream is damaged.
  std::size_t take(unsigned char* target, std::size_t count) {
    if (!gzipped_) {
      const std::size_t got = std::min(count, left_.size());
      if (got > 0) std::memcpy(target, left_.data(), got);
      left_ = left_.subspan(got);
      return got;
    }
    constexpr std::size_t most_at_once = 1u << 30;  // zlib counts in 32 bits
    std::size_t done = 0;
    while (done < count && !ended_ && fault_.empty()) {
      const auto given = static_cast<unsigned>(std::min(left_.size(), most_at_once));
      const auto room = static_cast<unsigned>(std::min(count - done, most_at_once));
      zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
      zlib_.avail_in = given;
      zlib_.next_out = target + done;
      zlib_.avail_out = room;
      const int code = inflate(&zlib_, Z_NO_FLUSH);
      left_ = left_.subspan(given - zlib_.avail_in);
      done += room - zlib_.avail_out;
      if (code == Z_STREAM_END)
        ended_ = true;
      else if (code == Z_BUF_ERROR && left_.empty())
        fault_ = "is cut off";
      else if (code != Z_OK)
        fault_ = std::string("is damaged: ") + (zlib_.msg ? zlib_.msg : "it ends early");
    }
    return done;
  }

 private:
  std::span<const std::byte> left_;
  z_stream zlib_{};
  bool gzipped_ = false, ended_ = false;
  std::string fault_;
};

class IdxReader {
 public:
  IdxReader(std::span<const std::byte> bytes, const std::string& name)
      : name_(name), file_bytes_(bytes.size()), stream_(bytes) {}

  NpyArray read() {
    std::array<unsigned char, 4> magic{};
    take(magic.data(), magic.size());
    if (magic[0] != 0 || magic[1] != 0) fail("it does not begin with two zero bytes");
    if (magic[2] != unsigned_byte)
      fail("its type code is " + std::to_string(magic[2]) + "; only unsigned bytes (8) are read");
    if (magic[3] < 1 || magic[3] > highest_rank)
      fail("it claims " + std::to_string(magic[3]) + " dimensions");

    NpyArray array{.dtype = Dtype::u8, .shape = {}, .bytes = {}};
    for (int axis = 0; axis < magic[3]; ++axis) {
      std::array<unsigned char, 4> big_endian{};
      take(big_endian.data(), big_endian.size());
      std::int64_t extent = 0;
      for (const unsigned char byte : big_endian) extent = extent << 8 | byte;
      array.shape.push_back(extent);
    }
    const std::optional<std::size_t> bytes = tensor_bytes(array.shape, Dtype::u8);
    const std::size_t possible = file_bytes_ * (stream_.gzipped() ? deflate_growth : 1);
    if (!bytes || *bytes > possible)
      fail("its dimensions take " + (bytes ? std::to_string(*bytes) : "impossibly many") +
           " bytes, more than " + std::to_string(file_bytes_) + " bytes of file can hold");
    array.bytes.resize(*bytes);
    take(array.bytes.data(), array.bytes.size());

    // Reading on also makes zlib check the stream's own length and checksum.
    unsigned char extra;
    if (stream_.take(&extra, 1) > 0) fail("bytes follow the data its dimensions announce");
    require_whole_stream();
    return array;
  }

 private:
  [[noreturn]] void fail(const std::string& lie) const {
    throw InputError("'" + name_ + "' is not a usable idx file: " + lie);
  }

  void require_whole_stream() const {
    if (!stream_.fault().empty()) fail("its gzip stream " + stream_.fault());
  }

  void take(void* target, std::size_t count) {
    const std::size_t got = stream_.take(static_cast<unsigned char*>(target), count);
    if (got == count) return;
    require_whole_stream();
    fail("it is cut off, " + std::to_string(count - got) + " bytes before its end");
  }

  std::string name_;
  std::size_t file_bytes_ = 0;
  Stream stream_;
};

}  // namespace

NpyArray parse_idx(std::span<const std::byte> bytes, const std::string& name) {
  return IdxReader(bytes, name).read();
}

NpyArray read_idx(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  return parse_idx(std::as_bytes(std::span(bytes)), path.string());
}

void write_idx(const std::filesystem::path& path, const NpyArray& array) {
  if (array.dtype != Dtype::u8 || tensor_bytes(array.shape, Dtype::u8) != array.bytes.size())
    throw Error("an idx file holds unsigned bytes, as many as its dimensions announce");
  std::string bytes{0, 0, static_cast<char>(unsigned_byte), static_cast<char>(array.shape.size())};
  for (const std::int64_t extent : array.shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift);
  bytes += array.bytes;
  write_file(path, bytes);
}

}  // namespace regatta
