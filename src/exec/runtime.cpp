#include "exec/runtime.h"

#include <hwloc.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <starpu.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "exec/scheduler.h"
#include "exec/teams.h"
#include "exec/worker_times.h"
#include "plan/plan.h"
#include "platform/machine.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// Variables that StarPU reads as whole numbers and aborts on otherwise.
constexpr std::array<const char*, 13> whole_numbers{
    "STARPU_NCPU",           "STARPU_NCPUS",        "STARPU_NCUDA",
    "STARPU_CUDA_PIPELINE",  "STARPU_RESERVE_NCPU", "STARPU_NTHREADS_PER_CORE",
    "STARPU_WORKERS_NOBIND", "STARPU_CALIBRATE",    "STARPU_PREFETCH",
    "STARPU_BACKOFF_MIN",    "STARPU_BACKOFF_MAX",  "STARPU_SILENT",
    "STARPU_FXT_TRACE"};

void check_folder(const char* variable, const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!fs::is_directory(folder, code) || ::access(folder.c_str(), W_OK) != 0)
    throw InputError(std::string(variable) + "=" + folder.string() +
                     ": StarPU cannot write there; choose a folder you may write to");
}

constexpr const char* no_bind = "STARPU_WORKERS_NOBIND";

bool user_wants_no_binding() {
  const char* value = std::getenv(no_bind);
  return value && std::atoi(value) != 0;
}

// StarPU, while it starts, leaves its workers unbound. Only then: another start may want them
// bound.
class StartUnbound {
 public:
  explicit StartUnbound(bool wanted) : ours_(wanted && !user_wants_no_binding()) {
    if (ours_) ::setenv(no_bind, "1", 1);
  }
  ~StartUnbound() {
    if (ours_) ::unsetenv(no_bind);
  }
  StartUnbound(const StartUnbound&) = delete;
  StartUnbound& operator=(const StartUnbound&) = delete;

 private:
  bool ours_;
};

// A thread inherits the rounding mode of the one that starts it. In workers, and in threads of
// their teams, numbers too small for a normal float are zero: where gradients have vanished,
// momentum decays into such, and arithmetic on them takes many times as long.
class StartFlushing {
 public:
  StartFlushing() : before_(_mm_getcsr()) {
    constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
    _mm_setcsr(before_ | flush_to_zero | denormals_are_zero);
  }
  ~StartFlushing() { _mm_setcsr(before_); }
  StartFlushing(const StartFlushing&) = delete;
  StartFlushing& operator=(const StartFlushing&) = delete;

 private:
  unsigned before_;
};

// What StarPU and hwloc map before they start a thread (40 MB, measured), and what ends a run: its
// report and records (20 MB).
constexpr std::int64_t bytes_of_starpu = std::int64_t{64} << 20;

std::int64_t bytes_of_thread() {
  pthread_attr_t attributes;
  std::size_t stack = 0, guard = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) return 0;
  ::pthread_attr_getstacksize(&attributes, &stack);
  ::pthread_attr_getguardsize(&attributes, &guard);
  ::pthread_attr_destroy(&attributes);
  return static_cast<std::int64_t>(stack + guard);
}

// Under a limit of what is mapped, malloc takes no more than it must.
void save_addresses() {
  // It would set 64 MiB of addresses aside for each thread that allocates. Workers allocate little,
  // and most of that from caches of their own.
  ::mallopt(M_ARENA_MAX, 1);
  // Large pieces that are freed go back at once: the heap would keep the copies made for a
  // checkpoint.
  constexpr int large = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, large);
}

// StarPU aborts where it gets no thread, and looks at no pointer that malloc gives it.
void require_room(int threads) {
  for (const MemoryLimit& limit : memory_limits()) {
    if (!limit.counts_mapped) continue;
    if (const std::int64_t needed = bytes_mapped(limit, threads); needed > limit.left)
      throw InputError("StarPU and its " + std::to_string(threads) +
                       (threads > 1 ? " threads need " : " thread need ") +
                       std::to_string(needed >> 20) + " MiB of memory, but " + limit.name +
                       " has " + std::to_string(limit.left >> 20) +
                       " MiB left: raise it, or use fewer --workers");
    save_addresses();
  }
}

}  // namespace

std::int64_t bytes_mapped(const MemoryLimit& limit, int threads) {
  return limit.counts_mapped ? bytes_of_starpu + threads * bytes_of_thread() : 0;
}

