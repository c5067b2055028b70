#include "plan/plan_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "models/models.h"
#include "plan/make_plan.h"
#include "support/error_text.h"
#include "support/places.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

Recipe recipe() {
  Recipe made;
  made.model = "lenet5";
  made.input = Shape{1, 28, 28};
  made.classes = 10;
  made.batch = 12;
  made.normalisation = {1, {0}, {1}};
  return made;
}

const Graph& lenet5() {
  static const Graph graph = fuse(build_model("lenet5"));
  return graph;
}

Graph graph_of(const Recipe&, const std::optional<Json>&) { return lenet5(); }

PlanFile some_file() {
  PlanFile file{.recipe = recipe()};
  file.plan = make_plan(
      lenet5(), file.recipe,
      {.workers = 2, .chunks = std::vector<std::int64_t>{5, 7}, .segments = std::string("block")});
  file.plan.nodes[0].groups[0].slow = {1, 2.5};
  file.plan.nodes[0].groups[0].powers = {{.slow = 1, .watts = 7}, {.slow = 3, .watts = 0.5}};
  file.plan.pace_s = 0.25;
  file.plan.platform = "0123456789abcdef";
  file.platform_name = "a laptop";
  file.buckets = {{0, 4096}, {1, 64}};
  file.predicted = Prediction{{0.1, 0.09, 0.12}, 3.5, {{"here", "cpu", 0.08, 1 << 20, 3.0}}};
  file.predicted->memories = {{"here", "node", 1, {{"parameters", 1000}, {"gradients", 24}}}};
  file.plan.segments.front().recomputed = true;
  file.roles = {{"here", "cpu", Role::compute, "12 of 12 samples"},
                {"there", "cpu", Role::rest, "its node is not among those chosen"}};
  return file;
}

std::string refusal(const Json& json) {
  return error_text([&] { plan_file_from_json(json, graph_of); });
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Recipe, StaysTheSameWhereItsDataMoves) {
  Recipe here = recipe();
  here.data = "folder:/here";
  Recipe there = here;
  there.data = "folder:/there";
  EXPECT_NE(here.fingerprint(), there.fingerprint());  // nobody knows what is in them
  here.data_identity = there.data_identity = {{"samples", 5}};
  EXPECT_EQ(here.fingerprint(), there.fingerprint());
  there.data_identity = {{"samples", 6}};
  EXPECT_NE(here.fingerprint(), there.fingerprint());
  EXPECT_EQ(recipe_from_json(here.to_json()).data_identity, here.data_identity);
}

TEST(PlanFile, SurvivesTheDisk) {
  const TemporaryFolder folder;
  const PlanFile file = some_file();
  write_plan_file(folder.path() / "plan.json", file, lenet5());
  const PlanFile back = read_plan_file(folder.path() / "plan.json", graph_of);
  EXPECT_EQ(to_json(back, lenet5()), to_json(file, lenet5()));
}

TEST(PlanFile, TellsMemoryByKindOfBuffer) {
  Json json = to_json(some_file(), lenet5());
  EXPECT_EQ(json["predicted"]["memories"][0]["bytes"], 1024);
  EXPECT_EQ(plan_file_from_json(json, graph_of).predicted->memories.front().kinds.at("gradients"),
            24);
  json["predicted"]["memories"][0]["bytes"] = 1000;
  EXPECT_TRUE(says(refusal(json), "predicted.memories[0].bytes: its kinds hold 1024"));
  json["predicted"]["memories"][0]["kinds"]["gradients"] = -1;
  EXPECT_TRUE(says(refusal(json), "predicted.memories[0].kinds.gradients"));
}

TEST(PlanFile, KeepsSegmentsThatAreComputedAgain) {
  Json json = to_json(some_file(), lenet5());
  EXPECT_TRUE(plan_file_from_json(json, graph_of).plan.segments.front().recomputed);
  EXPECT_FALSE(json["plan"]["segments"].back().contains("recomputed"));
  json["plan"]["segments"].back()["recomputed"] = true;
  EXPECT_TRUE(says(refusal(json), "its last segment is computed again"));
  json["plan"]["backward"] = "split";
  EXPECT_TRUE(says(refusal(json), "use --backward whole"));
}

