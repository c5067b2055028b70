#include "data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
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

struct Close {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, Close>;  // zlib reads plain files through it as well

class IdxReader {
 public:
  explicit IdxReader(const std::filesystem::path& path) : path_(path) {
    std::error_code code;
    file_bytes_ = std::filesystem::file_size(path, code);
    if (code) throw InputError("cannot read '" + path.string() + "': " + code.message());
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) throw InputError("cannot read '" + path.string() + "': " + std::strerror(errno));
  }

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
    const std::size_t possible = file_bytes_ * (gzdirect(file_.get()) ? 1 : deflate_growth);
    if (!bytes || *bytes > possible)
      fail("its dimensions take " + (bytes ? std::to_string(*bytes) : "impossibly many") +
           " bytes, more than " + std::to_string(file_bytes_) + " bytes of file can hold");
    array.bytes.resize(*bytes);
    take(array.bytes.data(), array.bytes.size());

    // Reading on also makes zlib check the stream's own length and checksum.
    char extra;
    if (gzread(file_.get(), &extra, 1) > 0) fail("bytes follow the data its dimensions announce");
    require_whole_stream();
    return array;
  }

 private:
  [[noreturn]] void fail(const std::string& lie) const {
    throw InputError("'" + path_.string() + "' is not a usable idx file: " + lie);
  }

  void require_whole_stream() const {
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) fail("its gzip stream is cut off");
    if (code != Z_OK && code != Z_STREAM_END)
      fail(std::string("its gzip stream is damaged: ") + text);
  }

  void take(void* target, std::size_t count) {
    constexpr std::size_t most_at_once = 1u << 30;  // zlib counts in int
    auto* next = static_cast<unsigned char*>(target);
    while (count > 0) {
      const int got =
          gzread(file_.get(), next, static_cast<unsigned>(std::min(count, most_at_once)));
      if (got <= 0) {
        require_whole_stream();
        fail("it is cut off, " + std::to_string(count) + " bytes before its end");
      }
      next += got;
      count -= static_cast<std::size_t>(got);
    }
  }

  std::filesystem::path path_;
  std::size_t file_bytes_ = 0;
  GzipFile file_;
};

}  // namespace

NpyArray read_idx(const std::filesystem::path& path) { return IdxReader(path).read(); }

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
