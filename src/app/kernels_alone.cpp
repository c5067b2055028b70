#include "app/kernels_alone.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/vector.h"
#include "exec/memory.h"
#include "graph/op.h"
#include "tasks/blueprint.h"

namespace regatta::app {
namespace {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::duration<double>;

// Floats that no kernel finds special: neither zeros nor denormals. Both halves of each are the
// same, so that they are such numbers in bf16 too.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : count_(std::max<std::int64_t>(count, 1)),
        memory_(static_cast<std::size_t>(count_) * sizeof(float)) {
    for (std::int64_t i = 0; i < count_; ++i) {
      const auto half =
          std::bit_cast<std::uint32_t>(0.01f * static_cast<float>((i * 7) % 13 - 6)) >> 16;
      data()[i] = std::bit_cast<float>(half << 16 | half);
    }
  }
  float* data() { return reinterpret_cast<float*>(memory_.data()); }

 private:
  std::int64_t count_;
  HostMemory memory_;
};

// body(core) on so many threads; throws what the first of them that threw has thrown.
void on_cores(int cores, const std::function<void(std::size_t core)>& body) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(cores));
  std::vector<std::jthread> threads;
  for (std::size_t core = 0; core < thrown.size(); ++core)
    threads.emplace_back([&, core] {
      try {
        body(core);
      } catch (...) {
        thrown[core] = std::current_exception();
      }
    });
  threads.clear();
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

REGATTA_CLONES void add_arrays(const float* a, const float* b, float* sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

// Three arrays of a core.
struct Arrays {
  static constexpr std::int64_t count = std::int64_t{16} << 20;  // 64 MiB each
  Floats a{count}, b{count}, sum{count};
};

double stream_rate(int cores, Duration at_least) {
  // Made by the thread that uses it, so that memory is near; the other threads are not kept waiting
  // if there is none left.
  std::vector<std::unique_ptr<Arrays>> arrays(static_cast<std::size_t>(cores));
  on_cores(cores, [&](std::size_t core) { arrays[core] = std::make_unique<Arrays>(); });
  std::barrier begin(cores);
  std::vector<double> rates(arrays.size());
  on_cores(cores, [&](std::size_t core) {
    Arrays& mine = *arrays[core];
    begin.arrive_and_wait();
    const Clock::time_point start = Clock::now();
    double bytes = 0;
    Duration took{};
    do {
      add_arrays(mine.a.data(), mine.b.data(), mine.sum.data(), Arrays::count);
      bytes += 3 * static_cast<double>(Arrays::count) * sizeof(float);
      took = Clock::now() - start;
    } while (took < at_least);
    rates[core] = bytes / took.count();
  });
  double all = 0;
  for (const double rate : rates) all += rate;
  return all / cores;
}

// One core's own copy of all that the products of a network read and write.
class ProductBench {
 public:
  ProductBench(const Graph& graph, cpu::Backend& backend, const std::vector<ValueForm>& forms,
               const DeviceGroup& group, Precision precision, std::int64_t samples)
      : flow_(graph), worker_(backend), samples_(samples) {
    std::int64_t largest_input = 0, largest_output = 0, largest_weights = 0;
    for (const Node& node : graph.nodes()) {
      if (!is_product(node)) continue;
      largest_input = std::max(largest_input, samples * forms[node.inputs[0].value].elements);
      largest_output = std::max(largest_output, samples * forms[node.id.value].elements);
      Product& product = products_.emplace_back();
      product.node = &node;
      for (const ParameterId id : node.parameters) {
        const std::int64_t count = graph.parameter(id).shape.elements();
        product.parameters.push_back(std::make_unique<Floats>(count));
        largest_weights = std::max(largest_weights, count);
      }
      const std::size_t room = packed_bytes(graph, node, group, precision);
      if (room == 0) continue;
      product.packed = std::make_unique<HostMemory>(room);
      std::array<const float*, 2> plain{};
      for (std::size_t i = 0; i < product.parameters.size(); ++i)
        plain[i] = product.parameters[i]->data();
      worker_.pack(node, plain, product.packed->data(), room);
    }
    for (const std::int64_t count : {largest_input, largest_output, largest_input, largest_output,
                                     largest_weights, largest_weights})
      shared_.push_back(std::make_unique<Floats>(count));
  }

  // One round over all of them; adds what each took.
  void run(std::vector<double>& forward, std::vector<double>& backward) {
    for (std::size_t i = 0; i < products_.size(); ++i) {
      forward[i] += seconds_of(products_[i], Work::forward);
      backward[i] += seconds_of(products_[i], Work::backward);
    }
  }

 private:
  struct Product {
    const Node* node = nullptr;
    std::vector<std::unique_ptr<Floats>> parameters;
    std::unique_ptr<HostMemory> packed;
  };

  double seconds_of(Product& product, Work work) {
    Operands o;
    o.n = samples_;
    o.inputs[0] = shared_[0]->data();
    o.output = shared_[1]->data();
    o.input_gradients[0] = shared_[2]->data();
    o.output_gradient = shared_[3]->data();
    o.gradient_modes[0] = flow_.mode(product.node->id, 0) == GradientMode::none
                              ? GradientMode::none
                              : GradientMode::write;
    for (std::size_t i = 0; i < product.parameters.size(); ++i) {
      o.parameters[i] = product.parameters[i]->data();
      o.parameter_gradients[i] = shared_[4 + i]->data();
    }
    if (product.packed) o.packed = product.packed->data();
    const Clock::time_point start = Clock::now();
    worker_.run({product.node->id, work}, o);
    return Duration(Clock::now() - start).count();
  }

  GradientFlow flow_;
  cpu::Worker worker_;
  std::int64_t samples_;
  std::vector<Product> products_;
  // The buffers fit the largest product: input, output, and all its gradients.
  std::vector<std::unique_ptr<Floats>> shared_;
};

}  // namespace