TEST(PlanFile, KnowsRolesByName) {
  Json json = to_json(some_file(), lenet5());
  EXPECT_EQ(json["roles"][1]["role"], "rest");
  json["roles"][1]["role"] = "sleep";
  EXPECT_TRUE(says(refusal(json), "roles[1].role: role 'sleep' is unknown"));
}

TEST(PlanFile, KeepsAFixedOrder) {
  PlanFile file = some_file();
  file.plan.placement = Placement::fixed;
  file.plan.order = {{0, 2}, {1}};
  const PlanFile back = plan_file_from_json(to_json(file, lenet5()), graph_of);
  EXPECT_EQ(back.plan.order, file.plan.order);
}

TEST(PlanFile, KeepsStagesAndTheUpdateBetweenNodes) {
  PlanFile file = some_file();
  file.predicted.reset();
  file.plan.segments.front().recomputed = false;
  file.plan.nodes.push_back(file.plan.nodes.front());
  file.plan.nodes.back().name = "there";
  file.plan.nodes[0].groups[0].chunks = {6, 6};
  file.plan.nodes[1].groups[0].chunks = {6, 6};
  file.plan.update = NodeUpdate::server_gpu;
  const auto last = static_cast<std::uint32_t>(file.plan.segments.size() - 1);
  file.plan.stages = {{"here", "cpu", 0, 0}, {"there", "cpu", 1, last}};
  const PlanFile back = plan_file_from_json(to_json(file, lenet5()), graph_of);
  EXPECT_EQ(back.plan.stages, file.plan.stages);
  EXPECT_EQ(back.plan.update, NodeUpdate::server_gpu);
  EXPECT_EQ(hindrances(back.plan).size(), 2u);
}

TEST(PlanFile, TellsEveryMistakeWithItsPlace) {
  Json json = to_json(some_file(), lenet5());
  json["plan"]["nodes"][0]["groups"][0]["chunks"][1] = -7;
  json["plan"]["nodes"][0]["groups"][0]["kind"] = "abacus";
  json["plan"]["segments"][0]["last"] = "fc9";
  json["plan"]["steps_in_flight"] = 0;
  json["plan"]["colour"] = "red";
  json["buckets"][1]["bytes"] = "many";
  json["predicted"]["energy_j"] = -1;
  const std::string text = refusal(json);
  for (const char* part :
       {"plan.nodes[0].groups[0].chunks[1]: -7", "plan.nodes[0].groups[0].kind", "'abacus'",
        "plan.segments[0].last", "'fc9'", "plan.steps_in_flight: 0", "plan.colour: is not known",
        "buckets[1].bytes: \"many\"", "predicted.energy_j: -1"})
    EXPECT_TRUE(says(text, part)) << part << " in " << text;
}

TEST(PlanFile, RefusesSharesThatDoNotAddUp) {
  Json json = to_json(some_file(), lenet5());
  json["plan"]["nodes"][0]["groups"][0]["share"] = 13;
  EXPECT_TRUE(says(refusal(json), "share: 13 samples, but its chunks hold 12")) << refusal(json);
  json = to_json(some_file(), lenet5());
  json["plan"]["nodes"][0]["groups"][0]["chunks"] = {5, 8};
  json["plan"]["nodes"][0]["groups"][0]["share"] = 13;
  EXPECT_TRUE(says(refusal(json), "its chunks hold 13 samples, the batch 12")) << refusal(json);
}

