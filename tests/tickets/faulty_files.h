// Files in memory and clocks that tests set: a network file system with all its vices.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "tickets/file_layer.h"

namespace regatta::tickets {

// What is really there, and since when.
struct Store {
  struct File {
    std::string bytes;
    std::optional<std::string> before;  // what it replaced
    Seconds since{0};
  };
  std::map<std::string, File> files;
  Seconds time{0};
};

// How one machine sees the store.
class FaultyFiles : public FileLayer {
 public:
  FaultyFiles(Store& store, Seconds clock_offset = Seconds{0})
      : store_(store), offset_(clock_offset) {}

  Seconds stale{0};      // changes of other machines are seen so late
  bool full = false;     // nothing can be written
  bool cut_off = false;  // the process is dead: nothing reaches the store any more
  int lose_answers = 0;  // so many files will be created and reported as failures
  bool mute = false;     // what is replaced is lost, and reported as done
  // Called with the path before a file is created: the server stalls while others go on.
  std::function<void(const std::filesystem::path&)> stall = {};

  std::optional<std::string> read(const std::filesystem::path& path) override {
    const auto at = store_.files.find(path.string());
    if (at == store_.files.end()) return std::nullopt;
    const bool fresh = own_.contains(path.string()) || store_.time - at->second.since >= stale;
    return fresh ? std::optional(at->second.bytes) : at->second.before;
  }

  bool create(const std::filesystem::path& path, const std::string& bytes) override {
    if (const auto wait = std::exchange(stall, nullptr)) wait(path);
    require_room(path);
    const bool made = !store_.files.contains(path.string());
    if (made) put(path, bytes);
    // A client that is told that the file is there asks the server, not its own memory.
    if (!made) own_.insert(path.string());
    if (lose_answers > 0) {
      --lose_answers;
      throw InputError("cannot create '" + path.string() + "': the answer was lost");
    }
    return made;
  }

  void replace(const std::filesystem::path& path, const std::string& bytes) override {
    require_room(path);
    if (!mute) put(path, bytes);
  }

  std::vector<std::string> list(const std::filesystem::path& folder) override {
    std::vector<std::string> names;
    for (const auto& [name, file] : store_.files)
      if (std::filesystem::path(name).parent_path() == folder && store_.time - file.since >= stale)
        names.push_back(std::filesystem::path(name).filename().string());
    return names;
  }

  void make_folder(const std::filesystem::path&) override {}
  Seconds now() override { return store_.time + offset_; }

 private:
  void require_room(const std::filesystem::path& path) const {
    if (full || cut_off)
      throw InputError("cannot create '" + path.string() + "': No space left on device");
  }
  void put(const std::filesystem::path& path, const std::string& bytes) {
    Store::File& file = store_.files[path.string()];
    const bool was = file.since > Seconds{0} || !file.bytes.empty();
    file.before = was ? std::optional(file.bytes) : std::nullopt;
    file.bytes = bytes;
    file.since = store_.time;
    own_.insert(path.string());
  }

  Store& store_;
  Seconds offset_;
  std::set<std::string> own_;  // what this machine wrote, or was told of
};

}  // namespace regatta::tickets
