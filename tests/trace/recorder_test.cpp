#include "trace/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"
#include "trace/analysis.h"

namespace regatta::trace {
namespace {

Piece piece_of(Recorder& recorder, std::int64_t step, int tasks, Time start) {
  Piece piece;
  const std::int64_t first = recorder.first_id(static_cast<std::size_t>(tasks));
  for (int t = 0; t < tasks; ++t) {
    Task task;
    task.id = first + t;
    task.kind = 0;
    task.worker = 0;
    task.step = step;
    task.submit = start;
    task.start = start + 10 * t + 2;
    task.end = start + 10 * t + 9;
    if (task.id > 0) piece.dependencies.push_back({task.id, task.id - 1});
    piece.tasks.push_back(task);
  }
  return piece;
}

void introduce(Recorder& recorder) {
  EXPECT_EQ(recorder.add(Worker{"cpu 0", "cpu", "here", "cpu"}), 0);
  EXPECT_EQ(recorder.add(TaskKind{.job = "train", .phases = "forward", .group = "cpu"}), 0);
}

// Bytes of the store that is being written.
std::uintmax_t bytes_so_far(const std::filesystem::path& file) {
  std::uintmax_t bytes = 0;  // of the store and its journal
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path()))
    if (is_unfinished(entry.path())) bytes += entry.file_size();
  EXPECT_GT(bytes, 0u) << "nothing is being written beside " << file;
  return bytes;
}

TEST(Recorder, WantsTheWindowAndWhatMayRunInsideIt) {
  const TemporaryFolder folder;
  Recorder recorder(
      {.file = folder.path() / store_name, .first_step = 3, .last_step = 5, .steps_in_flight = 2});
  EXPECT_FALSE(recorder.wants(2));
  EXPECT_FALSE(recorder.wants(0));
  EXPECT_TRUE(recorder.wants(3));
  EXPECT_TRUE(recorder.wants(0));
  EXPECT_TRUE(recorder.wants(5));
  EXPECT_TRUE(recorder.wants(6));  // its tasks run before step 5 has ended
  EXPECT_FALSE(recorder.wants(7));
}

TEST(Recorder, ReadyIsWhenTheLastDependencyEnded) {
  const TemporaryFolder folder;
  const auto file = folder.path() / store_name;
  Recorder recorder({.file = file});
  introduce(recorder);
  EXPECT_TRUE(recorder.wants(1));
  recorder.take(piece_of(recorder, 1, 3, 100));
  recorder.take(piece_of(recorder, 2, 2, 105));  // submitted while the first was at work
  recorder.take(Mark{"step", 1, 130});
  recorder.finish();
  const Record record = read_store(file);
  ASSERT_EQ(record.tasks.size(), 5u);
  EXPECT_EQ(record.tasks[0].ready, 100);
  EXPECT_EQ(record.tasks[1].ready, 109);
  // Never after its start, whatever clocks say.
  EXPECT_EQ(record.tasks[3].ready, record.tasks[3].start);
  EXPECT_EQ(record.metadata.at(first_step_key), "1");
  EXPECT_EQ(record.metadata.at(last_step_key), "1");
}

// Memory is bounded: rows go to the file while others come.
TEST(Recorder, RowsThatMemoryIsTooSmallForReachTheStoreWhole) {
  const TemporaryFolder folder;
  const auto file = folder.path() / store_name;
  Recorder recorder({.file = file, .most_kept = std::size_t{4} << 20});
  introduce(recorder);
  constexpr int steps = 600, tasks = 400;
  for (int step = 1; step <= steps; ++step) {
    EXPECT_TRUE(recorder.wants(step));
    recorder.take(piece_of(recorder, step, tasks, 5000 * step));
  }
  // SQLite keeps a few megabytes, the rest is there.
  EXPECT_GT(bytes_so_far(file), 1'000'000u);
  EXPECT_EQ(recorder.number_of({"conv1", "conv", "forward"}), 0);
  EXPECT_EQ(recorder.number_of({"conv2", "conv", "forward"}), 1);
  EXPECT_EQ(recorder.number_of({"conv1", "conv", "forward"}), 0);
  recorder.finish();
  EXPECT_EQ(query(file, "SELECT count(*) FROM tasks")[1][0], std::to_string(steps * tasks));
  EXPECT_EQ(query(file, "SELECT count(*) FROM dependencies")[1][0],
            std::to_string(steps * tasks - 1));
  EXPECT_EQ(query(file, "SELECT count(*) FROM operator_kinds")[1][0], "2");
  EXPECT_EQ(query(file, "SELECT count(*) FROM tasks WHERE ready_ns > start_ns")[1][0], "0");
}

TEST(Recorder, NothingIsWrittenBeforeTheEndWhileThereIsMemory) {
  const TemporaryFolder folder;
  const auto file = folder.path() / store_name;
  Recorder recorder({.file = file});
  introduce(recorder);
  const auto bytes_before = bytes_so_far(file);
  for (int step = 1; step <= 200; ++step) recorder.take(piece_of(recorder, step, 400, 5000 * step));
  EXPECT_EQ(bytes_so_far(file), bytes_before);
  recorder.finish();
  EXPECT_EQ(query(file, "SELECT count(*) FROM tasks")[1][0], "80000");
}

TEST(Recorder, WithoutFinishNothingStays) {
  const TemporaryFolder folder;
  {
    Recorder recorder({.file = folder.path() / store_name});
    introduce(recorder);
    recorder.take(piece_of(recorder, 1, 3, 0));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace regatta::trace
