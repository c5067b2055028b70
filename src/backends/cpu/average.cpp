// Average pooling and adaptive pooling: sums over bins, a whole block of channels at a time.
#include <algorithm>

#include "backends/cpu/kernel.h"
#include "backends/cpu/lanes.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"
#include "ops/bins.h"

namespace regatta::cpu {
namespace {

// One block of channels of one sample. Rows are summed before they are added up: bins may be whole
// images, and long sums lose digits.
template <int LANES>
REGATTA_INLINE void average_block(const Bins& bins, std::int64_t in_width, const float* in,
                                  float* out) {
  using Floats = typename Lanes<LANES>::Floats;
  for (const Bin& row : bins.rows)
    for (const Bin& column : bins.columns) {
      Floats total{};
      for (std::int64_t y = row.begin; y < row.end; ++y) {
        Floats sum{}, value;
        for (std::int64_t x = column.begin; x < column.end; ++x) {
          load(value, in + (y * in_width + x) * LANES);
          sum += value;
        }
        total += sum;
      }
      store(total * (1.0f / static_cast<float>(row.count * column.count)), out);
      out += LANES;
    }
}

template <int LANES>
REGATTA_INLINE void spread_block(const Bins& bins, std::int64_t in_width, const float* out_gradient,
                                 float* in_gradient) {
  using Floats = typename Lanes<LANES>::Floats;
  for (const Bin& row : bins.rows)
    for (const Bin& column : bins.columns) {
      Floats part, sum;
      load(part, out_gradient);
      part *= 1.0f / static_cast<float>(row.count * column.count);
      for (std::int64_t y = row.begin; y < row.end; ++y)
        for (std::int64_t x = column.begin; x < column.end; ++x) {
          float* target = in_gradient + (y * in_width + x) * LANES;
          load(sum, target);
          store(sum + part, target);
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
    if (work != Work::forward && o.gradient_modes[0] == GradientMode::none) return;
    parallel_for(blocks_, in_block_, [&](std::int64_t begin, std::int64_t end) {
      if (work == Work::forward) {
        for (std::int64_t b = begin; b < end; ++b)
          average(bins_, width_, lanes_, o.inputs[0] + b * in_block_, o.output + b * out_block_);
        return;
      }
      if (o.gradient_modes[0] == GradientMode::write)
        std::fill_n(o.input_gradients[0] + begin * in_block_, (end - begin) * in_block_, 0.0f);
      for (std::int64_t b = begin; b < end; ++b)
        spread(bins_, width_, lanes_, o.output_gradient + b * out_block_,
               o.input_gradients[0] + b * in_block_);
    });
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
