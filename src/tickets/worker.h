// A worker: claims jobs of a search, has them trained, publishes what came of them, and tells that
// it lives. Any number of them share a folder and nothing else.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tickets/folder.h"
#include "tickets/lease.h"
#include "tickets/side_by_side.h"

namespace regatta::tickets {

struct Outcome {
  enum class Kind {
    finished,
    failed,   // `why` says with what error
    stopped,  // was asked to end, and saved where it stood
    no_room,  // this machine cannot go on (`why`), such as with a full disk; others may
  };
  Kind kind = Kind::finished;
  std::string why = {};
  Json result = {};         // of a finished job
  double images_per_s = 0;  // 0: unknown
};

// True if the text of an error tells of this machine's disk, not of the job: it is full, over quota
// or read-only.
bool says_no_room(const std::string& error);

// A job under way. Destroying it ends it at once.
class RunningJob {
 public:
  virtual ~RunningJob() = default;
  virtual std::optional<Outcome> poll() = 0;  // nothing while it goes on; does not block
  virtual void stop() = 0;                    // asks it to save and end soon
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  // Starts a job whose predecessors are all done. `claim` is the number of the log entry by which
  // the job is the caller's. The job shares the machine with others, `slots` jobs in all. Throws
  // InputError if it cannot be started: the job has failed then, unless says_no_room().
  virtual std::unique_ptr<RunningJob> start(const SearchFolder& folder, std::size_t job, int claim,
                                            int slots) = 0;
  // Removes what earlier claims of a job left behind; `claim` is the one that finished it.
  virtual void tidy(const SearchFolder&, std::size_t /*job*/, int /*claim*/) {}
};

struct WorkerOptions {
  std::string name;                                   // no other worker, now or later, has it
  std::string machine;                                // equally fast workers share it
  SideBySide slots{1};                                // jobs side by side
  std::function<void(const std::string&)> tell = {};  // a line for the user
};

class Worker {
 public:
  Worker(FileLayer& files, SearchFolder& folder, Trainer& trainer, WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // One round: renews the lease, looks after running jobs, claims new ones. False when the search
  // is over, or when the worker was asked to stop and has nothing left to save. Errors of the file
  // layer are retried for as long as the lease and then thrown as InputError.
  // Outcome::Kind::no_room is thrown as InputError at once.
  bool round();

  void stop();  // asks running jobs to save and end; no new ones are claimed
  // How long to pause between rounds.
  Seconds pause() const;

 private:
  struct Slot;

  void beat();
  void note_work();  // writes what the slots do into heartbeat_
  void look_after(Slot& slot);
  void publish(Slot& slot);
  void claim_jobs();
  std::optional<std::size_t> choose();
  bool start(std::size_t job, int claim);
  bool open_for_claim(std::size_t job);
  std::vector<std::string> others();
  Json now_here() const;  // machine and time of day, for people
  void tell(const std::string& line) const;

  FileLayer& files_;
  SearchFolder& folder_;
  Trainer& trainer_;
  WorkerOptions options_;
  LeaseWatch watch_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Heartbeat heartbeat_;
  Seconds last_beat_{-1e300};
  std::optional<Seconds> trouble_since_;  // when the file layer began to fail
  std::optional<std::string> no_room_;    // the error of the disk that ends this worker
  bool stopping_ = false;
};

}  // namespace regatta::tickets
