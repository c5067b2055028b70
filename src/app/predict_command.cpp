// `predict`: what a trained network takes images for: the likeliest classes, or all logits.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <iterator>
#include <numeric>

#include "app/evaluating.h"
#include "base/class_names.h"
#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "data/folder.h"
#include "data/npy.h"
#include "data/skips.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

struct PredictFlags {
  EvalFlags evaluation;
  std::vector<std::string> images;  // files and folders
  std::optional<std::string> out, csv;
  std::int64_t top = 1;
};

// The images in folders stand where the folder does.
std::vector<std::string> files_of(const std::vector<std::string>& images) {
  std::vector<std::string> files;
  for (const std::string& image : images) {
    std::error_code ignored;
    if (!fs::is_directory(image, ignored)) {
      files.push_back(image);
      continue;
    }
    const std::vector<std::string> found = images_under(image);
    if (found.empty()) throw InputError("'" + image + "' has no .jpg, .jpeg or .png file in it");
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

struct Answer {
  std::size_t output = 0;
  double probability = 0;
};

// The likeliest `top` by the softmax of a sample's logits.
std::vector<Answer> likeliest(std::span<const float> logits, std::int64_t top) {
  std::vector<Answer> answers(logits.size());
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    answers[i] = {i, std::exp(logits[i] - largest)};
    sum += answers[i].probability;
  }
  for (Answer& answer : answers) answer.probability /= sum;
  std::ranges::stable_sort(answers, std::ranges::greater{}, &Answer::probability);
  answers.resize(std::min(answers.size(), static_cast<std::size_t>(top)));
  return answers;
}

// A sample that could be read, and what it is taken for.
struct Prediction {
  std::string sample;
  std::vector<Answer> answers;
};

std::vector<Prediction> predictions_of(const Evaluated& result, std::int64_t top,
                                       const std::vector<std::int64_t>& readable) {
  const auto classes = static_cast<std::size_t>(result.classes);
  std::vector<Prediction> predictions;
  for (const std::int64_t index : readable)
    predictions.push_back(
        {result.data->sample_name(index),
         likeliest(std::span(result.evaluation.logits)
                       .subspan(static_cast<std::size_t>(index) * classes, classes),
                   top)});
  return predictions;
}

void print(const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  int sample_width = 0, name_width = 0;
  for (const Prediction& each : predictions) {
    sample_width = std::max(sample_width, static_cast<int>(each.sample.size()));
    for (const Answer& answer : each.answers)
      name_width = std::max(name_width, static_cast<int>(class_name(names, answer.output).size()));
  }
  for (const Prediction& each : predictions) {
    std::printf("%-*s", sample_width, each.sample.c_str());
    for (const Answer& answer : each.answers)
      std::printf("  %-*s %6.2f%%", name_width, class_name(names, answer.output).c_str(),
                  100 * answer.probability);
    std::printf("\n");
  }
}

// As RFC 4180 quotes it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

// A line for each answer: long tables are what other programs group and join.
std::string csv_of(const std::vector<Prediction>& predictions,
                   const std::vector<std::string>& names) {
  std::string text = "file,rank,class,probability\n";
  for (const Prediction& each : predictions)
    for (std::size_t i = 0; i < each.answers.size(); ++i) {
      char probability[32];
      std::snprintf(probability, sizeof probability, "%.6g", each.answers[i].probability);
      text += csv_field(each.sample) + "," + std::to_string(i + 1) + "," +
              csv_field(class_name(names, each.answers[i].output)) + "," + probability + "\n";
    }
  return text;
}

Json json_of(const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  Json json = Json::array();
  for (const Prediction& each : predictions) {
    Json top = Json::array();
    for (const Answer& answer : each.answers)
      top.push_back({{"class", answer.output},
                     {"name", class_name(names, answer.output)},
                     {"probability", answer.probability}});
    json.push_back({{"file", valid_utf8(each.sample)}, {"top", top}});
  }
  return json;
}

void write_logits(const std::string& file, const Evaluated& result,
                  const std::vector<std::int64_t>& readable) {
  const auto row = static_cast<std::size_t>(result.classes) * sizeof(float);
  NpyArray array{Dtype::f32, {std::ssize(readable), result.classes}, {}};
  for (const std::int64_t index : readable)
    array.bytes.append(reinterpret_cast<const char*>(result.evaluation.logits.data()) +
                           static_cast<std::size_t>(index) * row,
                       row);
  write_npy(file, array);
  std::printf("%lld x %lld logits in %s\n", static_cast<long long>(std::ssize(readable)),
              static_cast<long long>(result.classes), file.c_str());
}

// The image files that were decoded, or all samples of data: there, unreadable ones are replaced.
std::vector<std::int64_t> readable_of(const Evaluated& result, const SkippedSamples& skipped,
                                      bool images) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(result.data->info().count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  if (!images) return all;
  std::vector<std::int64_t> readable;
  std::ranges::set_difference(all, skipped.indices, std::back_inserter(readable));
  return readable;
}

}  // namespace

