// The folder of a search. Everything that is known lies in it:
//
//   search.json                    what is asked for, and all jobs
//   jobs/ID/log-NNNN.json          what happened to a job (job_log.h)
//   jobs/ID/claim-N/run            the run folder of the worker that made entry N
//   jobs/ID/claim-N/mask.safetensors, init.safetensors, said.txt
//   workers/NAME.json              heartbeats (lease.h)
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tickets/job_log.h"
#include "tickets/jobs.h"

namespace regatta::tickets {

std::filesystem::path job_folder(const std::filesystem::path& search, const std::string& id);
std::filesystem::path claim_folder(const std::filesystem::path& search, const std::string& id,
                                   int claim);

class SearchFolder {
 public:
  // Throws InputError if `path` holds no search or one that cannot be read.
  SearchFolder(FileLayer& files, std::filesystem::path path);

  // Throws InputError if the folder holds another search, or a search.json that cannot be read.
  static void require_same_or_none(FileLayer& files, const std::filesystem::path& path,
                                   const Search& search);
  // Makes the folder, or finds that it holds the same search. Throws InputError if it holds another
  // one or something else.
  static void write(FileLayer& files, const std::filesystem::path& path, const Search& search);

  const std::filesystem::path& path() const { return path_; }
  const Search& search() const { return search_; }
  const std::vector<Job>& jobs() const { return search_.jobs; }
  bool knows(const std::string& id) const { return index_.contains(id); }
  std::size_t index_of(const std::string& id) const { return index_.at(id); }

  JobLog& log(std::size_t job) { return logs_[job]; }
  const JobState& state(std::size_t job) const { return logs_[job].state(); }
  void refresh();  // the logs of all jobs that are not done

  // All that the job waits for is done.
  bool ready(std::size_t job) const;
  // The job, or one that it waits for, failed for good.
  bool hopeless(std::size_t job) const;
  // Every job is done or hopeless.
  bool over() const;
  // The run folder of a job that is done.
  std::filesystem::path run_of(const std::string& id) const;

 private:
  std::filesystem::path path_;
  Search search_;
  std::vector<JobLog> logs_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace regatta::tickets
