// The store's tables and views, as docs/trace.md tells them.
#pragma once

namespace regatta::trace {

// Rises when a reader of an older store would misunderstand a newer one.
inline constexpr int schema_version = 1;

inline constexpr const char* record_tables = R"sql(
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE workers (id INTEGER PRIMARY KEY, name TEXT, group_name TEXT, node TEXT, kind TEXT);
CREATE TABLE kinds (id INTEGER PRIMARY KEY, label TEXT, job TEXT, phases TEXT, phase TEXT,
  group_name TEXT, segment INTEGER, part INTEGER, chunk INTEGER, bucket INTEGER, priority INTEGER,
  flops REAL);
CREATE TABLE tasks (id INTEGER PRIMARY KEY, kind INTEGER, worker INTEGER, step INTEGER,
  submit_ns INTEGER, ready_ns INTEGER, start_ns INTEGER, end_ns INTEGER, acquire_ns INTEGER,
  predicted_ns INTEGER);
CREATE TABLE dependencies (task INTEGER, on_task INTEGER, PRIMARY KEY (task, on_task))
  WITHOUT ROWID;
CREATE TABLE marks (name TEXT, number INTEGER, time_ns INTEGER);
CREATE TABLE operator_kinds (id INTEGER PRIMARY KEY, name TEXT, op TEXT, work TEXT);
CREATE TABLE operators (task INTEGER, kind INTEGER, worker INTEGER, start_ns INTEGER,
  end_ns INTEGER);
CREATE TABLE links (from_memory TEXT, to_memory TEXT, bytes INTEGER, transfers INTEGER);
CREATE TABLE transfers (link INTEGER, start_ns INTEGER, end_ns INTEGER, bytes INTEGER);
CREATE TABLE counters (name TEXT, unit TEXT, source TEXT, step INTEGER, time_ns INTEGER,
  value REAL);
)sql";

// What analysis concludes for the whole record.
inline constexpr const char* analysis_tables = R"sql(
CREATE TABLE summary (key TEXT PRIMARY KEY, value REAL);
CREATE TABLE worker_use (worker INTEGER PRIMARY KEY, tasks INTEGER, busy_ns INTEGER,
  idle_ns INTEGER, overhead_ns INTEGER);
CREATE TABLE idle (worker INTEGER, start_ns INTEGER, end_ns INTEGER, cause TEXT, task INTEGER,
  overran INTEGER);
CREATE TABLE critical_tasks (position INTEGER PRIMARY KEY, task INTEGER);
CREATE TABLE kind_use (kind INTEGER PRIMARY KEY, tasks INTEGER, busy_ns INTEGER,
  critical_ns INTEGER, blamed_ns INTEGER, gain_s REAL);
)sql";

inline constexpr const char* forget_analysis = R"sql(
DELETE FROM summary; DELETE FROM worker_use; DELETE FROM idle; DELETE FROM critical_tasks;
DELETE FROM kind_use;
)sql";

inline constexpr const char* views = R"sql(
CREATE VIEW timeline AS
  SELECT t.id, t.step, k.label, k.job, k.phases, k.phase, k.segment, k.part, k.chunk, k.bucket,
    w.name AS worker, w.group_name, w.node, t.submit_ns / 1e9 AS submit_s,
    t.ready_ns / 1e9 AS ready_s, t.start_ns / 1e9 AS start_s, t.end_ns / 1e9 AS end_s,
    (t.end_ns - t.start_ns) / 1e9 AS duration_s, t.acquire_ns / 1e9 AS acquire_s,
    t.predicted_ns / 1e9 AS predicted_s, k.flops, k.priority
  FROM tasks t JOIN kinds k ON k.id = t.kind JOIN workers w ON w.id = t.worker;
CREATE VIEW busy_by_worker AS
  SELECT w.name AS worker, w.group_name, w.node, u.tasks, u.busy_ns / 1e9 AS busy_s,
    u.idle_ns / 1e9 AS idle_s, u.overhead_ns / 1e9 AS overhead_s,
    1.0 * u.busy_ns / max(1, u.busy_ns + u.idle_ns + u.overhead_ns) AS busy_share
  FROM worker_use u JOIN workers w ON w.id = u.worker ORDER BY u.worker;
CREATE VIEW idle_causes AS
  SELECT cause, sum(end_ns - start_ns) / 1e9 AS seconds,
    1.0 * sum(end_ns - start_ns) / (SELECT sum(end_ns - start_ns) FROM idle) AS share,
    count(*) AS intervals
  FROM idle GROUP BY cause ORDER BY seconds DESC;
