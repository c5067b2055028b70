// profile/: what work costs on this machine: robust fits with intervals, stored on disk. It only
// fits and stores; rooms that can run tasks measure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/fit.h"

namespace regatta {

// What the runtime costs besides the work itself, in seconds.
struct RuntimeCosts {
  double task = 4e-6;        // on the worker, between one task and the next
  double access = 2e-7;      // between tasks, per buffer that the next one names
  double submission = 3e-6;  // on the submitting thread, per task
  double dependency = 2e-7;  // on the submitting thread, per buffer that a task names
  double step = 5e-6;        // on the submitting thread, per list: input, waiting, results
  double wake = 4e-6;        // more where the worker had to wait for it
  double release = 2e-7;     // per buffer of each further task that becomes ready by the end of one
  double byte = 1e-10;       // copied between memories
};

// One timing. Of what: see signature.h.
struct Observation {
  std::string signature;
  double size = 0;  // samples, or whatever the signature counts
  int busy = 1;     // workers that computed at that time, this one included
  double seconds = 0;
};

// Fits by signature.
class Profile {
 public:
  // Sessions that are remembered of each size. A session counts once, however long it was: one that
  // was disturbed from end to end is outvoted by the others.
  static constexpr std::size_t sessions_kept = 7;

  // The observations of one session, in the order they were made.
  void learn(std::span<const Observation> session);

  const Fit* find(std::string_view signature) const;  // null: never measured
  RuntimeCosts runtime() const;                       // defaults for whatever was never measured

  struct Entry {
    std::vector<Point> points;
    Fit fit;
  };
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  // As it was stored.
  void restore(const std::string& signature, std::vector<Point> points);

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace regatta
