#include "tune/tried_shares.h"

#include <algorithm>

#include "plan/shares.h"

namespace regatta {
namespace {

constexpr double shortest = 1e-9;  // a profile keeps no zeros

// Signatures under which the profile keeps a step with shares: its way, its wait, then each chunk.
std::vector<std::string> signatures_of(const std::string& step, std::size_t chunks) {
  std::vector<std::string> all{step + " way", step + " wait"};
  for (std::size_t i = 0; i < chunks; ++i) all.push_back(step + " chunk " + std::to_string(i));
  return all;
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

void TriedShares::add(const std::vector<Meeting>& meetings) {
  for (const Meeting& meeting : meetings) {
    way += meeting.last;
    waited += meeting.last - meeting.first;
  }
}

TriedShares tried_shares(const Blueprint& blueprint, const TaskList& list,
                         std::span<const double> seconds) {
  TriedShares tried;
  for (const Chunk& chunk : blueprint.chunks) tried.chunks.push_back(chunk.capacity);
  tried.seconds = chunk_seconds(blueprint, list, seconds);
  tried.add(meetings(blueprint, list, seconds));
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

std::vector<TriedShares> search_shares(
    const std::vector<std::int64_t>& chunks, std::int64_t granule,
    const std::function<std::optional<TriedShares>(const std::vector<std::int64_t>&)>& look) {
  std::vector<TriedShares> tried;
  for (std::optional next = chunks; next; next = next_shares(tried, granule)) {
    std::optional<TriedShares> seen = look(*next);
    if (!seen) break;
    tried.push_back(std::move(*seen));
  }
  return tried;
}

std::vector<Observation> observations_of(const std::string& step, const TriedShares& tried) {
  std::vector<double> seconds{tried.way, tried.waited};
  seconds.insert(seconds.end(), tried.seconds.begin(), tried.seconds.end());
  const std::vector<std::string> signatures = signatures_of(step, tried.seconds.size());
  std::vector<Observation> seen;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    seen.push_back({signatures[i], 1, 1, std::max(seconds[i], shortest)});
  return seen;
}

std::optional<TriedShares> stored_shares(const std::string& step,
                                         const std::vector<std::int64_t>& chunks,
                                         const Profile& profile) {
  std::vector<double> seconds;
  for (const std::string& signature : signatures_of(step, chunks.size())) {
    const Fit* fit = profile.find(signature);
    if (!fit) return std::nullopt;
    seconds.push_back(fit->at(1, 1).seconds);
  }
  return TriedShares{.chunks = chunks,
                     .seconds = {seconds.begin() + 2, seconds.end()},
                     .way = seconds[0],
                     .waited = seconds[1]};
}

}  // namespace regatta
