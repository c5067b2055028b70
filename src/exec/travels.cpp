#include "exec/travels.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace regatta {
namespace {

// What a rank tells of a list besides its samples.
struct ResultsHead {
  std::uint32_t wishes = 0;
  std::uint32_t failed = 0;  // its numbers mean nothing
  float computed_s = 0;      // see StepInput
};

// Samples of a rank: those of its chunks follow each other.
ChunkSpan samples_of(const std::vector<ChunkSpan>& batch, const ChunkRange& range) {
  ChunkSpan all{batch[range.first].first, 0};
  for (std::size_t c = range.first; c < range.first + range.count; ++c) all.count += batch[c].count;
  return all;
}

// Losses, answers and, of a test, labels and logits of some samples, one after the other. Labels
// are floats, which hold whole numbers up to 2^24 exactly.
struct ResultsLayout {
  std::size_t samples, classes;
  std::size_t logits_at() const { return sizeof(ResultsHead) + 2 * samples * sizeof(float); }
  std::size_t bytes(bool with_logits) const {
    return logits_at() + (with_logits ? samples * (classes + 1) * sizeof(float) : 0);
  }
};

void copy_floats(std::byte*& to, const float* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(float));
  to += count * sizeof(float);
}
void take_floats(const std::byte*& from, float* to, std::size_t count) {
  std::memcpy(to, from, count * sizeof(float));
  from += count * sizeof(float);
}

}  // namespace

Travels::Travels(const Blueprint& blueprint) : blueprint_(blueprint) {
  for (const SegmentPlace& segment : blueprint.segments) {
    first_meeting_.push_back(meetings_);
    meetings_ += static_cast<int>(segment.train.meetings.size());
  }
}

// Of one list: buckets, meetings forward and back, segments with groups of samples, results. Lists
// on their way at the same time have numbers of their own.
int Travels::numbers() const {
  const int of_list =
      static_cast<int>(blueprint_.buckets.size() + blueprint_.segments.size()) + 2 * meetings_ + 1;
  return of_list * (blueprint_.plan.steps_in_flight + 2);
}

Travel Travels::travel_of(const Action& action, const Submission& submission) const {
  const auto buckets = static_cast<int>(blueprint_.buckets.size());
  const auto lists = static_cast<std::size_t>(blueprint_.plan.steps_in_flight + 2);
  const int of_list = numbers() / static_cast<int>(lists);
  const bool back = action.phase == Phase::exchange_gradient_sums;
  Travel travel;
  switch (action.phase) {
    case Phase::exchange_sums:
    case Phase::exchange_gradient_sums:
      travel.number = buckets + (back ? meetings_ : 0) + first_meeting_[action.segment.value] +
                      static_cast<int>(action.part);
      travel.urgency = 1;
      travel.spins = true;
      break;
    case Phase::exchange_group_sums:
      travel.number = buckets + 2 * meetings_ + static_cast<int>(action.segment.value);
      travel.urgency = -buckets;
      break;
    case Phase::exchange_results:
      travel.number = of_list - 1;
      travel.urgency = -buckets;
      break;
    default:
      // The next forward begins with the first layers.
      travel.number = static_cast<int>(action.bucket.value);
      travel.urgency = -travel.number;
      break;
  }
  travel.number += of_list * static_cast<int>(submission.exchanged_as % lists);
  return travel;
}

Travels::Prepared Travels::prepare(const Task& task, Submission& submission,
                                   std::byte* const* data) const {
  const Action& action = task.actions.front();
  Travel travel = travel_of(action, submission);
  const RankPlace& ranks = blueprint_.ranks;
  switch (action.phase) {
    case Phase::exchange_sums:
    case Phase::exchange_gradient_sums:
      add_sums(travel, action, data);
      break;
    case Phase::exchange_group_sums:
      add_group_sums(travel, action, data);
      break;
    case Phase::running_sum:
    case Phase::exchange: {
      const std::size_t elements = blueprint_.buckets[action.bucket.value].bytes / sizeof(float);
      travel.as_bf16 = blueprint_.wire_precision == Precision::bf16;
      if (action.phase == Phase::running_sum) {
        add_rounds(travel, running_sum_rounds(ranks, elements), data[0]);
        break;
      }
      auto* gradient = reinterpret_cast<float*>(data[0]);
      // Whatever this rank has is worth nothing; the others are to see it as well.
      if (submission.failed)
        std::fill_n(gradient, elements, std::numeric_limits<float>::quiet_NaN());
      if (ranks.update == NodeUpdate::mpi) {
        travel.sum = {gradient, elements};
        travel.channel = static_cast<int>(action.bucket.value);
      } else {
        add_rounds(travel, exchange_rounds(ranks, elements), data[0]);
      }
      break;
    }
    default:
      return results(std::move(travel), submission);
  }
  return {std::move(travel), {}};
}

void Travels::add_rounds(Travel& travel, const std::vector<ExchangeRound>& rounds,
                         std::byte* data) const {
  for (const ExchangeRound& round : rounds) {
    ByteRound& made = travel.rounds.emplace_back();
    for (const Transfer& each : round)
      made.push_back({each.kind, each.peer, each.message, data + each.first * sizeof(float),
                      each.count * sizeof(float)});
  }
}

