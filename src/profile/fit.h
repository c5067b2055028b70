// Seconds as a function of size and of how many workers are busy, from what was measured.
#pragma once

#include <span>
#include <vector>

#include "profile/estimate.h"

namespace regatta {

// What one stretch of measuring says of a size.
struct Session {
  double seconds = 0;
  double error = 0;     // half the 95% interval, as a share
  double held_out = 0;  // how far two halves of the session differ, as a share
};

// Work of one size with so many workers busy, as it was measured in the latest sessions.
struct Point {
  double size = 0;
  int busy = 1;
  std::vector<Session> sessions;  // oldest first
};

// For each number of busy workers a curve through the points that never falls, straight between
// them. Where one of the curves ends, it goes on in proportion to the one that reaches furthest. A
// point that rests on a single timing is left out where the others make it unbelievably slow.
class Fit {
 public:
  Fit() = default;
  explicit Fit(std::span<const Point> points);

  bool empty() const { return curves_.empty(); }
  Estimate at(double size, double busy) const;
  // Where it was measured: with most workers busy, whether with so many, and the size next to one.
  int busiest() const { return curves_.back().busy; }
  bool knows(int busy) const;
  double nearest(double size) const;  // with most workers busy
  // Whether `size` lies so near to what was measured that at() is more than a guess.
  bool reaches(double size) const;
  // A typical point predicted from the others, as a share of what it is; where there are too few,
  // how far the halves of a session differ.
  double held_out() const { return held_out_; }

 private:
  struct Knot {
    double size, seconds, error;
  };
  struct Curve {
    int busy = 1;
    std::vector<Knot> knots;  // by size
    double held_out = 0;      // of the whole fit

    // Beyond its ends too, with an error that grows.
    Knot at(double size) const;
    double reach() const { return knots.back().size / knots.front().size; }
  };

  void draw(std::span<const Point> points);
  // Seconds of work of this size or, if that is larger, of the smallest size that was measured: no
  // work takes longer than more of it.
  double at_most(double size, int busy) const;
  Knot on(const Curve& curve, double size) const;
  double left_out_error() const;

  std::vector<Curve> curves_;  // by busy
  std::size_t widest_ = 0;
  double held_out_ = 0;
};

}  // namespace regatta
