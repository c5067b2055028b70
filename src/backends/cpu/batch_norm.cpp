#include "backends/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

std::size_t padded(std::int64_t channels) {
  return static_cast<std::size_t>((channels + 15) / 16 * 16);
}

// Rows of the merged statistics, each `padded(channels)` long.
struct Statistics {
  Statistics(const Node& node, float* rows) : row(padded(node.shape.channels())), data(rows) {}
  float* mean() const { return data; }
  float* inverse_deviation() const { return data + row; }
  float* mean_gradient() const { return data + 2 * row; }
  float* mean_product() const { return data + 3 * row; }
  std::size_t row;
  float* data;
};

// Samples x blocks of channels x pixels x lanes. Vectors are one pixel whose channels lie as lanes.
struct View {
  std::int64_t samples, blocks, pixels, lanes;
  std::int64_t sample_stride, block_stride, pixel_stride;
};

struct BlockSums {
  void add(const BlockSums& other) {
    for (int l = 0; l < 16; ++l) {
      sums[l] += other.sums[l];
      products[l] += other.products[l];
    }
  }
  double sums[16] = {}, products[16] = {};
};

// What each channel of a block multiplies and adds; zero for channels that only pad.
struct Coefficients {
  const float *scale, *shift;
};

// One block's loops; LANES is 8 or 16, or 0 when only `view.lanes` knows.
template <int LANES>
REGATTA_INLINE void block_sums(const View& v, const float* x, double* sums, double* squares) {
  const std::int64_t lanes = LANES ? LANES : v.lanes;
  double s[16] = {}, q[16] = {};
  for (std::int64_t n = 0; n < v.samples; ++n) {
    const float* row = x + n * v.sample_stride;
    for (std::int64_t p = 0; p < v.pixels; ++p, row += v.pixel_stride)
      for (std::int64_t l = 0; l < lanes; ++l) {
        const double value = row[l];
        s[l] += value;
        q[l] += value * value;
      }
  }
  for (std::int64_t l = 0; l < lanes; ++l) {
    sums[l] = s[l];
    squares[l] = q[l];
  }
}

template <int LANES, bool RELU, bool RESIDUAL>
REGATTA_INLINE void block_normalise(const View& v, const float* x, const float* residual, float* y,
                                    const Coefficients& c) {
  const std::int64_t lanes = LANES ? LANES : v.lanes;
  for (std::int64_t n = 0; n < v.samples; ++n) {
    std::int64_t at = n * v.sample_stride;
    for (std::int64_t p = 0; p < v.pixels; ++p, at += v.pixel_stride)
      for (std::int64_t l = 0; l < lanes; ++l) {
        float value = x[at + l] * c.scale[l] + c.shift[l];
        if (RESIDUAL) value += residual[at + l];
        y[at + l] = RELU && value < 0 ? 0 : value;
      }
  }
}

template <int LANES, bool RELU>
REGATTA_INLINE void block_gradient_sums(const View& v, const float* x, const float* y,
                                        const float* dy, const float* mean, double* sums,
                                        double* products) {
  const std::int64_t lanes = LANES ? LANES : v.lanes;
  double s[16] = {}, q[16] = {};
  for (std::int64_t n = 0; n < v.samples; ++n) {
    std::int64_t at = n * v.sample_stride;
    for (std::int64_t p = 0; p < v.pixels; ++p, at += v.pixel_stride)
      for (std::int64_t l = 0; l < lanes; ++l) {
        const double dz = RELU && y[at + l] <= 0 ? 0.0 : static_cast<double>(dy[at + l]);
        s[l] += dz;
        q[l] += dz * (static_cast<double>(x[at + l]) - static_cast<double>(mean[l]));
      }
  }
  for (std::int64_t l = 0; l < lanes; ++l) {
    sums[l] = s[l];
    products[l] = q[l];
  }
}

struct GradientCoefficients {
  const float *mean, *scale, *offset, *slope;  // dx = scale * dz - offset - (x - mean) * slope
};

