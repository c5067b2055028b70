// Every model of the zoo: torchvision's counts, sizes it takes, dropout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "graph/op.h"
#include "models/models.h"
#include "models/shapes_by_name.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::EndsWith;

struct Row {
  const char* name;
  std::int64_t parameters;
  std::size_t tensors;    // of a checkpoint: parameters, running statistics and counts
  std::int64_t smallest;  // square image
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Zoo : public testing::TestWithParam<Row> {};

// As torchvision 0.14 counts them; of the networks for CIFAR, as He et al. do with option B.
TEST_P(Zoo, HasTorchvisionsCounts) {
  const Graph graph = build_model(GetParam().name);
  EXPECT_EQ(summarise(graph).parameters, GetParam().parameters);
  EXPECT_EQ(shapes_by_name(graph).size(), GetParam().tensors);
}

TEST_P(Zoo, TakesImagesDownToItsSmallest) {
  const std::int64_t size = GetParam().smallest;
  for (const std::int64_t channels : {1, 3}) {
    const Graph graph =
        build_model(GetParam().name, {.input = Shape{channels, size, size}, .classes = 7});
    EXPECT_EQ(graph.classes(), 7);
  }
  if (size == 1) return;
  const Shape too_small{3, size - 1, size};
  EXPECT_THAT(error_text([&] { build_model(GetParam().name, {.input = too_small}); }),
              EndsWith("; the smallest image for model '" + std::string(GetParam().name) + "' is " +
                       Shape{3, size, size}.text()));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Zoo,
    testing::Values(Row{"alexnet", 61'100'840, 16, 63}, Row{"vgg11", 132'863'336, 22, 32},
                    Row{"vgg16", 138'357'544, 32, 32}, Row{"resnet18", 11'689'512, 122, 1},
                    Row{"resnet34", 21'797'672, 218, 1}, Row{"resnet50", 25'557'032, 320, 1},
                    Row{"resnet101", 44'549'160, 626, 1}, Row{"resnet20", 272'474, 128, 1},
                    Row{"resnet56", 855'770, 344, 1}, Row{"inception_v3", 23'834'568, 566, 75},
                    Row{"mobilenet_v2", 3'504'872, 314, 1}, Row{"densenet121", 7'978'856, 727, 29},
                    Row{"squeezenet1_1", 1'235'496, 52, 25}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Dropout, IsThatOfTheModel) {
  const auto probabilities = [](const Graph& graph) {
    std::vector<double> all;
    for (const Node& node : graph.nodes())
      if (node.op->name == "dropout") all.push_back(node.attributes.real("probability", -1));
    return all;
  };
  EXPECT_EQ(probabilities(build_model("vgg11")), (std::vector{0.5, 0.5}));
  EXPECT_EQ(probabilities(build_model("mobilenet_v2")), (std::vector{0.2}));
}

// How weights start is part of an architecture; torchvision sets it model by model.
TEST(Starts, AreTorchvisions) {
  const auto init_of = [](const char* model, const std::string& name) {
    const Graph graph = build_model(model);
    for (const Parameter& parameter : graph.parameters())
      if (parameter.name == name) return parameter.init;
    ADD_FAILURE() << model << " has no " << name;
    return Init{};
  };
  using Kind = Init::Kind;
  const Init zeros{Kind::zeros};
  EXPECT_EQ(init_of("alexnet", "features.0.bias"), (Init{Kind::uniform, 1 / std::sqrt(363.0)}));
  EXPECT_EQ(init_of("vgg11", "features.0.weight"), (Init{Kind::normal, std::sqrt(2 / 576.0)}));
  EXPECT_EQ(init_of("vgg11", "features.0.bias"), zeros);
  EXPECT_EQ(init_of("vgg11", "classifier.0.weight"), (Init{Kind::normal, 0.01}));
  EXPECT_EQ(init_of("resnet20", "fc.weight"), (Init{Kind::uniform, 1 / 8.0}));
  EXPECT_EQ(init_of("inception_v3", "fc.weight"), (Init{Kind::normal, 0.1}));
  EXPECT_EQ(init_of("mobilenet_v2", "features.1.conv.0.0.weight"),
            (Init{Kind::normal, std::sqrt(2 / 288.0)}));
  EXPECT_EQ(init_of("mobilenet_v2", "classifier.1.bias"), zeros);
  EXPECT_EQ(init_of("densenet121", "features.conv0.weight"),
            (Init{Kind::normal, std::sqrt(2 / 147.0)}));
  EXPECT_EQ(init_of("densenet121", "classifier.bias"), zeros);
  EXPECT_EQ(init_of("squeezenet1_1", "features.0.weight"),
            (Init{Kind::uniform, std::sqrt(6 / 27.0)}));
  EXPECT_EQ(init_of("squeezenet1_1", "classifier.1.weight"), (Init{Kind::normal, 0.01}));
}

}  // namespace
}  // namespace regatta
