#include "tickets/prune.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"

namespace regatta::tickets {
namespace {

constexpr std::array<std::string_view, 3> scope_names{"global", "layer", "channel"};
constexpr std::array<std::string_view, 3> criterion_names{"magnitude", "magnitude-increase",
                                                          "random"};

template <class Enum>
Enum named(std::span<const std::string_view> names, std::string_view name, const char* flag) {
  if (const auto found = std::ranges::find(names, name); found != names.end())
    return static_cast<Enum>(found - names.begin());
  std::string known;
  for (const std::string_view each : names)
    known += (known.empty() ? "" : each == names.back() ? " or " : ", ") + std::string(each);
  throw InputError(std::string(flag) + " '" + std::string(name) + "' is unknown: use " + known);
}

// Maps floats to numbers that have the opposite order: the highest score comes first.
std::uint32_t descending(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score);
  const std::uint32_t ascending = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
  return ~ascending;
}

// Something that stays or goes as a whole, a weight or a channel: by rank, then by place, so that
// no two are equal.
using Candidate = std::uint64_t;
Candidate candidate(std::uint32_t rank, std::size_t place) {
  return std::uint64_t{rank} << 32 | static_cast<std::uint32_t>(place);
}
std::size_t place_of(Candidate candidate) { return candidate & 0xffffffffU; }

std::size_t rounded(double keep, std::size_t count) {
  return static_cast<std::size_t>(std::llround(keep * static_cast<double>(count)));
}

// The best `count` of them; all, if there are fewer.
std::vector<Candidate> best(std::vector<Candidate> candidates, std::size_t count) {
  if (count >= candidates.size()) return candidates;
  std::ranges::nth_element(candidates, candidates.begin() + static_cast<std::ptrdiff_t>(count));
  candidates.resize(count);
  return candidates;
}

class Pruning {
 public:
  Pruning(const Graph& graph, const Weights& weights, const PruneOptions& options)
      : weights_(weights), options_(options), mask_(whole_mask(graph)) {
    if (options.by == Criterion::magnitude_increase && !options.initial)
      throw Error("pruning by magnitude increase needs the initial weights");
    if (options.previous) require_fit(*options.previous, graph, "of the previous level");
  }

