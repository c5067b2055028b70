// What the commands say and write when all is well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/files.h"
#include "base/json.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "exec/versions.h"
#include "models/models.h"
#include "parity/formula.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(Help, OfEveryCommandHasAnExample) {
  for (const app::Command& command : app::commands())
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{std::string(command.name), "--help"},
          std::vector<std::string>{"help", std::string(command.name)}}) {
      const ProgramRun run = run_regatta(arguments);
      EXPECT_EQ(run.code, 0) << command.name;
      EXPECT_THAT(run.out, HasSubstr("Example:\n  regatta " + std::string(command.name)));
      EXPECT_EQ(run.err, "");
    }
}

TEST(Help, OfTheProgramListsEveryCommand) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"--help"}, {"-h"}, {"help"}}) {
    const ProgramRun run = run_regatta(arguments);
    EXPECT_EQ(run.code, 0);
    for (const app::Command& command : app::commands())
      EXPECT_THAT(run.out, HasSubstr("  " + std::string(command.name) + " "));
  }
}

TEST(Help, FitsATerminal) {
  for (const app::Command& command : app::commands()) {
    std::istringstream lines(run_regatta({std::string(command.name), "--help"}).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST(Version, NamesTheLibrariesThatKernelsAndTasksComeFrom) {
  const std::string said = run_regatta({"--version"}).out;
  for (const auto& [library, which] : library_versions())
    EXPECT_THAT(said, HasSubstr(", " + library + " " + which));
  EXPECT_THAT(said, HasSubstr("onednn "));
}

TEST(ModelsCommand, JsonHasARowForEach) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "models.json";
  ASSERT_EQ(run_regatta({"models", "--json", file.string()}).code, 0);
  const Json models = read_json(file).at("models");
  ASSERT_EQ(models.size(), model_names().size());
  for (const Json& row : models) {
    const ModelSummary summary = summarise(fuse(build_model(row.at("name").get<std::string>())));
    EXPECT_EQ(row.at("parameters"), summary.parameters);
    EXPECT_EQ(row.at("multiply_adds"), summary.multiply_adds);
    EXPECT_EQ(row.at("activation_bytes"), summary.activation_bytes);
    EXPECT_EQ(row.at("meeting_points"), summary.meeting_points);
    EXPECT_TRUE(row.at("input").is_string());
    EXPECT_TRUE(row.at("classes").is_number());
  }
}

TEST(DataCommand, InfoDescribesASet) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "data.json";
  const ProgramRun run = run_regatta({"data", "info", "synth:3x8x8/5@20", "--json", file.string()});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("samples: 20\nshape: 3x8x8\nclasses: 5\n"));
  EXPECT_EQ(read_json(file).at("classes"), 5);
}

// Weights and images by the parity formula, as files; and what the reference makes of them.
class Prediction : public testing::TestWithParam<const char*> {
 protected:
  static constexpr std::int64_t images = 5;

  Prediction() : input(make_input<float>(graph, images)) {
    TensorFile weights;
    const auto add = [&](const Parameter& what, const std::vector<float>& values) {
      const auto extents = what.shape.extents();
      weights.tensors.push_back({what.name, Dtype::f32, {extents.begin(), extents.end()}, {}});
      weights.tensors.back().bytes = bytes_of(values);
    };
    for (std::size_t i = 0; i < graph.parameters().size(); ++i)
      add(graph.parameters()[i], input.parameters[i]);
    for (std::size_t i = 0; i < graph.states().size(); ++i) add(graph.states()[i], input.states[i]);
    write_safetensors(folder.path() / "w.safetensors", weights);

    const Shape& shape = graph.node(graph.input()).shape;
    write_npy(folder.path() / "x.npy", {Dtype::f32,
                                        {images, shape.channels(), shape.height(), shape.width()},
                                        bytes_of(input.images)});
    write_npy(folder.path() / "y.npy", {Dtype::i32, {images}, bytes_of(input.labels)});
  }

  template <class T>
  static std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }

  std::string at(const char* name) const { return (folder.path() / name).string(); }

  Json run(std::vector<std::string> arguments) const {
    for (const std::string& more :
         {std::string("--model"), std::string(GetParam()), std::string("--weights"),
          at("w.safetensors"), std::string("--data"), "npy:" + at("x.npy") + "," + at("y.npy"),
          std::string("--classes"), std::to_string(graph.classes()), std::string("--batch"),
          std::string("3"), std::string("--json"), at("result.json")})
      arguments.push_back(more);
    const ProgramRun done = run_regatta(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return read_json(at("result.json"));
  }

  std::vector<float> predicted() const {
    run({"predict", "--out", at("logits.npy")});
    const NpyArray array = read_npy(at("logits.npy"));
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{images, graph.classes()}));
    std::vector<float> logits(array.bytes.size() / sizeof(float));
    std::memcpy(logits.data(), array.bytes.data(), array.bytes.size());
    return logits;
  }

  const Graph graph =
      build_model(GetParam(), std::string(GetParam()) == "resnet18"
                                  ? ModelOptions{.input = Shape{3, 32, 32}, .classes = 10}
                                  : ModelOptions{});
  const ReferenceInput<float> input;
  const TemporaryFolder folder;
};

