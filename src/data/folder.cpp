#include "data/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <compare>
#include <cstring>
#include <iterator>
#include <set>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "data/encoded_dataset.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// No photograph is larger; a disk image that found its way into a class is.
constexpr std::int64_t largest_file = std::int64_t{1} << 30;

bool is_image(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

[[noreturn]] void fail(const fs::path& path, const std::error_code& code) {
  throw InputError("cannot read folder '" + path.string() + "': " + code.message());
}

// `folder` and all folders it lies in, without symbolic links. A link to one of them would lead
// back to itself.
std::set<fs::path> ancestors_of(const fs::path& folder) {
  std::error_code code;
  fs::path each = fs::canonical(folder, code);
  if (code) fail(folder, code);
  std::set<fs::path> ancestors{each};
  for (; each.has_relative_path(); each = each.parent_path()) ancestors.insert(each.parent_path());
  return ancestors;
}

std::vector<std::string> folders_in(const fs::path& folder) {
  const std::set<fs::path> ancestors = ancestors_of(folder);
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code))
    if (entry->is_directory(code) && entry->path().filename().string().front() != '.' &&
        !ancestors.contains(fs::canonical(entry->path(), code)))
      names.push_back(entry->path().filename().string());
  if (code) fail(folder, code);
  std::ranges::sort(names);
  return names;
}

// Adds the paths of the images in `folder`, each with `prefix` before it. Symbolic links to folders
// are followed, but no folder is read twice: `seen` has those that were.
void add_images(const fs::path& folder, const std::string& prefix, std::set<fs::path>& seen,
                std::vector<std::string>& names) {
  struct Inside {
    bool link;  // real folders come first, so that links to them count nothing again
    std::string name;
    auto operator<=>(const Inside&) const = default;
  };
  std::vector<Inside> folders;
  std::error_code code, ignored;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    std::string name = entry->path().filename().string();
    if (entry->is_directory(ignored))
      folders.push_back({entry->is_symlink(ignored), std::move(name)});
    else if (is_image(entry->path()))
      names.push_back(prefix + name);
  }
  if (code) fail(folder, code);
  std::ranges::sort(folders);
  for (const auto& [link, name] : folders) {
    const fs::path real = fs::canonical(folder / name, code);
    if (code) fail(folder / name, code);
    if (seen.insert(real).second) add_images(folder / name, prefix + name + "/", seen, names);
  }
}

// Paths of the images in `folder`, from `folder`.
std::vector<std::string> images_in(const fs::path& folder) {
  std::set<fs::path> seen = ancestors_of(folder);
  std::vector<std::string> names;
  add_images(folder, "", seen, names);
  std::ranges::sort(names);
  return names;
}

// The folder that holds a split's classes; the second is whether the splits are one.
std::pair<fs::path, bool> place_of(const fs::path& folder, Split split, const std::string& spec) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    if (code && code != std::errc::no_such_file_or_directory) fail(folder, code);
    throw InputError("data set '" + spec + "': there is no folder '" + folder.string() + "'");
  }
  if (!fs::is_directory(folder / "train", code)) return {folder, true};
  if (split == Split::train) return {folder / "train", false};
  for (const char* name : {"test", "val", "validation"})
    if (fs::is_directory(folder / name, code)) return {folder / name, false};
  return {folder / "train", true};
}

// Names share one text: a million of them are a million numbers more, not a million strings.
class FileStore final : public ImageStore {
 public:
  // The images of the folders `classes` in `place`, labelled by their folder.
  FileStore(const fs::path& place, const std::vector<std::string>& classes)
      : place_(place), prefix_(place.string() + "/") {
    for (std::size_t label = 0; label < classes.size(); ++label) {
      std::error_code code;
      if (!fs::is_directory(place_ / classes[label], code)) continue;  // a test split may lack some
      for (const std::string& name : images_in(place_ / classes[label]))
        add(classes[label] + "/" + name, static_cast<std::int32_t>(label));
    }
  }
  // These files, without labels.
  explicit FileStore(const std::vector<std::string>& files) {
    for (const std::string& file : files) add(file, 0);
  }

