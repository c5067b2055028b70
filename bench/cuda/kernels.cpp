// How near to the GPU's limits its kernels run: batch norm (memory) and convolutions (arithmetic)
// in the sizes of ResNet-50, and all operators of its step; bf16, channels last.
//   regatta_cuda_bench [samples]
#include <cstdio>
#include <cstdlib>

#include "cuda/operator_bench.h"
#include "cuda/step.h"
#include "ops/builder.h"

namespace regatta::bench {
namespace {

void batch_norms(std::int64_t n) {
  std::printf("\n%-28s %10s %8s %10s %8s\n", "batch norm", "forward us", "TB/s", "backward us",
              "TB/s");
  struct Row {
    std::int64_t channels, side;
    bool residual;
  };
  for (const Row& row : {Row{64, 112, false}, Row{64, 56, false}, Row{256, 56, true},
                         Row{512, 28, true}, Row{1024, 14, true}, Row{2048, 7, true}}) {
    NetBuilder net("norm", {1, row.side, row.side});
    const NodeId x = net.conv("x", net.input(), {.channels = row.channels, .kernel = 1});
    const NodeId r = net.conv("r", net.input(), {.channels = row.channels, .kernel = 1});
    NodeId y = net.batch_norm("y", row.residual ? x : net.add(x, r));
    if (row.residual) y = net.add(y, r);
    const Graph graph =
        fuse(std::move(net).finish(net.dense("head", net.global_average_pool(net.relu(y)), 2)));
    NodeId found;
    for (const Node& node : graph.nodes())
      if (node.name == "y") found = node.id;
    OperatorBench bench(graph, found, n);
    const double forward = bench.time(Work::forward), backward = bench.time(Work::backward);
    // Forward reads twice and writes once, backward reads three values twice and writes once; a
    // residual is read once, and its gradient written once.
    const double bytes = 2 * bench.values(), extra = row.residual ? 1 : 0;
    char name[64];
    std::snprintf(name, sizeof name, "%4ldx%ldx%ld%s", static_cast<long>(row.channels),
                  static_cast<long>(row.side), static_cast<long>(row.side),
                  row.residual ? " + residual" : "");
    std::printf("%-28s %10.1f %8.2f %10.1f %8.2f\n", name, forward * 1e6,
                (3 + extra) * bytes / forward / 1e12, backward * 1e6,
                (7 + extra) * bytes / backward / 1e12);
  }
}

void convolutions(std::int64_t n) {
  std::printf("\n%-28s %10s %8s %10s %8s %9s\n", "convolution", "forward us", "TFLOP/s",
              "backward us", "TFLOP/s", "MiB");
  struct Row {
    std::int64_t inputs, side, outputs, kernel, stride;
  };
  for (const Row& row :
       {Row{3, 224, 64, 7, 2}, Row{64, 56, 64, 1, 1}, Row{64, 56, 64, 3, 1}, Row{64, 56, 256, 1, 1},
        Row{256, 56, 128, 1, 1}, Row{128, 56, 128, 3, 2}, Row{128, 28, 128, 3, 1},
        Row{256, 56, 512, 1, 2}, Row{256, 14, 256, 3, 1}, Row{1024, 14, 256, 1, 1},
        Row{512, 7, 512, 3, 1}, Row{2048, 7, 512, 1, 1}}) {
    const bool stem = row.inputs == 3;
    NetBuilder net("conv", {stem ? 3 : 1, row.side, row.side});
    const NodeId x =
        stem ? net.input() : net.conv("x", net.input(), {.channels = row.inputs, .kernel = 1});
    const NodeId y = net.conv("y", x,
                              {.channels = row.outputs,
                               .kernel = row.kernel,
                               .stride = row.stride,
                               .padding = row.kernel / 2,
                               .bias = false});
    const Graph graph = std::move(net).finish(net.dense("head", net.global_average_pool(y), 2));
    OperatorBench bench(graph, y, n);
    const double forward = bench.time(Work::forward), backward = bench.time(Work::backward);
    const double products = stem ? 1 : 2;  // the images want no gradient
    char name[64];
    std::snprintf(name, sizeof name, "%ld -> %ld, %ldx%ld/%ld at %ld",
                  static_cast<long>(row.inputs), static_cast<long>(row.outputs),
                  static_cast<long>(row.kernel), static_cast<long>(row.kernel),
                  static_cast<long>(row.stride), static_cast<long>(row.side));
    std::printf("%-28s %10.1f %8.1f %10.1f %8.1f %9zu\n", name, forward * 1e6,
                bench.flops() / forward / 1e12, backward * 1e6,
                products * bench.flops() / backward / 1e12, bench.workspace_bytes() >> 20);
  }
}

}  // namespace
}  // namespace regatta::bench

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // rows appear as they are measured
  try {
    if (!regatta::cuda::available()) {
      std::fprintf(stderr, "regatta_cuda_bench: this machine has no usable GPU\n");
      return 2;
    }
    const std::int64_t n = count > 1 ? std::atoll(arguments[1]) : 256;
    std::printf("%s, bf16, nhwc, %ld samples\n", regatta::cuda::device_name().c_str(),
                static_cast<long>(n));
    regatta::bench::batch_norms(n);
    regatta::bench::convolutions(n);
    regatta::bench::step_account(n);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta_cuda_bench: %s\n", error.what());
    return 1;
  }
}
