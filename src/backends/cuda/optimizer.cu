#include <algorithm>
#include <atomic>

#include "backends/cuda/block_sum.cuh"
#include "backends/cuda/check.h"
#include "backends/cuda/optimizer.h"
#include "backends/cuda/vector.cuh"

namespace regatta::cuda {
namespace {

constexpr int threads = 256;

// Four floats a thread; the last thread takes what is left.
template <class Body>
__device__ void for_each_four(std::size_t count, const Body& body) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (4 * i + 4 <= count)
    body.template operator()<4>(4 * i);
  else
    for (std::size_t at = 4 * i; at < count; ++at) body.template operator()<1>(at);
}

unsigned blocks_for(std::size_t count) {
  return static_cast<unsigned>((count + 4 * threads - 1) / (4 * threads));
}

struct Slots {
  static constexpr std::size_t most = 64;
  int count = 0;
  const float* data[most];
};

struct AddSlots {
  float* sum;
  const Slots& slots;
  template <int V>
  __device__ void operator()(std::size_t at) const {
    Pack<float, V> total = load<V>(sum + at);
    for (int s = 0; s < slots.count; ++s) {
      const Pack<float, V> other = load<V>(slots.data[s] + at);
      for (int v = 0; v < V; ++v) total.values[v] += other.values[v];
    }
    store(sum + at, total);
  }
};

__global__ void __launch_bounds__(threads) add_slots(float* sum, Slots slots, std::size_t count) {
  for_each_four(count, AddSlots{sum, slots});
}

// --- gradients that are infinite or not a number

// Where that is noted: for the steps to come, and for the host. Null: nobody cares.
struct Alarm {
  int *mark, *told;
  // A mark that a loss has set is the loss's own story.
  __device__ void raise() const {
    if (*mark != 0) return;
    *mark = 1;
    *told = 1;
  }
};

struct LookAtGradient {
  const float* gradient;
  const Alarm& alarm;
  template <int V>
  __device__ void operator()(std::size_t at) const {
    const Pack<float, V> values = load<V>(gradient + at);
    bool fine = true;
    for (int v = 0; v < V; ++v) fine = fine && isfinite(values.values[v]);
    if (!fine) alarm.raise();
  }
};

__global__ void __launch_bounds__(threads)
    look_at_gradient(const float* gradient, std::size_t count, Alarm alarm) {
  for_each_four(count, LookAtGradient{gradient, alarm});
}

// --- steps

// A step as kernels see it: pointers of the device, null where there is nothing.
struct Step {
  OptimizerKind kind;
  const UpdateNumbers* numbers;
  const int* mark;  // null: there is none
  const float* gradient_scale;
  const float* gradient;
  float *parameters, *mean, *squares, *average;
  const std::uint8_t* mask;
};

__device__ bool masked(const std::uint8_t* mask, std::size_t at) {
  return mask && (mask[at / 8] >> (at % 8) & 1) == 0;
}

// The gradient as a rule sees it.
struct Clip {
  float scale, most;
  __device__ explicit Clip(const Step& step)
      : scale(step.gradient_scale ? *step.gradient_scale : 1.0f),
        most(step.numbers->clip_value > 0 ? step.numbers->clip_value : INFINITY) {}
  __device__ float operator()(float gradient) const {
    const float scaled = scale * gradient;
    return scaled > most ? most : scaled < -most ? -most : scaled;
  }
};

// One element: its gradient in, its parameter and what the rule remembers of it in and out.
struct Element {
  float gradient, parameter, mean, squares;
};

struct Rates {
  float rate = 1, decay = 0;  // LARS: of the tensor
};

__device__ void take(OptimizerKind kind, const UpdateNumbers& by, const Rates& lars, bool has_mean,
                     Element& e) {
  switch (kind) {
    case OptimizerKind::sgd: {
      const float slope = e.gradient + by.weight_decay * e.parameter;
      e.mean = by.momentum * e.mean + slope;
      e.parameter -= by.learning_rate * e.mean;
      break;
    }
    case OptimizerKind::nesterov: {
      const float slope = e.gradient + by.weight_decay * e.parameter;
      e.mean = by.momentum * e.mean + slope;
      e.parameter -= by.learning_rate * (slope + by.momentum * e.mean);
      break;
    }
    // Adam's decay joins the gradient, AdamW's shrinks the parameter: the one not meant is neutral.
    case OptimizerKind::adam:
    case OptimizerKind::adamw: {
      const bool apart = kind == OptimizerKind::adamw;
      const float slope = e.gradient + (apart ? 0.0f : by.weight_decay) * e.parameter;
      e.mean = by.beta1 * e.mean + by.rest1 * slope;
      e.squares = by.beta2 * e.squares + by.rest2 * slope * slope;
      const float spread = sqrtf(e.squares) / by.root2 + by.epsilon;
      e.parameter = (apart ? by.keep : 1.0f) * e.parameter - by.step_size * (e.mean / spread);
      break;
    }
    case OptimizerKind::rmsprop: {
      const float slope = e.gradient + by.weight_decay * e.parameter;
      e.squares = by.beta2 * e.squares + by.rest2 * slope * slope;
      const float scaled = slope / (sqrtf(e.squares) + by.epsilon);
      if (has_mean) e.mean = by.momentum * e.mean + scaled;
      e.parameter -= by.learning_rate * (has_mean ? e.mean : scaled);
      break;
    }
    case OptimizerKind::lars: {
      const float slope = lars.rate * (e.gradient + lars.decay * e.parameter);
      e.mean = by.momentum * e.mean + slope;
      e.parameter -= by.learning_rate * e.mean;
      break;
    }
  }
}

template <int V>
__device__ Pack<float, V> load_if(const float* from, std::size_t at) {
  return from ? load<V>(from + at) : Pack<float, V>{};
}

template <int V>
__device__ void store_if(float* to, std::size_t at, const Pack<float, V>& values) {
  if (to) store(to + at, values);
}

struct TakeStep {
  const Step& step;
  const Clip& clip;
  Rates lars;
  std::size_t first;
  template <int V>
  __device__ void operator()(std::size_t offset) const {
    const std::size_t at = first + offset;
    const UpdateNumbers& by = *step.numbers;
    const Pack<float, V> gradient = load<V>(step.gradient + at);
    Pack<float, V> parameters = load<V>(step.parameters + at);
    Pack<float, V> mean = load_if<V>(step.mean, at), squares = load_if<V>(step.squares, at);
    Pack<float, V> average = load_if<V>(step.average, at);
    for (int v = 0; v < V; ++v) {
      Element e{
          masked(step.mask, at + static_cast<std::size_t>(v)) ? 0.0f : clip(gradient.values[v]),
          parameters.values[v], mean.values[v], squares.values[v]};
      take(step.kind, by, lars, step.mean != nullptr, e);
      parameters.values[v] = e.parameter;
      mean.values[v] = e.mean;
      squares.values[v] = e.squares;
      average.values[v] = by.average_keep * average.values[v] + by.average_rest * e.parameter;
    }
    store(step.parameters + at, parameters);
    store_if<V>(step.mean, at, mean);
    store_if<V>(step.squares, at, squares);
    store_if<V>(step.average, at, average);
  }
};

__global__ void __launch_bounds__(threads) take_step(Step step, std::size_t count) {
  if (step.mark && *step.mark != 0) return;
  const Clip clip(step);
  for_each_four(count, TakeStep{step, clip, {}, 0});
}

// --- sums over tensors, each shared out to as many blocks

constexpr int parts = 32;

struct Tensors {
  static constexpr std::size_t most = 64;
  struct Row {
    std::uint64_t first, count;
    bool adapts;
  };
  Row rows[most];
};

// What a launch leaves: per tensor the parts' sums of squares, of the gradient and the parameters.
__device__ double& part_sum(double* sums, unsigned tensor, unsigned part, int which) {
  return sums[(tensor * parts + part) * 2 + static_cast<unsigned>(which)];
}

__device__ double squares_of_part(const float* values, const Tensors::Row& row, const Clip* clip,
                                  const std::uint8_t* mask) {
  double sum = 0;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < row.count;
       i += step) {
    if (masked(mask, row.first + i)) continue;
    const float value = clip ? (*clip)(values[row.first + i]) : values[row.first + i];
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return block_sum<threads>(sum);
}

__global__ void __launch_bounds__(threads)
    measure_gradients(const float* gradient, Tensors tensors, const std::uint8_t* mask,
                      double* sums) {
  const double sum = squares_of_part(gradient, tensors.rows[blockIdx.y], nullptr, mask);
  if (threadIdx.x == 0) part_sum(sums, blockIdx.y, blockIdx.x, 0) = sum;
}

__global__ void __launch_bounds__(threads) measure_both(Step step, Tensors tensors, double* sums) {
  const Clip clip(step);
  const Tensors::Row& row = tensors.rows[blockIdx.y];
  const double gradient = squares_of_part(step.gradient, row, &clip, step.mask);
  const double parameters = squares_of_part(step.parameters, row, nullptr, nullptr);
  if (threadIdx.x != 0) return;
  part_sum(sums, blockIdx.y, blockIdx.x, 0) = gradient;
  part_sum(sums, blockIdx.y, blockIdx.x, 1) = parameters;
}

// One block.
__global__ void __launch_bounds__(threads)
    add_measures(double* sums, unsigned tensors, double* total, bool add) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < tensors * parts; i += threads)
    sum += part_sum(sums, i / parts, i % parts, 0);
  sum = block_sum<threads>(sum);
  if (threadIdx.x == 0) *total = add ? *total + sum : sum;
}

