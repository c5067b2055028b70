#include "train/load_watch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/shell_word.h"

namespace regatta {

LoadWatch::LoadWatch(const Plan& plan) {
  int workers = plan.loaders;
  only_load_ = true;
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cpu) {
      workers += group->workers;
      only_load_ = false;
    }
  loading_workers_ = std::max(workers, 1);
}

std::shared_ptr<LoadWatch::Step> LoadWatch::watch(StepInput& input) const {
  auto step = std::make_shared<Step>();
  step->busy = busy_;
  step->loaded = only_load_ ? 0 : INT64_MAX;
  input.load = [step, all = only_load_, load = std::move(input.load)](auto... arguments) {
    const Clock::time_point begin = Clock::now();
    load(arguments...);
    const Clock::time_point end = Clock::now();
    *step->busy += std::chrono::nanoseconds(end - begin).count();
    Clock::rep known = step->loaded;
    const Clock::rep own = end.time_since_epoch().count();
    while ((all ? own > known : own < known) && !step->loaded.compare_exchange_weak(known, own)) {
    }
  };
  return step;
}

LoaderShare LoadWatch::of_step(const Step& step, Clock::time_point begin, Clock::time_point end) {
  const std::int64_t busy = *busy_;
  const double spent = 1e-9 * static_cast<double>(busy - std::exchange(counted_, busy));
  const double room = Seconds(end - begin).count() * loading_workers_;
  LoaderShare result;
  result.share = room > 0 ? std::min(1.0, spent / room) : 0;
  const Clock::time_point loaded{Clock::duration(step.loaded.load())};
  if (loaded > begin && loaded < end) result.waited = loaded - begin;
  epoch_busy_ += spent;
  epoch_room_ += room;
  epoch_waited_ += result.waited;
  return result;
}

LoaderShare LoadWatch::of_epoch() {
  const double busy = std::exchange(epoch_busy_, 0.0), room = std::exchange(epoch_room_, 0.0);
  return {room > 0 ? std::min(1.0, busy / room) : 0, std::exchange(epoch_waited_, Seconds{})};
}

std::string LoadWatch::verdict(const LoaderShare& epoch, const std::string& data) const {
  // Workers that only load are the limit when they are never idle; those that also compute, when
  // they load most of the time.
  if (epoch.share < (only_load_ ? 0.9 : 0.5)) return "";
  char text[160];
  std::snprintf(text, sizeof text,
                "the loader, not the compute, limits: %.0f%% of %.0f loading workers' time, and "
                "steps waited %.1f s for it",
                100 * epoch.share, loading_workers_, epoch.waited.count());
  const bool prepared = data.starts_with("shards:");
  return text + (prepared ? std::string("; more --workers may help")
                          : "; try regatta data prepare " + shell_word(data));
}

}  // namespace regatta
