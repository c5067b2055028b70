#include "transport/presence.h"

#include <pthread.h>

#include <algorithm>

namespace regatta {
namespace {

constexpr int presence_tag = 6;
// Between two looks while somebody waits in part().
constexpr std::chrono::milliseconds parting_pause{2};
constexpr char here = 'h', goodbye = 'g';

std::span<const std::byte> bytes_of(const char& word) { return std::as_bytes(std::span(&word, 1)); }

}  // namespace

Presence::Presence(std::shared_ptr<Transport> transport, std::function<void(int)> silent,
                   const PresenceTimes& times)
    : transport_(std::move(transport)), silent_(std::move(silent)), times_(times) {
  for (int rank = 0; rank < transport_->size(); ++rank)
    if (rank != transport_->rank())
      peers_.push_back({rank, std::make_unique<char>(here), nullptr, nullptr, Clock::now()});
  thread_ = std::thread([this] { run(); });
}

Presence::~Presence() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool Presence::lost(int rank) const {
  const std::lock_guard lock(mutex_);
  return lost_.contains(rank);
}

void Presence::part() {
  std::unique_lock lock(mutex_);
  parts_ = true;
  wake_.notify_all();
  wake_.wait(lock, [&] { return parted_; });
}

void Presence::run() {
  ::pthread_setname_np(::pthread_self(), "presence");
  for (Peer& peer : peers_) listen(peer);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      parted_ = !goodbyes_.empty() &&
                std::ranges::none_of(peers_, [](const Peer& peer) { return peer.in != nullptr; });
      if (parted_) wake_.notify_all();
      wake_.wait_for(lock, parts_ && !parted_ ? parting_pause : times_.beat / 5,
                     [&] { return stops_ || (parts_ && goodbyes_.empty()); });
      if (stops_) break;
    }
    look_at_peers();
  }
  say_goodbye();
  for (int tries = 0; tries < 100; ++tries) {
    if (std::ranges::all_of(goodbyes_, [](const auto& each) { return each->done(); })) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Presence::look_at_peers() {
  const Clock::time_point now = Clock::now();
  const bool was_stopped = now - last_look_ > 2 * times_.beat;
  last_look_ = now;
  bool parts = false;
  {
    const std::lock_guard lock(mutex_);
    parts = parts_;
  }
  if (parts) say_goodbye();
  const bool beats = !parts && now - last_beat_ >= times_.beat;
  if (beats) last_beat_ = now;
  for (Peer& peer : peers_) {
    // Also to ranks that have said goodbye: they wait in part() until this one says it too.
    if (beats && !lost(peer.rank) && (!peer.out || peer.out->done()))
      peer.out = transport_->send(peer.rank, presence_tag, bytes_of(here));
    if (!peer.in) continue;
    // If this process was stopped for a while, messages of the others wait: they get time to be
    // read before anybody counts as silent.
    if (was_stopped) peer.heard = std::max(peer.heard, now - times_.silence / 2);
    if (peer.in->done()) {
      peer.heard = now;
      if (*peer.word == goodbye)
        peer.in.reset();
      else
        listen(peer);
    } else if (now - peer.heard > times_.silence) {
      silent_(peer.rank);
      peer.in.reset();
      const std::lock_guard lock(mutex_);
      lost_.insert(peer.rank);
    }
  }
}

void Presence::listen(Peer& peer) {
  peer.in = transport_->receive(peer.rank, presence_tag,
                                std::as_writable_bytes(std::span(peer.word.get(), 1)));
}

// Once, to all that may still listen.
void Presence::say_goodbye() {
  if (!goodbyes_.empty()) return;
  for (int rank = 0; rank < transport_->size(); ++rank)
    if (rank != transport_->rank())
      goodbyes_.push_back(transport_->send(rank, presence_tag, bytes_of(goodbye)));
}

}  // namespace regatta
