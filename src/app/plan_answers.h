// What regatta plan --objective answers beside a plan: the front of time against energy or money,
// and what would be different if something were changed.
#pragma once

#include <filesystem>

#include "app/optimized_plan.h"
#include "optimize/front.h"

namespace regatta::app {

// --- fronts --------------------------------------------------------------------------------------

// By the model, each point with its proven bound. `against`: energy, or cost for that objective.
struct Front {
  optimize::Objective against = optimize::Objective::energy;
  std::int64_t steps = 1;
  std::vector<optimize::FrontPoint> points;
  std::vector<std::string> uses;  // by point: who computes
};
Front front_of(const Graph& graph, const Recipe& recipe, const Platform& platform,
               const sim::Profiles& profiles, const NodeOptions& options,
               const OptimizeRequest& request);

std::string table_of(const Front& front);
// As its name ends: .csv, .json or .svg; throws InputError for others.
void require_front_name(const std::filesystem::path& file);
void write_front(const std::filesystem::path& file, const Front& front);

// --- what if -------------------------------------------------------------------------------------

// A change, and the best plan with it; or why there is none.
struct WhatIf {
  std::string change;
  std::optional<Optimized> with = {};
  std::string refused = {};
};

std::string text_of(const WhatIf& asked, const Optimized& without);
Json to_json(const WhatIf& asked, const Optimized& without);

// The devices that compute, in short: "8 x north/cpu (64 samples), box/gpu (200 samples)".
std::string uses_text(const Optimized& optimized);

}  // namespace regatta::app
