// Marks small functions that kernels on a GPU may call too; nothing where no CUDA compiler reads.
#pragma once

#ifdef __CUDACC__
#define REGATTA_HOST_DEVICE __host__ __device__
#else
#define REGATTA_HOST_DEVICE
#endif
