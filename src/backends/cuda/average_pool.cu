// The mean over bins of pixels, which average pooling and adaptive pooling place differently.
// Backward asks each input which bins it lies in, so that no two threads add to one gradient.
// Planes are images of one channel, so both layouts are samples x rows x columns x channels here.
#include <vector>

#include "backends/cuda/each.cuh"
#include "ops/bins.h"

namespace regatta::cuda {
namespace {

// Along one axis: the pixels of each bin, and the bins of each pixel, which are neighbours because
// bins begin and end in order.
struct Axis {
  const int *begins, *ends, *counts;  // by bin
  const int *first_bins, *last_bins;  // by pixel; last is one beyond
};

struct Geometry {
  int height, width, out_height, out_width, channels;
  Axis rows, columns;
};

template <class T, int V>
struct Average {
  Geometry g;
  const T* input;
  T* output;
  __device__ void operator()(std::int64_t i) const {
    const int vectors = g.channels / V, channel = static_cast<int>(i % vectors) * V;
    const std::int64_t pixel = i / vectors;
    const int column = static_cast<int>(pixel % g.out_width);
    const int row = static_cast<int>(pixel / g.out_width % g.out_height);
    const std::int64_t sample = pixel / g.out_width / g.out_height;
    float sums[V] = {};
    for (int y = g.rows.begins[row]; y < g.rows.ends[row]; ++y)
      for (int x = g.columns.begins[column]; x < g.columns.ends[column]; ++x) {
        const auto seen =
            load<V>(input + ((sample * g.height + y) * g.width + x) * g.channels + channel);
        for (int v = 0; v < V; ++v) sums[v] += to_float(seen.values[v]);
      }
    const float share = 1.0f / static_cast<float>(g.rows.counts[row] * g.columns.counts[column]);
    Pack<T, V> result;
    for (int v = 0; v < V; ++v) result.values[v] = from_float<T>(sums[v] * share);
    store(output + i * V, result);
  }
};

template <class T, int V>
struct AverageGradient {
  Geometry g;
  const T* gradient;
  T* target;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const int vectors = g.channels / V, channel = static_cast<int>(i % vectors) * V;
    const std::int64_t pixel = i / vectors;
    const int x = static_cast<int>(pixel % g.width);
    const int y = static_cast<int>(pixel / g.width % g.height);
    const std::int64_t sample = pixel / g.width / g.height;
    float sums[V] = {};
    if (add) {
      const auto before = load<V>(target + i * V);
      for (int v = 0; v < V; ++v) sums[v] = to_float(before.values[v]);
    }
    for (int row = g.rows.first_bins[y]; row < g.rows.last_bins[y]; ++row)
      for (int column = g.columns.first_bins[x]; column < g.columns.last_bins[x]; ++column) {
        const auto dy =
            load<V>(gradient + ((sample * g.out_height + row) * g.out_width + column) * g.channels +
                    channel);
        const float share =
            1.0f / static_cast<float>(g.rows.counts[row] * g.columns.counts[column]);
        for (int v = 0; v < V; ++v) sums[v] += to_float(dy.values[v]) * share;
      }
    Pack<T, V> dx;
    for (int v = 0; v < V; ++v) dx.values[v] = from_float<T>(sums[v]);
    store(target + i * V, dx);
  }
};

// An axis on the host, in the order in which Axis points into it.
std::vector<int> table_of(const std::vector<Bin>& bins, std::int64_t extent) {
  std::vector<int> table;
  for (const Bin& bin : bins) table.push_back(static_cast<int>(bin.begin));
  for (const Bin& bin : bins) table.push_back(static_cast<int>(bin.end));
  for (const Bin& bin : bins) table.push_back(static_cast<int>(bin.count));
  std::vector<int> lasts;
  for (std::int64_t pixel = 0; pixel < extent; ++pixel) {
    int first = 0, last = 0;
    for (int b = 0; b < static_cast<int>(bins.size()); ++b) {
      const Bin& bin = bins[static_cast<std::size_t>(b)];
      if (bin.begin > pixel || bin.end <= pixel) continue;
      if (last == 0) first = b;
      last = b + 1;
    }
    table.push_back(first);
    lasts.push_back(last);
  }
  table.insert(table.end(), lasts.begin(), lasts.end());
  return table;
}

Axis axis_at(const int* table, std::int64_t bins, std::int64_t extent) {
  return {table, table + bins, table + 2 * bins, table + 3 * bins, table + 3 * bins + extent};
}

class AveragePool : public Kernel {
 public:
  AveragePool(const Site& site, const Bins& bins) : tools_(site.tools), dtype_(site.dtype()) {
    const Shape& in = site.input(0).shape;
    const Shape& out = site.node.shape;
    const bool planes = site.layout() == Layout::nchw;
    samples_ = planes ? site.n * in.channels() : site.n;
    std::vector<int> tables = table_of(bins.rows, in.height());
    const std::size_t columns = tables.size();
    const std::vector<int> more = table_of(bins.columns, in.width());
    tables.insert(tables.end(), more.begin(), more.end());
    tables_ = DeviceMemory(tables.size() * sizeof(int), "pooling '" + site.node.name + "'");
    check(cudaMemcpyAsync(tables_.data(), tables.data(), tables_.bytes(), cudaMemcpyHostToDevice,
                          tools_.stream));
    check(cudaStreamSynchronize(tools_.stream));
    const auto* there = reinterpret_cast<const int*>(tables_.data());
    const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
    geometry_ = {narrow(in.height()),
                 narrow(in.width()),
                 narrow(out.height()),
                 narrow(out.width()),
                 planes ? 1 : narrow(in.channels()),
                 axis_at(there, out.height(), in.height()),
                 axis_at(there + columns, out.width(), in.width())};
  }

  void run(Work work, const Operands& o) override {
    with_type(dtype_, [&]<class T>() {
      if (geometry_.channels % lanes<T> == 0)
        launch<T, lanes<T>>(work, o);
      else
        launch<T, 1>(work, o);
    });
  }

 private:
  template <class T, int V>
  void launch(Work work, const Operands& o) const {
    const Geometry& g = geometry_;
    const std::int64_t vectors = samples_ * (g.channels / V);
    if (work == Work::forward)
      for_each_index(tools_, vectors * g.out_height * g.out_width,
                     Average<T, V>{g, reinterpret_cast<const T*>(o.inputs[0]),
                                   reinterpret_cast<T*>(o.output)});
    else if (o.gradient_modes[0] != GradientMode::none)
      for_each_index(tools_, vectors * g.height * g.width,
                     AverageGradient<T, V>{g, reinterpret_cast<const T*>(o.output_gradient),
                                           reinterpret_cast<T*>(o.input_gradients[0]),
                                           o.gradient_modes[0] == GradientMode::add});
  }

  const Tools& tools_;
  Dtype dtype_;
  std::int64_t samples_ = 0;
  DeviceMemory tables_;
  Geometry geometry_{};
};

}  // namespace

std::unique_ptr<Kernel> make_average_pool(const Site& site) {
  return std::make_unique<AveragePool>(site, average_pool_bins(site.node, site.input(0).shape));
}

std::unique_ptr<Kernel> make_adaptive_average_pool(const Site& site) {
  return std::make_unique<AveragePool>(site,
                                       adaptive_average_pool_bins(site.node, site.input(0).shape));
}

}  // namespace regatta::cuda
