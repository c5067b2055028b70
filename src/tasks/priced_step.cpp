#include "tasks/priced_step.h"

#include "tasks/placement.h"

namespace regatta {

PricedStep::PricedStep(const Graph& graph, const Recipe& recipe, const Plan& plan,
                       const CostsFor& costs)
    : blueprint_(make_blueprint(graph, plan, numbers_of(recipe), true)),
      list_(lower(blueprint_, ListKind::train)),
      costs_(costs(blueprint_)) {
  require_order(blueprint_, list_);
}

PricedStep::PricedStep(const Graph& graph, const Recipe& recipe, const Plan& plan,
                       const std::shared_ptr<const Profile>& profile)
    : PricedStep(graph, recipe, plan, costs_by(profile, recipe.data)) {}

void PricedStep::set_steps_in_flight(int steps) {
  if (steps == blueprint_.plan.steps_in_flight) return;
  blueprint_.plan.steps_in_flight = steps;
  list_ = lower(blueprint_, ListKind::train);
}

std::vector<std::vector<std::uint32_t>> PricedStep::order() const {
  std::vector<RanAt> tasks;
  for (const PlayedTask& task : play().tasks) tasks.push_back({task.worker, task.start});
  return order_of(tasks, workers_of(plan()).size());
}

CostsFor costs_by(std::shared_ptr<const Profile> profile, std::string data) {
  return [profile = std::move(profile), data = std::move(data)](const Blueprint& blueprint) {
    return std::make_unique<ProfileCosts>(blueprint, profile, data);
  };
}

}  // namespace regatta