void check_starpu_environment() {
  for (const char* name : whole_numbers) {
    const char* value = std::getenv(name);
    if (!value) continue;
    const std::string_view text(value);
    int number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || stop != text.data() + text.size() || number < 0)
      throw InputError(std::string(name) + "=" + value +
                       ": StarPU needs a whole number of 0 or more there; mend or unset it");
  }
  for (const char* name : {"STARPU_HOME", "STARPU_PERF_MODEL_DIR"})
    if (const char* folder = std::getenv(name)) check_folder(name, folder);
}

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names{own_scheduler};
  for (starpu_sched_policy** policy = starpu_sched_get_predefined_policies(); *policy; ++policy)
    names.emplace_back((*policy)->policy_name);
  return names;
}

Runtime::Runtime(const RuntimeOptions& options)
    : allowed_(allowed_cpus()),
      team_(options.team),
      cpu_threads_(options.cpu_workers * options.team + options.gpus) {
  check_starpu_environment();
  const std::vector<std::string> known = scheduler_names();
  if (std::ranges::find(known, options.scheduler) == known.end()) {
    std::string all;
    for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
    throw InputError("scheduler '" + options.scheduler + "' is unknown" +
                     did_you_mean(options.scheduler, known) + "; there are " + all);
  }
  // Left alone, StarPU writes to the home folder and talks on standard error. Its measurement of
  // the bus counts GPUs only in runs that use them: a folder for each keeps it from measuring anew.
  if (!std::getenv("STARPU_HOME")) {
    const fs::path home = cache_folder() / (options.gpus > 0 ? "starpu-home-gpu" : "starpu-home");
    check_folder("the cache folder REGATTA_CACHE", home);
    ::setenv("STARPU_HOME", home.c_str(), 1);
  }
  ::setenv("STARPU_SILENT", "1", 0);
  // Tasks of a GPU follow each other without waiting (exec/gates.h), so it has one worker, with one
  // stream.
  if (options.gpus > 0) ::setenv("STARPU_NWORKER_PER_CUDA", "1", 1);
  // How many tasks a GPU is handed before the first of them has ended: so many short ones that it
  // does not run dry while its worker looks for more.
  if (options.gpus > 0) ::setenv("STARPU_CUDA_PIPELINE", "4", 0);
  // More workers than cores cannot each be bound to one; and a worker with a team needs several,
  // which it takes itself.
  if (team_ > 1 && !user_wants_no_binding())
    teams_ = team_cpus(allowed_, options.cpu_workers, team_);
  const StartUnbound unbound(team_ > 1 || cpu_threads_ > available_cpus());

  require_room(cpu_threads_);

  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.precedence_over_environment_variables = 1;  // the plan decides
  conf.ncpus = options.cpu_workers;
  conf.ncuda = options.gpus;
  conf.nopencl = 0;
  conf.nhip = 0;
  if (options.scheduler == own_scheduler)
    conf.sched_policy = scheduling_policy(cpu_threads_ >= available_cpus());
  else
    conf.sched_policy_name = options.scheduler.c_str();
  conf.catch_signals = 0;
  worker_times().clear();  // before there are workers
  const StartFlushing flushing;
  const int code = starpu_init(&conf);
  if (code != 0) throw Error(std::string("StarPU did not start: ") + std::strerror(-code));
  if (!teams_.empty() || !user_wants_no_binding()) leave_to_others(worker_cpus());
}

std::vector<int> Runtime::worker_cpus() const {
  std::vector<int> cpus;
  for (const std::vector<int>& team : teams_) cpus.insert(cpus.end(), team.begin(), team.end());
  if (!cpus.empty()) return cpus;
  using Set = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;
  for (unsigned worker = 0; worker < starpu_worker_get_count(); ++worker) {
    const Set own(starpu_worker_get_hwloc_cpuset(static_cast<int>(worker)), &hwloc_bitmap_free);
    for (int cpu = hwloc_bitmap_first(own.get()); cpu >= 0; cpu = hwloc_bitmap_next(own.get(), cpu))
      cpus.push_back(cpu);
  }
  return cpus;
}

void Runtime::settle_worker() const {
  if (teams_.empty()) return;
  const int id = starpu_worker_get_id_check();
  for (std::size_t i = 0; i < teams_.size(); ++i)
    if (starpu_worker_get_by_type(STARPU_CPU_WORKER, static_cast<int>(i)) == id) stay_on(teams_[i]);
}

void Runtime::settle_gpu_worker() const {
  if (teams_.empty()) return;  // all workers are bound by StarPU
  const std::vector<int> taken = worker_cpus();
  if (std::ranges::find(taken, ::sched_getcpu()) == taken.end()) return;
  // Not those that this thread may use: StarPU binds it to the first CPU, whatever else is unbound.
  const std::vector<int> free = others_of(allowed_, taken);
  if (!free.empty()) stay_on(free);
}

Runtime::~Runtime() { starpu_shutdown(); }

}  // namespace regatta
