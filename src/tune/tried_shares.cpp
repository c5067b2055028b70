#include "tune/tried_shares.h"

#include <algorithm>

#include "plan/shares.h"
#include "tasks/meetings.h"

namespace regatta {
namespace {

constexpr double shortest = 1e-9;  // a profile keeps no zeros

std::string way_of(const std::string& step) { return step + " way"; }
std::string wait_of(const std::string& step) { return step + " wait"; }
std::string chunk_of(const std::string& step, std::size_t chunk) {
  return step + " chunk " + std::to_string(chunk);
}

std::vector<std::int64_t> between(const std::vector<std::int64_t>& a,
                                  const std::vector<std::int64_t>& b, std::int64_t granule) {
  std::vector<double> middle;
  std::int64_t batch = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    middle.push_back(static_cast<double>(a[i] + b[i]) / 2);
    batch += a[i];
  }
  return shares_by_speed(middle, batch, granule);
}

}  // namespace

std::vector<std::int64_t> balanced_chunks(const std::vector<std::int64_t>& chunks,
                                          const std::vector<double>& seconds,
                                          std::int64_t granule) {
  std::vector<double> speeds;
  std::int64_t batch = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    speeds.push_back(static_cast<double>(chunks[i]) / std::max(seconds[i], shortest));
    batch += chunks[i];
  }
  return shares_by_speed(speeds, batch, granule);
}

double TriedShares::apart_in_all() const {
  if (seconds.empty()) return 0;
  const auto [least, most] = std::ranges::minmax(seconds);
  return most > 0 ? 1 - least / most : 0;
}

TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list,
                         std::span<const double> seconds) {
  TriedShares tried;
  for (const Chunk& chunk : blueprint.chunks) tried.chunks.push_back(chunk.capacity);
  tried.seconds = chunk_seconds(blueprint, list, seconds);
  for (const Meeting& meeting : meetings(blueprint, list, seconds)) {
    tried.way += meeting.last;
    tried.waited += meeting.last - meeting.first;
  }
  return tried;
}

const TriedShares& best_shares(std::span<const TriedShares> tried) {
  return *std::ranges::min_element(tried, {}, &TriedShares::apart);
}

std::optional<std::vector<std::int64_t>> next_shares(std::span<const TriedShares> tried,
                                                     std::int64_t granule) {
  const auto known = [&](const std::vector<std::int64_t>& chunks) {
    return std::ranges::find(tried, chunks, &TriedShares::chunks) != tried.end();
  };
  const TriedShares& best = best_shares(tried);
  std::vector<std::int64_t> next = balanced_chunks(best.chunks, best.seconds, granule);
  // Costs differ from layer to layer: what evens out a whole step may be too much at most meetings.
  while (known(next)) {
    std::vector<std::int64_t> nearer = between(best.chunks, next, granule);
    if (nearer == next || nearer == best.chunks) return std::nullopt;
    next = std::move(nearer);
  }
  return next;
}

std::vector<Observation> observations_of(const std::string& step, const TriedShares& tried) {
  std::vector<Observation> seen{{way_of(step), 1, 1, std::max(tried.way, shortest)},
                                {wait_of(step), 1, 1, std::max(tried.waited, shortest)}};
  for (std::size_t i = 0; i < tried.seconds.size(); ++i)
    seen.push_back({chunk_of(step, i), 1, 1, std::max(tried.seconds[i], shortest)});
  return seen;
}

std::optional<TriedShares> recalled_shares(const std::string& step,
                                           const std::vector<std::int64_t>& chunks,
                                           const Profile& profile) {
  const auto seconds = [&](const std::string& signature) {
    const Fit* fit = profile.find(signature);
    return fit ? fit->at(1, 1).seconds : 0;
  };
  TriedShares tried{.chunks = chunks,
                    .seconds = {},
                    .way = seconds(way_of(step)),
                    .waited = seconds(wait_of(step))};
  bool all = tried.way > 0 && tried.waited > 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    tried.seconds.push_back(seconds(chunk_of(step, i)));
    all = all && tried.seconds.back() > 0;
  }
  return all ? std::optional(std::move(tried)) : std::nullopt;
}

}  // namespace regatta
