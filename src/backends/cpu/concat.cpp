// Concatenation along channels. Where a part begins at a whole block its blocks are copied;
// elsewhere its channels change lanes.
#include <algorithm>
#include <vector>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/placement.h"

namespace regatta::cpu {
namespace {

// Channels of one part that lie in one block on both sides.
struct Run {
  std::size_t part;
  std::int64_t part_at, whole_at;  // offsets in one sample
  std::int64_t part_lane, whole_lane, lanes;
};

// Moves a run of one sample. What is written from its first lane on is also cleared to the end of
// its block; runs that follow fill it, and the last block keeps zeros.
template <class T>
void move(const Run& run, std::int64_t pixels, std::int64_t block, const T* from,
          std::int64_t to_lane, T* to, bool add) {
  if (run.lanes == block) {
    const std::int64_t count = pixels * block;
    if (add)
      add_to(to, from, static_cast<std::size_t>(count));
    else
      std::copy_n(from, count, to);
    return;
  }
  const bool clear = to_lane == 0 && !add;
  for (std::int64_t p = 0; p < pixels; ++p, from += block, to += block) {
    for (std::int64_t l = 0; l < run.lanes; ++l)
      to[l] = add ? from_float<T>(to_float(to[l]) + to_float(from[l])) : from[l];
    if (clear) std::fill(to + run.lanes, to + block, T{});
  }
}

template <class T>
class Concat : public Kernel {
 public:
  explicit Concat(const Site& site)
      : n_(site.n), whole_(site.node.shape, site.layout()), parts_(site.node.inputs.size()) {
    std::int64_t channel = 0;  // of the whole
    for (std::size_t i = 0; i < parts_; ++i) {
      const Placement part(site.input(i).shape, site.input_layout(i));
      part_size_.push_back(part.size());
      // A vector is a plane of its features: one run of them.
      if (site.node.shape.rank() == 1) {
        runs_.push_back({i, 0, channel, 0, 0, part.channels});
        channel += part.channels;
        continue;
      }
      for (std::int64_t c = 0; c < part.channels;) {
        const std::int64_t part_lane = c % part.block, whole_lane = channel % part.block;
        const std::int64_t lanes =
            std::min({part.block - part_lane, part.block - whole_lane, part.channels - c});
        runs_.push_back({i, part.base(c), whole_.base(channel), part_lane, whole_lane, lanes});
        c += lanes;
        channel += lanes;
      }
    }
    vectors_ = site.node.shape.rank() == 1;
  }

  void run(Work work, const Operands& o, std::byte*) override {
    parallel_for(n_, whole_.size(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) run_sample(work, o, sample);
    });
  }

 private:
  void run_sample(Work work, const Operands& o, std::int64_t sample) const {
    for (const Run& run : runs_) {
      // Several parts may be one value: the first writes its gradient, the others add.
      const std::int64_t part = sample * part_size_[run.part] + run.part_at;
      const std::int64_t whole = sample * whole_.size() + run.whole_at;
      const std::int64_t block = vectors_ ? run.lanes : whole_.block;
      if (work == Work::forward) {
        move(run, whole_.pixels, block, values_of<T>(o.inputs[run.part]) + part, run.whole_lane,
             values_of<T>(o.output) + whole, false);
        continue;
      }
      const GradientMode mode = o.gradient_modes[run.part];
      if (mode != GradientMode::none)
        move(run, whole_.pixels, block, values_of<T>(o.output_gradient) + whole, run.part_lane,
             values_of<T>(o.input_gradients[run.part]) + part, mode == GradientMode::add);
    }
  }

  std::int64_t n_;
  Placement whole_;
  std::size_t parts_;
  bool vectors_ = false;
  std::vector<std::int64_t> part_size_;
  std::vector<Run> runs_;
};

}  // namespace

std::unique_ptr<Kernel> make_concat(const Site& site) {
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<Concat<T>>(site);
  });
}

}  // namespace regatta::cpu
