#include "train/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "ops/builder.h"
#include "support/error_text.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Weights : public testing::Test {
 protected:
  Weights() { initialise_weights(executor, 7); }

  // What set_weights says of the file after `change`.
  template <class Change>
  std::string complaint(const Change& change) {
    TensorFile file = weights_of(executor);
    change(file.tensors);
    return error_text([&] { set_weights(executor, file, "w.safetensors"); });
  }

  const TrainJob job = small_job();
  Executor executor{job.graph, job.plan, job.exec_options(true)};
};

NamedTensor& named(std::vector<NamedTensor>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &NamedTensor::name);
}

std::vector<std::string> bytes_of(const TensorFile& file) {
  std::vector<std::string> all;
  for (const NamedTensor& tensor : file.tensors) all.push_back(tensor.name + "=" + tensor.bytes);
  return all;
}

TEST_F(Weights, ComeBackFromAFileBitForBit) {
  const TemporaryFolder folder;
  const TensorFile before = weights_of(executor);
  write_safetensors(folder.path() / "w.safetensors", before);
  initialise_weights(executor, 8);
  ASSERT_NE(bytes_of(weights_of(executor)), bytes_of(before));
  set_weights(executor, read_safetensors(folder.path() / "w.safetensors"), "w.safetensors");
  EXPECT_EQ(bytes_of(weights_of(executor)), bytes_of(before));
}

TEST_F(Weights, CarryTheNamesAndTypesOfPyTorch) {
  std::vector<std::string> names;
  const TensorFile file = weights_of(executor);
  for (const NamedTensor& tensor : file.tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre(
                         "conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var",
                         "bn.num_batches_tracked", "dense.weight", "dense.bias"));
  EXPECT_EQ(file.find("bn.num_batches_tracked")->dtype, Dtype::i64);
  EXPECT_TRUE(file.find("bn.num_batches_tracked")->shape.empty());
  EXPECT_EQ(file.find("conv.weight")->shape, (std::vector<std::int64_t>{3, 1, 3, 3}));
}

TEST_F(Weights, AreAFunctionOfTheSeed) {
  const std::vector<std::string> seven = bytes_of(weights_of(executor));
  initialise_weights(executor, 8);
  EXPECT_NE(bytes_of(weights_of(executor)), seven);
  initialise_weights(executor, 7);
  EXPECT_EQ(bytes_of(weights_of(executor)), seven);
}

TEST_F(Weights, OfASmallNetworkThatIsOnlyMeasuredAreTheSame) {
  const std::vector<std::string> drawn = bytes_of(weights_of(executor));
  initialise_weights(executor, 8);
  initialise_roughly(executor, 7);
  EXPECT_EQ(bytes_of(weights_of(executor)), drawn);
}

// Several threads share a large one.
TEST_F(Weights, OfALargeParameterAreOneStreamFromEndToEnd) {
  NetBuilder net("wide", {1, 16, 16});
  const Graph graph = std::move(net).finish(net.dense("wide", net.input(), 1500));
  const auto values = initial_weights(graph, 7).at("wide.weight");
  ASSERT_EQ(values.size(), 256u * 1500u);
  const Parameter& parameter =
      *std::ranges::find(graph.parameters(), "wide.weight", &Parameter::name);
  ASSERT_EQ(parameter.init.kind, Init::Kind::uniform);
  const auto scale = static_cast<float>(parameter.init.scale);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], (2 * random_uniform(7, stream_of("wide.weight"), i) - 1) * scale) << i;
}

TEST_F(Weights, AMissingTensorIsNamed) {
  EXPECT_THAT(complaint([](auto& tensors) {
                std::erase_if(
                    tensors, [](const NamedTensor& tensor) { return tensor.name == "dense.bias"; });
              }),
              AllOf(HasSubstr("'w.safetensors'"), HasSubstr("lacks dense.bias")));
}

// Old checkpoints of PyTorch have none.
TEST_F(Weights, AMissingCountOfBatchesIsNone) {
  EXPECT_EQ(complaint([](auto& tensors) {
              std::erase_if(tensors, [](const NamedTensor& tensor) {
                return tensor.name == "bn.num_batches_tracked";
              });
            }),
            "no error");
}

TEST_F(Weights, ASurplusTensorIsNamed) {
  EXPECT_THAT(complaint([](auto& tensors) {
                tensors.push_back({"head.weight", {}, {0}, ""});
              }),
              HasSubstr("the model has no head.weight"));
}

TEST_F(Weights, AMisshapenTensorIsNamedWithBothShapes) {
  EXPECT_THAT(complaint([](auto& tensors) {
                named(tensors, "dense.weight").shape = {48, 3};
              }),
              AllOf(HasSubstr("'dense.weight'"), HasSubstr("48x3"), HasSubstr("3x48")));
}

TEST_F(Weights, ATensorOfBytesIsRefused) {
  EXPECT_THAT(complaint([](auto& tensors) {
                NamedTensor& bias = named(tensors, "dense.bias");
                bias.dtype = Dtype::u8;
                bias.bytes.resize(3);
              }),
              AllOf(HasSubstr("'dense.bias'"), HasSubstr("F32")));
}

TEST_F(Weights, DoublesAreRoundedToFloats) {
  EXPECT_EQ(complaint([](auto& tensors) {
              NamedTensor& bias = named(tensors, "dense.bias");
              const double values[] = {0.1, -2.5, 1e-3};
              bias.dtype = Dtype::f64;
              bias.bytes.assign(reinterpret_cast<const char*>(values), sizeof values);
            }),
            "no error");
  float read[3];
  std::memcpy(read, weights_of(executor).find("dense.bias")->bytes.data(), sizeof read);
  EXPECT_THAT(read, testing::ElementsAre(0.1f, -2.5f, 1e-3f));
}

TEST_F(Weights, MomentaAreThoseOfParametersAlone) {
  TensorFile momenta = optimizer_state_of(executor);
  EXPECT_EQ(momenta.tensors.size(), job.graph.parameters().size());
  momenta.tensors.pop_back();
  EXPECT_THAT(error_text([&] { set_optimizer_state(executor, momenta, "o.safetensors"); }),
              AllOf(HasSubstr("'o.safetensors'"), HasSubstr("lacks dense.bias")));
}

}  // namespace
}  // namespace regatta
