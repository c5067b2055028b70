// StarPU's life: checked settings in, a running set of workers out, shut down at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/limits.h"

namespace regatta {

struct RuntimeOptions {
  int cpu_workers = 1;
  int team = 1;  // threads of each of them
  int gpus = 0;
  std::string scheduler = "regatta";
};

// One at a time per process.
class Runtime {
 public:
  // Throws InputError for an unknown scheduler, a STARPU_* variable StarPU would abort on, a model
  // folder it could not write, or a limit on memory that leaves too little for it and its threads.
  explicit Runtime(const RuntimeOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Called by a CPU worker on its own thread before its team starts: keeps both on CPUs of their
  // own. Without a team, StarPU has done so. Threads of a team are not bound one by one: OpenMP
  // ends and starts some whenever a kernel wants fewer, and new ones would all be bound as the
  // worker is.
  void settle_worker() const;
  // Called by a GPU's worker on its own thread, before each task: if it is on a CPU of a team it
  // moves off them all. It never sleeps, and a team waits for its slowest thread.
  void settle_gpu_worker() const;
  int team() const { return team_; }
  int cpu_threads() const { return cpu_threads_; }  // busy ones: of all workers and their teams

 private:
  std::vector<int> worker_cpus() const;  // that they are bound to

  std::vector<int> allowed_;  // CPUs that this process may use
  int team_, cpu_threads_;
  std::vector<std::vector<int>> teams_;  // CPUs by worker; empty: not bound
};

// Bytes that StarPU takes of a limit when it starts so many threads: 0 unless the limit counts what
// is mapped.
std::int64_t bytes_mapped(const MemoryLimit& limit, int threads);

std::vector<std::string> scheduler_names();
// Throws InputError that names the first STARPU_* variable that StarPU would abort on.
void check_starpu_environment();

}  // namespace regatta
