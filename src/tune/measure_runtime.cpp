#include "tune/measure_runtime.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "exec/observe.h"
#include "ops/builder.h"
#include "profile/robust.h"
#include "profile/timings.h"
#include "tune/calibration_steps.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

// A network so small that it is all runtime.
Graph chains() {
  NetBuilder net("chains", {1, 8, 8});
  NodeId x = net.conv("conv", net.input(), {.channels = 4, .kernel = 3});
  x = net.max_pool(net.relu(x), {.kernel = 2});
  return std::move(net).finish(net.dense("dense", x, 4));
}
// One whose chunks meet, with tasks of some tens of microseconds: shorter ones would get into each
// other's way in the runtime, as those of real networks do not.
Graph meetings() {
  NetBuilder net("meetings", {1, 16, 16});
  NodeId x = net.input();
  for (const char* name : {"1", "2", "3", "4"}) {
    x = net.conv(std::string("conv") + name, x, {.channels = 16, .kernel = 3, .padding = 1});
    x = net.relu(net.batch_norm(std::string("norm") + name, x));
  }
  return std::move(net).finish(net.dense("dense", x, 4));
}

// Steps on one sample for each worker.
CalibrationSteps steps_on(Graph network, const std::string& segments, int workers) {
  JobOptions options;
  options.data = "synth:" + network.node(network.input()).shape.text() + "/" +
                 std::to_string(network.classes()) + "@" + std::to_string(most_workers);
  options.network = std::move(network);
  options.test = "none";
  options.batch = workers;
  PlanOptions plan{.workers = workers, .layout = default_cpu_layout()};
  plan.chunks = {workers};
  plan.segments = segments;
  return {open_job(options), plan};
}

// Runs single steps and gathers what `observe` makes of each.
template <class Observe>
std::vector<Observation> watched(CalibrationSteps& steps, const Observe& observe) {
  steps.run(1);
  std::vector<Observation> all;
  steps.executor().watch(
      [&](const ListTimes& done) { std::ranges::move(observe(done), std::back_inserter(all)); },
      Depth::task);
  for (int i = 0; i < many_lists; ++i) steps.run(1);
  steps.executor().watch_no_more();
  return all;
}

// CPU time of the submitting thread to hand over a list while the one before is carried out, as in
// training.
double seconds_to_submit(CalibrationSteps& steps) {
  Executor& executor = steps.executor();
  std::vector<double> seconds;
  Ticket flying;
  for (int i = 0; i < many_lists; ++i) {
    StepInput input = steps.input(1);
    const Seconds begin = thread_time();
    const Ticket next = executor.submit(ListKind::train, std::move(input));
    seconds.push_back(Seconds(thread_time() - begin).count());
    if (flying) executor.wait(flying);
    flying = next;
  }
  executor.wait(flying);
  return median(seconds);
}

// CPU time of the submitting thread to take note that a list is done; for lists that take less than
// a millisecond.
std::vector<double> seconds_to_take_note(CalibrationSteps& steps) {
  std::vector<double> seconds;
  for (int i = 0; i < many_lists; ++i) {
    const Ticket ticket = steps.executor().submit(ListKind::train, steps.input(1));
    // The list is done by then. This thread spins: a sleep would make it slower afterwards.
    for (const auto now = Clock::now(); Clock::now() - now < std::chrono::milliseconds(1);) {
    }
    const Seconds finished = thread_time();
    steps.executor().wait(ticket);
    seconds.push_back(Seconds(thread_time() - finished).count());
  }
  return seconds;
}

// What the submitting thread takes for such tasks, their buffers and a step.
std::vector<Observation> submission(CalibrationSteps steps) {
  double tasks = 0, buffers = 0;  // of a list
  std::vector<Observation> all = watched(steps, [&](const ListTimes& done) {
    tasks = static_cast<double>(done.list.tasks.size());
    buffers = 0;
    for (const Task& task : done.list.tasks) buffers += static_cast<double>(task.accesses.size());
    return submission_observations_of(done);
  });
  Profile so_far;
  so_far.learn(all);
  const RuntimeCosts costs = so_far.runtime();
  const double by_task = tasks * costs.submission + buffers * costs.dependency;
  // Looking at the clock for every task takes its time too: together they take no longer than a
  // list that is not watched. The time of such a list beyond its tasks' is the step's.
  const double submitting = seconds_to_submit(steps);
  const double part = std::min(1.0, submitting / by_task);
  for (Observation& each : all) each.seconds *= part;
  for (const double waiting : seconds_to_take_note(steps))
    all.push_back(
        {"runtime step", 1, 1, std::max(shortest_timing, waiting + submitting - part * by_task)});
  return all;
}

}  // namespace

std::vector<Observation> measure_runtime(int workers) {
  std::vector<Observation> all = submission(steps_on(chains(), "op", workers));
  CalibrationSteps meeting = steps_on(meetings(), workers > 1 ? "step" : "op", workers);
  std::ranges::move(watched(meeting, start_observations_of), std::back_inserter(all));
  // More than any cache holds.
  std::vector<char> from(std::size_t{32} << 20, 1), to(from.size());
  for (int i = 0; i < 5; ++i) {
    const Seconds begin = thread_time();
    std::memcpy(to.data(), from.data(), from.size());
    all.push_back({"runtime byte", 1, 1,
                   Seconds(thread_time() - begin).count() / static_cast<double>(from.size())});
  }
  return all;
}

}  // namespace regatta
