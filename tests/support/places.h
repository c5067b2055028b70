// Where tests find what they read and start, in the build folder and in a package that was unpacked
// elsewhere.
#pragma once

#include <filesystem>

namespace regatta {

// The root of the sources; in a package a folder with those files of it that tests read: fixtures,
// platforms, schemas. Tests of the sources themselves skip there.
std::filesystem::path test_files();

// The program: it lies beside the tests.
std::filesystem::path regatta_program();

}  // namespace regatta
