#include "backends/cpu/grouped_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/cpu/kernel.h"

namespace regatta::cpu {
namespace {

// Runs the kernels of a whole batch on one group of samples after the other.
class GroupedBatchNorm : public Kernel {
 public:
  explicit GroupedBatchNorm(const Site& site)
      : node_(site.node),
        group_(std::min(statistics_group(site.node), site.n)),
        sample_bytes_(site.elements() * static_cast<std::int64_t>(dtype_bytes(site.dtype()))),
        samples_(site.n),
        row_(padded_channels(site.node.shape.channels())) {
    const auto kernel_of = [&](std::int64_t n) {
      Site part = site;
      part.n = n;
      return make_whole_batch_norm(part);
    };
    full_ = kernel_of(group_);
    if (samples_ % group_ > 0) last_ = kernel_of(samples_ % group_);
    evaluating_ = kernel_of(samples_);
  }

  std::size_t scratch_bytes() const override {
    return std::max(
        {full_->scratch_bytes(), last_ ? last_->scratch_bytes() : 0, evaluating_->scratch_bytes()});
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    if (o.pass == Pass::evaluate) {
      evaluating_->run(work, o, scratch);
      return;
    }
    for (std::int64_t first = 0; first < samples_; first += group_) {
      const std::int64_t n = std::min(group_, samples_ - first);
      Kernel& kernel = n == group_ ? *full_ : *last_;
      const Operands group = operands_of(o, first, n);
      if (work == Work::backward) {
        kernel.run(Work::backward, group, scratch);
        continue;
      }
      kernel.run(Work::statistics, group, scratch);
      finish_statistics(group);
      kernel.run(Work::normalise, group, scratch);
    }
  }

 private:
  Operands operands_of(const Operands& chunk, std::int64_t first, std::int64_t n) const {
    Operands group = chunk;
    const std::int64_t offset = first * sample_bytes_;
    const auto number = static_cast<std::size_t>(first / group_);
    const auto move = [&]<class Float>(Float*& data) {
      using Byte = std::conditional_t<std::is_const_v<Float>, const std::byte, std::byte>;
      if (data) data = reinterpret_cast<Float*>(reinterpret_cast<Byte*>(data) + offset);
    };
    group.n = n;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      move(group.inputs[i]);
      move(group.input_gradients[i]);
    }
    move(group.output);
    move(group.output_gradient);
    group.statistics += number * statistics_rows * row_;
    if (group.partials) group.partials += number * partials_rows * row_;
    group.add_parameter_gradients |= first > 0;
    return group;
  }

  // From a group's mean and squared deviations to what its values are normalised by.
  void finish_statistics(const Operands& group) const {
    const double epsilon = node_.attributes.real("epsilon", 1e-5);
    const double count = static_cast<double>(group.n * node_.shape.height() * node_.shape.width());
    for (std::size_t c = 0; c < static_cast<std::size_t>(node_.shape.channels()); ++c) {
      group.statistics[c] = static_cast<float>(group.partials[c]);
      group.statistics[row_ + c] =
          static_cast<float>(1.0 / std::sqrt(group.partials[row_ + c] / count + epsilon));
    }
  }

  const Node& node_;
  std::int64_t group_, sample_bytes_, samples_;
  std::size_t row_;
  std::unique_ptr<Kernel> full_, last_, evaluating_;  // of a group, the short last one, the chunk
};

}  // namespace

void track_statistics(const Node& node, std::span<const GroupSums> chunks,
                      std::span<float* const> states) {
  const std::int64_t group = statistics_group(node);
  const auto pixels = static_cast<double>(node.shape.height() * node.shape.width());
  const auto momentum = static_cast<float>(node.attributes.real("momentum", 0.1));
  const std::size_t row = padded_channels(node.shape.channels());
  for (std::size_t c = 0; c < static_cast<std::size_t>(node.shape.channels()); ++c) {
    double count = 0, means = 0, variances = 0;
    for (const GroupSums& chunk : chunks) {
      const double* rows = chunk.rows;
      for (std::int64_t first = 0; first < chunk.samples; first += group) {
        const double n = static_cast<double>(std::min(group, chunk.samples - first)) * pixels;
        count += n;
        means += n * rows[c];
        variances += n * rows[row + c] / std::max(n - 1, 1.0);
        rows += partials_rows * row;
      }
    }
    states[0][c] += momentum * (static_cast<float>(means / count) - states[0][c]);
    states[1][c] += momentum * (static_cast<float>(variances / count) - states[1][c]);
  }
  states[2][0] += 1;
}

std::unique_ptr<Kernel> make_batch_norm(const Site& site) {
  if (statistics_group(site.node) > 0) return std::make_unique<GroupedBatchNorm>(site);
  return make_whole_batch_norm(site);
}

}  // namespace regatta::cpu
