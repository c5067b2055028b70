// `calibrate`: measures what a network's work costs here, adds it to this machine's profile, and
// tells what the profile now predicts and how sure it is.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <set>

#include "app/command.h"
#include "app/recipe_flags.h"
#include "base/error.h"
#include "base/files.h"
#include "graph/op.h"
#include "models/load.h"
#include "profile/robust.h"
#include "train/job.h"
#include "tune/calibrate.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

struct CalibrateFlags {
  std::optional<std::string> model, input, json_file;
  std::string data;
  RecipeFlags recipe;
  std::optional<std::int64_t> classes;
  std::string batches = "64", devices = "cpu", precision = "fp32", layout = "nhwc", teams;
  std::optional<int> workers;
  double seconds = 10;
};

void declare(CLI::App& app, CalibrateFlags& flags) {
  app.add_option("--model", flags.model,
                 "a name that regatta models lists, or a file (default: tiny, lenet5, resnet18)")
      ->type_name("NAME|FILE");
  app.add_option("--data", flags.data,
                 "as regatta train takes it: also what loading costs (default: made-up images)")
      ->type_name("SPEC");
  declare_measured_recipe(app, flags.recipe);
  app.add_option("--input", flags.input, "image size, if not the model's")->type_name("CxHxW");
  app.add_option("--classes", flags.classes, "classes, if not the model's")
      ->type_name("N")
      ->check(whole_number(2));
  app.add_option("--batch", flags.batches, "images per step; chunks up to these are measured")
      ->type_name("SIZES")
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "CPU workers (default: the CPUs this process may use)")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--teams", flags.teams, "also with workers of so many threads, such as 2,4")
      ->type_name("SIZES");
  app.add_option("--devices", flags.devices,
                 "cpu, cuda or cpu,cuda: then also both on one batch, meeting across memories")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--precision", flags.precision, "fp32, bf16, or on GPUs tf32")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--layout", flags.layout, "of images on GPUs: nhwc or nchw")
      ->check(CLI::IsMember({"nhwc", "nchw"}))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "time for each model and batch")
      ->type_name("S")
      ->check(number(0.0, 86400.0))
      ->capture_default_str();
  add_json_flag(app, flags.json_file);
  app.footer("Example:\n  regatta calibrate --model resnet18 --input 3x64x64 --batch 32,64");
}

bool has_batch_norm(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op->meets; });
}

TrainJob job_of(const CalibrateFlags& flags, const std::string& model, std::int64_t batch) {
  JobOptions options;
  options.model = model;
  options.input = flags.input ? std::optional(Shape::parse(*flags.input)) : std::nullopt;
  options.classes = flags.classes;
  options.batch = batch;
  options.precision = precision_named(flags.precision);
  options.workers = flags.workers;
  options.test = "none";
  options.plan.devices = {devices_named(flags.devices).front()};
  // Beside GPUs that compute in tf32, CPUs compute in fp32.
  const bool cpu = options.plan.devices.front() == DeviceKind::cpu;
  if (cpu && options.precision == Precision::tf32) options.precision = Precision::fp32;
  options.optimizer = default_settings(optimizer_named(flags.recipe.optimizer));
  options.batch_norm_group = batch_norm_group_named("--batch-norm", flags.recipe.batch_norm);
  const auto load = [&] {
    return load_model(model, {.input = options.input, .classes = options.classes}).graph;
  };
  // The models that nobody named are measured with groups where they have a batch norm to group.
  if (!flags.model && !has_batch_norm(load())) options.batch_norm_group = 0;
  options.data = flags.data;
  if (options.data.empty()) {
    const Graph graph = load();
    options.data = "synth:" + graph.node(graph.input()).shape.text() + "/" +
                   std::to_string(graph.classes()) + "@" + std::to_string(batch);
  }
  TrainJob job = make_job(options);
  job.recipe.precision = precision_named(flags.precision);
  return job;
}

// --- telling -------------------------------------------------------------------------------------

// "cpu blocked16 fp32 | conv 3x8x8 -> ... | forward" belongs to "conv forward", and what has no
// shapes to its own words.
std::string group_of(const std::string& signature) {
  if (of_segments(signature)) {
    const std::size_t mark = signature.rfind(" | ");
    return group_of(signature.substr(0, mark)) + ", " + signature.substr(mark + 3);
  }
  const std::size_t first = signature.find(" | "), last = signature.rfind(" | ");
  if (first == std::string::npos) return signature.substr(0, signature.find(' '));
  std::string what = signature.substr(first + 3);
  if (first == last) return what;
  const std::string work = signature.substr(last + 3);
  return what.substr(0, what.find(' ')) + " " + work.substr(0, work.find(' '));
}

struct Row {
  std::size_t signatures = 0;
  Estimate alone, together;  // of one chunk of the largest size measured
  std::vector<double> held_out;
};

