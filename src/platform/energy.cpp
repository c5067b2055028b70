#include "platform/energy.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

namespace regatta {
namespace fs = std::filesystem;

class EnergyMeter::Counter {
 public:
  explicit Counter(std::string name) : name_(std::move(name)) {}
  virtual ~Counter() = default;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  virtual double since_last() = 0;  // joules
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

namespace {

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || stop == text.data()) return std::nullopt;
  return value;
}

// Microjoules in a file that starts over at the zone's range.
class RaplCounter : public EnergyMeter::Counter {
 public:
  // Null, with the cause in errno, if it cannot be read.
  static std::unique_ptr<RaplCounter> open(const fs::path& zone, const std::string& name) {
    const int file = ::open((zone / "energy_uj").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return nullptr;
    auto counter = std::make_unique<RaplCounter>(
        file, name, number_in(first_line(zone / "max_energy_range_uj")).value_or(0));
    if (const auto now = counter->read()) {
      counter->last_ = *now;
      return counter;
    }
    return nullptr;
  }
  RaplCounter(int file, const std::string& name, std::uint64_t range)
      : Counter(name), file_(file), range_(range) {}
  ~RaplCounter() override { ::close(file_); }

  double since_last() override {
    const std::optional<std::uint64_t> now = read();
    if (!now) return 0;
    const std::uint64_t before = last_;
    last_ = *now;
    if (*now >= before) return static_cast<double>(*now - before) * 1e-6;
    return range_ >= before ? static_cast<double>(range_ - before + *now) * 1e-6 : 0;
  }

 private:
  std::optional<std::uint64_t> read() const {
    char text[32];
    const ssize_t length = ::pread(file_, text, sizeof text, 0);
    if (length <= 0) return std::nullopt;
    return number_in({text, static_cast<std::size_t>(length)});
  }

  int file_;
  std::uint64_t range_, last_ = 0;
};

// The calls of NVML that are needed, found at run time: its header and library come with the
// driver, which most machines lack.
class Nvml {
 public:
  using Handle = void*;

  static std::shared_ptr<Nvml> open() {
    auto nvml = std::shared_ptr<Nvml>(new Nvml);
    return nvml->started_ ? nvml : nullptr;
  }
  ~Nvml() {
    if (library_) ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::optional<Handle> device(unsigned index) const {
    Handle handle = nullptr;
    if (by_index_(index, &handle) != 0) return std::nullopt;
    return handle;
  }
  std::optional<Handle> device(const std::string& bus_id) const {
    Handle handle = nullptr;
    if (!by_bus_ || by_bus_(bus_id.c_str(), &handle) != 0) return std::nullopt;
    return handle;
  }
  std::optional<unsigned long long> millijoules(Handle device) const {
    unsigned long long value = 0;
    if (!total_ || total_(device, &value) != 0) return std::nullopt;
    return value;
  }
  std::optional<GpuWatts> watts(Handle device) const {
    unsigned now = 0, limit = 0;
    if (!usage_ || !limit_ || usage_(device, &now) != 0 || limit_(device, &limit) != 0)
      return std::nullopt;
    return GpuWatts{now * 1e-3, limit * 1e-3};
  }

 private:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    int (*start)() = nullptr;
    find(start, "nvmlInit_v2");
    find(by_index_, "nvmlDeviceGetHandleByIndex_v2");
    find(by_bus_, "nvmlDeviceGetHandleByPciBusId_v2");
    find(total_, "nvmlDeviceGetTotalEnergyConsumption");
    find(usage_, "nvmlDeviceGetPowerUsage");
    find(limit_, "nvmlDeviceGetEnforcedPowerLimit");
    started_ = start && by_index_ && start() == 0;
  }
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
  }

  void* library_;
  int (*by_index_)(unsigned, Handle*) = nullptr;
  int (*by_bus_)(const char*, Handle*) = nullptr;
  int (*total_)(Handle, unsigned long long*) = nullptr;
  int (*usage_)(Handle, unsigned*) = nullptr;  // milliwatts
  int (*limit_)(Handle, unsigned*) = nullptr;
  bool started_ = false;
};

class NvmlCounter : public EnergyMeter::Counter {
 public:
  NvmlCounter(std::shared_ptr<Nvml> nvml, Nvml::Handle device, unsigned long long now,
              const std::string& name)
      : Counter(name), nvml_(std::move(nvml)), device_(device), last_(now) {}

