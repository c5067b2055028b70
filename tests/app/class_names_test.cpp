// Classes by name, data that moved, and predictions for people, through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/json.h"
#include "data/npy.h"
#include "support/images.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClassNames : public testing::Test {
 protected:
  ClassNames() { write_image_folder(images, 3, 8, 12, 12); }

  std::string at(const std::string& name) const { return (folder.path() / name).string(); }

  ProgramRun train(const std::string& run, std::vector<std::string> flags) {
    std::vector<std::string> all{"train",     "--model", "tiny",   "--batch",    "6",
                                 "--workers", "2",       "--seed", "3",          "--granularity",
                                 "fixed",     "--out",   at(run),  "--no-refine"};
    all.insert(all.end(), flags.begin(), flags.end());
    return run_regatta(all);
  }
  void train_run() {
    const ProgramRun done = train("run", {"--data", spec, "--epochs", "2"});
    ASSERT_EQ(done.code, 0) << done.err;
  }
  Json json_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", at("result.json")});
    const ProgramRun done = run_regatta(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.code == 0 ? read_json(at("result.json")) : Json();
  }
  // The test images of these classes alone, under the names they get.
  std::string part(const std::string& name,
                   const std::vector<std::pair<std::string, std::string>>& classes) {
    for (const auto& [from, to] : classes) {
      fs::create_directories(folder.path() / name);
      fs::copy(images / "test" / from, folder.path() / name / to, fs::copy_options::recursive);
    }
    return "folder:" + at(name);
  }

  TemporaryFolder folder;
  fs::path images = folder.path() / "images";
  std::string spec = "folder:" + images.string();
};

TEST_F(ClassNames, AreKeptByRunCheckpointAndExport) {
  train_run();
  const Json names{"class0", "class1", "class2"};
  EXPECT_EQ(read_json(at("run/run.json")).at("class_names"), names);
  ASSERT_EQ(run_regatta({"models", at("run"), "--export", at("net.onnx")}).code, 0);
  EXPECT_THAT(read_file(at("net.onnx")), HasSubstr(names.dump()));
  // The file alone tells them to eval.
  const Json result = json_of({"eval", "--model", at("net.onnx"), "--data",
                               part("two", {{"class1", "class1"}, {"class2", "class2"}})});
  EXPECT_EQ(result.at("per_class")[2].at("name"), "class2");
  EXPECT_EQ(result["per_class"][2].at("count"), 8);
}

TEST_F(ClassNames, DecideWhatEvalComparesWith) {
  train_run();
  const Json whole = json_of({"eval", at("run")});
  const Json two = json_of(
      {"eval", at("run"), "--data", part("two", {{"class1", "class1"}, {"class2", "class2"}})});
  EXPECT_EQ(two.at("samples"), 16);
  for (const int label : {1, 2}) {
    EXPECT_EQ(two.at("per_class")[label], whole.at("per_class")[label]);
    EXPECT_EQ(two.at("confusion")[label], whole.at("confusion")[label]);
  }
  EXPECT_EQ(two["per_class"][0].at("count"), 0);
}

TEST_F(ClassNames, OfShardsDecideToo) {
  train_run();
  const std::string two = part("two", {{"class1", "class1"}, {"class2", "class2"}});
  ASSERT_EQ(run_regatta({"data", "prepare", two, "--out", at("shards")}).code, 0);
  const Json of_images = json_of({"eval", at("run"), "--data", two});
  const Json of_shards = json_of({"eval", at("run"), "--data", "shards:" + at("shards")});
  EXPECT_EQ(of_shards.at("samples"), 16);
  EXPECT_EQ(of_shards.at("per_class"), of_images.at("per_class"));
}

TEST_F(ClassNames, DecideWhatPredictCountsAsRight) {
  train_run();
  // Under their own names the images are right as often as eval says; exchanged, as often as not.
  const std::string two = part("two", {{"class1", "class1"}, {"class2", "class2"}});
  const std::string exchanged = part("exchanged", {{"class1", "class2"}, {"class2", "class1"}});
  double right = 0;
  for (const std::string& data : {two, exchanged}) {
    const Json predicted =
        json_of({"predict", "--run", at("run"), "--data", data, "--csv", at("p.csv")});
    EXPECT_EQ(predicted.at("accuracy"), json_of({"eval", at("run"), "--data", data})["accuracy"]);
    EXPECT_EQ(predicted.at("predictions").size(), 16u);
    right += predicted.at("accuracy").get<double>();
  }
  const Json whole = json_of({"eval", at("run")});
  double taken_for_either = 0;
  for (const int label : {1, 2})
    for (const int answer : {1, 2})
      taken_for_either += whole.at("confusion")[label][answer].get<double>();
  EXPECT_NEAR(right, taken_for_either / 16, 1e-9);
}

