// Notices that another rank is dead, stopped or out of reach, also while this one waits for it
// outside of training: at the start, and when results are gathered.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "transport/transport.h"

namespace regatta {

struct PresenceTimes {
  std::chrono::milliseconds beat{1000};
  // Longer than the Communicator waits: during training it knows more to say.
  std::chrono::milliseconds silence{15000};
};

// A thread that tells all other ranks in every beat that this one is there. All ranks make one at
// about the same time. Its end, or part(), tells the others that this rank needs nobody any more.
class Presence {
 public:
  // `silent` is called by the thread, once for each rank that said nothing for so long. If it comes
  // back, that rank counts as lost from then on.
  Presence(std::shared_ptr<Transport> transport, std::function<void(int rank)> silent,
           const PresenceTimes& times = {});
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  bool lost(int rank) const;
  // Says goodbye, and waits until every other rank has said it too or is lost.
  void part();

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    int rank = 0;
    std::unique_ptr<char> word;        // what it says
    std::unique_ptr<Message> in, out;  // no `in`: it has said goodbye or is lost
    Clock::time_point heard;
  };

  void run();
  void look_at_peers();
  void listen(Peer& peer);
  void say_goodbye();

  const std::shared_ptr<Transport> transport_;
  const std::function<void(int)> silent_;
  const PresenceTimes times_;
  Clock::time_point last_look_ = Clock::now(), last_beat_{};
  std::vector<std::unique_ptr<Message>> goodbyes_;
  std::vector<Peer> peers_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::set<int> lost_;
  // part() was called; part() may return; the thread is to end.
  bool parts_ = false, parted_ = false, stops_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace regatta
