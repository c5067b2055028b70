#include <cstdio>
#include <iostream>

#include "app/command.h"
#include "models/models.h"

namespace regatta::app {

int run_models(std::span<const char* const> arguments) {
  CLI::App app("The networks that come with Regatta: trained parameters, multiply-adds of a forward "
               "pass and activation bytes kept for backward, per image, and the number of meeting "
               "points (operators that need the whole batch).",
               "regatta models");
  std::string name;
  std::optional<std::string> input, json_file;
  std::optional<std::int64_t> classes;
  app.add_option("name", name, "only this one");
  app.add_option("--input", input, "adapt to images of CxHxW")->type_name("CxHxW");
  app.add_option("--classes", classes, "adapt to so many classes")->check(CLI::PositiveNumber);
  app.add_option("--json", json_file, "write the result to FILE")->type_name("FILE");
  app.footer("Example:\n  regatta models resnet50 --input 3x64x64 --classes 10");
  if (!parse(app, arguments)) return 0;

  ModelOptions options;
  if (input) options.input = Shape::parse(*input);
  options.classes = classes;
  Json rows = Json::array();
  std::printf("%-10s %-10s %8s %12s %16s %18s %8s\n", "model", "input", "classes", "parameters",
              "multiply-adds", "activation bytes", "meetings");
  for (const std::string& each : name.empty() ? model_names() : std::vector{name}) {
    const Graph graph = fuse(build_model(each, options));
    const ModelSummary summary = summarise(graph);
    const std::string shape = graph.node(graph.input()).shape.text();
    std::printf("%-10s %-10s %8lld %12lld %16lld %18lld %8lld\n", each.c_str(), shape.c_str(),
                static_cast<long long>(graph.classes()),
                static_cast<long long>(summary.parameters),
                static_cast<long long>(summary.multiply_adds),
                static_cast<long long>(summary.activation_bytes),
                static_cast<long long>(summary.meeting_points));
    rows.push_back({{"model", each},
                    {"input", shape},
                    {"classes", graph.classes()},
                    {"parameters", summary.parameters},
                    {"multiply_adds", summary.multiply_adds},
                    {"activation_bytes", summary.activation_bytes},
                    {"meeting_points", summary.meeting_points}});
  }
  write_json_result(json_file, {{"models", rows}});
  return 0;
}

}  // namespace regatta::app
