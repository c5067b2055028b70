#include "app/quiet.h"

#include <iostream>
#include <utility>

namespace regatta::app {

void Quiet::begin() {
  if (quiet_) return;
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  if (!nowhere) return;  // better too many words than none where they matter
  std::cout.flush();
  std::fflush(stdout);
  // The C library prints to whatever `stdout` points to.
  output_ = std::exchange(stdout, nowhere);
  cout_ = std::cout.rdbuf(nullptr);
  cerr_ = std::cerr.rdbuf(nullptr);
  quiet_ = true;
}

bool Quiet::end() {
  if (!quiet_) return false;
  std::fclose(std::exchange(stdout, output_));
  // Printing to no buffer has left the streams in a failed state; rdbuf clears it.
  std::cout.rdbuf(cout_);
  std::cerr.rdbuf(cerr_);
  quiet_ = false;
  return true;
}

}  // namespace regatta::app
