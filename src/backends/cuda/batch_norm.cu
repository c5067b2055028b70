// Batch norm with its residual and relu in the same pass. Memory is what it costs: forward reads
// the input twice, backward reads input, gradient (and output, where there is a relu) twice.
#include <string>

#include "backends/cuda/batch_norm.h"
#include "backends/cuda/channels.cuh"

namespace regatta::cuda {
namespace {

// Rows of the merged statistics, channels rounded up as the CPU backend's vectors want them.
struct Statistics {
  Statistics(const Node& node, float* rows)
      : data(rows), row(static_cast<std::size_t>((node.shape.channels() + 15) / 16 * 16)) {}
  __device__ float* mean() const { return data; }
  __device__ float* inverse_deviation() const { return data + row; }
  __device__ float* mean_gradient() const { return data + 2 * row; }
  __device__ float* mean_product() const { return data + 3 * row; }
  float* data;
  std::size_t row;
};

// --- statistics

// Sums are taken relative to the channel's first value, which lies within the spread of the others:
// the squares then do not cancel, however far from zero the mean is.
template <class T, int V>
struct Moments {
  const T* x;

  struct Constants {
    float pivot[V];
  };
  using Loaded = Pack<T, V>;
  __device__ Constants constants(int, std::int64_t first) const {
    Constants c;
    for (int v = 0; v < V; ++v) c.pivot[v] = to_float(x[first + v]);
    return c;
  }
  __device__ Loaded load(std::int64_t at) const { return cuda::load<V>(x + at); }
  __device__ void add(const Constants& c, const Loaded& loaded, float (&sums)[V],
                      float (&squares)[V]) const {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float distance = to_float(loaded.values[v]) - c.pivot[v];
      sums[v] += distance;
      squares[v] += distance * distance;
    }
  }
};

// A whole batch's mean and squared deviations become its statistics and move the running ones.
struct BatchUpdate {
  BatchUpdate(const Node& node, float* rows, std::span<float* const> states)
      : batch(node, rows),
        running_mean(states[0]),
        running_variance(states[1]),
        batches(states[2]),
        epsilon(node.attributes.real("epsilon", 1e-5)),
        momentum(static_cast<float>(node.attributes.real("momentum", 0.1))) {}

  __device__ void operator()(int c, double mean, double deviations, double count) const {
    batch.mean()[c] = static_cast<float>(mean);
    batch.inverse_deviation()[c] = static_cast<float>(1.0 / sqrt(deviations / count + epsilon));
    const auto unbiased = static_cast<float>(deviations / fmax(count - 1, 1.0));
    running_mean[c] += momentum * (static_cast<float>(mean) - running_mean[c]);
    running_variance[c] += momentum * (unbiased - running_variance[c]);
    if (c == 0) batches[0] += 1;
  }

  Statistics batch;
  float *running_mean, *running_variance, *batches;
  double epsilon;
  float momentum;
};

// From sums relative to the pivot to (mean, squared deviations).
template <class T>
struct FinishMoments {
  const T* x;
  ChannelView view;
  __device__ double2 operator()(int c, double sum, double squares) const {
    const auto count = static_cast<double>(view.rows());
    const double pivot = static_cast<double>(to_float(x[view.first(c)]));
    return {pivot + sum / count, fmax(0.0, squares - sum * (sum / count))};
  }
};

template <class T>
struct LeavePartials {
  FinishMoments<T> moments;
  double* rows;
  std::size_t row;
  __device__ void operator()(int c, double sum, double squares) const {
    const double2 found = moments(c, sum, squares);
    rows[c] = found.x;
    rows[row + c] = found.y;
  }
};

template <class T>
struct UpdateBatch {
  FinishMoments<T> moments;
  BatchUpdate update;
  __device__ void operator()(int c, double sum, double squares) const {
    const double2 found = moments(c, sum, squares);
    update(c, found.x, found.y, static_cast<double>(moments.view.rows()));
  }
};

// --- normalise

// What each channel is normalised by: the batch's statistics or, where `inverse` is null, the
// running ones.
struct NormaliseBy {
  const float *mean, *inverse, *variance;
  double epsilon;
  const float *weight, *bias;
};

template <class T, int V>
struct Normalise {
  NormaliseBy by;
  const T *x, *residual;
  T* y;
  bool relu;

