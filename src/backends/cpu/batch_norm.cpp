#include "backends/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/batch_norm_loops.h"
#include "backends/cpu/bfloat16.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

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

ChannelBlocks channel_blocks(const Site& site) {
  const Shape& shape = site.node.shape;
  const std::int64_t channels = shape.channels(), pixels = shape.height() * shape.width();
  const std::int64_t block = channel_block(site.layout());
  if (block > 1 && shape.rank() == 3) {
    const std::int64_t blocks = (channels + block - 1) / block;
    return {.samples = site.n,
            .blocks = blocks,
            .pixels = pixels,
            .lanes = block,
            .last_lanes = block,
            .sample_stride = blocks * pixels * block,
            .block_stride = pixels * block,
            .pixel_stride = block};
  }
  // Channels innermost: whole blocks of 16, then what is left.
  const std::int64_t blocks = (channels + 15) / 16;
  return {.samples = site.n,
          .blocks = blocks,
          .pixels = pixels,
          .lanes = 16,
          .last_lanes = channels - 16 * (blocks - 1),
          .sample_stride = channels * pixels,
          .block_stride = 16,
          .pixel_stride = channels};
}

template <class T>
class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const Site& site)
      : node_(site.node),
        channels_(static_cast<std::size_t>(site.node.shape.channels())),
        row_(padded(site.node.shape.channels())),
        relu_(site.node.attributes.flag("relu")),
        residual_(site.node.inputs.size() == 2),
        blocks_(channel_blocks(site)),
        count_(static_cast<double>(site.n * blocks_.pixels)) {}

  std::size_t scratch_bytes() const override {
    return 2 * row_ * sizeof(double) + coefficient_rows * row_ * sizeof(float);
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    auto* own_sums = reinterpret_cast<double*>(scratch);
    auto* rows = reinterpret_cast<float*>(own_sums + 2 * row_);
    const PartialSums whole{own_sums, count_};
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
          combine_statistics(node_, {&whole, 1}, o.statistics, o.states);
        }
        normalise(o, rows);
        break;
      case Work::gradient_sums:
        gradient_sums(o, o.partials, rows);
        break;
      case Work::gradient_apply:
        gradient_apply(o, rows);
        break;
      case Work::backward:
        gradient_sums(o, own_sums, rows);
        combine_gradients(node_, {&whole, 1}, o.statistics);
        gradient_apply(o, rows);
        break;
      case Work::input_gradient:
      case Work::weight_gradient:  // batch norm's backward is never split
        break;
    }
  }

 private:
  // One thread's part: some channel blocks of all samples, or all blocks of some samples.
  struct Share {
    ChannelBlocks at;
    std::int64_t first_value = 0;
    std::size_t first_channel = 0;
  };
  Share of_blocks(std::int64_t begin, std::int64_t end) const {
    Share share{blocks_, begin * blocks_.block_stride,
                static_cast<std::size_t>(begin * blocks_.lanes)};
    share.at.blocks = end - begin;
    if (end < blocks_.blocks) share.at.last_lanes = blocks_.lanes;
    return share;
  }
  Share of_samples(std::int64_t begin, std::int64_t end) const {
    Share share{blocks_, begin * blocks_.sample_stride};
    share.at.samples = end - begin;
    return share;
  }
  // Threads share the samples only where blocks of channels are too few for them.
  int parts_by_samples() const {
    const int parts = parts_of(blocks_.samples, blocks_.blocks * blocks_.pixels * blocks_.lanes);
    return blocks_.blocks >= parts ? 1 : parts;
  }
  template <class Body>
  void over_blocks(const Body& body) const {
    parallel_for(blocks_.blocks, blocks_.samples * blocks_.pixels * blocks_.lanes,
                 [&](std::int64_t begin, std::int64_t end) { body(of_blocks(begin, end)); });
  }
  template <class Body>
  void over_samples(int parts, const Body& body) const {
    parallel_parts(parts, [&](int part) {
      body(of_samples(blocks_.samples * part / parts, blocks_.samples * (part + 1) / parts), part);
    });
  }

  // body(share) for every thread's share.
  template <class Body>
  void for_each_share(const Body& body) const {
    const int parts = parts_by_samples();
    if (parts == 1)
      over_blocks(body);
    else
      over_samples(parts, [&](const Share& share, int) { body(share); });
  }

  // Leaves in two rows what add(share, first, second) adds to them, over all shares. Sums over
  // parts of the samples are added in the order of parts.
  template <class Add>
  void sum_up(double* rows, const Add& add) const {
    std::fill_n(rows, 2 * row_, 0.0);
    const int parts = parts_by_samples();
    if (parts == 1) {
      over_blocks([&](const Share& share) {
        add(share, rows + share.first_channel, rows + row_ + share.first_channel);
      });
      return;
    }
    std::vector<double> own(static_cast<std::size_t>(parts) * 2 * row_);
    over_samples(parts, [&](const Share& share, int part) {
      double* mine = own.data() + static_cast<std::size_t>(part) * 2 * row_;
      add(share, mine, mine + row_);
    });
    for (std::size_t i = 0; i < own.size(); ++i) rows[i % (2 * row_)] += own[i];
  }

  // Leaves (mean, squared deviations from it) of this chunk. The difference of large sums is taken
  // in double, so it loses nothing that float values ever had.
  void statistics(const Operands& o, double* rows) const {
    sum_up(rows, [&](const Share& share, double* sums, double* squares) {
      add_sums(share.at, values_of<T>(o.inputs[0]) + share.first_value, sums, squares);
    });
    for (std::size_t c = 0; c < row_; ++c) {
      const double sum = rows[c], mean = sum / count_;
      rows[c] = mean;
      rows[row_ + c] = std::max(0.0, rows[row_ + c] - sum * mean);
    }
  }

  // Rows by channel that passes read, zero for channels that only pad.
  static constexpr std::size_t coefficient_rows = 5;
  NormScale scale_of(const Operands& o, float* rows) const {
    float *scale = rows, *shift = rows + row_, *means = rows + 2 * row_;
    std::fill_n(rows, 3 * row_, 0.0f);
    const Statistics batch(node_, o.statistics);
    const double epsilon = node_.attributes.real("epsilon", 1e-5);
    for (std::size_t c = 0; c < channels_; ++c) {
      const bool training = o.pass == Pass::train;
      const float mean = training ? batch.mean()[c] : o.states[0][c];
      const float inverse =
          training ? batch.inverse_deviation()[c]
                   : static_cast<float>(1.0 / std::sqrt(double(o.states[1][c]) + epsilon));
      means[c] = mean;
      scale[c] = o.parameters[0][c] * inverse;
      shift[c] = o.parameters[1][c] - mean * scale[c];
    }
    return {scale, shift, means};
  }
  NormSlope slope_of(const Operands& o, const NormScale& by, float* rows) const {
    float *offset = rows + 3 * row_, *slope = rows + 4 * row_;
    std::fill_n(offset, 2 * row_, 0.0f);
    const Statistics batch(node_, o.statistics);
    for (std::size_t c = 0; c < channels_; ++c) {
      const float inverse = batch.inverse_deviation()[c];
      offset[c] = by.scale[c] * batch.mean_gradient()[c];
      slope[c] = by.scale[c] * inverse * inverse * batch.mean_product()[c];
    }
    return {offset, slope};
  }
  static NormScale from_channel(const NormScale& by, std::size_t c) {
    return {by.scale + c, by.shift + c, by.mean + c};
  }

  void normalise(const Operands& o, float* rows) const {
    const NormScale by = scale_of(o, rows);
    for_each_share([&](const Share& share) {
      const std::int64_t at = share.first_value;
      const T* residual = residual_ ? values_of<T>(o.inputs[1]) + at : nullptr;
      cpu::normalise(share.at, values_of<T>(o.inputs[0]) + at, residual,
                     values_of<T>(o.output) + at, from_channel(by, share.first_channel), relu_);
    });
  }

  // A residual is added before the relu, so only the output knows the sign then. Else the input
  // does, and the output need not be read.
  NormGradient<T> gradient_at(const Operands& o, std::int64_t at) const {
    const ReluMask mask = !relu_ ? ReluMask::none : residual_ ? ReluMask::output : ReluMask::input;
    return {values_of<T>(o.inputs[0]) + at,
            mask == ReluMask::output ? values_of<T>(o.output) + at : nullptr,
            values_of<T>(o.output_gradient) + at, mask};
  }

  // Leaves this chunk's sums, and with them the gradients of weight and bias.
  void gradient_sums(const Operands& o, double* sums, float* rows) const {
    const NormScale by = scale_of(o, rows);
    sum_up(sums, [&](const Share& share, double* own_sums, double* products) {
      add_gradient_sums(share.at, gradient_at(o, share.first_value),
                        from_channel(by, share.first_channel), own_sums, products);
    });
    const Statistics batch(node_, o.statistics);
    for (std::size_t c = 0; c < channels_; ++c) {
      const auto weight = static_cast<float>(sums[row_ + c] * double(batch.inverse_deviation()[c]));
      const auto bias = static_cast<float>(sums[c]);
      float& weight_slot = o.parameter_gradients[0][c];
      float& bias_slot = o.parameter_gradients[1][c];
      weight_slot = o.add_parameter_gradients ? weight_slot + weight : weight;
      bias_slot = o.add_parameter_gradients ? bias_slot + bias : bias;
    }
  }

  void gradient_apply(const Operands& o, float* rows) const {
    const NormScale by = scale_of(o, rows);
    const NormSlope and_by = slope_of(o, by, rows);
    for_each_share([&](const Share& share) {
      const std::size_t c = share.first_channel;
      const auto shifted = [&](float* data) {
        return data ? values_of<T>(data) + share.first_value : nullptr;
      };
      apply_gradient(share.at, gradient_at(o, share.first_value), from_channel(by, c),
                     {and_by.offset + c, and_by.slope + c}, shifted(o.input_gradients[0]),
                     o.gradient_modes[0], shifted(o.input_gradients[1]), o.gradient_modes[1]);
    });
  }

  const Node& node_;
  std::size_t channels_, row_;  // a row: channels padded to whole blocks of 16
  bool relu_, residual_;
  ChannelBlocks blocks_;
  double count_;  // values of a channel in this chunk
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
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<BatchNorm<T>>(site);
  });
}

}  // namespace regatta::cpu
