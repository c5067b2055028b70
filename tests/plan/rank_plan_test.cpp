// Plans over ranks: shares, canonical chunks, and what is refused.
#include "plan/rank_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "models/models.h"
#include "plan/rank_place.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using Sizes = std::vector<std::int64_t>;

Recipe recipe_of(std::int64_t batch) {
  Recipe recipe;
  recipe.model = "lenet5";
  recipe.batch = batch;
  return recipe;
}

const std::vector<RankResources> two{{"a", 4, Layout::blocked16}, {"b", 2, Layout::blocked8}};

TEST(RankPlan, EachRankHasItsShareWorkersAndLayout) {
  const Graph graph = fuse(build_model("lenet5"));
  const Plan plan = plan_over_ranks(graph, recipe_of(96), {}, two, {64, 32}, NodeUpdate::tree);
  EXPECT_EQ(faults(plan, graph, 96), std::vector<std::string>{});
  ASSERT_EQ(plan.nodes.size(), 2u);
  EXPECT_EQ(plan.nodes[1].name, "b");
  EXPECT_EQ(share_of(plan.nodes[0]), 64);
  EXPECT_EQ(plan.nodes[0].groups.front().workers, 4);
  EXPECT_EQ(plan.nodes[1].groups.front().layout, Layout::blocked8);
  EXPECT_EQ(plan.update, NodeUpdate::tree);
}

TEST(RankPlan, DeterministicSharesAreWholeChunksOfOneProcess) {
  const Graph graph = fuse(build_model("lenet5"));
  const PlanOptions options{.deterministic = true};
  const Sizes chunks = canonical_chunks(graph, recipe_of(96), options, 2);
  ASSERT_EQ(chunks, Sizes(8, 12));
  const Plan plan =
      plan_over_ranks(graph, recipe_of(96), options, two, {36, 60}, NodeUpdate::chain);
  const RankPlace second = rank_place(plan, 1);
  EXPECT_EQ(second.chunks, chunks);
  EXPECT_EQ(second.own().first, 3u);
  EXPECT_EQ(second.own().count, 5u);
  // Each chunk has a slot of its own: sums go chunk by chunk.
  EXPECT_EQ(plan.nodes[1].groups.front().lanes, 5);
  EXPECT_THROW(plan_over_ranks(graph, recipe_of(96), options, two, {40, 56}, NodeUpdate::chain),
               InputError);
  EXPECT_NE(error_text([&] {
              plan_over_ranks(graph, recipe_of(96), options, two, {36, 60}, NodeUpdate::ring);
            }).find("--update ring"),
            std::string::npos);
}

TEST(RankPlan, GradientsInBf16AreRefusedWhereTheyCannotBeSentSo) {
  Recipe recipe = recipe_of(96);
  recipe.wire_precision = Precision::bf16;
  Plan plan;
  for (const NodeUpdate update :
       {NodeUpdate::ring, NodeUpdate::tree, NodeUpdate::hierarchical, NodeUpdate::server_cpu,
        NodeUpdate::replicated, NodeUpdate::chain}) {
    plan.update = update;
    EXPECT_TRUE(wire_hindrances(plan, recipe).empty()) << node_update_name(update);
  }
  plan.update = NodeUpdate::mpi;
  EXPECT_EQ(wire_hindrances(plan, recipe).size(), 1u);
  EXPECT_TRUE(wire_hindrances(plan, recipe_of(96)).empty());
  plan.update = NodeUpdate::chain;
  plan.deterministic = true;
  ASSERT_EQ(wire_hindrances(plan, recipe).size(), 1u);
  EXPECT_NE(wire_hindrances(plan, recipe).front().find("--deterministic"), std::string::npos);
}

TEST(Recipe, TellsHowGradientsTravelOnlyIfTheyAreRounded) {
  const Recipe plain = recipe_of(96);
  EXPECT_FALSE(plain.to_json().contains("wire_precision"));
  Recipe rounded = plain;
  rounded.wire_precision = Precision::bf16;
  EXPECT_NE(rounded.fingerprint(), plain.fingerprint());
  Recipe whole = rounded;  // with what a recipe from JSON needs
  whole.input = Shape::parse("1x28x28");
  EXPECT_EQ(recipe_from_json(whole.to_json()).wire_precision, Precision::bf16);
  Json json = whole.to_json();
  json["wire_precision"] = "tf32";
  EXPECT_NE(error_text([&] { recipe_from_json(json); }).find("use fp32 or bf16"),
            std::string::npos);
}

TEST(RankPlan, WholeChunkSharesAreNearThoseWanted) {
  const Sizes eight(8, 12);
  EXPECT_EQ(whole_chunk_shares(eight, {48, 48}), (Sizes{48, 48}));
  EXPECT_EQ(whole_chunk_shares(eight, {70, 26}), (Sizes{72, 24}));
  EXPECT_EQ(whole_chunk_shares(eight, {95, 1}), (Sizes{84, 12}));
  EXPECT_EQ(whole_chunk_shares(eight, {1, 94, 1}), (Sizes{12, 72, 12}));
  EXPECT_EQ(whole_chunk_shares({1, 2, 1}, {1, 1, 2}), (Sizes{1, 2, 1}));
}

TEST(RankPlan, SharesThatDoNotAddUpAreRefused) {
  const Graph graph = fuse(build_model("tiny"));
  for (const Sizes& shares : {Sizes{4, 3}, Sizes{8, 0}, Sizes{8}})
    EXPECT_THROW(plan_over_ranks(graph, recipe_of(8), {}, two, shares, NodeUpdate::ring),
                 InputError);
}

}  // namespace
}  // namespace regatta
