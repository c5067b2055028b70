// How much CPU time others took from this process while it computed: its threads were ready to run,
// and something else ran in their place.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace regatta {

struct DisturbanceOptions {
  int threads = 1;  // that compute: what was taken is told as a share of their time
  int cpus = 1;     // that this process may use
  std::filesystem::path proc = "/proc";
  // The thread that only submits, by the system's number: its waiting slows nobody. 0: the caller.
  int submitter = 0;
};

// Reads Linux' count of how long each thread waited for a CPU, and how much time the host took from
// this machine if it is a virtual one. It costs no task anything: the system counts anyway.
class DisturbanceMeter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DisturbanceMeter(DisturbanceOptions options, Clock::time_point now = Clock::now());

  // Since the last call, or the beginning: of the computing threads' CPU time, what others took,
  // from 0 to 1. Nothing where the system does not tell.
  std::optional<double> read(Clock::time_point now = Clock::now());

 private:
  struct Thread {
    double ran = 0, waited = 0;  // seconds
  };
  struct Reading {
    Clock::time_point when;
    std::map<int, Thread> threads;  // by the system's number
    double stolen = 0;              // by the host, seconds of one CPU on average
  };
  Reading now_is(Clock::time_point now) const;

  DisturbanceOptions options_;
  Reading last_;
};

// "disturbed: others took 12% of the workers' CPU time", or nothing where that is too little to
// matter or unknown.
std::string disturbed_text(std::optional<double> taken_by_others);

}  // namespace regatta
