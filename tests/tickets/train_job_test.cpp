// What a worker takes over from another, and when a run counts as finished.
#include "tickets/train_job.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/temporary_folder.h"
#include "train/manifest.h"

namespace regatta::tickets {
namespace {

namespace fs = std::filesystem;

class Adoption : public testing::Test {
 protected:
  fs::path run(int claim) const { return claim_folder(folder.path(), "job", claim) / "run"; }

  // A run that stands at `step`.
  void make_run(int claim, std::int64_t step) const {
    const fs::path checkpoint = run(claim) / "checkpoints" / ("step-" + std::to_string(step));
    fs::create_directories(checkpoint);
    write_file(checkpoint / "model.safetensors", "weights " + std::to_string(step));
    write_manifest(checkpoint);
    write_file(run(claim) / "metrics.jsonl", "{\"step\":" + std::to_string(step) + "}\n");
    write_file(run(claim) / "run.json", "{}");
  }

  const TemporaryFolder folder;
};

TEST_F(Adoption, TheNewestClaimWithACheckpointIsTakenOver) {
  make_run(1, 3);
  make_run(2, 7);
  fs::create_directories(run(3));  // its owner died before it had anything
  ASSERT_TRUE(adopt_run(folder.path(), "job", 4));
  EXPECT_EQ(read_file(run(4) / "checkpoints/step-7/model.safetensors"), "weights 7");
  EXPECT_EQ(read_file(run(4) / "run.json"), "{}");
}

TEST_F(Adoption, ADamagedCheckpointIsPassedOver) {
  make_run(1, 3);
  make_run(2, 7);
  write_file(run(2) / "checkpoints/step-7/model.safetensors", "something else");
  ASSERT_TRUE(adopt_run(folder.path(), "job", 3));
  EXPECT_TRUE(fs::exists(run(3) / "checkpoints/step-3"));
}

TEST_F(Adoption, ACopyThatWasNotCompletedIsNotTakenOver) {
  make_run(1, 3);
  make_run(2, 7);
  fs::remove(run(2) / "run.json");
  ASSERT_TRUE(adopt_run(folder.path(), "job", 3));
  EXPECT_TRUE(fs::exists(run(3) / "checkpoints/step-3"));
}

TEST_F(Adoption, KeptCheckpointsComeAlong) {
  make_run(1, 3);
  const fs::path kept = run(1) / "checkpoints/kept-2";
  fs::create_directories(kept);
  write_file(kept / "model.safetensors", "early");
  write_manifest(kept);
  ASSERT_TRUE(adopt_run(folder.path(), "job", 2));
  EXPECT_EQ(read_file(run(2) / "checkpoints/kept-2/model.safetensors"), "early");
}

TEST_F(Adoption, OfNothingThereIsNothing) {
  EXPECT_FALSE(adopt_run(folder.path(), "job", 1));
  EXPECT_FALSE(adopt_run(folder.path(), "job", 5));
}

TEST_F(Adoption, ARunIsFinishedWhenItsLastEpochIsReported) {
  make_run(1, 8);
  EXPECT_EQ(outcome_of(run(1), 9), std::nullopt);
  EXPECT_EQ(outcome_of(run(1), 8), std::nullopt) << "the last test is still due";
  write_file(run(1) / "metrics.jsonl",
             "{\"step\":4}\n{\"epoch\":1,\"test_accuracy\":0.5}\n{\"step\":8}\n"
             "{\"epoch\":2,\"train_loss\":0.1,\"test_accuracy\":0.75}\n");
  const std::optional<Json> outcome = outcome_of(run(1), 8);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->at("test_accuracy"), 0.75);
  EXPECT_EQ(outcome->at("weights"), sha256_hex("weights 8"));
}

}  // namespace
}  // namespace regatta::tickets
