#include "platform/probe.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "platform/energy.h"
#include "platform/machine.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

// Assumed for a core that was not measured.
constexpr double assumed_flops = 20e9, assumed_bandwidth = 8e9, assumed_idle_share = 0.25;
constexpr std::size_t side = 64;  // three such matrices fit a core's nearest cache
// More than caches hold: floats to add, bytes to copy.
constexpr std::size_t added = std::size_t{4} << 20, copied = std::size_t{32} << 20;

// The best of the processor's instruction sets is picked when the program is loaded. Sanitizers
// start after the resolvers that pick a clone would run.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void multiply(
    const float* __restrict a, const float* __restrict b, float* __restrict c) {
  for (std::size_t i = 0; i < side; ++i)
    for (std::size_t k = 0; k < side; ++k) {
      const float factor = a[i * side + k];
      for (std::size_t j = 0; j < side; ++j) c[i * side + j] += factor * b[k * side + j];
    }
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// How often a second all threads together do `work`, for about so long.
double rate(int threads, double seconds, const std::function<std::function<void()>()>& make_work) {
  std::atomic<std::int64_t> done = 0;
  std::atomic<int> ready = 0;
  std::vector<std::thread> team;
  std::atomic<double> longest = 0;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&] {
      const std::function<void()> work = make_work();
      work();
      ++ready;
      while (ready < threads) std::this_thread::yield();
      const Clock::time_point begin = Clock::now();
      std::int64_t mine = 0;
      do {
        work();
        ++mine;
      } while (seconds_since(begin) < seconds);
      const double took = seconds_since(begin);
      for (double seen = longest; seen < took && !longest.compare_exchange_weak(seen, took);) {
      }
      done += mine;
    });
  for (std::thread& each : team) each.join();
  return static_cast<double>(done) / longest;
}

double flops_of(int threads) {
  constexpr int products = 32;  // between looks at the clock
  const double per_call = 2.0 * side * side * side * products;
  return per_call * rate(threads, 0.3, [] {
           const auto data = std::make_shared<std::vector<float>>(3 * side * side, 1e-3F);
           return [data] {
             float* all = data->data();
             for (int i = 0; i < products; ++i)
               multiply(all, all + side * side, all + 2 * side * side);
           };
         });
}

double bandwidth_of(int threads) {
  return 3.0 * added * sizeof(float) * rate(threads, 0.3, [] {
           const auto a = std::make_shared<std::vector<float>>(added, 1.0F);
           const auto b = std::make_shared<std::vector<float>>(added, 2.0F);
           return [a, b] {
             for (std::size_t i = 0; i < added; ++i) (*a)[i] += (*b)[i];
           };
         });
}

double copy_of() {
  return copied * rate(1, 0.2, [] {
           const auto from = std::make_shared<std::vector<char>>(copied, 1);
           const auto to = std::make_shared<std::vector<char>>(copied);
           return [from, to] { std::memcpy(to->data(), from->data(), copied); };
         });
}

double joules(EnergyMeter& meter) {
  double total = 0;
  for (const Energy& each : meter.read()) total += each.measured ? each.joules : 0;
  return total;
}

void find_watts(ProbeResult& found, int cpus) {
  EnergyMeter meter({.cpus = cpus});
  found.active_watts = assumed_watts_per_cpu;
  found.idle_watts = assumed_watts_per_cpu * assumed_idle_share;
  found.watts_remark = meter.remark();
  if (!meter.remark().empty()) return;
  joules(meter);
  Clock::time_point begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double idle = joules(meter) / seconds_since(begin) / cpus;
  begin = Clock::now();
  flops_of(cpus);
  const double active = joules(meter) / seconds_since(begin) / cpus;
  found.idle_watts = idle;
  found.active_watts = std::max(active, idle);
  found.watts_measured = true;
}

PlatformGroup group_of(const ProbedGpu& gpu, const std::string& name) {
  PlatformGroup group;
  group.name = name;
  group.kind = DeviceKind::cuda;
  group.memory = gpu.memory;
  group.watts = {gpu.idle_watts, gpu.limit_watts};
  group.watts_measured = gpu.watts_measured;
  group.costs.flops = gpu.flops;
  group.costs.memory_bandwidth = gpu.memory_bandwidth;
  group.bus = Bus{gpu.to_device, gpu.from_device, gpu.latency, {}};
  return group;
}