int run_predict(std::span<const char* const> arguments) {
  CLI::App app(
      "What a trained network takes images for: the likeliest classes of image files, or the "
      "logits "
      "of\na data set.",
      "regatta predict");
  PredictFlags flags;
  declare_evaluation(app, flags.evaluation, "--run");
  app.add_option("images", flags.images, "image files, and folders of them")->type_name("IMAGE");
  app.add_option("--top", flags.top, "the likeliest classes of each image")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--csv", flags.csv, "write them as file,rank,class,probability")
      ->type_name("FILE");
  app.add_option("--out", flags.out, "write all logits, in order, as an npy file")
      ->type_name("LOGITS.npy");
  app.footer(
      "Example:\n  regatta predict --run runs/mine photo.jpg photos/ --top 5\n"
      "  regatta predict --run runs/lenet5 --data mnist --out logits.npy");
  if (!parse(app, arguments)) return 0;
  EvalFlags& evaluation = flags.evaluation;
  // As eval takes it, the run's folder may come first.
  if (!evaluation.run && !flags.images.empty() &&
      fs::exists(fs::path(flags.images[0]) / "run.json")) {
    evaluation.run = flags.images.front();
    flags.images.erase(flags.images.begin());
  }
  const bool images = !flags.images.empty();
  if (images && evaluation.data)
    throw InputError("give either images or --data: '" + flags.images.front() +
                     "' is taken for an image");
  if (!images && !flags.out && !flags.csv)
    throw InputError(
        "name images, or say where the predictions go: --out LOGITS.npy or --csv FILE");
  for (const auto& file : {flags.out, flags.csv, evaluation.json_file})
    if (file) require_writable(*file);

  const Evaluated result = evaluate_by(evaluation, true, files_of(flags.images));
  const SkippedSamples skipped = result.data->skipped();
  if (images)
    for (const std::string& what : skipped.first) std::cerr << "cannot read " << what << "\n";
  else
    for (const std::string& line : lines_of(skipped, "sample")) std::cerr << line << "\n";
  const std::vector<std::int64_t> readable = readable_of(result, skipped, images);
  if (readable.empty()) throw InputError("none of the images can be read");
  if (images && evaluation.strict && skipped.count > 0)
    throw InputError("not all images can be read (--strict)");

  const std::vector<Prediction> predictions = predictions_of(result, flags.top, readable);
  if (images) print(predictions, result.class_names);
  if (flags.csv) write_file(*flags.csv, csv_of(predictions, result.class_names));
  if (flags.out) write_logits(*flags.out, result, readable);
  Json json{{"samples", std::ssize(readable)},
            {"classes", result.classes},
            {"skipped", to_json(skipped)}};
  if (flags.out) json["out"] = *flags.out;
  if (images || flags.csv) json["predictions"] = json_of(predictions, result.class_names);
  if (!images) json["accuracy"] = result.evaluation.accuracy;
  write_json_result(evaluation.json_file, json);
  return 0;
}

}  // namespace regatta::app