template <int LANES, bool RELU, GradientMode INPUT, GradientMode RESIDUAL>
REGATTA_INLINE void block_gradient_apply(const View& v, const float* x, const float* y,
                                         const float* dy, float* dx, float* dr,
                                         const GradientCoefficients& c) {
  const std::int64_t lanes = LANES ? LANES : v.lanes;
  for (std::int64_t n = 0; n < v.samples; ++n) {
    std::int64_t at = n * v.sample_stride;
    for (std::int64_t p = 0; p < v.pixels; ++p, at += v.pixel_stride)
      for (std::int64_t l = 0; l < lanes; ++l) {
        const float dz = RELU && y[at + l] <= 0 ? 0 : dy[at + l];
        const float g = c.scale[l] * dz - c.offset[l] - (x[at + l] - c.mean[l]) * c.slope[l];
        if (INPUT == GradientMode::write) dx[at + l] = g;
        if (INPUT == GradientMode::add) dx[at + l] += g;
        if (RESIDUAL == GradientMode::write) dr[at + l] = dz;
        if (RESIDUAL == GradientMode::add) dr[at + l] += dz;
      }
  }
}

// The clones: each picks the loop for the view's lanes and the operator's options.

template <class Body>
REGATTA_INLINE void with_lanes(const View& v, const Body& body) {
  if (v.lanes == 16)
    body.template operator()<16>();
  else if (v.lanes == 8)
    body.template operator()<8>();
  else
    body.template operator()<0>();
}

REGATTA_CLONES void sums_of_block(const View& v, const float* x, double* sums, double* squares) {
  with_lanes(
      v, [&]<int LANES>()
             __attribute__((always_inline)) { block_sums<LANES>(v, x, sums, squares); });
}

REGATTA_CLONES void normalise_block(const View& v, const float* x, const float* residual, float* y,
                                    const Coefficients& c, bool relu) {
  with_lanes(
      v, [&]<int LANES>() __attribute__((always_inline)) {
        if (relu && residual)
          block_normalise<LANES, true, true>(v, x, residual, y, c);
        else if (relu)
          block_normalise<LANES, true, false>(v, x, residual, y, c);
        else if (residual)
          block_normalise<LANES, false, true>(v, x, residual, y, c);
        else
          block_normalise<LANES, false, false>(v, x, residual, y, c);
      });
}

REGATTA_CLONES void gradient_sums_of_block(const View& v, const float* x, const float* y,
                                           const float* dy, const float* mean, double* sums,
                                           double* products, bool relu) {
  with_lanes(
      v, [&]<int LANES>() __attribute__((always_inline)) {
        if (relu)
          block_gradient_sums<LANES, true>(v, x, y, dy, mean, sums, products);
        else
          block_gradient_sums<LANES, false>(v, x, y, dy, mean, sums, products);
      });
}

template <bool RELU, GradientMode INPUT>
REGATTA_INLINE void apply_with_residual(const View& v, const float* x, const float* y,
                                        const float* dy, float* dx, float* dr,
                                        const GradientCoefficients& c, GradientMode residual) {
  with_lanes(
      v, [&]<int LANES>() __attribute__((always_inline)) {
        if (residual == GradientMode::none)
          block_gradient_apply<LANES, RELU, INPUT, GradientMode::none>(v, x, y, dy, dx, dr, c);
        else if (residual == GradientMode::write)
          block_gradient_apply<LANES, RELU, INPUT, GradientMode::write>(v, x, y, dy, dx, dr, c);
        else
          block_gradient_apply<LANES, RELU, INPUT, GradientMode::add>(v, x, y, dy, dx, dr, c);
      });
}

