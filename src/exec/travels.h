// What each task that travels between ranks sends and receives.
#pragma once

#include <memory>

#include "exec/communicator.h"
#include "exec/submission.h"

namespace regatta {

class Travels {
 public:
  explicit Travels(const Blueprint& blueprint);

  int numbers() const;  // see Communicator
  // `data`: of the task's accesses. The caller sets `done`, and calls finish() in it.
  struct Prepared {
    Travel travel;
    std::function<void()> finish;  // after it has arrived; may be empty
  };
  Prepared prepare(const Task& task, Submission& submission, std::byte* const* data) const;

 private:
  Travel travel_of(const Action& action, const Submission& submission) const;
  void add_sums(Travel& travel, const Action& action, std::byte* const* data) const;
  void add_group_sums(Travel& travel, const Action& action, std::byte* const* data) const;
  void gather(Travel& travel, std::byte* first, std::size_t chunk_bytes) const;
  void add_rounds(Travel& travel, const std::vector<ExchangeRound>& rounds, std::byte* data) const;
  Prepared results(Travel travel, Submission& submission) const;

  const Blueprint& blueprint_;
  std::vector<int> first_meeting_;  // by segment, counted over all
  int meetings_ = 0;
};

}  // namespace regatta
