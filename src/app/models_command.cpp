// `models`: what there is to train, layer by layer if asked, and networks written to files.
#include <cstdio>

#include "app/command.h"
#include "base/error.h"
#include "base/files.h"
#include "graph/op.h"
#include "models/load.h"
#include "models/network_json.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/weights.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct ModelsFlags {
  std::string name;
  std::optional<std::string> input, json_file, export_file, weights;
  std::optional<std::int64_t> classes;
  std::uint64_t seed = 1;
};

void declare(CLI::App& app, ModelsFlags& flags) {
  app.add_option("name", flags.name,
                 "only this one, layer by layer: a name, net.json, net.onnx, or "
                 "a run folder")
      ->type_name("NAME|FILE|RUN");
  app.add_option("--input", flags.input, "adapt to images of CxHxW")->type_name("CxHxW");
  app.add_option("--classes", flags.classes, "adapt to so many classes")
      ->type_name("N")
      ->check(whole_number(2));
  app.add_option("--export", flags.export_file,
                 "write it: net.json (the network; - prints it) or net.onnx (with its weights)")
      ->type_name("FILE");
  app.add_option("--weights", flags.weights,
                 "weights for net.onnx (default: the run's or file's, else fresh ones)")
      ->type_name("FILE");
  app.add_option("--seed", flags.seed, "of fresh weights")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  add_json_flag(app, flags.json_file);
  app.footer(
      "Example:\n  regatta models resnet50 --input 3x64x64 --classes 10\n"
      "  regatta models mobilenet_v2 --export net.json\n"
      "  regatta models runs/mine --export net.onnx");
}

bool is_run(const std::string& name) { return fs::exists(fs::path(name) / "run.json"); }

LoadedModel subject_of(const std::string& name, const ModelsFlags& flags) {
  if (is_run(name)) {
    if (flags.input || flags.classes)
      throw InputError("a run tells --input and --classes itself: drop them");
    return {network_of_run(read_json(fs::path(name) / "run.json"))};
  }
  ModelOptions options{.input = {}, .classes = flags.classes};
  if (flags.input) options.input = Shape::parse(*flags.input);
  return load_model(name, options);
}

// --- telling -------------------------------------------------------------------------------------

Json row_of(const std::string& name, const Graph& unfused) {
  const Graph graph = fuse(unfused);
  const ModelSummary summary = summarise(graph);
  return {{"name", name},
          {"input", graph.node(graph.input()).shape.text()},
          {"classes", graph.classes()},
          {"parameters", summary.parameters},
          {"multiply_adds", summary.multiply_adds},
          {"activation_bytes", summary.activation_bytes},
          {"meeting_points", summary.meeting_points}};
}

Json layers_of(const Graph& graph) {
  Json layers = Json::array();
  for (const Node& node : graph.nodes()) {
    std::int64_t parameters = 0;
    for (const ParameterId id : node.parameters) parameters += graph.parameter(id).shape.elements();
    const Cost cost = node.op->cost(node, input_shapes(graph, node));
    layers.push_back({{"name", node.name},
                      {"op", node.op->name},
                      {"shape", node.shape.text()},
                      {"parameters", parameters},
                      {"forward_flops", cost.forward_flops}});
  }
  return layers;
}

void print_table(const Json& rows) {
  std::printf("%-14s %-10s %8s %12s %16s %18s %8s\n", "model", "input", "classes", "parameters",
              "multiply-adds", "activation bytes", "meetings");
  const auto number = [](const Json& row, const char* key) { return row[key].get<long long>(); };
  for (const Json& row : rows)
    std::printf("%-14s %-10s %8lld %12lld %16lld %18lld %8lld\n",
                row["name"].get<std::string>().c_str(), row["input"].get<std::string>().c_str(),
                number(row, "classes"), number(row, "parameters"), number(row, "multiply_adds"),
                number(row, "activation_bytes"), number(row, "meeting_points"));
}

void print_layers(const Json& layers) {
  std::printf("\n%-40s %-22s %-14s %12s %14s\n", "layer", "operator", "value", "parameters",
              "FLOPs");
  for (const Json& layer : layers)
    std::printf("%-40s %-22s %-14s %12lld %14.0f\n", layer["name"].get<std::string>().c_str(),
                layer["op"].get<std::string>().c_str(), layer["shape"].get<std::string>().c_str(),
                layer["parameters"].get<long long>(), layer["forward_flops"].get<double>());
}

// --- exporting -----------------------------------------------------------------------------------

// Class names that stand beside the weights become the model's.
Weights weights_for(const ModelsFlags& flags, LoadedModel& model) {
  fs::path file;
  if (flags.weights) {
    file = *flags.weights;
  } else if (is_run(flags.name)) {
    file = latest_checkpoint(flags.name) / "model.safetensors";
  } else {
    return model.weights ? *model.weights : initial_weights(model.graph, flags.seed);
  }
  TensorFile tensors = read_safetensors(file);
  // As eval has it: a run that averages its parameters is known by the average.
  if (!flags.weights && read_run_json(flags.name).job.recipe.optimizer.ema > 0)
    tensors = averaged(std::move(tensors),
                       read_safetensors(file.parent_path() / "optimizer.safetensors"));
  model.class_names = class_names_of(tensors);
  return weights_from(model.graph, tensors, file.string());
}

void write_model(const ModelsFlags& flags, LoadedModel model) {
  const std::string& file = *flags.export_file;
  const bool onnx = file.ends_with(".onnx");
  if (!onnx && !is_standard_output(file) && !file.ends_with(".json"))
    throw InputError("--export " + file + ": its name must end with .json or .onnx");
  if (!onnx && flags.weights)
    throw InputError("--weights goes with --export net.onnx: JSON holds the network alone");
  std::string text;
  if (onnx) {
    const Weights weights = weights_for(flags, model);  // may learn the class names
    text = write_onnx(model.graph, weights, model.class_names);
  } else {
    text = network_text(model.graph);
  }
  write_file(file, text);
  std::printf("%s: %zu layers\n", file.c_str(), model.graph.nodes().size() - 2);
}

}  // namespace

int run_models(std::span<const char* const> arguments) {
  CLI::App app(
      "The networks that come with Regatta: trained parameters; multiply-adds of a forward pass "
      "and\n"
      "activation bytes kept for backward, per image; and meeting points, the operators that need\n"
      "the whole batch.",
      "regatta models");
  ModelsFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;
  if (flags.name.empty()) {
    if (flags.export_file || flags.weights)
      throw InputError("--export and --weights need the name of a model");
    Json rows = Json::array();
    for (const std::string& each : model_names())
      rows.push_back(row_of(each, subject_of(each, flags).graph));
    write_json_result(flags.json_file, {{"models", rows}});
    print_table(rows);
    return 0;
  }

  const LoadedModel model = subject_of(flags.name, flags);
  const Json rows = Json::array({row_of(flags.name, model.graph)});
  const Json layers = layers_of(model.graph);
  write_json_result(flags.json_file, {{"models", rows}, {"layers", layers}});
  if (flags.export_file) {
    write_model(flags, model);
    return 0;
  }
  if (flags.weights) throw InputError("--weights goes with --export net.onnx");
  print_table(rows);
  print_layers(layers);
  return 0;
}

}  // namespace regatta::app
