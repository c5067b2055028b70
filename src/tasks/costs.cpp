#include "tasks/costs.h"

#include <algorithm>
#include <numeric>

namespace regatta {
namespace {

// FLOPs and bytes a second, and least seconds, where nothing was measured: orders of magnitude, for
// plans of which choose() knows too little to compare them.
struct Rates {
  double flops, bytes, least;
};
constexpr Rates core{.flops = 20e9, .bytes = 5e9, .least = 1e-6};
constexpr Rates gpu{.flops = 10e12, .bytes = 1e12, .least = 1e-5};
// How far off such a guess may be, each way. Assumed: it widens intervals alone.
constexpr double doubt = 4;

Estimate guess(const CostPiece& piece) {
  const Rates& rates = piece.name->signature.starts_with("cuda") ? gpu : core;
  const double seconds = rates.least + piece.size * (piece.name->flops / rates.flops +
                                                     piece.name->bytes / rates.bytes);
  return {seconds, seconds / doubt, seconds * doubt};
}

}  // namespace

ProfileCosts::ProfileCosts(const Blueprint& blueprint, std::shared_ptr<const Profile> profile,
                           const std::string& data, Pass pass)
    : names_(blueprint, data, pass), profile_(std::move(profile)) {
  if (profile_) runtime_ = profile_->runtime();
}

const ProfileCosts::Answer& ProfileCosts::answer(const Action& action, int busy) const {
  const Blueprint& blueprint = names_.blueprint();
  const Chunk& chunk = blueprint.chunks[action.chunk.value];
  const auto [found, fresh] = answers_.try_emplace(
      Question{action.phase, action.segment.value, action.part, chunk.capacity, chunk.group.value,
               action.bucket.value + (action.group.value << 24), busy});
  Answer& answer = found->second;
  if (!fresh) return answer;
  for (const CostPiece& piece : names_.pieces(action, chunk.capacity)) add(answer, piece, busy);
  return answer;
}

void ProfileCosts::add(Answer& answer, const CostPiece& piece, int busy) const {
  const auto [found, first] = fits_.try_emplace(piece.name);
  Fits& fits = found->second;
  if (first && profile_) {
    fits.own = profile_->find(piece.name->signature);
    if (!piece.name->in_one_segment.empty()) {
      // Plans by operators share what blocks keep inside.
      if (!fits.own)
        fits.own = profile_->find(segment_signature(piece.name->in_one_segment, false));
      fits.in_one_segment = profile_->find(piece.name->in_one_segment);
    }
  }
  if (!fits.own && !fits.in_one_segment) {
    if (piece.name->whole) {
      Answer whole;
      add(whole, {piece.name->whole, piece.size}, busy);
      answer.add(whole, piece.name->share);
    } else {
      answer.cost += guess(piece);
    }
    return;
  }
  const Estimate cost =
      measured(fits, piece, piece.name->sharing_workers > 0 ? piece.name->sharing_workers : busy);
  answer.cost += cost;
  answer.measured += cost.seconds;
  const auto reaches = [&](const Fit* fit) { return fit && fit->reaches(piece.size); };
  if (reaches(fits.own) || reaches(fits.in_one_segment)) answer.known += cost.seconds;
}

// Steps of several segments are measured at few sizes and with all workers busy: how much longer
// work takes there than in a step of one is taken from there.
Estimate ProfileCosts::measured(const Fits& fits, const CostPiece& piece, int busy) {
  if (fits.in_one_segment && !fits.own) return fits.in_one_segment->at(piece.size, busy);
  const int there = fits.own->busiest();
  const bool better_known = busy == there && fits.own->reaches(piece.size) && fits.in_one_segment &&
                            !fits.in_one_segment->reaches(piece.size);
  if (!fits.in_one_segment || !fits.in_one_segment->knows(there) || better_known)
    return fits.own->at(piece.size, busy);
  const double size = fits.own->nearest(piece.size);
  const Estimate apart = fits.own->at(size, there);
  constexpr double most = 3;  // a larger factor is a disturbed timing, not colder memory
  const double factor =
      std::min(most, apart.seconds / fits.in_one_segment->at(size, there).seconds);
  const Estimate whole = fits.in_one_segment->at(piece.size, busy);
  return {factor * whole.seconds, factor * whole.low * apart.low / apart.seconds,
          factor * whole.high * apart.high / apart.seconds};
}

ProfileCosts::Answer ProfileCosts::answer(const Task& task, int busy) const {
  Answer total;
  if (names_.one_piece(task)) {
    const ChunkId chunk = task.actions.front().chunk;
    add(total, names_.whole(task, names_.blueprint().chunks[chunk.value].capacity), busy);
    return total;
  }
  for (const Action& action : task.actions) total.add(answer(action, busy));
  return total;
}

Estimate ProfileCosts::of(const Task& task, int busy) const { return answer(task, busy).cost; }

std::vector<double> submitted_after(const TaskList& list, const RuntimeCosts& runtime) {
  std::vector<double> after;
  double seconds = 0;
  for (const Task& task : list.tasks) {
    seconds += runtime.submission + runtime.dependency * static_cast<double>(task.accesses.size());
    after.push_back(seconds);
  }
  return after;
}

double release_seconds(const Task& next, const RuntimeCosts& runtime) {
  return runtime.release * static_cast<double>(next.accesses.size());
}

std::vector<double> ProfileCosts::spread(GroupId group) const {
  const Fit* fit = profile_ ? profile_->find(spread_signature(names_.setting(group))) : nullptr;
  const int workers = names_.blueprint().group(group).workers;
  std::vector<double> levels;
  for (int level = 1; fit && level <= spread_levels; ++level)
    levels.push_back(fit->at(level, workers).seconds);
  // Costs are means of steps, so the tasks of a lone worker take on average what costs say.
  if (workers == 1 && !levels.empty()) {
    const double mean = std::accumulate(levels.begin(), levels.end(), 0.0) / spread_levels;
    for (double& each : levels) each /= mean;
  }
  return levels;
}

MeasuredShares ProfileCosts::measured_shares(const TaskList& list, int busy) const {
  Answer all;
  for (const Task& task : list.tasks) all.add(answer(task, busy));
  const double seconds = all.cost.seconds;
  return seconds > 0 ? MeasuredShares{all.measured / seconds, all.known / seconds}
                     : MeasuredShares{0, 0};
}

}  // namespace regatta