  double since_last() override {
    const auto now = nvml_->millijoules(device_);
    if (!now || *now < last_) return 0;
    return static_cast<double>(*now - std::exchange(last_, *now)) * 1e-3;
  }

 private:
  std::shared_ptr<Nvml> nvml_;
  Nvml::Handle device_;
  unsigned long long last_;
};

}  // namespace

std::optional<GpuWatts> gpu_watts(const std::string& bus_id) {
  const std::shared_ptr<Nvml> nvml = Nvml::open();
  const auto device = nvml ? nvml->device(bus_id) : std::nullopt;
  return device ? nvml->watts(*device) : std::nullopt;
}

EnergyMeter::EnergyMeter(const EnergyOptions& options, Clock::time_point now) : last_(now) {
  find_rapl(options);
  find_gpus(options);
}
EnergyMeter::~EnergyMeter() = default;
EnergyMeter::EnergyMeter(EnergyMeter&&) noexcept = default;
EnergyMeter& EnergyMeter::operator=(EnergyMeter&&) noexcept = default;

void EnergyMeter::find_rapl(const EnergyOptions& options) {
  std::vector<fs::path> zones;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(options.powercap, code)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("intel-rapl:")) zones.push_back(entry.path());
  }
  std::ranges::sort(zones);
  std::string cause = "this machine does not count the energy of its processors";
  for (const fs::path& zone : zones) {
    const std::string name = first_line(zone / "name");
    const std::string number = zone.filename().string().substr(std::strlen("intel-rapl:"));
    // Cores are part of their package, and so is the platform of all; memory is not.
    const bool package = name.starts_with("package");
    if (!package && name != "dram") continue;
    const std::string label =
        package ? "cpu " + name : name + " " + number.substr(0, number.find(':'));
    if (auto counter = RaplCounter::open(zone, label)) {
      counters_.push_back(std::move(counter));
    } else if (package) {
      cause = "cannot read '" + (zone / "energy_uj").string() + "': " + std::strerror(errno);
    }
  }
  if (std::ranges::any_of(counters_,
                          [](const auto& each) { return each->name().starts_with("cpu"); }))
    return;
  const double watts = assumed_watts_per_cpu * options.cpus;
  estimates_.push_back({"cpu", watts});
  char text[80];
  std::snprintf(text, sizeof text, "; joules are an estimate from %.0f W for %d CPU%s", watts,
                options.cpus, options.cpus == 1 ? "" : "s");
  remark_ = cause + text;
}

void EnergyMeter::find_gpus(const EnergyOptions& options) {
  if (options.gpus == 0) return;
  const std::shared_ptr<Nvml> nvml = Nvml::open();
  for (int g = 0; g < options.gpus; ++g) {
    const std::string name = "gpu " + std::to_string(g);
    const auto device = nvml ? nvml->device(static_cast<unsigned>(g)) : std::nullopt;
    const auto now = device ? nvml->millijoules(*device) : std::nullopt;
    if (now) {
      counters_.push_back(std::make_unique<NvmlCounter>(nvml, *device, *now, name));
      continue;
    }
    estimates_.push_back({name, assumed_watts_per_gpu});
    char text[80];
    std::snprintf(text, sizeof text, "%sGPU %d does not count its energy: estimated from %.0f W",
                  remark_.empty() ? "" : "; ", g, assumed_watts_per_gpu);
    remark_ += text;
  }
}

std::vector<Energy> EnergyMeter::read(Clock::time_point now) {
  const double elapsed = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  std::vector<Energy> energies;
  for (const auto& counter : counters_)
    energies.push_back({counter->name(), counter->since_last(), true});
  for (const Estimate& estimate : estimates_)
    energies.push_back({estimate.name, estimate.watts * elapsed, false});
  return energies;
}

}  // namespace regatta
