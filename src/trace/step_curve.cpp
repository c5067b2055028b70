#include "trace/step_curve.h"

#include <algorithm>
#include <bit>

namespace regatta::trace {

void StepStretch::add(const StepStretch& next) {
  const auto many = static_cast<double>(steps), more = static_cast<double>(next.steps);
  const auto mean = [&](double mine, double theirs) {
    return (many * mine + more * theirs) / (many + more);
  };
  step = next.step;
  steps += next.steps;
  loss = mean(loss, next.loss);
  loss_min = std::min(loss_min, next.loss_min);
  loss_max = std::max(loss_max, next.loss_max);
  learning_rate = next.learning_rate;
  images_per_s = (many + more) / (many / images_per_s + more / next.images_per_s);
  loader_share = mean(loader_share, next.loader_share);
  data_wait = mean(data_wait, next.data_wait);
}

Json to_json(const StepStretch& stretch) {
  Json line{{"step", stretch.step},
            {"loss", stretch.loss},
            {"lr", stretch.learning_rate},
            {"images_per_s", stretch.images_per_s},
            {"loader_share", stretch.loader_share},
            {"data_wait", stretch.data_wait}};
  if (stretch.steps > 1)
    line.update(
        {{"steps", stretch.steps}, {"loss_min", stretch.loss_min}, {"loss_max", stretch.loss_max}});
  return line;
}

std::optional<StepStretch> stretch_of(const Json& line) {
  const auto number = [&](const char* key) { return line.contains(key) && line[key].is_number(); };
  if (!line.is_object() || line.contains("epoch")) return {};
  if (!number("step") || !number("loss") || !number("images_per_s")) return {};
  StepStretch stretch;
  stretch.step = line["step"];
  stretch.loss = line["loss"];
  stretch.images_per_s = line["images_per_s"];
  const auto or_else = [&](const char* key, auto otherwise) {
    return number(key) ? line[key].get<decltype(otherwise)>() : otherwise;
  };
  stretch.steps = std::max<std::int64_t>(1, or_else("steps", std::int64_t{1}));
  stretch.loss_min = or_else("loss_min", stretch.loss);
  stretch.loss_max = or_else("loss_max", stretch.loss);
  stretch.learning_rate = or_else("lr", 0.0);
  stretch.loader_share = or_else("loader_share", 0.0);
  stretch.data_wait = or_else("data_wait", 0.0);
  return stretch;
}

std::int64_t steps_a_line(std::int64_t step) {
  constexpr std::int64_t of_a_length = 10000;  // lines, between a length of run and its double
  const auto lengths = static_cast<std::uint64_t>((step - 1) / of_a_length);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::bit_floor(lengths)));
}

void StepCurve::add(const StepStretch& next) {
  if (!points_.empty() && points_.back().steps + next.steps <= longest_) {
    points_.back().add(next);
    return;
  }
  if (points_.size() == most_) {
    for (std::size_t i = 0; i < most_ / 2; ++i) {
      points_[i] = points_[2 * i];
      points_[i].add(points_[2 * i + 1]);
      longest_ = std::max(longest_, points_[i].steps);
    }
    points_.resize(most_ / 2);
  }
  points_.push_back(next);
}

}  // namespace regatta::trace
