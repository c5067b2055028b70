#include "plan/recipe.h"

#include "base/error.h"
#include "base/files.h"

namespace regatta {

Json Recipe::to_json() const {
  return {{"model", model},
          {"input", input.text()},
          {"classes", classes},
          {"data", data},
          {"samples", sample_dtype == Dtype::u8 ? "u8" : "f32"},
          {"normalisation",
           {{"scale", normalisation.scale},
            {"mean", normalisation.mean},
            {"deviation", normalisation.deviation}}},
          {"batch", batch},
          {"optimizer",
           {{"name", "sgd"},
            {"learning_rate", sgd.learning_rate},
            {"momentum", sgd.momentum},
            {"weight_decay", sgd.weight_decay}}},
          {"precision", precision_name(precision)},
          {"batch_norm", "batch"},
          {"seed", seed},
          {"shuffle", shuffle}};
}

std::string Recipe::fingerprint() const { return sha256_hex(to_json().dump()).substr(0, 16); }

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
  const Json& optimizer = json.at("optimizer");
  recipe.sgd = {optimizer.at("learning_rate"), optimizer.at("momentum"),
                optimizer.at("weight_decay")};
  recipe.precision = precision_named(json.at("precision").get<std::string>());
  recipe.seed = json.at("seed");
  recipe.shuffle = json.at("shuffle");
  return recipe;
} catch (const nlohmann::json::exception& error) {
  throw InputError(std::string("recipe: ") + error.what());
}

}  // namespace regatta
