#include "report/arrivals.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <tuple>

#include "report/statistics.h"

namespace regatta {
namespace {

using trace::Time;

// An exchange in one step: when each node began it, and when the last node had all it needs.
struct OneMeeting {
  std::map<std::string, Time> arrivals;  // by node
  Time last_end = 0;

  Time last_arrival() const { return std::ranges::max(std::views::values(arrivals)); }
};

struct Seen {
  std::map<std::int64_t, Time> begins;                              // by step
  std::map<std::string, std::map<std::int64_t, OneMeeting>> kinds;  // by label, then step
  std::set<std::string> gradients;                                  // labels
  std::set<std::string> nodes;
  bool passes_running_sums = false;
};

Seen seen_in(const trace::Record& record, const trace::Window& window) {
  Seen seen;
  for (const trace::Task& task : record.tasks) {
    const trace::TaskKind& kind = record.kind_of(task);
    if (task.worker < 0 || task.step < window.first_step || task.step > window.last_step) continue;
    if (trace::main_phase(kind) == "forward") {
      Time& begin = seen.begins.try_emplace(task.step, task.start).first->second;
      begin = std::min(begin, task.start);
    }
    seen.passes_running_sums = seen.passes_running_sums || kind.phases == "running_sum";
    const bool gradients = kind.phases == "exchange";
    if (!gradients && kind.phases != "exchange_sums" && kind.phases != "exchange_gradient_sums")
      continue;
    const std::string label = trace::label(kind);
    if (gradients) seen.gradients.insert(label);
    const std::string& node = record.workers[static_cast<std::size_t>(task.worker)].node;
    seen.nodes.insert(node);
    OneMeeting& meeting = seen.kinds[label][task.step];
    meeting.arrivals[node] = task.start;
    meeting.last_end = std::max(meeting.last_end, task.end);
  }
  return seen;
}

// Time covered by at least one of these stretches.
Time covered(std::vector<std::pair<Time, Time>> stretches) {
  std::ranges::sort(stretches);
  Time sum = 0, until = 0;
  for (const auto& [begin, end] : stretches) {
    sum += std::max<Time>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

}  // namespace

double RankMeeting::last_arrival() const { return std::ranges::max(std::views::values(arrivals)); }

const RankMeeting* RankMeetings::find(const std::string& name) const {
  const auto found = std::ranges::find(all, name, &RankMeeting::name);
  return found == all.end() ? nullptr : &*found;
}

std::optional<RankMeetings> rank_meetings(const trace::Record& record,
                                          const trace::Window& window) {
  const Seen seen = seen_in(record, window);
  if (seen.nodes.size() < 2 || seen.passes_running_sums) return std::nullopt;
  RankMeetings made;
  std::map<std::int64_t, std::vector<std::pair<Time, Time>>> exchanged;  // by step
  for (const auto& [label, steps] : seen.kinds) {
    std::map<std::string, std::vector<double>> arrivals;
    std::vector<double> messages;
    for (const auto& [step, meeting] : steps) {
      const auto begin = seen.begins.find(step);
      // In a step at the begin or end of the record, tasks of some nodes may be missing.
      if (begin == seen.begins.end() || meeting.arrivals.size() < seen.nodes.size()) continue;
      for (const auto& [node, time] : meeting.arrivals)
        arrivals[node].push_back(trace::seconds(time - begin->second));
      const Time last = meeting.last_arrival();
      messages.push_back(trace::seconds(meeting.last_end - last));
      if (seen.gradients.contains(label)) exchanged[step].emplace_back(last, meeting.last_end);
    }
    if (messages.empty()) continue;
    RankMeeting& meeting = made.all.emplace_back();
    meeting.name = label;
    meeting.gradients = seen.gradients.contains(label);
    for (auto& [node, times] : arrivals) meeting.arrivals[node] = median_of(std::move(times));
    meeting.messages = median_of(std::move(messages));
  }
  std::ranges::stable_sort(made.all, {}, [](const RankMeeting& each) {
    return std::tuple(!each.gradients, each.last_arrival());
  });
  std::vector<double> times;
  for (const auto& [step, stretches] : exchanged)
    times.push_back(trace::seconds(covered(stretches)));
  made.exchange_s = median_of(std::move(times));
  return made;
}

}  // namespace regatta
