#include "exec/communicator.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "exec/executor.h"

namespace regatta {
namespace {

constexpr auto pause = std::chrono::microseconds(100), short_pause = std::chrono::microseconds(20);
constexpr auto beat_interval = std::chrono::seconds(1);
// A cable that is out for 3 s is survived by TCP; a rank that says nothing for so long is dead.
constexpr auto longest_silence = std::chrono::seconds(10);
constexpr auto watch_interval = std::chrono::milliseconds(20);
constexpr int control_tag = first_free_tag - 1;
constexpr std::size_t longest_word = 1024;

// Adds terms in the given order; `sum` is one of them or takes the result.
void add_in_order(std::span<const float* const> terms, float* sum, std::size_t count) {
  constexpr std::size_t piece = 2048;
  std::array<float, piece> total;
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t length = std::min(piece, count - begin);
    std::copy_n(terms[0] + begin, length, total.data());
    for (const float* term : terms.subspan(1))
      for (std::size_t i = 0; i < length; ++i) total[i] += term[begin + i];
    std::copy_n(total.data(), length, sum + begin);
  }
}

// As in workers: sums must not depend on which thread adds.
void flush_denormals() {
  constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
  _mm_setcsr(_mm_getcsr() | flush_to_zero | denormals_are_zero);
}

// Asks Linux (from 6.12 on) for short time slices. A thread that wakes with shorter slices than the
// one that runs on its CPU, such as a worker, preempts it; otherwise it waits for the end of that
// slice, some milliseconds. Older kernels ignore this.
void ask_for_short_slices() {
  // The fields of the kernel's struct sched_attr, under another name: newer C libraries define it.
  struct {
    std::uint32_t size = 48, policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = ::getpriority(PRIO_PROCESS, 0);
    std::uint32_t priority = 0;
    std::uint64_t runtime = 100'000, deadline = 0, period = 0;  // nanoseconds
  } attributes;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Transport> transport, std::vector<std::string> names,
                           int most_messages, int numbers, bool spare_cpu)
    : transport_(std::move(transport)),
      names_(std::move(names)),
      most_messages_(most_messages),
      spare_cpu_(spare_cpu) {
  if (std::int64_t{first_free_tag} + std::int64_t{most_messages} * numbers >
      transport_->largest_tag())
    throw InputError("MPI here has tags up to " + std::to_string(transport_->largest_tag()) +
                     " only, too few for this plan; larger buckets need fewer");
  for (int rank = 0; rank < transport_->size(); ++rank)
    if (rank != transport_->rank())
      peers_.push_back({rank, std::vector<char>(longest_word), nullptr, nullptr, Clock::now()});
  thread_ = std::thread([this] { run(); });
}

Communicator::~Communicator() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_one();
  thread_.join();
  for (Peer& peer : peers_) {
    peer.in.reset();
    peer.out.reset();
    transport_->leave(std::make_shared<const std::vector<char>>(std::move(peer.room)));
  }
  transport_->leave(last_word_);
}

void Communicator::start(Travel travel) {
  {
    const std::lock_guard lock(mutex_);
    started_.push_back(std::move(travel));
  }
  wake_.notify_one();
}

void Communicator::give_up(const std::string& why) noexcept try {
  std::unique_lock lock(mutex_);
  if (speaks_ || failure_) return;
  last_word_ = std::make_shared<const std::string>(why.empty() ? "it ended early"
                                                               : why.substr(0, longest_word - 1));
  speaks_ = true;
  wake_.notify_all();
  wake_.wait_for(lock, std::chrono::seconds(1), [&] { return spoken_; });
} catch (...) {  // the process is about to end anyway
}

int Communicator::tag_of(const Travel& travel, int message) const {
  return first_free_tag + travel.number * most_messages_ + message;
}

void Communicator::run() {
  ::pthread_setname_np(::pthread_self(), "communicator");
  flush_denormals();
  ::prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds: short sleeps are to be short
  ask_for_short_slices();
  for (Peer& peer : peers_)
    peer.in =
        transport_->receive(peer.rank, control_tag, std::as_writable_bytes(std::span(peer.room)));
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, watch_interval, [&] { return !idle() || stops_ || speaks(); });
      if (stops_ && idle()) break;
      if (flights_.empty() && !started_.empty()) waits_since_ = Clock::now();
      for (Travel& travel : started_) {
        const auto place = std::ranges::find_if(
            flights_, [&](const Flight& each) { return each.travel.urgency < travel.urgency; });
        flights_.insert(place, {std::move(travel), 0, {}, {}, {}});
      }
      started_.clear();
    }
    bool happened = true;
    try {
      happened = look();
    } catch (...) {
      fail(std::current_exception());
    }
    watch_peers();
    if (!happened && !flights_.empty()) pause_after_look();
  }
}