std::string remark_on(const ProbedGpu& gpu, const std::string& name) {
  char text[400];
  std::snprintf(text, sizeof text,
                "; %s: %s; measured: %.1f TFLOP/s fp32, %.1f tf32, %.1f bf16, memory %.0f GB/s, "
                "copies %.1f GB/s there, %.1f back; watts %s",
                name.c_str(), gpu.name.c_str(), gpu.flops / 1e12, gpu.tf32_flops / 1e12,
                gpu.bf16_flops / 1e12, gpu.memory_bandwidth / 1e9, gpu.to_device / 1e9,
                gpu.from_device / 1e9, gpu.watts_measured ? "idle and limit by NVML" : "estimated");
  return text;
}

// GPUs of one name get the numbers of the first of them.
void add_gpus(Platform& platform, const std::vector<ProbedGpu>& gpus) {
  std::map<std::string, std::size_t> known;  // by the GPU's name: its group
  std::vector<PlatformGroup>& groups = platform.nodes[0].groups;
  for (const ProbedGpu& gpu : gpus) {
    const auto [found, fresh] = known.try_emplace(gpu.name, groups.size());
    if (!fresh) {
      ++groups[found->second].count;
      continue;
    }
    const std::string name = known.size() == 1 ? "gpu" : "gpu" + std::to_string(known.size());
    groups.push_back(group_of(gpu, name));
    platform.remark += remark_on(gpu, name);
  }
}

std::int64_t memory_bytes() {
  return std::max<std::int64_t>(
      1, std::int64_t{sysconf(_SC_PHYS_PAGES)} * std::int64_t{sysconf(_SC_PAGE_SIZE)});
}

}  // namespace

Platform this_machine(const std::string& profile) {
  Platform platform;
  platform.name = host_name();
  platform.remark = cpu_name() + "; speeds and watts are assumed";
  PlatformGroup cpu;
  cpu.name = "cpu";
  cpu.count = available_cpus();
  cpu.memory = memory_bytes();
  cpu.watts = {assumed_watts_per_cpu * assumed_idle_share, assumed_watts_per_cpu};
  cpu.costs.profile = profile;
  if (profile.empty())
    cpu.costs = {.flops = assumed_flops,
                 .memory_bandwidth = assumed_bandwidth * cpu.count,
                 .uncertainty = 3};
  PlatformNode node;
  node.name = host_name();
  node.groups = {cpu};
  platform.nodes = {node};
  return platform;
}

ProbeResult probe_machine() {
  const int cpus = available_cpus();
  ProbeResult found;
  found.core_flops = flops_of(1);
  found.all_flops = flops_of(cpus);
  found.memory_bandwidth = bandwidth_of(cpus);
  found.copy_bandwidth = copy_of();
  find_watts(found, cpus);
  return found;
}

void find_watts(ProbedGpu& gpu, const std::string& bus_id) {
  const std::optional<GpuWatts> watts = gpu_watts(bus_id);
  gpu.watts_measured = watts.has_value();
  gpu.idle_watts = watts ? watts->now : assumed_watts_per_gpu * assumed_idle_share;
  gpu.limit_watts = watts ? std::max(watts->limit, watts->now) : assumed_watts_per_gpu;
}

Platform probed_machine(const ProbeResult& found, const std::string& profile,
                        const std::vector<ProbedGpu>& gpus) {
  Platform platform = this_machine(profile);
  PlatformGroup& cpu = platform.nodes[0].groups[0];
  char text[300];
  std::snprintf(
      text, sizeof text,
      "%s; measured: %.1f GFLOP/s on one core, %.1f on all, memory %.1f GB/s, copies %.1f "
      "GB/s; watts %s",
      cpu_name().c_str(), found.core_flops / 1e9, found.all_flops / 1e9,
      found.memory_bandwidth / 1e9, found.copy_bandwidth / 1e9,
      found.watts_measured ? "measured" : "estimated");
  platform.remark = text;
  cpu.watts = {found.idle_watts, found.active_watts};
  cpu.watts_measured = found.watts_measured;
  if (profile.empty())
    cpu.costs = {.flops = found.all_flops / cpu.count,
                 .memory_bandwidth = found.memory_bandwidth,
                 .uncertainty = CostSource{}.uncertainty};
  add_gpus(platform, gpus);
  return platform;
}

}  // namespace regatta
