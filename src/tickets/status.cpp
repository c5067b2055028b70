#include "tickets/status.h"

#include <algorithm>
#include <cstdio>

#include "tickets/estimate.h"

namespace regatta::tickets {
namespace {

std::string percent(std::size_t part, std::size_t whole) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

std::optional<Seconds> time_left(const SearchFolder& folder,
                                 const std::vector<WorkerStatus>& workers) {
  std::vector<WorkerSpeed> speeds;
  for (const WorkerStatus& worker : workers)
    if (worker.alive && worker.heartbeat.images_per_s > 0)
      speeds.insert(speeds.end(), static_cast<std::size_t>(worker.heartbeat.slots),
                    {worker.heartbeat.images_per_s, {}});
  if (speeds.empty()) return std::nullopt;
  return end_of(schedule(work_left(folder), speeds));
}

}  // namespace

std::vector<std::string> workers_of(FileLayer& files, const std::filesystem::path& search) {
  std::vector<std::string> names;
  for (std::string name : files.list(search / "workers")) {
    if (!name.ends_with(".json")) continue;
    name.resize(name.size() - std::string_view(".json").size());
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

std::map<std::string, double> measured_speeds(const SearchFolder& folder) {
  std::map<std::string, std::vector<double>> found;
  for (std::size_t job = 0; job < folder.jobs().size(); ++job) {
    if (!folder.state(job).done()) continue;
    const Json& body = folder.state(job).last().body;
    if (const double speed = body.value("images_per_s", 0.0); speed > 0)
      found[body.value("machine", "")].push_back(speed);
  }
  std::map<std::string, double> speeds;
  for (auto& [machine, values] : found) {
    std::ranges::sort(values);
    speeds[machine] = values[values.size() / 2];
  }
  return speeds;
}

std::vector<JobWork> work_left(const SearchFolder& folder) {
  std::vector<JobWork> left;
  std::map<std::string, std::size_t> place;
  for (std::size_t job = 0; job < folder.jobs().size(); ++job) {
    if (folder.state(job).done() || folder.hopeless(job)) continue;
    const Job& its = folder.jobs()[job];
    JobWork work{static_cast<double>(its.steps * folder.search().samples_per_step), {}};
    for (const std::string& before : its.after())
      if (const auto at = place.find(before); at != place.end()) work.after.push_back(at->second);
    place[its.id] = left.size();
    left.push_back(std::move(work));
  }
  return left;
}

SearchStatus status_of(const SearchFolder& folder,
                       const std::map<std::string, Heartbeat>& heartbeats,
                       const std::vector<std::string>& alive) {
  SearchStatus status;
  std::map<std::string, int> finished;
  status.jobs = folder.jobs().size();
  for (std::size_t job = 0; job < status.jobs; ++job) {
    const JobState& state = folder.state(job);
    if (state.done()) {
      ++status.done;
      ++finished[state.last().worker];
    } else if (folder.hopeless(job)) {
      ++status.hopeless;
      if (state.failed())
        status.failures.push_back(folder.jobs()[job].id + ": " +
                                  state.last().body.value("why", ""));
    }
  }
  for (const auto& [name, heartbeat] : heartbeats) {
    const bool counts = std::ranges::find(alive, name) != alive.end();
    std::vector<Heartbeat::Work> work;  // without what was taken from it, or is done
    for (const Heartbeat::Work& each : heartbeat.work) {
      if (!folder.knows(each.job)) continue;
      const JobState& state = folder.state(folder.index_of(each.job));
      if (state.claimed() && state.last().worker == name) work.push_back(each);
    }
    if (!counts && (work.empty() || heartbeat.ended)) continue;
    if (counts) status.under_way += work.size();
    status.workers.push_back({name, heartbeat, counts, finished[name]});
    status.workers.back().heartbeat.work = std::move(work);
  }
  status.left = status.done + status.hopeless < status.jobs ? time_left(folder, status.workers)
                                                            : std::optional(Seconds{0});
  status.speeds = measured_speeds(folder);
  return status;
}

std::string status_text(const SearchStatus& status) {
  char line[512];
  std::snprintf(line, sizeof line, "%zu jobs: %zu done (%s), %zu under way, %zu waiting",
                status.jobs, status.done, percent(status.done, status.jobs).c_str(),
                status.under_way, status.open());
  std::string text = line;
  if (status.hopeless > 0) text += ", " + std::to_string(status.hopeless) + " cannot be done";
  text += "\n";
  for (const WorkerStatus& worker : status.workers) {
    std::string work;
    for (const Heartbeat::Work& each : worker.heartbeat.work)
      work += (work.empty() ? "" : ", ") + each.job;
    std::snprintf(line, sizeof line, "  %-32s %10.0f images/s %5d done  ", worker.name.c_str(),
                  worker.heartbeat.images_per_s, worker.finished);
    text +=
        line +
        (worker.alive ? (work.empty() ? std::string("waits") : work) : "not heard of: " + work) +
        "\n";
  }
  for (const std::string& failure : status.failures) text += "failed: " + failure + "\n";
  if (status.done == status.jobs)
    text += "all is done\n";
  else if (status.done + status.hopeless == status.jobs)
    text += "the rest can only be done after: regatta tickets work DIR --again\n";
  else if (status.left)
    text += "all will be done in about " + time_text(*status.left) + "\n";
  else
    text += status.workers.empty() ? "no worker is there: regatta tickets work DIR\n"
                                   : "no speed is measured yet\n";
  return text;
}

Json to_json(const SearchStatus& status) {
  Json workers = Json::array();
  for (const WorkerStatus& worker : status.workers) {
    Json one = worker.heartbeat.to_json();
    one["name"] = worker.name;
    one["alive"] = worker.alive;
    one["finished"] = worker.finished;
    workers.push_back(std::move(one));
  }
  return {{"jobs", status.jobs},
          {"done", status.done},
          {"under_way", status.under_way},
          {"waiting", status.open()},
          {"hopeless", status.hopeless},
          {"failures", status.failures},
          {"workers", workers},
          {"images_per_s", status.speeds},
          {"seconds_left", status.left ? Json(status.left->count()) : Json()}};
}

}  // namespace regatta::tickets
