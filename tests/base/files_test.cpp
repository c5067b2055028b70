#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(Files, ReadWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string bytes("zero \0 and newline \n", 20);
  write_file(folder.path() / "file", bytes);
  EXPECT_EQ(read_file(folder.path() / "file"), bytes);
}

TEST(Files, WritingReplacesAndLeavesNothingBeside) {
  const TemporaryFolder folder;
  write_file(folder.path() / "file", "old and longer");
  write_file(folder.path() / "file", "new");
  EXPECT_EQ(read_file(folder.path() / "file"), "new");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(Files, AFailedWriteNamesTheFileAndLeavesNothing) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "missing" / "file";
  EXPECT_THAT(error_text([&] { write_file(path, "x"); }), HasSubstr(path.string() + "': No such"));
  fs::create_directory(folder.path() / "folder");
  EXPECT_THAT(error_text([&] { write_file(folder.path() / "folder", "x"); }),
              HasSubstr("cannot replace"));
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(Files, WhatCannotBeWrittenIsToldBeforehand) {
  const TemporaryFolder folder;
  const fs::path old = folder.file("old", "kept");
  require_writable(old);
  require_writable(folder.path() / "new");
  EXPECT_EQ(read_file(old), "kept");
  EXPECT_FALSE(fs::exists(folder.path() / "new"));
  for (const fs::path& bad :
       {folder.path(), folder.path() / "none" / "new", old / "new", fs::path()})
    EXPECT_THAT(error_text([&] { require_writable(bad); }),
                HasSubstr("cannot create '" + bad.string() + "'"));
}

TEST(Files, AFailedReadNamesTheFileAndTheCause) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { read_file(folder.path() / "none"); }), HasSubstr("none': No such"));
  EXPECT_THAT(error_text([&] { read_file(folder.path()); }), HasSubstr("it is a folder"));
}

// Sets a variable for one test and puts back what was there.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }

 private:
  void set(const char* value) { value ? ::setenv(name_, value, 1) : ::unsetenv(name_); }

  const char* name_;
  std::optional<std::string> old_;
};

TEST(Files, TheCacheFollowsTheEnvironmentMostSpecificFirst) {
  const Variable home("HOME", "/home/someone");
  const Variable xdg("XDG_CACHE_HOME", "/xdg");
  {
    const Variable own("REGATTA_CACHE", "/own");
    EXPECT_EQ(cache_folder(), "/own");
  }
  const Variable own("REGATTA_CACHE", "");
  EXPECT_EQ(cache_folder(), "/xdg/regatta");
  const Variable no_xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(cache_folder(), "/home/someone/.cache/regatta");
}

// The examples of FIPS 180-2.
TEST(Files, Sha256MatchesTheStandard) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DidYouMean, SuggestsTheNearestName) {
  const std::vector<std::string> known{"resnet18", "resnet50", "lenet5"};
  EXPECT_EQ(did_you_mean("resent18", known), " (did you mean 'resnet18'?)");
  EXPECT_EQ(did_you_mean("lenet", known), " (did you mean 'lenet5'?)");
}

TEST(DidYouMean, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(did_you_mean("transformer", {"resnet18", "lenet5"}), "");
  EXPECT_EQ(did_you_mean("anything", {}), "");
}

}  // namespace
}  // namespace regatta
