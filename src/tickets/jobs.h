// A search as data: what is asked for, and the graph of jobs that follows from it.
//
//   dense (once per seed) --> level 1 --> level 2 --> ...     one chain per reset point
//                                 \-> controls: fresh, random
//
// With one-shot pruning every mask is made from the dense network's weights, and all tickets wait
// for the dense run alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tickets/prune.h"
#include "tickets/schedule.h"

namespace regatta::tickets {

enum class JobKind {
  dense,   // the whole network; its checkpoints at all reset points stay
  ticket,  // pruned, from the dense run's weights at the reset point
  fresh,   // a ticket's mask with new weights, trained from the first step
  random,  // a random mask that keeps as many weights of each layer, from the reset point's weights
  twin,    // the whole network again from the reset point, in another order of the data
};
std::string_view kind_name(JobKind kind);
JobKind kind_named(std::string_view name);  // throws InputError

// One run of `regatta train`.
struct Job {
  std::string id;  // "seed1-reset0-level03-ticket"
  JobKind kind = JobKind::dense;
  std::uint64_t seed = 1;
  std::int64_t reset = 0;   // step whose weights it starts from; 0 for dense and fresh
  int level = 0;            // of pruning, or the number of the one-shot mask; 0: dense
  double keep = 1;          // part of the maskable weights that stays
  std::string pruned = {};  // the job whose trained weights are pruned; empty: no mask, or `mask`
  std::string start = {};  // the job whose checkpoint at `reset` it starts from; empty: new weights
  std::int64_t steps = 0;  // that it trains
  // Files of a mask and weights of another search, seen from this search's folder; else empty.
  std::string mask = {}, init = {};

  std::vector<std::string> after() const;  // ids of the jobs it waits for
  bool operator==(const Job&) const = default;
};

// What a search is asked for. Flags of `regatta train` say the rest.
struct Search {
  // Without --seed, --out and what a job adds.
  std::vector<std::string> train;
  std::int64_t last_step = 0;         // of every run
  std::int64_t samples_per_step = 0;  // so that work can be counted in images
  std::int64_t steps_per_epoch = 0;
  std::vector<std::uint64_t> seeds;
  std::vector<std::int64_t> resets;  // steps, rising
  int levels = 0;
  bool iterative = true;  // else one shot
  double rate = 0.2;      // part of the weights left that a level removes
  Scope scope = Scope::global;
  Criterion by = Criterion::magnitude;
  std::vector<JobKind> controls{JobKind::fresh, JobKind::random};
  Seconds lease{30};  // an owner that was not heard of for so long is gone

  std::vector<Job> jobs;  // by make_jobs, or another command's

  bool operator==(const Search&) const = default;
};

// Throws InputError: reset points beyond the last step, a rate outside (0, 1), no seeds or levels.
std::vector<Job> make_jobs(const Search& search);

// Work in images, and who waits for whom by index.
std::vector<JobWork> works_of(const Search& search);

Json to_json(const Search& search);
// Throws InputError that names `from` and every fault with its place.
Search search_from_json(const Json& json, const std::string& from);

}  // namespace regatta::tickets