bool is_product(const Node& node) { return node.op->name == "conv" || node.op->name == "dense"; }

StreamRates stream_rates(int cores, Duration at_least) {
  return {stream_rate(1, at_least), stream_rate(cores, at_least)};
}

std::vector<AloneTime> products_alone(const Graph& graph, Layout layout, Precision precision,
                                      std::int64_t samples, int cores, Duration at_least) {
  cpu::Backend backend(graph, layout, samples, Dtype::u8, {}, precision);
  const std::vector<ValueForm> forms = value_forms(graph, layout, precision);
  DeviceGroup group;
  group.layout = layout;
  std::vector<const Node*> products;
  for (const Node& node : graph.nodes())
    if (is_product(node)) products.push_back(&node);
  struct Totals {
    std::unique_ptr<ProductBench> bench;
    std::vector<double> forward, backward;
    double samples = 0;
  };
  std::vector<Totals> totals(static_cast<std::size_t>(cores));
  on_cores(cores, [&](std::size_t core) {
    cpu::prepare_worker_thread();
    Totals& mine = totals[core];
    mine.bench = std::make_unique<ProductBench>(graph, backend, forms, group, precision, samples);
    mine.forward.resize(products.size());
    mine.backward.resize(products.size());
    // The first round makes kernels, and does not count.
    std::vector<double> ignored(products.size());
    mine.bench->run(ignored, ignored);
  });
  std::barrier begin(cores);
  on_cores(cores, [&](std::size_t core) {
    cpu::prepare_worker_thread();
    Totals& mine = totals[core];
    begin.arrive_and_wait();
    const Clock::time_point start = Clock::now();
    do {
      mine.bench->run(mine.forward, mine.backward);
      mine.samples += static_cast<double>(samples);
    } while (Clock::now() - start < at_least);
  });
  std::vector<AloneTime> times;
  for (std::size_t i = 0; i < products.size(); ++i) {
    double forward = 0, backward = 0;
    for (const Totals& each : totals) {
      forward += each.forward[i] / each.samples / cores;
      backward += each.backward[i] / each.samples / cores;
    }
    times.push_back({{products[i]->id, Work::forward}, forward});
    times.push_back({{products[i]->id, Work::backward}, backward});
  }
  return times;
}

}  // namespace regatta::app
