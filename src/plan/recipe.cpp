#include "plan/recipe.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "graph/op.h"

namespace regatta {
namespace {

Json optimizer_json(const OptimizerSettings& settings) {
  Json json{{"name", optimizer_name(settings.kind)}};
  for (const OptimizerNumber& number : optimizer_numbers())
    if (number.concerns(settings.kind)) json[std::string(number.name)] = settings.*number.value;
  if (settings.clip_norm > 0) json["clip_norm"] = settings.clip_norm;
  if (settings.clip_value > 0) json["clip_value"] = settings.clip_value;
  if (settings.ema > 0) json["ema"] = settings.ema;
  return json;
}

// Whose statistics batch norm takes, in a recipe's JSON.
constexpr const char* whole_batch = "batch";
const std::string group_mark = "group:";

std::optional<std::int64_t> group_in(const std::string& text) {
  if (!text.starts_with(group_mark)) return std::nullopt;
  std::int64_t group = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data() + group_mark.size(), end, group);
  return code == std::errc{} && stop == end && group > 0 ? std::optional(group) : std::nullopt;
}

OptimizerSettings optimizer_from(const Json& json) {
  OptimizerSettings settings =
      default_settings(optimizer_named(json.at("name").get<std::string>()));
  for (const OptimizerNumber& number : optimizer_numbers())
    if (number.concerns(settings.kind)) settings.*number.value = json.at(std::string(number.name));
  settings.clip_norm = json.value("clip_norm", 0.0);
  settings.clip_value = json.value("clip_value", 0.0);
  settings.ema = json.value("ema", 0.0);
  return settings;
}

}  // namespace

Json Recipe::to_json() const {
  Json json{{"model", model},
            {"input", input.text()},
            {"classes", classes},
            {"data", data},
            {"samples", sample_dtype == Dtype::u8 ? "u8" : "f32"},
            {"normalisation",
             {{"scale", normalisation.scale},
              {"mean", normalisation.mean},
              {"deviation", normalisation.deviation}}},
            {"batch", batch},
            {"optimizer", optimizer_json(optimizer)},
            {"precision", precision_name(precision)},
            {"batch_norm", batch_norm_group > 0 ? group_mark + std::to_string(batch_norm_group)
                                                : std::string(whole_batch)},
            {"seed", seed},
            {"shuffle", shuffle}};
  // Left out where they say nothing, so that older recipes keep their fingerprints.
  if (accumulate > 1) json["accumulate"] = accumulate;
  if (schedule != Schedule{}) json["schedule"] = regatta::to_json(schedule);
  if (label_smoothing > 0) json["label_smoothing"] = label_smoothing;
  if (mixup > 0) json["mixup"] = mixup;
  if (dropout) json["dropout"] = *dropout;
  if (!augment.empty()) json["augment"] = augment;
  if (!mask.empty()) json["mask"] = mask;
  if (wire_precision != Precision::fp32) json["wire_precision"] = precision_name(wire_precision);
  if (!data_identity.is_null()) json["data_identity"] = data_identity;
  return json;
}

std::string Recipe::fingerprint() const {
  Json json = to_json();
  if (!data_identity.is_null()) json.erase("data");
  return sha256_hex(json.dump()).substr(0, 16);
}

Recipe recipe_from_json(const Json& json) try {
  Recipe recipe;
  recipe.model = json.at("model");
  recipe.input = Shape::parse(json.at("input").get<std::string>());
  recipe.classes = json.at("classes");
  recipe.data = json.at("data");
  recipe.sample_dtype = json.at("samples") == "u8" ? Dtype::u8 : Dtype::f32;
  const Json& normalisation = json.at("normalisation");
  recipe.normalisation = {normalisation.at("scale"),
                          normalisation.at("mean").get<std::vector<float>>(),
                          normalisation.at("deviation").get<std::vector<float>>()};
  recipe.batch = json.at("batch");
  recipe.optimizer = optimizer_from(json.at("optimizer"));
  recipe.precision = precision_named(json.at("precision").get<std::string>());
  if (const std::string norm = json.value("batch_norm", whole_batch); norm != whole_batch) {
    const std::optional<std::int64_t> group = group_in(norm);
    if (!group) throw InputError("recipe: batch_norm is '" + norm + "': use batch or group:G");
    recipe.batch_norm_group = *group;
  }
  recipe.seed = json.at("seed");
  recipe.shuffle = json.at("shuffle");
  recipe.accumulate = json.value("accumulate", recipe.accumulate);
  if (const auto found = json.find("schedule"); found != json.end())
    recipe.schedule = schedule_from_json(*found);
  recipe.label_smoothing = json.value("label_smoothing", 0.0);
  recipe.mixup = json.value("mixup", 0.0);
  if (const auto found = json.find("dropout"); found != json.end())
    recipe.dropout = found->get<double>();
  recipe.augment = json.value("augment", "");
  recipe.mask = json.value("mask", "");
  recipe.wire_precision = wire_precision_named(
      json.value("wire_precision", std::string(precision_name(Precision::fp32))));
  recipe.data_identity = json.value("data_identity", Json());
  return recipe;
} catch (const nlohmann::json::exception& error) {
  throw InputError(std::string("recipe: ") + error.what());
}

std::int64_t batch_norm_group_named(const std::string& flag, const std::string& text) {
  if (text == "whole") return 0;
  if (const std::optional<std::int64_t> group = group_in(text)) return *group;
  throw InputError(flag + " " + text + ": use whole, or group:G with G samples, such as group:32");
}

Precision wire_precision_named(const std::string& text) {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    if (text == precision_name(precision)) return precision;
  throw InputError("--wire-precision " + text + ": use fp32 or bf16");
}

void require_groups(const Recipe& recipe, const Graph& graph, std::int64_t samples) {
  const std::int64_t group = recipe.batch_norm_group;
  if (group == 0) return;
  const std::string flag = "--batch-norm group:" + std::to_string(group);
  std::set<std::int64_t> batches{recipe.batch};
  if (samples % recipe.batch > 0) batches.insert(samples % recipe.batch);
  bool found = false;
  for (const Node& node : graph.nodes()) {
    if (!node.op->meets) continue;
    found = true;
    for (const std::int64_t batch : batches) {
      const std::int64_t last = batch % group > 0 ? batch % group : std::min(group, batch);
      if (last * node.shape.height() * node.shape.width() >= 2) continue;
      throw InputError(flag + ": the last group of a batch of " + std::to_string(batch) + " is " +
                       std::to_string(last) + " sample, so batch_norm '" + node.name +
                       "' would have one value per channel; use another group or --batch");
    }
  }
  if (!found) throw InputError(flag + ": model '" + graph.name() + "' has no batch norm: drop it");
}

}  // namespace regatta
