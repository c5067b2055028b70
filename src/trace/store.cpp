#include "trace/store.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "trace/analysis.h"
#include "trace/schema.h"
#include "trace/sqlite.h"

namespace regatta::trace {
namespace fs = std::filesystem;

namespace {

// One run of a statement that adds several rows takes half the time of a run for each.
constexpr std::size_t rows_at_once = 32;

// "INSERT INTO table VALUES (?, ?), (?, ?)": `rows` rows of `columns` values.
std::string insertion(const std::string& into, std::size_t columns, std::size_t rows) {
  std::string row = "(?";
  for (std::size_t i = 1; i < columns; ++i) row += ", ?";
  std::string sql = into + " VALUES " + row + ")";
  for (std::size_t i = 1; i < rows; ++i) sql += ", " + row + ")";
  return sql;
}

// Adds rows of one table; BIND binds the values of one.
template <class Row, auto BIND>
class Rows {
 public:
  Rows(Database& database, const std::string& into, std::size_t columns)
      : many_(database, insertion(into, columns, rows_at_once)),
        one_(database, insertion(into, columns, 1)) {}

  void add(std::span<const Row> rows) {
    for (; rows.size() >= rows_at_once; rows = rows.subspan(rows_at_once)) {
      for (const Row& row : rows.first(rows_at_once)) BIND(many_, row);
      many_.done();
    }
    for (const Row& row : rows) {
      BIND(one_, row);
      one_.done();
    }
  }

