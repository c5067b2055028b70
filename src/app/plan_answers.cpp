#include "app/plan_answers.h"

#include <algorithm>
#include <map>

#include "app/optimizer_problem.h"
#include "base/error.h"
#include "base/files.h"
#include "report/text.h"

namespace regatta::app {
namespace {

using optimize::Choice;
using optimize::Objective;
using optimize::Problem;

constexpr int front_points = 12;

const char* unit_of(const Front& front) { return front.against == Objective::cost ? "money" : "J"; }

std::string group_text(std::int64_t devices, const std::string& name, std::int64_t samples) {
  return (devices > 1 ? std::to_string(devices) + " x " : "") + name + " (" +
         std::to_string(samples) + (samples == 1 ? " sample)" : " samples)");
}

std::string uses_text(const Problem& problem, const Choice& choice) {
  std::string text;
  for (std::size_t u = 0; u < choice.uses.size(); ++u) {
    const optimize::NodeKind& node = problem.nodes[static_cast<std::size_t>(choice.uses[u].kind)];
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      const optimize::Portion& portion = choice.portions[u][d];
      if (portion.devices == 0) continue;
      const std::string& state =
          node.devices[d].states[static_cast<std::size_t>(choice.uses[u].parts[d].state)].name;
      text += (text.empty() ? "" : ", ") + group_text(portion.devices,
                                                      node.name + "/" + node.devices[d].group +
                                                          (state.empty() ? "" : " in " + state),
                                                      portion.samples());
    }
  }
  return text;
}

// --- a picture -----------------------------------------------------------------------------------

// Plan and bound over the time of a step, in a frame of so many pixels.
std::string svg_of(const Front& front) {
  constexpr double width = 640, height = 400, left = 80, right = 20, top = 30, bottom = 50;
  double first = front.points.front().choice.outcome.step_s;
  double last = front.points.back().choice.outcome.step_s, most = 0;
  for (const optimize::FrontPoint& each : front.points) most = std::max(most, each.value);
  if (last <= first) last = first * 1.1 + 1e-12;
  const auto x = [&](double step) {
    return left + (width - left - right) * (step - first) / (last - first);
  };
  const auto y = [&](double value) {
    return height - bottom - (height - top - bottom) * (most > 0 ? value / most : 0);
  };
  std::string plan, bound, dots;
  for (const optimize::FrontPoint& each : front.points) {
    const double at = x(each.choice.outcome.step_s);
    plan += formatted("%.1f,%.1f ", at, y(each.value));
    bound += formatted("%.1f,%.1f ", at, y(each.bound));
    dots += formatted("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#1f77b4\"/>\n", at,
                      y(each.value));
  }
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& words) {
    return formatted("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">", at_x, at_y, anchor) +
           words + "</text>\n";
  };
  return formatted("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" ", width,
                   height) +
         "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"white\"/>\n" +
         formatted("<path d=\"M%.0f %.0fV%.0fH%.0f\" fill=\"none\" stroke=\"black\"/>\n", left, top,
                   height - bottom, width - right) +
         "<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\" points=\"" + plan +
         "\"/>\n<polyline fill=\"none\" stroke=\"#d62728\" stroke-dasharray=\"6 4\" "
         "stroke-width=\"2\" points=\"" +
         bound + "\"/>\n" + dots + text(left, height - 28, "start", formatted("%.4g s", first)) +
         text(width - right, height - 28, "end", formatted("%.4g s", last)) +
         text(width / 2, height - 10, "middle", "seconds of a step") +
         text(left - 6, top + 5, "end", formatted("%.4g", most)) +
         text(left - 6, height - bottom, "end", "0") +
         text(left + 10, top - 8, "start",
              std::string(unit_of(front)) + " of a step: plans (line), proven bound (dashes)") +
         "</svg>\n";
}

Json to_json(const Front& front) {
  Json points = Json::array();
  for (std::size_t i = 0; i < front.points.size(); ++i) {
    const optimize::FrontPoint& each = front.points[i];
    points.push_back({{"step_s", each.choice.outcome.step_s},
                      {"energy_j", each.choice.outcome.energy_j},
                      {"cost", each.choice.outcome.cost},
                      {"bound", each.bound},
                      {"update", node_update_name(each.choice.update)},
                      {"devices", front.uses[i]}});
  }
  return {{"against", objective_name(front.against)}, {"steps", front.steps}, {"points", points}};
}

std::string csv_of(const Front& front) {
  std::string text = "step_s,energy_j,cost,bound,update,devices\n";
  for (std::size_t i = 0; i < front.points.size(); ++i) {
    const optimize::FrontPoint& each = front.points[i];
    text += formatted("%.9g,%.9g,%.9g,%.9g,", each.choice.outcome.step_s,
                      each.choice.outcome.energy_j, each.choice.outcome.cost, each.bound) +
            std::string(node_update_name(each.choice.update)) + ",\"" + front.uses[i] + "\"\n";
  }
  return text;
}

std::string change_text(double before, double after, const char* unit) {
  return formatted("%.4g -> %.4g %s", before, after, unit) +
         (before > 0 ? formatted(" (%+.1f%%)", 100 * (after / before - 1)) : "");
}

}  // namespace

// --- fronts --------------------------------------------------------------------------------------

