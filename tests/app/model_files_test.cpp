// Networks of one's own through the commands: trained, resumed and evaluated without the file they
// came from, and exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "models/models.h"
#include "models/network_json.h"
#include "regatta/regatta.h"
#include "support/program_run.h"
#include "support/same_graph.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* small_net = R"({"name": "small", "input": [1, 6, 6], "layers": [
  {"name": "conv", "op": "conv", "channels": 4, "kernel": 3, "bias": false},
  {"name": "bn", "op": "batch_norm"},
  {"op": "relu"},
  {"op": "flatten"},
  {"name": "fc", "op": "dense", "features": 3}
]})";

class ModelFiles : public testing::Test {
 protected:
  ModelFiles() { write_file(at("net.json"), small_net); }

  std::string at(const char* name) const { return (folder_.path() / name).string(); }

  static ProgramRun run(std::vector<std::string> arguments) {
    ProgramRun done = run_regatta(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return done;
  }
  void train(const std::string& model, const char* out, const std::string& steps) {
    run({"train", "--model", model, "--data", data, "--batch", "4", "--steps", steps, "--workers",
         "1", "--deterministic", "--out", at(out)});
  }
  // The logits as bytes.
  std::string predicted(std::vector<std::string> arguments) {
    for (const std::string& more : {std::string("--data"), std::string(data), std::string("--out"),
                                    at("logits.npy"), std::string("--workers"), std::string("1")})
      arguments.push_back(more);
    arguments.insert(arguments.begin(), "predict");
    run(arguments);
    return read_file(at("logits.npy"));
  }

  static constexpr const char* data = "synth:1x6x6/3@10";
  const TemporaryFolder folder_;
};

TEST_F(ModelFiles, AreTrainedResumedAndEvaluatedWithoutTheFile) {
  train(at("net.json"), "whole", "6");
  train(at("net.json"), "halves", "3");
  fs::remove(at("net.json"));
  run({"train", "--resume", at("halves"), "--steps", "6"});
  EXPECT_EQ(predicted({"--run", at("halves")}), predicted({"--run", at("whole")}));
  EXPECT_THAT(read_json(at("whole") + "/run.json").at("recipe").at("model").get<std::string>(),
              testing::MatchesRegex("small#[0-9a-f]+"));
}

TEST_F(ModelFiles, ARunIsExportedWithItsWeights) {
  train(at("net.json"), "run", "3");
  run({"models", at("run"), "--export", at("net.onnx")});
  const std::string logits = predicted({"--run", at("run")});
  EXPECT_EQ(predicted({"--model", at("net.onnx")}), logits);
  // Trained for no time, what was imported is what it was.
  run({"train", "--model", at("net.onnx"), "--data", data, "--batch", "4", "--steps", "1", "--lr",
       "0", "--workers", "1", "--out", at("again")});
  // Without a first checkpoint, an early crash would lose the file's weights.
  EXPECT_TRUE(fs::exists(at("again") + "/checkpoints/step-0"));
  run({"models", at("run"), "--export", at("back.json")});
  expect_same_graph(graph_from_json(read_file(at("back.json"))), graph_from_json(small_net));
}

TEST_F(ModelFiles, AnotherNetworkInRunJsonIsNoticed) {
  train(at("net.json"), "run", "1");
  Json json = read_json(at("run") + "/run.json");
  json["network"]["layers"][0]["channels"] = 5;
  write_file(at("run") + "/run.json", json.dump());
  EXPECT_THAT(run_regatta({"eval", "--run", at("run")}).err,
              HasSubstr("its network is not that of its recipe"));
}

TEST_F(ModelFiles, NetworksOfTheLibraryAreEvaluatedByTheProgram) {
  Network net("by hand", {.channels = 1, .height = 6, .width = 6});
  net.dense("fc", net.relu(net.conv("conv", net.input(), {.channels = 2, .kernel = 3})), 3);
  regatta::train(net, {.data = data, .steps = 2, .batch = 4, .workers = 1, .out = at("run")});
  EXPECT_THAT(run({"eval", "--run", at("run")}).out, HasSubstr("over 2 images"));
  run({"train", "--resume", at("run"), "--steps", "3"});
}

TEST_F(ModelFiles, AFaultNamesTheFileAndTheLayer) {
  write_file(at("bad.json"), R"({"name": "n", "input": [1, 6, 6], "layers": [
    {"name": "conv", "op": "conv", "channels": 4, "kernel": 9}]})");
  const std::string fault =
      "bad.json': conv 'conv': kernel 9x9 is larger than its padded input 6x6";
  EXPECT_THAT(run_regatta({"train", "--model", at("bad.json"), "--data", data}).err,
              HasSubstr(fault));
  write_file(at("w"), std::string("\2\0\0\0\0\0\0\0{}", 10));  // safetensors with no tensor
  EXPECT_THAT(
      run_regatta({"eval", "--model", at("bad.json"), "--data", data, "--weights", at("w")}).err,
      HasSubstr(fault));
  EXPECT_THAT(run_regatta({"models", at("bad.json")}).err, HasSubstr(fault));
  EXPECT_THAT(run_regatta({"models", at("net.json"), "--classes", "7"}).err,
              HasSubstr("its last layer gives 3 classes, not 7"));
  EXPECT_THAT(run_regatta({"models", "tiny", "--export", "net.txt"}).err,
              HasSubstr("must end with .json or .onnx"));
}

TEST_F(ModelFiles, ModelsAreToldLayerByLayerAndPrinted) {
  const ProgramRun told = run({"models", at("net.json")});
  EXPECT_THAT(told.out, HasSubstr("conv"));
  EXPECT_THAT(told.out, HasSubstr("4x4x4"));
  expect_same_graph(graph_from_json(run({"models", "tiny", "--export", "-"}).out),
                    build_model("tiny"));
}

}  // namespace
}  // namespace regatta