void Communicator::pause_after_look() const {
  const bool hurries =
      std::ranges::any_of(flights_, [](const Flight& each) { return each.travel.spins; });
  if (hurries && spare_cpu_)
    __builtin_ia32_pause();
  else
    std::this_thread::sleep_for(hurries ? short_pause : pause);
}

bool Communicator::look() {
  bool happened = false;
  for (auto each = flights_.begin(); each != flights_.end();) {
    if (!failure_ && !look(*each)) {
      ++each;
      continue;
    }
    happened = true;
    const bool over = failure_ != nullptr || each->round == each->travel.rounds.size();
    if (!over) continue;  // the next round has begun: look at it at once
    const auto done = each->travel.done;
    if (failure_) leave(std::move(*each));
    each = flights_.erase(each);
    done(failure_);
  }
  return happened;
}

// Messages that a failure has cut short may still use what belongs to the flight, also what `done`
// holds.
void Communicator::leave(Flight flight) {
  flight.messages.clear();
  transport_->leave(std::make_shared<const Flight>(std::move(flight)));
}

// Whether a round has ended.
bool Communicator::look(Flight& flight) {
  if (flight.travel.rounds.empty() && flight.travel.sum.empty()) return true;
  if (flight.messages.empty()) begin_round(flight);
  // All are asked, so that all advance.
  bool done = true;
  for (std::unique_ptr<Message>& message : flight.messages) {
    if (!message) continue;
    if (message->done())
      message.reset();
    else
      done = false;
  }
  if (!done) return false;
  if (flight.travel.sum.empty()) {
    end_round(flight);
    ++flight.round;
  }
  flight.messages.clear();
  flight.terms.clear();
  flight.rounded.clear();
  return true;
}

void Communicator::begin_round(Flight& flight) {
  if (!flight.travel.sum.empty()) {
    flight.messages.push_back(transport_->sum(flight.travel.channel, flight.travel.sum));
    if (!flight.messages.back()) throw Error("internal: this transport adds nothing by itself");
    return;
  }
  const ByteRound& round = flight.travel.rounds[flight.round];
  flight.terms.resize(round.size());
  flight.rounded.resize(round.size());
  // Receives first: what arrives then has a place to go.
  for (std::size_t i = 0; i < round.size(); ++i)
    if (round[i].kind != Transfer::Kind::send)
      flight.messages.push_back(transport_->receive(
          round[i].peer, tag_of(flight.travel, round[i].message), room_for(flight, i)));
  for (std::size_t i = 0; i < round.size(); ++i)
    if (round[i].kind == Transfer::Kind::send)
      flight.messages.push_back(transport_->send(
          round[i].peer, tag_of(flight.travel, round[i].message), content_of(flight, i)));
}

// Where a transfer of the round under way that receives puts what arrives.
std::span<std::byte> Communicator::room_for(Flight& flight, std::size_t transfer) {
  const ByteTransfer& each = flight.travel.rounds[flight.round][transfer];
  if (flight.travel.as_bf16) {
    flight.rounded[transfer].resize(each.bytes / sizeof(float));
    return std::as_writable_bytes(std::span(flight.rounded[transfer]));
  }
  if (each.kind == Transfer::Kind::receive) return {each.data, each.bytes};
  flight.terms[transfer].resize(each.bytes / sizeof(float));
  return std::as_writable_bytes(std::span(flight.terms[transfer]));
}

