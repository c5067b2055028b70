#include "profile/profile.h"

#include <algorithm>
#include <set>

#include "profile/robust.h"
#include "profile/signature.h"
#include "profile/timings.h"

namespace regatta {

void Profile::learn(std::span<const Observation> session) {
  Timings timings = timings_of(session);
  std::set<Entry*> touched;
  for (auto& [what, seconds] : timings) {
    const auto& [signature, size, busy] = what;
    std::erase_if(seconds, [](double each) { return !(each > 0); });
    if (!(size > 0) || busy < 1 || seconds.empty()) continue;
    // The first run makes kernels and meets cold caches.
    if (seconds.size() > 3) seconds.erase(seconds.begin());
    const Typical found = typical(seconds);
    Entry& entry = entries_[std::string(signature)];
    auto point = std::ranges::find_if(entry.points, [size = size, busy = busy](const Point& each) {
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
  // Costs `believable` times above or below the defaults were mismeasured, and are cut to that.
  RuntimeCosts costs;
  for (const RuntimeCost& each : runtime_costs()) {
    double& cost = costs.*each.value;
    if (const Fit* fit = find(each.signature))
      cost = std::clamp(fit->at(1, 1).seconds, cost / believable, cost * believable);
  }
  return costs;
}

}  // namespace regatta
