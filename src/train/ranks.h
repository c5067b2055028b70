// The ranks (processes) of one run: their names and machines, the checks before they train, and how
// the first rank divides the batch among them.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/job.h"
#include "transport/launcher.h"
#include "transport/presence.h"

namespace regatta {

// Another rank reports the error. This rank ends silently and with code 0, because launchers kill
// all ranks as soon as one fails, perhaps before the other rank has printed its message.
class ToldElsewhere : public Error {
 public:
  ToldElsewhere() : Error("told by another rank") {}
};

class Ranks {
 public:
  // Null unless a launcher started this process as one of several; else starts MPI. Ranks on one
  // machine that may use the same CPUs divide them: from here on this process uses only its part.
  static std::unique_ptr<Ranks> join(const PresenceTimes& times = {});

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  bool first() const { return rank() == 0; }
  const std::vector<std::string>& names() const { return names_; }  // "rank 1 on b"
  std::string name() const { return names_[static_cast<std::size_t>(rank())]; }
  const std::shared_ptr<Transport>& transport() const { return transport_; }
  // By rank: those on one machine have one number.
  const std::vector<int>& machines() const { return machines_; }
  const std::vector<std::string>& node_names() const { return node_names_; }
  const std::vector<std::string>& hosts() const { return hosts_; }  // by rank

  // Called by all ranks, each with what went wrong there, or "". If anything did, the first rank
  // throws InputError with the name of the rank, and the others ToldElsewhere.
  void agree(const std::string& failure);
  // Throws likewise unless all ranks have the same text; `what` names it in the message.
  void require_same(const std::string& what, const std::string& text);
  // The same for an object: the message names the keys whose values differ, and the values.
  void require_same_values(const std::string& what, const Json& object);
  std::vector<std::string> gather(const std::string& text);
  std::string from_first(const std::string& text);

  // Called by all ranks when the weights are complete: from here on the first rank goes on without
  // ranks that fall silent, for what is left to do only gathers records.
  void training_is_over() { training_is_over_ = true; }
  // Whether the first rank goes on without this one. Always false on the others.
  bool lost(int rank) const;
  // The last that a rank does that ends with this code, after training_is_over(): waits until all
  // others have come here too. If the first rank was left by some, it names them; its end is then
  // that of all.
  void part(int code);

 private:
  Ranks(std::shared_ptr<Transport> transport, const PresenceTimes& times);
  void take_own_cpus();
  void fell_silent(int rank) const;

  std::shared_ptr<Transport> transport_;
  std::vector<std::string> hosts_, names_, node_names_;
  std::vector<int> machines_;
  std::atomic<bool> training_is_over_ = false;
  const PresenceTimes times_;
  std::optional<Presence> presence_;
};

// The exit code of a run that can be taken up again, as sysexits.h has it: EX_TEMPFAIL.
constexpr int try_again_code = 75;

// Which of `allowed` CPUs the i-th of `ranks` processes on a machine takes: as equal parts as can
// be, at least one CPU each.
std::vector<int> cpus_of_rank(const std::vector<int>& allowed, int i, int ranks);

// How the batch is to be shared out among ranks.
struct RankRequest {
  std::optional<std::string> shares =
      {};  // "speed" (default: as measured now), "equal", or samples
  // Default: the one that is predicted fastest for the links as they are measured now, or with
  // `deterministic` chain.
  std::optional<NodeUpdate> update = {};
  std::optional<std::vector<std::int64_t>> chunks = {};  // of each rank's share; see PlanOptions
  int workers = 1;                                       // of this rank, at most
};

// Replaces the job's plan, which is for one process, by this rank's part of a plan for all ranks,
// made by the first rank. Checks that version, recipe and data are the same on all ranks. Called by
// all ranks. Returns, on the first rank, a line for the user with the predicted time of the
// exchange.
std::string share_among(Ranks& ranks, TrainJob& job, const RankRequest& request);

// Replaces the job's plan, one for several nodes, by this rank's part of it: see nodes_of_ranks.
// Checks that version, recipe, data and plan are the same on all ranks. Called by all ranks.
// Returns a line for the user that says which rank carries out which node.
std::string follow_plan(Ranks& ranks, TrainJob& job);

// Replaces the job's plan for several ranks by a plan for this process alone.
void gather_on_one(TrainJob& job, int workers);

// One line for people: "2 ranks: a 4 CPUs 12 samples, b 4 CPUs 4 samples; gradients meet by ring",
// or "... by ring in bf16".
std::string rank_line(const Plan& plan, const Recipe& recipe);

}  // namespace regatta
