// kill -9 at random moments: a run that is taken up again each time ends with the bits of one that
// was left in peace. A few kills here; "make torture" does 200.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <iterator>
#include <random>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "support/program_process.h"
#include "support/temporary_folder.h"
#include "train/manifest.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::stoi(text) : otherwise;
}

// All lines of metrics.jsonl, without what the clock says.
std::vector<Json> metrics_of(const fs::path& run) {
  std::vector<Json> lines;
  std::istringstream text(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line));
    for (const char* clocked : {"images_per_s", "loader_share", "data_wait", "loading"})
      lines.back().erase(clocked);
    if (lines.back().contains("energy")) lines.pop_back();  // one for each time it went on
  }
  return lines;
}

Arguments words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

struct Tally {
  int kills = 0, runs = 0;
  int before_training = 0, within_a_checkpoint = 0;  // where kills struck
};

class Torture : public testing::Test {
 protected:
  // A recipe with as much to remember as there is.
  Arguments start_of(const fs::path& run) const {
    return words(
        "train --model tiny --data synth:1x12x12/3@40 --batch 4 --accumulate 2 --seed 3 "
        "--optimizer adamw --ema 0.9 --schedule cosine --mixup 0.2 --lr 0.01 --deterministic "
        "--keep 2 --checkpoint-every 1 --steps " +
        std::to_string(steps) + " --out " + run.string());
  }

  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); }

  bool done(const fs::path& run) const {
    return fs::exists(run / "checkpoints" / ("step-" + std::to_string(steps)));
  }

  // Whatever has the name of a checkpoint is whole.
  void expect_whole_checkpoints(const fs::path& run) {
    std::error_code none_yet;
    for (const auto& entry : fs::directory_iterator(run / "checkpoints", none_yet)) {
      if (is_unfinished(entry.path())) {
        ++tally.within_a_checkpoint;
        continue;
      }
      EXPECT_EQ(manifest_fault(entry.path()), std::nullopt) << entry.path();
    }
  }

  // Starts the run or takes it up, and kills it at a random moment, unless it ends before.
  void run_and_kill(const fs::path& run) {
    const bool fresh = !fs::exists(run / "run.json");
    const Arguments resume =
        words("train --resume " + run.string() + " --checkpoint-every " +
              std::to_string(draw(1, 3)) + " --workers " + std::to_string(draw(1, 2)));
    const auto begin = Clock::now();
    ProgramProcess process(fresh ? start_of(run) : resume, said);
    const auto end = begin + std::chrono::milliseconds(draw(0, patience));
    while (Clock::now() < end && !process.ended())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (process.ended()) {
      ASSERT_EQ(process.wait(), 0) << read_file(said);
      if (fresh) patience = static_cast<int>((Clock::now() - begin) / std::chrono::milliseconds(1));
      return;
    }
    process.signal(SIGKILL);
    process.wait();
    ++tally.kills;
    // Runs may have become slower, and must get further than their start.
    patience += patience / 20 + 1;
    if (!fs::exists(run / "metrics.jsonl")) ++tally.before_training;
    expect_whole_checkpoints(run);
  }

  void expect_equal(const fs::path& run, const fs::path& straight) {
    const std::string last = "checkpoints/step-" + std::to_string(steps);
    for (const std::string& file :
         {last + "/model.safetensors", last + "/optimizer.safetensors", last + "/state.json",
          std::string("checkpoints/best/model.safetensors")})
      EXPECT_EQ(read_file(run / file), read_file(straight / file)) << file;
    EXPECT_EQ(metrics_of(run), metrics_of(straight));
  }

  const int kills = from_environment("REGATTA_TORTURE", 4);
  const unsigned seed = static_cast<unsigned>(from_environment(
      "REGATTA_TORTURE_SEED", kills > 4 ? static_cast<int>(std::random_device{}() >> 1) : 1));
  const int steps = kills > 4 ? 24 : 12;
  int patience = 0;  // milliseconds until the latest kill; follows the speed of the machine
  std::mt19937 random{seed};
  Tally tally;
  const TemporaryFolder folder;
  const fs::path said = folder.path() / "said";
};

TEST_F(Torture, EveryRunEndsAsIfItHadNeverBeenKilled) {
  std::printf("seed %u\n", seed);
  const fs::path straight = folder.path() / "straight", run = folder.path() / "run";
  const auto begin = Clock::now();
  ASSERT_EQ(ProgramProcess(start_of(straight), said).wait(), 0) << read_file(said);
  const std::chrono::duration<double, std::milli> peaceful = Clock::now() - begin;
  patience = static_cast<int>(peaceful.count());

  while (tally.kills < kills || fs::exists(run)) {
    if (tally.kills < kills)
      run_and_kill(run);
    else
      ASSERT_EQ(ProgramProcess({"train", "--resume", run}, said).wait(), 0) << read_file(said);
    if (HasFailure()) return;
    if (!done(run)) continue;
    expect_equal(run, straight);
    ++tally.runs;
    fs::remove_all(run);
  }
  std::printf(
      "%d kills in %d runs of %d steps (%d before the first step, %d while a checkpoint was being "
      "written or removed): all ended alike, no checkpoint was unreadable\n",
      tally.kills, tally.runs, steps, tally.before_training, tally.within_a_checkpoint);
}

}  // namespace
}  // namespace regatta
