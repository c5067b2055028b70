#include "profile/store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "platform/machine.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr int format_version = 1;

// The driver tells without any library.
std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& gpu : fs::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream file(gpu.path() / "information");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("Model:"))
        names.push_back(line.substr(line.find_first_not_of(" \t", std::strlen("Model:"))));
  }
  std::ranges::sort(names);
  return names;
}

// "intel-r-xeon-r-2cpus-1a2b3c4d": to be recognised by people, and different where hardware is.
std::string file_name(const MachineMark& mark) {
  std::string name;
  for (const char c : mark.cpu) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  std::string hardware = mark.cpu + "\n" + std::to_string(mark.cores);
  for (const std::string& gpu : mark.gpus) hardware += "\n" + gpu;
  return name.substr(0, 40) + "-" + std::to_string(mark.cores) + "cpus-" +
         sha256_hex(hardware).substr(0, 8) + ".json";
}

Json json_of(const MachineMark& mark) {
  return {{"cpu", mark.cpu},
          {"cores", mark.cores},
          {"gpus", mark.gpus},
          {"libraries", mark.libraries},
          {"kernels", mark.kernels}};
}

// Four digits are more than any timing deserves, and keep the file small.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

double positive(const Json& json) {
  const double value = json.get<double>();
  if (!(value > 0) || !std::isfinite(value)) throw InputError("a size or time is not above 0");
  return value;
}

std::vector<Point> points_from(const Json& json) {
  std::vector<Point> points;
  for (const Json& row : json) {
    Point point{
        .size = positive(row.at("size")), .busy = row.at("busy").get<int>(), .sessions = {}};
    if (point.busy < 1) throw InputError("'busy' is below 1");
    for (const Json& session : row.at("sessions"))
      point.sessions.push_back({.seconds = positive(session.at(0)),
                                .error = std::abs(session.at(1).get<double>()),
                                .held_out = std::abs(session.at(2).get<double>())});
    if (point.sessions.size() > Profile::sessions_kept) throw InputError("too many sessions");
    points.push_back(std::move(point));
  }
  return points;
}

// Why one does not hold on a machine of the other; empty if it does.
std::string difference(const MachineMark& stored, const MachineMark& here) {
  if (stored.cpu != here.cpu || stored.cores != here.cores || stored.gpus != here.gpus)
    return "other hardware";
  if (stored.kernels != here.kernels) return "older kernels";
  for (const auto& [name, version] : here.libraries) {
    const auto found = stored.libraries.find(name);
    if (found == stored.libraries.end()) return "no " + name;
    if (found->second != version) return name + " " + found->second + ", not " + version;
  }
  return stored.libraries.size() == here.libraries.size() ? "" : "other libraries";
}

}  // namespace

MachineMark machine_mark(std::map<std::string, std::string> libraries) {
  return {.cpu = cpu_name(),
          .cores = available_cpus(),
          .gpus = gpu_names(),
          .libraries = std::move(libraries)};
}

fs::path profile_folder() {
  if (const char* own = std::getenv("REGATTA_PROFILES"); own && *own) return own;
  return cache_folder() / "profiles";
}

Json to_json(const Profile& profile, const MachineMark& mark) {
  Json costs = Json::object();
  for (const auto& [signature, entry] : profile.entries()) {
    Json rows = Json::array();
    for (const Point& point : entry.points) {
      Json sessions = Json::array();
      for (const Session& each : point.sessions)
        sessions.push_back({rounded(each.seconds), rounded(each.error), rounded(each.held_out)});
      rows.push_back({{"size", point.size}, {"busy", point.busy}, {"sessions", sessions}});
    }
    costs[signature] = std::move(rows);
  }
  return {{"format", format_version}, {"machine", json_of(mark)}, {"costs", std::move(costs)}};
}

StoredProfile profile_from_json(const Json& json) try {
  if (const int format = json.at("format").get<int>(); format != format_version)
    throw InputError("format " + std::to_string(format) + " is not " +
                     std::to_string(format_version));
  StoredProfile stored;
  const Json& machine = json.at("machine");
  stored.mark.cpu = machine.at("cpu").get<std::string>();
  stored.mark.cores = machine.at("cores").get<int>();
  stored.mark.gpus = machine.at("gpus").get<std::vector<std::string>>();
  stored.mark.libraries = machine.at("libraries").get<std::map<std::string, std::string>>();
  stored.mark.kernels = machine.at("kernels").get<int>();
  for (const auto& [signature, rows] : json.at("costs").items())
    stored.profile.restore(signature, points_from(rows));
  return stored;
} catch (const Json::exception& error) {
  throw InputError(error.what());
}

ProfileStore::ProfileStore(MachineMark mark, fs::path folder)
    : mark_(std::move(mark)), file_(std::move(folder) / file_name(mark_)) {}

Profile ProfileStore::load(std::string* remark) const {
  const auto say = [&](const std::string& text) {
    if (remark) *remark = "profile '" + file_.string() + "' " + text;
    return Profile{};
  };
  std::error_code none;
  if (!fs::exists(file_, none)) return {};
  try {
    StoredProfile stored = profile_from_json(read_json(file_));
    const std::string why = difference(stored.mark, mark_);
    if (!why.empty()) return say("holds for " + why + ": it is measured anew");
    return std::move(stored.profile);
  } catch (const InputError& error) {
    return say(std::string("is ignored: ") + error.what());
  }
}

Profile ProfileStore::learn(std::span<const Observation> session) const {
  std::error_code failed;
  fs::create_directories(file_.parent_path(), failed);
  const fs::path lock_file = file_.string() + ".lock";
  const Descriptor lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
    throw InputError("cannot write '" + file_.string() + "': " + std::strerror(errno) +
                     "; REGATTA_PROFILES names another folder");
  Profile profile = load();
  profile.learn(session);
  write_file(file_, to_json(profile, mark_).dump() + "\n");
  return profile;
}

}  // namespace regatta