 private:
  Statement many_, one_;
};

void bind_task(Statement& to, const Task& task) {
  to.bind(task.id).bind(std::int64_t{task.kind}).bind(std::int64_t{task.worker}).bind(task.step);
  to.bind_time(task.submit).bind_time(task.ready).bind(task.start).bind(task.end);
  to.bind(task.acquire).bind_time(task.predicted);
}
void bind_dependency(Statement& to, const Dependency& each) { to.bind(each.task).bind(each.on); }
void bind_transfer(Statement& to, const Transfer& each) {
  to.bind(std::int64_t{each.link}).bind(each.start).bind(each.end).bind(each.bytes);
}
void bind_operator(Statement& to, const Operator& each) {
  to.bind_time(each.task).bind(std::int64_t{each.kind}).bind_time(each.worker);
  to.bind(each.start).bind(each.end);
}

}  // namespace

class StoreWriter::Impl {
 public:
  explicit Impl(const fs::path& file)
      : file_(file), database_(std::in_place, file_.aside(), Database::Access::make) {
    database_->run(record_tables);
    database_->run(analysis_tables);
    database_->run(views);
    // One transaction: SQLite keeps a few megabytes of it in memory and the rest in the file.
    database_->run("BEGIN");
    metadata_.emplace(*database_, "INSERT OR REPLACE INTO metadata VALUES (?, ?)");
    workers_.emplace(*database_, "INSERT INTO workers VALUES (?, ?, ?, ?, ?)");
    kinds_.emplace(*database_, "INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    tasks_.emplace(*database_, "INSERT INTO tasks", 10);
    dependencies_.emplace(*database_, "INSERT OR IGNORE INTO dependencies", 2);
    marks_.emplace(*database_, "INSERT INTO marks VALUES (?, ?, ?)");
    operator_kinds_.emplace(*database_, "INSERT INTO operator_kinds VALUES (?, ?, ?, ?)");
    operators_.emplace(*database_, "INSERT INTO operators", 5);
    links_.emplace(*database_, "INSERT INTO links VALUES (?, ?, ?, ?)");
    transfers_.emplace(*database_, "INSERT INTO transfers", 4);
    counters_.emplace(*database_, "INSERT INTO counters VALUES (?, ?, ?, ?, ?, ?)");
    metadata("schema", std::to_string(schema_version));
  }

  void metadata(const std::string& key, const std::string& value) {
    metadata_->bind(key).bind(value).done();
  }
  void add(const Worker& worker) {
    workers_->bind(worker_count_++).bind(worker.name).bind(worker.group).bind(worker.node);
    workers_->bind(worker.kind).done();
  }
  void add(const TaskKind& kind) {
    kinds_->bind(kind_count_++).bind(label(kind)).bind(kind.job).bind(kind.phases);
    kinds_->bind(main_phase(kind)).bind(kind.group).bind_time(kind.segment).bind_time(kind.part);
    kinds_->bind_time(kind.chunk).bind_time(kind.bucket).bind(std::int64_t{kind.priority});
    kinds_->bind(kind.flops).done();
  }
  void add(const OperatorKind& kind) {
    operator_kinds_->bind(operator_kind_count_++).bind(kind.name).bind(kind.op).bind(kind.work);
    operator_kinds_->done();
  }
  void add(std::span<const Task> tasks) { tasks_->add(tasks); }
  void add(std::span<const Dependency> dependencies) { dependencies_->add(dependencies); }
  void add(std::span<const Operator> operators) { operators_->add(operators); }
  void add(const Mark& mark) { marks_->bind(mark.name).bind(mark.number).bind(mark.time).done(); }
  void add(const Link& link) {
    links_->bind(link.from).bind(link.to).bind(link.bytes).bind(link.transfers).done();
  }
  void add(std::span<const Transfer> transfers) { transfers_->add(transfers); }
  void add(const Counter& each) {
    counters_->bind(each.name).bind(each.unit).bind(each.source).bind(each.step).bind(each.time);
    counters_->bind(each.value).done();
  }
  void finish() {
    database_->run("COMMIT");
    close();
    database_.reset();
    file_.commit();
  }

 private:
  // Statements go before their database.
  void close() {
    for (auto* each :
         {&metadata_, &workers_, &kinds_, &marks_, &operator_kinds_, &links_, &counters_})
      each->reset();
    tasks_.reset();
    dependencies_.reset();
    operators_.reset();
    transfers_.reset();
  }

  // In this order: statements go before their database, the database before its file.
  Replacement file_;
  std::optional<Database> database_;
  std::optional<Statement> metadata_, workers_, kinds_, marks_, operator_kinds_, links_, counters_;
  std::optional<Rows<Task, bind_task>> tasks_;
  std::optional<Rows<Dependency, bind_dependency>> dependencies_;
  std::optional<Rows<Operator, bind_operator>> operators_;
  std::optional<Rows<Transfer, bind_transfer>> transfers_;
  std::int64_t worker_count_ = 0, kind_count_ = 0, operator_kind_count_ = 0;
};

StoreWriter::StoreWriter(const fs::path& file) : impl_(std::make_unique<Impl>(file)) {}
StoreWriter::~StoreWriter() = default;
void StoreWriter::metadata(const std::string& key, const std::string& value) {
  impl_->metadata(key, value);
}
void StoreWriter::add(const Worker& worker) { impl_->add(worker); }
void StoreWriter::add(const TaskKind& kind) { impl_->add(kind); }
void StoreWriter::add(const OperatorKind& kind) { impl_->add(kind); }
void StoreWriter::add(std::span<const Task> tasks) { impl_->add(tasks); }
void StoreWriter::add(std::span<const Dependency> dependencies) { impl_->add(dependencies); }
void StoreWriter::add(std::span<const Operator> operators) { impl_->add(operators); }
void StoreWriter::add(const Mark& mark) { impl_->add(mark); }
void StoreWriter::add(const Link& link) { impl_->add(link); }
void StoreWriter::add(std::span<const Transfer> transfers) { impl_->add(transfers); }
void StoreWriter::add(const Counter& counter) { impl_->add(counter); }
void StoreWriter::finish() { impl_->finish(); }

void write_store(const fs::path& file, const Record& record) {
  StoreWriter writer(file);
  for (const auto& [key, value] : record.metadata) writer.metadata(key, value);
  for (const Worker& worker : record.workers) writer.add(worker);
  for (const TaskKind& kind : record.kinds) writer.add(kind);
  for (const OperatorKind& kind : record.operator_kinds) writer.add(kind);
  writer.add(std::span(record.tasks));
  writer.add(std::span(record.dependencies));
  writer.add(std::span(record.operators));
  for (const Mark& mark : record.marks) writer.add(mark);
  for (const Link& link : record.links) writer.add(link);
  writer.add(std::span(record.transfers));
  for (const Counter& counter : record.counters) writer.add(counter);
  writer.finish();
}

namespace {

// A number of the store that must fit a smaller type.
std::int32_t small(const Statement& row, int column, const Database& database) {
  if (row.is_null(column)) return -1;
  const std::int64_t value = row.number(column);
  if (value < -1 || value > std::numeric_limits<std::int32_t>::max())
    throw InputError("'" + database.name() + "': " + row.column_name(column) + " " +
                     std::to_string(value) + " is out of range");
  return static_cast<std::int32_t>(value);
}

Time time_or_unknown(const Statement& row, int column) {
  return row.is_null(column) ? unknown : row.number(column);
}

// Ids of workers and kinds are their places: 0, 1, ...
void require_place(const Statement& row, std::size_t expected, const char* what,
                   const Database& database) {
  if (row.number(0) != static_cast<std::int64_t>(expected))
    throw InputError("'" + database.name() + "': " + what + " are not numbered 0, 1, 2, ...");
}

void require_store(Database& database) {
  for (const char* table : {"metadata", "workers", "kinds", "tasks", "dependencies", "marks",
                            "operator_kinds", "operators", "links", "counters"})
    if (!database.has_table(table))
      throw InputError("'" + database.name() + "' is not a trace of Regatta: it has no table '" +
                       table + "'; for other programs' traces use regatta trace --import");
  Statement version(database, "SELECT value FROM metadata WHERE key = 'schema'");
  if (!version.next() || version.text(0) != std::to_string(schema_version))
    throw InputError("'" + database.name() + "' was written by another version of Regatta");
}

void read_names(Database& database, Record& record) {
  for (Statement row(database, "SELECT key, value FROM metadata"); row.next();)
    record.metadata[row.text(0)] = row.text(1);
  for (Statement row(database, "SELECT id, name, group_name, node, kind FROM workers ORDER BY id");
       row.next();) {
    require_place(row, record.workers.size(), "workers", database);
    record.workers.push_back({row.text(1), row.text(2), row.text(3), row.text(4)});
  }
  for (Statement row(database,
                     "SELECT id, job, phases, group_name, segment, part, chunk, bucket, priority, "
                     "flops FROM kinds ORDER BY id");
       row.next();) {
    require_place(row, record.kinds.size(), "kinds", database);
    record.kinds.push_back({.job = row.text(1),
                            .phases = row.text(2),
                            .group = row.text(3),
                            .segment = small(row, 4, database),
                            .part = small(row, 5, database),
                            .chunk = small(row, 6, database),
                            .bucket = small(row, 7, database),
                            .priority = static_cast<std::int32_t>(row.number(8)),
                            .flops = row.real(9)});
  }
  for (Statement row(database, "SELECT id, name, op, work FROM operator_kinds ORDER BY id");
       row.next();) {
    require_place(row, record.operator_kinds.size(), "operator_kinds", database);
    record.operator_kinds.push_back({row.text(1), row.text(2), row.text(3)});
  }
}

void read_tasks(Database& database, Record& record) {
  for (Statement row(database,
                     "SELECT id, kind, worker, step, submit_ns, ready_ns, start_ns, end_ns, "
                     "acquire_ns, predicted_ns FROM tasks ORDER BY id");
       row.next();) {
    Task task;
    task.id = row.number(0);
    task.kind = small(row, 1, database);
    task.worker = small(row, 2, database);
    task.step = row.number(3);
    task.submit = time_or_unknown(row, 4);
    task.ready = time_or_unknown(row, 5);
    task.start = row.number(6);
    task.end = row.number(7);
    task.acquire = row.number(8);
    task.predicted = time_or_unknown(row, 9);
    record.tasks.push_back(task);
  }
  for (Statement row(database, "SELECT task, on_task FROM dependencies ORDER BY task, on_task");
       row.next();)
    record.dependencies.push_back({row.number(0), row.number(1)});
}

void read_rest(Database& database, Record& record) {
  for (Statement row(database, "SELECT name, number, time_ns FROM marks ORDER BY time_ns");
       row.next();)
    record.marks.push_back({row.text(0), row.number(1), row.number(2)});
  for (Statement row(database,
                     "SELECT task, kind, worker, start_ns, end_ns FROM operators ORDER BY "
                     "start_ns");
       row.next();)
    record.operators.push_back({time_or_unknown(row, 0), small(row, 1, database),
                                small(row, 2, database), row.number(3), row.number(4)});
  for (Statement row(database,
                     "SELECT from_memory, to_memory, bytes, transfers FROM links ORDER BY rowid");
       row.next();)
    record.links.push_back({row.text(0), row.text(1), row.number(2), row.number(3)});
  // Stores of earlier versions have only totals.
  if (database.has_table("transfers"))
    for (Statement row(
             database,
             "SELECT link, start_ns, end_ns, bytes FROM transfers ORDER BY link, start_ns");
         row.next();)
      record.transfers.push_back(
          {small(row, 0, database), row.number(1), row.number(2), row.number(3)});
  for (Statement row(database,
                     "SELECT name, unit, source, step, time_ns, value FROM counters ORDER BY "
                     "time_ns");
       row.next();)
    record.counters.push_back(
        {row.text(0), row.text(1), row.text(2), row.number(3), row.number(4), row.real(5)});
}

}  // namespace

Record read_store(const fs::path& file) {
  Database database(file, Database::Access::read);
  require_store(database);
  Record record;
  read_names(database, record);
  read_tasks(database, record);
  read_rest(database, record);
  if (const std::vector<std::string> found = faults(record); !found.empty())
    throw InputError("'" + file.string() + "' is not sound: " + found.front());
  return record;
}

fs::path store_of(const fs::path& where) {
  std::error_code code;
  if (fs::is_directory(where, code)) {
    fs::path file = where / store_name;
    if (fs::exists(file, code)) return file;
    throw InputError("'" + where.string() + "' has no " + store_name +
                     ": record one with regatta train --trace");
  }
  if (!fs::exists(where, code))
    throw InputError("'" + where.string() + "' does not exist: give a run folder or a " +
                     store_name);
  return where;
}

void write_analysis(const fs::path& file, const Record& record) {
  const Analysis found = analyse(record, whole_window(record));
  Database database(file, Database::Access::change);
  database.run("BEGIN");
  database.run(forget_analysis);
  {
    Statement summary(database, "INSERT INTO summary VALUES (?, ?)");
    const auto say = [&](std::string_view key, double value) {
      summary.bind(key).bind(value).done();
    };
    say("wall_s", seconds(found.wall()));
    say("tasks", static_cast<double>(found.tasks));
    say("steps", static_cast<double>(found.steps));
    say("critical_path_s", seconds(found.critical));
    say("work_s", seconds(found.work));
    say("bound_s", seconds(found.bound));
    say("efficiency", found.efficiency());
    say("imbalance", found.imbalance);
    Statement use(database, "INSERT INTO worker_use VALUES (?, ?, ?, ?, ?)");
    for (std::size_t w = 0; w < found.workers.size(); ++w) {
      const WorkerUse& each = found.workers[w];
      use.bind(static_cast<std::int64_t>(w)).bind(each.tasks).bind(each.busy).bind(each.idle);
      use.bind(each.overhead).done();
    }
    Statement idle(database, "INSERT INTO idle VALUES (?, ?, ?, ?, ?, ?)");
    for (const IdleInterval& each : found.idle) {
      idle.bind(std::int64_t{each.worker}).bind(each.start).bind(each.end);
      idle.bind(cause_name(each.cause)).bind_time(each.task).bind(std::int64_t{each.overran});
      idle.done();
    }
    Statement critical(database, "INSERT INTO critical_tasks VALUES (?, ?)");
    for (std::size_t i = 0; i < found.critical_path.size(); ++i)
      critical.bind(static_cast<std::int64_t>(i)).bind(found.critical_path[i]).done();
    Statement kinds(database, "INSERT INTO kind_use VALUES (?, ?, ?, ?, ?, ?)");
    for (const KindUse& each : found.kinds) {
      kinds.bind(std::int64_t{each.kind}).bind(each.tasks).bind(each.busy).bind(each.critical);
      kinds.bind(each.blamed).bind(each.gain_s).done();
    }
  }
  database.run("COMMIT");
}

std::vector<std::vector<std::string>> query(const fs::path& file, const std::string& sql) {
  Database database(file, Database::Access::read);
  database.restrict_to_reading();
  Statement row(database, sql);
  std::vector<std::vector<std::string>> table(1);
  for (int column = 0; column < row.columns(); ++column)
    table.front().push_back(row.column_name(column));
  while (row.next()) {
    table.emplace_back();
    for (int column = 0; column < row.columns(); ++column) table.back().push_back(row.text(column));
  }
  return table;
}

}  // namespace regatta::trace
