// `tickets`: lottery tickets. One row per subcommand, one file each: tickets_NAME.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>

namespace regatta::app {

struct TicketsSubcommand {
  std::string_view name, summary;
  // Declares the flags, which live as long as what it returns: the subcommand, to be run when the
  // flags are parsed; its result is the exit code.
  std::function<int()> (*declare)(CLI::App& app);
};

std::function<int()> declare_tickets_compact(CLI::App& app);
std::function<int()> declare_tickets_estimate(CLI::App& app);
std::function<int()> declare_tickets_export(CLI::App& app);
std::function<int()> declare_tickets_prune(CLI::App& app);
std::function<int()> declare_tickets_report(CLI::App& app);
std::function<int()> declare_tickets_search(CLI::App& app);
std::function<int()> declare_tickets_stability(CLI::App& app);
std::function<int()> declare_tickets_status(CLI::App& app);
std::function<int()> declare_tickets_transfer(CLI::App& app);
std::function<int()> declare_tickets_work(CLI::App& app);

}  // namespace regatta::app
