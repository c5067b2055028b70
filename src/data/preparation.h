// The folder that `regatta data prepare` fills with shards or TFRecord files, whole or in parts
// that several machines may make at once. While files are being made the folder also has
//
//   prepare.json        the Preparation; every part would write the same
//   part-3-of-20.lock   locked by the process that makes this part
//   .in-use             locked while a part is begun, or parts are joined
//
// When all files are there, finish_preparation replaces these two by index.json. FILE.skipped
// beside FILE lists the samples that could not be read, if there are any. It is written before FILE
// and stays, so that a file that is kept need not be read again to find them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/dataset.h"
#include "data/part_lock.h"

namespace regatta {

enum class PreparedForm { shards, tfrecord };

// How the samples of a split are divided into files.
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
  std::string job;        // id of this preparation, 32 hexadecimal digits
  std::string arguments;  // of `regatta data prepare`, without --out and --part
  Json head;              // the fields of index.json before the splits
  std::vector<PreparedSplit> splits;

  struct File {
    const PreparedSplit* split = nullptr;
    std::int64_t number = 0;  // within its split
    int part = 1;             // the part that makes the file, counted from 1
  };
  std::vector<File> files() const;  // of all splits, assigned to the parts in turn
  std::string name_of(const File& file) const;
  std::string command(const std::filesystem::path& out, int part) const;

  // Whether the file is there, belongs to this preparation and has all its samples; with
  // `every_byte` the samples' checksums are compared too.
  bool is_whole(const std::filesystem::path& out, const File& file, bool every_byte) const;
};

Json to_json(const Preparation& preparation);

std::filesystem::path lock_file(const std::filesystem::path& out, int part, int of);

// Begins or joins the preparation in `out`, and locks `part`, counted from 1. prepare.json is there
// then, unless the folder is complete, with an index of the same preparation. Throws InputError if
// the folder holds something else, or if the part, or another number of parts, is being made at
// this moment.
PartLock begin_preparation(const Preparation& preparation, const std::filesystem::path& out,
                           int part);

// Writes FILE.skipped, or removes it if no sample was skipped. Called before the file itself is
// written.
void note_skipped(const Preparation& preparation, const std::filesystem::path& out,
                  const Preparation::File& file, const SkippedSamples& skipped);

// The samples that could not be read for the files of one part, of all splits; only their number
// and the first of them by name, not their indices.
SkippedSamples skipped_by(const Preparation& preparation, const std::filesystem::path& out,
                          int part);

struct Prepared {
  PreparedForm form = PreparedForm::shards;
  std::int64_t files = 0, kept = 0;  // `kept`: how many of `files` were there before
  std::int64_t samples = 0, bytes = 0;
  SkippedSamples skipped;
};

// Joins the parts: writes index.json, and removes prepare.json and the lock files. Throws
// InputError that names the parts that are running or missing, with the command that makes them. A
// folder that is complete stays as it is.
Prepared finish_preparation(const std::filesystem::path& out);

// Writes index.json of files that are all there, and removes the files of the work in progress.
// Throws InputError if a part is being made at this moment.
Prepared complete_preparation(const Preparation& preparation, const std::filesystem::path& out);

}  // namespace regatta