TEST_F(ClassNames, ThatTheRunDoesNotKnowAreRefused) {
  train_run();
  const ProgramRun refused = run_regatta(
      {"eval", at("run"), "--data", part("odd", {{"class1", "class1"}, {"class2", "zebra"}})});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("'zebra'"), HasSubstr("lacks the network's 'class0'")));
}

TEST_F(ClassNames, OfWeightsDecideWhatTrainingStartsFrom) {
  train_run();
  const std::string weights = at("run/checkpoints/best/model.safetensors");
  const std::string two = part("two", {{"class1", "class1"}, {"class2", "class2"}});
  const ProgramRun some =
      train("some", {"--data", two, "--init", weights, "--steps", "2", "--test", "none"});
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_EQ(read_json(at("some/run.json")).at("class_names").size(), 3u);

  const std::string other =
      part("other", {{"class0", "ant"}, {"class1", "bee"}, {"class2", "cow"}});
  const std::vector<std::string> flags{"--data", other, "--init", weights, "--steps", "2"};
  const ProgramRun refused = train("refused", flags);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("'ant', 'bee', 'cow'"));
  std::vector<std::string> anew = flags;
  anew.push_back("--new-classes");
  const ProgramRun begun = train("anew", anew);
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_EQ(read_json(at("anew/run.json")).at("class_names")[0], "ant");
}

TEST_F(ClassNames, AResumedRunFindsItsDataWhereItMoved) {
  train_run();
  const Json before = read_json(at("run/run.json"));
  EXPECT_EQ(before.at("test"), spec);
  fs::rename(images, folder.path() / "moved");
  EXPECT_THAT(run_regatta({"train", "--resume", at("run"), "--epochs", "3"}).err,
              HasSubstr("if the data moved, --data says where to"));
  const ProgramRun resumed = run_regatta(
      {"train", "--resume", at("run"), "--epochs", "3", "--data", "folder:" + at("moved")});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const Json after = read_json(at("run/run.json"));
  EXPECT_EQ(after.at("recipe").at("data"), "folder:" + at("moved"));
  EXPECT_EQ(after.at("test"), "folder:" + at("moved"));
  EXPECT_EQ(after.at("plan").at("recipe"), before.at("plan").at("recipe"));
  // The run goes on again without the flag.
  EXPECT_EQ(run_regatta({"train", "--resume", at("run"), "--epochs", "4"}).code, 0);
}

TEST_F(ClassNames, AResumedRunRefusesOtherDataAndSaysWhatDiffers) {
  train_run();
  const auto refusal = [&](const std::string& data) {
    const ProgramRun run =
        run_regatta({"train", "--resume", at("run"), "--epochs", "3", "--data", data});
    EXPECT_EQ(run.code, 2) << data;
    return run.err;
  };
  const fs::path other = folder.path() / "other";
  fs::copy(images, other, fs::copy_options::recursive);
  fs::rename(other / "train" / "class1" / "1003.jpg", other / "train" / "class1" / "x.jpg");
  EXPECT_THAT(refusal("folder:" + other.string()),
              AllOf(HasSubstr("other file names"), Not(HasSubstr("samples"))));
  fs::remove(other / "train" / "class1" / "x.jpg");
  EXPECT_THAT(refusal("folder:" + other.string()), HasSubstr("samples 23 instead of 24"));
  EXPECT_THAT(refusal("synth:3x12x12/3@24"), HasSubstr("of another kind than " + spec));
}

TEST_F(ClassNames, ARunRemembersItsDataByAbsolutePath) {
  const fs::path here = fs::current_path();
  fs::current_path(folder.path());
  const ProgramRun done = train("run", {"--data", "folder:images/", "--steps", "2"});
  fs::current_path(here);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(read_json(at("run/run.json")).at("recipe").at("data"),
            "folder:" + fs::canonical(images).string());
  EXPECT_EQ(run_regatta({"eval", at("run")}).code, 0);
}

TEST_F(ClassNames, NeedNotBeUtf8) {
  for (const char* split : {"train", "test"})
    fs::rename(images / split / "class1", images / split / "caf\xe9");
  train_run();
  EXPECT_EQ(json_of({"eval", at("run")}).at("per_class")[0].at("name"), "caf\uFFFD");
}

