#include "cuda/step.h"

#include <cstdio>
#include <map>
#include <string>

#include "cuda/operator_bench.h"
#include "models/models.h"

namespace regatta::bench {
namespace {

bool is_backward(Work work) { return work == Work::backward; }

// What a row of the account gathers: "conv 3x3 backward".
std::string kind_of(const Node& node, Work work) {
  std::string kind(node.op->name);
  if (node.op->name == "conv") {
    const auto [height, width] = node.attributes.pair("kernel", 1);
    kind += " " + std::to_string(height) + "x" + std::to_string(width);
  }
  return kind + (is_backward(work) ? " backward" : " forward");
}

// Instructions that are alike take the same time, so one of them is timed.
std::string signature_of(const Graph& graph, const Node& node, Work work) {
  std::string text = kind_of(node, work) + " " + node.shape.text();
  for (const NodeId input : node.inputs) text += " " + graph.node(input).shape.text();
  const auto [rows, columns] = node.attributes.pair("stride", 1);
  return text + " /" + std::to_string(rows * columns) + (node.attributes.flag("relu") ? " r" : "");
}

struct Row {
  int count = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

// Every tensor that the instruction reads or writes, once.
double least_bytes(const Graph& graph, const std::vector<ValueForm>& forms, const Node& node,
                   Work work, std::int64_t n) {
  const GradientFlow flow(graph);
  const auto bytes = [&](NodeId id) { return static_cast<double>(forms[id.value].bytes(n)); };
  double total = bytes(node.id);
  if (is_backward(work) && node.op->backward_reads_output) total += bytes(node.id);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool reads = !is_backward(work) || node.op->backward_reads_input;
    if (reads) total += bytes(node.inputs[i]);
    if (!is_backward(work)) continue;
    const GradientMode mode = flow.mode(node.id, i);
    if (mode != GradientMode::none) total += bytes(node.inputs[i]);
    if (mode == GradientMode::add) total += bytes(node.inputs[i]);
  }
  return total;
}

void print(const std::string& name, const Row& row, double whole) {
  std::printf("%-32s %5d %9.3f %6.1f%% %9.1f %7.2f\n", name.c_str(), row.count, row.seconds * 1e3,
              100 * row.seconds / whole, row.flops / row.seconds / 1e12,
              row.bytes / row.seconds / 1e12);
}

}  // namespace

void step_account(std::int64_t n) {
  const Graph graph = fuse(build_model("resnet50"));
  const std::vector<ValueForm> forms = value_forms(graph, Layout::nhwc, Precision::bf16);
  const Program program = program_of(graph, graph.input(), graph.loss(), Pass::train, false);
  std::map<std::string, double> timed;
  std::map<std::string, Row> rows;
  Row whole;
  const auto account = [&](const Part& part) {
    for (const Instruction& step : part) {
      const Node& node = graph.node(step.node);
      const std::string signature = signature_of(graph, node, step.work);
      if (!timed.contains(signature))
        timed[signature] = OperatorBench(graph, node.id, n).time(step.work);
      const Cost cost = node.op->cost(node, input_shapes(graph, node));
      for (Row* row : {&rows[kind_of(node, step.work)], &whole}) {
        row->count += 1;
        row->seconds += timed[signature];
        row->flops += static_cast<double>(n) *
                      (is_backward(step.work) ? cost.backward_flops : cost.forward_flops);
        row->bytes += least_bytes(graph, forms, node, step.work, n);
      }
    }
  };
  account(program.forward.front());
  account(program.backward.front());

  std::printf("\n%-32s %5s %9s %7s %9s %7s\n", "resnet50's step, by operator", "calls", "ms",
              "share", "TFLOP/s", "TB/s");
  for (const auto& [name, row] : rows) print(name, row, whole.seconds);
  print("all operators, one by one", whole, whole.seconds);
}

}  // namespace regatta::bench
