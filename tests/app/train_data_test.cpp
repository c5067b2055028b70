// Training on data that is decoded, augmented, prepared or partly broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "support/images.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TrainData : public testing::Test {
 protected:
  TrainData() { write_image_folder(images, 3, 4, 20, 20); }

  // The --json result of a short run, into RUN.
  Json train(const std::string& run, const std::string& data, std::vector<std::string> flags = {},
             const std::string& test = "none") {
    std::vector<std::string> all{"train",
                                 "--model",
                                 "tiny",
                                 "--data",
                                 data,
                                 "--batch",
                                 "6",
                                 "--steps",
                                 "5",
                                 "--test",
                                 test,
                                 "--seed",
                                 "3",
                                 "--out",
                                 (folder.path() / run).string(),
                                 "--json",
                                 (folder.path() / (run + ".json")).string(),
                                 "--workers",
                                 "2",
                                 "--deterministic"};
    all.insert(all.end(), flags.begin(), flags.end());
    last = run_regatta(all);
    EXPECT_EQ(last.code, 0) << last.err;
    return last.code == 0 ? read_json(folder.path() / (run + ".json")) : Json();
  }
  static std::vector<double> losses(const Json& result) {
    std::vector<double> found;
    for (const Json& step : result.at("steps")) found.push_back(step.at("loss"));
    return found;
  }

  TemporaryFolder folder;
  fs::path images = folder.path() / "images";
  std::string spec = "folder:" + images.string();
  ProgramRun last;
};

TEST_F(TrainData, ShardsTrainAsTheFolderTheyWereMadeOf) {
  const std::string out = (folder.path() / "shards").string();
  ASSERT_EQ(run_regatta({"data", "prepare", spec, "--out", out}).code, 0);
  EXPECT_EQ(losses(train("a", spec)), losses(train("b", "shards:" + out)));
  const std::vector<std::string> augment{"--augment", "crop:2,flip,jitter:0.3"};
  EXPECT_EQ(losses(train("c", spec, augment)), losses(train("d", "shards:" + out, augment)));
}

TEST_F(TrainData, AugmentationDoesNotDependOnTheCut) {
  const auto run = [&](const std::string& name, const char* chunks) {
    return losses(train(name, spec, {"--augment", "resize-crop:16,flip", "--chunks", chunks}));
  };
  const std::vector<double> whole = run("whole", "6"), cut = run("cut", "1,3,2");
  ASSERT_EQ(whole.size(), cut.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], cut[i], 1e-4) << i;
  EXPECT_NE(whole, losses(train("plain", spec, {"--input", "3x16x16"})));
}

TEST_F(TrainData, AResumedRunDrawsTheSame) {
  const std::vector<std::string> augment{"--augment", "crop:2,flip"};
  const std::vector<double> whole = losses(train("whole", spec, augment));
  std::vector<std::string> short_run = augment;
  short_run.insert(short_run.end(), {"--checkpoint-every", "3"});
  train("parts", spec, short_run);
  fs::remove_all(folder.path() / "parts" / "checkpoints" / "step-5");
  const fs::path file = folder.path() / "resumed.json";
  const ProgramRun resumed = run_regatta(
      {"train", "--resume", (folder.path() / "parts").string(), "--json", file.string()});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const std::vector<double> rest = losses(read_json(file));
  ASSERT_GE(rest.size(), 1u);
  EXPECT_EQ(rest, std::vector<double>(whole.end() - std::ssize(rest), whole.end()));
}

