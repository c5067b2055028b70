#include "app/least_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace regatta::app {
namespace {

using optimize::CostLine;

// Batches of more samples are bounded without the costs of every size of chunk.
constexpr std::int64_t most_chunk_sizes = 1024;

// Sizes of chunks whose costs are looked up. What was measured may be cheaper at one size than the
// sizes around it suggest: all up to 32, then in steps of a sixteenth. An estimate hardly depends
// on the size: powers of 4.
std::vector<std::int64_t> sizes_up_to(std::int64_t batch, bool measured) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < batch;
       size = measured ? size + std::max<std::int64_t>(1, size / 16) : 4 * size)
    sizes.push_back(size);
  sizes.push_back(batch);
  return sizes;
}

void lower_to(std::vector<CostLine>& least, double per_sample) {
  const double before = optimize::total(least).per_sample;
  for (CostLine& each : least)
    if (per_sample < before) each.per_sample *= per_sample / before;
}
void lower_to(std::vector<double>& least, double all) {
  const double before = sum(least);
  for (double& each : least)
    if (all < before) each *= all / before;
}

}  // namespace

LeastWork::LeastWork(const DeviceMeasure& measure, const PlatformGroup& group, std::int64_t batch)
    : batch_(batch), known_by_task_(group.kind == DeviceKind::cpu && !group.costs.estimate()) {
  const bool cpu = group.kind == DeviceKind::cpu, several = cpu && group.count > 1;
  const auto consider = [&](std::int64_t size, std::int64_t chunks, int team, int workers) {
    const Cut by_blocks{.groups = cpu ? chunks * size : size,
                        .team = team,
                        .chunks = cpu ? chunks : 0,
                        .workers = workers};
    Cut in_one = by_blocks;
    in_one.segments = "step";
    ways_.push_back({size, measure.of(by_blocks), measure.of(in_one)});
  };
  // Chunks of a batch that is cut meet at batch norms; the whole batch does not.
  const auto consider_both = [&](std::int64_t size, int team, int workers) {
    if (cpu) consider(size, 2, team, workers);
    if (!cpu || size == batch) consider(size, 1, team, workers);
  };
  for (const std::int64_t size : sizes_up_to(batch, known_by_task_)) {
    consider_both(size, several ? 1 : 0, 0);
    if (several) consider_both(size, group.count, 0);
  }
  if (several) consider(batch, 1, 1, 1);
}

template <class Amount>
double LeastWork::least_of(ShareCost Way::*cost, const Work ShareCost::*end,
                           const Amount& amount) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Way& way : ways_) least = std::min(least, amount(way.*cost.*end, (way.*cost).samples));
  return least;
}

optimize::LeastCosts LeastWork::costs(const Work ShareCost::*end,
                                      const std::vector<CostLine>& shares, double speed,
                                      double watts, double accumulate) const {
  optimize::LeastCosts least;
  const auto all = static_cast<double>(batch_);
  for (std::size_t g = 0; g < shares.size(); ++g) {
    const auto of = [&](auto amount) { return least_of(&Way::by_blocks, end, amount); };
    const double seconds = of([&](const Work& work, double n) { return work.seconds[g] / n; });
    const double core_s = of([&](const Work& work, double n) { return work.core_s[g] / n; });
    least.seconds.push_back({0, std::min(seconds, shares[g].at(all) / all)});
    least.joules.push_back({0, core_s});
    least.update_s.push_back(of([&](const Work& work, double) { return work.update_s[g]; }));
    least.update_j.push_back(of([&](const Work& work, double) { return work.update_core_s[g]; }));
  }
  // A step in one segment may need less than the sum of its blocks.
  const auto of = [&](auto amount) { return least_of(&Way::in_one, end, amount); };
  lower_to(least.seconds, of([](const Work& work, double n) { return sum(work.seconds) / n; }));
  lower_to(least.joules, of([](const Work& work, double n) { return sum(work.core_s) / n; }));
  lower_to(least.update_s, of([](const Work& work, double) { return sum(work.update_s); }));
  lower_to(least.update_j, of([](const Work& work, double) { return sum(work.update_core_s); }));
  for (std::size_t g = 0; g < shares.size(); ++g) {
    least.seconds[g].per_sample /= speed;
    least.joules[g].per_sample *= watts / speed;
    least.update_s[g] /= accumulate;  // memory keeps its speed
    least.update_j[g] *= watts / accumulate;
  }
  const auto load = [&](double Work::*amount) {
    return of([&](const Work& work, double n) { return work.*amount / n; });
  };
  if (!known_by_task_) {
    least.update_s.clear();
    least.update_j.clear();
    return least;
  }
  const double load_s = load(&Work::load_s), load_j = watts * load(&Work::load_core_s);
  least.seconds.front().per_sample += load_s;
  least.joules.front().per_sample += load_j;
  // Without a step of the parameters between them, chunks of two batches may be computed at a
  // time.
  if (accumulate == 1) add_chunks(least, end, speed, watts, load_s, load_j);
  return least;
}

void LeastWork::add_chunks(optimize::LeastCosts& least, const Work ShareCost::*end, double speed,
                           double watts, double load_s, double load_j) const {
  if (batch_ > most_chunk_sizes) return;
  std::map<int, std::map<std::int64_t, optimize::ChunkCost>> by_team;  // and size
  double meeting_s = std::numeric_limits<double>::infinity(), meeting_core_s = meeting_s;
  for (const Way& way : ways_)
    for (const ShareCost* cost : {&way.by_blocks, &way.in_one}) {
      const Work& work = cost->*end;
      const double chunks = cost->samples / static_cast<double>(way.size);
      const auto size = static_cast<double>(way.size);
      const optimize::ChunkCost chunk{work.chain_s / speed,
                                      sum(work.seconds) / chunks / speed + size * load_s,
                                      sum(work.core_s) / chunks / speed * watts + size * load_j};
      const auto [found, fresh] = by_team[cost->team].try_emplace(way.size, chunk);
      optimize::ChunkCost& known = found->second;
      known = {std::min(known.chain_s, chunk.chain_s), std::min(known.seconds, chunk.seconds),
               std::min(known.joules, chunk.joules)};
      if (cost->lanes < 2) continue;
      meeting_s = std::min(meeting_s, work.meeting_s);
      meeting_core_s = std::min(meeting_core_s, work.meeting_core_s);
    }
  if (std::isfinite(meeting_s)) {
    least.meeting_s = meeting_s;
    least.meeting_j = meeting_core_s * watts;
  }
  for (const auto& [team, sizes] : by_team) {
    // Costs between two sizes lie on a straight line, or above it.
    std::vector<optimize::ChunkCost>& chunks = least.chunks.emplace_back();
    for (auto next = sizes.begin(); next != sizes.end(); ++next) {
      const std::int64_t first = std::ssize(chunks) + 1;
      const auto before = next == sizes.begin() ? next : std::prev(next);
      for (std::int64_t size = first; size <= next->first; ++size) {
        const double part = next == before ? 1
                                           : static_cast<double>(size - before->first) /
                                                 static_cast<double>(next->first - before->first);
        const auto on_line = [&](double optimize::ChunkCost::*amount) {
          const double from = before->second.*amount;
          return from + part * (next->second.*amount - from);
        };
        chunks.push_back({on_line(&optimize::ChunkCost::chain_s),
                          on_line(&optimize::ChunkCost::seconds),
                          on_line(&optimize::ChunkCost::joules)});
      }
    }
  }
}

}  // namespace regatta::app
