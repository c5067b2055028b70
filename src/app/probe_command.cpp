// `probe`: this machine as a platform file; and platform files checked, and translated for SimGrid.
#include <filesystem>
#include <iostream>

#include "app/command.h"
#include "app/profiles.h"
#include "base/error.h"
#include "base/files.h"
#include "platform/probe.h"
#include "platform/simgrid_xml.h"

#if REGATTA_HAVE_CUDA
#include "backends/cuda/probe.h"
#endif

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

void write_platform(const std::optional<std::string>& out, const Platform& platform) {
  if (!out) {
    std::cout << platform.to_json().dump(2) << "\n";
    return;
  }
  const bool xml = fs::path(*out).extension() == ".xml";
  write_file(*out, xml ? platform_to_xml(platform) : platform.to_json().dump(2) + "\n");
}

std::vector<ProbedGpu> probe_gpus() {
  std::vector<ProbedGpu> gpus;
#if REGATTA_HAVE_CUDA
  const std::vector<cuda::DeviceInfo> devices = cuda::devices();
  for (const cuda::DeviceInfo& device : devices) {
    ProbedGpu gpu{.name = device.name, .memory = device.memory};
    find_watts(gpu, device.bus_id);
    gpus.push_back(gpu);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const cuda::DeviceSpeed speed = cuda::measure(devices[i]);
    gpus[i].flops = speed.fp32_flops;
    gpus[i].tf32_flops = speed.tf32_flops;
    gpus[i].bf16_flops = speed.bf16_flops;
    gpus[i].memory_bandwidth = speed.memory_bandwidth;
    gpus[i].to_device = speed.to_device;
    gpus[i].from_device = speed.from_device;
    gpus[i].latency = speed.latency;
  }
#endif
  return gpus;
}

}  // namespace

int run_probe(std::span<const char* const> arguments) {
  CLI::App app("Writes this machine as a platform: cores, memory, measured speeds, watts.",
               "regatta probe");
  std::optional<std::string> out, from, json_file;
  app.add_option("--out", out, "the platform's file (default: print it); .xml: as SimGrid reads it")
      ->type_name("FILE");
  app.add_option("--from", from, "instead of this machine, check and translate this platform")
      ->type_name("FILE");
  add_json_flag(app, json_file);
  app.footer(
      "Example:\n  regatta probe --out here.json\n"
      "  regatta probe --from cluster.xml --out cluster.json");
  if (!parse(app, arguments)) return 0;
  if (out) require_writable(*out);
  if (from) {
    const Platform platform = read_platform(*from);
    write_platform(out, platform);
    write_json_result(json_file, platform.to_json());
    return 0;
  }
  const ProbeResult found = probe_machine();
  const std::vector<ProbedGpu> gpus = probe_gpus();
  // Costs are the measured profile's, where calibration or training has left one.
  const Platform platform = probed_machine(found, own_profile() ? here : "", gpus);
  write_platform(out, platform);
  if (!found.watts_measured) std::cerr << "watts are an estimate: " << found.watts_remark << "\n";
  if (platform.nodes[0].groups[0].costs.estimate())
    std::cerr << "costs are an estimate; regatta calibrate measures them\n";
  for (const ProbedGpu& gpu : gpus)
    if (!gpu.watts_measured)
      std::cerr << "watts of '" << gpu.name << "' are an estimate: NVML does not tell them\n";
  Json result{
      {"platform", platform.to_json()},         {"core_flops", found.core_flops},
      {"all_flops", found.all_flops},           {"memory_bandwidth", found.memory_bandwidth},
      {"copy_bandwidth", found.copy_bandwidth}, {"watts_measured", found.watts_measured}};
  for (const ProbedGpu& gpu : gpus)
    result["gpus"].push_back({{"name", gpu.name},
                              {"memory_bytes", gpu.memory},
                              {"fp32_flops", gpu.flops},
                              {"tf32_flops", gpu.tf32_flops},
                              {"bf16_flops", gpu.bf16_flops},
                              {"memory_bandwidth", gpu.memory_bandwidth},
                              {"to_device", gpu.to_device},
                              {"from_device", gpu.from_device},
                              {"latency", gpu.latency},
                              {"idle_watts", gpu.idle_watts},
                              {"limit_watts", gpu.limit_watts},
                              {"watts_measured", gpu.watts_measured}});
  write_json_result(json_file, result);
  return 0;
}

}  // namespace regatta::app
