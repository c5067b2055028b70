// What a call says when it fails, for tests that claim it names the culprit.
#pragma once

#include <string>

#include "base/error.h"

namespace regatta {

// The InputError's message, or "no error".
template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace regatta
