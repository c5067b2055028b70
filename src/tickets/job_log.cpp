#include "tickets/job_log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/error.h"

namespace regatta::tickets {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::pair<EntryKind, const char*>, 4> names{{{EntryKind::claim, "claim"},
                                                                  {EntryKind::released, "released"},
                                                                  {EntryKind::failed, "failed"},
                                                                  {EntryKind::result, "result"}}};

std::string text_of(const LogEntry& entry) {
  const auto name = std::ranges::find(names, entry.kind, &decltype(names)::value_type::first);
  return Json{{"entry", name->second}, {"worker", entry.worker}, {"body", entry.body}}.dump(1) +
         "\n";
}

LogEntry entry_from(const std::string& text, const fs::path& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("entry") && json.contains("worker") &&
      json.contains("body") && (json["body"].is_object() || json["body"].is_null()) &&
      json["worker"].is_string())
    for (const auto& [kind, name] : names)
      if (json["entry"] == name) return {kind, json["worker"], json["body"]};
  throw InputError(
      "'" + path.string() +
      "' is not an entry of a job's log; nothing but regatta "
      "should write there: put the file away, and the job goes on from the entry before");
}

}  // namespace

int JobState::failures() const {
  int count = 0;
  for (const LogEntry& entry : entries) {
    if (entry.kind == EntryKind::failed) ++count;
    if (entry.kind == EntryKind::released && entry.body.value("again", false)) count = 0;
  }
  return count;
}

JobLog::JobLog(FileLayer& files, fs::path folder) : files_(files), folder_(std::move(folder)) {}

fs::path JobLog::path_of(int number) const {
  char name[32];
  std::snprintf(name, sizeof name, "log-%04d.json", number);
  return folder_ / name;
}

const JobState& JobLog::refresh() {
  while (!state_.done()) {
    const fs::path path = path_of(state_.next());
    const std::optional<std::string> text = files_.read(path);
    if (!text) break;
    state_.entries.push_back(entry_from(*text, path));
  }
  return state_;
}

bool JobLog::append(int number, const LogEntry& entry) {
  if (number != state_.next() || state_.done()) return false;
  if (!files_.create(path_of(number), text_of(entry))) {
    refresh();
    return false;
  }
  state_.entries.push_back(entry);
  return true;
}

}  // namespace regatta::tickets
