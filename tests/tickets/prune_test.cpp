// Which weights stay.
#include "tickets/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/models.h"
#include "ops/builder.h"
#include "support/error_text.h"
#include "train/weights.h"

namespace regatta::tickets {
namespace {

using ::testing::HasSubstr;

// A convolution of 3 channels with 2 weights each, and a dense layer of 2 x 3.
Graph toy() {
  NetBuilder net("toy", {1, 1, 2});
  NodeId x = net.conv("conv", net.input(), {.channels = 3, .kernel = {1, 2}, .bias = true});
  x = net.dense("dense", x, 2);
  return std::move(net).finish(x);
}

Weights toy_weights() {
  return {{"conv.weight", {1, -6, 2, 0.5f, -0.25f, 0}},
          {"conv.bias", {9, 9, 9}},
          {"dense.weight", {10, 0.1f, 3, -4, 0.2f, 5}},
          {"dense.bias", {9, 9}}};
}

std::string bits(const Mask& mask, const std::string& name) {
  const MaskTensor* tensor = mask.find(name);
  std::string text;
  for (std::int64_t i = 0; i < tensor->count(); ++i) text += tensor->keeps(i) ? '1' : '0';
  return text;
}

TEST(Prune, TakesTheLargestOfAllLayersTogether) {
  const Mask mask = prune(toy(), toy_weights(), {.keep = 0.5});
  EXPECT_EQ(bits(mask, "conv.weight"), "011000");
  EXPECT_EQ(bits(mask, "dense.weight"), "101101");
  EXPECT_EQ(mask.find("conv.bias"), nullptr);
}

TEST(Prune, TakesTheSamePartOfEveryLayer) {
  const Mask mask = prune(toy(), toy_weights(), {.keep = 0.5, .scope = Scope::layer});
  EXPECT_EQ(bits(mask, "conv.weight"), "111000");
  EXPECT_EQ(bits(mask, "dense.weight"), "100101");
}

TEST(Prune, TakesWholeChannelsButOfTheLastLayerNone) {
  const Mask mask = prune(toy(), toy_weights(), {.keep = 0.4, .scope = Scope::channel});
  EXPECT_EQ(bits(mask, "conv.weight"), "110000");
  EXPECT_EQ(bits(mask, "dense.weight"), "111111");
}

TEST(Prune, ByIncreaseLooksAtTheStart) {
  Weights start = toy_weights();
  start["conv.weight"] = {0, -6, 0, 0, 0, 0};
  start["dense.weight"] = {10, 0, 3, -4, 0, 5};
  const PruneOptions options{
      .keep = 1.0 / 3, .by = Criterion::magnitude_increase, .initial = &start};
  const Mask mask = prune(toy(), toy_weights(), options);
  EXPECT_EQ(bits(mask, "conv.weight"), "101110");
  EXPECT_EQ(bits(mask, "dense.weight"), "000000");
}

TEST(Prune, EarlierWeightsStayAmongEquals) {
  Weights equal = toy_weights();
  equal["conv.weight"].assign(6, 1);
  equal["dense.weight"].assign(6, -1);
  const Mask mask = prune(toy(), equal, {.keep = 0.25});
  EXPECT_EQ(bits(mask, "conv.weight"), "111000");
  EXPECT_EQ(bits(mask, "dense.weight"), "000000");
}

TEST(Prune, LeavesMaskedWhatWasMaskedBefore) {
  Mask before = whole_mask(toy());
  before.tensors[1].set(0, false);  // the largest
  for (const Criterion by : {Criterion::magnitude, Criterion::random})
    for (const Scope scope : {Scope::global, Scope::layer}) {
      const Mask mask = prune(toy(), toy_weights(),
                              {.keep = 0.75, .scope = scope, .by = by, .previous = &before});
      EXPECT_FALSE(mask.tensors[1].keeps(0));
      EXPECT_EQ(mask.kept(), scope == Scope::global ? 9 : 5 + 5);
    }
}

TEST(Prune, IterativelyKeepsNestedMasks) {
  const Graph graph = build_model("lenet5");
  const Weights weights = initial_weights(graph, 1);
  Mask mask = whole_mask(graph);
  double keep = 1;
  for (int level = 0; level < 5; ++level) {
    keep *= 0.8;
    const Mask next = prune(graph, weights, {.keep = keep, .previous = &mask});
    EXPECT_NEAR(next.density(), keep, 1e-5);
    for (std::size_t t = 0; t < mask.tensors.size(); ++t)
      for (std::size_t b = 0; b < mask.tensors[t].bits.size(); ++b)
        ASSERT_EQ(next.tensors[t].bits[b] & ~mask.tensors[t].bits[b], 0);
    mask = next;
  }
}

TEST(Prune, AtRandomDependsOnTheSeedAlone) {
  const Graph graph = build_model("lenet5");
  const Weights weights = initial_weights(graph, 1), others = initial_weights(graph, 2);
  const PruneOptions one{.keep = 0.2, .by = Criterion::random, .seed = 1};
  EXPECT_EQ(prune(graph, weights, one), prune(graph, others, one));
  PruneOptions two = one;
  two.seed = 2;
  EXPECT_NE(prune(graph, weights, one), prune(graph, weights, two));
}

TEST(Prune, RefusesPartsThatMakeNoSense) {
  const auto said = [](double keep, const Mask* previous = nullptr) {
    return error_text([&] { prune(toy(), toy_weights(), {.keep = keep, .previous = previous}); });
  };
  EXPECT_THAT(said(0), HasSubstr("--keep 0: use a part above 0"));
  EXPECT_THAT(said(1.5), HasSubstr("--keep 1.5"));
  EXPECT_THAT(said(0.01), HasSubstr("that is none of 12 weights"));
  const Mask half = prune(toy(), toy_weights(), {.keep = 0.5});
  EXPECT_THAT(said(0.75, &half), HasSubstr("the previous mask has only 0.5 left"));
}

TEST(Shuffled, KeepsTheDensityOfEveryTensor) {
  const Graph graph = build_model("lenet5");
  const Mask mask = prune(graph, initial_weights(graph, 1), {.keep = 0.1});
  const Mask random = shuffled(mask, 7);
  EXPECT_NE(random, mask);
  EXPECT_EQ(random, shuffled(mask, 7));
  for (const MaskTensor& tensor : mask.tensors)
    EXPECT_EQ(random.find(tensor.name)->kept(), tensor.kept()) << tensor.name;
}

}  // namespace
}  // namespace regatta::tickets
