// `probe`: this machine as a platform file; and platform files checked, and translated for SimGrid.
#include <filesystem>
#include <iostream>

#include "app/command.h"
#include "app/profiles.h"
#include "base/error.h"
#include "base/files.h"
#include "platform/probe.h"
#include "platform/simgrid_xml.h"

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
  // Costs are the measured profile's, where calibration or training has left one.
  const Platform platform = probed_machine(found, own_profile() ? here : "");
  write_platform(out, platform);
  if (!found.watts_measured) std::cerr << "watts are an estimate: " << found.watts_remark << "\n";
  if (platform.nodes[0].groups[0].costs.estimate())
    std::cerr << "costs are an estimate; regatta calibrate measures them\n";
  write_json_result(json_file, {{"platform", platform.to_json()},
                                {"core_flops", found.core_flops},
                                {"all_flops", found.all_flops},
                                {"memory_bandwidth", found.memory_bandwidth},
                                {"copy_bandwidth", found.copy_bandwidth},
                                {"watts_measured", found.watts_measured}});
  return 0;
}

}  // namespace regatta::app
