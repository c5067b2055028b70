#include "app/bench_ceiling.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "app/bench_runs.h"
#include "app/command.h"
#include "app/kernels_alone.h"
#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/files.h"
#include "graph/op.h"
#include "models/models.h"
#include "platform/disturbance.h"
#include "platform/machine.h"
#include "trace/analysis.h"
#include "trace/store.h"
#include "train/job.h"

namespace regatta::app {
namespace {

using OperatorKey = std::pair<std::string, std::string>;  // operator and work, as traces name them

// The costs of an operator for one image; seconds are those of one core.
struct OperatorUse {
  double trained_s = 0;  // in the training run
  double alone_s = 0;    // by itself: measured, or its bytes at the streaming rate
  double bytes = 0, flops = 0;
};
using OperatorTable = std::map<OperatorKey, OperatorUse>;

// Batch norm is two pieces of work each way where the batch is cut, and one where it is whole.
struct NamedWork {
  const char* name;
  Work work;
};
constexpr NamedWork halves[] = {{"statistics", Work::statistics},
                                {"normalise", Work::normalise},
                                {"gradient_sums", Work::gradient_sums},
                                {"gradient_apply", Work::gradient_apply}};
constexpr NamedWork wholes[] = {{"forward", Work::forward}, {"backward", Work::backward}};

class Ceiling {
 public:
  Ceiling(const Graph& graph, Precision precision, int cores)
      : graph_(graph),
        flow_(graph),
        precision_(precision),
        forms_(value_forms(graph, cpu::preferred_layout(), precision)),
        cores_(cores) {}

  void measure(std::int64_t samples, double seconds) {
    const std::chrono::duration<double> at_least(seconds);
    rates_ = stream_rates(cores_, at_least / 4);
    for (const AloneTime& time :
         products_alone(graph_, cpu::preferred_layout(), precision_, samples, cores_, at_least)) {
      alone_[{time.step.node.value, time.step.work == Work::backward}] = time.seconds;
      products_s_ += time.seconds;
    }
    for (const Node& node : graph_.nodes()) {
      for (const NamedWork& each : wholes) add(node, each);
      if (node.op->meets)
        for (const NamedWork& each : halves) add(node, each);
    }
  }

  // Sums what the operators of a recorded run took.
  void add_run(const trace::Record& record, std::int64_t batch) {
    const trace::Window window = trace::whole_window(record);
    const auto steps = static_cast<double>(window.last_step - window.first_step + 1);
    const double images = steps * static_cast<double>(batch);
    images_per_s_ = images / trace::seconds(window.end - window.start);
    taken_by_others_ = trace::analyse(record, window).taken_by_others;
    // A worker with a team is as many cores as it has threads.
    const double cores =
        cores_ / static_cast<double>(std::max<std::size_t>(record.workers.size(), 1));
    std::map<std::int64_t, std::int64_t> step_of;
    for (const trace::Task& task : record.tasks) step_of[task.id] = task.step;
    for (const trace::Operator& each : record.operators) {
      const auto found = step_of.find(each.task);
      if (found == step_of.end() || found->second < window.first_step ||
          found->second > window.last_step)
        continue;
      const trace::OperatorKind& kind = record.operator_kinds[static_cast<std::size_t>(each.kind)];
      // The two halves of a split backward are one row.
      const bool half = kind.work == "input_gradient" || kind.work == "weight_gradient";
      table_[{kind.op, half ? "backward" : kind.work}].trained_s +=
          cores * trace::seconds(each.end - each.start) / images;
    }
    std::erase_if(table_, [](const auto& row) { return row.second.trained_s == 0; });
  }

  double rest_s() const { return rest_bytes_ / rates_.together; }
  double images_per_s() const { return cores_ / (products_s_ + rest_s()); }

