#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/regular_file.h"
#include "trace/import.h"
#include "trace/sqlite.h"

namespace regatta::trace {
namespace {

constexpr std::size_t most_tasks = 20'000'000;

// CUPTI's numbers for the directions of a copy.
struct Direction {
  std::int64_t number;
  const char* name;
  bool from_host, to_host;
};
constexpr Direction directions[] = {{1, "copy host to device", true, false},
                                    {2, "copy device to host", false, true},
                                    {8, "copy device to device", false, false},
                                    {9, "copy host to host", true, true},
                                    {10, "copy peer to peer", false, false}};

class ProfileReader {
 public:
  explicit ProfileReader(const std::filesystem::path& file)
      : database_(file, Database::Access::read) {
    database_.restrict_to_reading();
  }

  Record run() {
    if (database_.has_table("StringTable"))
      kernels_of_nvprof();
    else if (database_.has_table("StringIds"))
      kernels_of_nsight();
    else
      throw InputError("'" + database_.name() +
                       "' is neither of nvprof (no table StringTable) nor of Nsight Systems (no "
                       "table StringIds)");
    copies();
    if (record_.tasks.empty())
      throw InputError("'" + database_.name() + "' has no kernels and no copies");
    launches();
    return finish();
  }

 private:
  // Both name kernels by numbers of a table of strings.
  void kernels_of_nvprof() {
    record_.metadata["imported from"] = "nvprof " + database_.name();
    for (const char* table :
         {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"})
      if (database_.has_table(table))
        kernels(std::string("SELECT k.start, k.end, k.deviceId, k.streamId, k.correlationId, "
                            "s.value FROM ") +
                table + " k LEFT JOIN StringTable s ON s._id_ = k.name");
  }
  void kernels_of_nsight() {
    record_.metadata["imported from"] = "Nsight Systems " + database_.name();
    const std::string table = "CUPTI_ACTIVITY_KIND_KERNEL";
    if (!database_.has_table(table)) return;
    const std::string name =
        database_.has_column(table, "shortName") ? "shortName" : "demangledName";
    kernels("SELECT k.start, k.end, k.deviceId, k.streamId, k.correlationId, s.value FROM " +
            table + " k LEFT JOIN StringIds s ON s.id = k." + name);
  }

  void kernels(const std::string& sql) {
    for (Statement row(database_, sql); row.next();) {
      const std::string name = row.text(5);
      add(row, name.empty() ? "kernel" : name);
    }
  }

  void copies() {
    const std::string copy = "CUPTI_ACTIVITY_KIND_MEMCPY", fill = "CUPTI_ACTIVITY_KIND_MEMSET";
    std::map<std::pair<std::string, std::string>, Link> links;
    if (database_.has_table(copy)) {
      for (Statement row(database_,
                         "SELECT start, end, deviceId, streamId, correlationId, copyKind, bytes "
                         "FROM " +
                             copy);
           row.next();) {
        const auto* found = std::ranges::find(directions, row.number(5), &Direction::number);
        const bool known = found != std::end(directions);
        add(row, known ? found->name : "copy");
        const std::string device = "gpu " + std::to_string(row.number(2));
        const std::string from = known && found->from_host ? "host" : device;
        const std::string to = known && found->to_host ? "host" : device;
        Link& link = links[{from, to}];
        link.from = from;
        link.to = to;
        // Totals of a broken file must not overflow.
        const std::int64_t bytes =
            std::clamp<std::int64_t>(row.number(6), 0, std::int64_t{1} << 50);
        link.bytes = std::min(link.bytes + bytes, std::numeric_limits<std::int64_t>::max() / 4);
        ++link.transfers;
      }
    }
    if (database_.has_table(fill))
      for (Statement row(database_,
                         "SELECT start, end, deviceId, streamId, correlationId FROM " + fill);
           row.next();)
        add(row, "fill memory");
    for (const auto& [ends, link] : links) record_.links.push_back(link);
  }

  void add(const Statement& row, const std::string& name) {
    const Time start = row.number(0), end = row.number(1);
    if (row.is_null(0) || row.is_null(1) || end == 0) return;  // it had not ended
    if (start < 0 || end < start)
      throw InputError("'" + database_.name() + "': the times of '" + name.substr(0, 60) +
                       "' run backwards");
    if (record_.tasks.size() == most_tasks)
      throw InputError("'" + database_.name() + "' has more than " + std::to_string(most_tasks) +
                       " kernels and copies: cut it first");
    Task task;
    task.kind = kind(name);
    task.worker = stream(row.number(2), row.number(3));
    task.start = start;
    task.end = end;
    task.id = row.number(4);  // until all are there: the call that launched it
    record_.tasks.push_back(task);
  }

  std::int32_t kind(const std::string& name) {
    const auto [found, fresh] =
        kinds_.try_emplace(name, static_cast<std::int32_t>(record_.kinds.size()));
    if (fresh) record_.kinds.push_back({.job = "cuda", .phases = name, .group = "imported"});
    return found->second;
  }
  std::int32_t stream(std::int64_t device, std::int64_t number) {
    const auto [found, fresh] =
        streams_.try_emplace({device, number}, static_cast<std::int32_t>(record_.workers.size()));
    const std::string gpu = "gpu " + std::to_string(device);
    if (fresh)
      record_.workers.push_back({gpu + " stream " + std::to_string(number), gpu, "here", "cuda"});
    return found->second;
  }

  // When the host asked for each: its call of the CUDA runtime.
  void launches() {
    const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if (!database_.has_table(table)) return;
    std::map<std::int64_t, Time> asked;
    for (Statement row(database_, "SELECT correlationId, start FROM " + table); row.next();)
      asked.try_emplace(row.number(0), row.number(1));
    for (Task& task : record_.tasks)
      if (const auto found = asked.find(task.id);
          found != asked.end() && found->second >= 0 && found->second <= task.start)
        task.submit = found->second;
  }

  // Time begins with the first event. What a stream does, it does in order.
  Record finish() {
    Time begin = std::numeric_limits<Time>::max();
    for (const Task& task : record_.tasks)
      begin = std::min(begin, task.submit == unknown ? task.start : task.submit);
    std::ranges::stable_sort(record_.tasks, {}, &Task::start);
    std::vector<std::int64_t> last(record_.workers.size(), -1);
    for (std::size_t i = 0; i < record_.tasks.size(); ++i) {
      Task& task = record_.tasks[i];
      task.id = static_cast<std::int64_t>(i);
      task.start -= begin;
      task.end -= begin;
      if (task.submit != unknown) task.submit -= begin;
      std::int64_t& before = last[static_cast<std::size_t>(task.worker)];
      if (before >= 0) record_.dependencies.push_back({task.id, before});
      before = task.id;
    }
    return std::move(record_);
  }

  Database database_;
  std::map<std::string, std::int32_t> kinds_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> streams_;
  Record record_;
};

}  // namespace

Record import_profile(const std::filesystem::path& file) { return ProfileReader(file).run(); }

Record import_trace(const std::filesystem::path& file) {
  require_regular_file(file);
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError("cannot read '" + file.string() + "'");
  char magic[16] = {};
  in.read(magic, sizeof magic - 1);
  if (std::string_view(magic).starts_with("SQLite format")) return import_profile(file);
  in.clear();
  in.seekg(0);
  return import_paje(in, file.string());
}

}  // namespace regatta::trace
