// Plays the exchanges of a step in simulated time: of every bucket's gradients, and of the sums
// where chunks of several ranks meet.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "sim/exchange.h"
#include "sim/world.h"

namespace regatta::sim {

// What an exchange needs of the world, to be known before it is made.
class ExchangeRoutes {
 public:
  // With `each` every message is played; without, the rounds are aggregated per link: everyone is
  // waited for, and a link carries a round's bytes as one piece.
  ExchangeRoutes(const Exchange& exchange, const Wiring& wiring, bool each,
                 std::vector<std::vector<int>>& world_routes);

  struct Send {
    int round = 0;  // times counted
    int to = 0;
    double share = 0;
    int route = -1;  // -1: stays in one memory
    double latency = 0;
  };
  struct Expected {
    int round = 0;
    int messages = 0;
  };
  struct Load {
    int route = 0;
    double share = 0;
  };
  struct Stage {  // a round with its times
    std::vector<Load> loads;
    double latency = 0;
  };

  bool each() const { return each_; }
  int ends() const { return static_cast<int>(sends_.size()); }
  const std::vector<Send>& sends(int end) const { return sends_[static_cast<std::size_t>(end)]; }
  const std::vector<Expected>& expected(int end) const {
    return expected_[static_cast<std::size_t>(end)];
  }
  const std::vector<Stage>& stages() const { return stages_; }
  // A wire that is not simulated: its traffic equals that of `route`, which stands for it.
  struct Alike {
    int wire = 0, route = 0;
  };
  const std::vector<Alike>& alike() const { return alike_; }
  // Traffic of all links together, as a multiple of a bucket's bytes.
  double total_share() const { return total_share_; }
  std::size_t messages() const { return messages_; }

 private:
  void take_messages(const Exchange& exchange, const Wiring& wiring,
                     std::vector<std::vector<int>>& world_routes);
  void take_stages(const Exchange& exchange, const Wiring& wiring,
                   std::vector<std::vector<int>>& world_routes);

  bool each_;
  std::vector<std::vector<Send>> sends_;
  std::vector<std::vector<Expected>> expected_;
  std::vector<Stage> stages_;
  std::vector<Alike> alike_;
  double total_share_ = 0;
  std::size_t messages_ = 0;
};

// One bucket of one step, or one meeting.
class BucketExchange {
 public:
  using Done = std::function<void(int rank)>;
  BucketExchange(World& world, const ExchangeRoutes& routes, int ranks, double bytes, Done done);

  // Everything after the first round waits for release(); `held` is called when it does.
  void hold(std::function<void()> held);
  void release();
  void ready(int rank);  // its gradients are complete

 private:
  struct End {
    bool ready = false;
    std::size_t next_send = 0, next_expected = 0;
    std::map<int, int> early;  // messages of later rounds, by round
    int missing = 0;           // of the round that is expected next
    int on_their_way = 0;      // of its own; all of one round
    int sent_round = 0;
  };
  void go_on(int end);
  void arrived(int end, int round);
  void delivered(int from, int to, int round);
  void stage(std::size_t number);

  World& world_;
  const ExchangeRoutes& routes_;
  int ranks_, waiting_;
  double bytes_;
  Done done_;
  std::function<void()> held_;  // none: nothing is held
  int holder_ = -1;             // the end, or the stage, that waits for release()
  std::vector<End> ends_;
};

}  // namespace regatta::sim
