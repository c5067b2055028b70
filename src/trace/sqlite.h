// SQLite's handles, each with one owner. Errors are InputErrors that name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace regatta::trace {

class Database {
 public:
  // `read`: as it is, nothing is written. `make`: a fresh file, written without a journal: whoever
  // makes it throws it away when that fails.
  enum class Access { read, make, change };
  Database(const std::filesystem::path& file, Access access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql);
  bool has_table(const std::string& name);
  bool has_column(const std::string& table, const std::string& column);
  // Only reading is allowed from here on: no attached files, no settings.
  void restrict_to_reading();

  [[noreturn]] void fail(const std::string& what) const;
  const std::string& name() const { return name_; }
  sqlite3* handle() const { return handle_; }

 private:
  std::string name_;
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // The next parameter.
  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view value);
  Statement& bind_null();
  Statement& bind_time(std::int64_t value);  // unknown ones as NULL

  bool next();  // a row is there
  void done();  // carries out a statement without rows; ready for the next parameters

  int columns() const;
  std::string column_name(int column) const;
  bool is_null(int column) const;
  std::int64_t number(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

}  // namespace regatta::trace
