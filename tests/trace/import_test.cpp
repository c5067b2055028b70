#include "trace/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "support/error_text.h"
#include "support/places.h"
#include "support/temporary_folder.h"
#include "trace/analysis.h"
#include "trace/sqlite.h"
#include "trace/store.h"
#include "trace/toy_run.h"
#include "trace/writers.h"

namespace regatta::trace {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path starpu_trace = test_files() / "tests/trace/data/starpu-1.4-paje.trace";

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_sums(const Record& record) {
  EXPECT_EQ(faults(record), std::vector<std::string>{});
  const Analysis found = analyse(record, whole_window(record));
  for (const WorkerUse& use : found.workers)
    EXPECT_EQ(use.busy + use.idle + use.overhead, found.wall());
  EXPECT_LE(found.bound, found.wall());
}

// Four steps of nine tasks on two workers, recorded by StarPU itself; one task more packs weights.
TEST(ImportPaje, StarPUsOwnTraceHasItsTasks) {
  Record record = import_trace(starpu_trace);
  EXPECT_EQ(record.tasks.size(), 37u);
  ASSERT_EQ(record.workers.size(), 2u);
  EXPECT_EQ(record.workers[0].name, "CPU0");
  std::set<std::string> names;
  for (const TaskKind& kind : record.kinds) names.insert(kind.phases);
  EXPECT_EQ(names, (std::set<std::string>{"forward", "load", "pack", "reduce"}));
  // Milliseconds since StarPU began: 198.920838 to 199.428389.
  EXPECT_EQ(record.tasks[0].start, 198'920'838);
  EXPECT_EQ(record.tasks[0].end, 199'428'389);
  EXPECT_GT(record.tasks[0].acquire, 0);
  EXPECT_LT(record.tasks[0].ready, record.tasks[0].start);
  expect_sums(record);
}

TEST(ImportPaje, OurOwnTraceComesBack) {
  const Record record = toy_run({.seed = 9});
  std::stringstream text;
  write_paje(text, record);
  const Record again = import_paje(text, "own");
  Time before = 0, after = 0;
  for (const Task& task : record.tasks) before += task.duration();
  for (const Task& task : again.tasks) after += task.duration();
  EXPECT_EQ(before, after);
  EXPECT_EQ(again.workers.size(), record.workers.size());
  expect_sums(again);
}

std::string refused(const std::string& text) {
  std::istringstream in(text);
  return error_text([&] { import_paje(in, "x.trace"); });
}

TEST(ImportPaje, WrongFilesAreRefusedInOneLine) {
  EXPECT_THAT(refused(""), HasSubstr("holds no Paje events"));
  EXPECT_THAT(refused("hello world\n"), HasSubstr("line 1: not a Paje trace"));
  EXPECT_THAT(refused("% Time date\n"), HasSubstr("a field outside of an event definition"));
  EXPECT_THAT(refused("%EventDef PajeSetState\n"), HasSubstr("needs a name and a number"));
  EXPECT_THAT(refused(std::string(2'000'000, 'x')), HasSubstr("longer than a line"));
  const std::string header =
      "%EventDef PajeSetState 1\n% Time date\n% Type string\n% Container string\n% Value string\n"
      "%EndEventDef\n";
  EXPECT_THAT(refused(header + "1 0.5 S w\n"), HasSubstr("line 7: PajeSetState needs 4 fields"));
  EXPECT_THAT(refused(header + "1 abc S w a\n"), HasSubstr("'abc' is no time"));
  EXPECT_THAT(refused(header + "1 1e300 S w a\n"), HasSubstr("is no time"));
  EXPECT_THAT(refused(header + "1 -1 S w a\n"), HasSubstr("is no time"));
  EXPECT_THAT(refused(header + "1 5 S w a\n1 4 S w b\n"), HasSubstr("runs backwards"));
  EXPECT_THAT(refused(header + "1 5 S w \"a\n"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(refused(header + "1 5 S w Idle\n"), HasSubstr("has no states of workers"));
}

// Wherever a trace is cut, there is a record or one line, never a crash.
TEST(ImportPaje, ATruncatedTraceIsReadOrRefused) {
  const std::string whole = text_of(starpu_trace);
  int read = 0;
  for (std::size_t size = 0; size < whole.size(); size += 997) {
    std::istringstream in(whole.substr(0, size));
    const std::string error = error_text([&] { expect_sums(import_paje(in, "cut")); });
    read += error == "no error";
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_GT(read, 0);
}

class ProfileFile {
 public:
  explicit ProfileFile(const char* tables) { Database(path(), Database::Access::make).run(tables); }
  fs::path path() const { return folder_.path() / "profile.sqlite"; }

 private:
  TemporaryFolder folder_;
};

// The tables as nvprof and Nsight Systems make them, with the columns that are read and some more.
const char* nvprof_tables = R"sql(
CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT);
INSERT INTO StringTable VALUES (1, 'sgemm'), (2, 'relu');
CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (_id_ INTEGER PRIMARY KEY AUTOINCREMENT,
  registers INT, start INT, end INT, completed INT, deviceId INT, contextId INT, streamId INT,
  correlationId INT, gridId INT, name INT);
INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
  (start, end, deviceId, streamId, correlationId, name) VALUES
  (1600000000000001000, 1600000000000001400, 0, 7, 11, 1),
  (1600000000000001500, 1600000000000001600, 0, 7, 12, 2),
  (1600000000000001100, 1600000000000001300, 0, 9, 13, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, copyKind INT,
  srcKind INT, dstKind INT, flags INT, bytes INT, start INT, end INT, deviceId INT, contextId INT,
  streamId INT, correlationId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (copyKind, bytes, start, end, deviceId, streamId,
  correlationId) VALUES (1, 4096, 1600000000000000500, 1600000000000000900, 0, 7, 10);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT,
  start INT, end INT, processId INT, threadId INT, correlationId INT, returnValue INT);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, correlationId) VALUES
  (1600000000000000400, 1600000000000000450, 10), (1600000000000000800, 1600000000000000850, 11),
  (1600000000000001480, 1600000000000001490, 12);
)sql";

const char* nsight_tables = R"sql(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (5, 'gemm_kernel'), (6, 'void gemm_kernel<float>(float*)');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL, mangledName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1500, 0, 1, 7, 1, 0, 6, 5, 5),
  (1600, 1700, 1, 1, 7, 2, 0, 6, 5, 5);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (500, 900, 0, 1, 7, 3, 64, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER,
  contextId INTEGER, streamId INTEGER, correlationId INTEGER, value INTEGER, bytes INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (100, 120, 0, 1, 7, 4, 0, 16);
)sql";

TEST(ImportProfile, NvprofsKernelsAndCopiesAreThere) {
  const ProfileFile file(nvprof_tables);
  Record record = import_trace(file.path());
  fill_ready(record);
  ASSERT_EQ(record.tasks.size(), 4u);
  EXPECT_EQ(record.workers.size(), 2u);
  EXPECT_EQ(record.workers[0].kind, "cuda");
  // Time begins with the first call.
  EXPECT_EQ(record.tasks[0].start, 100);
  EXPECT_EQ(record.tasks[0].submit, 0);
  EXPECT_EQ(label(record.kind_of(record.tasks[0])), "copy host to device");
  EXPECT_EQ(label(record.kind_of(record.tasks[1])), "sgemm");
  ASSERT_EQ(record.links.size(), 1u);
  EXPECT_EQ(record.links[0].from, "host");
  EXPECT_EQ(record.links[0].bytes, 4096);
  // The last kernel was launched late: its stream had nothing to do until then.
  EXPECT_EQ(record.tasks[3].submit, 1080);
  EXPECT_EQ(record.tasks[3].ready, 1080);
  const Analysis found = analyse(record, whole_window(record));
  EXPECT_GE(found.causes[static_cast<std::size_t>(Cause::submission)], 80);
  expect_sums(record);
}

TEST(ImportProfile, NsightSystemsToo) {
  const ProfileFile file(nsight_tables);
  const Record record = import_trace(file.path());
  ASSERT_EQ(record.tasks.size(), 4u);
  EXPECT_EQ(record.workers.size(), 2u);
  EXPECT_EQ(label(record.kind_of(record.tasks[2])), "gemm_kernel");
  EXPECT_EQ(record.tasks[0].start, 0);
  EXPECT_EQ(record.tasks[2].end, 1400);
  EXPECT_EQ(record.links.at(0).to, "host");
  expect_sums(record);
}

TEST(ImportProfile, AnImportIsAStoreLikeAnyOther) {
  const ProfileFile file(nsight_tables);
  const TemporaryFolder folder;
  Record record = import_trace(file.path());
  fill_ready(record);
  write_store(folder.path() / store_name, record);
  write_analysis(folder.path() / store_name, record);
  EXPECT_EQ(query(folder.path() / store_name, "SELECT label FROM helpful_tasks LIMIT 1")[1][0],
            "gemm_kernel");
}

TEST(ImportProfile, WrongFilesAreRefusedInOneLine) {
  const ProfileFile other("CREATE TABLE a (b);");
  EXPECT_THAT(error_text([&] { import_trace(other.path()); }), HasSubstr("neither of nvprof"));
  const ProfileFile empty("CREATE TABLE StringIds (id, value);");
  EXPECT_THAT(error_text([&] { import_trace(empty.path()); }), HasSubstr("has no kernels"));
  const ProfileFile columns(
      "CREATE TABLE StringIds (id, value); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end);");
  EXPECT_THAT(error_text([&] { import_trace(columns.path()); }), HasSubstr("no such column"));
  const ProfileFile backwards(R"sql(CREATE TABLE StringIds (id, value);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId,
      shortName); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (9, 5, 0, 0, 0, 0);)sql");
  EXPECT_THAT(error_text([&] { import_trace(backwards.path()); }), HasSubstr("run backwards"));
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { import_trace(folder.path() / "no"); }), HasSubstr("cannot read"));
  EXPECT_THAT(error_text([&] { import_trace(folder.path()); }), HasSubstr("cannot read"));
  const auto cut = folder.path() / "cut.sqlite";
  fs::copy_file(ProfileFile(nvprof_tables).path(), cut);
  fs::resize_file(cut, fs::file_size(cut) / 2);
  EXPECT_NE(error_text([&] { import_trace(cut); }), "no error");
}

}  // namespace
}  // namespace regatta::trace
