#include "backends/cuda/check.h"
#include "backends/cuda/slow_down.h"

namespace regatta::cuda {
namespace {

__device__ unsigned long long clock_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void note_time(unsigned long long* began) { *began = clock_ns(); }

__global__ void wait_until(const unsigned long long* began, double factor) {
  const unsigned long long start = *began;
  const auto whole =
      static_cast<unsigned long long>(static_cast<double>(clock_ns() - start) * factor);
  while (clock_ns() - start < whole) __nanosleep(500);
}

}  // namespace

SlowDown::SlowDown(Stream stream, double factor)
    : stream_(stream), factor_(factor), began_(sizeof(unsigned long long), "slowing down") {}

void SlowDown::begin() {
  note_time<<<1, 1, 0, stream_>>>(reinterpret_cast<unsigned long long*>(began_.data()));
  check(cudaGetLastError());
}

void SlowDown::end() {
  wait_until<<<1, 1, 0, stream_>>>(reinterpret_cast<const unsigned long long*>(began_.data()),
                                   factor_);
  check(cudaGetLastError());
}

}  // namespace regatta::cuda
