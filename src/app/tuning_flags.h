// Flags that several commands share and that say how a plan is chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "tune/worker_shares.h"

namespace regatta::app {

// --granularity: whether it is auto; false: fixed. Throws InputError.
bool by_costs(const std::string& granularity);

// --slow; see slow_workers.
void add_slow_flag(CLI::App& app, std::vector<std::string>& slow);

// --shares equal or speed: a chunk for each CPU worker. Nothing if it is not given, or gives
// samples.
std::optional<WorkerShares> worker_shares(const std::optional<std::string>& shares);
// --shares 8,56: samples of each device. Throws InputError.
std::vector<std::int64_t> samples_of(const std::string& shares);

}  // namespace regatta::app