  struct Constants {
    float scale[V], shift[V];
  };
  struct Loaded {
    Pack<T, V> x, residual;
  };
  __device__ Constants constants(int channel, std::int64_t) const {
    Constants c;
    for (int v = 0; v < V; ++v) {
      const int at = channel + v;
      const float inverse =
          by.inverse
              ? by.inverse[at]
              : static_cast<float>(1.0 / sqrt(static_cast<double>(by.variance[at]) + by.epsilon));
      c.scale[v] = by.weight[at] * inverse;
      c.shift[v] = by.bias[at] - by.mean[at] * c.scale[v];
    }
    return c;
  }
  __device__ Loaded load(std::int64_t at) const {
    Loaded loaded{};
    loaded.x = cuda::load<V>(x + at);
    if (residual) loaded.residual = cuda::load<V>(residual + at);
    return loaded;
  }
  __device__ void apply(const Constants& c, const Loaded& loaded, std::int64_t at) const {
    Pack<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      float value = to_float(loaded.x.values[v]) * c.scale[v] + c.shift[v];
      if (residual) value += to_float(loaded.residual.values[v]);
      out.values[v] = from_float<T>(relu ? rectified(value) : value);
    }
    store(y + at, out);
  }
};

// --- backward

// The gradient of what went into the relu; `y` is null where there is none.
template <class T, int V>
__device__ float before_relu(const T* y, const Pack<T, V>& output, const Pack<T, V>& gradient,
                             int v) {
  return y && !(to_float(output.values[v]) > 0) ? 0.0f : to_float(gradient.values[v]);
}

template <class T, int V>
struct GradientMoments {
  const T *x, *y, *dy;
  Statistics batch;

  struct Constants {
    float mean[V];
  };
  struct Loaded {
    Pack<T, V> x, y, dy;
  };
  __device__ Constants constants(int channel, std::int64_t) const {
    Constants c;
    for (int v = 0; v < V; ++v) c.mean[v] = batch.mean()[channel + v];
    return c;
  }
  __device__ Loaded load(std::int64_t at) const {
    Loaded loaded{};
    loaded.x = cuda::load<V>(x + at);
    loaded.dy = cuda::load<V>(dy + at);
    if (y) loaded.y = cuda::load<V>(y + at);
    return loaded;
  }
  __device__ void add(const Constants& c, const Loaded& loaded, float (&sums)[V],
                      float (&products)[V]) const {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float dz = before_relu(y, loaded.y, loaded.dy, v);
      sums[v] += dz;
      products[v] += dz * (to_float(loaded.x.values[v]) - c.mean[v]);
    }
  }
};

// A chunk's sums give its share of the gradients of weight and bias; of a whole batch they also are
// what the input's gradient needs.
struct FinishGradients {
  Statistics batch;
  float *weight, *bias;
  bool add;
  double* rows;  // null: the batch is whole
  double count;
  __device__ void operator()(int c, double sum, double product) const {
    const auto weight_gradient =
        static_cast<float>(product * static_cast<double>(batch.inverse_deviation()[c]));
    const auto bias_gradient = static_cast<float>(sum);
    weight[c] = add ? weight[c] + weight_gradient : weight_gradient;
    bias[c] = add ? bias[c] + bias_gradient : bias_gradient;
    if (rows) {
      rows[c] = sum;
      rows[batch.row + c] = product;
    } else {
      batch.mean_gradient()[c] = static_cast<float>(sum / count);
      batch.mean_product()[c] = static_cast<float>(product / count);
    }
  }
};

template <class T>
struct GradientTarget {
  T* data;  // null: not wanted
  bool add;
};

template <class T, int V>
struct ApplyGradient {
  const T *x, *y, *dy;
  GradientTarget<T> input, residual;
  bool joined;  // input and residual are one value: the input's target takes both gradients
  Statistics batch;
  const float* weight;

