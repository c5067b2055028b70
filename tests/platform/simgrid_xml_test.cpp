#include "platform/simgrid_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/wiring.h"
#include "support/error_text.h"
#include "support/places.h"

namespace regatta {
namespace {

using testing::HasSubstr;

const std::filesystem::path source = test_files();

std::string refusal(const std::string& text) {
  return error_text([&] { platform_from_xml(text, "p.xml"); });
}

std::string zone(const std::string& inside, const std::string& routing = "Full") {
  return "<?xml version='1.0'?><platform version=\"4.1\"><zone id=\"z\" routing=\"" + routing +
         "\">" + inside + "</zone></platform>";
}

TEST(SimgridXml, HostsLinksAndRoutesAreRead) {
  const Platform platform = platform_from_xml(
      zone("<host id=\"a\" speed=\"2Gf\" core=\"4\">"
           "<prop id=\"wattage_per_state\" value=\"40.0:50.0:80.0\"/></host>"
           "<host id=\"b\" speed=\"500Mf\"/><link id=\"l\" bandwidth=\"1Gbps\" latency=\"50us\"/>"
           "<!-- one route is enough -->"
           "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>"));
  ASSERT_EQ(platform.nodes.size(), 2u);
  const PlatformGroup& cpu = platform.nodes[0].groups[0];
  EXPECT_EQ(cpu.count, 4);
  EXPECT_DOUBLE_EQ(cpu.costs.flops, 2e9);
  EXPECT_DOUBLE_EQ(cpu.watts.idle, 10);  // of one core
  EXPECT_DOUBLE_EQ(cpu.watts.active, 20);
  const Wiring wiring(platform);
  const std::vector<int> route = wiring.route({0, -1}, {1, -1});
  ASSERT_EQ(route.size(), 1u);
  EXPECT_DOUBLE_EQ(wiring.wires()[static_cast<std::size_t>(route[0])].bandwidth, 125e6);
  EXPECT_DOUBLE_EQ(wiring.latency(route), 50e-6);
}

TEST(SimgridXml, ClustersAreRead) {
  const Platform flat = platform_from_xml(
      "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-9,20\" "
      "speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\" bb_bw=\"2GBps\" bb_lat=\"1us\"/></platform>");
  EXPECT_EQ(flat.node_count(), 11);
  EXPECT_EQ(flat.network.topology, Topology::star);
  EXPECT_DOUBLE_EQ(flat.network.backbone->bandwidth, 2e9);
  const Platform fat = platform_from_xml(
      "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><cluster id=\"c\" prefix=\"n\" "
      "suffix=\"\" radical=\"0-15\" speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\" "
      "topology=\"FAT_TREE\" topo_parameters=\"2;4,4;1,2;1,2\"/></zone></platform>");
  EXPECT_EQ(fat.network.topology, Topology::fat_tree);
  EXPECT_EQ(fat.network.switches[1].count, 4);
  EXPECT_EQ(fat.network.switches[1].uplinks, 4);
}

TEST(SimgridXml, WhatIsNotKnownIsRefusedByName) {
  EXPECT_THAT(refusal(zone("<storage id=\"s\"/>")), HasSubstr("line 1: <storage> is not known"));
  EXPECT_THAT(refusal(zone("", "Vivaldi")), HasSubstr("routing 'Vivaldi'"));
  EXPECT_THAT(refusal(zone("<host id=\"a\" speed=\"1Gf\" coordinates=\"0 0\"/>")),
              HasSubstr("attribute 'coordinates'"));
  EXPECT_THAT(refusal(zone("<host id=\"a\" speed=\"fast\"/>")), HasSubstr("'fast' is no usable"));
  EXPECT_THAT(refusal(zone("<link id=\"l\" bandwidth=\"0Bps\" latency=\"1us\"/>")),
              HasSubstr("'0Bps' is no usable"));
  EXPECT_THAT(refusal("<platform version=\"3\"><zone id=\"z\" routing=\"Full\"/></platform>"),
              HasSubstr("another version"));
  EXPECT_THAT(refusal("<platform"), HasSubstr("breaks off"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<zone>";
  EXPECT_THAT(refusal(deep), HasSubstr("nested too deep"));
}

// Bandwidth and latency between all pairs of memories are what a platform means.
void expect_same_paths(const Platform& before, const Platform& after) {
  const Wiring first(before), second(after);
  ASSERT_EQ(first.nodes(), second.nodes());
  const auto narrowest = [](const Wiring& wiring, const std::vector<int>& route) {
    double least = 1e18;
    for (const int wire : route)
      least = std::min(least, wiring.wires()[static_cast<std::size_t>(wire)].bandwidth);
    return least;
  };
  for (int a = 0; a < first.nodes(); ++a)
    for (int b = 0; b < first.nodes(); ++b) {
      const auto one = first.route({a, -1}, {b, -1}), two = second.route({a, -1}, {b, -1});
      EXPECT_DOUBLE_EQ(narrowest(first, one), narrowest(second, two)) << a << " " << b;
      EXPECT_NEAR(first.latency(one), second.latency(two), 1e-15);
    }
}

TEST(SimgridXml, WhatIsWrittenIsReadAgain) {
  for (const char* name : {"laptop", "lab", "gpu-and-old", "two-sites", "seven-gpu-box"}) {
    SCOPED_TRACE(name);
    const Platform before = read_platform(source / "platforms" / (std::string(name) + ".json"));
    const Platform after = platform_from_xml(platform_to_xml(before));
    expect_same_paths(before, after);
    std::size_t groups = 0;
    for (const PlatformNode& node : after.nodes) groups += node.groups.size();
    std::size_t expected = 0;
    for (const PlatformNode& node : before.nodes)
      expected += node.groups.size() * static_cast<std::size_t>(node.count);
    EXPECT_EQ(groups, expected);
  }
}

}  // namespace
}  // namespace regatta