// What a transfer of the round under way sends.
std::span<const std::byte> Communicator::content_of(Flight& flight, std::size_t transfer) {
  const ByteRound& round = flight.travel.rounds[flight.round];
  const ByteTransfer& each = round[transfer];
  if (!flight.travel.as_bf16) return {each.data, each.bytes};
  // Several peers get one copy.
  std::size_t same = 0;
  while (round[same].kind != Transfer::Kind::send || round[same].data != each.data ||
         round[same].bytes != each.bytes)
    ++same;
  std::vector<cpu::Bfloat16>& rounded = flight.rounded[same];
  if (rounded.empty()) {
    auto* values = reinterpret_cast<float*>(each.data);
    rounded.resize(each.bytes / sizeof(float));
    cpu::narrow(values, rounded.data(), rounded.size());
    cpu::widen(rounded.data(), values, rounded.size());
  }
  return std::as_bytes(std::span(rounded));
}

// Puts what came as bf16 in its place. Terms are added in the order of ranks, so that all who add
// the same get the same bits.
void Communicator::end_round(Flight& flight) const {
  const ByteRound& round = flight.travel.rounds[flight.round];
  std::vector<std::pair<int, const float*>> terms;
  const ByteTransfer* target = nullptr;
  for (std::size_t i = 0; i < round.size(); ++i) {
    const ByteTransfer& each = round[i];
    if (each.kind == Transfer::Kind::send) continue;
    const bool adds = each.kind == Transfer::Kind::add;
    if (const std::vector<cpu::Bfloat16>& rounded = flight.rounded[i]; flight.travel.as_bf16) {
      if (adds) flight.terms[i].resize(rounded.size());
      cpu::widen(rounded.data(),
                 adds ? flight.terms[i].data() : reinterpret_cast<float*>(each.data),
                 rounded.size());
    }
    if (!adds) continue;
    target = &each;
    terms.emplace_back(each.peer, flight.terms[i].data());
  }
  if (!target) return;
  auto* own = reinterpret_cast<float*>(target->data);
  terms.emplace_back(transport_->rank(), own);
  std::ranges::sort(terms);
  std::vector<const float*> ordered;
  for (const auto& [rank, values] : terms) ordered.push_back(values);
  add_in_order(ordered, own, target->bytes / sizeof(float));
}

void Communicator::watch_peers() {
  const Clock::time_point now = Clock::now();
  std::unique_lock lock(mutex_);
  const bool speaks = this->speaks();  // from then on last_word_ stays as it is
  lock.unlock();
  if (!speaks && now - last_watch_ < watch_interval) return;
  const bool was_away = last_watch_ != Clock::time_point{} && now - last_watch_ > beat_interval;
  last_watch_ = now;
  const bool beats = now - last_beat_ >= beat_interval;
  if (beats) last_beat_ = now;
  for (Peer& peer : peers_) {
    // A rank that was stopped for a while must first hear what came meanwhile.
    if (was_away) peer.heard = std::max(peer.heard, now - longest_silence / 2);
    if (peer.in && peer.in->done()) hear(peer);
    if (peer.out && peer.out->done()) peer.out.reset();
    if (speaks || (beats && !peer.out)) {
      static constexpr char alive = '\0';
      peer.out = transport_->send(
          peer.rank, control_tag,
          speaks ? std::as_bytes(std::span(last_word_->c_str(), last_word_->size() + 1))
                 : std::as_bytes(std::span(&alive, 1)));
      if (speaks)
        for (int tries = 0; tries < 100 && !peer.out->done(); ++tries)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // Silence counts only while something is waited for: a rank may take long to start.
    if (!flights_.empty() && now - std::max(peer.heard, waits_since_) > longest_silence)
      fail(std::make_exception_ptr(RankSilent(names_[static_cast<std::size_t>(peer.rank)] +
                                              " has been silent for " +
                                              std::to_string(longest_silence.count()) + " s")));
  }
  if (!speaks) return;
  fail(std::make_exception_ptr(RankFailed("this rank gave up")));
  lock.lock();
  spoken_ = true;
  lock.unlock();
  wake_.notify_all();
}

void Communicator::hear(Peer& peer) {
  peer.heard = Clock::now();
  const std::string word(peer.room.data(), ::strnlen(peer.room.data(), peer.room.size()));
  if (!word.empty()) {
    fail(std::make_exception_ptr(
        RankFailed(names_[static_cast<std::size_t>(peer.rank)] + " failed: " + word)));
    peer.in.reset();
    return;
  }
  peer.in =
      transport_->receive(peer.rank, control_tag, std::as_writable_bytes(std::span(peer.room)));
}

void Communicator::fail(std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(why);
}

}  // namespace regatta
