#include "transport/links.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>

#include "transport/collectives.h"

namespace regatta {
namespace {

constexpr int ping_tag = 2, pong_tag = 3;
constexpr std::size_t small = 1, large = std::size_t{256} << 10;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Without sleeping: a nap would be part of the latency.
void spin_for(Message& message) {
  while (!message.done()) {
  }
}

// Half the shortest of a few round trips with so many bytes; `there` answers.
double one_way(Transport& transport, int here, int there, std::size_t bytes, int times) {
  std::vector<std::byte> room(bytes);
  double best = 1e9;
  for (int i = 0; i < times; ++i) {
    if (transport.rank() == here) {
      const double begin = now();
      spin_for(*transport.send(there, ping_tag, room));
      spin_for(*transport.receive(there, pong_tag, room));
      best = std::min(best, (now() - begin) / 2);
    } else {
      spin_for(*transport.receive(here, ping_tag, room));
      spin_for(*transport.send(here, pong_tag, room));
    }
  }
  return best;
}

}  // namespace

std::vector<std::vector<MeasuredLink>> measure_links(Transport& transport) {
  const auto size = static_cast<std::size_t>(transport.size());
  std::vector<std::vector<MeasuredLink>> links(size, std::vector<MeasuredLink>(size));
  std::ostringstream own;  // what this rank measured to those after it
  for (int here = 0; here < transport.size(); ++here) {
    for (int there = here + 1; there < transport.size(); ++there) {
      if (transport.rank() != here && transport.rank() != there) continue;
      const double latency = one_way(transport, here, there, small, 5);
      const double transfer = one_way(transport, here, there, large, 2);
      if (transport.rank() == here)
        own << latency << " " << static_cast<double>(large) / std::max(transfer - latency, 1e-9)
            << " ";
    }
    gather_texts(transport, "");  // one pair at a time
  }
  const std::vector<std::string> all = gather_texts(transport, own.str());
  for (std::size_t here = 0; here < size; ++here) {
    std::istringstream numbers(all[here]);
    for (std::size_t there = here + 1; there < size; ++there) {
      MeasuredLink& link = links[here][there];
      numbers >> link.latency >> link.bandwidth;
      links[there][here] = link;
    }
  }
  return links;
}

}  // namespace regatta
