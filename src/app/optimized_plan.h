// The plan of a platform that is best for an objective: searched by the optimizer's model, the best
// few simulated, with a proven bound.
#pragma once

#include "app/node_plan.h"
#include "optimize/bound.h"
#include "optimize/model.h"
#include "plan/plan_file.h"

namespace regatta::app {

struct OptimizeRequest {
  optimize::Objective objective = optimize::Objective::time;
  optimize::Limits limits = {};             // of the whole run
  std::optional<std::int64_t> images = {};  // of the whole run; default: one batch
  // As asked for; none: dynamic, or where chunks are sized by the speeds of unequal cores hybrid or
  // static.
  std::optional<Placement> placement = {};
};

// A device of the platform and what it does; watts of a node at rest are shared among its devices
// by what they draw idle.
struct DeviceRole {
  std::string node, device, state = {};
  bool used = false;
  std::string role = {};  // compute; feed: cores of a node whose GPUs compute; rest
  std::int64_t share = 0;
  double finish_s = 0, energy_j = 0;
};

// The parts of a plan's gap to the bound: (1 + gap) is the product of (1 + each part).
struct GapParts {
  double intervals = 0;   // the bound takes the lower ends of uncertain costs
  double whole = 0;       // whole devices and samples, and the exchange
  double simulation = 0;  // what the model left out: the runtime, and waiting for each other
};

struct Optimized {
  optimize::Objective objective = optimize::Objective::time;
  std::int64_t batch = 1, images = 0, steps = 1;
  Plan plan;
  bool simulated = false;       // else `predicted` is the model's
  optimize::Outcome predicted;  // of a step
  optimize::Outcome modelled;
  optimize::Bound bound;  // of a step
  double gap = 0;         // of the objective: predicted / bound - 1
  std::optional<GapParts> gap_parts;
  bool has_prices = false;
  double guessed = 0;    // as guessed_share() says, of a plan that was simulated
  double low_share = 1;  // lower ends of the used devices' costs, as a share of the costs
  std::vector<DeviceRole> devices;
  double exchange_bytes = 0;
  double plan_s = 0;
  std::vector<std::string> reasons;
};

// Throws InputError with the bound that forbids it, if nothing can meet the limits.
Optimized optimized_plan(const Graph& graph, const Recipe& recipe, const Platform& platform,
                         const sim::Profiles& profiles, const NodeOptions& options,
                         const OptimizeRequest& request);

Json to_json(const Optimized& optimized);
std::string text_of(const Optimized& optimized);  // for a terminal

}  // namespace regatta::app
