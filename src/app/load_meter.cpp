#include "app/load_meter.h"

#include <algorithm>

namespace regatta::app {

void LoadMeter::on_step() {
  const WorkerLoad now = executor_.load();
  if (running_ && ++steps_ > warm_up && now.workers > 0) {
    kernels_ += Seconds(now.kernels - last_.kernels).count();
    runtime_ += Seconds(now.runtime - last_.runtime).count();
    all_ += Seconds(now.when - last_.when).count() * now.workers;
  }
  last_ = now;
  running_ = true;
}

std::optional<double> LoadMeter::idle_share() const {
  if (all_ <= 0) return std::nullopt;
  return std::max(0.0, 1 - (kernels_ + runtime_) / all_);
}

std::optional<double> LoadMeter::overhead_share() const {
  if (all_ <= 0) return std::nullopt;
  return runtime_ / all_;
}

Json granularity_fields(const TrainJob& job, const LoadMeter& meter) {
  std::size_t chunks = 0;
  int team = 1, workers = 0;
  for (const DeviceGroup* group : groups_of(job.plan)) {
    chunks += group->chunks.size();
    if (group->kind == DeviceKind::cpu) team = group->team;
    workers += group->workers;
  }
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  return {{"granularity",
           {{"segments", job.plan.segments.size()},
            {"chunks", chunks},
            {"team", team},
            {"workers", workers}}},
          {"predicted_step_s", job.predicted_step ? Json(job.predicted_step->count()) : Json()},
          {"idle_share", or_null(meter.idle_share())},
          {"overhead_share", or_null(meter.overhead_share())}};
}

}  // namespace regatta::app