TEST_P(Prediction, IsThatOfTheReferenceKernels) {
  const std::vector<float> logits = predicted();
  const std::vector<float> truth =
      reference_run(graph, input, Pass::evaluate).values[graph.logits().value];
  ASSERT_EQ(logits.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(logits[i], truth[i], 1e-4) << i;
}

TEST_P(Prediction, GivesTheAccuracyThatEvalTells) {
  const std::vector<float> logits = predicted();
  const auto classes = static_cast<std::ptrdiff_t>(graph.classes());
  double correct = 0;
  for (std::ptrdiff_t i = 0; i < images; ++i) {
    const auto row = logits.begin() + i * classes;
    const auto choice = std::max_element(row, row + classes) - row;
    correct += choice == input.labels[static_cast<std::size_t>(i)];
  }
  const Json evaluated = run({"eval"});
  EXPECT_EQ(evaluated.at("accuracy"), correct / images);
  EXPECT_EQ(evaluated.at("samples"), images);
  EXPECT_NEAR(evaluated.at("loss"), reference_run(graph, input, Pass::evaluate).loss, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, Prediction, testing::Values("tiny", "lenet5", "resnet18"),
                         [](const auto& each) { return std::string(each.param); });

class TrainCommand : public testing::Test {
 protected:
  const TemporaryFolder folder;

  std::string at(const char* name) const { return (folder.path() / name).string(); }
  const std::vector<std::string> basic{
      "train", "--model",  "tiny", "--data", "synth:1x8x8/3@20", "--batch",
      "8",     "--epochs", "2",    "--out",  at("run")};
  ProgramRun with(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = basic;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_regatta(arguments);
  }
};

TEST_F(TrainCommand, TellsWhatItDid) {
  const ProgramRun run = with({});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("images/s"));
  EXPECT_THAT(run.out, HasSubstr("run folder " + at("run")));
  EXPECT_THAT(run.err, HasSubstr("epoch 2: train loss"));
}

// Both may lie in the run folder, which is not there yet when the flags are read.
TEST_F(TrainCommand, ItsResultsMayGoIntoTheRunFolder) {
  const std::string json = at("run") + "/result.json";
  const ProgramRun run =
      with({"--json", json, "--save-gradients", at("run") + "/gradients.safetensors"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = read_json(json);
  EXPECT_EQ(result.at("steps").size(), 6u);
  EXPECT_EQ(result.at("epochs").size(), 2u);
  EXPECT_EQ(result.at("run"), at("run"));
  for (const char* key : {"images_per_s", "peak_memory_bytes", "buffer_bytes", "tasks_per_step"})
    EXPECT_GT(result.at(key), 0) << key;
  EXPECT_EQ(read_safetensors(at("run") + "/gradients.safetensors").tensors.size(), 4u);
}

TEST_F(TrainCommand, EvaluatesToWhatItsLastEpochTold) {
  ASSERT_EQ(with({"--json", at("trained.json")}).code, 0);
  ASSERT_EQ(run_regatta({"eval", "--run", at("run"), "--json", at("evaluated.json")}).code, 0);
  const Json last = read_json(at("trained.json")).at("epochs").back();
  const Json evaluated = read_json(at("evaluated.json"));
  EXPECT_EQ(evaluated.at("accuracy"), last.at("test_accuracy"));
  EXPECT_NEAR(evaluated.at("loss"), last.at("test_loss"), 1e-6);
}

TEST_F(TrainCommand, StartsFromTheWeightsItIsGiven) {
  ASSERT_EQ(with({}).code, 0);
  const std::string weights = at("run") + "/checkpoints/step-6/model.safetensors";
  // With a learning rate of zero they stay as they are.
  ASSERT_EQ(run_regatta({"train", "--model", "tiny", "--data", "synth:1x8x8/3@20", "--batch", "8",
                         "--steps", "1", "--lr", "0", "--init", weights, "--out", at("again")})
                .code,
            0);
  EXPECT_EQ(read_file(at("again") + "/checkpoints/step-1/model.safetensors"), read_file(weights));
}

}  // namespace
}  // namespace regatta
