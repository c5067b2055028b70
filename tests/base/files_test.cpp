#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>
#include <ostream>

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
              HasSubstr("cannot create"));
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(Files, LinksAreFollowedAndStay) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "far");
  folder.file("far/target", "old");
  fs::create_symlink("far/target", folder.path() / "near");
  fs::create_symlink(folder.path() / "near", folder.path() / "link");
  fs::create_hard_link(folder.path() / "far/target", folder.path() / "before");
  require_writable(folder.path() / "link");
  write_file(folder.path() / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "near"));
  EXPECT_EQ(read_file(folder.path() / "far/target"), "new");
  EXPECT_EQ(read_file(folder.path() / "before"), "old");  // replaced, not written over
  EXPECT_EQ(entries(folder.path() / "far"), 1);
}

TEST(Files, ALinkToNothingGetsItsTarget) {
  const TemporaryFolder folder;
  fs::create_symlink("target", folder.path() / "link");
  write_file(folder.path() / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_file(folder.path() / "target"), "new");
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_THAT(error_text([&] { write_file(folder.path() / "loop", "x"); }),
              HasSubstr("loop': Too many levels"));
}

TEST(Files, PermissionsStay) {
  const TemporaryFolder folder;
  const fs::path file = folder.file("file", "old");
  const auto secret = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(file, secret);
  write_file(file, "new");
  EXPECT_EQ(fs::status(file).permissions(), secret);
}

TEST(Files, DevicesAreWrittenAsTheyAre) {
  require_writable("/dev/null");
  write_file("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder.path() / "link");
  for (const fs::path& full : {fs::path("/dev/full"), folder.path() / "link"})
    EXPECT_EQ(error_text([&] { write_file(full, "x"); }),
              "cannot write '" + full.string() + "': No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
}

TEST(Files, AFifoBringsItsReaderTheBytes) {
  const TemporaryFolder folder;
  const fs::path fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  require_writable(fifo);  // waits for no reader, and does not end what one reads
  auto reader = std::async(std::launch::async, [&] {
    std::ifstream in(fifo);
    return std::string(std::istreambuf_iterator<char>(in), {});
  });
  write_file(fifo, "bytes");
  EXPECT_EQ(reader.get(), "bytes");
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(Files, ASocketIsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "socket";
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(error_text([&] { require_writable(path); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_text([&] { write_file(path, "x"); }), HasSubstr("not a regular file"));
  EXPECT_TRUE(fs::is_socket(path));
}

TEST(Files, AnOpenDescriptorIsWrittenFromWhereItStands) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "file";
  const Descriptor open(::open(file.c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::write(open.get(), "before ", 7), 7);
  const std::string name = "/dev/fd/" + std::to_string(open.get());
  require_writable(name);
  write_file(name, "new");
  ASSERT_EQ(::write(open.get(), " after", 6), 6);
  EXPECT_EQ(read_file(file), "before new after");
  const Descriptor readable(::open(file.c_str(), O_RDONLY));
  EXPECT_THAT(error_text([&] { require_writable("/dev/fd/" + std::to_string(readable.get())); }),
              HasSubstr("Bad file descriptor"));
}

TEST(Files, PiecesMakeOneFile) {
  const TemporaryFolder folder;
  const fs::path file = folder.file("file", "old");
  write_file(file, [](std::ostream& out) {
    for (int i = 0; i < 50'000; ++i) out << i << '\n';
  });
  const std::string text = read_file(file);
  EXPECT_EQ(std::ranges::count(text, '\n'), 50'000);
  EXPECT_TRUE(text.ends_with("\n49999\n"));
  EXPECT_THAT(error_text([] {
                write_file("/dev/full", [](std::ostream& out) {
                  for (int i = 0; i < 50'000; ++i) out << i << '\n';
                });
              }),
              HasSubstr("No space left"));
}

TEST(Files, AReplacementWithoutCommitLeavesTheOldFile) {
  const TemporaryFolder folder;
  const fs::path file = folder.file("file", "old");
  {
    const Replacement unfinished(file);
    EXPECT_TRUE(is_unfinished(unfinished.aside()));
    EXPECT_EQ(entries(folder.path()), 2);
  }
  EXPECT_EQ(read_file(file), "old");
  EXPECT_EQ(entries(folder.path()), 1);
  for (const char* other : {"-", "/dev/stdout", "/dev/null"})
    EXPECT_THAT(error_text([&] { const Replacement refused(other); }),
                HasSubstr("not a regular file"));
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

TEST(Files, ReadingWaitsForNobodyAndEnds) {
  const TemporaryFolder folder;
  const fs::path fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_text([&] { read_file(fifo); }),
              HasSubstr("fifo': it is a pipe to which nobody writes"));
  EXPECT_THAT(error_text([] { read_file("/dev/zero"); }), HasSubstr("it is not a regular file"));
}

// Reads a FIFO, by which a shell hands over the output of a program: regatta ... <(program).
TEST(Files, APipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor reads(ends[0]);
  const std::string text(200'000, 'x');  // more than a pipe holds
  auto writer = std::async(std::launch::async, [&] {
    const Descriptor file(ends[1]);
    std::size_t done = 0;
    while (done < text.size())
      done += static_cast<std::size_t>(::write(file.get(), text.data() + done, text.size() - done));
  });
  EXPECT_EQ(read_file("/proc/self/fd/" + std::to_string(reads.get())), text);
  writer.get();
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