TEST(PlanFile, RefusesAnotherVersionAndOtherFiles) {
  Json json = to_json(some_file(), lenet5());
  json["regatta_plan_file"] = 3;
  EXPECT_TRUE(says(refusal(json), "this one reads versions 1 and 2")) << refusal(json);
  json = to_json(some_file(), lenet5());
  json["plan"]["regatta_plan"] = 7;
  EXPECT_TRUE(says(refusal(json), "another version"));
  for (const Json& other : {Json::array(), Json(3), Json::object(), Json{{"plan", 1}}})
    EXPECT_TRUE(says(refusal(other), "it is none")) << other;
}

TEST(PlanFile, KeepsPaceAndPowersAndTellsWhereTheyAreWrong) {
  const Json json = to_json(some_file(), lenet5());
  const Plan plan = plan_file_from_json(json, graph_of).plan;
  EXPECT_EQ(plan.pace_s, 0.25);
  EXPECT_EQ(plan.nodes[0].groups[0].powers, some_file().plan.nodes[0].groups[0].powers);
  Json wrong = json;
  wrong["plan"]["pace_s"] = -1;
  wrong["plan"]["nodes"][0]["groups"][0]["powers"][1] = {{"slow", 0.5}, {"watts", 2}};
  EXPECT_TRUE(says(refusal(wrong), "plan.pace_s: -1")) << refusal(wrong);
  EXPECT_TRUE(says(refusal(wrong), "plan.nodes[0].groups[0].powers[1].slow: 0.5"))
      << refusal(wrong);
}

// Written by the program of that time.
Json version_1() { return read_json(test_files() / "tests/plan/data/version-1.json"); }

