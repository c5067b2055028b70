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
  for (auto& [what, seconds] : timings) {
    const auto& [signature, size, busy] = what;
    // The first run makes kernels and meets cold caches.
    if (seconds.size() > 3) seconds.erase(seconds.begin());
    const Typical found = typical(seconds);
    Entry& entry = entries_[std::string(signature)];
    auto point = std::ranges::find_if(entry.points, [&](const Point& each) {
      return each.size == std::get<1>(what) && each.busy == std::get<2>(what);
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
  RuntimeCosts costs;
  for (const RuntimeCost& each : runtime_costs())
    if (const Fit* fit = find(each.signature)) costs.*each.value = fit->at(1, 1).seconds;
  return costs;
}

}  // namespace regatta
