#include "sim/exchanger.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace regatta::sim {

ExchangeRoutes::ExchangeRoutes(const Exchange& exchange, const Wiring& wiring, bool each,
                               std::vector<std::vector<int>>& world_routes)
    : each_(each), sends_(exchange.ends.size()), expected_(exchange.ends.size()) {
  for (const Round& round : exchange.rounds)
    for (const Message& message : round.messages) {
      total_share_ += message.share * round.times;
      messages_ += static_cast<std::size_t>(round.times);
    }
  if (each)
    take_messages(exchange, wiring, world_routes);
  else
    take_stages(exchange, wiring, world_routes);
}

void ExchangeRoutes::take_messages(const Exchange& exchange, const Wiring& wiring,
                                   std::vector<std::vector<int>>& world_routes) {
  std::map<std::pair<int, int>, std::pair<int, double>> known;  // by ends: route and latency
  const auto route_of = [&](int from, int to) {
    const auto [found, fresh] = known.try_emplace({from, to}, -1, 0.0);
    if (fresh) {
      std::vector<int> way = wiring.route(exchange.ends[static_cast<std::size_t>(from)],
                                          exchange.ends[static_cast<std::size_t>(to)]);
      found->second.second = wiring.latency(way);
      if (!way.empty()) {
        found->second.first = static_cast<int>(world_routes.size());
        world_routes.push_back(std::move(way));
      }
    }
    return found->second;
  };
  int number = 0;
  for (const Round& round : exchange.rounds) {
    for (int time = 0; time < round.times; ++time, ++number) {
      for (const Message& message : round.messages) {
        const auto [route, latency] = route_of(message.from, message.to);
        sends_[static_cast<std::size_t>(message.from)].push_back(
            {number, message.to, message.share, route, latency});
        std::vector<Expected>& expected = expected_[static_cast<std::size_t>(message.to)];
        if (expected.empty() || expected.back().round != number) expected.push_back({number, 0});
        ++expected.back().messages;
      }
    }
  }
}

// Links of one bandwidth that carry the same in every round are played as one: all exchanges of a
// step use them alike, so they would all be done at the same time.
void ExchangeRoutes::take_stages(const Exchange& exchange, const Wiring& wiring,
                                 std::vector<std::vector<int>>& world_routes) {
  std::map<int, std::vector<double>> shares;  // by wire, then round
  const std::size_t rounds = exchange.rounds.size();
  stages_.resize(rounds);
  for (std::size_t r = 0; r < rounds; ++r) {
    const Round& round = exchange.rounds[r];
    for (const Message& message : round.messages) {
      const std::vector<int> way =
          wiring.route(exchange.ends[static_cast<std::size_t>(message.from)],
                       exchange.ends[static_cast<std::size_t>(message.to)]);
      stages_[r].latency = std::max(stages_[r].latency, wiring.latency(way) * round.times);
      for (const int wire : way) {
        std::vector<double>& mine = shares[wire];
        mine.resize(rounds);
        mine[r] += message.share * round.times;
      }
    }
  }
  std::map<std::pair<double, std::vector<double>>, int> played;  // the route
  for (const auto& [wire, share] : shares) {
    const auto [found, fresh] =
        played.try_emplace({wiring.wires()[static_cast<std::size_t>(wire)].bandwidth, share},
                           static_cast<int>(world_routes.size()));
    if (!fresh) {
      alike_.push_back({wire, found->second});
      continue;
    }
    for (std::size_t r = 0; r < rounds; ++r)
      if (share[r] > 0) stages_[r].loads.push_back({found->second, share[r]});
    world_routes.push_back({wire});
  }
}

BucketExchange::BucketExchange(World& world, const ExchangeRoutes& routes, int ranks, double bytes,
                               Done done)
    : world_(world),
      routes_(routes),
      ranks_(ranks),
      waiting_(ranks),
      bytes_(bytes),
      done_(std::move(done)) {
  if (!routes.each()) return;
  ends_.resize(static_cast<std::size_t>(routes.ends()));
  for (int end = 0; end < routes.ends(); ++end) {
    End& state = ends_[static_cast<std::size_t>(end)];
    state.ready = end >= ranks;  // a server has no gradients of its own
    if (!routes.expected(end).empty()) state.missing = routes.expected(end).front().messages;
  }
}

