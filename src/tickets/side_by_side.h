// How many jobs side by side make a machine fastest: found by trial, from the speeds of whole jobs.
#pragma once

#include <vector>

namespace regatta::tickets {

class SideBySide {
 public:
  // `fixed` jobs, without trial.
  explicit SideBySide(int fixed) : slots_(fixed), most_(fixed), settled_(true) {}
  // Tries 1, 2, 4, ... up to `most`, and stops at the first number that brings no gain.
  static SideBySide by_trial(int most);

  int slots() const { return slots_; }  // at the moment
  bool settled() const { return settled_; }

  // A job ended that was one of `slots` from its beginning to its end, at so many images a second.
  // A number of slots is judged by as many jobs.
  void measured(int slots, double images_per_s);

 private:
  int slots_ = 1, most_ = 1;
  bool settled_ = false;
  int best_slots_ = 1;
  double best_rate_ = 0;            // images a second of all jobs together
  std::vector<double> rates_ = {};  // of jobs with the number of slots on trial
};

}  // namespace regatta::tickets
