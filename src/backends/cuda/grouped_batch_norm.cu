#include <algorithm>
#include <string>

#include "backends/cuda/grouped_batch_norm.h"
#include "backends/cuda/kernel.h"
#include "base/dtype.h"
#include "base/error.h"

namespace regatta::cuda {
namespace {

constexpr unsigned threads = 64;

unsigned blocks_of(const Node& node) {
  return (static_cast<unsigned>(node.shape.channels()) + threads - 1) / threads;
}

// From a group's mean and squared deviations to what its values are normalised by.
__global__ void finish_statistics(const double* sums, float* statistics, int channels,
                                  std::size_t row, double count, double epsilon) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= channels) return;
  statistics[c] = static_cast<float>(sums[c]);
  statistics[row + c] = static_cast<float>(1.0 / sqrt(sums[row + c] / count + epsilon));
}

// Travels as a kernel argument, so that a captured graph carries it along.
struct GroupTable {
  static constexpr std::size_t most = 224;
  int count = 0;
  const double* rows[most];
  std::int64_t samples[most];

  GroupTable(const Node& node, std::span<const GroupSums> chunks) {
    for (const GroupSums& chunk : chunks) {
      if (chunk.samples == 0) continue;
      if (count == static_cast<int>(most))
        throw InputError("batch_norm '" + node.name + "': a GPU merges at most " +
                         std::to_string(most) + " chunks: use fewer --chunks");
      rows[count] = chunk.rows;
      samples[count] = chunk.samples;
      ++count;
    }
  }
};

struct Running {
  float *mean, *variance, *batches;
  float momentum;
};

__global__ void track(GroupTable chunks, std::int64_t group, double pixels, int channels,
                      std::size_t row, Running running) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= channels) return;
  double count = 0, means = 0, variances = 0;
  for (int i = 0; i < chunks.count; ++i) {
    const double* rows = chunks.rows[i];
    for (std::int64_t left = chunks.samples[i]; left > 0; left -= group) {
      const double n = static_cast<double>(left < group ? left : group) * pixels;
      count += n;
      means += n * rows[c];
      variances += n * rows[row + c] / fmax(n - 1, 1.0);
      rows += partials_rows * row;
    }
  }
  running.mean[c] += running.momentum * (static_cast<float>(means / count) - running.mean[c]);
  running.variance[c] +=
      running.momentum * (static_cast<float>(variances / count) - running.variance[c]);
  if (c == 0) running.batches[0] += 1;
}

// Runs the kernels of a whole batch on one group of samples after the other.
class GroupedBatchNorm : public Kernel {
 public:
  explicit GroupedBatchNorm(const Site& site)
      : tools_(site.tools),
        node_(site.node),
        group_(std::min(statistics_group(site.node), site.n)),
        samples_(site.n),
        sample_bytes_(site.node.shape.elements() *
                      static_cast<std::int64_t>(dtype_bytes(site.dtype()))),
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

  std::size_t workspace_bytes() const override {
    return std::max({full_->workspace_bytes(), last_ ? last_->workspace_bytes() : 0,
                     evaluating_->workspace_bytes()});
  }

  void run(Work work, const Operands& o) override {
    if (o.pass == Pass::evaluate) {
      evaluating_->run(work, o);
      return;
    }
    for (std::int64_t first = 0; first < samples_; first += group_) {
      const std::int64_t n = std::min(group_, samples_ - first);
      Kernel& kernel = n == group_ ? *full_ : *last_;
      const Operands group = operands_of(o, first, n);
      if (work == Work::backward) {
        kernel.run(Work::backward, group);
        continue;
      }
      kernel.run(Work::statistics, group);
      const auto count = static_cast<double>(n * node_.shape.height() * node_.shape.width());
      finish_statistics<<<blocks_of(node_), threads, 0, tools_.stream>>>(
          group.partials, group.statistics, static_cast<int>(node_.shape.channels()), row_, count,
          node_.attributes.real("epsilon", 1e-5));
      kernel.run(Work::normalise, group);
    }
  }

 private:
  Operands operands_of(const Operands& chunk, std::int64_t first, std::int64_t n) const {
    Operands group = chunk;
    const std::int64_t offset = first * sample_bytes_;
    const auto number = static_cast<std::size_t>(first / group_);
    // Pointers are to floats whatever the values are.
    const auto move_read = [&](const float*& data) {
      if (data)
        data = reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(data) + offset);
    };
    const auto move = [&](float*& data) {
      if (data) data = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(data) + offset);
    };
    group.n = n;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      move_read(group.inputs[i]);
      move(group.input_gradients[i]);
    }
    move(group.output);
    move_read(group.output_gradient);
    group.statistics += number * statistics_rows * row_;
    if (group.partials) group.partials += number * partials_rows * row_;
    group.add_parameter_gradients |= first > 0;
    return group;
  }

  const Tools& tools_;
  const Node& node_;
  std::int64_t group_, samples_, sample_bytes_;
  std::size_t row_;
  std::unique_ptr<Kernel> full_, last_, evaluating_;  // of a group, the short last one, the chunk
};

}  // namespace

void track_statistics(Stream stream, const Node& node, std::span<const GroupSums> chunks,
                      std::span<float* const> states) {
  track<<<blocks_of(node), threads, 0, stream>>>(
      GroupTable(node, chunks), statistics_group(node),
      static_cast<double>(node.shape.height() * node.shape.width()),
      static_cast<int>(node.shape.channels()), padded_channels(node.shape.channels()),
      Running{states[0], states[1], states[2],
              static_cast<float>(node.attributes.real("momentum", 0.1))});
  check(cudaGetLastError());
}

std::unique_ptr<Kernel> make_batch_norm(const Site& site) {
  if (statistics_group(site.node) > 0) return std::make_unique<GroupedBatchNorm>(site);
  return make_whole_batch_norm(site);
}

}  // namespace regatta::cuda
