#include "train/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/npy.h"
#include "support/error_text.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

JobOptions options_for(const std::string& data) {
  JobOptions options;
  options.model = "tiny";
  options.data = data;
  options.batch = 2;
  return options;
}

// Four training images of three classes and two test images, as npy files.
class DataFiles : public testing::Test {
 protected:
  DataFiles() {
    for (const auto& [name, count] : {std::pair{"train", 4}, {"test", 2}}) {
      const auto samples = static_cast<std::size_t>(count);
      write_npy(at(name) + "-x.npy", {Dtype::u8, {count, 8, 8}, std::string(samples * 64, '\x01')});
      write_npy(at(name) + "-y.npy", {Dtype::u8, {count}, std::string(samples, '\x02')});
    }
  }
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }
  std::string pair(const std::string& name) const {
    return at(name) + "-x.npy," + at(name) + "-y.npy";
  }

  const TemporaryFolder folder;
};

TEST_F(DataFiles, AreTestedOnTheirOwnTestSplit) {
  const TrainJob job = make_job(options_for("npy:" + pair("train") + "," + pair("test")));
  ASSERT_TRUE(job.test);
  EXPECT_EQ(job.test->info().count, 2);
}

TEST_F(DataFiles, AreNotTestedOnTheTrainingData) {
  EXPECT_FALSE(make_job(options_for("npy:" + pair("train"))).test);
}

TEST_F(DataFiles, AreTestedOnWhatIsAskedFor) {
  JobOptions options = options_for("npy:" + pair("train"));
  options.test = "npy:" + pair("test");
  EXPECT_EQ(make_job(options).test->info().count, 2);
}

// The size in which a model's images are made up.
Shape made_up(const std::string& model, const std::string& data,
              const std::optional<Shape>& input = {}, const std::string& augment = "") {
  JobOptions options = options_for(data);
  options.model = model;
  options.input = input;
  options.augment = augment;
  const TrainJob job = make_job(options);
  EXPECT_EQ(job.data->info().sample, job.recipe.input);
  EXPECT_EQ(job.test->info().sample, job.recipe.input);
  return job.recipe.input;
}

TEST(MadeUpImages, HaveTheSizeThatIsAskedForOrSuitsTheModel) {
  EXPECT_EQ(made_up("inception_v3", "imagenet-synth"), (Shape{3, 299, 299}));
  EXPECT_EQ(made_up("resnet18", "imagenet-synth"), (Shape{3, 224, 224}));
  EXPECT_EQ(made_up("resnet18", "imagenet-synth", Shape{3, 64, 64}), (Shape{3, 64, 64}));
  EXPECT_EQ(made_up("resnet18", "cifar10-synth"), (Shape{3, 32, 32}));
  EXPECT_EQ(made_up("tiny", "cifar10-synth", Shape{1, 8, 8}), (Shape{1, 8, 8}));
  EXPECT_EQ(made_up("resnet18", "imagenet-synth", {}, "resize-crop:48"), (Shape{3, 48, 48}));
  // Too small for the model.
  EXPECT_EQ(made_up("inception_v3", "cifar10-synth"), (Shape{3, 299, 299}));
}

TEST(MadeUpImages, OfASizeOfTheUsersOwnAreNotChanged) {
  JobOptions options = options_for("synth:1x8x8/3@20");
  options.input = Shape{1, 9, 9};
  EXPECT_THAT(error_text([&] { make_job(options); }), HasSubstr("1x8x8"));
}

TEST(TrainJob, TakesShapeAndClassesFromTheData) {
  const TrainJob job = make_job(options_for("synth:3x9x7/5@20"));
  EXPECT_EQ(job.recipe.input, (Shape{3, 9, 7}));
  EXPECT_EQ(job.recipe.classes, 5);
  EXPECT_EQ(job.graph.classes(), 5);
}

TEST(TrainJob, MayHaveMoreClassesThanTheData) {
  JobOptions options = options_for("synth:1x8x8/3@20");
  options.classes = 7;
  EXPECT_EQ(make_job(options).graph.classes(), 7);
  options.classes = 2;
  EXPECT_THAT(error_text([&] { make_job(options); }), HasSubstr("use --classes 3"));
}

TEST(TrainJob, DeclinesATestByName) {
  JobOptions options = options_for("synth:1x8x8/3@20");
  EXPECT_TRUE(make_job(options).test);
  options.test = "none";
  EXPECT_FALSE(make_job(options).test);
}

TEST(DefaultWorkers, AreWhatStarPuIsToldElsewhere) {
  const ScopedVariable workers("STARPU_NCPU", "3");
  EXPECT_EQ(default_workers(), 3);
}

TEST(DefaultWorkers, AreTheCpusWhereNobodySays) {
  const ScopedVariable workers("STARPU_NCPU", "0");
  EXPECT_GE(default_workers(), 1);
}

}  // namespace
}  // namespace regatta
