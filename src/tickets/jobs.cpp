#include "tickets/jobs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"

namespace regatta::tickets {
namespace {

constexpr int search_version = 1;
constexpr std::array<std::pair<JobKind, std::string_view>, 5> kinds{{{JobKind::dense, "dense"},
                                                                     {JobKind::ticket, "ticket"},
                                                                     {JobKind::fresh, "fresh"},
                                                                     {JobKind::random, "random"},
                                                                     {JobKind::twin, "twin"}}};

std::string two_digits(int number) {
  char text[16];
  std::snprintf(text, sizeof text, "%02d", number);
  return text;
}

void require_sensible(const Search& search) {
  if (search.seeds.empty()) throw InputError("a search needs at least one seed");
  if (search.resets.empty()) throw InputError("a search needs at least one reset point");
  if (search.levels < 1) throw InputError("a search needs --levels or --masks of 1 or more");
  if (!(search.rate > 0 && search.rate < 1))
    throw InputError("--rate " + std::to_string(search.rate) +
                     ": use the part of weights that a level removes, more than 0, less than 1");
  for (const std::int64_t reset : search.resets)
    if (reset < 0 || reset >= search.last_step)
      throw InputError("the reset point " + std::to_string(reset) +
                       " is not before the last step, " + std::to_string(search.last_step));
}

Json to_json(const Job& job) {
  Json json{{"id", job.id},       {"kind", kind_name(job.kind)}, {"seed", job.seed},
            {"reset", job.reset}, {"level", job.level},          {"keep", job.keep},
            {"steps", job.steps}};
  for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"pruned", job.pruned},
                                   {"start", job.start},
                                   {"mask", job.mask},
                                   {"init", job.init}})
    if (!text.empty()) json[name] = text;
  return json;
}

Job job_from_json(const Json& json, const std::string& place, std::vector<std::string>& faults) {
  ObjectReader reader(json, place, faults);
  Job job;
  job.id = reader.text("id");
  job.kind = reader.word<JobKind>("kind", kind_named);
  job.seed = static_cast<std::uint64_t>(reader.whole("seed", 0, INT64_MAX));
  job.reset = reader.whole("reset", 0, INT64_MAX);
  job.level = static_cast<int>(reader.whole("level", 0, 1000000));
  job.keep = reader.number("keep", 0, 1);
  job.steps = reader.whole("steps", 0, INT64_MAX);
  job.pruned = reader.text("pruned", "");
  job.start = reader.text("start", "");
  job.mask = reader.text("mask", "");
  job.init = reader.text("init", "");
  reader.finish();
  if (job.id.find('/') != std::string::npos || job.id.starts_with('.'))
    faults.push_back(place + ".id: '" + job.id + "' cannot be the name of a folder");
  return job;
}

void require_known(const Search& search, std::vector<std::string>& faults) {
  std::map<std::string, int> seen;
  for (const Job& job : search.jobs) {
    for (const std::string& before : job.after())
      if (!seen.contains(before))
        faults.push_back("job '" + job.id + "' waits for '" + before + "', which is not before it");
    if (++seen[job.id] == 2) faults.push_back("there are two jobs '" + job.id + "'");
  }
}

}  // namespace

std::string_view kind_name(JobKind kind) {
  return std::ranges::find(kinds, kind, &decltype(kinds)::value_type::first)->second;
}

JobKind kind_named(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [kind, its_name] : kinds) {
    if (its_name == name) return kind;
    known.emplace_back(its_name);
  }
  throw InputError("there is no kind of job '" + std::string(name) + "'" +
                   did_you_mean(name, known));
}

std::vector<std::string> Job::after() const {
  std::vector<std::string> ids;
  if (!pruned.empty()) ids.push_back(pruned);
  if (!start.empty() && start != pruned) ids.push_back(start);
  return ids;
}

