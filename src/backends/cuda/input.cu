// Stored samples, planar as the data room keeps them, become normalised values: planes, or pixels
// of channels, which may be padded with zeros.
#include <vector>

#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

struct Scaling {
  const float *factors, *offsets;  // by channel
  template <class Stored>
  __device__ float of(Stored value, std::int64_t channel) const {
    return static_cast<float>(value) * factors[channel] + offsets[channel];
  }
};

template <class Stored, class T>
struct NormalisePlanes {
  Scaling scaling;
  const Stored* samples;
  T* output;
  std::int64_t pixels, channels;
  __device__ void operator()(std::int64_t i) const {
    output[i] = from_float<T>(scaling.of(samples[i], i / pixels % channels));
  }
};

// V channels of one pixel; neighbouring threads read neighbouring bytes of each plane.
template <class Stored, class T, int V>
struct NormalisePixels {
  Scaling scaling;
  const Stored* samples;
  T* output;
  std::int64_t pixels, channels, padded_channels;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t vectors = padded_channels / V;
    const std::int64_t first = i % vectors * V, pixel = i / vectors;
    const Stored* plane = samples + pixel / pixels * pixels * channels + pixel % pixels;
    Pack<T, V> result;
    for (int v = 0; v < V; ++v) {
      const std::int64_t channel = first + v;
      result.values[v] =
          from_float<T>(channel < channels ? scaling.of(plane[channel * pixels], channel) : 0.0f);
    }
    store(output + i * V, result);
  }
};

class Input : public Kernel {
 public:
  explicit Input(const Site& site)
      : tools_(site.tools),
        n_(site.n),
        pixels_(site.node.shape.height() * site.node.shape.width()),
        channels_(site.node.shape.channels()),
        padded_channels_(input_channels(site.graph, site.settings.layout, site.settings.precision)),
        channels_last_(site.layout() == Layout::nhwc),
        bytes_(site.settings.sample_dtype == Dtype::u8),
        output_(site.dtype()),
        table_(2 * static_cast<std::size_t>(channels_) * sizeof(float),
               "input '" + site.node.name + "'") {
    const Normalisation& by = site.settings.normalisation;
    const auto channels = static_cast<std::size_t>(channels_);
    std::vector<float> rows(2 * channels);
    for (std::size_t c = 0; c < channels; ++c) {
      rows[c] = by.scale / by.deviation[c];
      rows[channels + c] = -by.mean[c] / by.deviation[c];
    }
    check(cudaMemcpyAsync(table_.data(), rows.data(), table_.bytes(), cudaMemcpyHostToDevice,
                          tools_.stream));
    check(cudaStreamSynchronize(tools_.stream));
  }

  void run(Work, const Operands& o) override {
    with_type(output_, [&]<class T>() {
      if (bytes_)
        launch<std::uint8_t, T>(o);
      else
        launch<float, T>(o);
    });
  }

 private:
  template <class Stored, class T>
  void launch(const Operands& o) const {
    const auto* factors = reinterpret_cast<const float*>(table_.data());
    const Scaling scaling{factors, factors + channels_};
    const auto* samples = reinterpret_cast<const Stored*>(o.samples);
    auto* output = reinterpret_cast<T*>(o.output);
    const auto pixels_of = [&]<int V>() {
      for_each_index(tools_, n_ * pixels_ * (padded_channels_ / V),
                     NormalisePixels<Stored, T, V>{scaling, samples, output, pixels_, channels_,
                                                   padded_channels_});
    };
    if (!channels_last_)
      for_each_index(tools_, n_ * channels_ * pixels_,
                     NormalisePlanes<Stored, T>{scaling, samples, output, pixels_, channels_});
    else if (padded_channels_ % lanes<T> == 0)
      pixels_of.template operator()<lanes<T>>();
    else
      pixels_of.template operator()<1>();
  }

  const Tools& tools_;
  std::int64_t n_, pixels_, channels_, padded_channels_;
  bool channels_last_, bytes_;
  Dtype output_;
  DeviceMemory table_;
};

}  // namespace

std::unique_ptr<Kernel> make_input(const Site& site) { return std::make_unique<Input>(site); }

}  // namespace regatta::cuda
