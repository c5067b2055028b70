#include <iostream>

#include "app/command.h"
#include "app/tracing.h"
#include "base/error.h"
#include "base/files.h"
#include "report/run_report.h"
#include "train/events.h"

namespace regatta::app {

void leave_report(const std::filesystem::path& folder) try {
  if (report_page.empty()) return;
  const std::vector<StepUse> uses = write_report(folder, folder / report_name);
  if (uses.empty()) return;
  EventFile events(folder);
  for (const StepUse& use : uses) {
    events.scalar("trace/idle_share", use.step, static_cast<float>(use.idle_share));
    if (use.joules) events.scalar("trace/joules", use.step, static_cast<float>(*use.joules));
  }
} catch (const InputError& error) {
  throw InputError("the run is complete, but not its report: " + std::string(error.what()));
}

int run_report(std::span<const char* const> arguments) {
  namespace fs = std::filesystem;
  CLI::App app("Writes a run's report.html again: one page that needs nothing else.",
               "regatta report");
  std::string folder;
  std::optional<std::string> out, window, json_file;
  app.add_option("run", folder, "the run's folder")->required()->type_name("RUN");
  app.add_option("--out", out, "the page (default: RUN/report.html)")->type_name("FILE");
  app.add_option("--window", window, "of the trace, only the steps A to B")->type_name("A:B");
  add_json_flag(app, json_file);
  app.footer("Example:\n  regatta report runs/lenet5-mnist-20260131-235959");
  if (!parse(app, arguments)) return 0;
  if (json_file) require_writable(*json_file);
  const fs::path file = out ? fs::path(*out) : fs::path(folder) / report_name;
  if (window) {
    const StepRange range = parse_steps("--window", *window);
    write_report(folder, file, range.first, range.last);
  } else {
    write_report(folder, file);
  }
  write_json_result(json_file, {{"run", folder}, {"file", file.string()}});
  std::cout << file.string() << "\n";
  return 0;
}

}  // namespace regatta::app
