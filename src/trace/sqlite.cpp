#include "trace/sqlite.h"

#include <sqlite3.h>

#include "base/error.h"
#include "base/regular_file.h"

namespace regatta::trace {
namespace {

int only_reading(void*, int action, const char*, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second && std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

}  // namespace

Database::Database(const std::filesystem::path& file, Access access) : name_(file.string()) {
  require_regular_file(file);
  const int flags = access == Access::read   ? SQLITE_OPEN_READONLY
                    : access == Access::make ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                             : SQLITE_OPEN_READWRITE;
  const int code = sqlite3_open_v2(name_.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    const std::string cause = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
    sqlite3_close(handle_);
    throw InputError("cannot open '" + name_ + "': " + cause);
  }
  // A file of unknown origin gets no say in what SQLite does.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_busy_timeout(handle_, 2000);
  if (access == Access::make)
    run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;");
}

Database::~Database() { sqlite3_close(handle_); }

void Database::fail(const std::string& what) const {
  const int code = sqlite3_errcode(handle_);
  std::string cause = sqlite3_errmsg(handle_);
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    cause += " (is the file whole, and an SQLite file?)";
  throw InputError("'" + name_ + "': " + what + ": " + cause);
}

void Database::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    fail("cannot work with it");
}

bool Database::has_table(const std::string& table) {
  Statement found(*this,
                  "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?");
  return found.bind(table).next();
}

bool Database::has_column(const std::string& table, const std::string& column) {
  return sqlite3_table_column_metadata(handle_, nullptr, table.c_str(), column.c_str(), nullptr,
                                       nullptr, nullptr, nullptr, nullptr) == SQLITE_OK;
}

void Database::restrict_to_reading() { sqlite3_set_authorizer(handle_, only_reading, nullptr); }

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  const char* rest = nullptr;
  if (sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &handle_,
                         &rest) != SQLITE_OK)
    database.fail("cannot ask it");
  if (!handle_) throw InputError("'" + database.name() + "': the question is empty");
  const std::string_view left(rest, static_cast<std::size_t>(sql.data() + sql.size() - rest));
  if (left.find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    sqlite3_finalize(handle_);
    throw InputError("'" + database.name() + "': one statement at a time, please");
  }
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(handle_, ++bound_, value);
  return *this;
}
Statement& Statement::bind(double value) {
  sqlite3_bind_double(handle_, ++bound_, value);
  return *this;
}
Statement& Statement::bind(std::string_view value) {
  sqlite3_bind_text(handle_, ++bound_, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);
  return *this;
}
Statement& Statement::bind_null() {
  sqlite3_bind_null(handle_, ++bound_);
  return *this;
}
Statement& Statement::bind_time(std::int64_t value) {
  return value < 0 ? bind_null() : bind(value);
}

bool Statement::next() {
  switch (sqlite3_step(handle_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      database_.fail("cannot go on");
  }
}

void Statement::done() {
  next();
  sqlite3_reset(handle_);
  bound_ = 0;
}

int Statement::columns() const { return sqlite3_column_count(handle_); }
std::string Statement::column_name(int column) const {
  const char* name = sqlite3_column_name(handle_, column);
  return name ? name : "";
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}
std::int64_t Statement::number(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }
std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)))
               : "";
}

}  // namespace regatta::trace
