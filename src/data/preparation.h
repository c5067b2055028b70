// A folder in which `regatta data prepare` makes files, perhaps in parts and on several machines at
// once. While it is under way the folder has
//
//   prepare.json        what is made; the same whichever part wrote it
//   part-3-of-20.lock   held by the process that makes this part
//
// and when all files are there, finish_preparation replaces these by index.json. Beside a file
// FILE.skipped names the samples that could not be read, if there are any; it is written before the
// file and stays, so that it need not be found out again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/dataset.h"

namespace regatta {

enum class PreparedForm { shards, tfrecord };

// The files of a split.
struct PreparedSplit {
  std::string name;  // "train" or "test"
  std::int64_t samples = 0, per_file = 1;

  std::int64_t files() const { return (samples + per_file - 1) / per_file; }
  std::int64_t first_of(std::int64_t file) const { return file * per_file; }
  std::int64_t count_of(std::int64_t file) const;
};

struct Preparation {
  PreparedForm form = PreparedForm::shards;
  int parts = 1;
  std::string job;        // 32 hexadecimal digits that tell this preparation from others
  std::string arguments;  // of `regatta data prepare`, but for --out and --part
  Json head;              // what index.json says before the splits
  std::vector<PreparedSplit> splits;

  struct File {
    const PreparedSplit* split = nullptr;
    std::int64_t number = 0;  // within its split
    int part = 1;             // that makes it
  };
  std::vector<File> files() const;  // of all splits, dealt out to the parts in turn
  std::string name_of(const File& file) const;
  std::string command(const std::filesystem::path& out, int part) const;

  // Whether the file is there, belongs to this preparation and has all its samples; with
  // `every_byte` the samples' checksums are compared too.
  bool is_whole(const std::filesystem::path& out, const File& file, bool every_byte) const;
};

Json to_json(const Preparation& preparation);

std::filesystem::path lock_file(const std::filesystem::path& out, int part, int of);

// Begins or joins the preparation in `out`: prepare.json is there when this returns true. False:
// the folder is complete, with an index of the same preparation. Throws InputError if the folder
// holds something else, or if it is being made in another number of parts at this moment.
bool begin_preparation(const Preparation& preparation, const std::filesystem::path& out);

// Notes which samples a file lacks; to be called before the file is written.
void note_skipped(const Preparation& preparation, const std::filesystem::path& out,
                  const Preparation::File& file, const SkippedSamples& skipped);

// What the files of a part lack, of all splits, without their indices.
SkippedSamples skipped_by(const Preparation& preparation, const std::filesystem::path& out,
                          int part);

struct Prepared {
  PreparedForm form = PreparedForm::shards;
  std::int64_t files = 0, kept = 0;  // of all, those that were there before
  std::int64_t samples = 0, bytes = 0;
  SkippedSamples skipped;
};

// Joins the parts: writes index.json and removes the files of the work in progress. Throws
// InputError that names the parts that are running or missing, with the command that makes them. A
// folder that is complete stays as it is.
Prepared finish_preparation(const std::filesystem::path& out);

// Writes index.json of files that are all there, and removes the files of the work in progress.
Prepared complete_preparation(const Preparation& preparation, const std::filesystem::path& out);

}  // namespace regatta
