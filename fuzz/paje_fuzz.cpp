// Whatever is read is a sound record that analysis can account for.
#include <sstream>

#include "fuzz.h"
#include "trace/analysis.h"
#include "trace/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  return fuzz::may_refuse([&] {
    const trace::Record record = trace::import_paje(in, "fuzz");
    if (!trace::faults(record).empty()) std::abort();
    const trace::Analysis found = trace::analyse(record, trace::whole_window(record));
    for (const trace::WorkerUse& use : found.workers)
      if (use.busy + use.idle + use.overhead != found.wall()) std::abort();
  });
}
