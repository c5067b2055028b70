#include "app/optimized_plan.h"
#include "report/text.h"

namespace regatta::app {

Json to_json(const Optimized& made) {
  const auto figures = [&](double step_s, double energy_j, double cost) {
    return Json{{"step_s", step_s},
                {"energy_j", energy_j},
                {"cost", made.has_prices ? Json(cost) : Json()}};
  };
  Json devices = Json::array();
  for (const DeviceRole& each : made.devices) {
    devices.push_back({{"node", each.node},
                       {"device", each.device},
                       {"used", each.used},
                       {"role", each.role},
                       {"share", each.share},
                       {"finish_s", each.finish_s},
                       {"energy_j", each.energy_j}});
    if (!each.state.empty()) devices.back()["state"] = each.state;
  }
  Json json{
      {"objective", objective_name(made.objective)},
      {"images", made.images},
      {"steps", made.steps},
      {"predicted", figures(made.predicted.step_s, made.predicted.energy_j, made.predicted.cost)},
      {"simulated", made.simulated},
      {"bound", figures(made.bound.step_s, made.bound.energy_j, made.bound.cost)},
      {"gap", made.gap},
      {"devices", devices},
      {"exchange",
       {{"update", node_update_name(made.plan.update)},
        {"bytes", made.exchange_bytes},
        {"seconds", made.modelled.exchange_s}}},
      {"plan_s", made.plan_s},
      {"reasons", made.reasons}};
  if (const auto& parts = made.gap_parts)
    json["gap_parts"] = {{"intervals", parts->intervals},
                         {"whole", parts->whole},
                         {"simulation", parts->simulation}};
  if (made.simulated) json["guessed_share"] = made.guessed;
  if (made.plan.pace_s > 0) json["pace_s"] = made.plan.pace_s;
  return json;
}

std::string text_of(const Optimized& made) {
  const auto figures = [&](double step_s, double energy_j, double cost) {
    return formatted("%.4g s a step, %.4g J", step_s, energy_j) +
           (made.has_prices ? formatted(", %.4g money", cost) : "");
  };
  std::string text = "least " + std::string(objective_name(made.objective)) + ": " +
                     figures(made.predicted.step_s, made.predicted.energy_j, made.predicted.cost) +
                     (made.simulated ? " (simulated" : " (model") + ", joules estimated)\n";
  text += "proven bound: " + figures(made.bound.step_s, made.bound.energy_j, made.bound.cost) +
          ", each by itself; gap " + percent_text(made.gap) + "\n";
  if (made.steps > 1) {
    const auto steps = static_cast<double>(made.steps);
    text += formatted("%lld images: ", static_cast<long long>(made.images)) +
            formatted("%.4g s, %.4g J", made.predicted.step_s * steps,
                      made.predicted.energy_j * steps) +
            (made.has_prices ? formatted(", %.4g money", made.predicted.cost * steps) : "") + "\n";
  }
  for (const std::string& reason : made.reasons) text += "  " + reason + "\n";
  return text;
}

}  // namespace regatta::app