void print_table(const Profile& profile, const std::set<std::string>& seen, int workers) {
  std::map<std::string, Row> rows;
  for (const std::string& signature : seen) {
    if (signature.starts_with("runtime")) continue;
    const Profile::Entry& entry = profile.entries().at(signature);
    const double size = std::ranges::max(entry.points, {}, &Point::size).size;
    Row& row = rows[group_of(signature)];
    ++row.signatures;
    row.alone += entry.fit.at(size, 1);
    row.together += entry.fit.at(size, workers);
    row.held_out.push_back(entry.fit.held_out());
  }
  const auto cell = [](const Estimate& cost) {
    char text[64];
    std::snprintf(text, sizeof text, "%10.1f +-%4.1f%%", 1e6 * cost.seconds,
                  cost.seconds > 0 ? 50 * (cost.high - cost.low) / cost.seconds : 0);
    return std::string(text);
  };
  std::printf("%-34s %5s %18s %18s %9s\n", "work, one of each, at its largest", "kinds",
              "us, one busy", "us, all busy", "held out");
  for (const auto& [name, row] : rows)
    std::printf("%-34s %5zu %18s %18s %8.1f%%\n", name.c_str(), row.signatures,
                cell(row.alone).c_str(), cell(row.together).c_str(), 100 * median(row.held_out));
  const RuntimeCosts costs = profile.runtime();
  std::printf(
      "runtime, us: %.2f between tasks and %.2f for each buffer of the next, %.2f to wake a "
      "worker,\n"
      "%.2f for each buffer of a further one; %.2f to submit a task and %.2f for each of its "
      "buffers,\n"
      "%.2f a step; copying %.2f GB/s\n",
      1e6 * costs.task, 1e6 * costs.access, 1e6 * costs.wake, 1e6 * costs.release,
      1e6 * costs.submission, 1e6 * costs.dependency, 1e6 * costs.step, 1e-9 / costs.byte);
}

Json json_of(const Profile& profile, const std::set<std::string>& seen) {
  Json all = Json::array();
  for (const std::string& signature : seen) {
    const Profile::Entry& entry = profile.entries().at(signature);
    Json points = Json::array();
    for (const Point& point : entry.points) {
      const Estimate cost = entry.fit.at(point.size, point.busy);
      points.push_back({{"size", point.size},
                        {"busy", point.busy},
                        {"seconds", cost.seconds},
                        {"low", cost.low},
                        {"high", cost.high}});
    }
    all.push_back({{"signature", signature},
                   {"held_out_error", entry.fit.held_out()},
                   {"points", std::move(points)}});
  }
  return all;
}

}  // namespace

int run_calibrate(std::span<const char* const> arguments) {
  CLI::App app("Measures what a network's work costs on this machine, for choosing plans.",
               "regatta calibrate");
  CalibrateFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;
  if (flags.json_file) require_writable(*flags.json_file);

  CalibrationOptions options;
  options.workers = flags.workers ? *flags.workers : default_workers();
  options.devices = devices_named(flags.devices);
  options.shared = options.devices.size() > 1;
  options.teams_of_nodes = true;
  options.gpu.gpu_layout = layout_named(flags.layout);
  options.budget = Seconds(flags.seconds);
  if (!flags.teams.empty())
    for (const std::int64_t team : parse_sizes("--teams", flags.teams)) {
      if (team < 2 || team > options.workers)
        throw InputError("--teams " + flags.teams + ": use 2 to " +
                         std::to_string(options.workers) + ", the --workers to form teams of");
      options.teams.push_back(static_cast<int>(team));
    }

  const ProfileStore store = profile_store();
  std::string remark;
  Profile profile = store.load(&remark);
  if (!remark.empty()) std::cerr << remark << "\n";
  const std::vector<std::string> models =
      flags.model ? std::vector{*flags.model}
                  : std::vector<std::string>{"tiny", "lenet5", "resnet18"};
  std::set<std::string> seen;
  for (const std::string& model : models) {
    for (const std::int64_t batch : parse_sizes("--batch", flags.batches)) {
      const TrainJob job = job_of(flags, model, batch);
      std::cerr << "measuring what the work of " << model << " at " << job.recipe.input.text()
                << ", batch " << batch << " costs here\n";
      std::vector<Observation> session = calibrate(job, options);
      options.runtime = false;  // once is enough
      profile = store.learn(session);
      for (const Observation& each : session)
        if (profile.find(each.signature)) seen.insert(each.signature);
      std::printf("%s, %s, batch %lld: %zu timings\n", model.c_str(),
                  job.recipe.input.text().c_str(), static_cast<long long>(batch), session.size());
    }
  }
  print_table(profile, seen, options.workers);
  std::printf("profile: %s\n", store.file().string().c_str());
  write_json_result(flags.json_file, {{"profile", store.file().string()},
                                      {"workers", options.workers},
                                      {"costs", json_of(profile, seen)}});
  return 0;
}

}  // namespace regatta::app
