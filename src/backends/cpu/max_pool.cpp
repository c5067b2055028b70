// Max pooling through oneDNN; which input won travels to backward in the stash.
#include <atomic>
#include <cmath>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"
#include "base/error.h"
#include "ops/window.h"

namespace regatta::cpu {
namespace {

using dnnl::memory;

template <class T>
REGATTA_INLINE bool any_nan(const T* values, std::int64_t count) {
  int found = 0;
  for (std::int64_t i = 0; i < count; ++i) found |= to_float(values[i]) != to_float(values[i]);
  return found != 0;
}
REGATTA_CLONES bool has_nan(const float* values, std::int64_t count) {
  return any_nan(values, count);
}
REGATTA_CLONES bool has_nan(const Bfloat16* values, std::int64_t count) {
  return any_nan(values, count);
}

template <class T>
class MaxPool : public Kernel {
 public:
  explicit MaxPool(const Site& site)
      : window_(window_of(site.node, 0)),
        in_(site.input(0).shape),
        out_(site.node.shape),
        lanes_(channel_block(site.layout())),
        blocks_(site.n * ((in_.channels() + lanes_ - 1) / lanes_)) {
    const Shape &in = in_, &out = out_;
    const Window& w = window_;
    // Channels that only pad are pooled like the others: zeros stay zeros.
    const std::int64_t channels = site.elements() / (out.height() * out.width());
    const memory::data_type type = data_type(site.dtype());
    const memory::desc source({site.n, channels, in.height(), in.width()}, type,
                              data_tag(site.input_layout(0)));
    const memory::desc target({site.n, channels, out.height(), out.width()}, type,
                              data_tag(site.layout()));
    const memory::dims strides{w.stride.height, w.stride.width},
        kernel{w.kernel.height, w.kernel.width},
        dilation{w.dilation.height - 1, w.dilation.width - 1},
        before{w.padding.height, w.padding.width},
        after{
            (out.height() - 1) * w.stride.height + w.span().height - in.height() - w.padding.height,
            (out.width() - 1) * w.stride.width + w.span().width - in.width() - w.padding.width};
    const auto forward = describe<PoolForward>(user_scratchpad(), dnnl::prop_kind::forward_training,
                                               dnnl::algorithm::pooling_max, source, target,
                                               strides, kernel, dilation, before, after);
    const auto backward =
        describe_backward<PoolBackward>(user_scratchpad(), forward, dnnl::algorithm::pooling_max,
                                        source, target, strides, kernel, dilation, before, after);
    const auto room =
        static_cast<std::size_t>(site.node.op->stash_bytes(site.node, site.elements() * site.n));
    if (forward.workspace_desc().get_size() > room)
      throw Error("max_pool '" + site.node.name +
                  "': oneDNN keeps more than the plan has room for");
    forward_ = Launch(forward);
    forward_.argument(DNNL_ARG_SRC, source);
    forward_.argument(DNNL_ARG_DST, target);
    forward_.argument(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    forward_.argument(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    backward_ = Launch(backward);
    backward_.argument(DNNL_ARG_DIFF_DST, target);
    backward_.argument(DNNL_ARG_DIFF_SRC, source);
    backward_.argument(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    backward_.argument(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    source_bytes_ = source.get_size();
    stash_bytes_ = forward.workspace_desc().get_size();
    library_scratch_ =
        std::max(forward.scratchpad_desc().get_size(), backward.scratchpad_desc().get_size());
  }

  std::size_t scratch_bytes() const override {
    return (source_bytes_ + 63) / 64 * 64 + (stash_bytes_ + 63) / 64 * 64 + library_scratch_;
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    std::byte* own_stash = scratch + (source_bytes_ + 63) / 64 * 64;
    std::byte* library = own_stash + (stash_bytes_ + 63) / 64 * 64;
    if (work == Work::forward) {
      // Evaluation keeps nothing, so the winners go to scratch.
      forward_({o.inputs[0], o.output, o.stash ? o.stash : own_stash, library});
      // oneDNN passes NaNs over: a network that has diverged would go on with a loss that looks
      // fine.
      const std::int64_t block = in_.height() * in_.width() * lanes_;
      std::atomic<bool> found = false;
      parallel_for(blocks_, block, [&](std::int64_t begin, std::int64_t end) {
        if (has_nan(values_of<T>(o.inputs[0]) + begin * block, (end - begin) * block)) found = true;
      });
      if (found) show_nans(o);
    } else if (o.gradient_modes[0] == GradientMode::write) {
      backward_({o.output_gradient, o.input_gradients[0], o.stash, library});
    } else if (o.gradient_modes[0] == GradientMode::add) {
      auto* own = reinterpret_cast<T*>(scratch);
      backward_({o.output_gradient, own, o.stash, library});
      add_to(values_of<T>(o.input_gradients[0]), own, source_bytes_ / sizeof(T));
    }
  }

 private:
  void show_nans(const Operands& o) const {
    T* target = values_of<T>(o.output);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const T* source = values_of<T>(o.inputs[0]) + block * in_.height() * in_.width() * lanes_;
      for (std::int64_t row = 0; row < out_.height(); ++row)
        for (std::int64_t column = 0; column < out_.width(); ++column, target += lanes_)
          window_.for_each_pixel(in_, row, column, [&](std::int64_t y, std::int64_t x, auto) {
            const T* values = source + (y * in_.width() + x) * lanes_;
            for (std::int64_t l = 0; l < lanes_; ++l)
              if (std::isnan(to_float(values[l]))) target[l] = values[l];
          });
    }
  }

  Window window_;
  Shape in_, out_;
  std::int64_t lanes_, blocks_;
  Launch forward_, backward_;
  std::size_t source_bytes_ = 0, stash_bytes_ = 0, library_scratch_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_max_pool(const Site& site) {
  if (site.planar()) return make_halving_pool(site);
  return with_type(site.dtype(), [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<MaxPool<T>>(site);
  });
}

}  // namespace regatta::cpu