REGATTA_CLONES void gradient_apply_block(const View& v, const float* x, const float* y,
                                         const float* dy, float* dx, float* dr,
                                         const GradientCoefficients& c, bool relu,
                                         GradientMode input, GradientMode residual) {
  using enum GradientMode;
  if (relu && input == write)
    apply_with_residual<true, write>(v, x, y, dy, dx, dr, c, residual);
  else if (relu && input == add)
    apply_with_residual<true, add>(v, x, y, dy, dx, dr, c, residual);
  else if (relu)
    apply_with_residual<true, none>(v, x, y, dy, dx, dr, c, residual);
  else if (input == write)
    apply_with_residual<false, write>(v, x, y, dy, dx, dr, c, residual);
  else if (input == add)
    apply_with_residual<false, add>(v, x, y, dy, dx, dr, c, residual);
  else
    apply_with_residual<false, none>(v, x, y, dy, dx, dr, c, residual);
}

class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const Site& site)
      : node_(site.node),
        channels_(site.node.shape.channels()),
        row_(padded(channels_)),
        relu_(site.node.attributes.flag("relu")),
        residual_(site.node.inputs.size() == 2) {
    const Shape& shape = site.node.shape;
    const std::int64_t block = channel_block(site.layout());
    const std::int64_t pixels = shape.height() * shape.width();
    if (block > 1 && shape.rank() == 3) {
      const std::int64_t blocks = (channels_ + block - 1) / block;
      view_ = {site.n, blocks, pixels, block, blocks * pixels * block, pixels * block, block};
    } else {
      // Channels innermost: whole blocks of 16, then what is left.
      view_ = {site.n, (channels_ + 15) / 16, pixels, 16, channels_ * pixels, 16, channels_};
    }
    count_ = static_cast<double>(site.n * pixels);
  }

  std::size_t scratch_bytes() const override {
    return 4 * row_ * sizeof(float) + 2 * row_ * sizeof(double);
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    auto* own_sums = reinterpret_cast<double*>(scratch);
    auto* rows = reinterpret_cast<float*>(own_sums + 2 * row_);
    switch (work) {
      case Work::statistics:
        statistics(o, o.partials);
        break;
      case Work::normalise:
        normalise(o, rows);
        break;
      case Work::forward:
        if (o.pass == Pass::train) {
          statistics(o, own_sums);
          const PartialSums whole{own_sums, count_};
          combine_statistics(node_, {&whole, 1}, o.statistics, o.states);
        }
        normalise(o, rows);
        break;
      case Work::gradient_sums:
        gradient_sums(o, o.partials);
        break;
      case Work::gradient_apply:
        gradient_apply(o, rows);
        break;
      case Work::backward: {
        gradient_sums(o, own_sums);
        const PartialSums whole{own_sums, count_};
        combine_gradients(node_, {&whole, 1}, o.statistics);
        gradient_apply(o, rows);
        break;
      }
    }
  }

 private:
  // One block of channels, in the samples of one part of the team.
  View view_of(std::int64_t block, int part, int parts) const {
    View view = view_;
    const bool strided = view_.pixel_stride == channels_ && view_.block_stride == 16;
    if (strided) view.lanes = std::min<std::int64_t>(16, channels_ - block * view_.lanes);
    view.samples = view_.samples * (part + 1) / parts - view_.samples * part / parts;
    return view;
  }
  std::int64_t offset_of(std::int64_t block, int part, int parts) const {
    return block * view_.block_stride + view_.samples * part / parts * view_.sample_stride;
  }

  // Calls body(view of one block, offset of its first value, its first channel), for every block.
  // The team's threads share the blocks, or the samples where blocks are too few.
  template <class Body>
  void for_each_block(const Body& body) const {
    const int parts = parts_of(view_.samples, elements());
    if (view_.blocks >= parts) {
      parallel_for(view_.blocks, elements_of_block(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b)
          body(view_of(b, 0, 1), offset_of(b, 0, 1), static_cast<std::size_t>(b * view_.lanes));
      });
      return;
    }
    parallel_parts(parts, [&](int part) {
      for (std::int64_t b = 0; b < view_.blocks; ++b)
        body(view_of(b, part, parts), offset_of(b, part, parts),
             static_cast<std::size_t>(b * view_.lanes));
    });
  }

  // For every block: sum(view, offset, channel, sums, products) of each part's samples, then
  // give(view, channel, sums, products) once, with the parts added in their order.
  template <class Sum, class Give>
  void for_each_sum(const Sum& sum, const Give& give) const {
    const int parts = parts_of(view_.samples, elements());
    if (view_.blocks >= parts) {
      for_each_block([&](const View& v, std::int64_t at, std::size_t c) {
        BlockSums own;
        sum(v, at, c, own.sums, own.products);
        give(v, c, own.sums, own.products);
      });
      return;
    }
    std::vector<BlockSums> partial(static_cast<std::size_t>(parts * view_.blocks));
    const auto place = [&](std::int64_t b, int part) -> BlockSums& {
      return partial[static_cast<std::size_t>(b * parts + part)];
    };
    parallel_parts(parts, [&](int part) {
      for (std::int64_t b = 0; b < view_.blocks; ++b)
        sum(view_of(b, part, parts), offset_of(b, part, parts),
            static_cast<std::size_t>(b * view_.lanes), place(b, part).sums,
            place(b, part).products);
    });
    for (std::int64_t b = 0; b < view_.blocks; ++b) {
      BlockSums& total = place(b, 0);
      for (int part = 1; part < parts; ++part) total.add(place(b, part));
      give(view_of(b, 0, 1), static_cast<std::size_t>(b * view_.lanes), total.sums, total.products);
    }
  }

  // Leaves (mean, squared deviations from it) of this chunk. Sums are taken in double, so the
  // difference below loses nothing that float values ever had.
  void statistics(const Operands& o, double* rows) const {
    for_each_sum([&](const View& v, std::int64_t at, std::size_t, double* sums,
                     double* squares) { sums_of_block(v, o.inputs[0] + at, sums, squares); },
                 [&](const View& v, std::size_t c, const double* sums, const double* squares) {
                   for (std::int64_t l = 0; l < v.lanes; ++l) {
                     const double mean = sums[l] / count_;
                     rows[c + static_cast<std::size_t>(l)] = mean;
                     rows[row_ + c + static_cast<std::size_t>(l)] =
                         std::max(0.0, squares[l] - sums[l] * mean);
                   }
                 });
  }

  void normalise(const Operands& o, float* rows) const {
    float* scale = rows;
    float* shift = rows + row_;
    std::fill_n(rows, 2 * row_, 0.0f);
    const Statistics batch(node_, o.statistics);
    const double epsilon = node_.attributes.real("epsilon", 1e-5);
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels_); ++c) {
      const bool training = o.pass == Pass::train;
      const float mean = training ? batch.mean()[c] : o.states[0][c];
      const float inverse =
          training ? batch.inverse_deviation()[c]
                   : static_cast<float>(1.0 / std::sqrt(double(o.states[1][c]) + epsilon));
      scale[c] = o.parameters[0][c] * inverse;
      shift[c] = o.parameters[1][c] - mean * scale[c];
    }
    for_each_block([&](const View& v, std::int64_t at, std::size_t c) {
      normalise_block(v, o.inputs[0] + at, residual_ ? o.inputs[1] + at : nullptr, o.output + at,
                      {scale + c, shift + c}, relu_);
    });
  }

  // Leaves this chunk's sums, and with them the gradients of weight and bias.
  void gradient_sums(const Operands& o, double* rows) const {
    const Statistics batch(node_, o.statistics);
    const auto sum = [&](const View& v, std::int64_t at, std::size_t c, double* sums,
                         double* products) {
      gradient_sums_of_block(v, o.inputs[0] + at, relu_ ? o.output + at : nullptr,
                             o.output_gradient + at, batch.mean() + c, sums, products, relu_);
    };
    for_each_sum(
        sum, [&](const View& v, std::size_t c, const double* sums, const double* products) {
          for (std::int64_t l = 0; l < v.lanes; ++l) {
            const std::size_t channel = c + static_cast<std::size_t>(l);
            rows[channel] = sums[l];
            rows[row_ + channel] = products[l];
            if (channel >= static_cast<std::size_t>(channels_)) continue;
            const auto weight =
                static_cast<float>(products[l] * double(batch.inverse_deviation()[channel]));
            const auto bias = static_cast<float>(sums[l]);
            float& weight_slot = o.parameter_gradients[0][channel];
            float& bias_slot = o.parameter_gradients[1][channel];
            weight_slot = o.add_parameter_gradients ? weight_slot + weight : weight;
            bias_slot = o.add_parameter_gradients ? bias_slot + bias : bias;
          }
        });
  }

  void gradient_apply(const Operands& o, float* rows) const {
    const Statistics batch(node_, o.statistics);
    std::fill_n(rows, 4 * row_, 0.0f);
    float *mean = rows, *scale = rows + row_, *offset = rows + 2 * row_, *slope = rows + 3 * row_;
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels_); ++c) {
      const float inverse = batch.inverse_deviation()[c];
      mean[c] = batch.mean()[c];
      scale[c] = o.parameters[0][c] * inverse;
      offset[c] = scale[c] * batch.mean_gradient()[c];
      slope[c] = scale[c] * inverse * inverse * batch.mean_product()[c];
    }
    for_each_block([&](const View& v, std::int64_t at, std::size_t c) {
      const auto shifted = [&](float* data) { return data ? data + at : nullptr; };
      gradient_apply_block(v, o.inputs[0] + at, relu_ ? o.output + at : nullptr,
                           o.output_gradient + at, shifted(o.input_gradients[0]),
                           shifted(o.input_gradients[1]),
                           {mean + c, scale + c, offset + c, slope + c}, relu_, o.gradient_modes[0],
                           o.gradient_modes[1]);
    });
  }

  std::int64_t elements_of_block() const { return view_.samples * view_.pixels * view_.lanes; }
  std::int64_t elements() const {  // of a sample
    return view_.blocks * view_.pixels * view_.lanes;
  }

  const Node& node_;
  std::int64_t channels_;
  std::size_t row_;
  bool relu_, residual_;
  View view_{};
  double count_ = 0;
};

}  // namespace