void BucketExchange::hold(std::function<void()> held) { held_ = std::move(held); }

void BucketExchange::release() {
  held_ = nullptr;
  const int holder = std::exchange(holder_, -1);
  if (holder < 0) return;
  if (routes_.each())
    go_on(holder);
  else
    stage(static_cast<std::size_t>(holder));
}

void BucketExchange::ready(int rank) {
  if (routes_.each()) {
    ends_[static_cast<std::size_t>(rank)].ready = true;
    go_on(rank);
  } else if (--waiting_ == 0) {
    stage(0);
  }
}

// Sends what an end has got together by now, one round after the other: two of its own messages on
// one link would only delay the first.
void BucketExchange::go_on(int end) {
  End& state = ends_[static_cast<std::size_t>(end)];
  if (!state.ready) return;
  const std::vector<ExchangeRoutes::Expected>& expected = routes_.expected(end);
  const int complete = state.next_expected < expected.size() ? expected[state.next_expected].round
                                                             : std::numeric_limits<int>::max();
  const std::vector<ExchangeRoutes::Send>& sends = routes_.sends(end);
  for (; state.next_send < sends.size() && sends[state.next_send].round <= complete;
       ++state.next_send) {
    const ExchangeRoutes::Send& send = sends[state.next_send];
    if (state.on_their_way > 0 && send.round != state.sent_round) break;
    if (held_ && send.round > 0) {
      if (holder_ != end) {
        holder_ = end;
        held_();
      }
      break;
    }
    ++state.on_their_way;
    state.sent_round = send.round;
    const auto arrive = [this, end, to = send.to, round = send.round] {
      delivered(end, to, round);
    };
    if (send.route < 0)
      world_.later(0, arrive);
    else
      world_.send(send.route, send.share * bytes_, arrive, send.latency);
  }
  if (state.next_expected == expected.size() && end < ranks_) {
    state.next_expected = expected.size() + 1;  // told once
    done_(end);
  }
}

void BucketExchange::delivered(int from, int to, int round) {
  --ends_[static_cast<std::size_t>(from)].on_their_way;
  arrived(to, round);
  go_on(from);
}

void BucketExchange::arrived(int end, int round) {
  End& state = ends_[static_cast<std::size_t>(end)];
  const std::vector<ExchangeRoutes::Expected>& expected = routes_.expected(end);
  if (round == expected[state.next_expected].round)
    --state.missing;
  else
    ++state.early[round];
  while (state.missing == 0 && state.next_expected < expected.size()) {
    if (++state.next_expected == expected.size()) break;
    const ExchangeRoutes::Expected& next = expected[state.next_expected];
    state.missing = next.messages;
    if (const auto early = state.early.find(next.round); early != state.early.end()) {
      state.missing -= early->second;
      state.early.erase(early);
    }
  }
  go_on(end);
}

void BucketExchange::stage(std::size_t number) {
  if (number == routes_.stages().size()) {
    for (int rank = 0; rank < ranks_; ++rank) done_(rank);
    return;
  }
  if (held_ && number > 0) {
    holder_ = static_cast<int>(number);
    return held_();
  }
  const ExchangeRoutes::Stage& stage = routes_.stages()[number];
  if (stage.loads.empty())
    return world_.later(stage.latency, [this, number] { this->stage(number + 1); });
  const auto left = std::make_shared<std::size_t>(stage.loads.size());
  const auto arrive = [this, left, number] {
    if (--*left == 0) this->stage(number + 1);
  };
  for (const ExchangeRoutes::Load& load : stage.loads)
    world_.send(load.route, load.share * bytes_, arrive, stage.latency);
}

}  // namespace regatta::sim
