#include "platform/platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "platform/wiring.h"
#include "support/error_text.h"
#include "support/json_schema.h"
#include "support/places.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const fs::path source = test_files();

Json group_json() {
  return {{"name", "cpu"},
          {"kind", "cpu"},
          {"count", 4},
          {"memory_bytes", 1 << 30},
          {"watts", {{"idle", 1}, {"active", 5}}},
          {"costs", {{"flops", 1e9}}}};
}

Json node_json(const std::string& name) {
  return {{"name", name}, {"groups", Json::array({group_json()})}};
}

Json two_nodes() {
  return {{"regatta_platform", 1},
          {"name", "pair"},
          {"nodes", Json::array({node_json("a"), node_json("b")})},
          {"network", {{"topology", "star"}, {"bandwidth", 1e9}, {"latency", 1e-5}}}};
}

std::string refusal(const Json& json) {
  return error_text([&] { platform_from_json(json); });
}

TEST(PlatformGallery, TheExampleOfTheManualIsReadAndFitsTheSchema) {
  if (!fs::exists(source / "docs/simulate.md")) GTEST_SKIP() << "no sources here";
  const std::string manual = read_file(source / "docs/simulate.md");
  const std::string fence = "```json\n";
  const std::size_t begin = manual.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t first = begin + fence.size();
  const Json json = Json::parse(manual.substr(first, manual.find("```", first) - first));
  EXPECT_EQ(schema_faults(read_json(source / "schemas/platform.schema.json"), json),
            std::vector<std::string>{});
  const Platform platform = platform_from_json(json);
  std::vector<std::string> names;
  for (const PlatformNode& node : platform.nodes) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"workstation", "old"}));
}

TEST(PlatformGallery, EveryFileIsReadAndFitsTheSchema) {
  const Json schema = read_json(source / "schemas/platform.schema.json");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(source / "platforms")) {
    SCOPED_TRACE(entry.path());
    ++files;
    const Json json = read_json(entry.path());
    EXPECT_THAT(schema_faults(schema, json), testing::IsEmpty());
    const Platform platform = read_platform(entry.path());
    EXPECT_EQ(platform_from_json(platform.to_json()), platform) << "what was written is read again";
    EXPECT_THAT(schema_faults(schema, platform.to_json()), testing::IsEmpty());
  }
  EXPECT_GE(files, 8);
}

TEST(PlatformGallery, TheThousandNodesAreAThousand) {
  const Platform platform = read_platform(source / "platforms/thousand.json");
  EXPECT_EQ(platform.node_count(), 1000);
  const Wiring wiring(platform);
  // 25 racks of 40: neighbours stay in their rack, others pass the core.
  EXPECT_EQ(wiring.route({0, -1}, {1, -1}).size(), 2u);
  EXPECT_EQ(wiring.route({0, -1}, {999, -1}).size(), 4u);
}

TEST(Platform, EveryFaultIsToldWithItsPlace) {
  Json json = two_nodes();
  json["nodes"][1]["groups"][0]["watts"]["active"] = -5;
  json["nodes"][0]["groups"][0]["kind"] = "tpu";
  json["network"]["bandwidth"] = 0;
  json["nodes"][0]["colour"] = "red";
  EXPECT_THAT(refusal(json),
              AllOf(HasSubstr("nodes[1].groups[0].watts.active: -5"),
                    HasSubstr("nodes[0].groups[0].kind: device 'tpu' is unknown"),
                    HasSubstr("network.bandwidth: 0"), HasSubstr("nodes[0].colour")));
}

TEST(Platform, UnusedNodesDrawWhatTheirIdleDevicesDrawUnlessTold) {
  Json json = two_nodes();
  EXPECT_EQ(platform_from_json(json).nodes[0].watts_unused(), 4 * 1);
  const std::string before = platform_from_json(json).fingerprint();
  json["nodes"][0]["unused_watts"] = 0;
  const Platform off = platform_from_json(json);
  EXPECT_EQ(off.nodes[0].watts_unused(), 0);
  EXPECT_EQ(off.nodes[1].watts_unused(), 4);
  EXPECT_NE(off.fingerprint(), before);
  EXPECT_EQ(platform_from_json(off.to_json()), off);
  json["nodes"][0]["unused_watts"] = -1;
  EXPECT_THAT(refusal(json), HasSubstr("nodes[0].unused_watts"));
}

