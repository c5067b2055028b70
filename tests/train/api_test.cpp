// The public library, as a stranger would call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regatta/regatta.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "support/error_text.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The model `tiny` of the zoo, by hand.
Network tiny_by_hand(std::int64_t channels = 4) {
  Network net("mine", {.channels = 1, .height = 8, .width = 8});
  Layer x = net.conv("conv", net.input(), {.channels = channels, .kernel = 3});
  x = net.max_pool(net.relu(x), {.kernel = 2});
  net.dense("dense", x, 3);
  return net;
}

TrainOptions quick() {
  TrainOptions options;
  options.data = "synth:1x8x8/3@20";
  options.batch = 8;
  options.workers = 2;
  options.deterministic = true;
  return options;
}

TEST(Library, TrainsAsTheProgramDoes) {
  const TemporaryFolder folder;
  TrainOptions options = quick();
  options.epochs = 2;
  options.out = (folder.path() / "library").string();
  const TrainReport report = train(tiny_by_hand(), options);
  const std::string program = (folder.path() / "program").string();
  ASSERT_EQ(run_regatta({"train", "--model", "tiny", "--data", options.data, "--batch", "8",
                         "--deterministic", "--epochs", "2", "--out", program})
                .code,
            0);
  EXPECT_EQ(report.epochs.size(), 2u);
  EXPECT_EQ(read_file(fs::path(report.checkpoint) / "model.safetensors"),
            read_file(fs::path(program) / "checkpoints" / "step-6" / "model.safetensors"));
}

TEST(Library, AugmentsAsTheProgramDoes) {
  const TemporaryFolder folder;
  TrainOptions options = quick();
  options.augment = "flip,crop:2";
  options.out = (folder.path() / "library").string();
  const TrainReport report = train(tiny_by_hand(), options);
  const auto weights_of = [](const fs::path& checkpoint) {
    return read_file(checkpoint / "model.safetensors");
  };
  const auto by_program = [&](const char* name, const std::vector<std::string>& flags) {
    const fs::path out = folder.path() / name;
    std::vector<std::string> all{"train",      "--model",   "tiny", "--data",
                                 options.data, "--batch",   "8",    "--deterministic",
                                 "--out",      out.string()};
    all.insert(all.end(), flags.begin(), flags.end());
    EXPECT_EQ(run_regatta(all).code, 0);
    return weights_of(out / "checkpoints" / "step-3");
  };
  EXPECT_EQ(weights_of(report.checkpoint), by_program("same", {"--augment", "crop:2,flip"}));
  EXPECT_NE(weights_of(report.checkpoint), by_program("plain", {}));
}

TEST(Library, EveryLayerCanBeTrained) {
  Network net("all", {.channels = 1, .height = 8, .width = 8});
  Layer x = net.conv("conv1", net.input(), {.channels = 4, .kernel = 3, .padding = 1});
  x = net.relu(net.batch_norm("bn1", x));
  const Layer shortcut = x;
  x = net.conv("conv2", x, {.channels = 4, .kernel = {1, 3}, .padding = {0, 1}, .bias = false});
  x = net.max_pool(net.relu(net.add(net.batch_norm("bn2", x), shortcut)));
  x = net.relu(net.dense("hidden", net.flatten(net.global_average_pool(x)), 8));
  net.dense("logits", x, 3);
  TrainOptions options = quick();
  options.epochs = 30;
  options.learning_rate = 0.05;
  const TrainReport report = train(net, options);
  EXPECT_LT(report.epochs.back().train_loss, 0.5 * report.epochs.front().train_loss);
}

TEST(Library, LayersOfTheZooCanBeTrained) {
  Network net("more", {.channels = 1, .height = 8, .width = 8});
  Layer x = net.conv("conv1", net.input(), {.channels = 6, .kernel = 3, .padding = {1, 1, 1, 0}});
  const Layer wide = net.relu6(
      net.conv("conv2", x, {.channels = 6, .kernel = 3, .padding = 2, .dilation = 2, .groups = 2}));
  const Layer deep = net.gelu(net.conv("conv3", x, {.channels = 6, .kernel = 1, .groups = 6}));
  x = net.concat({net.leaky_relu(x, 0.1), wide, deep});
  x = net.local_response_norm(net.average_pool(x, {.kernel = 2, .ceil = true}));
  x = net.layer_norm("norm", net.adaptive_average_pool(x, {2, 2}));
  x = net.dropout(net.tanh(net.dense("hidden", x, 16)), 0.1);
  net.dense("logits", net.add(x, net.sigmoid(x)), 3);
  TrainOptions options = quick();
  options.epochs = 30;
  options.learning_rate = 0.05;
  const TrainReport report = train(net, options);
  EXPECT_LT(report.epochs.back().train_loss, 0.8 * report.epochs.front().train_loss);
}