struct Sums {
  static constexpr std::size_t most = threads;
  int count = 0;
  const double* data[most];
};

// One block; `total` carries the sum on to the next launch.
__global__ void __launch_bounds__(threads)
    scale_by_norm(const UpdateNumbers* numbers, Sums sums, double* total, bool add, float* scale,
                  Alarm alarm) {
  const int i = static_cast<int>(threadIdx.x);
  double squares = block_sum<threads>(i < sums.count ? *sums.data[i] : 0.0);
  if (i != 0) return;
  if (add) squares += *total;
  *total = squares;
  // Squares of floats never overflow a double.
  if (alarm.mark && !isfinite(squares)) alarm.raise();
  const double longest = static_cast<double>(numbers->clip_norm);
  const auto wanted = static_cast<float>(longest / (sqrt(squares) + 1e-6));
  *scale = wanted < 1.0f ? wanted : 1.0f;
}

__global__ void __launch_bounds__(threads)
    take_lars_steps(Step step, Tensors tensors, double* sums) {
  if (step.mark && *step.mark != 0) return;
  const Tensors::Row& row = tensors.rows[blockIdx.y];
  const UpdateNumbers& by = *step.numbers;
  Rates lars;
  if (row.adapts) {
    double gradient = 0, parameters = 0;
    for (unsigned part = 0; part < parts; ++part) {
      gradient += part_sum(sums, blockIdx.y, part, 0);
      parameters += part_sum(sums, blockIdx.y, part, 1);
    }
    const double weight = sqrt(parameters), slope = sqrt(gradient);
    if (weight > 0 && slope > 0)
      lars.rate = static_cast<float>(static_cast<double>(by.trust) * weight /
                                     (slope + static_cast<double>(by.weight_decay) * weight +
                                      static_cast<double>(by.epsilon)));
    lars.decay = by.weight_decay;
  }
  const Clip clip(step);
  const TakeStep body{step, clip, lars, row.first};
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < row.count;
       i += stride)
    body.operator()<1>(i);
}

