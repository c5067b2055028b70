// `eval`: loss and accuracy over all data, and class by class.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "app/evaluating.h"
#include "base/files.h"
#include "data/skips.h"
#include "train/class_results.h"

namespace regatta::app {
namespace {

// What a class is mostly mistaken for, as " cat (12)"; empty if for nothing.
std::string mistaken_for(const ClassResults& results, std::size_t of) {
  std::size_t most = of;
  std::int64_t times = 0;
  for (std::size_t as = 0; as < results.classes.size(); ++as)
    if (const std::int64_t count = results.answered(of, as); as != of && count > times) {
      most = as;
      times = count;
    }
  if (times == 0) return "";
  return results.classes[most].name + " (" + std::to_string(times) + ")";
}

// A screen's worth: with more classes, those that are recognised worst.
void print_classes(const ClassResults& results) {
  constexpr std::size_t most = 20;
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < results.classes.size(); ++i)
    if (results.classes[i].count > 0) shown.push_back(i);
  const std::size_t all = shown.size();
  if (all > most) {
    std::ranges::stable_sort(shown, {},
                             [&](std::size_t i) { return results.classes[i].accuracy(); });
    shown.resize(most);
  }
  int width = 5;
  for (const std::size_t i : shown)
    width = std::max(width, static_cast<int>(results.classes[i].name.size()));
  std::printf("\n%-*s %8s %9s  %s\n", width, "class", "images", "accuracy", "mostly mistaken for");
  for (const std::size_t i : shown)
    std::printf("%-*s %8lld %8.2f%%  %s\n", width, results.classes[i].name.c_str(),
                static_cast<long long>(results.classes[i].count),
                100 * results.classes[i].accuracy(), mistaken_for(results, i).c_str());
  if (all > most)
    std::printf("the %zu classes of %zu that are recognised worst; --json has all\n", most, all);
}

// Rows are the classes of the images, columns the answers; only where they fit a terminal's 80
// columns.
void print_confusion(const ClassResults& results) {
  constexpr std::size_t most = 10;
  if (results.classes.size() > most) return;
  std::printf("\n%-12s", "answers");
  for (const ClassResult& each : results.classes) std::printf(" %6.6s", each.name.c_str());
  for (std::size_t of = 0; of < results.classes.size(); ++of) {
    if (results.classes[of].count == 0) continue;
    std::printf("\n%-12.12s", results.classes[of].name.c_str());
    for (std::size_t as = 0; as < results.classes.size(); ++as)
      std::printf(" %6lld", static_cast<long long>(results.answered(of, as)));
  }
  std::printf("\n");
}

}  // namespace

int run_eval(std::span<const char* const> arguments) {
  CLI::App app("Loss and accuracy of a trained network, over all images and class by class.",
               "regatta eval");
  EvalFlags flags;
  declare_evaluation(app, flags, "--run,run");
  app.footer(
      "Example:\n  regatta eval --run runs/lenet5 --data mnist\n"
      "  regatta eval --model resnet18 --weights w.safetensors --data npy:x.npy,y.npy");
  if (!parse(app, arguments)) return 0;
  if (flags.json_file) require_writable(*flags.json_file);
  const Evaluated result = evaluate_by(flags, false);
  const SkippedSamples skipped = result.data->skipped();
  for (const std::string& line : lines_of(skipped, "sample")) std::cerr << line << "\n";
  const std::int64_t samples = result.data->info().count;
  const ClassResults classes = class_results(result.evaluation, result.classes, result.class_names);
  std::printf("loss %.6f, accuracy %.2f%% over %lld images\n", result.evaluation.loss,
              100 * result.evaluation.accuracy, static_cast<long long>(samples));
  print_classes(classes);
  print_confusion(classes);
  Json json{{"loss", result.evaluation.loss},
            {"accuracy", result.evaluation.accuracy},
            {"samples", samples},
            {"skipped", to_json(skipped)}};
  json.update(to_json(classes));
  write_json_result(flags.json_file, json);
  return 0;
}

}  // namespace regatta::app
