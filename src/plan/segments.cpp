#include "plan/segments.h"

#include <charconv>

#include "base/error.h"
#include "graph/op.h"

namespace regatta {
namespace {

std::vector<Segment> between(const Graph& graph, const std::vector<std::uint32_t>& starts) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : graph.nodes().size();
    segments.push_back({NodeId{starts[i]}, NodeId{static_cast<std::uint32_t>(end - 1)}});
  }
  return segments;
}

// Whether the value before `id` is the only one that `id` and its successors read from earlier.
bool single_thread_before(const Graph& graph, NodeId id) {
  for (std::uint32_t earlier = 0; earlier + 1 < id.value; ++earlier)
    for (const NodeId user : graph.users(NodeId{earlier}))
      if (user >= id) return false;
  return true;
}

std::vector<std::uint32_t> block_starts(const Graph& graph) {
  std::vector<std::uint32_t> starts{0};
  bool computed = false;  // the current block already holds a convolution or dense layer
  for (const Node& node : graph.nodes()) {
    const bool heavy = node.op->name == "conv" || node.op->name == "dense";
    if (heavy && computed && single_thread_before(graph, node.id)) {
      starts.push_back(node.id.value);
      computed = false;
    }
    computed = computed || heavy;
  }
  return starts;
}

std::vector<std::uint32_t> balanced_starts(const Graph& graph, std::size_t count) {
  std::vector<double> work;
  double total = 0;
  for (const Node& node : graph.nodes()) {
    const Cost cost = node.op->cost(node, input_shapes(graph, node));
    work.push_back(cost.forward_flops + cost.backward_flops);
    total += work.back();
  }
  std::vector<std::uint32_t> starts{0};
  double before = 0;
  for (std::uint32_t id = 1; id < graph.nodes().size() && starts.size() < count; ++id) {
    before += work[id - 1];
    const bool share_done = before >= total * double(starts.size()) / double(count);
    const bool just_enough_left = graph.nodes().size() - id == count - starts.size();
    if (share_done || just_enough_left) starts.push_back(id);
  }
  return starts;
}

}  // namespace

std::vector<Segment> segments_named(const Graph& graph, const std::string& choice) {
  if (choice == "step") return between(graph, {0});
  if (choice == "block") return between(graph, block_starts(graph));
  const std::size_t most = graph.nodes().size();
  if (choice == "op") return between(graph, balanced_starts(graph, most));
  std::size_t count = 0;
  const auto [stop, code] = std::from_chars(choice.data(), choice.data() + choice.size(), count);
  if (code != std::errc{} || stop != choice.data() + choice.size() || count < 1 || count > most)
    throw InputError("--segments " + choice + ": use op, block, step or a number from 1 to " +
                     std::to_string(most));
  return between(graph, balanced_starts(graph, count));
}

void mark_recomputed(std::vector<Segment>& segments, const std::optional<std::string>& choice) {
  if (!choice || *choice == "auto") return;
  const auto fail = [&](const std::string& why) {
    throw InputError("--recompute " + *choice + ": " + why);
  };
  const std::size_t count = segments.size() - 1;  // segments that may be computed again
  if (count == 0) fail("the plan has one segment; cut it by --segments block or a number");
  if (*choice == "all") {
    for (std::size_t s = 0; s < count; ++s) segments[s].recomputed = true;
    return;
  }
  const char *at = choice->data(), *const end = at + choice->size();
  const auto number = [&] {
    std::size_t value = 0;
    const auto [stop, code] = std::from_chars(at, end, value);
    if (code != std::errc{}) fail("use auto, all, or segments counted from 0, such as 0-3,7");
    if (value >= count)
      fail("its segments are counted from 0 to " + std::to_string(count) +
           ", and the last one's backward follows its forward at once");
    at = stop;
    return value;
  };
  for (;;) {
    const std::size_t first = number();
    std::size_t last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number();
      if (last < first) fail("a range goes up, such as 0-3");
    }
    for (std::size_t s = first; s <= last; ++s) segments[s].recomputed = true;
    if (at == end) return;
    if (*at++ != ',') fail("use auto, all, or segments counted from 0, such as 0-3,7");
  }
}

}  // namespace regatta
