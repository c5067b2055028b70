#include "base/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <streambuf>

#include "base/error.h"
#include "base/host_name.h"
#include "base/regular_file.h"
#include "base/standard_output.h"

namespace regatta {
namespace fs = std::filesystem;

namespace {

constexpr int most_links = 40;  // Linux follows no more either

[[noreturn]] void fail(const char* what, const fs::path& path, const std::string& cause) {
  throw InputError("cannot " + std::string(what) + " '" + path.string() + "': " + cause);
}

[[noreturn]] void fail_by_errno(const char* what, const fs::path& path) {
  fail(what, path, std::strerror(errno));
}

// The number behind /dev/fd/3 or /proc/self/fd/3, if the path has that form.
std::optional<int> descriptor_number(const fs::path& path) {
  std::error_code code;
  const fs::path own = fs::canonical("/proc/self/fd", code);
  if (code || fs::canonical(path.parent_path(), code) != own || code) return std::nullopt;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || stop != name.data() + name.size()) return std::nullopt;
  return number;
}

// What a path stands for once its symbolic links are followed. A descriptor is not opened by name
// again: that would write from the beginning of the file behind it, over what is already there.
struct Destination {
  std::optional<int> descriptor;  // of this process
  fs::path path;                  // otherwise; it need not exist
};

Destination follow_links(const fs::path& path) {
  Destination to{std::nullopt, path};
  for (int links = 0; links < most_links; ++links) {
    if (to.path == "-" || to.path == "/dev/stdout") return {STDOUT_FILENO, path};
    if (to.path == "/dev/stderr") return {STDERR_FILENO, path};
    std::error_code code;
    if (!fs::is_symlink(to.path, code)) return to;
    if (const auto number = descriptor_number(to.path)) return {number, path};
    const fs::path next = fs::read_symlink(to.path, code);
    if (code) fail("open", path, code.message());
    to.path = to.path.parent_path() / next;  // `next` alone, if it begins with a slash
  }
  fail("open", path, std::strerror(ELOOP));
}

// Whether bytes go straight to the path: it is an open descriptor, a device or a FIFO.
bool is_stream(const fs::path& path) {
  if (follow_links(path).descriptor) return true;
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 &&
         (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode) || S_ISFIFO(about.st_mode));
}

// The descriptor of this process that the path stands for, wherever printing goes at the moment.
std::optional<int> own_descriptor(const fs::path& path) {
  const std::optional<int> number = follow_links(path).descriptor;
  return number == STDOUT_FILENO ? standard_output() : number;
}

Descriptor open_stream(const fs::path& path) {
  if (const auto own = own_descriptor(path)) {
    std::fflush(stdout);  // what was printed before comes first
    return Descriptor(::fcntl(*own, F_DUPFD_CLOEXEC, 0));
  }
  return Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
}

// Writes to a descriptor, and keeps the cause of the first failure.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int file) : file_(file) { empty(); }
  int cause() const { return cause_; }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }

  int sync() override {
    for (const char* at = pbase(); at < pptr();) {
      const ssize_t wrote = ::write(file_, at, static_cast<std::size_t>(pptr() - at));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        cause_ = errno;
        return -1;
      }
      at += wrote;
    }
    empty();
    return 0;
  }

 private:
  void empty() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  int file_, cause_ = 0;
  std::array<char, 1 << 16> buffer_;
};

void write_through(int file, const fs::path& path,
                   const std::function<void(std::ostream&)>& write) {
  DescriptorBuffer buffer(file);
  std::ostream out(&buffer);
  write(out);
  if (!out.flush()) fail("write", path, std::strerror(buffer.cause()));
}

// The file that a Replacement of `path` replaces or makes.
fs::path replaceable(const fs::path& path) {
  Destination to = follow_links(path);
  std::error_code code;
  const fs::file_status status = fs::status(to.path, code);
  if (!to.path.has_filename() || fs::is_directory(status))
    fail("create", path, "it is not the name of a file");
  if (to.descriptor || (fs::exists(status) && !fs::is_regular_file(status)))
    fail("create", path, "it is not a regular file, and cannot be replaced by one");
  return std::move(to.path);
}

}  // namespace

