#include "backends/cuda/kernel_log.h"

#if __has_include(<cupti.h>)

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "backends/cuda/libraries.h"

namespace regatta::cuda {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
constexpr std::size_t buffer_alignment = 8;  // CUPTI's own demand

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
#else
using KernelRecord = CUpti_ActivityKernel9;
#endif

// Calls that launch. Only these are noted: StarPU asks events all the time.
constexpr CUpti_CallbackId runtime_launches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000};
constexpr CUpti_CallbackId driver_launches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                                CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch};

constexpr auto mark_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// CUPTI's callbacks carry nothing that could lead to the log, and it may call them late.
struct Notes {
  std::mutex mutex;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;  // null: nobody listens
  KernelNotes notes;
  std::map<std::string, std::uint32_t, std::less<>> names;

  void add(const CUpti_Activity& record) {
    if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
      if (kernel.end == 0) return;  // it has not run yet
      const char* name = kernel.name ? kernel.name : "unknown";
      auto found = names.find(name);
      if (found == names.end()) {
        found = names.emplace(name, static_cast<std::uint32_t>(names.size())).first;
        notes.names.emplace_back(name);
      }
      notes.kernels.push_back({found->second, static_cast<std::int32_t>(kernel.deviceId),
                               kernel.correlationId, kernel.start, kernel.end});
    } else if (record.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
      const auto& launch = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
      if (launch.externalKind == mark_kind)
        notes.marks.push_back({launch.correlationId, launch.externalId});
    }
  }
};

Notes& shared_notes() {
  static auto* notes = new Notes;  // CUPTI's thread may outlive everything else
  return *notes;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
  *size = *buffer ? buffer_bytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t used) {
  Notes& shared = shared_notes();
  {
    const std::lock_guard lock(shared.mutex);
    CUpti_Activity* record = nullptr;
    while (shared.next_record && shared.next_record(buffer, used, &record) == CUPTI_SUCCESS)
      shared.add(*record);
  }
  std::free(buffer);
}

struct Library {
  void* handle = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;

  // Another major version has other records.
  bool load() {
    handle = open_library("libcupti.so." + std::to_string(CUDART_VERSION / 1000));
    return handle && find(register_callbacks, "cuptiActivityRegisterCallbacks") &&
           find(enable, "cuptiActivityEnable") && find(disable, "cuptiActivityDisable") &&
           find(flush, "cuptiActivityFlushAll") &&
           find(next_record, "cuptiActivityGetNextRecord") &&
           find(push, "cuptiActivityPushExternalCorrelationId") &&
           find(pop, "cuptiActivityPopExternalCorrelationId") &&
           find(enable_runtime, "cuptiActivityEnableRuntimeApi") &&
           find(enable_driver, "cuptiActivityEnableDriverApi") &&
           find(timestamp, "cuptiGetTimestamp") && find(result_string, "cuptiGetResultString");
  }

  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
  }

  CUptiResult begin() const {
    if (const CUptiResult code = register_callbacks(give_buffer, take_buffer)) return code;
    if (const CUptiResult code = enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return code;
    // Marks are a help, not a need: without them kernels go by their time.
    enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    for (const CUpti_CallbackId id : runtime_launches) enable_runtime(id, 1);
    for (const CUpti_CallbackId id : driver_launches) enable_driver(id, 1);
    return CUPTI_SUCCESS;
  }

  void end() const {
    for (const CUpti_CallbackId id : runtime_launches) enable_runtime(id, 0);
    for (const CUpti_CallbackId id : driver_launches) enable_driver(id, 0);
    disable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  }
};

class Cupti : public KernelLog {
 public:
  explicit Cupti(const Library& library) : library_(library) {}
  // The library stays loaded: its thread runs on.
  ~Cupti() override {
    library_.end();
    Notes& shared = shared_notes();
    const std::lock_guard lock(shared.mutex);
    shared.next_record = nullptr;
  }

  std::uint64_t now() const override {
    std::uint64_t time = 0;
    library_.timestamp(&time);
    return time;
  }

  void begin_mark(std::uint64_t mark) override { library_.push(mark_kind, mark); }
  void end_mark() override { library_.pop(mark_kind, nullptr); }

  KernelNotes take(bool all) override {
    if (all) library_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    Notes& shared = shared_notes();
    const std::lock_guard lock(shared.mutex);
    return std::exchange(shared.notes, {});
  }

 private:
  Library library_;
};

}  // namespace

std::unique_ptr<KernelLog> open_kernel_log(std::string& why) {
  Library library;
  if (!library.load()) {
    why = "kernels are not timed: CUPTI (libcupti.so." + std::to_string(CUDART_VERSION / 1000) +
          ") is not found; LD_LIBRARY_PATH may name its folder";
    return nullptr;
  }
  Notes& shared = shared_notes();
  {
    const std::lock_guard lock(shared.mutex);
    shared.next_record = library.next_record;
    shared.notes = {};
    shared.names.clear();
  }
  if (const CUptiResult code = library.begin()) {
    const char* said = "an unknown error";
    library.result_string(code, &said);
    why = std::string("kernels are not timed: CUPTI says ") + said;
    return nullptr;
  }
  return std::make_unique<Cupti>(library);
}

}  // namespace regatta::cuda

#else

namespace regatta::cuda {

std::unique_ptr<KernelLog> open_kernel_log(std::string& why) {
  why = "kernels are not timed: this build did not find CUPTI's headers";
  return nullptr;
}

}  // namespace regatta::cuda

#endif