// Calls body(table, count of its rows, whether it is the first) for as many tensors as fit a
// launch.
template <class Body>
void for_each_table(std::span<const BucketTensor> tensors, const Body& body) {
  bool first = true;
  while (!tensors.empty()) {
    Tensors table;
    const std::size_t count = std::min(tensors.size(), Tensors::most);
    for (std::size_t i = 0; i < count; ++i)
      table.rows[i] = {tensors[i].first, tensors[i].count, tensors[i].adapts};
    body(table, static_cast<unsigned>(count), first);
    check(cudaGetLastError());
    tensors = tensors.subspan(count);
    first = false;
  }
}

}  // namespace

void reduce_slots(Stream stream, float* sum, std::span<const float* const> others,
                  std::size_t count) {
  if (count == 0) return;
  while (!others.empty()) {
    Slots slots;
    slots.count = static_cast<int>(std::min(others.size(), Slots::most));
    std::copy_n(others.begin(), slots.count, slots.data);
    others = others.subspan(static_cast<std::size_t>(slots.count));
    add_slots<<<blocks_for(count), threads, 0, stream>>>(sum, slots, count);
    check(cudaGetLastError());
  }
}

Optimizer::Optimizer(Stream stream, int* mark)
    : stream_(stream),
      mark_(mark),
      numbers_(stream, sizeof(UpdateNumbers), "hyperparameters"),
      scratch_(sizeof(double) * 2 * parts * Tensors::most, "an optimizer's sums") {
  // Kernels write there over the bus, and only when something is wrong.
  check(cudaHostAlloc(reinterpret_cast<void**>(&told_), sizeof(int), cudaHostAllocMapped));
  *told_ = 0;
}