std::vector<Job> make_jobs(const Search& search) {
  require_sensible(search);
  std::vector<Job> jobs;
  for (const std::uint64_t seed : search.seeds) {
    const std::string prefix = "seed" + std::to_string(seed) + "-";
    const std::string dense = prefix + "dense";
    jobs.push_back({.id = dense, .seed = seed, .steps = search.last_step});
    for (const std::int64_t reset : search.resets) {
      const std::string branch = prefix + "reset" + std::to_string(reset) + "-";
      std::string trained = dense;
      for (int level = 1; level <= search.levels; ++level) {
        const std::string number = (search.iterative ? "level" : "mask") + two_digits(level) + "-";
        Job job{.id = branch + number + "ticket",
                .kind = JobKind::ticket,
                .seed = seed,
                .reset = reset,
                .level = level,
                .keep = std::pow(1 - search.rate, level),
                .pruned = trained,
                .start = dense,
                .steps = search.last_step - reset};
        jobs.push_back(job);
        for (const JobKind control : search.controls) {
          Job other = job;
          other.kind = control;
          other.id = branch + number + std::string(kind_name(control));
          if (control == JobKind::fresh) {
            // A mask of the dense network is the same at every reset point, and so is that mask
            // with new weights.
            if (trained == dense) {
              if (reset != search.resets.front()) continue;
              other.id = prefix + number + "fresh";
            }
            other.reset = 0;
            other.start.clear();
            other.steps = search.last_step;
          }
          jobs.push_back(other);
        }
        if (search.iterative) trained = job.id;
      }
    }
  }
  return jobs;
}

std::vector<JobWork> works_of(const Search& search) {
  std::map<std::string, std::size_t> at;
  std::vector<JobWork> works;
  for (const Job& job : search.jobs) {
    JobWork work{static_cast<double>(job.steps * search.samples_per_step), {}};
    for (const std::string& before : job.after()) work.after.push_back(at.at(before));
    at[job.id] = works.size();
    works.push_back(std::move(work));
  }
  return works;
}

Json to_json(const Search& search) {
  Json jobs = Json::array(), controls = Json::array();
  for (const Job& job : search.jobs) jobs.push_back(to_json(job));
  for (const JobKind kind : search.controls) controls.push_back(kind_name(kind));
  return {{"regatta_search", search_version},
          {"train", search.train},
          {"last_step", search.last_step},
          {"samples_per_step", search.samples_per_step},
          {"steps_per_epoch", search.steps_per_epoch},
          {"seeds", search.seeds},
          {"resets", search.resets},
          {"levels", search.levels},
          {"iterative", search.iterative},
          {"rate", search.rate},
          {"scope", scope_name(search.scope)},
          {"by", criterion_name(search.by)},
          {"controls", controls},
          {"lease_s", search.lease.count()},
          {"jobs", jobs}};
}

Search search_from_json(const Json& json, const std::string& from) {
  std::vector<std::string> faults;
  ObjectReader reader(json, "", faults);
  Search search;
  reader.whole("regatta_search", search_version, search_version);
  const auto text_at = [&](const Json& each, const std::string& place) {
    if (each.is_string()) return each.get<std::string>();
    faults.push_back(place + ": is not a text");
    return std::string();
  };
  reader.each("train", [&](const Json& each, const std::string& place) {
    search.train.push_back(text_at(each, place));
  });
  search.last_step = reader.whole("last_step", 1, INT64_MAX);
  search.samples_per_step = reader.whole("samples_per_step", 1, INT64_MAX);
  search.steps_per_epoch = reader.whole("steps_per_epoch", 1, INT64_MAX);
  for (const std::int64_t seed : reader.wholes("seeds", 0, INT64_MAX))
    search.seeds.push_back(static_cast<std::uint64_t>(seed));
  search.resets = reader.wholes("resets", 0, INT64_MAX);
  search.levels = static_cast<int>(reader.whole("levels", 0, 1000000));
  search.iterative = reader.truth("iterative");
  search.rate = reader.number("rate", 0, 1);
  search.scope = reader.word<Scope>("scope", scope_named);
  search.by = reader.word<Criterion>("by", criterion_named);
  search.controls.clear();
  reader.each("controls", [&](const Json& each, const std::string& place) {
    const std::string name = text_at(each, place);
    const std::string reason = why_not([&] { search.controls.push_back(kind_named(name)); });
    if (!reason.empty()) faults.push_back(place + ": " + reason);
  });
  search.lease = Seconds(reader.number("lease_s", 0, 1e9));
  reader.each("jobs", [&](const Json& each, const std::string& place) {
    search.jobs.push_back(job_from_json(each, place, faults));
  });
  reader.finish();
  require_known(search, faults);
  require_none("'" + from + "'", faults);
  return search;
}

}  // namespace regatta::tickets
