// StarPU's life: checked settings in, a running set of workers out, shut down at the end.
#pragma once

#include <string>
#include <vector>

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
  // Throws InputError for an unknown scheduler, a STARPU_* variable StarPU would abort on, or a
  // model folder it could not write.
  explicit Runtime(const RuntimeOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Called by a CPU worker on its own thread before its team starts: keeps both on CPUs of their
  // own. Without a team, StarPU has done so.
  void settle_worker() const;
  // Called by a CPU worker when its team has started: each of its threads keeps to one CPU. A thread
  // that slept while the worker waited, for a GPU say, would otherwise wake on a CPU where another
  // one of its team is busy, and all would wait for the system's tick of milliseconds.
  void settle_team() const;
  // Called by a GPU's worker on its own thread: keeps it off the CPUs of teams, whose threads would
  // otherwise wait for each other whenever it takes one of their CPUs.
  void settle_gpu_worker() const;
  int team() const { return team_; }
  int cpu_threads() const { return cpu_threads_; }  // busy ones: of all workers and their teams

 private:
  std::vector<int> worker_cpus() const;  // that they are bound to
  const std::vector<int>* own_team() const;  // of the calling worker; null: not bound

  int team_, cpu_threads_;
  std::vector<std::vector<int>> teams_;  // CPUs by worker; empty: not bound
};

std::vector<std::string> scheduler_names();
// Throws InputError that names the first STARPU_* variable that StarPU would abort on.
void check_starpu_environment();

}  // namespace regatta