void combine_statistics(const Node& node, std::span<const PartialSums> chunks, float* statistics,
                        std::span<float* const> states) {
  const Statistics batch(node, statistics);
  const double epsilon = node.attributes.real("epsilon", 1e-5);
  const auto momentum = static_cast<float>(node.attributes.real("momentum", 0.1));
  for (std::size_t c = 0; c < static_cast<std::size_t>(node.shape.channels()); ++c) {
    double count = 0, mean = 0, deviations = 0;
    for (const PartialSums& chunk : chunks) {
      if (chunk.count == 0) continue;
      const double total = count + chunk.count;
      const double distance = chunk.rows[c] - mean;
      mean += distance * chunk.count / total;
      deviations += chunk.rows[batch.row + c] + distance * distance * count * chunk.count / total;
      count = total;
    }
    batch.mean()[c] = static_cast<float>(mean);
    batch.inverse_deviation()[c] =
        static_cast<float>(1.0 / std::sqrt(deviations / count + epsilon));
    const auto unbiased = static_cast<float>(deviations / std::max(count - 1, 1.0));
    states[0][c] += momentum * (static_cast<float>(mean) - states[0][c]);
    states[1][c] += momentum * (unbiased - states[1][c]);
  }
  states[2][0] += 1;
}

void combine_gradients(const Node& node, std::span<const PartialSums> chunks, float* statistics) {
  const Statistics batch(node, statistics);
  double count = 0;
  for (const PartialSums& chunk : chunks) count += chunk.count;
  for (std::size_t c = 0; c < static_cast<std::size_t>(node.shape.channels()); ++c) {
    double sum = 0, product = 0;
    for (const PartialSums& chunk : chunks) {
      if (chunk.count == 0) continue;
      sum += chunk.rows[c];
      product += chunk.rows[batch.row + c];
    }
    batch.mean_gradient()[c] = static_cast<float>(sum / count);
    batch.mean_product()[c] = static_cast<float>(product / count);
  }
}

std::unique_ptr<Kernel> make_whole_batch_norm(const Site& site) {
  return std::make_unique<BatchNorm>(site);
}

}  // namespace regatta::cpu
