#include "backends/cuda/libraries.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace regatta::cuda {

void* open_library(const std::string& name) {
  std::vector<std::string> places{name};
  for (const char* home :
       {std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH"), static_cast<char*>(nullptr)}) {
    const std::string toolkit = home ? home : "/usr/local/cuda";
    for (const char* folder : {"/lib64/", "/lib/", "/extras/CUPTI/lib64/"})
      places.push_back(toolkit + folder + name);
  }
  for (const std::string& place : places)
    if (void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

namespace {

// A library of the major version whose headers this was compiled with.
void* required_library(const char* stem, int major) {
  const std::string name = std::string(stem) + ".so." + std::to_string(major);
  if (void* library = open_library(name)) return library;
  throw InputError(name +
                   " is not found, which --devices cuda needs: install it, or name its folder "
                   "in LD_LIBRARY_PATH or its toolkit in CUDA_HOME");
}

void* cudnn() {
  static void* const library = required_library("libcudnn", CUDNN_MAJOR);
  return library;
}

void* cublas() {
  static void* const library = required_library("libcublasLt", CUBLAS_VER_MAJOR);
  return library;
}

template <class Function>
Function* find(void* library, Function*, const char* name) {
  if (void* address = ::dlsym(library, name)) return reinterpret_cast<Function*>(address);
  throw Error(std::string("this machine's CUDA libraries have no ") + name +
              "; Regatta was built with newer ones");
}

}  // namespace
}  // namespace regatta::cuda

// The functions of cuDNN and cuBLASLt that the backend calls, under their own names: each passes
// its arguments on to the library's. NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define REGATTA_PASS_ON(result, library, name, parameters, arguments)              \
  result name parameters {                                                         \
    static const auto function =                                                   \
        regatta::cuda::find(regatta::cuda::library(), decltype(&::name){}, #name); \
    return function arguments;                                                     \
  }
#define REGATTA_CUDNN(name, parameters, arguments) \
  REGATTA_PASS_ON(cudnnStatus_t CUDNNWINAPI, cudnn, name, parameters, arguments)
#define REGATTA_CUBLAS(name, parameters, arguments) \
  REGATTA_PASS_ON(cublasStatus_t CUBLASWINAPI, cublas, name, parameters, arguments)
// NOLINTEND(cppcoreguidelines-macro-usage)

extern "C" {

REGATTA_PASS_ON(const char* CUDNNWINAPI, cudnn, cudnnGetErrorString, (cudnnStatus_t status),
                (status))
REGATTA_PASS_ON(void CUDNNWINAPI, cudnn, cudnnGetLastErrorString, (char* text, std::size_t most),
                (text, most))
REGATTA_CUDNN(cudnnCreate, (cudnnHandle_t * handle), (handle))
REGATTA_CUDNN(cudnnDestroy, (cudnnHandle_t handle), (handle))
REGATTA_CUDNN(cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream), (handle, stream))
REGATTA_CUDNN(cudnnBackendCreateDescriptor,
              (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made), (type, made))
REGATTA_CUDNN(cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor), (descriptor))
REGATTA_CUDNN(cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))
REGATTA_CUDNN(cudnnBackendSetAttribute,
              (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, std::int64_t count, const void* values),
              (descriptor, name, type, count, values))
REGATTA_CUDNN(cudnnBackendGetAttribute,
              (const cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, std::int64_t most, std::int64_t* count,
               void* values),
              (descriptor, name, type, most, count, values))
REGATTA_CUDNN(cudnnBackendExecute,
              (cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
               cudnnBackendDescriptor_t arguments),
              (handle, plan, arguments))

REGATTA_PASS_ON(const char* CUBLASWINAPI, cublas, cublasLtGetStatusString, (cublasStatus_t status),
                (status))
REGATTA_CUBLAS(cublasLtCreate, (cublasLtHandle_t * handle), (handle))
REGATTA_CUBLAS(cublasLtDestroy, (cublasLtHandle_t handle), (handle))
REGATTA_CUBLAS(cublasLtMatrixLayoutCreate,
               (cublasLtMatrixLayout_t * made, cudaDataType type, std::uint64_t rows,
                std::uint64_t columns, std::int64_t stride),
               (made, type, rows, columns, stride))
REGATTA_CUBLAS(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout))
REGATTA_CUBLAS(cublasLtMatmulDescCreate,
               (cublasLtMatmulDesc_t * made, cublasComputeType_t compute, cudaDataType_t scale),
               (made, compute, scale))
REGATTA_CUBLAS(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t operation), (operation))
REGATTA_CUBLAS(cublasLtMatmulDescSetAttribute,
               (cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name,
                const void* value, std::size_t bytes),
               (operation, name, value, bytes))
REGATTA_CUBLAS(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * made), (made))
REGATTA_CUBLAS(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference),
               (preference))
REGATTA_CUBLAS(cublasLtMatmulPreferenceSetAttribute,
               (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
                const void* value, std::size_t bytes),
               (preference, name, value, bytes))
REGATTA_CUBLAS(cublasLtMatmulAlgoGetHeuristic,
               (cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                cublasLtMatmulPreference_t preference, int most,
                cublasLtMatmulHeuristicResult_t results[], int* found),
               (handle, operation, a, b, c, d, preference, most, results, found))
REGATTA_CUBLAS(cublasLtMatmul,
               (cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
                const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t bytes,
                cudaStream_t stream),
               (handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
                algorithm, workspace, bytes, stream))

}  // extern "C"
