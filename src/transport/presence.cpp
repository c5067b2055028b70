#include "transport/presence.h"

#include <pthread.h>

#include <algorithm>

namespace regatta {
namespace {

constexpr int presence_tag = 6;
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

void Presence::run() {
  ::pthread_setname_np(::pthread_self(), "presence");
  for (Peer& peer : peers_) listen(peer);
  Clock::time_point last_look = Clock::now(), last_beat{};
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, times_.beat / 5, [&] { return stops_; })) break;
    }
    const Clock::time_point now = Clock::now();
    const bool was_stopped = now - last_look > 2 * times_.beat;
    last_look = now;
    const bool beats = now - last_beat >= times_.beat;
    if (beats) last_beat = now;
    std::erase_if(peers_, [&](Peer& peer) {
      // If this process was stopped for a while, messages of the others wait: they get time to be
      // read before anybody counts as silent.
      if (was_stopped) peer.heard = std::max(peer.heard, now - times_.silence / 2);
      if (peer.in->done()) {
        if (*peer.word == goodbye) return true;
        peer.heard = now;
        listen(peer);
      }
      if (beats && (!peer.out || peer.out->done()))
        peer.out = transport_->send(peer.rank, presence_tag, bytes_of(here));
      return false;
    });
    const auto silent = std::ranges::find_if(
        peers_, [&](const Peer& peer) { return now - peer.heard > times_.silence; });
    if (silent == peers_.end()) continue;
    silent_(silent->rank);
    return;
  }
  say_goodbye();
}

void Presence::listen(Peer& peer) {
  peer.in = transport_->receive(peer.rank, presence_tag,
                                std::as_writable_bytes(std::span(peer.word.get(), 1)));
}

void Presence::say_goodbye() {
  for (Peer& peer : peers_) peer.out = transport_->send(peer.rank, presence_tag, bytes_of(goodbye));
  for (int tries = 0; tries < 100; ++tries) {
    if (std::ranges::all_of(peers_, [](const Peer& peer) { return peer.out->done(); })) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace regatta
