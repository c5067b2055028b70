#include "plan/shares.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/error.h"

namespace regatta {

Participant linear(Seconds fixed, Seconds per_sample) {
  return {.finish = [=](std::int64_t samples) {
    return fixed + per_sample * static_cast<double>(samples);
  }};
}

Participant linear_through(const TimedShare& earlier, const TimedShare& latest) {
  const auto [fewer, more] = std::minmax(earlier.samples, latest.samples);
  const auto samples = static_cast<double>(latest.samples);
  if (2 * fewer <= more) {
    const Seconds per_sample =
        (latest.took - earlier.took) / (samples - static_cast<double>(earlier.samples));
    const Seconds fixed = latest.took - per_sample * samples;
    if (per_sample > Seconds(0) && fixed >= Seconds(0)) return linear(fixed, per_sample);
  }
  return linear(Seconds(0), latest.took / samples);
}

std::vector<std::int64_t> balanced_shares(std::span<const Participant> participants,
                                          std::int64_t batch, std::int64_t granule) {
  const std::string culprit = "a batch of " + std::to_string(batch) +
                              " samples cannot be shared out among " +
                              std::to_string(participants.size()) + ": ";
  // The last granule may be short: shares are found as if it were whole, and the last one is cut.
  const std::int64_t whole = (batch + granule - 1) / granule * granule;
  const auto most_of = [&](const Participant& each) {
    return each.most >= batch ? whole : each.most / granule * granule;
  };
  std::vector<std::int64_t> shares;
  std::int64_t needed = 0, room = 0;
  for (const Participant& each : participants) {
    shares.push_back((each.least + granule - 1) / granule * granule);
    const std::int64_t most = most_of(each);
    if (shares.back() > most)
      throw InputError(culprit + "one has room for " + std::to_string(most) + " and needs " +
                       std::to_string(shares.back()) + " or more; use a larger --batch, a device " +
                       "with more memory, or leave it out");
    needed += shares.back();
    room += most;
  }
  if (needed > whole)
    throw InputError(culprit + "they need " + std::to_string(needed) + " or more" +
                     (granule > 1 ? ", a group of " + std::to_string(granule) + " at least each"
                                  : std::string()) +
                     "; use a larger --batch or fewer devices");
  if (room < whole)
    throw InputError(culprit + "their memory holds " + std::to_string(room) +
                     "; use a smaller --batch or more devices");

  // Each next granule goes to the participant that would be the first to finish with it. So those
  // finish times are used that are the smallest of all, which makes the largest of them, the time
  // of the last to finish, as small as it can be.
  using Offer = std::pair<Seconds, std::size_t>;  // a finish time with one granule more, and whose
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  const auto offer = [&](std::size_t i) {
    const std::int64_t next = shares[i] + granule;
    if (next <= most_of(participants[i]))
      offers.emplace(participants[i].finish(std::min(next, batch)), i);
  };
  for (std::size_t i = 0; i < shares.size(); ++i) offer(i);
  for (std::int64_t left = whole - needed; left > 0; left -= granule) {
    const std::size_t first = offers.top().second;
    offers.pop();
    shares[first] += granule;
    offer(first);
  }
  const auto last = std::ranges::find_if(shares.rbegin(), shares.rend(),
                                         [](std::int64_t share) { return share > 0; });
  if (last != shares.rend()) *last -= whole - batch;
  return shares;
}

std::vector<std::int64_t> shares_by_speed(std::span<const double> speeds, std::int64_t batch,
                                          std::int64_t granule) {
  std::vector<Participant> participants;
  for (const double speed : speeds)
    participants.push_back({.finish = [speed](std::int64_t samples) {
      return Seconds(static_cast<double>(samples) / speed);
    }});
  return balanced_shares(participants, batch, granule);
}

}  // namespace regatta
