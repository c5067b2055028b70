// The SQLite files of nvprof and Nsight Systems, and stores of our own.
#include <fstream>

#include "fuzz.h"
#include "trace/analysis.h"
#include "trace/import.h"
#include "trace/store.h"

namespace {

// SQLite wants a file that has a name.
std::filesystem::path named_file(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("profile_fuzz." + std::to_string(::getpid()));
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return file;
}

void account_for(regatta::trace::Record record) {
  using namespace regatta::trace;
  if (!faults(record).empty()) std::abort();
  fill_ready(record);
  const Analysis found = analyse(record, whole_window(record));
  for (const WorkerUse& use : found.workers)
    if (use.busy + use.idle + use.overhead != found.wall()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  const auto file = named_file(data, size);
  fuzz::may_refuse([&] { account_for(trace::import_profile(file)); });
  return fuzz::may_refuse([&] { account_for(trace::read_store(file)); });
}
