// The GPU's passes over parameters, held to the CPU's, which are held to PyTorch.
#ifdef REGATTA_HAVE_CUDA

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/optimizer.h"
#include "backends/cuda/graph.h"
#include "backends/cuda/optimizer.h"
#include "backends/cuda_memory.h"

namespace regatta {
namespace {

std::vector<float> ramp(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = step * static_cast<float>(i % 101) - 1;
  return values;
}

TEST(CudaOptimizer, AddsSlotsInTheirOrder) {
  SKIP_WITHOUT_GPU();
  constexpr std::size_t count = 4099, slots = 70;  // odd, and more slots than one launch takes
  std::vector<float> expected = ramp(count, 0.1f);
  const OnDevice sum(expected);
  std::vector<OnDevice> others;
  std::vector<const float*> pointers;
  for (std::size_t s = 0; s < slots; ++s) {
    const std::vector<float> values = ramp(count, 0.01f * static_cast<float>(s + 1));
    for (std::size_t i = 0; i < count; ++i) expected[i] += values[i];
    others.emplace_back(values);
    pointers.push_back(others.back().data());
  }
  cuda::reduce_slots(nullptr, sum.data(), pointers, count);
  EXPECT_EQ(sum.read(), expected);
}

// A bucket of parameters with gaps between them, in which nothing may be counted.
struct TestBucket {
  TestBucket() {
    for (const std::size_t size : {std::size_t{1027}, std::size_t{5}, std::size_t{9000}}) add(size);
    for (int i = 0; i < 70; ++i) add(37);  // more than one launch takes
    parameters = ramp(count, 0.013f);
    gradient = ramp(count, 0.07f);
    for (std::size_t i = 0; i < count; ++i)
      if (!inside(i)) gradient[i] = 1e30f;
  }

  void add(std::size_t size) {
    tensors.push_back({count, size, tensors.size() % 2 == 0});
    count += (size + 15) / 16 * 16;
  }
  bool inside(std::size_t i) const {
    return std::ranges::any_of(tensors, [&](const BucketTensor& tensor) {
      return i >= tensor.first && i < tensor.first + tensor.count;
    });
  }

  // Masks two of three parameters, which are zero then.
  void use_mask() {
    mask.assign(count / 8 + cpu::mask_padding, 0xff);
    for (std::size_t i = 0; i < count; ++i)
      if (i % 3 != 0) {
        mask[i / 8] &= static_cast<std::uint8_t>(~(1U << (i % 8)));
        parameters[i] = 0;
      }
  }