TEST(PlanFile, OfVersion1IsStillRead) {
  const PlanFile file = plan_file_from_json(version_1(), graph_of);
  const DeviceGroup& group = file.plan.nodes.at(0).groups.at(0);
  EXPECT_EQ(group.chunks, (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(group.slow, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(file.plan.segments.size(), 5u);
  EXPECT_EQ(file.buckets.size(), version_1()["buckets"].size());
  EXPECT_TRUE(takes_all_cpus(file.plan)) << "it says that workers submit";
  // It is written again as version 2, and says the same.
  const Json again = to_json(file, lenet5());
  EXPECT_EQ(again["regatta_plan_file"], 2);
  EXPECT_EQ(again["plan"]["regatta_plan"], 2);
  EXPECT_EQ(to_json(plan_file_from_json(again, graph_of), lenet5()), again);
}

TEST(PlanFile, WhatOnlyVersion1HadIsRefusedInVersion2) {
  Json json = to_json(some_file(), lenet5());
  json["plan"]["workers_submit"] = true;
  json["buckets"][0]["reduction"] = "slots";
  EXPECT_TRUE(says(refusal(json), "plan.workers_submit: is not known")) << refusal(json);
  EXPECT_TRUE(says(refusal(json), "buckets[0].reduction: is not known")) << refusal(json);
}

TEST(PlanFile, OfVersion1WithTwoReductionsIsRefused) {
  Json json = version_1();
  json["buckets"][1]["reduction"] = "loop";
  EXPECT_TRUE(says(refusal(json), "buckets[1].reduction: loop, but the plan's is slots"))
      << refusal(json);
}

TEST(PlanFile, RefusesAPlanForAnotherRecipe) {
  Json json = to_json(some_file(), lenet5());
  json["recipe"]["seed"] = 77;
  EXPECT_TRUE(says(refusal(json), "plan.recipe")) << refusal(json);
}

TEST(PlanFile, RefusesNestingThatWouldExhaustTheStack) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "deep.json";
  write_file(path, R"({"regatta_plan_file": 1, "plan": )" + std::string(100000, '[') +
                       std::string(100000, ']') + "}");
  EXPECT_TRUE(says(error_text([&] { read_plan_file(path, graph_of); }), "nested too deep"));
}

TEST(PlanFile, AnUnknownModelDoesNotHideTheOtherMistakes) {
  Json json = to_json(some_file(), lenet5());
  json["plan"]["loaders"] = "many";
  const std::string text = error_text([&] {
    plan_file_from_json(json, [](const Recipe&, const std::optional<Json>&) -> Graph {
      throw InputError("there is no such model");
    });
  });
  EXPECT_TRUE(says(text, "recipe: there is no such model"));
  EXPECT_TRUE(says(text, "plan.loaders: \"many\""));
}

// The schema is what editors check against; it must know what the reader knows.
TEST(PlanFile, TheSchemaNamesEveryMember) {
  const Json schema = read_json(test_files() / "schemas/plan.schema.json");
  PlanFile file = some_file();
  file.plan.placement = Placement::fixed;
  file.plan.order = {{}, {}};
  file.plan.stages = {{"here", "cpu", 0, 0}};
  file.plan.nodes.resize(2);
  file.plan.gather_loads = true;
  file.plan.backward = Backward::split;
  const Json json = to_json(file, lenet5());
  for (const auto& [key, value] : json.items())
    EXPECT_TRUE(schema.at("properties").contains(key)) << key;
  for (const auto& [key, value] : json["plan"].items())
    EXPECT_TRUE(schema.at("$defs").at("plan").at("properties").contains(key)) << key;
  const Json& group = json["plan"]["nodes"][0]["groups"][0];
  for (const auto& [key, value] : group.items())
    EXPECT_TRUE(schema.at("$defs").at("group").at("properties").contains(key)) << key;
}

TEST(PlanFile, AStageTakesTheWholeBatch) {
  PlanFile file = some_file();
  file.plan.stages = {
      {"here", "cpu", 0, static_cast<std::uint32_t>(file.plan.segments.size() - 1)}};
  file.plan.nodes[0].groups[0].chunks = {5, 6};
  EXPECT_TRUE(says(refusal(to_json(file, lenet5())), "a stage takes the whole batch of 12"));
}

TEST(PlanFile, StagesCutTheBatchAlikeAndEveryGroupHasOne) {
  PlanFile file = some_file();
  file.predicted.reset();
  file.plan.nodes[0].groups[0].chunks = {6, 6};
  file.plan.nodes.push_back(file.plan.nodes.front());
  file.plan.nodes.back().name = "there";
  const auto last = static_cast<std::uint32_t>(file.plan.segments.size() - 1);
  file.plan.stages = {{"here", "cpu", 0, last}};
  EXPECT_TRUE(says(refusal(to_json(file, lenet5())), "group 'there/cpu' has no stage"));
  file.plan.stages = {{"here", "cpu", 0, 0}, {"there", "cpu", 1, last}};
  file.plan.nodes[1].groups[0].chunks = {4, 8};
  EXPECT_TRUE(says(refusal(to_json(file, lenet5())), "cuts the batch in another way"));
  file.plan.nodes[1].groups[0].chunks = {6, 6};
  file.plan.placement = Placement::hybrid;
  EXPECT_TRUE(says(refusal(to_json(file, lenet5())), "its placement must be dynamic"));
}

TEST(PlanWorkers, CountCpuWorkersGpusAndLoaders) {
  Plan plan;
  plan.nodes = {{"here",
                 {{.name = "cpu", .workers = 2, .chunks = {1, 2, 3, 4, 5, 6, 7, 8}, .lanes = 4},
                  {.name = "gpu", .kind = DeviceKind::cuda, .chunks = {1}}}}};
  plan.loaders = 1;
  const std::vector<PlanWorker> workers = workers_of(plan);
  ASSERT_EQ(workers.size(), 4u);
  EXPECT_EQ(workers[1].number, 1);
  EXPECT_EQ(workers[2].kind, DeviceKind::cuda);
  EXPECT_EQ(workers[3].number, 2);
  EXPECT_FALSE(workers[3].group.has_value());
  // A lane's chunks share memory, so they share the worker.
  EXPECT_EQ(worker_of_chunk(plan.nodes[0].groups[0], 3), 1);
  EXPECT_EQ(worker_of_chunk(plan.nodes[0].groups[0], 7), 1);
}

}  // namespace
}  // namespace regatta