Optimizer::~Optimizer() { cudaFreeHost(told_); }

bool Optimizer::saw_not_finite() const { return std::atomic_ref(*told_).load() != 0; }
void Optimizer::forget_not_finite() { std::atomic_ref(*told_).store(0); }

void Optimizer::sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                            const std::uint8_t* mask, double* sum) {
  for_each_table(tensors, [&](const Tensors& table, unsigned count, bool first) {
    measure_gradients<<<dim3(parts, count), threads, 0, stream_>>>(gradient, table, mask, sums());
    add_measures<<<1, threads, 0, stream_>>>(sums(), count, sum, !first);
  });
}

void Optimizer::clip_scale(std::span<const double* const> squares, float* scale) {
  bool add = false;
  while (!squares.empty()) {
    Sums some;
    some.count = static_cast<int>(std::min(squares.size(), Sums::most));
    std::copy_n(squares.begin(), some.count, some.data);
    squares = squares.subspan(static_cast<std::size_t>(some.count));
    scale_by_norm<<<1, threads, 0, stream_>>>(numbers(), some, sums(), add, scale,
                                              Alarm{mark_, told_});
    check(cudaGetLastError());
    add = true;
  }
}

void Optimizer::update(const UpdateStep& update) {
  if (update.count == 0) return;
  const Step step{update.kind,
                  numbers(),
                  mark_,
                  update.gradient_scale,
                  update.gradient,
                  update.parameters,
                  update.moments[0],
                  update.moments[1],
                  update.average,
                  update.mask};
  // Where gradients are clipped by their norm, clip_scale() has seen to it.
  if (mark_ && !update.gradient_scale) {
    look_at_gradient<<<blocks_for(update.count), threads, 0, stream_>>>(
        update.gradient, update.count, Alarm{mark_, told_});
    check(cudaGetLastError());
  }
  if (update.kind != OptimizerKind::lars) {
    take_step<<<blocks_for(update.count), threads, 0, stream_>>>(step, update.count);
    check(cudaGetLastError());
    return;
  }
  for_each_table(update.tensors, [&](const Tensors& table, unsigned count, bool) {
    const dim3 grid(parts, count);
    measure_both<<<grid, threads, 0, stream_>>>(step, table, sums());
    take_lars_steps<<<grid, threads, 0, stream_>>>(step, table, sums());
  });
}

}  // namespace regatta::cuda
