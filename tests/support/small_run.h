// A network with every kind of tensor (weights, biases, running statistics, a count), small enough
// to train in no time, and what a run of it says as it goes.
#pragma once

#include <utility>
#include <vector>

#include "ops/builder.h"
#include "train/job.h"
#include "train/loop.h"

namespace regatta {

inline Graph small_network() {
  NetBuilder net("small", {1, 6, 6});
  NodeId x = net.conv("conv", net.input(), {.channels = 3, .kernel = 3, .bias = false});
  x = net.relu(net.batch_norm("bn", x));
  x = net.dense("dense", x, 3);
  return std::move(net).finish(x);
}

// Ten images in batches of four: the last batch of an epoch is short.
inline TrainJob small_job() {
  JobOptions options;
  options.network = small_network();
  options.data = "synth:1x6x6/3@10";
  options.batch = 4;
  options.workers = 1;
  options.plan.deterministic = true;
  return make_job(options);
}

struct Recorder : TrainObserver {
  void on_step(const StepRecord& record) override { steps.push_back(record); }
  void on_epoch(const EpochRecord& record) override { epochs.push_back(record); }
  void on_rest(const TrainState& state) override {
    rests.push_back(state.step);
    states.push_back(state);
  }
  bool wants_rest(std::int64_t step) override { return rest_every && step % rest_every == 0; }
  bool stop() override { return stop_after && ++asked >= *stop_after; }

  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
  std::vector<std::int64_t> rests;
  std::vector<TrainState> states;  // at the rests
  std::int64_t rest_every = 0;
  std::optional<int> stop_after;  // steps of this call
  int asked = 0;
};

}  // namespace regatta
