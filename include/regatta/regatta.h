// Regatta as a library: describe a network layer by layer, train it, read what came of it.
//
//   regatta::Network net("mine", {.channels = 1, .height = 28, .width = 28});
//   regatta::Layer x = net.conv("conv", net.input(), {.channels = 8, .kernel = 3});
//   x = net.max_pool(net.relu(x), {.kernel = 2});
//   net.dense("dense", x, 10);
//   const regatta::TrainReport report = regatta::train(net, {.data = "mnist", .epochs = 2});
//
// Whatever the caller can mend arrives as regatta::InputError.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/epoch.h"
#include "regatta/error.h"
#include "regatta/layers.h"

namespace regatta {

struct ImageSize {
  std::int64_t channels = 1, height = 1, width = 1;
};

// What a layer computes, to be fed to another layer of the same network.
class Layer {
  friend class Network;
  Layer(const void* network, std::uint32_t number) : network_(network), number_(number) {}

  const void* network_;
  std::uint32_t number_;
};

struct TrainOptions;
struct TrainReport;

// A network in the making. The layer added last gives the logits, one per class.
class Network {
 public:
  Network(std::string name, const ImageSize& input);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  Layer input() const;

  // Layers with parameters are named, since checkpoints are read by those names.
  Layer conv(std::string name, Layer from, const ConvSettings& settings);
  Layer dense(std::string name, Layer from, std::int64_t features);  // flattens an image first
  Layer batch_norm(std::string name, Layer from, const BatchNormSettings& settings = {});
  Layer layer_norm(std::string name, Layer from, double epsilon = 1e-5);

  Layer relu(Layer from);
  Layer relu6(Layer from);
  Layer leaky_relu(Layer from, double slope = 0.01);
  Layer sigmoid(Layer from);
  Layer tanh(Layer from);
  Layer gelu(Layer from, bool by_tanh = false);  // by the approximation with tanh, or exactly
  Layer max_pool(Layer from, const PoolSettings& settings = {});
  Layer average_pool(Layer from, const PoolSettings& settings = {});
  Layer adaptive_average_pool(Layer from, Extent output);
  Layer global_average_pool(Layer from);
  Layer local_response_norm(Layer from, const LocalResponseNormSettings& settings = {});
  Layer flatten(Layer from);
  Layer add(Layer left, Layer right);
  Layer concat(const std::vector<Layer>& parts);  // along the channels
  Layer dropout(Layer from, double probability = 0.5);

 private:
  friend TrainReport train(const Network&, const TrainOptions&);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Every default but the data's is a choice that works; "chosen" ones depend on the machine.
struct TrainOptions {
  // As regatta train --data takes it: mnist, digits-synth, npy:X.npy,Y.npy, ...
  std::string data = {};
  // Data to test on after each epoch: by default the data's own test split if it has one; "none".
  std::optional<std::string> test = {};
  std::optional<std::int64_t> epochs = {}, steps = {};  // one of them; default: one epoch
  std::int64_t batch = 64;
  std::string optimizer = "sgd";  // or nesterov, adam, adamw, rmsprop, lars
  std::optional<double> learning_rate = {}, momentum = {}, weight_decay = {};  // the optimizer's
  std::string schedule = "constant";  // or "cosine", "one-cycle": over the whole run
  std::int64_t warmup_steps = 0;
  double label_smoothing = 0;
  // Random changes to training images, as --augment takes them: "crop:4,flip,jitter:0.4".
  std::string augment = {};
  bool strict = false;     // an image that cannot be read ends the run; else the next replaces it
  std::uint64_t seed = 1;  // of weights, order and synthetic data
  bool shuffle = true;

  // When and where, never what, is computed.
  std::optional<int> workers = {};           // default: the CPUs this process may use
  std::vector<std::int64_t> chunks = {};     // sizes; a single n: n equal ones; default: chosen
  std::optional<std::string> segments = {};  // "op", "block", "step" or a number; default: chosen
  bool deterministic = false;                // the same bits for any number of workers

  // A new folder for metrics and checkpoints; if empty, nothing is written.
  std::string out = {};
  // Told of every epoch as it ends, on the calling thread.
  std::function<void(const EpochRecord&)> on_epoch = {};
};

struct TrainReport {
  // All of them, or of many thousands some, with the last one and the extremes of the loss.
  std::vector<EpochRecord> epochs;
  // Over the wall-clock time of training after ten steps of warm-up; tests between epochs left out.
  double images_per_second = 0;
  std::string checkpoint;  // the newest one's folder; empty if nothing was written
};

// Trains from fresh weights. One run at a time per process.
TrainReport train(const Network& network, const TrainOptions& options);

// Whether a public data set (mnist, fashion-mnist) has been fetched, as `regatta data get` does.
bool has_data(const std::string& name);

}  // namespace regatta
