#include "app/command.h"

int main(int count, char** arguments) {
  return regatta::app::run_program({arguments + 1, static_cast<std::size_t>(count - 1)});
}
