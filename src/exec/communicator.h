// The thread of a rank that sends and receives. It looks at all messages on their way, then sleeps
// for 100 us. While chunks wait at a meeting point it looks without sleeping if a CPU is left for
// it, and else sleeps for 20 us: a thread that spins beside a busy worker gets its turn after
// milliseconds, one that sleeps is let in when it wakes. No worker waits for a message: what
// travels is handed over here, and gates open when it has arrived.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/bfloat16.h"
#include "tasks/exchange_rounds.h"
#include "transport/transport.h"

namespace regatta {

// A transfer of bytes in memory.
struct ByteTransfer {
  Transfer::Kind kind = Transfer::Kind::send;
  int peer = 0;
  int message = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // floats, if they are added
};
using ByteRound = std::vector<ByteTransfer>;

// One exchange of a rank with others. Rounds follow each other.
struct Travel {
  int number = 0;      // the same on all ranks; no two on their way have the same
  int urgency = 0;     // higher ones are looked at first
  bool spins = false;  // chunks of this rank wait for it
  std::vector<ByteRound> rounds;
  // The bytes are floats that travel as bf16. What is sent is rounded to nearest even, in this
  // rank's memory too: then ranks that keep what they have sent have what the others got.
  bool as_bf16 = false;
  std::span<float> sum = {};  // if not empty, MPI's own all-reduce, on channel `channel`
  int channel = 0;
  std::function<void(std::exception_ptr failure)> done;  // called once, by this thread
};

class Communicator {
 public:
  // `most_messages` of a travel, `numbers` of travels. Ranks by name in messages.
  Communicator(std::shared_ptr<Transport> transport, std::vector<std::string> names,
               int most_messages, int numbers, bool spare_cpu = false);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void start(Travel travel);  // by any thread; never waits
  // All other ranks fail with RankFailed. Waits a little until they have been told.
  void give_up(const std::string& why) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  // Messages of the round under way.
  struct Flight {
    Travel travel;
    std::size_t round = 0;
    // By transfer of the round: what is to be added, and what travels as bf16.
    std::vector<std::vector<float>> terms;
    std::vector<std::vector<cpu::Bfloat16>> rounded;
    std::vector<std::unique_ptr<Message>> messages;  // last: it uses all of the above
  };
  // The control messages between this rank and one other: a heartbeat, or why it failed.
  struct Peer {
    int rank = 0;
    std::vector<char> room;
    std::unique_ptr<Message> in, out;
    Clock::time_point heard;
  };

  void run();
  bool look();  // whether anything happened
  bool look(Flight& flight);
  void begin_round(Flight& flight);
  static std::span<std::byte> room_for(Flight& flight, std::size_t transfer);
  static std::span<const std::byte> content_of(Flight& flight, std::size_t transfer);
  void end_round(Flight& flight) const;
  bool idle() const { return flights_.empty() && started_.empty(); }
  bool speaks() const { return speaks_ && !spoken_; }
  void pause_after_look() const;
  void watch_peers();
  void hear(Peer& peer);
  void fail(std::exception_ptr why);
  void leave(Flight flight);
  int tag_of(const Travel& travel, int message) const;

  const std::shared_ptr<Transport> transport_;
  const std::vector<std::string> names_;
  const int most_messages_;
  const bool spare_cpu_;
  std::list<Flight> flights_;
  std::vector<Peer> peers_;
  Clock::time_point waits_since_{};  // there has been something in flights_ since then
  Clock::time_point last_beat_ = Clock::now(), last_watch_{};
  std::exception_ptr failure_;  // why nothing travels any more

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Travel> started_;
  std::shared_ptr<const std::string> last_word_;  // to be told to all
  bool speaks_ = false, spoken_ = false, stops_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace regatta
