#include <iostream>

#include "app/command.h"
#include "report/run_report.h"

namespace regatta::app {

int run_report(std::span<const char* const> arguments) {
  namespace fs = std::filesystem;
  CLI::App app("Writes a run's report.html again: one page that needs nothing else.",
               "regatta report");
  std::string folder;
  std::optional<std::string> out;
  app.add_option("run", folder, "the run's folder")->required()->type_name("RUN");
  app.add_option("--out", out, "the page (default: RUN/report.html)")->type_name("FILE");
  app.footer("Example:\n  regatta report runs/lenet5-mnist-20260131-235959");
  if (!parse(app, arguments)) return 0;
  const fs::path file = out ? fs::path(*out) : fs::path(folder) / report_name;
  write_report(folder, file);
  std::cout << file.string() << "\n";
  return 0;
}

}  // namespace regatta::app
