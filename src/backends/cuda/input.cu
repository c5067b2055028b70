// Stored samples, planar as the data room keeps them, become normalised values.
#include <vector>

#include "backends/cuda/each.cuh"

namespace regatta::cuda {
namespace {

template <class Stored, class T>
struct Normalise {
  const Stored* samples;
  T* output;
  const float *factors, *offsets;  // by channel
  std::int64_t pixels, channels;
  bool channels_last;
  __device__ void operator()(std::int64_t i) const {
    std::int64_t from = i, channel = i / pixels % channels;
    if (channels_last) {
      channel = i % channels;
      const std::int64_t pixel = i / channels % pixels;
      from = (i / (channels * pixels) * channels + channel) * pixels + pixel;
    }
    output[i] =
        from_float<T>(static_cast<float>(samples[from]) * factors[channel] + offsets[channel]);
  }
};

class Input : public Kernel {
 public:
  explicit Input(const Site& site)
      : tools_(site.tools),
        count_(site.values()),
        pixels_(site.node.shape.height() * site.node.shape.width()),
        channels_(site.node.shape.channels()),
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
    for_each_index(tools_, count_,
                   Normalise<Stored, T>{reinterpret_cast<const Stored*>(o.samples),
                                        reinterpret_cast<T*>(o.output), factors,
                                        factors + channels_, pixels_, channels_, channels_last_});
  }

  const Tools& tools_;
  std::int64_t count_, pixels_, channels_;
  bool channels_last_, bytes_;
  Dtype output_;
  DeviceMemory table_;
};

}  // namespace

std::unique_ptr<Kernel> make_input(const Site& site) { return std::make_unique<Input>(site); }

}  // namespace regatta::cuda
