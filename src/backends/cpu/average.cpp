// Average pooling and adaptive pooling: sums over bins, a whole block of channels at a time.
#include <algorithm>

#include "backends/cpu/kernel.h"
#include "backends/cpu/vector.h"
#include "ops/bins.h"

namespace regatta::cpu {
namespace {

// One block of channels of one sample.
template <int LANES>
REGATTA_INLINE void average_block(const Bins& bins, std::int64_t in_width, const float* in,
                                  float* out) {
  for (const Bin& row : bins.rows)
    for (const Bin& column : bins.columns) {
      // Bins may be whole images, so rows are summed in float and added up in double.
      double total[LANES] = {};
      for (std::int64_t y = row.begin; y < row.end; ++y) {
        float sum[LANES] = {};
        const float* pixel = in + (y * in_width + column.begin) * LANES;
        for (std::int64_t x = column.begin; x < column.end; ++x, pixel += LANES)
          for (int l = 0; l < LANES; ++l) sum[l] += pixel[l];
        for (int l = 0; l < LANES; ++l) total[l] += sum[l];
      }
      const double share = 1.0 / static_cast<double>(row.count * column.count);
      for (int l = 0; l < LANES; ++l) out[l] = static_cast<float>(total[l] * share);
      out += LANES;
    }
}

template <int LANES>
REGATTA_INLINE void spread_block(const Bins& bins, std::int64_t in_width, const float* out_gradient,
                                 float* in_gradient) {
  for (const Bin& row : bins.rows)
    for (const Bin& column : bins.columns) {
      const float share = 1.0f / static_cast<float>(row.count * column.count);
      float part[LANES];
      for (int l = 0; l < LANES; ++l) part[l] = out_gradient[l] * share;
      for (std::int64_t y = row.begin; y < row.end; ++y) {
        float* pixel = in_gradient + (y * in_width + column.begin) * LANES;
        for (std::int64_t x = column.begin; x < column.end; ++x, pixel += LANES)
          for (int l = 0; l < LANES; ++l) pixel[l] += part[l];
      }
      out_gradient += LANES;
    }
}

REGATTA_CLONES void average(const Bins& bins, std::int64_t in_width, std::int64_t lanes,
                            const float* in, float* out) {
  if (lanes == 16)
    average_block<16>(bins, in_width, in, out);
  else
    average_block<8>(bins, in_width, in, out);
}

REGATTA_CLONES void spread(const Bins& bins, std::int64_t in_width, std::int64_t lanes,
                           const float* out_gradient, float* in_gradient) {
  if (lanes == 16)
    spread_block<16>(bins, in_width, out_gradient, in_gradient);
  else
    spread_block<8>(bins, in_width, out_gradient, in_gradient);
}

class Average : public Kernel {
 public:
  Average(const Site& site, Bins bins)
      : bins_(std::move(bins)),
        width_(site.input(0).shape.width()),
        lanes_(channel_block(site.layout())) {
    const Shape& in = site.input(0).shape;
    in_block_ = in.height() * in.width() * lanes_;
    out_block_ = site.node.shape.height() * site.node.shape.width() * lanes_;
    blocks_ = site.n * ((in.channels() + lanes_ - 1) / lanes_);
  }

  // Channels that only pad are averaged like the others: zeros stay zeros.
  void run(Work work, const Operands& o, std::byte*) override {
    if (work == Work::forward) {
      for (std::int64_t b = 0; b < blocks_; ++b)
        average(bins_, width_, lanes_, o.inputs[0] + b * in_block_, o.output + b * out_block_);
      return;
    }
    if (o.gradient_modes[0] == GradientMode::none) return;
    if (o.gradient_modes[0] == GradientMode::write)
      std::fill_n(o.input_gradients[0], blocks_ * in_block_, 0.0f);
    for (std::int64_t b = 0; b < blocks_; ++b)
      spread(bins_, width_, lanes_, o.output_gradient + b * out_block_,
             o.input_gradients[0] + b * in_block_);
  }

 private:
  Bins bins_;
  std::int64_t width_, lanes_, in_block_ = 0, out_block_ = 0, blocks_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_average_pool(const Site& site) {
  return std::make_unique<Average>(site, average_pool_bins(site.node, site.input(0).shape));
}
std::unique_ptr<Kernel> make_adaptive_average_pool(const Site& site) {
  return std::make_unique<Average>(site,
                                   adaptive_average_pool_bins(site.node, site.input(0).shape));
}

}  // namespace regatta::cpu
