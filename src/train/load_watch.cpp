#include "train/load_watch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "data/load_clock.h"
#include "trace/loading.h"

namespace regatta {

LoadWatch::LoadWatch(const Plan& plan) {
  int workers = plan.loaders, threads = plan.loaders;
  only_load_ = true;
  for (const DeviceGroup* group : groups_of(plan))
    if (group->kind == DeviceKind::cpu) {
      workers += group->workers;
      threads += group->workers * group->team;
      only_load_ = false;
    }
  loading_workers_ = std::max(workers, 1);
  if (workers > 0) team_ = static_cast<double>(threads) / workers;
}

namespace {

void keep(bool latest, std::atomic<LoadWatch::Clock::rep>& kept) {
  const LoadWatch::Clock::rep own = LoadWatch::Clock::now().time_since_epoch().count();
  LoadWatch::Clock::rep known = kept;
  while ((latest ? own > known : own < known) && !kept.compare_exchange_weak(known, own)) {
  }
}

}  // namespace

std::shared_ptr<LoadWatch::Step> LoadWatch::watch(StepInput& input) const {
  auto step = std::make_shared<Step>();
  step->sums = sums_;
  step->loaded = only_load_ ? 0 : INT64_MAX;
  input.load = [step, latest = only_load_, team = team_,
                load = std::move(input.load)](auto... arguments) {
    LoadClock::take();  // drops what this thread counted before
    const Clock::time_point begin = Clock::now();
    load(arguments...);
    const Clock::time_point end = Clock::now();
    LoadingTimes own = LoadClock::take();
    own.other = std::max(0.0, Seconds(end - begin).count() - own.seconds());
    for (double LoadingTimes::*seconds : {&LoadingTimes::reading, &LoadingTimes::decoding,
                                          &LoadingTimes::transforms, &LoadingTimes::other})
      own.*seconds /= team;
    step->sums->add(own);
    keep(latest, step->loaded);
  };
  input.sent = [step](std::chrono::nanoseconds took) {
    LoadingTimes own;
    own.wire = Seconds(took).count();
    step->sums->add(own);
    keep(/*latest=*/true, step->sent);
  };
  return step;
}

LoaderUse LoadWatch::use_of(Seconds waited, Seconds lasted, const LoadingTimes& times) const {
  const double room = lasted.count() * loading_workers_;
  return {room > 0 ? std::min(1.0, times.seconds() / room) : 0, waited, lasted, times};
}

LoaderUse LoadWatch::of_step(const Step& step, Clock::time_point begin, Clock::time_point end) {
  // StarPU's own schedulers do not tell when samples have come to a GPU.
  const bool sent = only_load_ && step.sent > 0;
  const Clock::time_point loaded{Clock::duration(sent ? step.sent.load() : step.loaded.load())};
  const Seconds waited = loaded > begin && loaded < end ? Seconds(loaded - begin) : Seconds{};
  const LoadingTimes times = sums_->take();
  epoch_waited_ += waited;
  epoch_lasted_ += end - begin;
  epoch_times_ += times;
  return use_of(waited, end - begin, times);
}

LoaderUse LoadWatch::of_epoch() {
  return use_of(std::exchange(epoch_waited_, Seconds{}), std::exchange(epoch_lasted_, Seconds{}),
                std::exchange(epoch_times_, {}));
}

std::string LoadWatch::verdict(const LoaderUse& epoch, const std::string& data) const {
  // Workers that only load are the limit when they are never idle; those that also compute, when
  // they load most of the time.
  if (epoch.share < (only_load_ ? 0.9 : 0.5)) return "";
  char text[200];
  std::snprintf(text, sizeof text,
                "the loader, not the compute, limits: %.0f%% of %.0f loading workers' time, and "
                "steps waited %.3g s for it, %.0f%% of the time; ",
                100 * epoch.share, loading_workers_, epoch.waited.count(),
                100 * epoch.waited_share());
  const trace::LoadAdvice advice = trace::advice_on(epoch.times, data);
  return text + advice.what + ": " + advice.fix;
}

}  // namespace regatta