Replacement::Replacement(const fs::path& path)
    : name_(path.string()),
      target_(replaceable(path)),
      // Processes of two machines that share the folder may have the same number.
      aside_(target_.string() + ".part-" + host_name() + "-" + std::to_string(::getpid())) {
  ::unlink(aside_.c_str());  // of a process of this machine that died, and had this number
  // What replaces a file that others may not read is not for them either, while it is written.
  std::error_code ignored;
  const mode_t mode = fs::exists(target_, ignored) ? 0600 : 0644;
  file_ = Descriptor(::open(aside_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file_) fail_by_errno("create", path);
}

Replacement::~Replacement() {
  if (file_) ::unlink(aside_.c_str());
}

void Replacement::commit() {
  // Without the sync a power cut could leave the new name on an empty file.
  if (::fsync(file_.get()) != 0 && errno != EINVAL) fail_by_errno("write", name_);
  if (struct stat old{}; ::stat(target_.c_str(), &old) == 0) {
    // Only root may give files away; for others the file becomes their own.
    if (::fchown(file_.get(), old.st_uid, old.st_gid) != 0) errno = 0;
    if (::fchmod(file_.get(), old.st_mode & 07777) != 0) fail_by_errno("replace", name_);
  }
  if (::rename(aside_.c_str(), target_.c_str()) != 0) fail_by_errno("replace", name_);
  file_ = Descriptor();
  sync_folder(target_.has_parent_path() ? target_.parent_path() : ".");
}

void write_file(const fs::path& path, std::string_view bytes) {
  write_file(path, [bytes](std::ostream& out) { out.write(bytes.data(), std::ssize(bytes)); });
}

void write_file(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  if (is_stream(path)) {
    const Descriptor stream = open_stream(path);
    if (!stream) fail_by_errno("write", path);
    write_through(stream.get(), path, write);
    return;
  }
  Replacement file(path);
  write_through(file.descriptor(), path, write);
  file.commit();
}

bool is_standard_output(const fs::path& path) {
  return follow_links(path).descriptor == STDOUT_FILENO;
}

void sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder, and then there is nothing more to be done.
  if (!opened || (::fsync(opened.get()) != 0 && errno != EINVAL && errno != ENOTSUP))
    throw InputError("cannot write '" + folder.string() + "': " + std::strerror(errno));
}

bool is_unfinished(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".part") || name.find(".part-") != std::string::npos;
}

void require_writable(const fs::path& path) {
  if (!is_stream(path)) {
    const Replacement unused(path);
    return;
  }
  if (const auto own = own_descriptor(path)) {
    const int mode = ::fcntl(*own, F_GETFL);
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY) fail("write", path, std::strerror(EBADF));
  } else if (::access(path.c_str(), W_OK) != 0) {  // opening a FIFO would tell its reader of an end
    fail_by_errno("write", path);
  }
}

std::string read_file(const fs::path& path) {
  std::error_code ignored;
  const bool piped = fs::is_fifo(path, ignored);  // such as a shell's <(program)
  if (!piped) require_regular_file(path);
  // O_NONBLOCK: opening a pipe does not wait for a writer. A shell's writer has opened it already.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) fail_by_errno("read", path);
  std::string bytes;
  constexpr std::size_t piece = 1 << 16;
  std::size_t filled = 0;
  while (true) {
    // Room for a byte more than a regular file has, so its end is seen without growing `bytes`.
    const auto rest = static_cast<std::size_t>(about.st_size) + 1;
    if (filled == bytes.size())
      bytes.resize(filled < rest ? rest : filled + std::max(filled, piece));
    const ssize_t got = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got == 0) break;
    if (got > 0)
      filled += static_cast<std::size_t>(got);
    else if (errno == EAGAIN)
      ::fcntl(file.get(), F_SETFL, 0);  // a writer is there: further reads wait for it
    else if (errno != EINTR)
      fail_by_errno("read", path);
  }
  if (piped && filled == 0) fail("read", path, "it is a pipe to which nobody writes");
  bytes.resize(filled);
  return bytes;
}

fs::path cache_folder() {
  if (const char* own = std::getenv("REGATTA_CACHE"); own && *own) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
    return fs::path(xdg) / "regatta";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".cache" / "regatta";
  return fs::temp_directory_path() / "regatta";
}

namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    require(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }

  void add(std::string_view bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    require(EVP_DigestFinal_ex(context_.get(), digest, &length) == 1);
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < length; ++i) {
      text += digits[digest[i] >> 4];
      text += digits[digest[i] & 15];
    }
    return text;
  }

 private:
  static void require(bool worked) {
    if (!worked) throw Error("SHA-256 is not available from the crypto library");
  }
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

std::string sha256_of_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Sha256 sum;
  std::vector<char> piece(std::size_t{1} << 20);
  while (true) {
    const ssize_t got = file ? ::read(file.get(), piece.data(), piece.size()) : -1;
    if (got < 0 && file && errno == EINTR) continue;
    if (got < 0) throw InputError("cannot read '" + path.string() + "': " + std::strerror(errno));
    if (got == 0) return sum.hex();
    sum.add({piece.data(), static_cast<std::size_t>(got)});
  }
}

namespace {
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}
}  // namespace

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (!best || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (!best || best_distance > std::max<std::size_t>(2, name.size() / 3)) return "";
  return " (did you mean '" + *best + "'?)";
}

}  // namespace regatta
