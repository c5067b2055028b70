#include "tickets/estimate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.h"

namespace regatta::tickets {
namespace {

// Larger numbers are typing errors, and an estimate for them takes minutes.
constexpr int most_workers_asked = 100000;

std::optional<double> positive(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end || !(value > 0) || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace

std::vector<JobWork> jobs_of(const SearchSize& size) {
  const double work = size.epochs * size.epoch_time.count();
  std::vector<JobWork> jobs;
  for (int branch = 0; branch < size.resets * size.seeds; ++branch) {
    for (int mask = 0; mask < size.masks; ++mask) jobs.push_back({work, {}});
    for (int level = 0; level < size.levels; ++level) {
      jobs.push_back({work, {}});
      if (level > 0) jobs.back().after = {jobs.size() - 2};
    }
  }
  return jobs;
}

SearchEstimate estimate(const std::vector<JobWork>& jobs, const std::vector<WorkerSpeed>& workers) {
  SearchEstimate result;
  const std::vector<PlacedJob> placed = schedule(jobs, workers);
  result.jobs = jobs.size();
  for (const JobWork& job : jobs) result.alone += Seconds(job.work);
  result.together = end_of(placed);
  result.ideal = ideal_time(jobs, workers);
  const double fastest = std::ranges::max(workers, {}, &WorkerSpeed::speed).speed;
  for (const double chain : longest_chains(jobs))
    result.longest_chain = std::max(result.longest_chain, Seconds(chain / fastest));
  result.busy.resize(workers.size());
  result.done.resize(workers.size());
  for (const PlacedJob& each : placed) {
    result.busy[each.worker] += each.end - each.start;
    ++result.done[each.worker];
  }
  return result;
}

std::vector<WorkerSpeed> parse_speeds(const std::string& flag, const std::string& text) {
  const auto fail = [&]() -> std::vector<WorkerSpeed> {
    throw InputError(flag + " " + text +
                     ": use a number of workers, such as 20, or their speeds with counts, such as "
                     "19x1,1x0.5");
  };
  std::vector<WorkerSpeed> workers;
  const bool plain = text.find_first_not_of("0123456789") == std::string::npos;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string piece = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t cross = piece.find('x');
    const bool counted = plain || cross != std::string::npos;
    const auto count = counted ? positive(piece.substr(0, cross)) : std::optional<double>(1);
    const auto speed = plain     ? std::optional<double>(1)
                       : counted ? positive(piece.substr(cross + 1))
                                 : positive(piece);
    if (!count || !speed || *count != std::floor(*count) || *count > most_workers_asked)
      return fail();
    for (int i = 0; i < static_cast<int>(*count); ++i) workers.push_back({*speed, {}});
  }
  if (workers.size() > most_workers_asked) return fail();
  return workers;
}

Seconds parse_time(const std::string& flag, const std::string& text) {
  const char unit = text.empty() ? '\0' : text.back();
  const double factor = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;
  const auto value = factor > 0 ? positive(std::string_view(text).substr(0, text.size() - 1))
                                : std::optional<double>();
  if (!value)
    throw InputError(flag + " " + text + ": use a time with its unit, such as 90s, 4.5m or 2h");
  return Seconds(*value * factor);
}

std::string time_text(Seconds time) {
  char text[64];
  const double s = time.count();
  if (s >= 3600) {
    const auto minutes = static_cast<long long>(std::llround(s / 60));
    if (minutes % 60 == 0)
      std::snprintf(text, sizeof text, "%lld h", minutes / 60);
    else
      std::snprintf(text, sizeof text, "%lld h %lld min", minutes / 60, minutes % 60);
  } else if (s >= 60) {
    const auto whole = static_cast<long long>(std::llround(s));
    if (whole % 60 == 0)
      std::snprintf(text, sizeof text, "%lld min", whole / 60);
    else
      std::snprintf(text, sizeof text, "%lld min %lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, s < 10 ? "%.2f s" : "%.1f s", s);
  }
  return text;
}

}  // namespace regatta::tickets
