#include "base/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>

#include "base/descriptor.h"
#include "base/error.h"

namespace regatta {
namespace fs = std::filesystem;

namespace {

// The temporary neighbour.
fs::path aside_of(const fs::path& path) {
  return path.string() + ".part-" + std::to_string(::getpid());
}

}  // namespace

void write_file(const fs::path& path, std::string_view bytes) {
  const fs::path aside = aside_of(path);
  const auto fail = [&](const char* what) {
    const std::string cause = std::strerror(errno);
    ::unlink(aside.c_str());
    throw InputError("cannot " + std::string(what) + " '" + path.string() + "': " + cause);
  };
  const int file = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail("create");
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int cause = errno;
      ::close(file);
      errno = cause;
      fail("write");
    }
    done += static_cast<std::size_t>(wrote);
  }
  // Without the sync a power cut could leave the new name on an empty file.
  if (::fsync(file) != 0 && errno != EINVAL) {
    const int cause = errno;
    ::close(file);
    errno = cause;
    fail("write");
  }
  if (::close(file) != 0) fail("write");
  if (::rename(aside.c_str(), path.c_str()) != 0) fail("replace");
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
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
  std::error_code code;
  if (path.empty() || fs::is_directory(path, code))
    throw InputError("cannot create '" + path.string() + "': it is not the name of a file");
  const fs::path aside = aside_of(path);
  const Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) throw InputError("cannot create '" + path.string() + "': " + std::strerror(errno));
  ::unlink(aside.c_str());
}

std::string read_file(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code))
    throw InputError("cannot read '" + path.string() + "': it is a folder");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError("cannot read '" + path.string() + "': " + std::strerror(errno));
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (in.bad()) throw InputError("cannot read '" + path.string() + "': " + std::strerror(errno));
  return std::move(bytes).str();
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
