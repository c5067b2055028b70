#include "backends/cpu/optimizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <vector>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/lanes.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

// What a rule reads and writes of one piece of a bucket.
struct Piece {
  const float* gradient;
  float *parameters, *mean, *squares;
  std::size_t count;
};

REGATTA_CLONES void take_sgd(const UpdateNumbers& by, const Piece& at) {
  for (std::size_t i = 0; i < at.count; ++i) {
    const float slope = at.gradient[i] + by.weight_decay * at.parameters[i];
    at.mean[i] = by.momentum * at.mean[i] + slope;
    at.parameters[i] -= by.learning_rate * at.mean[i];
  }
}

REGATTA_CLONES void take_nesterov(const UpdateNumbers& by, const Piece& at) {
  for (std::size_t i = 0; i < at.count; ++i) {
    const float slope = at.gradient[i] + by.weight_decay * at.parameters[i];
    at.mean[i] = by.momentum * at.mean[i] + slope;
    at.parameters[i] -= by.learning_rate * (slope + by.momentum * at.mean[i]);
  }
}

// Adam's decay joins the gradient, AdamW's shrinks the parameter: the one not meant is neutral.
REGATTA_CLONES void take_adam(const UpdateNumbers& by, float decay, float keep, const Piece& at) {
  for (std::size_t i = 0; i < at.count; ++i) {
    const float slope = at.gradient[i] + decay * at.parameters[i];
    at.mean[i] = by.beta1 * at.mean[i] + by.rest1 * slope;
    at.squares[i] = by.beta2 * at.squares[i] + by.rest2 * slope * slope;
    const float spread = std::sqrt(at.squares[i]) / by.root2 + by.epsilon;
    at.parameters[i] = keep * at.parameters[i] - by.step_size * (at.mean[i] / spread);
  }
}

REGATTA_CLONES void take_rmsprop(const UpdateNumbers& by, const Piece& at) {
  for (std::size_t i = 0; i < at.count; ++i) {
    const float slope = at.gradient[i] + by.weight_decay * at.parameters[i];
    at.squares[i] = by.beta2 * at.squares[i] + by.rest2 * slope * slope;
    at.parameters[i] -= by.learning_rate * (slope / (std::sqrt(at.squares[i]) + by.epsilon));
  }
}

REGATTA_CLONES void take_rmsprop_with_momentum(const UpdateNumbers& by, const Piece& at) {
  for (std::size_t i = 0; i < at.count; ++i) {
    const float slope = at.gradient[i] + by.weight_decay * at.parameters[i];
    at.squares[i] = by.beta2 * at.squares[i] + by.rest2 * slope * slope;
    at.mean[i] = by.momentum * at.mean[i] + slope / (std::sqrt(at.squares[i]) + by.epsilon);
    at.parameters[i] -= by.learning_rate * at.mean[i];
  }
}

REGATTA_CLONES void take_lars(const UpdateNumbers& by, float rate, float decay, const Piece& at) {
  for (std::size_t i = 0; i < at.count; ++i) {
    const float slope = rate * (at.gradient[i] + decay * at.parameters[i]);
    at.mean[i] = by.momentum * at.mean[i] + slope;
    at.parameters[i] -= by.learning_rate * at.mean[i];
  }
}

REGATTA_CLONES void clip(float scale, float most, const float* gradient, float* target,
                         std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float scaled = scale * gradient[i];
    target[i] = scaled > most ? most : scaled < -most ? -most : scaled;
  }
}

REGATTA_CLONES void follow(const UpdateNumbers& by, const float* parameters, float* average,
                           std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    average[i] = by.average_keep * average[i] + by.average_rest * parameters[i];
}

constexpr std::size_t lanes = 16;