  std::int64_t count() const override { return std::ssize(labels_); }
  std::int32_t label(std::int64_t index) const override {
    return labels_[static_cast<std::size_t>(index)];
  }
  std::string name(std::int64_t index) const override { return path_of(index); }

  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < count(); ++i) sum += size_of_file(i);
    return sum;
  }

  // Sizes of some: a million files on a server take minutes to ask for theirs.
  Json identity() const override {
    constexpr std::int64_t asked = 1000;
    std::string sizes;
    for (std::int64_t i = 0; i < std::min(asked, count()); ++i)
      sizes += std::to_string(size_of_file(i * count() / std::min(asked, count()))) + ' ';
    return {{"file names", sha256_hex(names_).substr(0, 16)},
            {"file sizes", sha256_hex(sizes).substr(0, 16)}};
  }

  void fetch(std::int64_t index, std::vector<std::byte>& bytes) const override {
    // O_NONBLOCK: opening a FIFO does not wait for a writer.
    const Descriptor file(::open(path_of(index).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0) fail_by_errno();
    if (!S_ISREG(about.st_mode)) throw InputError("it is not a regular file");
    if (about.st_size > largest_file)
      throw InputError("it has " + std::to_string(about.st_size) + " bytes");
    bytes.resize(static_cast<std::size_t>(about.st_size));
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_by_errno();
      if (got == 0) throw InputError("it shrank while being read");
      done += static_cast<std::size_t>(got);
    }
  }

  void require_present() const override {
    std::error_code code;
    if (!place_.empty() && !fs::is_directory(place_, code))
      throw InputError("the data has gone: folder '" + place_.string() + "' is no longer there");
  }

 private:
  [[noreturn]] static void fail_by_errno() {
    const std::string cause = std::strerror(errno);
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      throw Error("cannot open an image: " + cause);  // not the image's fault
    throw InputError(cause);
  }

  void add(const std::string& name, std::int32_t label) {
    names_ += name;
    ends_.push_back(names_.size());
    labels_.push_back(label);
  }

  std::string path_of(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return prefix_ + names_.substr(begin, ends_[i] - begin);
  }

  // 0 for a file that is not there.
  std::int64_t size_of_file(std::int64_t index) const {
    struct stat about {};
    return ::stat(path_of(index).c_str(), &about) == 0 ? about.st_size : 0;
  }

  fs::path place_;      // empty: the names are whole paths
  std::string prefix_;  // what stands before each name
  std::string names_;
  std::vector<std::size_t> ends_;  // of each name in names_
  std::vector<std::int32_t> labels_;
};

void require_known_classes(const std::string& spec, const fs::path& place,
                           const std::vector<std::string>& classes) {
  for (const std::string& name : folders_in(place))
    if (!std::ranges::binary_search(classes, name))
      throw InputError("data set '" + spec + "': '" + (place / name).string() +
                       "' is a class that the training split does not have");
}

}  // namespace

std::shared_ptr<const Dataset> folder_dataset(const std::string& spec, const fs::path& folder,
                                              const DatasetOptions& options) {
  const auto [train, alone] = place_of(folder, Split::train, spec);
  const auto [place, coincide] = place_of(folder, options.split, spec);
  DatasetInfo info;
  info.spec = spec;
  info.splits_coincide = alone || coincide || place_of(folder, Split::test, spec).second;
  const std::vector<std::string> classes = folders_in(train);
  std::ranges::transform(classes, std::back_inserter(info.class_names), valid_utf8);
  info.classes = static_cast<int>(classes.size());
  if (place != train) require_known_classes(spec, place, classes);
  auto store = std::make_unique<const FileStore>(place, classes);
  if (store->count() == 0)
    throw InputError("data set '" + spec + "': '" + place.string() +
                     "' has no CLASS/*.jpg, *.jpeg or *.png in it");
  return encoded_dataset(std::move(info), std::move(store), options);
}

std::vector<std::string> images_under(const fs::path& folder) {
  std::vector<std::string> files;
  for (const std::string& name : images_in(folder)) files.push_back((folder / name).string());
  return files;
}

std::shared_ptr<const Dataset> files_dataset(const std::vector<std::string>& files,
                                             const DatasetOptions& options) {
  DatasetInfo info;
  info.spec = files.size() == 1 ? files.front() : std::to_string(files.size()) + " images";
  info.classes = 1;
  info.splits_coincide = true;
  return encoded_dataset(std::move(info), std::make_unique<const FileStore>(files), options);
}

}  // namespace regatta
