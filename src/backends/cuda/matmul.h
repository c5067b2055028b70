// One matrix product through cuBLASLt, its algorithm chosen once.
#pragma once

#include <memory>
#include <type_traits>

#include "backends/cuda/kernel.h"

namespace regatta::cuda {

// c (rows x columns) = a (rows x inner) * b (inner x columns), all row-major; a transposed factor
// lies in memory as its transpose.
struct MatmulProblem {
  std::int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  Dtype factors = Dtype::f32, result = Dtype::f32;
  Precision precision = Precision::fp32;
};

class Matmul {
 public:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  Matmul(const Tools& tools, const MatmulProblem& problem);
  // `add`: to what c holds.
  void run(const void* a, const void* b, void* c, bool add, std::byte* workspace) const;

 private:
  template <auto Destroy>
  struct Destroyer {
    template <class Handle>
    void operator()(Handle* handle) const {
      Destroy(handle);
    }
  };
  template <class Handle, auto Destroy>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Destroy>>;
  using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  static Layout layout(Dtype dtype, std::int64_t rows, std::int64_t columns);

  const Tools& tools_;
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation_;
  Layout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace regatta::cuda