Front front_of(const Graph& graph, const Recipe& recipe, const Platform& platform,
               const sim::Profiles& profiles, const NodeOptions& options,
               const OptimizeRequest& request) {
  Problem problem = optimizer_problem(graph, recipe, platform, profiles, options);
  set_images(problem, request.images.value_or(recipe.batch));
  Front made;
  made.against = request.objective == Objective::cost ? Objective::cost : Objective::energy;
  made.steps = problem.steps();
  made.points = optimize::front(problem, made.against, request.limits, front_points);
  if (made.points.empty()) throw InputError("--pareto: no plan keeps the limits; loosen one");
  for (const optimize::FrontPoint& each : made.points)
    made.uses.push_back(uses_text(problem, each.choice));
  return made;
}

std::string table_of(const Front& front) {
  std::string text =
      "front by the model, a step:\n" +
      formatted("  %-12s %-12s %-12s %-8s %s\n", "s", unit_of(front), "bound", "gap", "devices");
  for (std::size_t i = 0; i < front.points.size(); ++i) {
    const optimize::FrontPoint& each = front.points[i];
    text += formatted("  %-12.4g %-12.4g %-12.4g %-8s ", each.choice.outcome.step_s, each.value,
                      each.bound,
                      each.bound > 0 ? percent_text(each.value / each.bound - 1).c_str() : "-") +
            front.uses[i] + "\n";
  }
  return text;
}

void require_front_name(const std::filesystem::path& file) {
  const std::string end = file.extension();
  if (end != ".csv" && end != ".json" && end != ".svg")
    throw InputError("--pareto " + file.string() + ": use a name that ends in .csv, .json or .svg");
}

void write_front(const std::filesystem::path& file, const Front& front) {
  const std::string end = file.extension();
  write_file(file, end == ".csv"    ? csv_of(front)
                   : end == ".json" ? to_json(front).dump(2) + "\n"
                                    : svg_of(front));
}

// --- what if -------------------------------------------------------------------------------------

std::string uses_text(const Optimized& optimized) {
  struct Group {
    std::int64_t devices = 0, samples = 0;
  };
  // Nodes alike are NAME-0, NAME-1, ...; so are GPUs of a group.
  const auto base = [](const std::string& name) {
    const std::size_t dash = name.rfind('-');
    const bool numbered = dash != std::string::npos && dash + 1 < name.size() &&
                          name.find_first_not_of("0123456789", dash + 1) == std::string::npos;
    return numbered ? name.substr(0, dash) : name;
  };
  std::map<std::string, Group> groups;
  for (const DeviceRole& each : optimized.devices)
    if (each.used) {
      Group& group = groups[base(each.node) + "/" + base(each.device) +
                            (each.state.empty() ? "" : " in " + each.state)];
      ++group.devices;
      group.samples += each.share;
    }
  std::string text;
  for (const auto& [name, group] : groups)
    text += (text.empty() ? "" : ", ") + group_text(group.devices, name, group.samples);
  return text;
}

std::string text_of(const WhatIf& asked, const Optimized& without) {
  if (!asked.with) return "what if " + asked.change + ": " + asked.refused + "\n";
  const Optimized& with = *asked.with;
  const auto run = [](const Optimized& each, double value) {
    return value * static_cast<double>(each.steps);
  };
  // Another batch makes other steps: images are what both have in common.
  const auto per_image = [](const Optimized& each, double value) {
    return value / static_cast<double>(each.batch);
  };
  std::string text = "what if " + asked.change + ": " +
                     change_text(per_image(without, without.predicted.step_s) * 1000,
                                 per_image(with, with.predicted.step_s) * 1000, "ms an image") +
                     ", " +
                     change_text(per_image(without, without.predicted.energy_j),
                                 per_image(with, with.predicted.energy_j), "J an image");
  if (with.has_prices)
    text += ", " + change_text(run(without, without.predicted.cost), run(with, with.predicted.cost),
                               "money");
  text += "\n";
  if (const std::string before = uses_text(without), after = uses_text(with); before == after)
    text += "  the same devices compute: " + after + "\n";
  else
    text += "  computing: " + after + "\n  instead of: " + before + "\n";
  if (with.plan.update != without.plan.update && with.plan.nodes.size() > 1)
    text += "  gradients by " + std::string(node_update_name(with.plan.update)) + " instead of " +
            std::string(node_update_name(without.plan.update)) + "\n";
  return text;
}

Json to_json(const WhatIf& asked, const Optimized& without) {
  Json json{{"change", asked.change}};
  if (!asked.with) {
    json["refused"] = asked.refused;
    return json;
  }
  const Optimized& with = *asked.with;
  json["predicted"] = app::to_json(with)["predicted"];
  json["bound"] = app::to_json(with)["bound"];
  json["difference"] = {
      {"step_s", with.predicted.step_s - without.predicted.step_s},
      {"energy_j", with.predicted.energy_j - without.predicted.energy_j},
      {"cost", with.has_prices ? Json(with.predicted.cost - without.predicted.cost) : Json()}};
  json["devices"] = uses_text(with);
  json["devices_before"] = uses_text(without);
  json["update"] = node_update_name(with.plan.update);
  return json;
}

}  // namespace regatta::app
