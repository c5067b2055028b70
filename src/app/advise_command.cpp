// `advise`: which parallelism suits each layer of a network on a platform, and which sizes of tasks
// and how many workers suit a data set.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "app/command.h"
#include "app/model_job.h"
#include "app/optimizer_problem.h"
#include "app/profiles.h"
#include "base/error.h"
#include "base/files.h"
#include "graph/op.h"
#include "optimize/advice.h"
#include "report/text.h"

namespace regatta::app {
namespace {

// A task that is shorter is mostly scheduling.
constexpr double least_task_s = 1e-4;

struct AdviseFlags {
  ModelFlags network;
  std::string platform;
  std::optional<std::string> json_file;
  std::optional<std::int64_t> images;
};

// The devices that plans may use, as nodes alike that are as fast together.
struct Mean {
  optimize::Cluster cluster;
  double sample_s = 0;        // of the whole network on such a node
  double fastest_core_s = 0;  // of a sample on the fastest device
};

Mean mean_of(const optimize::Problem& problem) {
  Mean mean;
  mean.cluster.nodes = 0;
  mean.cluster.batch = problem.batch;
  mean.cluster.bandwidth = std::numeric_limits<double>::infinity();
  double rate = 0, fastest = 0;  // samples a second
  for (const optimize::NodeKind& node : problem.nodes) {
    const auto count = static_cast<double>(node.count);
    mean.cluster.nodes += count;
    mean.cluster.bandwidth = std::min(mean.cluster.bandwidth, node.link_bandwidth);
    for (const optimize::Device& device : node.devices) {
      if (!device.offered) continue;
      const double own = 1 / optimize::total(device.states.front().seconds).per_sample;
      rate += count * device.units * own;
      fastest = std::max(fastest, own);
    }
  }
  mean.sample_s = mean.cluster.nodes / rate;
  mean.fastest_core_s = 1 / fastest;
  if (mean.cluster.nodes < 2) mean.cluster.bandwidth = 1;
  return mean;
}

std::vector<optimize::LayerFacts> layers_of(const Graph& graph, double sample_s) {
  std::vector<optimize::LayerFacts> layers;
  double all = 0;
  for (const Node& node : graph.nodes()) {
    const Cost cost = node.op->cost(node, input_shapes(graph, node));
    const double flops = cost.forward_flops + cost.backward_flops;
    all += flops;
    if (node.parameters.empty()) continue;
    optimize::LayerFacts layer{node.name};
    for (const ParameterId id : node.parameters)
      layer.gradient_bytes +=
          static_cast<double>(graph.parameter(id).shape.elements()) * sizeof(float);
    for (const NodeId input : node.inputs)
      layer.input_bytes += static_cast<double>(graph.node(input).shape.elements()) * sizeof(float);
    layer.output_bytes = static_cast<double>(node.shape.elements()) * sizeof(float);
    layer.sample_s = flops;
    layers.push_back(std::move(layer));
  }
  for (optimize::LayerFacts& layer : layers) layer.sample_s *= sample_s / all;
  return layers;
}

std::vector<std::string> advice_on_data(const AdviseFlags& flags, const Mean& mean) {
  std::vector<std::string> lines;
  const auto gathered = static_cast<std::int64_t>(std::ceil(least_task_s / mean.fastest_core_s));
  lines.push_back(gathered > 1
                      ? "images are small: an image is " + seconds_text(mean.fastest_core_s) +
                            " of work on the fastest device, so gather " +
                            std::to_string(gathered) + " or more in a task"
                      : "images are large enough for a task each: " +
                            seconds_text(mean.fastest_core_s) + " of work on the fastest device");
  const std::int64_t workers =
      std::max<std::int64_t>(1, flags.network.batch / std::max<std::int64_t>(1, gathered));
  lines.push_back("a batch of " + std::to_string(flags.network.batch) + " feeds no more than " +
                  std::to_string(workers) + " workers");
  if (flags.images) {
    const std::int64_t steps =
        *flags.images / flags.network.batch + (*flags.images % flags.network.batch != 0 ? 1 : 0);
    lines.push_back(std::to_string(*flags.images) + " images are " + std::to_string(steps) +
                    " steps an epoch" +
                    (steps < 10 ? ": few; a smaller --batch gives more of them, and then no more "
                                  "than its samples' worth of workers"
                                : ""));
  }
  return lines;
}

void declare(CLI::App& app, AdviseFlags& flags) {
  declare_model(app, flags.network);
  app.add_option("--platform", flags.platform, "the machines")->required()->type_name("FILE");
  app.add_option("--images", flags.images, "of the data set")
      ->type_name("N")
      ->check(whole_number(1));
  add_json_flag(app, flags.json_file);
  app.footer("Example:\n  regatta advise --model vgg16 --platform platforms/lab.json --batch 256");
}

}  // namespace

int run_advise(std::span<const char* const> arguments) {
  CLI::App app("Tells for each layer what it computes and sends, and which parallelism suits it.",
               "regatta advise");
  AdviseFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;
  if (flags.json_file) require_writable(*flags.json_file);
  const TrainJob job = job_of(flags.network);
  const Platform platform = read_platform(flags.platform);
  NodeOptions nodes;
  nodes.plan.layout = default_cpu_layout();
  const optimize::Problem problem = optimizer_problem(
      job.graph, job.recipe, platform,
      profiles_for(platform, std::filesystem::path(flags.platform).parent_path()), nodes);
  const Mean mean = mean_of(problem);
  std::cout << formatted("%.0f nodes, batch %lld; seconds of a step on each node and its link:\n",
                         mean.cluster.nodes, static_cast<long long>(flags.network.batch))
            << formatted("  %-28s %9s %9s %9s %9s %9s  %-9s %s\n", "layer", "MB", "work", "data",
                         "model", "pipeline", "suits", "data suits");
  Json layers = Json::array();
  std::vector<std::string> costly;
  for (const optimize::LayerFacts& layer : layers_of(job.graph, mean.sample_s)) {
    const optimize::Advice advice = advice_for(layer, mean.cluster);
    if (advice.gradients_cost_more()) costly.push_back(layer.name);
    std::cout << formatted(
        "  %-28s %9.3f %9.2e %9.2e %9.2e %9.2e  %-9s from batch %.0f\n", layer.name.c_str(),
        layer.gradient_bytes / 1e6, advice.work_s, advice.data_s, advice.model_s, advice.pipeline_s,
        parallelism_name(advice.suits).c_str(), std::max(1.0, advice.data_from_batch));
    layers.push_back({{"layer", layer.name},
                      {"gradient_bytes", layer.gradient_bytes},
                      {"work_s", advice.work_s},
                      {"data_s", advice.data_s},
                      {"model_s", advice.model_s},
                      {"pipeline_s", advice.pipeline_s},
                      {"suits", parallelism_name(advice.suits)},
                      {"gradients_cost_more", advice.gradients_cost_more()},
                      {"data_from_batch", advice.data_from_batch}});
  }
  std::cout << costly.size() << " layers have gradients that cost more than their work\n";
  const std::vector<std::string> data = advice_on_data(flags, mean);
  for (const std::string& line : data) std::cout << line << "\n";
  write_json_result(flags.json_file, {{"model", flags.network.model},
                                      {"batch", flags.network.batch},
                                      {"nodes", mean.cluster.nodes},
                                      {"bandwidth", mean.cluster.bandwidth},
                                      {"layers", layers},
                                      {"costly", costly},
                                      {"data", data}});
  return 0;
}

}  // namespace regatta::app
