#include "train/contest.h"

#include <algorithm>
#include <utility>

#include "profile/robust.h"

namespace regatta {
namespace {

constexpr int rounds = 8;
// Last turns of the best: three if they agree, more if they do not and there is time.
constexpr std::size_t encores = 3, most_encores = 9;
constexpr double agree = 0.05;
// By how much one may be behind the best and stay, after each round but the last. The best of many
// owes it to luck in part; the last rounds, which few live to see, tell how fast it really is.
constexpr double still_in[rounds - 1] = {1.2, 1.1, 1.1, 1.05, 1.05, 1.02, 1.02};

struct Actor {
  std::size_t index;
  std::vector<double> taken = {};
  bool behind = false;

  // The middle one, of two the faster: what disturbs a turn makes it longer, never shorter.
  double seconds() const {
    std::vector<double> sorted = taken;
    std::ranges::sort(sorted);
    return sorted[(sorted.size() - 1) / 2];
  }
};

// To go on with another round: any time for the second; later ones leave some for the last turns of
// the best.
double needed(const std::vector<Actor>& actors, int round, const ContestRules& rules) {
  if (round < 2) return 0;
  const auto still = std::ranges::count(actors, false, &Actor::behind);
  return (static_cast<double>(still) + encores) * rules.turn_seconds;
}

// All of three, and all but a few of more: one that was disturbed does not count.
bool do_agree(std::vector<double> taken) {
  std::ranges::sort(taken);
  const std::size_t members = taken.size() - taken.size() / 4;
  for (std::size_t first = 0; first + members <= taken.size(); ++first)
    if (taken[first + members - 1] - taken[first] <= agree * taken[first]) return true;
  return false;
}

// Who was fastest of many was lucky in part: turns that had no say in that tell by how much its
// time is to be corrected.
double correction(const std::vector<Actor>& actors, const ContestRules& rules) {
  if (actors.size() < 2) return 1;
  const Actor& best = *std::ranges::min_element(
      actors, {}, [](const Actor& actor) { return std::pair(actor.behind, actor.seconds()); });
  std::vector<double> taken;
  const auto enough = [&] {
    return taken.size() == most_encores || (taken.size() >= encores && do_agree(taken));
  };
  while (!enough() && rules.seconds_left() > 0) taken.push_back(rules.turn(best.index));
  return taken.empty() ? 1 : median(taken) / best.seconds();
}

}  // namespace

std::vector<double> contest(std::size_t count, const ContestRules& rules) {
  std::vector<Actor> actors;
  for (std::size_t i = 0; i < count; ++i) actors.push_back({i});
  for (int round = 0; round < rounds; ++round) {
    if (round > 0 && rules.seconds_left() < needed(actors, round, rules)) break;
    double best = 1e30;
    for (Actor& actor : actors) {
      if (actor.behind) continue;
      actor.taken.push_back(rules.turn(actor.index));
      best = std::min(best, actor.seconds());
    }
    if (round + 1 < rounds)
      for (Actor& actor : actors) actor.behind |= actor.seconds() > still_in[round] * best;
  }
  // All are taken to have been as lucky, so that they stay in order.
  const double factor = correction(actors, rules);
  std::vector<double> seconds;
  for (const Actor& actor : actors) seconds.push_back(factor * actor.seconds());
  return seconds;
}

}  // namespace regatta
