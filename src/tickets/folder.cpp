#include "tickets/folder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace regatta::tickets {
namespace fs = std::filesystem;
namespace {

constexpr const char* search_name = "search.json";

Search read_search(FileLayer& files, const fs::path& path) {
  const std::optional<std::string> text = files.read(path / search_name);
  if (!text)
    throw InputError("'" + path.string() + "' is not the folder of a search: it has no " +
                     search_name + "; regatta tickets search --out DIR makes one");
  const std::string name = (path / search_name).string();
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) throw InputError("'" + name + "' is not JSON");
  return search_from_json(json, name);
}

}  // namespace

fs::path job_folder(const fs::path& search, const std::string& id) { return search / "jobs" / id; }

fs::path claim_folder(const fs::path& search, const std::string& id, int claim) {
  return job_folder(search, id) / ("claim-" + std::to_string(claim));
}

SearchFolder::SearchFolder(FileLayer& files, fs::path path)
    : path_(std::move(path)), search_(read_search(files, path_)) {
  for (const Job& job : search_.jobs) {
    index_[job.id] = logs_.size();
    logs_.emplace_back(files, job_folder(path_, job.id));
  }
}

void SearchFolder::require_same_or_none(FileLayer& files, const fs::path& path,
                                        const Search& search) {
  if (files.read(path / "run.json"))
    throw InputError("'" + path.string() + "' is the folder of a run; name another one for jobs");
  if (files.read(path / search_name) && read_search(files, path) != search)
    throw InputError("'" + path.string() +
                     "' holds another search; name another folder, or go on with that one: regatta "
                     "tickets work " +
                     path.string());
}

void SearchFolder::write(FileLayer& files, const fs::path& path, const Search& search) {
  require_same_or_none(files, path, search);
  files.make_folder(path / "workers");
  for (const Job& job : search.jobs) files.make_folder(job_folder(path, job.id));
  // The file goes last: whoever sees it finds all folders.
  if (!files.create(path / search_name, to_json(search).dump(1) + "\n"))
    require_same_or_none(files, path, search);
}

void SearchFolder::refresh() {
  for (JobLog& log : logs_)
    if (!log.state().done()) log.refresh();
}

bool SearchFolder::ready(std::size_t job) const {
  const std::vector<std::string> after = jobs()[job].after();
  return std::ranges::all_of(after,
                             [&](const std::string& id) { return state(index_of(id)).done(); });
}

bool SearchFolder::hopeless(std::size_t job) const {
  if (state(job).done()) return false;
  const std::vector<std::string> after = jobs()[job].after();
  return state(job).failed() ||
         std::ranges::any_of(after, [&](const std::string& id) { return hopeless(index_of(id)); });
}

bool SearchFolder::over() const {
  for (std::size_t job = 0; job < jobs().size(); ++job)
    if (!state(job).done() && !hopeless(job)) return false;
  return true;
}

fs::path SearchFolder::run_of(const std::string& id) const {
  const JobState& its = state(index_of(id));
  if (!its.done()) throw Error("the job '" + id + "' is not done");
  return claim_folder(path_, id, its.last().body.at("claim").get<int>()) / "run";
}

}  // namespace regatta::tickets
