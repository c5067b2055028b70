#include "tune/contest.h"

#include <algorithm>
#include <numeric>

#include "profile/robust.h"

namespace regatta {
namespace {

constexpr int rounds = 8;
// Last turns of the best: as few if they agree, more if they do not and there is time; for so many
// time is kept, but not more than half of it.
constexpr std::size_t fewest_encores = 3, kept_encores = 5, most_encores = 9;
constexpr double agree = 0.05;
// By how much one may be behind the best and stay, after each round but the last. The best of many
// owes it to luck in part, and one turn may have been disturbed; the last rounds, which few live to
// see, tell how fast it really is.
constexpr double still_in[rounds - 1] = {1.5, 1.2, 1.1, 1.1, 1.05, 1.05, 1.02};

struct Actor {
  std::size_t index;
  std::vector<double> taken = {};
  double behind = 0;  // the best by this factor when it dropped out; 0: it did not

  // The mean of the fastest three quarters, of two the faster: what disturbs a turn makes it
  // longer, never shorter.
  double seconds() const {
    std::vector<double> sorted = taken;
    std::ranges::sort(sorted);
    const std::size_t some = std::max<std::size_t>(1, 3 * sorted.size() / 4);
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(some),
                           0.0) /
           static_cast<double>(some);
  }
};

// All of three, and all but a few of more: one that was disturbed does not count.
bool do_agree(std::vector<double> taken) {
  std::ranges::sort(taken);
  const std::size_t members = taken.size() - taken.size() / 4;
  for (std::size_t first = 0; first + members <= taken.size(); ++first)
    if (taken[first + members - 1] - taken[first] <= agree * taken[first]) return true;
  return false;
}

class Contest {
 public:
  Contest(std::size_t count, const ContestRules& rules)
      : rules_(rules), in_all_(rules.seconds_left()) {
    for (std::size_t i = 0; i < count; ++i) actors_.push_back({i});
  }

  std::vector<double> play() {
    first_round();
    for (int round = 1; round < rounds && others_fit(); ++round) {
      for (Actor* actor : in_) take_turn(*actor);
      drop_out(still_in[std::min(round, rounds - 2)], in_.size());
    }
    return told(encores());
  }

 private:
  // In their order, which is that of what they promise.
  void first_round() {
    for (Actor& actor : actors_) {
      if (in_.size() >= 2 && affordable() < 1) break;
      take_turn(actor);
      in_.push_back(&actor);
    }
    drop_out(still_in[0], in_.size());
  }

  // Whether there is time for a round; those who are behind drop out until there is.
  bool others_fit() {
    const double fit = affordable();
    if (in_.size() < 2 || fit < 2) return false;
    drop_out(still_in[0],
             fit < static_cast<double>(in_.size()) ? static_cast<std::size_t>(fit) : in_.size());
    return true;
  }

  // Turns, besides those kept for the best.
  double affordable() const {
    const double left = rules_.seconds_left();
    const double turn = std::max(1e-9, (in_all_ - left) / static_cast<double>(turns_));
    return left / turn - std::min(static_cast<double>(kept_encores), in_all_ / (2 * turn));
  }

  void take_turn(Actor& actor) {
    ++turns_;
    actor.taken.push_back(rules_.turn(actor.index));
  }

  // Those stay who are that near to the best, the best one first, and no more than so many.
  void drop_out(double near, std::size_t most) {
    std::ranges::stable_sort(in_, {}, [](const Actor* actor) { return actor->seconds(); });
    const double best = in_.front()->seconds();
    const auto stays = [&](const Actor* actor) { return actor->seconds() <= near * best; };
    auto out = std::ranges::find_if_not(in_, stays);
    if (most < in_.size()) out = std::min(out, in_.begin() + static_cast<std::ptrdiff_t>(most));
    for (auto each = out; each != in_.end(); ++each) (*each)->behind = (*each)->seconds() / best;
    in_.erase(out, in_.end());
  }

  // Who was fastest of many was lucky in part: turns that had no say in that tell how fast it is.
  std::vector<double> encores() {
    std::vector<double> taken;
    if (had_no_rival()) taken = in_.front()->taken;
    const auto enough = [&] {
      return taken.size() == most_encores || (taken.size() >= fewest_encores && do_agree(taken));
    };
    while (!enough() && rules_.seconds_left() > 0) taken.push_back(rules_.turn(in_.front()->index));
    return taken;
  }

  // Nobody was so near that luck could have decided.
  bool had_no_rival() const {
    constexpr double luck = 1.1;
    return std::ranges::all_of(actors_, [&](const Actor& actor) {
      return &actor == in_.front() || actor.taken.empty() || distance(actor) > luck;
    });
  }

  // From the best, as a factor; of who dropped out, as it was then.
  double distance(const Actor& actor) const {
    return actor.behind > 0 ? actor.behind : actor.seconds() / in_.front()->seconds();
  }

  // All are taken to have been as lucky.
  std::vector<double> told(const std::vector<double>& encores) const {
    const double best = encores.empty() ? in_.front()->seconds() : median(encores);
    std::vector<double> seconds;
    for (const Actor& actor : actors_)
      seconds.push_back(actor.taken.empty() ? 0 : best * distance(actor));
    return seconds;
  }

  const ContestRules& rules_;
  double in_all_;
  std::vector<Actor> actors_;
  std::vector<Actor*> in_;  // from the fastest on, after each round
  std::size_t turns_ = 0;
};

}  // namespace

std::vector<double> contest(std::size_t count, const ContestRules& rules) {
  if (count == 0) return {};
  return Contest(count, rules).play();
}

}  // namespace regatta
