#include "exec/runtime.h"

#include <starpu.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "platform/machine.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// Variables that StarPU reads as whole numbers and aborts on otherwise.
constexpr std::array<const char*, 12> whole_numbers{"STARPU_NCPU",
                                                    "STARPU_NCPUS",
                                                    "STARPU_NCUDA",
                                                    "STARPU_RESERVE_NCPU",
                                                    "STARPU_NTHREADS_PER_CORE",
                                                    "STARPU_WORKERS_NOBIND",
                                                    "STARPU_CALIBRATE",
                                                    "STARPU_PREFETCH",
                                                    "STARPU_BACKOFF_MIN",
                                                    "STARPU_BACKOFF_MAX",
                                                    "STARPU_SILENT",
                                                    "STARPU_FXT_TRACE"};

void check_folder(const char* variable, const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!fs::is_directory(folder, code) || ::access(folder.c_str(), W_OK) != 0)
    throw InputError(std::string(variable) + "=" + folder.string() +
                     ": StarPU cannot write there; choose a folder you may write to");
}

}  // namespace

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
  std::vector<std::string> names;
  for (starpu_sched_policy** policy = starpu_sched_get_predefined_policies(); *policy; ++policy)
    names.emplace_back((*policy)->policy_name);
  return names;
}

Runtime::Runtime(const RuntimeOptions& options) {
  check_starpu_environment();
  const std::vector<std::string> known = scheduler_names();
  if (std::ranges::find(known, options.scheduler) == known.end()) {
    std::string all;
    for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
    throw InputError("scheduler '" + options.scheduler + "' is unknown" +
                     did_you_mean(options.scheduler, known) + "; StarPU has " + all);
  }
  // Left alone, StarPU writes to the home folder and talks on standard error.
  if (!std::getenv("STARPU_HOME")) {
    const fs::path home = cache_folder() / "starpu-home";
    check_folder("the cache folder REGATTA_CACHE", home);
    ::setenv("STARPU_HOME", home.c_str(), 1);
  }
  ::setenv("STARPU_SILENT", "1", 0);
  // More workers than cores cannot each be bound to one.
  if (options.cpu_workers + options.gpus > available_cpus())
    ::setenv("STARPU_WORKERS_NOBIND", "1", 0);

  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.precedence_over_environment_variables = 1;  // the plan decides
  conf.ncpus = options.cpu_workers;
  conf.ncuda = options.gpus;
  conf.nopencl = 0;
  conf.nhip = 0;
  conf.sched_policy_name = options.scheduler.c_str();
  conf.catch_signals = 0;
  const int code = starpu_init(&conf);
  if (code != 0) throw Error(std::string("StarPU did not start: ") + std::strerror(-code));
}

Runtime::~Runtime() { starpu_shutdown(); }

}  // namespace regatta