// The own chunks' sums go to everyone, and everyone's come here. `first` is the place of the whole
// batch's first chunk; the others follow it.
void Travels::gather(Travel& travel, std::byte* first, std::size_t chunk_bytes) const {
  const RankPlace& ranks = blueprint_.ranks;
  const auto part = [&](Transfer::Kind kind, int peer, const ChunkRange& range) {
    return ByteTransfer{kind, peer, 0, first + range.first * chunk_bytes,
                        range.count * chunk_bytes};
  };
  ByteRound& round = travel.rounds.emplace_back();
  for (int peer = 0; peer < ranks.ranks; ++peer) {
    if (peer == ranks.rank) continue;
    round.push_back(part(Transfer::Kind::send, peer, ranks.own()));
    round.push_back(
        part(Transfer::Kind::receive, peer, ranks.ranges[static_cast<std::size_t>(peer)]));
  }
}

// Data are the chunks' partials, one after the other, and the gathered sums.
void Travels::add_sums(Travel& travel, const Action& action, std::byte* const* data) const {
  const bool back = action.phase == Phase::exchange_gradient_sums;
  const NodeId node =
      meeting_after(blueprint_.segments[action.segment.value].train, action.part, back);
  const std::size_t bytes = partials_bytes(blueprint_, node);
  const ChunkRange& own = blueprint_.ranks.own();
  std::byte* const first = data[own.count] + gathered_offset(blueprint_, node, 0);
  for (std::size_t c = 0; c < own.count; ++c)
    std::memcpy(first + (own.first + c) * bytes, data[c] + blueprint_.partials_offset[node.value],
                bytes);
  gather(travel, first, bytes);
}

void Travels::add_group_sums(Travel& travel, const Action& action, std::byte* const* data) const {
  const std::size_t bytes = blueprint_.segments[action.segment.value].partials_bytes;
  const ChunkRange& own = blueprint_.ranks.own();
  std::byte* const first = data[own.count];
  for (std::size_t c = 0; c < own.count; ++c)
    std::memcpy(first + (own.first + c) * bytes, data[c], bytes);
  gather(travel, first, bytes);
}

Travels::Prepared Travels::results(Travel travel, Submission& submission) const {
  const RankPlace& ranks = blueprint_.ranks;
  const bool logits = submission.job == ListKind::evaluate;
  const auto classes = static_cast<std::size_t>(blueprint_.graph.classes());
  const auto layout_of = [&](const ChunkSpan& samples) {
    return ResultsLayout{static_cast<std::size_t>(samples.count), classes};
  };
  // By rank; the own one is sent, the others come in.
  const auto rooms =
      std::make_shared<std::vector<std::vector<std::byte>>>(static_cast<std::size_t>(ranks.ranks));
  StepResult& result = submission.result;
  ByteRound& round = travel.rounds.emplace_back();
  for (int rank = 0; rank < ranks.ranks; ++rank) {
    const ChunkSpan samples =
        samples_of(submission.batch_spans, ranks.ranges[static_cast<std::size_t>(rank)]);
    const ResultsLayout layout = layout_of(samples);
    std::vector<std::byte>& room = (*rooms)[static_cast<std::size_t>(rank)];
    if (rank != ranks.rank) {
      room.resize(layout.bytes(logits && ranks.rank == 0));
      round.push_back({Transfer::Kind::receive, rank, 0, room.data(), room.size()});
      continue;
    }
    room.resize(layout.bytes(logits));
    const ResultsHead head{submission.input.wishes, submission.failed ? 1u : 0u,
                           submission.input.computed_s};
    std::memcpy(room.data(), &head, sizeof head);
    std::byte* to = room.data() + sizeof head;
    copy_floats(to, result.losses.data() + samples.first, layout.samples);
    copy_floats(to, result.correct.data() + samples.first, layout.samples);
    if (logits) {
      copy_floats(to, result.labels.data() + samples.first, layout.samples);
      copy_floats(to, result.logits.data() + static_cast<std::size_t>(samples.first) * classes,
                  layout.samples * classes);
    }
    for (int peer = 0; peer < ranks.ranks; ++peer)
      if (peer != rank)
        round.push_back(
            {Transfer::Kind::send, peer, 0, room.data(), layout.bytes(logits && peer == 0)});
  }
  const auto finish = [this, rooms, layout_of, classes, logits, &submission, &result] {
    for (int rank = 0; rank < blueprint_.ranks.ranks; ++rank) {
      const std::vector<std::byte>& room = (*rooms)[static_cast<std::size_t>(rank)];
      ResultsHead head;
      std::memcpy(&head, room.data(), sizeof head);
      result.wishes |= head.wishes;
      result.computed_s.push_back(head.computed_s);
      if (head.failed)
        submission.fail(std::make_exception_ptr(NotFinite("the loss is no longer a number")));
      if (rank == blueprint_.ranks.rank) continue;
      const ChunkSpan samples = samples_of(submission.batch_spans,
                                           blueprint_.ranks.ranges[static_cast<std::size_t>(rank)]);
      const ResultsLayout layout = layout_of(samples);
      const std::byte* from = room.data() + sizeof head;
      take_floats(from, result.losses.data() + samples.first, layout.samples);
      take_floats(from, result.correct.data() + samples.first, layout.samples);
      if (logits && blueprint_.ranks.rank == 0) {
        take_floats(from, result.labels.data() + samples.first, layout.samples);
        take_floats(from, result.logits.data() + static_cast<std::size_t>(samples.first) * classes,
                    layout.samples * classes);
      }
    }
  };
  return {std::move(travel), finish};
}

}  // namespace regatta