  std::vector<BucketTensor> tensors;
  std::size_t count = 0;
  std::vector<float> parameters, gradient;
  std::vector<std::uint8_t> mask;  // empty: none
};

// All that steps change, on either device.
struct Memory {
  std::vector<float> parameters, mean, squares, average;
};

double distance(const TestBucket& bucket, const std::vector<float>& found,
                const std::vector<float>& expected) {
  double difference = 0, norm = 0;
  for (const BucketTensor& tensor : bucket.tensors)
    for (std::size_t i = tensor.first; i < tensor.first + tensor.count; ++i) {
      difference += std::pow(double(found[i]) - double(expected[i]), 2);
      norm += std::pow(double(expected[i]), 2);
    }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

UpdateNumbers numbers_of(const OptimizerSettings& settings, std::int64_t step) {
  const bool adam = settings.kind == OptimizerKind::adam || settings.kind == OptimizerKind::adamw;
  return update_numbers(settings, settings.learning_rate / static_cast<double>(step),
                        adam ? settings.beta1 : settings.momentum, step);
}

Memory steps_on_cpu(const TestBucket& bucket, const OptimizerSettings& settings, int steps) {
  const std::vector<float> zeros(bucket.count, 0.0f);
  Memory m{bucket.parameters, zeros, zeros, zeros};
  for (int s = 1; s <= steps; ++s) {
    const UpdateNumbers numbers = numbers_of(settings, s);
    const std::uint8_t* mask = bucket.mask.empty() ? nullptr : bucket.mask.data();
    const double squares = cpu::sum_squares(bucket.gradient.data(), bucket.tensors, mask);
    const double* const sums[] = {&squares};
    const float scale = cpu::clip_scale(sums, numbers.clip_norm);
    UpdateStep step;
    step.kind = settings.kind;
    step.numbers = &numbers;
    step.gradient = bucket.gradient.data();
    step.parameters = m.parameters.data();
    if (keeps_moment(settings, 0)) step.moments[0] = m.mean.data();
    if (keeps_moment(settings, 1)) step.moments[1] = m.squares.data();
    if (settings.ema > 0) step.average = m.average.data();
    if (settings.clip_norm > 0) step.gradient_scale = &scale;
    step.mask = mask;
    step.tensors = bucket.tensors;
    step.count = bucket.count;
    cpu::update(step);
  }
  return m;
}

// The first step eagerly, the others as replays of one graph.
Memory steps_on_gpu(const TestBucket& bucket, const OptimizerSettings& settings, int steps,
                    int mark = 0, bool* told = nullptr) {
  const std::vector<float> zeros(bucket.count, 0.0f);
  const OnDevice gradient(bucket.gradient), parameters(bucket.parameters), mean(zeros),
      squares(zeros), average(zeros), scale({-1.0f});
  const OnDeviceOf<double> sum({-1.0});
  const OnDeviceOf<int> marked({mark});
  const cuda::DeviceMemory mask = cuda::on_device(bucket.mask, "a test");
  const TestStream stream;
  cuda::Optimizer optimizer(stream.get(), marked.data());
  UpdateStep step;
  step.kind = settings.kind;
  step.gradient = gradient.data();
  step.parameters = parameters.data();
  if (keeps_moment(settings, 0)) step.moments[0] = mean.data();
  if (keeps_moment(settings, 1)) step.moments[1] = squares.data();
  if (settings.ema > 0) step.average = average.data();
  if (settings.clip_norm > 0) step.gradient_scale = scale.data();
  step.mask = reinterpret_cast<const std::uint8_t*>(mask.data());
  step.tensors = bucket.tensors;
  step.count = bucket.count;
  const auto enqueue = [&] {
    if (settings.clip_norm > 0) {
      optimizer.sum_squares(gradient.data(), bucket.tensors, step.mask, sum.data());
      const double* const sums[] = {sum.data()};
      optimizer.clip_scale(sums, scale.data());
    }
    optimizer.update(step);
  };
  optimizer.follow(numbers_of(settings, 1));
  enqueue();
  const cuda::CapturedGraph graph(stream.get(), enqueue);
  for (int s = 2; s <= steps; ++s) {
    optimizer.follow(numbers_of(settings, s));
    graph.launch(stream.get());
  }
  stream.wait();
  if (told) *told = optimizer.saw_not_finite();
  return {parameters.read(), mean.read(), squares.read(), average.read()};
}

std::vector<OptimizerSettings> rules() {
  std::vector<OptimizerSettings> all;
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::nesterov, OptimizerKind::adam,
                          OptimizerKind::adamw, OptimizerKind::rmsprop, OptimizerKind::lars}) {
    OptimizerSettings settings = default_settings(kind);
    settings.weight_decay = 0.01;
    all.push_back(settings);
    settings.clip_norm = 3;
    settings.clip_value = 0.02;
    settings.ema = 0.9;
    all.push_back(settings);
  }
  all.push_back(default_settings(OptimizerKind::rmsprop));
  all.back().momentum = 0;
  return all;
}

TEST(CudaOptimizer, LeavesMaskedParametersAtZero) {
  SKIP_WITHOUT_GPU();
  TestBucket bucket;
  bucket.use_mask();
  for (const OptimizerSettings& settings : rules()) {
    SCOPED_TRACE(std::string(optimizer_name(settings.kind)) +
                 (settings.clip_norm > 0 ? " clipped" : ""));
    const Memory expected = steps_on_cpu(bucket, settings, 5);
    const Memory found = steps_on_gpu(bucket, settings, 5);
    EXPECT_LT(distance(bucket, found.parameters, expected.parameters), 1e-5);
    for (const BucketTensor& tensor : bucket.tensors)
      for (std::size_t i = tensor.first; i < tensor.first + tensor.count; ++i)
        if (i % 3 != 0) {
          ASSERT_EQ(found.parameters[i], 0) << i;
        }
  }
}

TEST(CudaOptimizer, TakesTheStepsOfTheCpuAsTheirNumbersChange) {
  SKIP_WITHOUT_GPU();
  const TestBucket bucket;
  for (const OptimizerSettings& settings : rules()) {
    SCOPED_TRACE(std::string(optimizer_name(settings.kind)) +
                 (settings.clip_norm > 0 ? " clipped" : ""));
    // More steps than the numbers' ring has slots.
    const Memory expected = steps_on_cpu(bucket, settings, 40);
    const Memory found = steps_on_gpu(bucket, settings, 40);
    EXPECT_LT(distance(bucket, found.parameters, expected.parameters), 1e-5);
    EXPECT_LT(distance(bucket, found.mean, expected.mean), 1e-5);
    EXPECT_LT(distance(bucket, found.squares, expected.squares), 1e-5);
    EXPECT_LT(distance(bucket, found.average, expected.average), 1e-5);
    EXPECT_GT(distance(bucket, found.parameters, bucket.parameters), 1e-4) << "nothing moved";
  }
}

TEST(CudaOptimizer, RepeatsItselfBitForBit) {
  SKIP_WITHOUT_GPU();
  const TestBucket bucket;
  OptimizerSettings settings = default_settings(OptimizerKind::lars);
  settings.clip_norm = 3;
  const Memory once = steps_on_gpu(bucket, settings, 3), again = steps_on_gpu(bucket, settings, 3);
  EXPECT_EQ(distance(bucket, once.parameters, again.parameters), 0);
}

TEST(CudaOptimizer, MovesNothingAfterALossThatIsNoNumber) {
  SKIP_WITHOUT_GPU();
  const TestBucket bucket;
  for (const OptimizerSettings& settings : rules())
    EXPECT_EQ(steps_on_gpu(bucket, settings, 3, 1).parameters, bucket.parameters)
        << optimizer_name(settings.kind);
}

TEST(CudaOptimizer, MovesNothingByAGradientThatIsNotFiniteAndTellsTheHost) {
  SKIP_WITHOUT_GPU();
  for (const float wrong : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf("")})
    for (const OptimizerSettings& settings : rules()) {
      SCOPED_TRACE(std::string(optimizer_name(settings.kind)) +
                   (settings.clip_norm > 0 ? " clipped" : ""));
      TestBucket bucket;
      const BucketTensor& last = bucket.tensors.back();
      bucket.gradient[last.first + last.count - 1] = wrong;
      bool told = false;
      const Memory found = steps_on_gpu(bucket, settings, 3, 0, &told);
      EXPECT_EQ(found.parameters, bucket.parameters);
      EXPECT_EQ(found.mean, std::vector<float>(bucket.count, 0.0f));
      EXPECT_TRUE(told);
    }
}

TEST(CudaOptimizer, LeavesTheWordToALossThatIsNoNumber) {
  SKIP_WITHOUT_GPU();
  TestBucket bucket;
  bucket.gradient[0] = std::nanf("");
  bool told = true;
  steps_on_gpu(bucket, rules().front(), 3, 1, &told);
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace regatta

#endif  // REGATTA_HAVE_CUDA