TEST_F(TrainData, ABrokenImageIsNamedAtTheEndOfTheEpoch) {
  const fs::path bad = images / "train" / "class1" / "1002.jpg";
  std::ofstream(bad) << "no image";
  const Json result = train("skipping", spec);
  EXPECT_EQ(result.at("skipped").at("count"), 1);
  EXPECT_THAT(result.at("skipped").at("first").at(0).get<std::string>(), HasSubstr(bad.string()));
  EXPECT_THAT(last.err, AllOf(HasSubstr("1 sample could not be read"), HasSubstr(bad.string())));
  const ProgramRun strict =
      run_regatta({"train", "--model", "tiny", "--data", spec, "--batch", "6", "--test", "none",
                   "--strict", "--out", (folder.path() / "strict").string()});
  EXPECT_EQ(strict.code, 2);
  EXPECT_THAT(strict.err, AllOf(HasSubstr(bad.string()), HasSubstr("neither a JPEG nor a PNG")));
}

TEST_F(TrainData, ABrokenTestImageIsNamedInTrainingAndEvaluation) {
  const fs::path bad = images / "test" / "class2" / "1001.jpg";
  ASSERT_TRUE(fs::exists(bad));
  std::ofstream(bad) << "no image";
  const auto told = AllOf(HasSubstr("1 test sample could not be read"), HasSubstr(bad.string()));
  const Json result = train("run", spec, {}, spec);
  EXPECT_EQ(result.at("skipped").at("count"), 0);
  EXPECT_EQ(result.at("test_skipped").at("count"), 1);
  EXPECT_THAT(last.err, told);

  const std::string run = (folder.path() / "run").string();
  const fs::path file = folder.path() / "eval.json";
  const ProgramRun found = run_regatta({"eval", run, "--json", file.string()});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.err, AllOf(HasSubstr("1 sample could not be read"), HasSubstr(bad.string())));
  EXPECT_EQ(read_json(file).at("skipped").at("count"), 1);

  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"eval", run, "--strict"},
        {"predict", run, "--strict", "--out", (folder.path() / "logits.npy").string()}}) {
    const ProgramRun strict = run_regatta(command);
    EXPECT_EQ(strict.code, 2);
    EXPECT_THAT(strict.err, AllOf(HasSubstr(bad.string()), HasSubstr("neither a JPEG nor a PNG")));
  }
}

TEST_F(TrainData, TheBestCheckpointCanBeEvaluated) {
  train("run", spec);
  const std::string run = (folder.path() / "run").string();
  EXPECT_EQ(run_regatta({"eval", run, "--best"}).code, 0);
  fs::remove_all(folder.path() / "run" / "checkpoints" / "best");
  EXPECT_THAT(run_regatta({"eval", run, "--best"}).err, HasSubstr("has no best checkpoint"));
}

TEST_F(TrainData, TheLoadersShareIsInTheMetrics) {
  const Json result = train("shares", spec);
  EXPECT_GT(result.at("epochs").at(0).at("loader_share"), 0);
  EXPECT_GT(result.at("loader_share"), 0);
  const Json loading = result.at("loading");
  EXPECT_GT(loading.at("seconds"), 0);
  EXPECT_GT(loading.at("decoding"), 0) << "JPEG files";
  EXPECT_NEAR(loading.at("reading").get<double>() + loading.at("decoding").get<double>() +
                  loading.at("transforms").get<double>() + loading.at("wire").get<double>() +
                  loading.at("other").get<double>(),
              1, 1e-9);
  EXPECT_GE(result.at("data_wait"), 0);
  EXPECT_THAT(last.out, HasSubstr("% of the workers' time for loading"));
  std::ifstream metrics(folder.path() / "shares" / "metrics.jsonl");
  std::string line;
  std::getline(metrics, line);
  EXPECT_TRUE(Json::parse(line).contains("loader_share")) << line;
  EXPECT_TRUE(Json::parse(line).contains("data_wait")) << line;
}

TEST_F(TrainData, NormalisationMayBeGiven) {
  const Json own = train("own", spec, {"--normalise", "0.5,0.5,0.5:0.25,0.25,0.25"});
  EXPECT_NE(losses(own), losses(train("default", spec)));
  const ProgramRun wrong = run_regatta(
      {"train", "--model", "tiny", "--data", spec, "--normalise", "1:1", "--test", "none"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("normalisation '1:1'"));
}

}  // namespace
}  // namespace regatta