TEST(Platform, IsRefusedIfItCannotBe) {
  Json json = two_nodes();
  json["regatta_platform"] = 7;
  EXPECT_THAT(refusal(json), HasSubstr("regatta_platform: 7 is another version"));
  json = two_nodes();
  json["nodes"][1]["name"] = "a";
  EXPECT_THAT(refusal(json), HasSubstr("nodes[1].name: 'a' is there twice"));
  json = two_nodes();
  json.erase("network");
  EXPECT_THAT(refusal(json), HasSubstr("network: is missing"));
  json = two_nodes();
  json["nodes"] = Json::array();
  EXPECT_THAT(refusal(json), HasSubstr("nodes: there is none"));
  json = two_nodes();
  json["nodes"][0]["groups"][0]["costs"] = Json::object();
  EXPECT_THAT(refusal(json), HasSubstr("nodes[0].groups[0].costs: names neither"));
  json = two_nodes();
  json["nodes"][0]["groups"][0]["watts"]["idle"] = 9;
  EXPECT_THAT(refusal(json), HasSubstr("watts.active: 5.0 is less than idle"));
  json = two_nodes();
  json["nodes"][0]["groups"][0]["kind"] = "cuda";
  EXPECT_THAT(refusal(json), HasSubstr("nodes[0].groups[0].bus: is missing"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("no object"));
}

TEST(Platform, TellsPricesAndWhatAnUnusedNodeDraws) {
  Json json = two_nodes();
  json["energy_price"] = 0.25;
  json["nodes"][0]["unused_watts"] = 1.5;
  json["nodes"][0]["price"] = {{"per_hour", 2}, {"minimum_hours", 1}};
  json["nodes"][1]["price"] = {{"purchase", 1000}, {"lifetime_hours", 20000}};
  const Platform platform = platform_from_json(json);
  EXPECT_EQ(platform.energy_price, 0.25);
  EXPECT_EQ(platform.nodes[0].watts_unused(), 1.5);
  EXPECT_EQ(platform.nodes[1].watts_unused(), 4) << "four cores of 1 W each stay on";
  EXPECT_TRUE(platform.nodes[0].price->rented());
  EXPECT_FALSE(platform.nodes[1].price->rented());
  EXPECT_EQ(platform_from_json(platform.to_json()), platform);
  EXPECT_THAT(schema_faults(read_json(source / "schemas/platform.schema.json"), json),
              testing::IsEmpty());
}

TEST(Platform, TellsWherePricesAreWrong) {
  Json json = two_nodes();
  json["nodes"][0]["unused_watts"] = 5;
  json["nodes"][0]["price"] = {{"per_hour", -2}};
  json["nodes"][1]["price"] = {{"purchase", 10}};
  json["energy_price"] = "much";
  EXPECT_THAT(
      refusal(json),
      AllOf(HasSubstr("nodes[0].unused_watts: 5.0 is more than its devices draw idle, 4.0"),
            HasSubstr("nodes[0].price.per_hour: -2"),
            HasSubstr("nodes[1].price.lifetime_hours: is missing"), HasSubstr("energy_price")));
  json = two_nodes();
  json["nodes"][0]["price"] = {{"per_hour", 2}, {"purchase", 10}};
  EXPECT_THAT(refusal(json), HasSubstr("nodes[0].price.purchase"));
}

TEST(Platform, TellsOfSlowCores) {
  Json json = two_nodes();
  json["nodes"][0]["groups"][0]["slow_cores"] = {{"count", 3}, {"slow", 2}, {"active_watts", 2}};
  const Platform platform = platform_from_json(json);
  const PlatformGroup& cores = platform.nodes[0].groups[0];
  EXPECT_EQ(cores.fast_cores(), 2.5) << "one, and three that do half as much";
  EXPECT_EQ(cores.busy_watts(), 4 + 3 * 1);
  EXPECT_EQ(platform.nodes[1].groups[0].fast_cores(), 4);
  EXPECT_EQ(platform.nodes[1].groups[0].busy_watts(), 16);
  EXPECT_EQ(platform_from_json(platform.to_json()), platform);
  EXPECT_THAT(schema_faults(read_json(source / "schemas/platform.schema.json"), json),
              testing::IsEmpty());
  Json& slow = json["nodes"][0]["groups"][0]["slow_cores"];
  slow = {{"count", 4}, {"slow", 0.5}, {"active_watts", 0.5}};
  EXPECT_THAT(refusal(json),
              AllOf(HasSubstr("nodes[0].groups[0].slow_cores.slow: 0.5"),
                    HasSubstr("nodes[0].groups[0].slow_cores.count: a group of 4"),
                    HasSubstr("nodes[0].groups[0].slow_cores.active_watts: is less than")));
}

TEST(Platform, SwitchesMustLeadToOneRoot) {
  Json json = two_nodes();
  json["network"] = {{"topology", "tree"},
                     {"bandwidth", 1e9},
                     {"switches",
                      {{{"name", "x"}, {"parent", "y"}, {"bandwidth", 1e9}},
                       {{"name", "y"}, {"parent", "x"}, {"bandwidth", 1e9}}}}};
  json["nodes"][0]["switch"] = "x";
  json["nodes"][1]["switch"] = "z";
  EXPECT_THAT(refusal(json),
              AllOf(HasSubstr("network.switches[0].parent: the way up"), HasSubstr("is a cycle"),
                    HasSubstr("nodes[1].switch: there is no switch 'z'")));
  json["network"]["switches"] = {{{"name", "x"}}, {{"name", "y"}}};
  EXPECT_THAT(refusal(json), HasSubstr("2 have no parent, but a tree has one root"));
}

TEST(Platform, SitesMustHangTogether) {
  Json json = two_nodes();
  json["network"] = {{"topology", "wide_area"},
                     {"bandwidth", 1e9},
                     {"switches", {{{"name", "x"}}, {{"name", "y"}}}}};
  json["nodes"][0]["switch"] = "x";
  json["nodes"][1]["switch"] = "y";
  EXPECT_THAT(refusal(json), HasSubstr("network.sites: 'x' and 'y' are not joined"));
}

TEST(Platform, AFileNestedTooDeepIsRefused) {
  const fs::path file = fs::temp_directory_path() / "regatta-deep-platform.json";
  write_file(file, std::string(100'000, '['));
  EXPECT_THAT(error_text([&] { read_platform(file); }), HasSubstr("nested too deep"));
  fs::remove(file);
}

// --- wiring

std::vector<std::string> names(const Wiring& wiring, const std::vector<int>& route) {
  std::vector<std::string> found;
  for (const int wire : route) {
    const Wire& each = wiring.wires()[static_cast<std::size_t>(wire)];
    found.push_back(each.from + " to " + each.to);
  }
  return found;
}

TEST(Wiring, GpusBelowOneHubReachEachOtherBelowIt) {
  const Wiring wiring(read_platform(source / "platforms/seven-gpu-box.json"));
  EXPECT_EQ(names(wiring, wiring.route({0, 0}, {0, 1})),
            (std::vector<std::string>{"7gforce/gtx1070-left 0 to 7gforce/left",
                                      "7gforce/left to 7gforce/gtx1070-left 1"}));
  EXPECT_EQ(
      names(wiring, wiring.route({0, 0}, {0, 6})),
      (std::vector<std::string>{"7gforce/gtx1070-left 0 to 7gforce/left", "7gforce/left to 7gforce",
                                "7gforce to 7gforce/right", "7gforce/right to 7gforce/gtx1080 0"}));
  EXPECT_EQ(names(wiring, wiring.route({0, 3}, {0, -1})),
            (std::vector<std::string>{"7gforce/gtx1070-right 0 to 7gforce/right",
                                      "7gforce/right to 7gforce"}));
}

TEST(Wiring, SitesAreLeftByTheirLink) {
  const Wiring wiring(read_platform(source / "platforms/two-sites.json"));
  const std::vector<int> far = wiring.route({0, -1}, {8, -1});
  EXPECT_EQ(names(wiring, far),
            (std::vector<std::string>{"north-0 to hill", "hill to shore", "shore to south-0"}));
  EXPECT_DOUBLE_EQ(wiring.latency(far), 0.02 + 6e-5);
  EXPECT_EQ(names(wiring, wiring.route({8, -1}, {0, -1})),
            (std::vector<std::string>{"south-0 to shore", "shore to hill", "hill to north-0"}));
  EXPECT_TRUE(wiring.route({3, -1}, {3, -1}).empty());
}

TEST(Wiring, ARingIsWalkedTheShorterWay) {
  Json json = two_nodes();
  for (const char* name : {"c", "d", "e"}) json["nodes"].push_back(node_json(name));
  json["network"]["topology"] = "ring";
  const Wiring wiring(platform_from_json(json));
  EXPECT_EQ(names(wiring, wiring.route({0, -1}, {2, -1})),
            (std::vector<std::string>{"a to b", "b to c"}));
  EXPECT_EQ(names(wiring, wiring.route({0, -1}, {3, -1})),
            (std::vector<std::string>{"a to e", "e to d"}));
}

TEST(Wiring, NodesOfATreeKnowTheSwitchesAboveThem) {
  const Wiring tree(read_platform(source / "platforms/thousand.json"));
  EXPECT_EQ(tree.switches_above(0), (std::vector<std::string>{"core", "rack-0"}));
  EXPECT_EQ(tree.switches_above(999), (std::vector<std::string>{"core", "rack-24"}));
  EXPECT_TRUE(Wiring(read_platform(source / "platforms/lab.json")).switches_above(0).empty());
}

}  // namespace
}  // namespace regatta
