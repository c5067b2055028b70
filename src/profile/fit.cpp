#include "profile/fit.h"

#include <algorithm>
#include <cmath>

#include "profile/robust.h"

namespace regatta {
namespace {

// Relative error that is added for each factor of two between what was asked and what was measured,
// in size or in number of busy workers. Assumed, not measured: it widens intervals alone.
constexpr double error_per_doubling = 0.1;
// Two sizes tell what more of it costs if one is so many times the other: between sizes that are
// nearly alike there is noise alone.
constexpr double far_apart = 1.5;

// The median of several sessions, the faster of two: a busy machine only ever adds time.
Session middle_of(std::vector<Session> sessions) {
  std::ranges::sort(sessions, {}, &Session::seconds);
  Session middle = sessions[(sessions.size() - 1) / 2];
  std::vector<double> apart;
  for (const Session& each : sessions)
    apart.push_back(std::abs(each.seconds - middle.seconds) / middle.seconds);
  if (sessions.size() > 1) middle.error = std::max(middle.error, median(apart));
  return middle;
}

bool rests_on_one_timing(const Point& point) {
  return point.sessions.size() == 1 && point.sessions.front().error >= error_of_one_timing;
}

}  // namespace

Fit::Fit(std::span<const Point> points) {
  std::vector<Point> believed;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (rests_on_one_timing(points[i])) {
      std::vector<Point> others(points.begin(), points.end());
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      Fit without;
      without.draw(others);
      const double most = believable * without.at_most(points[i].size, points[i].busy);
      if (!without.empty() && points[i].sessions.front().seconds > most) continue;
    }
    believed.push_back(points[i]);
  }
  draw(believed);
}

double Fit::at_most(double size, int busy) const {
  if (curves_.empty()) return 0;
  return at(std::max(size, curves_[widest_].knots.front().size), busy).seconds;
}

void Fit::draw(std::span<const Point> points) {
  std::vector<double> halves;
  for (const Point& point : points) {
    if (point.sessions.empty()) continue;
    const Session session = middle_of(point.sessions);
    if (!(session.seconds > 0) || !(point.size > 0)) continue;
    halves.push_back(session.held_out);
    auto curve = std::ranges::find(curves_, point.busy, &Curve::busy);
    if (curve == curves_.end()) {
      curves_.push_back({.busy = point.busy, .knots = {}});
      curve = curves_.end() - 1;
    }
    curve->knots.push_back({point.size, session.seconds, session.error});
  }
  std::ranges::sort(curves_, {}, &Curve::busy);
  for (Curve& curve : curves_) {
    std::ranges::sort(curve.knots, {}, &Knot::size);
    const auto same = std::ranges::unique(curve.knots, {}, &Knot::size);
    curve.knots.erase(same.begin(), same.end());
  }
  const double left_out = left_out_error();
  held_out_ = left_out >= 0 ? left_out : median(halves);

  for (std::size_t c = 0; c < curves_.size(); ++c) {
    std::vector<Knot>& knots = curves_[c].knots;
    // More work never takes less time: neighbours that say so share their mean.
    for (std::size_t i = 1; i < knots.size(); ++i) {
      std::size_t first = i;
      double sum = knots[i].seconds, count = 1;
      while (first > 0 && knots[first - 1].seconds > sum / count) {
        sum += knots[--first].seconds;
        ++count;
      }
      for (std::size_t k = first; k <= i; ++k) knots[k].seconds = sum / count;
    }
    curves_[c].held_out = held_out_;
    if (curves_[c].reach() > curves_[widest_].reach()) widest_ = c;
  }
}

// Each inner point from its neighbours; negative if there is none.
double Fit::left_out_error() const {
  std::vector<double> errors;
  for (const Curve& curve : curves_) {
    for (std::size_t i = 1; i + 1 < curve.knots.size(); ++i) {
      Curve others = curve;
      others.knots.erase(others.knots.begin() + static_cast<std::ptrdiff_t>(i));
      const Knot& truth = curve.knots[i];
      errors.push_back(std::abs(others.at(truth.size).seconds - truth.seconds) / truth.seconds);
    }
  }
  return errors.empty() ? -1 : median(errors);
}

Fit::Knot Fit::Curve::at(double size) const {
  const auto after = std::ranges::lower_bound(knots, size, {}, &Knot::size);
  if (after != knots.end() && after->size == size) return *after;
  const bool below = after == knots.begin(), above = after == knots.end();
  const Knot& near = below ? knots.front() : above ? knots.back() : *after;
  if (!below && !above) {
    const Knot& before = *(after - 1);
    const double share = (size - before.size) / (near.size - before.size);
    // Between its points the curve errs as much as it does at points left out of the fit.
    return {size, before.seconds + share * (near.seconds - before.seconds),
            std::hypot(std::max(before.error, near.error), held_out)};
  }
  // The line through the last one and the next goes on, within reason: the cost of a sample may
  // change, but neither vanish nor explode, and less work takes no longer.
  const double each = near.seconds / near.size;
  double slope = each;
  const Knot* next = nullptr;
  for (const Knot& other : knots) {
    if (below ? !next && other.size >= far_apart * near.size : far_apart * other.size <= near.size)
      next = &other;
  }
  if (next) slope = (next->seconds - near.seconds) / (next->size - near.size);
  slope = std::clamp(slope, below ? 0.0 : each / 2, below ? each : 2 * each);
  const double seconds = near.seconds + slope * (size - near.size);
  const double doublings = std::abs(std::log2(std::max(size, 0.25) / near.size));
  return {size, seconds, near.error + error_per_doubling * doublings};
}

Fit::Knot Fit::on(const Curve& curve, double size) const {
  const double inside = std::clamp(size, curve.knots.front().size, curve.knots.back().size);
  const Curve& widest = curves_[widest_];
  if (inside == size || &curve == &widest) return curve.at(size);
  const Knot far = widest.at(size), end = curve.at(inside);
  return {size, end.seconds * far.seconds / widest.at(inside).seconds, end.error + far.error};
}

bool Fit::knows(int busy) const {
  return std::ranges::find(curves_, busy, &Curve::busy) != curves_.end();
}

double Fit::nearest(double size) const {
  const std::vector<Knot>& knots = curves_.back().knots;
  return std::clamp(size, knots.front().size, knots.back().size);
}

bool Fit::reaches(double size) const {
  if (curves_.empty()) return false;
  const Curve& widest = curves_[widest_];
  return size >= widest.knots.front().size / 2 && size <= 2 * widest.knots.back().size;
}

Estimate Fit::at(double size, double busy) const {
  if (curves_.empty() || size <= 0) return {};
  const auto more = std::ranges::lower_bound(curves_, busy, {}, &Curve::busy);
  Knot found{};
  if (more == curves_.begin() || more == curves_.end()) {
    const Curve& nearest = more == curves_.end() ? curves_.back() : *more;
    found = on(nearest, size);
    found.error += error_per_doubling * std::abs(std::log2(busy / nearest.busy));
  } else {
    const Curve& less = *(more - 1);
    const Knot slow = on(*more, size), fast = on(less, size);
    const double share = (busy - less.busy) / (more->busy - less.busy);
    found = {size, fast.seconds + share * (slow.seconds - fast.seconds),
             std::max(fast.error, slow.error)};
  }
  return {found.seconds, found.seconds / (1 + found.error), found.seconds * (1 + found.error)};
}

}  // namespace regatta