  void print() const {
    std::printf("%d cores: a core streams %.1f GB/s alone, %.1f GB/s while all do\n", cores_,
                rates_.alone / 1e9, rates_.together / 1e9);
    std::printf("convolutions and dense layers by themselves: %.2f ms an image and core\n",
                1e3 * products_s_);
    std::printf("all else: %.1f MB an image, %.2f ms at the streaming rate\n", rest_bytes_ / 1e6,
                1e3 * rest_s());
    std::printf("ceiling %.2f images/s; training reaches %.2f images/s, %.1f%% of it\n\n",
                images_per_s(), images_per_s_, 100 * images_per_s_ / images_per_s());
    if (const std::string text = disturbed_text(taken_by_others_); !text.empty())
      std::printf("%s\n\n", text.c_str());
    std::printf("%-20s %-15s %9s %7s %9s %8s %9s %8s %9s %8s\n", "operator", "work", "ms/image",
                "share", "MB/image", "GB/s", "GFLOP", "GFLOP/s", "alone ms", "of alone");
    double all = 0;
    for (const auto& [key, use] : table_) all += use.trained_s;
    for (const auto& [key, use] : by_time()) {
      std::printf("%-20s %-15s %9.3f %6.1f%%", key.first.c_str(), key.second.c_str(),
                  1e3 * use.trained_s, 100 * use.trained_s / all);
      print_rate(use.bytes / 1e6, use.bytes / use.trained_s / 1e9);
      print_rate(use.flops / 1e9, use.flops / use.trained_s / 1e9);
      if (use.alone_s > 0)
        std::printf(" %9.3f %7.1f%%\n", 1e3 * use.alone_s, 100 * use.alone_s / use.trained_s);
      else
        std::printf(" %9s %8s\n", "", "");
    }
  }

  Json json() const {
    Json rows = Json::array();
    for (const auto& [key, use] : by_time())
      rows.push_back({{"operator", key.first},
                      {"work", key.second},
                      {"seconds_per_image", use.trained_s},
                      {"alone_seconds_per_image", use.alone_s},
                      {"bytes_per_image", use.bytes},
                      {"flops_per_image", use.flops}});
    return {{"cores", cores_},
            {"stream_alone_bytes_per_s", rates_.alone},
            {"stream_together_bytes_per_s", rates_.together},
            {"products_seconds_per_image", products_s_},
            {"other_bytes_per_image", rest_bytes_},
            {"ceiling_images_per_s", images_per_s()},
            {"images_per_s", images_per_s_},
            {"taken_by_others", taken_by_others_ ? Json(*taken_by_others_) : Json()},
            {"operators", std::move(rows)}};
  }

 private:
  void add(const Node& node, const NamedWork& each) {
    const Instruction step{node.id, each.work};
    const bool back = goes_back(each.work);
    if (back && !flow_.wanted(node.id)) return;
    const Cost cost = node.op->cost(node, input_shapes(graph_, node));
    OperatorUse& use = table_[{std::string(node.op->name), each.name}];
    const double bytes = bytes_moved(graph_, flow_, forms_, step);
    use.bytes += bytes;
    // The two halves of a cut batch norm share its FLOPs in unknown parts: neither counts.
    if (each.work == Work::forward || each.work == Work::backward)
      use.flops += back ? cost.backward_flops : cost.forward_flops;
    if (is_product(node)) {
      use.alone_s += alone_.at({node.id.value, back});
    } else {
      use.alone_s += bytes / rates_.together;
      if (each.work == Work::forward || each.work == Work::backward) rest_bytes_ += bytes;
    }
  }

  static void print_rate(double amount, double rate) {
    if (amount > 0)
      std::printf(" %9.3f %8.1f", amount, rate);
    else
      std::printf(" %9s %8s", "", "");
  }

  std::vector<std::pair<OperatorKey, OperatorUse>> by_time() const {
    std::vector<std::pair<OperatorKey, OperatorUse>> rows(table_.begin(), table_.end());
    std::ranges::stable_sort(rows, std::greater{},
                             [](const auto& row) { return row.second.trained_s; });
    return rows;
  }

