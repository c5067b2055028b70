#include "exec/versions.h"

#include <starpu.h>

#include "backends/cpu/onednn.h"

#if REGATTA_HAVE_CUDA
#include <cudnn.h>
#endif

namespace regatta {
namespace {

std::string dotted(std::initializer_list<int> numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ".") + std::to_string(number);
  return text;
}

}  // namespace

std::map<std::string, std::string> library_versions() {
  int major = 0, minor = 0, release = 0;
  starpu_get_version(&major, &minor, &release);
  const dnnl_version_t* onednn = dnnl_version();
  std::map<std::string, std::string> versions{
      {"starpu", dotted({major, minor, release})},
      {"onednn", dotted({onednn->major, onednn->minor, onednn->patch})}};
#if REGATTA_HAVE_CUDA
  // The version of the build: asking the library would load it in runs without a GPU.
  versions["cudnn"] = std::to_string(CUDNN_VERSION);
#endif
  return versions;
}

}  // namespace regatta
