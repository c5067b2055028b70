// Joules as the machine counts them: RAPL for processors, NVML for NVIDIA GPUs. Where it does not
// tell, an estimate from watts, labelled so.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// Assumed where no counter can be read: watts of one CPU of a server at work, and of its GPU.
inline constexpr double assumed_watts_per_cpu = 8;
inline constexpr double assumed_watts_per_gpu = 350;

struct Energy {
  std::string name;  // "cpu package-0", "dram", "gpu 0"; "cpu" for an estimate
  double joules = 0;
  bool measured = false;
};

struct EnergyOptions {
  std::filesystem::path powercap = "/sys/class/powercap";
  int cpus = 1;  // at work, for an estimate
  int gpus = 0;
};

// What a GPU draws now, and at most, as NVML says; none where it does not. `bus_id`: as
// cudaDeviceGetPCIBusId gives it.
struct GpuWatts {
  double now = 0, limit = 0;
};
std::optional<GpuWatts> gpu_watts(const std::string& bus_id);

class EnergyMeter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit EnergyMeter(const EnergyOptions& options, Clock::time_point now = Clock::now());
  ~EnergyMeter();
  EnergyMeter(EnergyMeter&&) noexcept;
  EnergyMeter& operator=(EnergyMeter&&) noexcept;

  // Since the last call, or the beginning.
  std::vector<Energy> read(Clock::time_point now = Clock::now());

  // Why some of it is an estimate, for a reader to be told once; empty: all is measured.
  const std::string& remark() const { return remark_; }

  class Counter;  // joules that only rise

 private:
  std::vector<std::unique_ptr<Counter>> counters_;
  struct Estimate {
    std::string name;
    double watts;
  };
  std::vector<Estimate> estimates_;
  Clock::time_point last_;
  std::string remark_;

  void find_rapl(const EnergyOptions& options);
  void find_gpus(const EnergyOptions& options);
};

}  // namespace regatta
