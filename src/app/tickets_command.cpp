#include "app/tickets_command.h"

#include <string>
#include <utility>
#include <vector>

#include "app/command.h"

namespace regatta::app {
namespace {

constexpr TicketsSubcommand subcommands[]{
    {"search", "train, prune, reset and train again: a search and its jobs",
     declare_tickets_search},
    {"work", "do jobs of a search, beside any number of other workers", declare_tickets_work},
    {"status", "who does what in a search, and when all is done", declare_tickets_status},
    {"report", "what a search found, as a table, a page, CSV and JSON", declare_tickets_report},
    {"transfer", "train the tickets of a search on other data", declare_tickets_transfer},
    {"stability", "error between runs that differ in the order of data, by reset point",
     declare_tickets_stability},
    {"estimate", "how long a search takes, alone and together", declare_tickets_estimate},
    {"prune", "which weights of a trained network stay, as a mask", declare_tickets_prune},
    {"export", "a pruned network for PyTorch", declare_tickets_export},
    {"compact", "the same network without its dead channels", declare_tickets_compact},
};

}  // namespace

int run_tickets(std::span<const char* const> arguments) {
  CLI::App app("Lottery tickets: pruned networks that are trained again from early weights.",
               "regatta tickets");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, std::function<int()>>> declared;
  for (const TicketsSubcommand& each : subcommands) {
    CLI::App* child = app.add_subcommand(std::string(each.name), std::string(each.summary));
    declared.emplace_back(child, each.declare(*child));
  }
  app.footer(
      "Example:\n  regatta tickets prune runs/lenet5 --keep 0.2 --out mask.safetensors\n"
      "  regatta train --model lenet5 --data mnist --mask mask.safetensors");
  if (!parse(app, arguments)) return 0;
  for (const auto& [child, run] : declared)
    if (child->parsed()) return run();
  return 0;
}

}  // namespace regatta::app
