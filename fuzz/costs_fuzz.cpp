// The stored profile of a machine.
#include "fuzz.h"
#include "profile/store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  const auto file = fuzz::as_file(data, size);
  return fuzz::may_refuse([&] {
    const StoredProfile stored = profile_from_json(read_json(file));
    for (const auto& [signature, entry] : stored.profile.entries())
      if (!entry.fit.empty()) entry.fit.at(3, 2);
    to_json(stored.profile, stored.mark);
  });
}
