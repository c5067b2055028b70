#include "backends/cuda/matmul.h"

namespace regatta::cuda {
namespace {

cudaDataType_t data_type(Dtype dtype) { return dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, const T& value) {
  check(cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof value));
}

class Preference {
 public:
  Preference() { check(cublasLtMatmulPreferenceCreate(&handle_)); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(handle_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t name, const T& value) {
    check(cublasLtMatmulPreferenceSetAttribute(handle_, name, &value, sizeof value));
  }
  cublasLtMatmulPreference_t get() const { return handle_; }

 private:
  cublasLtMatmulPreference_t handle_ = nullptr;
};

}  // namespace

// The library's matrices are column-major, so it sees our row-major ones transposed.
Matmul::Layout Matmul::layout(Dtype dtype, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, data_type(dtype), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns));
  return Layout(made);
}

// Since it sees the transpose of everything, c^T = b^T * a^T: the factors change places.
Matmul::Matmul(const Tools& tools, const MatmulProblem& p)
    : tools_(tools),
      first_(p.transpose_b ? layout(p.factors, p.columns, p.inner)
                           : layout(p.factors, p.inner, p.columns)),
      second_(p.transpose_a ? layout(p.factors, p.inner, p.rows)
                            : layout(p.factors, p.rows, p.inner)),
      result_(layout(p.result, p.rows, p.columns)) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(
      &made, p.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUDA_R_32F));
  operation_.reset(made);
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);

  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  // Values start at whole cache lines, which is less than the library would assume.
  for (const auto name :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    preference.set(name, std::uint32_t{16});
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(tools.cublas, operation_.get(), first_.get(), second_.get(),
                                       result_.get(), result_.get(), preference.get(), 1, &best,
                                       &found));
  if (found == 0) throw LibraryError("cuBLASLt has no algorithm for this matrix product");
  algorithm_ = best.algo;
}

void Matmul::run(const void* a, const void* b, void* c, bool add, std::byte* workspace) const {
  const float alpha = 1, beta = add ? 1 : 0;
  check(cublasLtMatmul(tools_.cublas, operation_.get(), &alpha, b, first_.get(), a, second_.get(),
                       &beta, c, result_.get(), c, result_.get(), &algorithm_, workspace,
                       workspace_bytes, tools_.stream));
}

}  // namespace regatta::cuda
