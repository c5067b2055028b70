#include <cstdio>
#include <iostream>

#include "app/command.h"
#include "models/models.h"

namespace regatta::app {
namespace {

void print_table(const Json& rows) {
  std::printf("%-10s %-10s %8s %12s %16s %18s %8s\n", "model", "input", "classes", "parameters",
              "multiply-adds", "activation bytes", "meetings");
  const auto number = [](const Json& row, const char* key) { return row[key].get<long long>(); };
  for (const Json& row : rows)
    std::printf("%-10s %-10s %8lld %12lld %16lld %18lld %8lld\n",
                row["model"].get<std::string>().c_str(), row["input"].get<std::string>().c_str(),
                number(row, "classes"), number(row, "parameters"), number(row, "multiply_adds"),
                number(row, "activation_bytes"), number(row, "meeting_points"));
}

}  // namespace

int run_models(std::span<const char* const> arguments) {
  CLI::App app(
      "The networks that come with Regatta: trained parameters; multiply-adds of a forward pass "
      "and\n"
      "activation bytes kept for backward, per image; and meeting points, the operators that need\n"
      "the whole batch.",
      "regatta models");
  std::string name;
  std::optional<std::string> input, json_file;
  std::optional<std::int64_t> classes;
  app.add_option("name", name, "only this one")->type_name("NAME");
  app.add_option("--input", input, "adapt to images of CxHxW")->type_name("CxHxW");
  app.add_option("--classes", classes, "adapt to so many classes")
      ->type_name("N")
      ->check(whole_number(2));
  add_json_flag(app, json_file);
  app.footer("Example:\n  regatta models resnet50 --input 3x64x64 --classes 10");
  if (!parse(app, arguments)) return 0;

  ModelOptions options;
  if (input) options.input = Shape::parse(*input);
  options.classes = classes;
  Json rows = Json::array();
  for (const std::string& each : name.empty() ? model_names() : std::vector{name}) {
    const Graph graph = fuse(build_model(each, options));
    const ModelSummary summary = summarise(graph);
    rows.push_back({{"model", each},
                    {"input", graph.node(graph.input()).shape.text()},
                    {"classes", graph.classes()},
                    {"parameters", summary.parameters},
                    {"multiply_adds", summary.multiply_adds},
                    {"activation_bytes", summary.activation_bytes},
                    {"meeting_points", summary.meeting_points}});
  }
  write_json_result(json_file, {{"models", rows}});
  print_table(rows);
  return 0;
}

}  // namespace regatta::app