  const Graph& graph_;
  GradientFlow flow_;
  Precision precision_;
  std::vector<ValueForm> forms_;
  int cores_;
  StreamRates rates_;
  std::map<std::pair<std::uint32_t, bool>, double> alone_;  // by node, and whether backward
  OperatorTable table_;
  double products_s_ = 0, rest_bytes_ = 0, images_per_s_ = 0;
  std::optional<double> taken_by_others_;  // of the training run
};

}  // namespace

double bytes_moved(const Graph& graph, const GradientFlow& flow,
                   const std::vector<ValueForm>& forms, const Instruction& step) {
  const Node& node = graph.node(step.node);
  const auto bytes_of = [&](NodeId id) {
    const ValueForm& form = forms[id.value];
    return static_cast<double>(form.elements) * static_cast<double>(dtype_bytes(form.dtype));
  };
  const double own = bytes_of(node.id);
  double inputs = 0, input_gradients = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    inputs += bytes_of(node.inputs[i]);
    const GradientMode mode = flow.mode(node.id, i);
    const double times = mode == GradientMode::none ? 0 : mode == GradientMode::write ? 1 : 2;
    input_gradients += times * bytes_of(node.inputs[i]);
  }
  if (node.op->meets) {
    // The output is read for the relu's mask only where a residual was added before it.
    const bool masked = node.inputs.size() == 2 && node.attributes.flag("relu");
    const double sums = own * (masked ? 3 : 2);
    switch (step.work) {
      case Work::statistics:
        return own;
      case Work::normalise:
        return inputs + own;
      case Work::forward:
        return own + inputs + own;
      case Work::gradient_sums:
        return sums;
      case Work::gradient_apply:
        return sums + input_gradients;
      case Work::backward:
      case Work::input_gradient:
      case Work::weight_gradient:
        return 2 * sums + input_gradients;
    }
  }
  if (step.work == Work::forward) return inputs + own;
  return own + (node.op->backward_reads_input ? inputs : 0) + input_gradients;
}

void declare_ceiling(CLI::App& app, CeilingFlags& flags) {
  app.add_option("--model", flags.model, "a name that regatta models lists")
      ->required()
      ->type_name("NAME");
  app.add_option("--input", flags.input, "image size, if not the model's")->type_name("CxHxW");
  app.add_option("--batch", flags.batch, "images per step")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "cores (default: the CPUs this process may use)")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--precision", flags.precision, "fp32 or bf16")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--segments", flags.segments, "as regatta train takes it")->type_name("HOW");
  app.add_option("--chunks", flags.chunks, "as regatta train takes it")->type_name("N|SIZES");
  app.add_option("--team", flags.team, "as regatta train takes it")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--granularity", flags.granularity, "auto or fixed, as regatta train takes it")
      ->type_name("KIND")
      ->capture_default_str();
  app.add_option("--steps", flags.steps, "of the training run; its second half is recorded")
      ->type_name("N")
      ->check(whole_number(2, 100'000))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "for what kernels reach by themselves, at least")
      ->type_name("X")
      ->check(number(0.0, 3600.0))
      ->capture_default_str();
  add_json_flag(app, flags.json_file);
  app.footer("Example:\n  regatta bench ceiling --model resnet50 --batch 16");
}

int run_ceiling(const CeilingFlags& flags) {
  if (flags.json_file) require_writable(*flags.json_file);
  CellOptions cell;
  cell.model = flags.model;
  cell.input = flags.input;
  cell.input = input_of(cell);
  cell.batch = flags.batch;
  cell.workers = flags.workers.value_or(std::min(available_cpus(), most_workers));
  cell.segments = flags.segments;
  cell.chunks = flags.chunks;
  cell.team = flags.team;
  cell.granularity = flags.granularity;
  cell.steps = static_cast<std::int64_t>(flags.steps);
  cell.precision = flags.precision;
  const Precision precision = precision_named(flags.precision);
  const Graph graph = fuse(build_model(flags.model, {.input = Shape::parse(*cell.input)}));

  Ceiling ceiling(graph, precision, cell.workers);
  ceiling.measure(std::max<std::int64_t>(1, cell.batch / cell.workers), flags.seconds);
  const BenchRuns runs;
  const std::filesystem::path run = runs.folder() / "run";
  runs.trace(cell, flags.steps, TraceDepth::operators, run);
  ceiling.add_run(trace::read_store(trace::store_of(run)), cell.batch);

  std::printf("%s, %s, batch %lld, %s, %s\n", flags.model.c_str(), cell.input->c_str(),
              static_cast<long long>(cell.batch), flags.precision.c_str(), cpu_name().c_str());
  ceiling.print();
  Json json = ceiling.json();
  json["model"] = flags.model;
  json["input"] = *cell.input;
  json["batch"] = cell.batch;
  json["precision"] = flags.precision;
  json["machine"] = {{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}};
  write_json_result(flags.json_file, json);
  return 0;
}

}  // namespace regatta::app
