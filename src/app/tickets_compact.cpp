// `tickets compact`: the smaller network that is left of a masked one.
#include <cstdio>
#include <memory>

#include "app/command.h"
#include "app/ticket_source.h"
#include "app/tickets_command.h"
#include "base/error.h"
#include "base/files.h"
#include "graph/op.h"
#include "models/network_json.h"
#include "tickets/compact.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct CompactFlags {
  std::string from, out;
  std::optional<std::string> mask, json_file;
};

std::int64_t weights_in(const Graph& graph) { return whole_mask(graph).count(); }

double multiply_adds(const Graph& graph) {
  double sum = 0;
  for (const Node& node : graph.nodes())
    if (node.op->name == "conv" || node.op->name == "dense")
      sum += node.op->cost(node, input_shapes(graph, node)).forward_flops / 2;
  return sum;
}

TensorFile tensors_of(const Graph& graph, const Weights& weights) {
  TensorFile file;
  const auto add = [&](const Parameter& parameter) {
    file.tensors.push_back(to_tensor(parameter, weights.at(parameter.name)));
  };
  for (const Parameter& parameter : graph.parameters()) add(parameter);
  for (const Parameter& state : graph.states())
    if (weights.contains(state.name)) add(state);
  return file;
}

int run_compact(const CompactFlags& flags) {
  if (fs::exists(flags.out))
    throw InputError("--out " + flags.out + " is there already: choose another folder");
  const TicketSource source = ticket_source(flags.from);
  const Mask mask = mask_of(source, flags.mask);
  const Graph network = network_of_run(read_json(source.folder / "run.json"));
  const tickets::Compacted small = tickets::compact(network, source.weights, mask);
  NewRunFolder fresh(flags.out);
  const fs::path& folder = fresh.path();
  TensorFile file = tensors_of(small.network, small.weights);
  file.metadata = source.file.metadata;  // class names
  write_file(folder / "network.json", network_text(small.network));
  write_safetensors(folder / "model.safetensors", file);
  write_mask(folder / "mask.safetensors", small.mask);
  fresh.keep();
  const double before = multiply_adds(network), after = multiply_adds(small.network);
  std::printf(
      "%s: %lld of %lld channels, %lld of %lld weights, %.4g of %.4g million multiply-adds\n",
      flags.out.c_str(), static_cast<long long>(small.channels_after),
      static_cast<long long>(small.channels_before),
      static_cast<long long>(weights_in(small.network)),
      static_cast<long long>(weights_in(network)), after / 1e6, before / 1e6);
  write_json_result(
      flags.json_file,
      {{"folder", flags.out},
       {"density", mask.density()},
       {"channels", {{"before", small.channels_before}, {"after", small.channels_after}}},
       {"weights", {{"before", weights_in(network)}, {"after", weights_in(small.network)}}},
       {"multiply_adds", {{"before", before}, {"after", after}}}});
  return 0;
}

}  // namespace

std::function<int()> declare_tickets_compact(CLI::App& app) {
  const auto flags = std::make_shared<CompactFlags>();
  declare_ticket(app, flags->from, flags->mask);
  app.add_option("--out", flags->out,
                 "a new folder: network.json, model.safetensors and mask.safetensors")
      ->required()
      ->type_name("FOLDER");
  add_json_flag(app, flags->json_file);
  app.footer(
      "Example:\n  regatta tickets compact runs/ticket --out small\n"
      "  regatta eval --model small/network.json --weights small/model.safetensors --data mnist");
  return [flags] { return run_compact(*flags); };
}

}  // namespace regatta::app
