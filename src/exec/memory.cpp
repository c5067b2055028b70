#include "exec/memory.h"

#include <sys/mman.h>

#include <string>

#include "base/error.h"

namespace regatta {

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw InputError("out of memory: a buffer of " + std::to_string(bytes >> 20) +
                     " MiB cannot be had; a smaller --batch or --input needs less");
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  if (bytes >= huge_page) ::madvise(mapped, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapped);
}

HostMemory::~HostMemory() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace regatta