// target[i] = values[i] where bit first + i of the mask is set, else 0, whatever the value is.
// `target` may be `values`.
REGATTA_CLONES void choose(const std::uint8_t* mask, std::size_t first, const float* values,
                           float* target, std::size_t count) {
  using Words = Lanes<lanes>::Words;
  const Words bit_of_lane{1,      1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                          1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  const auto bits_from = [mask](std::size_t bit) {
    std::uint32_t word;
    std::memcpy(&word, mask + bit / 8, sizeof word);
    return static_cast<std::int32_t>(word >> (bit % 8));
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Words words;
    load(words, values + i);
    words &= (bits_from(first + i) & bit_of_lane) != 0;
    store(words, target + i);
  }
  for (; i < count; ++i) target[i] = bits_from(first + i) & 1 ? values[i] : 0;
}

// Adds squares to sixteen sums that a vector unit keeps side by side; squares of floats are exact
// in double.
REGATTA_CLONES void add_squares(const float* values, std::size_t count,
                                std::array<double, lanes>& total) {
  std::array<double, lanes> sums = total;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  for (; i < count; ++i) sums[0] += double(values[i]) * double(values[i]);
  total = sums;
}

// A piece of a gradient that stays in the first cache.
constexpr std::size_t piece = 2048;
using Room = std::array<float, piece>;
static_assert(piece % lanes == 0, "a mask that masks nothing must not change sums");

double squares_of_range(const float* values, std::size_t first, std::size_t count,
                        const std::uint8_t* mask) {
  std::array<double, lanes> sums{};
  if (!mask) {
    add_squares(values + first, count, sums);
  } else {
    Room room;
    for (std::size_t begin = first; begin < first + count; begin += piece) {
      const std::size_t length = std::min(piece, first + count - begin);
      choose(mask, begin, values + begin, room.data(), length);
      add_squares(room.data(), length, sums);
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// The sum of the squares of `count` values from the one with number `first`.
double squares_of(const float* values, std::size_t first, std::size_t count,
                  const std::uint8_t* mask = nullptr) {
  const auto all = static_cast<std::int64_t>(count);
  const int parts = parts_of(all, 1);
  if (parts == 1) return squares_of_range(values, first, count, mask);
  std::vector<double> sums(static_cast<std::size_t>(parts));
  parallel_parts(parts, [&](int part) {
    const std::int64_t begin = all * part / parts, end = all * (part + 1) / parts;
    sums[static_cast<std::size_t>(part)] =
        squares_of_range(values, first + static_cast<std::size_t>(begin),
                         static_cast<std::size_t>(end - begin), mask);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// Walks over a bucket in pieces that stay in the first cache from clipping to averaging.
class Walk {
 public:
  explicit Walk(const UpdateStep& step)
      : step_(step),
        scale_(step.gradient_scale ? *step.gradient_scale : 1.0f),
        most_(step.numbers->clip_value > 0 ? step.numbers->clip_value : INFINITY),
        clips_(step.gradient_scale != nullptr || step.numbers->clip_value > 0) {}

  template <class Take>
  void run(std::size_t first, std::size_t count, const Take& take) const {
    const auto pieces = static_cast<std::int64_t>((count + piece - 1) / piece);
    parallel_for(pieces, piece, [&](std::int64_t from, std::int64_t to) {
      Room room;
      for (std::int64_t i = from; i < to; ++i) {
        const std::size_t begin = first + static_cast<std::size_t>(i) * piece;
        const std::size_t length = std::min(piece, first + count - begin);
        const auto at = [&](float* all) { return all ? all + begin : nullptr; };
        take(Piece{gradient(begin, length, room), at(step_.parameters), at(step_.moments[0]),
                   at(step_.moments[1]), length});
        if (step_.average)
          follow(*step_.numbers, step_.parameters + begin, step_.average + begin, length);
      }
    });
  }

  // The sum of squares of the gradient as the rule sees it.
  double squares_of_gradient(std::size_t first, std::size_t count) const {
    double sum = 0;
    Room room;
    for (std::size_t begin = first; begin < first + count; begin += piece) {
      const std::size_t length = std::min(piece, first + count - begin);
      sum += squares_of_range(gradient(begin, length, room), 0, length, nullptr);
    }
    return sum;
  }

 private:
  // Clipped and masked in `room`, if it is to be.
  const float* gradient(std::size_t begin, std::size_t count, Room& room) const {
    const float* values = step_.gradient + begin;
    if (clips_) {
      clip(scale_, most_, values, room.data(), count);
      values = room.data();
    }
    if (step_.mask) {
      choose(step_.mask, begin, values, room.data(), count);
      values = room.data();
    }
    return values;
  }

  const UpdateStep& step_;
  float scale_, most_;
  bool clips_;
};

void update_by_lars(const UpdateStep& step, const Walk& walk) {
  const UpdateNumbers& by = *step.numbers;
  for (const BucketTensor& tensor : step.tensors) {
    float rate = 1, decay = 0;
    if (tensor.adapts) {
      const double weight = std::sqrt(squares_of(step.parameters, tensor.first, tensor.count));
      const double slope = std::sqrt(walk.squares_of_gradient(tensor.first, tensor.count));
      if (weight > 0 && slope > 0)
        rate = static_cast<float>(double(by.trust) * weight /
                                  (slope + double(by.weight_decay) * weight + double(by.epsilon)));
      decay = by.weight_decay;
    }
    walk.run(tensor.first, tensor.count, [&](const Piece& at) { take_lars(by, rate, decay, at); });
  }
}

}  // namespace

void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) {
  // A piece of the sum stays in the first cache while all slots are added to it.
  constexpr std::size_t piece = 4096;
  const auto pieces = static_cast<std::int64_t>((count + piece - 1) / piece);
  parallel_for(pieces, piece, [&](std::int64_t from, std::int64_t to) {
    const auto last = std::min(static_cast<std::size_t>(to) * piece, count);
    for (std::size_t begin = static_cast<std::size_t>(from) * piece; begin < last; begin += piece)
      for (const float* other : others)
        add_to(sum + begin, other + begin, std::min(piece, last - begin));
  });
}

double sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                   const std::uint8_t* mask) {
  double sum = 0;
  for (const BucketTensor& tensor : tensors)
    sum += squares_of(gradient, tensor.first, tensor.count, mask);
  return sum;
}

float clip_scale(std::span<const double* const> sums, float longest) {
  double squares = 0;
  for (const double* sum : sums) squares += *sum;
  return std::min(1.0f, static_cast<float>(double(longest) / (std::sqrt(squares) + 1e-6)));
}

namespace {
REGATTA_CLONES bool finite_range(const float* values, std::size_t count) {
  constexpr std::uint32_t exponent = 0x7f800000;
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < count; ++i)
    found |= (std::bit_cast<std::uint32_t>(values[i]) & exponent) == exponent ? 1u : 0u;
  return found == 0;
}
REGATTA_CLONES bool finite_range(const Bfloat16* values, std::size_t count) {
  constexpr std::uint16_t exponent = 0x7f80;
  std::uint16_t found = 0;
  for (std::size_t i = 0; i < count; ++i)
    found |= (values[i].bits & exponent) == exponent ? 1u : 0u;
  return found == 0;
}

template <class T>
bool all_are_finite(const T* values, std::size_t count) {
  std::atomic<bool> finite = true;
  parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
    if (!finite_range(values + begin, static_cast<std::size_t>(end - begin))) finite = false;
  });
  return finite;
}
}  // namespace

bool all_finite(const float* values, std::size_t count) { return all_are_finite(values, count); }
bool all_finite(const Bfloat16* values, std::size_t count) { return all_are_finite(values, count); }

void update(const UpdateStep& step) {
  const UpdateNumbers& by = *step.numbers;
  const Walk walk(step);
  const auto whole = [&](const auto& take) { walk.run(0, step.count, take); };
  switch (step.kind) {
    case OptimizerKind::sgd:
      whole([&](const Piece& at) { take_sgd(by, at); });
      break;
    case OptimizerKind::nesterov:
      whole([&](const Piece& at) { take_nesterov(by, at); });
      break;
    case OptimizerKind::adam:
      whole([&](const Piece& at) { take_adam(by, by.weight_decay, 1, at); });
      break;
    case OptimizerKind::adamw:
      whole([&](const Piece& at) { take_adam(by, 0, by.keep, at); });
      break;
    case OptimizerKind::rmsprop:
      whole([&](const Piece& at) {
        if (at.mean)
          take_rmsprop_with_momentum(by, at);
        else
          take_rmsprop(by, at);
      });
      break;
    case OptimizerKind::lars:
      update_by_lars(step, walk);
      break;
  }
}

}  // namespace regatta::cpu
