#include "exec/kernel_times.h"

#include <cxxabi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

namespace regatta {
namespace {

// How many of each are kept: more than can be under way at once.
constexpr std::size_t most_kept = 200'000;

template <class Map>
void keep_latest(Map& map) {
  while (map.size() > most_kept) map.erase(map.begin());
}

}  // namespace

trace::Time ClockMatch::to_record(std::uint64_t device) const {
  const auto since = [&](const Reading& reading) {
    return static_cast<double>(static_cast<std::int64_t>(device - reading.device));
  };
  const double ticks = static_cast<double>(static_cast<std::int64_t>(last.device - first.device));
  const auto passed = static_cast<double>(last.record - first.record);
  const double pace = ticks > 0 && passed > 0 ? passed / ticks : 1.0;
  return first.record + static_cast<trace::Time>(std::llround(since(first) * pace));
}

std::string kernel_label(const std::string& mangled) {
  constexpr std::size_t longest = 120;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 && plain ? plain.get() : mangled;
  for (std::size_t at = name.find("(anonymous namespace)::"); at != std::string::npos;
       at = name.find("(anonymous namespace)::"))
    name.erase(at, std::string("(anonymous namespace)::").size());
  // The arguments begin at the first parenthesis that is not inside template arguments.
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0) {
      name.resize(i);
      break;
    }
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  for (const char* room : {"regatta::cuda::", "regatta::"})
    for (std::size_t at = name.find(room); at != std::string::npos; at = name.find(room))
      name.erase(at, std::string(room).size());
  if (name.size() > longest) name = name.substr(0, longest - 3) + "...";
  return name;
}

void KernelTimes::add(const cuda::KernelNotes& notes) {
  names_.insert(names_.end(), notes.names.begin(), notes.names.end());
  kernels_.insert(kernels_.end(), notes.kernels.begin(), notes.kernels.end());
  for (const cuda::LaunchMark& each : notes.marks) marks_[each.correlation] = each.mark;
  keep_latest(marks_);
}

void KernelTimes::add(const DeviceTask& task) {
  marked_[task.mark] = task.id;
  tasks_[task.device][task.end] = task;
  keep_latest(marked_);
  keep_latest(tasks_[task.device]);
}

std::int64_t KernelTimes::by_time(std::int32_t device, trace::Time start, trace::Time end) const {
  const auto line = tasks_.find(device);
  if (line == tasks_.end()) return -1;
  std::int64_t best = -1;
  trace::Time most = 0;
  for (auto each = line->second.upper_bound(start);
       each != line->second.end() && each->second.start < end; ++each) {
    const trace::Time shared =
        std::min(end, each->second.end) - std::max(start, each->second.start);
    if (shared <= most) continue;
    most = shared;
    best = each->second.id;
  }
  return best;
}

bool KernelTimes::passed(std::int32_t device, trace::Time end) const {
  const auto line = tasks_.find(device);
  return line != tasks_.end() && line->second.rbegin()->second.start > end;
}

std::vector<KernelTimes::Found> KernelTimes::match(const ClockMatch& clock, bool all) {
  std::vector<Found> found;
  std::vector<cuda::KernelRun> waiting;
  for (const cuda::KernelRun& kernel : kernels_) {
    const trace::Time start = clock.to_record(kernel.start), end = clock.to_record(kernel.end);
    std::int64_t task = -1;
    const auto mark = marks_.find(kernel.correlation);
    if (mark != marks_.end()) {
      const auto marked = marked_.find(mark->second);
      if (marked != marked_.end()) task = marked->second;
    }
    // Only tasks of the record are marked, so a marked kernel's task will come.
    const bool waits = task < 0 && !all && (mark != marks_.end() || !passed(kernel.device, end));
    if (waits) {
      waiting.push_back(kernel);
      continue;
    }
    if (task < 0 && mark == marks_.end()) task = by_time(kernel.device, start, end);
    if (task >= 0) found.push_back({task, kernel.device, kernel.name, start, std::max(start, end)});
  }
  kernels_ = std::move(waiting);
  return found;
}

}  // namespace regatta
