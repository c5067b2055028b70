// What Regatta throws.
#pragma once

#include <stdexcept>

namespace regatta {

// Anything Regatta reports on purpose. The message is one line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user's side can mend it: a wrong flag, file, name, shape or environment. Exit code 2.
// The message names the culprit, what was found, and the way out.
class InputError : public Error {
 public:
  using Error::Error;
};

}  // namespace regatta
