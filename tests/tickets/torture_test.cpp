// Four workers of a search are killed, stopped and started again at random moments: every job ends
// once in the results, with the bits of a search that was left in peace. A few kills here; "make
// torture" does 200.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "support/program_process.h"
#include "support/temporary_folder.h"
#include "tickets/folder.h"

namespace regatta::tickets {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::stoi(text) : otherwise;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// What every job came to, without clocks and names of workers.
std::map<std::string, Json> outcomes_of(const fs::path& search) {
  DiskLayer files;
  SearchFolder folder(files, search);
  folder.refresh();
  std::map<std::string, Json> outcomes;
  for (std::size_t job = 0; job < folder.jobs().size(); ++job)
    if (folder.state(job).done())
      outcomes[folder.jobs()[job].id] = folder.state(job).last().body.at("outcome");
  return outcomes;
}

class TicketTorture : public testing::Test {
 protected:
  // Dense, then two levels at two reset points with both controls: 12 jobs.
  std::vector<std::string> search_into(const fs::path& into) const {
    return words(
        "tickets search --model tiny --data synth:1x12x12/3@40 --test synth:1x12x12/3@16 --batch 8 "
        "--optimizer adamw --lr 0.01 --levels 2 --rate 0.5 --resets 0,3 --epochs 2 --lease 2s "
        "--checkpoint-every 3 --deterministic --workers 1 --out " +
        into.string());
  }

  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); }

  bool over(const fs::path& search) const { return outcomes_of(search).size() == jobs; }

  std::unique_ptr<ProgramProcess> worker(const fs::path& search) const {
    return std::make_unique<ProgramProcess>(
        words("tickets work " + search.string() + " --workers 1"), said);
  }

  void disturb(std::unique_ptr<ProgramProcess>& process, const fs::path& search) {
    if (process->ended()) {
      process = worker(search);
      return;
    }
    switch (draw(0, 3)) {
      case 0:
      case 1:
        process->signal(SIGKILL);
        process->wait();
        ++killed;
        process = worker(search);
        break;
      case 2:  // longer than the lease: its job is taken over while it sleeps
        process->signal(SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(draw(100, 2500)));
        process->signal(SIGCONT);
        ++stopped;
        break;
      default:
        process->signal(SIGTERM);
        process->wait();
        ++asked;
        process = worker(search);
    }
  }

  const int disturbances = from_environment("REGATTA_TORTURE", 4);
  const unsigned seed = static_cast<unsigned>(
      from_environment("REGATTA_TORTURE_SEED",
                       disturbances > 4 ? static_cast<int>(std::random_device{}() >> 1) : 1));
  std::mt19937 random{seed};
  std::size_t jobs = 0;
  int killed = 0, stopped = 0, asked = 0, searches = 0;
  const TemporaryFolder folder;
  const fs::path said = folder.path() / "said";
};

TEST_F(TicketTorture, EveryJobEndsOnceAndAsIfNothingHadHappened) {
  std::printf("seed %u\n", seed);
  const fs::path straight = folder.path() / "straight", search = folder.path() / "search";
  ASSERT_EQ(ProgramProcess(search_into(straight), said).wait(), 0) << read_file(said);
  const std::map<std::string, Json> expected = outcomes_of(straight);
  jobs = expected.size();
  ASSERT_EQ(jobs, 12u);

  while (killed + stopped + asked < disturbances) {
    std::vector<std::string> make = search_into(search);
    make.emplace_back("--no-work");
    ASSERT_EQ(ProgramProcess(make, said).wait(), 0) << read_file(said);
    std::array<std::unique_ptr<ProgramProcess>, 4> workers;
    for (auto& each : workers) each = worker(search);
    while (!over(search) && killed + stopped + asked < disturbances) {
      std::this_thread::sleep_for(std::chrono::milliseconds(draw(0, 1500)));
      disturb(workers[static_cast<std::size_t>(draw(0, 3))], search);
    }
    for (auto& each : workers) EXPECT_EQ(each->wait(), 0) << read_file(said);
    EXPECT_EQ(outcomes_of(search), expected);
    if (HasFailure()) return;
    ++searches;
    fs::remove_all(search);
  }
  std::printf(
      "%d killed, %d stopped for a while, %d asked to end, in %d searches of %zu jobs: all "
      "ended alike\n",
      killed, stopped, asked, searches, jobs);
}

}  // namespace
}  // namespace regatta::tickets
