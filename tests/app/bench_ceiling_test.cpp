// What cores could reach: the bytes that operators move, and the command as a whole.
#include "app/bench_ceiling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "app/kernels_alone.h"
#include "backends/cpu/cpu_backend.h"
#include "base/files.h"
#include "base/json.h"
#include "base/program.h"
#include "ops/builder.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

// A batch norm of 32 channels on 5x5 pixels, with a relu and perhaps a residual.
Graph norm_network(bool residual) {
  NetBuilder net("norm", {3, 7, 7});
  const NodeId a = net.conv("a", net.input(), {.channels = 32, .kernel = 3});
  // Before the norm: only what is there already can be fused with it.
  const NodeId b = residual ? net.conv("b", net.input(), {.channels = 32, .kernel = 3}) : NodeId{};
  NodeId y = net.batch_norm("y", a);
  if (residual) y = net.add(y, b);
  return fuse(std::move(net).finish(net.dense("head", net.relu(y), 2)));
}

double tensors_moved(const Graph& graph, Work work, Precision precision = Precision::fp32) {
  constexpr double tensor = 32 * 5 * 5 * sizeof(float);
  for (const Node& node : graph.nodes())
    if (node.name == "y")
      return app::bytes_moved(graph, GradientFlow(graph),
                              value_forms(graph, Layout::blocked16, precision), {node.id, work}) /
             tensor;
  return 0;
}

TEST(BytesMoved, OfBatchNormAreThoseOfItsPasses) {
  const Graph plain = norm_network(false);
  EXPECT_EQ(tensors_moved(plain, Work::statistics), 1);
  EXPECT_EQ(tensors_moved(plain, Work::normalise), 2);
  EXPECT_EQ(tensors_moved(plain, Work::forward), 3);
  EXPECT_EQ(tensors_moved(plain, Work::gradient_sums), 2);
  EXPECT_EQ(tensors_moved(plain, Work::gradient_apply), 3);
  EXPECT_EQ(tensors_moved(plain, Work::backward), 5);
}

TEST(BytesMoved, WithAResidualTheOutputAndTwoGradientsComeAlong) {
  const Graph graph = norm_network(true);
  EXPECT_EQ(tensors_moved(graph, Work::normalise), 3);
  EXPECT_EQ(tensors_moved(graph, Work::gradient_sums), 3);
  EXPECT_EQ(tensors_moved(graph, Work::gradient_apply), 5);
}

TEST(BytesMoved, AreHalfAsManyInBf16) {
  EXPECT_EQ(tensors_moved(norm_network(true), Work::normalise, Precision::bf16), 1.5);
}

TEST(ProductsAlone, TimesEveryConvolutionAndDenseLayerBothWays) {
  const Graph graph = norm_network(true);
  const auto times = app::products_alone(graph, cpu::preferred_layout(), Precision::fp32, 2, 2,
                                         std::chrono::milliseconds(1));
  ASSERT_EQ(times.size(), 6u);  // two convolutions and a dense layer, both ways
  for (const app::AloneTime& time : times) {
    EXPECT_TRUE(app::is_product(graph.node(time.step.node)));
    EXPECT_GT(time.seconds, 0);
  }
}

TEST(BenchCeiling, SetsATrainingRunBesideWhatCoresReachAlone) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "ceiling.json").string();
  const ProgramResult run = run_program({regatta_program(),
                                         "bench",
                                         "ceiling",
                                         "--model",
                                         "resnet18",
                                         "--input",
                                         "3x32x32",
                                         "--batch",
                                         "4",
                                         "--workers",
                                         "2",
                                         "--chunks",
                                         "2",
                                         "--granularity",
                                         "fixed",
                                         "--steps",
                                         "4",
                                         "--seconds",
                                         "0.01",
                                         "--json",
                                         file});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("ceiling"));
  const Json json = read_json(file);
  const double rest = json.at("other_bytes_per_image").get<double>() /
                      json.at("stream_together_bytes_per_s").get<double>();
  EXPECT_NEAR(json.at("ceiling_images_per_s").get<double>(),
              2 / (json.at("products_seconds_per_image").get<double>() + rest), 1e-6);
  EXPECT_GT(json.at("images_per_s").get<double>(), 0);
  EXPECT_TRUE(json.contains("taken_by_others"));
  std::set<std::string> seen;
  for (const Json& row : json.at("operators")) {
    seen.insert(row.at("operator").get<std::string>() + " " + row.at("work").get<std::string>());
    EXPECT_GT(row.at("seconds_per_image").get<double>(), 0);
  }
  for (const char* wanted : {"conv forward", "conv backward", "batch_norm statistics",
                             "batch_norm gradient_apply", "dense backward", "update update"})
    EXPECT_TRUE(seen.contains(wanted)) << wanted;
}

TEST(BenchCeiling, WrongInputIsRefusedBeforeAnythingIsMeasured) {
  EXPECT_EQ(run_regatta({"bench", "ceiling"}).code, 2);
  EXPECT_EQ(run_regatta({"bench", "ceiling", "--model", "tinny"}).code, 2);
  EXPECT_EQ(run_regatta({"bench", "ceiling", "--model", "tiny", "--workers", "0"}).code, 2);
}

}  // namespace
}  // namespace regatta
