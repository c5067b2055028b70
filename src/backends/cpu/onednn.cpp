#include "backends/cpu/onednn.h"

#include "backends/cpu/processor.h"
#include "base/error.h"

namespace regatta::cpu {

dnnl::engine& engine() {
  static dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}

dnnl::stream& stream() {
  thread_local dnnl::stream mine(engine());
  return mine;
}

void prepare_onednn() {
  static const bool done = [] {
    if (announces_amx_without_tiles()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
    // A resnet50 cut into operators has some 300 primitives per chunk size.
    dnnl::set_primitive_cache_capacity(8192);
    return true;
  }();
  (void)done;
}

dnnl::memory::format_tag data_tag(Layout layout) {
  using tag = dnnl::memory::format_tag;
  switch (layout) {
    case Layout::nchw:
      return tag::nchw;
    case Layout::nhwc:
      return tag::nhwc;
    case Layout::blocked8:
      return tag::nChw8c;
    case Layout::blocked16:
      return tag::nChw16c;
  }
  throw Error("unknown layout");
}

dnnl::memory::data_type data_type(Dtype dtype) {
  if (dtype == Dtype::f32) return dnnl::memory::data_type::f32;
  if (dtype == Dtype::bf16) return dnnl::memory::data_type::bf16;
  throw Error("oneDNN is given f32 and bf16 alone");
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void Launch::argument(int index, const dnnl::memory::desc& desc) {
  memories_.emplace_back(desc, engine(), nullptr);
  arguments_.push_back({index, memories_.back().get()});
}

void Launch::operator()(std::initializer_list<const void*> pointers) {
  if (!primitive_.get(true)) primitive_ = dnnl::primitive(described_.get());
  std::size_t i = 0;
  for (const void* pointer : pointers) {
    dnnl::memory& memory = memories_[i++];
    // Version 2 writes zeros into the padding whenever a handle is set: only when it changes.
    if (memory.get_data_handle() != pointer) memory.set_data_handle(const_cast<void*>(pointer));
  }
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream().get(), static_cast<int>(arguments_.size()),
                             arguments_.data()),
      "oneDNN could not run a primitive");
}

}  // namespace regatta::cpu
