// The record on disk: one SQLite file, trace.sqlite in the run folder. docs/trace.md tells its
// tables and views.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "trace/trace.h"

namespace regatta::trace {

inline constexpr const char* store_name = "trace.sqlite";

// Writes a store piece by piece, so that a long run is never held in memory. It is written aside
// and gets its name in finish(). Used by one thread at a time. Throws InputError for a full disk, a
// folder that cannot be written, or a name that is taken by something else than a regular file.
class StoreWriter {
 public:
  explicit StoreWriter(const std::filesystem::path& file);
  ~StoreWriter();  // without finish(): nothing stays
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  void metadata(const std::string& key, const std::string& value);
  // These, and links, get the numbers 0, 1, ... in the order they are given.
  void add(const Worker& worker);
  void add(const TaskKind& kind);
  void add(const OperatorKind& kind);
  void add(std::span<const Task> tasks);
  void add(std::span<const Dependency> dependencies);
  void add(std::span<const Operator> operators);
  void add(const Mark& mark);
  void add(const Link& link);
  void add(std::span<const Transfer> transfers);
  void add(const Counter& counter);
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

void write_store(const std::filesystem::path& file, const Record& record);

// Throws InputError that says what is wrong with it, in one line.
Record read_store(const std::filesystem::path& file);

// `where`: a run folder or a store. Throws InputError that names the way out: train with --trace.
std::filesystem::path store_of(const std::filesystem::path& where);

// Writes the analysis of the whole record into the store's tables idle_causes, critical_path, ...
// that its views read.
void write_analysis(const std::filesystem::path& file, const Record& record);

// A reader's own question: column names, then rows as text. One statement that only reads.
std::vector<std::vector<std::string>> query(const std::filesystem::path& file,
                                            const std::string& sql);

}  // namespace regatta::trace
