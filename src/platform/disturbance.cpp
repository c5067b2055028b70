#include "platform/disturbance.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace regatta {
namespace {

namespace fs = std::filesystem;

// Step times of one plan vary by this share on a quiet machine; less is not reported.
constexpr double worth_telling = 0.05;

}  // namespace

DisturbanceMeter::DisturbanceMeter(DisturbanceOptions options, Clock::time_point now)
    : options_(std::move(options)) {
  if (options_.submitter == 0) options_.submitter = ::gettid();
  last_ = now_is(now);
}

DisturbanceMeter::Reading DisturbanceMeter::now_is(Clock::time_point now) const {
  Reading reading{now, {}, 0};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(options_.proc / "self" / "task", ignored)) {
    double ran = 0, waited = 0;  // nanoseconds
    if (std::ifstream(entry.path() / "schedstat") >> ran >> waited)
      reading.threads[std::atoi(entry.path().filename().c_str())] = {1e-9 * ran, 1e-9 * waited};
  }
  std::ifstream stat(options_.proc / "stat");
  double ticks = 0;
  int cpus = -1;  // the first line is the sum of all
  for (std::string line; std::getline(stat, line) && line.starts_with("cpu"); ++cpus) {
    std::istringstream words(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, hard = 0, soft = 0, stolen = 0;
    words >> name >> user >> nice >> system >> idle >> waiting >> hard >> soft >> stolen;
    if (cpus < 0) ticks = stolen;
  }
  if (cpus > 0) reading.stolen = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)) / cpus;
  return reading;
}

std::optional<double> DisturbanceMeter::read(Clock::time_point now) {
  const Reading reading = now_is(now), before = std::exchange(last_, reading);
  const double wall = std::chrono::duration<double>(reading.when - before.when).count();
  double ran = 0, waited = 0;
  for (const auto& [number, thread] : reading.threads) {
    const auto found = before.threads.find(number);
    const Thread old = found == before.threads.end() ? Thread{} : found->second;
    ran += thread.ran - old.ran;
    if (number != options_.submitter) waited += thread.waited - old.waited;
  }
  if (reading.threads.empty() || wall <= 0) return std::nullopt;
  // Threads also wait for each other where they are more than the CPUs. Others can have had no more
  // than what this process left of its CPUs.
  const double taken = std::min(waited, std::max(0.0, options_.cpus * wall - ran));
  const double stolen = (reading.stolen - before.stolen) / wall;
  return std::clamp(taken / (options_.threads * wall) + stolen, 0.0, 1.0);
}

std::string disturbed_text(std::optional<double> taken_by_others) {
  if (!taken_by_others || *taken_by_others < worth_telling) return "";
  return "disturbed: others took " + std::to_string(std::lround(100 * *taken_by_others)) +
         "% of the workers' CPU time";
}

}  // namespace regatta
