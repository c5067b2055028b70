#include "app/tuning_flags.h"

#include "base/error.h"

namespace regatta::app {

bool by_costs(const std::string& granularity) {
  if (granularity != "auto" && granularity != "fixed")
    throw InputError("--granularity " + granularity + ": use auto or fixed");
  return granularity == "auto";
}

void add_slow_flag(CLI::App& app, std::vector<std::string>& slow) {
  app.add_option(
         "--slow", slow,
         "make CPU workers or the GPU slower, for experiments: 1=2 doubles worker 1's times,\n"
         "cuda=2 the GPU's")
      ->type_name("WORKER=FACTOR,...")
      ->delimiter(',');
}

std::optional<WorkerShares> worker_shares(const std::optional<std::string>& shares) {
  if (shares == "equal") return WorkerShares::equal;
  if (shares == "speed") return WorkerShares::speed;
  return std::nullopt;
}

std::vector<std::int64_t> samples_of(const std::string& shares) {
  if (shares.empty() || shares.find_first_not_of("0123456789,") != std::string::npos)
    throw InputError("--shares " + shares + ": use equal, speed, or samples of each, such as 8,56");
  return parse_sizes("--shares", shares);
}

}  // namespace regatta::app
