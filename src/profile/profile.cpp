#include "profile/profile.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "profile/robust.h"
#include "profile/signature.h"

namespace regatta {

void Profile::learn(std::span<const Observation> session) {
  std::map<std::tuple<std::string_view, double, int>, std::vector<double>> timings;
  for (const Observation& each : session)
    if (each.seconds > 0 && each.size > 0 && each.busy > 0)
      timings[{each.signature, each.size, each.busy}].push_back(each.seconds);
  std::set<Entry*> touched;
  for (auto& timing : timings) {
    std::vector<double>& seconds = timing.second;
    // The first run makes kernels and meets cold caches.
    if (seconds.size() > 3) seconds.erase(seconds.begin());
    const Typical found = typical(seconds);
    const double size = std::get<double>(timing.first);
    const int busy = std::get<int>(timing.first);
    Entry& entry = entries_[std::string(std::get<std::string_view>(timing.first))];
    auto point = std::ranges::find_if(entry.points, [size, busy](const Point& each) {
      return each.size == size && each.busy == busy;
    });
    if (point == entry.points.end()) {
      entry.points.push_back({size, busy, {}});
      point = entry.points.end() - 1;
    }
    point->sessions.push_back({found.value, found.error(), found.split});
    if (point->sessions.size() > sessions_kept) point->sessions.erase(point->sessions.begin());
    touched.insert(&entry);
  }
  for (Entry* entry : touched) entry->fit = Fit(entry->points);
}

void Profile::restore(const std::string& signature, std::vector<Point> points) {
  Entry& entry = entries_[signature];
  entry.points = std::move(points);
  entry.fit = Fit(entry.points);
}

const Fit* Profile::find(std::string_view signature) const {
  const auto found = entries_.find(signature);
  return found == entries_.end() || found->second.fit.empty() ? nullptr : &found->second.fit;
}

RuntimeCosts Profile::runtime() const {
  // Between threads a crowded machine may take any time; what no runtime takes is not believed.
  constexpr double believable = 10;
  RuntimeCosts costs;
  for (const RuntimeCost& each : runtime_costs()) {
    double& cost = costs.*each.value;
    if (const Fit* fit = find(each.signature))
      cost = std::clamp(fit->at(1, 1).seconds, cost / believable, cost * believable);
  }
  return costs;
}

}  // namespace regatta
