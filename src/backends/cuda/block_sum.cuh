// The sum over a block's threads, in a fixed order, known to all of them.
#pragma once

namespace regatta::cuda {

// Called by all threads of a block of THREADS, a power of two.
template <unsigned THREADS>
__device__ double block_sum(double value) {
  __shared__ double shared[THREADS];
  __syncthreads();  // whoever still reads an earlier sum
  shared[threadIdx.x] = value;
  for (unsigned half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

}  // namespace regatta::cuda
