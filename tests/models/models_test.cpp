#include "models/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::StartsWith;

std::string refusal(std::string_view name, const ModelOptions& options = {}) {
  return error_text([&] { build_model(name, options); });
}

TEST(Models, AreKnownByName) {
  EXPECT_EQ(model_names(), (std::vector<std::string>{
                               "tiny", "lenet5", "alexnet", "vgg11", "vgg16", "resnet18",
                               "resnet34", "resnet50", "resnet101", "resnet20", "resnet56",
                               "inception_v3", "mobilenet_v2", "densenet121", "squeezenet1_1"}));
  for (const std::string& name : model_names()) EXPECT_EQ(build_model(name).name(), name);
}

TEST(Models, AnUnknownNameIsOfferedTheNearest) {
  EXPECT_THAT(refusal("resnet19"),
              StartsWith("model 'resnet19' is unknown (did you mean 'resnet18'?): there are tiny, "
                         "lenet5, alexnet, "));
}

TEST(Models, AnInputTooSmallNamesTheLayerItDoesNotFitAndTheSmallest) {
  EXPECT_EQ(refusal("lenet5", {.input = Shape{1, 8, 8}}),
            "conv 'conv2': kernel 5x5 is larger than its padded input 4x4; the smallest image for "
            "model 'lenet5' is 1x12x12");
  EXPECT_EQ(refusal("resnet18", {.input = Shape{784}}),
            "conv 'conv1': its input must be channels x height x width, found 784");
}

TEST(Models, OneClassIsRefused) {
  EXPECT_EQ(refusal("tiny", {.classes = 1}),
            "model 'tiny': 1 classes leave nothing to tell apart; use 2 or more");
}

TEST(Models, NameEachParameterAndStateOnce) {
  for (const std::string& name : model_names()) {
    const Graph graph = build_model(name);
    std::set<std::string> names;
    for (const Parameter& parameter : graph.parameters()) names.insert(parameter.name);
    for (const Parameter& state : graph.states()) names.insert(state.name);
    EXPECT_EQ(names.size(), graph.parameters().size() + graph.states().size()) << name;
  }
}

TEST(Summary, FusingSavesMemoryAndNothingElse) {
  for (const std::string& name : model_names()) {
    const Graph graph = build_model(name);
    const ModelSummary plain = summarise(graph);
    const ModelSummary fused = summarise(fuse(graph));
    EXPECT_EQ(plain.parameters, fused.parameters);
    EXPECT_EQ(plain.multiply_adds, fused.multiply_adds);
    EXPECT_EQ(plain.meeting_points, fused.meeting_points);
    EXPECT_LT(fused.activation_bytes, plain.activation_bytes);
  }
}

}  // namespace
}  // namespace regatta