  Mask run() {
    if (!(options_.keep > 0 && options_.keep <= 1)) refuse("use a part above 0, at most 1");
    switch (options_.scope) {
      case Scope::global:
        prune_all_together();
        break;
      case Scope::layer:
        for (MaskTensor& tensor : mask_.tensors) prune_tensor(tensor);
        break;
      case Scope::channel:
        prune_channels();
        break;
    }
    return std::move(mask_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    std::ostringstream text;
    text << "--keep " << options_.keep << ": " << why;
    throw InputError(text.str());
  }

  std::span<const float> values(const Weights& weights, const MaskTensor& tensor) const {
    const auto found = weights.find(tensor.name);
    if (found == weights.end() || std::ssize(found->second) != tensor.count())
      throw Error("pruning lacks the weights '" + tensor.name + "'");
    return found->second;
  }

  const MaskTensor* previous_of(const MaskTensor& tensor) const {
    return options_.previous ? options_.previous->find(tensor.name) : nullptr;
  }

  // The ranks of a tensor's pieces of `size` weights each: 1 is a weight, more a channel, whose
  // magnitude is its norm.
  std::vector<std::uint32_t> ranks(const MaskTensor& tensor, std::size_t size) const {
    const std::span<const float> now = values(weights_, tensor);
    std::vector<std::uint32_t> ranks(now.size() / size);
    if (options_.by == Criterion::random) {
      const std::uint64_t key = random_key(options_.seed, stream_of("prune " + tensor.name));
      for (std::size_t i = 0; i < ranks.size(); ++i)
        ranks[i] = static_cast<std::uint32_t>(keyed_bits(key, i) >> 32);
      return ranks;
    }
    const auto magnitude = [size](std::span<const float> all, std::size_t i) {
      if (size == 1) return std::abs(all[i]);
      double squares = 0;
      for (const float value : all.subspan(i * size, size))
        squares += static_cast<double>(value) * static_cast<double>(value);
      return static_cast<float>(std::sqrt(squares));
    };
    const bool increase = options_.by == Criterion::magnitude_increase;
    const std::span<const float> start =
        increase ? values(*options_.initial, tensor) : std::span<const float>{};
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ranks[i] = descending(magnitude(now, i) - (increase ? magnitude(start, i) : 0.0f));
    return ranks;
  }

  // The weights that the previous mask has left; `first` is the place of the tensor's first.
  void add_weights(const MaskTensor& tensor, std::size_t first,
                   std::vector<Candidate>& candidates) const {
    const MaskTensor* previous = previous_of(tensor);
    const std::vector<std::uint32_t> ranked = ranks(tensor, 1);
    for (std::size_t i = 0; i < ranked.size(); ++i)
      if (!previous || previous->keeps(static_cast<std::int64_t>(i)))
        candidates.push_back(candidate(ranked[i], first + i));
  }

  void prune_all_together() {
    const auto all = static_cast<std::size_t>(mask_.count());
    if (all > 0xffffffffU) throw InputError("the network has too many weights to be ranked");
    std::vector<Candidate> candidates;
    candidates.reserve(all);
    std::size_t first = 0;
    for (const MaskTensor& tensor : mask_.tensors) {
      add_weights(tensor, first, candidates);
      first += static_cast<std::size_t>(tensor.count());
    }
    const std::size_t wanted = rounded(options_.keep, all);
    if (wanted == 0) refuse("that is none of " + std::to_string(all) + " weights");
    if (wanted > candidates.size()) {
      std::ostringstream text;
      text << "the previous mask has only "
           << static_cast<double>(candidates.size()) / static_cast<double>(all) << " left";
      refuse(text.str());
    }
    std::vector<Candidate> staying = best(std::move(candidates), wanted);
    std::ranges::sort(staying, {}, place_of);
    auto next = staying.begin();
    first = 0;
    for (MaskTensor& tensor : mask_.tensors) {
      const std::size_t end = first + static_cast<std::size_t>(tensor.count());
      std::ranges::fill(tensor.bits, std::uint8_t{0});
      for (; next != staying.end() && place_of(*next) < end; ++next)
        tensor.set(static_cast<std::int64_t>(place_of(*next) - first), true);
      first = end;
    }
  }

  // A layer keeps one weight at least: without any, nothing passes.
  void prune_tensor(MaskTensor& tensor) const {
    std::vector<Candidate> candidates;
    add_weights(tensor, 0, candidates);
    const auto all = static_cast<std::size_t>(tensor.count());
    const std::size_t wanted = std::max<std::size_t>(1, rounded(options_.keep, all));
    std::ranges::fill(tensor.bits, std::uint8_t{0});
    for (const Candidate each : best(std::move(candidates), wanted))
      tensor.set(static_cast<std::int64_t>(place_of(each)), true);
  }

  void prune_channels() {
    for (MaskTensor& tensor : mask_.tensors) {
      const MaskTensor* previous = previous_of(tensor);
      if (previous) tensor.bits = previous->bits;
      if (&tensor == &mask_.tensors.back()) continue;  // its channels are the classes
      const auto channels = static_cast<std::size_t>(tensor.shape.front());
      const std::size_t size = static_cast<std::size_t>(tensor.count()) / channels;
      const std::vector<std::uint32_t> ranked = ranks(tensor, size);
      std::vector<Candidate> candidates;
      for (std::size_t c = 0; c < channels; ++c)
        if (any(tensor, c, size)) candidates.push_back(candidate(ranked[c], c));
      const std::size_t wanted = std::max<std::size_t>(1, rounded(options_.keep, channels));
      std::vector<bool> stays(channels);
      for (const Candidate each : best(std::move(candidates), wanted)) stays[place_of(each)] = true;
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; !stays[c] && i < size; ++i)
          tensor.set(static_cast<std::int64_t>(c * size + i), false);
    }
  }

  static bool any(const MaskTensor& tensor, std::size_t channel, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      if (tensor.keeps(static_cast<std::int64_t>(channel * size + i))) return true;
    return false;
  }

  const Weights& weights_;
  const PruneOptions& options_;
  Mask mask_;
};

}  // namespace

std::string_view scope_name(Scope scope) { return scope_names[static_cast<std::size_t>(scope)]; }
Scope scope_named(std::string_view name) { return named<Scope>(scope_names, name, "--scope"); }

std::string_view criterion_name(Criterion criterion) {
  return criterion_names[static_cast<std::size_t>(criterion)];
}
Criterion criterion_named(std::string_view name) {
  return named<Criterion>(criterion_names, name, "--by");
}

Mask prune(const Graph& graph, const Weights& weights, const PruneOptions& options) {
  return Pruning(graph, weights, options).run();
}

Mask shuffled(const Mask& mask, std::uint64_t seed) {
  Mask random = mask;
  for (MaskTensor& tensor : random.tensors) {
    const std::uint64_t key = random_key(seed, stream_of("shuffle " + tensor.name));
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.count()); ++i)
      candidates.push_back(candidate(static_cast<std::uint32_t>(keyed_bits(key, i) >> 32), i));
    const auto kept = static_cast<std::size_t>(tensor.kept());
    std::ranges::fill(tensor.bits, std::uint8_t{0});
    for (const Candidate each : best(std::move(candidates), kept))
      tensor.set(static_cast<std::int64_t>(place_of(each)), true);
  }
  return random;
}

}  // namespace regatta::tickets
