// How many jobs side by side make a machine fastest: found by trial, from the speeds of whole jobs.
#pragma once

#include <vector>

namespace regatta::tickets {

class SideBySide {
 public:
  // `fixed` jobs, without trial.
  explicit SideBySide(int fixed) : slots_(fixed), most_(fixed), decided_(true) {}
  // Tries 1, 2, 4, ... up to `most`, and stops at the first number that brings no gain.
  static SideBySide by_trial(int most);

  int slots() const { return slots_; }  // how many jobs to run side by side now
  bool decided() const { return decided_; }

  // Tells that a job ended which ran beside `slots` - 1 others from its beginning to its end, and
  // trained `images_per_s`. N slots are judged when N such jobs have ended.
  void measured(int slots, double images_per_s);

 private:
  int slots_ = 1, most_ = 1;
  bool decided_ = false;
  int best_slots_ = 1;
  double best_rate_ = 0;            // images a second of all jobs together
  std::vector<double> rates_ = {};  // images a second of each job that ended with `slots_` slots
};

}  // namespace regatta::tickets
