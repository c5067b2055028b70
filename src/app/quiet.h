// --quiet: what the program tells people is dropped; errors and results that were asked for are
// not.
#pragma once

#include <cstdio>
#include <streambuf>

namespace regatta::app {

// Drops all that is printed by std::cout, std::printf and std::cerr. Descriptors stay as they are,
// so that a result can still be written to /dev/stdout, and what a library says of its own on
// standard error when it fails is still seen.
class Quiet {
 public:
  void begin();
  bool end();  // whether it was on
  ~Quiet() { end(); }

 private:
  bool quiet_ = false;
  std::FILE* output_ = nullptr;
  std::streambuf* cout_ = nullptr;
  std::streambuf* cerr_ = nullptr;
};

}  // namespace regatta::app