TEST(Library, WritesNothingUnlessItIsToldWhere) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const TrainReport report = train(tiny_by_hand(), quick());
  fs::current_path(before);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_EQ(report.checkpoint, "");
}

TEST(Library, TellsOfEveryEpochAsItEnds) {
  TrainOptions options = quick();
  options.epochs = 3;
  options.test = "none";
  std::vector<std::int64_t> told;
  options.on_epoch = [&](const EpochRecord& epoch) {
    told.push_back(epoch.epoch);
    EXPECT_FALSE(epoch.test_accuracy);
  };
  train(tiny_by_hand(), options);
  EXPECT_EQ(told, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(Library, WhatACallbackThrowsReachesTheCaller) {
  TrainOptions options = quick();
  options.on_epoch = [](const EpochRecord&) { throw Error("enough"); };
  EXPECT_THROW(train(tiny_by_hand(), options), Error);
}

// The plan's fingerprint must not take one network for another.
TEST(Library, NetworksOfOneNameAreTwoRecipes) {
  const TemporaryFolder folder;
  const auto recipe_of = [&](const char* name, std::int64_t channels) {
    TrainOptions options = quick();
    options.steps = 1;
    options.out = (folder.path() / name).string();
    train(tiny_by_hand(channels), options);
    return read_json(fs::path(options.out) / "run.json").at("plan").at("recipe");
  };
  EXPECT_NE(recipe_of("a", 4), recipe_of("b", 5));
  EXPECT_EQ(recipe_of("c", 4), recipe_of("d", 4));
}

TEST(Library, NamesWhatIsWrong) {
  const auto complaint = [](const auto& change) {
    TrainOptions options = quick();
    change(options);
    return error_text([&] { train(tiny_by_hand(), options); });
  };
  EXPECT_THAT(complaint([](TrainOptions& o) { o.data = "minst"; }), HasSubstr("'mnist'"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.data = "synth:1x9x9/3@20"; }), HasSubstr("1x9x9"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.batch = 0; }), HasSubstr("--batch 0"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.workers = 1000; }), HasSubstr("--workers 1000"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.optimizer = "adm"; }),
              HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(complaint([](TrainOptions& o) {
                o.optimizer = "adam";
                o.momentum = 0.9;
              }),
              HasSubstr("momentum does not concern the optimizer adam"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.schedule = "linear"; }), HasSubstr("'linear'"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.augment = "flop"; }), HasSubstr("'flop'"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.learning_rate = -1; }), HasSubstr("--lr -1"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.momentum = NAN; }), HasSubstr("--momentum nan"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.weight_decay = 1e39; }),
              HasSubstr("--weight-decay 1e+39"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.chunks = {3, 4}; }), HasSubstr("7 samples"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.segments = "blok"; }), HasSubstr("blok"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.epochs = o.steps = 1; }), HasSubstr("--steps"));
  EXPECT_THAT(complaint([](TrainOptions& o) { o.out = "/proc/run"; }), HasSubstr("/proc/run"));
}

TEST(OwnNetwork, ALayerStaysInItsNetwork) {
  Network one("one", {1, 8, 8}), other("other", {1, 8, 8});
  EXPECT_THAT(error_text([&] { one.relu(other.input()); }), HasSubstr("another network"));
}

TEST(OwnNetwork, ALayerThatDoesNotFitIsNamed) {
  Network net("net", {1, 4, 4});
  EXPECT_THAT(error_text([&] { net.conv("conv", net.input(), {.channels = 2, .kernel = 7}); }),
              HasSubstr("conv 'conv': kernel 7x7"));
}

TEST(OwnNetwork, KeepsItsLayersWhenItMoves) {
  Network net("net", {1, 8, 8});
  const Layer x = net.conv("conv", net.input(), {.channels = 2, .kernel = 3});
  Network moved = std::move(net);
  EXPECT_EQ(error_text([&] { moved.dense("dense", x, 3); }), "no error");
}

TEST(PublicData, IsThereOnceItsFilesAre) { EXPECT_FALSE(has_data("no-such-set")); }

}  // namespace
}  // namespace regatta
