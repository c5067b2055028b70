// Which workers are there: each counts up in a file of its own, and others watch it count.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tickets/file_layer.h"

namespace regatta::tickets {

// What a worker tells about itself while it lives.
struct Heartbeat {
  std::int64_t beat = 0;    // counts up
  std::string machine;      // "name, 16 CPUs": workers of one machine are equally fast
  double images_per_s = 0;  // of one job, as last measured; 0: not yet
  struct Work {
    std::string job;
    double left = 0;  // images still to train, as far as it knows
  };
  std::vector<Work> work;
  int slots = 1;       // jobs that it does side by side
  bool ended = false;  // left on its own

  Json to_json() const;
  static std::optional<Heartbeat> parse(const std::string& text);
};

std::filesystem::path heartbeat_file(const std::filesystem::path& search,
                                     const std::string& worker);

// A worker is gone if its count did not change for longer than the lease while this observer looked
// on, by the observer's own clock. Clocks of different machines are never compared. A pause between
// two looks counts as a third of the lease at most: an observer that was asleep itself must look
// again before it judges.
class LeaseWatch {
 public:
  LeaseWatch(FileLayer& files, std::filesystem::path search, Seconds lease);

  // Looks at the worker's file. A worker that said it ended is gone at once.
  bool gone(const std::string& worker);
  // It counted while this observer looked on, and is not gone.
  bool seen_alive(const std::string& worker) const;
  // As of the last look; nothing if the worker never wrote.
  const std::optional<Heartbeat>& heartbeat(const std::string& worker) const;

 private:
  struct Seen {
    std::optional<Heartbeat> last;
    Seconds looked{0}, unchanged{0};
    bool counted = false;
  };

  FileLayer& files_;
  std::filesystem::path search_;
  Seconds lease_;
  std::map<std::string, Seen> seen_;
};

}  // namespace regatta::tickets