  // dx = scale * dz - offset - (x - mean) * slope
  struct Constants {
    float mean[V], scale[V], offset[V], slope[V];
  };
  struct Loaded {
    Pack<T, V> x, y, dy, input, residual;
  };
  __device__ Constants constants(int channel, std::int64_t) const {
    Constants c;
    for (int v = 0; v < V; ++v) {
      const int at = channel + v;
      const float inverse = batch.inverse_deviation()[at];
      c.mean[v] = batch.mean()[at];
      c.scale[v] = weight[at] * inverse;
      c.offset[v] = c.scale[v] * batch.mean_gradient()[at];
      c.slope[v] = c.scale[v] * inverse * inverse * batch.mean_product()[at];
    }
    return c;
  }
  __device__ Loaded load(std::int64_t at) const {
    Loaded loaded{};
    loaded.x = cuda::load<V>(x + at);
    loaded.dy = cuda::load<V>(dy + at);
    if (y) loaded.y = cuda::load<V>(y + at);
    if (input.add) loaded.input = cuda::load<V>(input.data + at);
    if (residual.add) loaded.residual = cuda::load<V>(residual.data + at);
    return loaded;
  }
  __device__ void apply(const Constants& c, const Loaded& loaded, std::int64_t at) const {
    Pack<T, V> dx, dr;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float dz = before_relu(y, loaded.y, loaded.dy, v);
      const float distance = to_float(loaded.x.values[v]) - c.mean[v];
      float gradient = c.scale[v] * dz - c.offset[v] - distance * c.slope[v];
      if (joined) gradient += dz;
      dx.values[v] =
          from_float<T>(input.add ? to_float(loaded.input.values[v]) + gradient : gradient);
      dr.values[v] = from_float<T>(residual.add ? to_float(loaded.residual.values[v]) + dz : dz);
    }
    if (input.data) store(input.data + at, dx);
    if (residual.data) store(residual.data + at, dr);
  }
};

// --- chunks meet

// Travels as a kernel argument, so that a captured graph carries it along.
struct ChunkTable {
  static constexpr std::size_t most = 224;
  int count = 0;
  double total = 0;
  const double* rows[most];
  double counts[most];

  ChunkTable(const Node& node, std::span<const PartialSums> chunks) {
    for (const PartialSums& chunk : chunks) {
      if (chunk.count == 0) continue;
      if (count == static_cast<int>(most))
        throw InputError("batch_norm '" + node.name + "': a GPU merges at most " +
                         std::to_string(most) + " chunks: use fewer --chunks");
      rows[count] = chunk.rows;
      counts[count] = chunk.count;
      total += chunk.count;
      ++count;
    }
  }
};

__global__ void merge_statistics(ChunkTable chunks, int channels, BatchUpdate update) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= channels) return;
  double count = 0, mean = 0, deviations = 0;
  for (int i = 0; i < chunks.count; ++i) {
    const double total = count + chunks.counts[i];
    const double distance = chunks.rows[i][c] - mean;
    mean += distance * chunks.counts[i] / total;
    deviations += chunks.rows[i][update.batch.row + c] +
                  distance * distance * count * chunks.counts[i] / total;
    count = total;
  }
  update(c, mean, deviations, count);
}

__global__ void merge_gradients(ChunkTable chunks, int channels, Statistics batch) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= channels) return;
  double sum = 0, product = 0;
  for (int i = 0; i < chunks.count; ++i) {
    sum += chunks.rows[i][c];
    product += chunks.rows[i][batch.row + c];
  }
  batch.mean_gradient()[c] = static_cast<float>(sum / chunks.total);
  batch.mean_product()[c] = static_cast<float>(product / chunks.total);
}

constexpr unsigned merge_threads = 64;

unsigned merge_blocks(const Node& node) {
  return (static_cast<unsigned>(node.shape.channels()) + merge_threads - 1) / merge_threads;
}

