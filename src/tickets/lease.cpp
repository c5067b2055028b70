#include "tickets/lease.h"

#include <algorithm>
#include <utility>

namespace regatta::tickets {
namespace fs = std::filesystem;

Json Heartbeat::to_json() const {
  Json doing = Json::array();
  for (const Work& each : work) doing.push_back({{"job", each.job}, {"images_left", each.left}});
  return {{"beat", beat},  {"machine", machine}, {"images_per_s", images_per_s},
          {"work", doing}, {"slots", slots},     {"ended", ended}};
}

std::optional<Heartbeat> Heartbeat::parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  Heartbeat found;
  try {
    found.beat = json.at("beat");
    found.machine = json.at("machine");
    found.images_per_s = json.at("images_per_s");
    for (const Json& each : json.at("work"))
      found.work.push_back({each.at("job"), each.at("images_left")});
    found.slots = json.at("slots");
    found.ended = json.at("ended");
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return found;
}

fs::path heartbeat_file(const fs::path& search, const std::string& worker) {
  return search / "workers" / (worker + ".json");
}

LeaseWatch::LeaseWatch(FileLayer& files, fs::path search, Seconds lease)
    : files_(files), search_(std::move(search)), lease_(lease) {}

bool LeaseWatch::gone(const std::string& worker) {
  const auto [at, first_look] = seen_.try_emplace(worker);
  Seen& seen = at->second;
  const std::optional<std::string> text = files_.read(heartbeat_file(search_, worker));
  std::optional<Heartbeat> read = text ? Heartbeat::parse(*text) : std::nullopt;
  const Seconds now = files_.now();
  const bool same =
      read.has_value() == seen.last.has_value() && (!read || read->beat == seen.last->beat);
  if (!first_look && !same) seen.counted = true;
  if (first_look || !same)
    seen.unchanged = Seconds{0};
  else
    seen.unchanged += std::min(now - seen.looked, lease_ / 3);
  seen.looked = now;
  seen.last = std::move(read);
  return (seen.last && seen.last->ended) || seen.unchanged > lease_;
}

bool LeaseWatch::seen_alive(const std::string& worker) const {
  const auto at = seen_.find(worker);
  return at != seen_.end() && at->second.counted && at->second.last && !at->second.last->ended &&
         at->second.unchanged <= lease_;
}

const std::optional<Heartbeat>& LeaseWatch::heartbeat(const std::string& worker) const {
  static const std::optional<Heartbeat> none;
  const auto at = seen_.find(worker);
  return at == seen_.end() ? none : at->second.last;
}

}  // namespace regatta::tickets