// A run keeps the path of its data, unlike names of classes, as it is or not at all.
TEST_F(ClassNames, PathsOfDataMustBeUtf8) {
  const fs::path moved = folder.path() / "caf\xe9";
  fs::rename(images, moved);
  const std::string data = "folder:" + moved.string();
  for (const ProgramRun& refused :
       {train("run", {"--data", data, "--steps", "1"}),
        run_regatta({"data", "prepare", data, "--out", at("shards")})}) {
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("caf\uFFFD' is not UTF-8"));
  }
  // This result is for reading, no command finds the data by it.
  EXPECT_EQ(json_of({"data", "info", data}).at("data"), "folder:" + at("caf\uFFFD"));
  EXPECT_FALSE(fs::exists(at("run")));
}

TEST_F(ClassNames, EvalShowsEachClass) {
  train_run();
  const ProgramRun shown = run_regatta({"eval", at("run")});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("class"), HasSubstr("mostly mistaken for"),
                               HasSubstr("class2"), HasSubstr("answers")));
  const std::string two = part("two", {{"class1", "class1"}, {"class2", "class2"}});
  EXPECT_THAT(run_regatta({"eval", at("run"), "--data", two}).out,
              AllOf(HasSubstr("\nclass1 "), Not(HasSubstr("\nclass0 "))));
  const Json tested = read_json(at("run/test.json")), evaluated = json_of({"eval", at("run")});
  EXPECT_EQ(tested.at("per_class"), evaluated.at("per_class"));
  EXPECT_EQ(tested.at("confusion"), evaluated.at("confusion"));
  EXPECT_EQ(tested.at("step"), 8);
}

TEST_F(ClassNames, PredictNamesTheClassesOfImagesWithTheirProbabilities) {
  train_run();
  const std::string one = (images / "test" / "class1" / "1000.jpg").string();
  const std::string many = (images / "test" / "class2").string();
  std::ofstream(at("broken.jpg")) << "no image";
  const Json result = json_of({"predict", "--run", at("run"), one, at("broken.jpg"), many,
                               at("missing.jpg"), "--top", "3", "--csv", at("p.csv")});
  const Json& predictions = result.at("predictions");
  ASSERT_EQ(predictions.size(), 9u);
  EXPECT_EQ(predictions[0].at("file"), one);
  EXPECT_EQ(predictions[1].at("file"), many + "/1000.jpg");
  double sum = 0, last = 1;
  for (const Json& each : predictions[0].at("top")) {
    const double probability = each.at("probability");
    EXPECT_LE(probability, last);
    EXPECT_EQ(each.at("name"), "class" + each.at("class").dump());
    last = probability;
    sum += probability;
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(result.at("skipped").at("count"), 2);

  const std::string csv = read_file(at("p.csv"));
  EXPECT_TRUE(csv.starts_with("file,rank,class,probability\n" + one + ",1,class"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 28);

  const ProgramRun shown = run_regatta({"predict", "--run", at("run"), one, at("broken.jpg")});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, AllOf(HasSubstr(one), HasSubstr("%"), Not(HasSubstr("broken"))));
  EXPECT_THAT(shown.err, HasSubstr(at("broken.jpg") + "': it is neither a JPEG nor a PNG"));
}

TEST_F(ClassNames, PredictFailsIfNoImageCanBeRead) {
  train_run();
  std::ofstream(at("broken.jpg")) << "no image";
  ASSERT_EQ(::mkfifo(at("fifo.jpg").c_str(), 0600), 0);
  const ProgramRun failed =
      run_regatta({"predict", "--run", at("run"), at("broken.jpg"), at("fifo.jpg")});
  EXPECT_EQ(failed.code, 2);
  EXPECT_THAT(failed.err, AllOf(HasSubstr(at("broken.jpg")), HasSubstr(at("fifo.jpg")),
                                HasSubstr("none of the images")));
}

TEST_F(ClassNames, PredictSeesImagesAsEvaluationDoes) {
  train_run();
  ASSERT_EQ(
      run_regatta({"predict", "--run", at("run"), "--data", spec, "--out", at("data.npy")}).code,
      0);
  ASSERT_EQ(run_regatta({"predict", "--run", at("run"), (images / "test").string(), "--out",
                         at("files.npy")})
                .code,
            0);
  EXPECT_EQ(read_npy(at("data.npy")).bytes, read_npy(at("files.npy")).bytes);
}

}  // namespace
}  // namespace regatta