CREATE VIEW idle_by_task AS
  SELECT k.label, k.job, i.cause, sum(i.end_ns - i.start_ns) / 1e9 AS seconds,
    sum(i.overran) AS overran, count(*) AS intervals
  FROM idle i JOIN tasks t ON t.id = i.task JOIN kinds k ON k.id = t.kind
  GROUP BY t.kind, i.cause ORDER BY seconds DESC;
CREATE VIEW critical_path AS
  SELECT c.position, t.id AS task, t.step, k.label, k.phase, w.name AS worker, w.node,
    t.start_ns / 1e9 AS start_s, (t.end_ns - t.start_ns) / 1e9 AS duration_s
  FROM critical_tasks c JOIN tasks t ON t.id = c.task JOIN kinds k ON k.id = t.kind
    JOIN workers w ON w.id = t.worker ORDER BY c.position;
CREATE VIEW helpful_tasks AS
  SELECT k.label, k.job, u.tasks, u.gain_s, u.busy_ns / 1e9 AS busy_s,
    u.critical_ns / 1e9 AS critical_s, u.blamed_ns / 1e9 AS blamed_s
  FROM kind_use u JOIN kinds k ON k.id = u.kind ORDER BY u.gain_s DESC;
CREATE VIEW by_segment AS
  SELECT k.job, k.segment, k.phase, count(*) AS tasks, sum(t.end_ns - t.start_ns) / 1e9 AS busy_s,
    avg(t.end_ns - t.start_ns) / 1e9 AS mean_s,
    sum(k.flops) / max(1, sum(t.end_ns - t.start_ns)) AS gflop_per_s
  FROM tasks t JOIN kinds k ON k.id = t.kind
  GROUP BY k.job, k.segment, k.phase ORDER BY k.job, k.segment, k.phase;
CREATE VIEW by_phase AS
  SELECT k.phase, count(*) AS tasks, sum(t.end_ns - t.start_ns) / 1e9 AS busy_s,
    avg(t.end_ns - t.start_ns) / 1e9 AS mean_s, max(t.end_ns - t.start_ns) / 1e9 AS longest_s
  FROM tasks t JOIN kinds k ON k.id = t.kind GROUP BY k.phase ORDER BY busy_s DESC;
CREATE VIEW by_chunk AS
  SELECT k.chunk, k.group_name, count(*) AS tasks, sum(t.end_ns - t.start_ns) / 1e9 AS busy_s
  FROM tasks t JOIN kinds k ON k.id = t.kind GROUP BY k.chunk, k.group_name;
CREATE VIEW by_step AS
  SELECT t.step, count(*) AS tasks, min(t.start_ns) / 1e9 AS start_s, max(t.end_ns) / 1e9 AS end_s,
    sum(t.end_ns - t.start_ns) / 1e9 AS busy_s
  FROM tasks t GROUP BY t.step ORDER BY t.step;
CREATE VIEW by_operator AS
  SELECT k.name, k.op, k.work, count(*) AS runs, sum(o.end_ns - o.start_ns) / 1e9 AS busy_s,
    avg(o.end_ns - o.start_ns) / 1e9 AS mean_s
  FROM operators o JOIN operator_kinds k ON k.id = o.kind GROUP BY o.kind ORDER BY busy_s DESC;
CREATE VIEW mispredicted AS
  SELECT k.label, count(*) AS tasks, avg(t.end_ns - t.start_ns) / 1e9 AS mean_s,
    avg(t.predicted_ns) / 1e9 AS predicted_s,
    avg(1.0 * (t.end_ns - t.start_ns) / max(1, t.predicted_ns)) AS ratio
  FROM tasks t JOIN kinds k ON k.id = t.kind WHERE t.predicted_ns IS NOT NULL
  GROUP BY t.kind ORDER BY abs(avg(t.end_ns - t.start_ns - t.predicted_ns)) * count(*) DESC;
CREATE VIEW by_link AS
  SELECT l.from_memory, l.to_memory, l.bytes, l.transfers,
    sum(t.end_ns - t.start_ns) / 1e9 AS busy_s
  FROM links l LEFT JOIN transfers t ON t.link = l.rowid - 1 GROUP BY l.rowid ORDER BY busy_s DESC;
CREATE VIEW energy_by_step AS
  SELECT step, source, sum(value) AS joules FROM counters WHERE unit = 'J'
  GROUP BY step, source ORDER BY step;
)sql";

}  // namespace regatta::trace