class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const Site& site)
      : tools_(site.tools),
        node_(site.node),
        view_(site.node.shape, site.layout(), site.n),
        dtype_(site.dtype()),
        relu_(site.node.attributes.flag("relu")) {
    for (std::size_t i = 0; i < site.node.inputs.size(); ++i)
      if (site.input_dtype(i) != dtype_)
        throw InputError("batch_norm '" + site.node.name +
                         "': in bf16 logits cannot come from a batch norm: use --precision fp32");
  }

  std::size_t workspace_bytes() const override {
    return partial_sums(view_, tools_.processors) * sizeof(double);
  }

  void run(Work work, const Operands& o) override {
    with_type(dtype_, [&]<class T>() { run_as<T>(work, o); });
  }

 private:
  template <class T>
  void run_as(Work work, const Operands& o) const {
    switch (work) {
      case Work::statistics:
        statistics<T>(o, LeavePartials<T>{moments<T>(o), o.partials, row()});
        break;
      case Work::normalise:
        normalise<T>(o);
        break;
      case Work::forward:
        if (o.pass == Pass::train)
          statistics<T>(o,
                        UpdateBatch<T>{moments<T>(o), BatchUpdate(node_, o.statistics, o.states)});
        normalise<T>(o);
        break;
      case Work::gradient_sums:
        gradient_sums<T>(o, o.partials);
        break;
      case Work::gradient_apply:
        gradient_apply<T>(o);
        break;
      case Work::backward:
        gradient_sums<T>(o, nullptr);
        gradient_apply<T>(o);
        break;
      case Work::input_gradient:
      case Work::weight_gradient:  // plans with a GPU never split backward
        break;
    }
  }

  template <class T>
  FinishMoments<T> moments(const Operands& o) const {
    return {reinterpret_cast<const T*>(o.inputs[0]), view_};
  }

  template <class T, class Finish>
  void statistics(const Operands& o, const Finish& finish) const {
    sum_channels<T, Moments>(tools_, view_, own_partials(), finish,
                             reinterpret_cast<const T*>(o.inputs[0]));
  }

  template <class T>
  void normalise(const Operands& o) const {
    const bool training = o.pass == Pass::train;
    const NormaliseBy by{training ? o.statistics : o.states[0],
                         training ? o.statistics + row() : nullptr,
                         o.states[1],
                         node_.attributes.real("epsilon", 1e-5),
                         o.parameters[0],
                         o.parameters[1]};
    map_channels<T, Normalise>(tools_, view_, by, reinterpret_cast<const T*>(o.inputs[0]),
                               reinterpret_cast<const T*>(o.inputs[1]),
                               reinterpret_cast<T*>(o.output), relu_);
  }

  template <class T>
  void gradient_sums(const Operands& o, double* rows) const {
    const Statistics batch(node_, o.statistics);
    const FinishGradients finish{batch,
                                 o.parameter_gradients[0],
                                 o.parameter_gradients[1],
                                 o.add_parameter_gradients,
                                 rows,
                                 static_cast<double>(view_.rows())};
    sum_channels<T, GradientMoments>(tools_, view_, own_partials(), finish,
                                     reinterpret_cast<const T*>(o.inputs[0]), masking<T>(o),
                                     reinterpret_cast<const T*>(o.output_gradient), batch);
  }

  template <class T>
  void gradient_apply(const Operands& o) const {
    const bool joined = node_.inputs.size() == 2 && node_.inputs[0] == node_.inputs[1];
    const auto target = [&](std::size_t i) -> GradientTarget<T> {
      const GradientMode mode = o.gradient_modes[i];
      if (mode == GradientMode::none || (joined && i == 1)) return {nullptr, false};
      return {reinterpret_cast<T*>(o.input_gradients[i]), mode == GradientMode::add};
    };
    map_channels<T, ApplyGradient>(tools_, view_, reinterpret_cast<const T*>(o.inputs[0]),
                                   masking<T>(o), reinterpret_cast<const T*>(o.output_gradient),
                                   target(0), target(1), joined, Statistics(node_, o.statistics),
                                   o.parameters[0]);
  }

  // The output, whose sign says what the relu let through.
  template <class T>
  const T* masking(const Operands& o) const {
    return relu_ ? reinterpret_cast<const T*>(o.output) : nullptr;
  }

  double* own_partials() const { return reinterpret_cast<double*>(tools_.workspace); }
  std::size_t row() const { return Statistics(node_, nullptr).row; }

  const Tools& tools_;
  const Node& node_;
  ChannelView view_;
  Dtype dtype_;
  bool relu_;
};

}  // namespace

void combine_statistics(Stream stream, const Node& node, std::span<const PartialSums> chunks,
                        float* statistics, std::span<float* const> states) {
  merge_statistics<<<merge_blocks(node), merge_threads, 0, stream>>>(
      ChunkTable(node, chunks), static_cast<int>(node.shape.channels()),
      BatchUpdate(node, statistics, states));
  check(cudaGetLastError());
}

void combine_gradients(Stream stream, const Node& node, std::span<const PartialSums> chunks,
                       float* statistics) {
  merge_gradients<<<merge_blocks(node), merge_threads, 0, stream>>>(
      ChunkTable(node, chunks), static_cast<int>(node.shape.channels()),
      Statistics(node, statistics));
  check(cudaGetLastError());
}

std::unique_ptr<Kernel> make_whole_batch_norm(const Site& site) {
  return std::make_unique<BatchNorm>(site);
}

}  // namespace regatta::cuda
