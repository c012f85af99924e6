// SPDX-License-Identifier: MIT
//
// The tables and views of a trace, as text. See schema.h.
#include "profiler/schema.h"

#define REQUIRED(column) ",\n  " #column " INTEGER NOT NULL"
#define OPTIONAL(column) ",\n  " #column " INTEGER"
#define NAMED(column) ", " #column
#define PLACE(column) ", ?"

static const tide__schema_item tables[] = {
    {"meta", "CREATE TABLE meta(\n  key TEXT PRIMARY KEY NOT NULL,\n  value TEXT NOT NULL\n) STRICT, WITHOUT ROWID"},
    {"op", "CREATE TABLE op(\n  id INTEGER PRIMARY KEY,\n  name TEXT NOT NULL\n) STRICT"},
    {"kind", "CREATE TABLE kind(\n  id INTEGER PRIMARY KEY,\n  name TEXT NOT NULL,\n  purpose TEXT NOT NULL\n) STRICT"},
    {"device", "CREATE TABLE device(\n  id INTEGER PRIMARY KEY,\n  name TEXT NOT NULL\n) STRICT"},
    {"name", "CREATE TABLE name(\n  id INTEGER PRIMARY KEY,\n  text TEXT NOT NULL\n) STRICT"},
    {"scope", "CREATE TABLE scope(\n"
              "  id INTEGER PRIMARY KEY,\n"
              "  name_id INTEGER NOT NULL,\n"
              "  kind TEXT NOT NULL,\n"
              "  step INTEGER,\n"
              "  parent_id INTEGER\n"
              ") STRICT"},
    {"run", "CREATE TABLE run(\n"
            "  id INTEGER PRIMARY KEY,\n"
            "  model TEXT NOT NULL,\n"
            "  source TEXT,\n"
            "  mode TEXT NOT NULL,\n"
            "  strategy TEXT,\n"
            "  device TEXT NOT NULL,\n"
            "  contexts INTEGER NOT NULL,\n"
            "  begin_ns INTEGER NOT NULL,\n"
            "  end_ns INTEGER,\n"
            "  first_event INTEGER NOT NULL,\n"
            "  last_event INTEGER,\n"
            "  plan_bytes INTEGER,\n"
            "  plan_naive_bytes INTEGER,\n"
            "  plan_lower_bound_bytes INTEGER\n"
            ") STRICT"},
    {"event", "CREATE TABLE event(\n  id INTEGER PRIMARY KEY" TIDE__EVENT_COLUMNS(REQUIRED, OPTIONAL) "\n) STRICT"},
    {"scope_event", "CREATE TABLE scope_event(\n"
                    "  id INTEGER PRIMARY KEY,\n"
                    "  run_id INTEGER,\n"
                    "  t_ns INTEGER NOT NULL,\n"
                    "  enter INTEGER NOT NULL,\n"
                    "  scope_id INTEGER NOT NULL,\n"
                    "  thread INTEGER NOT NULL\n"
                    ") STRICT"},
    {"block", "CREATE TABLE block(\n"
              "  id INTEGER PRIMARY KEY,\n"
              "  run_id INTEGER,\n"
              "  alloc_event INTEGER NOT NULL,\n"
              "  free_event INTEGER,\n"
              "  alloc_ns INTEGER NOT NULL,\n"
              "  free_requested_ns INTEGER,\n"
              "  free_ns INTEGER,\n"
              "  kind INTEGER NOT NULL,\n"
              "  device INTEGER NOT NULL,\n"
              "  stream INTEGER NOT NULL,\n"
              "  requested_bytes INTEGER NOT NULL,\n"
              "  reserved_bytes INTEGER NOT NULL,\n"
              "  address INTEGER NOT NULL,\n"
              "  thread INTEGER NOT NULL,\n"
              "  allocator_id INTEGER,\n"
              "  tag_id INTEGER,\n"
              "  scope_id INTEGER\n"
              ") STRICT"},
    {"plan", "CREATE TABLE plan(\n"
             "  run_id INTEGER PRIMARY KEY,\n"
             "  model TEXT NOT NULL,\n"
             "  strategy TEXT NOT NULL,\n"
             "  form TEXT NOT NULL,\n"
             "  bytes INTEGER NOT NULL,\n"
             "  align_bytes INTEGER NOT NULL,\n"
             "  naive_bytes INTEGER NOT NULL,\n"
             "  lower_bound_bytes INTEGER NOT NULL,\n"
             "  naive_peak_bytes INTEGER NOT NULL,\n"
             "  proved_bytes INTEGER NOT NULL,\n"
             "  proven INTEGER NOT NULL,\n"
             "  verified INTEGER NOT NULL,\n"
             "  time_ns INTEGER NOT NULL,\n"
             "  n_steps INTEGER NOT NULL,\n"
             "  n_tensors INTEGER NOT NULL,\n"
             "  n_pools INTEGER NOT NULL,\n"
             "  n_buffers INTEGER NOT NULL\n"
             ") STRICT"},
    {"plan_buffer", "CREATE TABLE plan_buffer(\n"
                    "  run_id INTEGER NOT NULL,\n"
                    "  buffer INTEGER NOT NULL,\n"
                    "  device TEXT NOT NULL,\n"
                    "  kind INTEGER NOT NULL,\n"
                    "  bytes INTEGER NOT NULL,\n"
                    "  align_bytes INTEGER NOT NULL,\n"
                    "  naive_bytes INTEGER NOT NULL,\n"
                    "  naive_peak_bytes INTEGER NOT NULL,\n"
                    "  lower_bound_bytes INTEGER NOT NULL,\n"
                    "  proved_bytes INTEGER NOT NULL,\n"
                    "  proof TEXT NOT NULL,\n"
                    "  PRIMARY KEY(run_id, buffer)\n"
                    ") STRICT, WITHOUT ROWID"},
    {"plan_tensor", "CREATE TABLE plan_tensor(\n"
                    "  run_id INTEGER NOT NULL,\n"
                    "  idx INTEGER NOT NULL,\n"
                    "  name TEXT NOT NULL,\n"
                    "  size_bytes INTEGER NOT NULL,\n"
                    "  aligned_bytes INTEGER NOT NULL,\n"
                    "  align_bytes INTEGER NOT NULL,\n"
                    "  begin_step INTEGER NOT NULL,\n"
                    "  end_step INTEGER NOT NULL,\n"
                    "  kind INTEGER NOT NULL,\n"
                    "  device TEXT NOT NULL,\n"
                    "  role TEXT NOT NULL,\n"
                    "  persistent INTEGER NOT NULL,\n"
                    "  node INTEGER,\n"
                    "  port INTEGER,\n"
                    "  value INTEGER,\n"
                    "  pool INTEGER,\n"
                    "  offset_bytes INTEGER,\n"
                    "  unrounded INTEGER NOT NULL,\n"
                    "  fixed_offset_bytes INTEGER,\n"
                    "  apart_set INTEGER,\n"
                    "  alias TEXT,\n"
                    "  alias_of INTEGER,\n"
                    "  alias_offset_bytes INTEGER,\n"
                    "  PRIMARY KEY(run_id, idx)\n"
                    ") STRICT, WITHOUT ROWID"},
    {"plan_gap", "CREATE TABLE plan_gap(\n"
                 "  run_id INTEGER NOT NULL,\n"
                 "  idx INTEGER NOT NULL,\n"
                 "  gap INTEGER NOT NULL,\n"
                 "  begin_step INTEGER NOT NULL,\n"
                 "  end_step INTEGER NOT NULL,\n"
                 "  lo_bytes INTEGER NOT NULL,\n"
                 "  hi_bytes INTEGER NOT NULL,\n"
                 "  PRIMARY KEY(run_id, idx, gap)\n"
                 ") STRICT, WITHOUT ROWID"},
    {"plan_point", "CREATE TABLE plan_point(\n"
                   "  run_id INTEGER NOT NULL,\n"
                   "  point INTEGER NOT NULL,\n"
                   "  name TEXT NOT NULL,\n"
                   "  PRIMARY KEY(run_id, point)\n"
                   ") STRICT, WITHOUT ROWID"},
    {"plan_point_size", "CREATE TABLE plan_point_size(\n"
                        "  run_id INTEGER NOT NULL,\n"
                        "  idx INTEGER NOT NULL,\n"
                        "  point INTEGER NOT NULL,\n"
                        "  size_bytes INTEGER NOT NULL,\n"
                        "  PRIMARY KEY(run_id, idx, point)\n"
                        ") STRICT, WITHOUT ROWID"},
    {"plan_pool", "CREATE TABLE plan_pool(\n"
                  "  run_id INTEGER NOT NULL,\n"
                  "  pool INTEGER NOT NULL,\n"
                  "  size_bytes INTEGER NOT NULL,\n"
                  "  offset_bytes INTEGER NOT NULL,\n"
                  "  members INTEGER NOT NULL,\n"
                  "  buffer INTEGER NOT NULL,\n"
                  "  PRIMARY KEY(run_id, pool)\n"
                  ") STRICT, WITHOUT ROWID"},
    {"plan_step", "CREATE TABLE plan_step(\n"
                  "  run_id INTEGER NOT NULL,\n"
                  "  step INTEGER NOT NULL,\n"
                  "  name TEXT NOT NULL,\n"
                  "  PRIMARY KEY(run_id, step)\n"
                  ") STRICT, WITHOUT ROWID"},
    {"plan_recomputed", "CREATE TABLE plan_recomputed(\n"
                        "  run_id INTEGER NOT NULL,\n"
                        "  idx INTEGER NOT NULL,\n"
                        "  name TEXT NOT NULL,\n"
                        "  PRIMARY KEY(run_id, idx)\n"
                        ") STRICT, WITHOUT ROWID"},
};

const char *const tide__schema_insert_event =
    "INSERT INTO event(id" TIDE__EVENT_COLUMNS(NAMED, NAMED) ") VALUES(?" TIDE__EVENT_COLUMNS(PLACE, PLACE) ")";

// A block is live until its free is complete: until then its bytes cannot serve anybody else.
const char *const tide__schema_fill_blocks =
    "INSERT INTO block\n"
    "SELECT a.block_id, a.run_id, a.id, f.id, a.t_ns, q.t_ns, f.t_ns, a.kind, a.device, a.stream, a.requested_bytes,\n"
    "       a.reserved_bytes, a.address, a.thread, a.allocator_id, a.tag_id, a.scope_id\n"
    "FROM event a LEFT JOIN (SELECT block_id, t_ns FROM event WHERE op = 2) q ON q.block_id = a.block_id\n"
    "             LEFT JOIN (SELECT block_id, id, t_ns FROM event WHERE op = 3) f ON f.block_id = a.block_id\n"
    "WHERE a.op = 1 ORDER BY a.block_id";

static const tide__schema_item views[] = {
    // Every run and, as run 0, the whole trace: all views below have a row or more for each.
    {"span", "CREATE VIEW span AS\n"
             "SELECT 0 AS run_id, 1 AS first_event, coalesce(max(id), 0) AS last_event,\n"
             "       coalesce(min(t_ns), 0) AS begin_ns, coalesce(max(t_ns), 0) AS end_ns FROM event\n"
             "UNION ALL\n"
             "SELECT id, first_event, last_event, begin_ns, end_ns FROM run"},
    // What is alive when a span begins arrives together, one event before the first.
    {"live_change",
     "CREATE VIEW live_change AS\n"
     "SELECT s.run_id, max(b.alloc_event, s.first_event - 1) AS event_id, max(b.alloc_ns, s.begin_ns) AS t_ns,\n"
     "       b.id AS block_id, b.kind, b.device, b.alloc_event >= s.first_event AS is_alloc, 0 AS is_free,\n"
     "       b.requested_bytes AS delta_bytes, b.reserved_bytes AS delta_reserved_bytes\n"
     "FROM span s JOIN block b ON b.alloc_event <= s.last_event\n"
     "                       AND (b.free_event IS NULL OR b.free_event >= s.first_event)\n"
     "UNION ALL\n"
     "SELECT s.run_id, b.free_event, b.free_ns, b.id, b.kind, b.device, 0, 1, -b.requested_bytes, -b.reserved_bytes\n"
     "FROM span s JOIN block b ON b.free_event BETWEEN s.first_event AND s.last_event"},
    {"live_bytes", "CREATE VIEW live_bytes AS\n"
                   "SELECT c.run_id, c.event_id, c.t_ns, k.name AS kind, d.name AS device,\n"
                   "       sum(c.delta_bytes) OVER one AS kind_bytes,\n"
                   "       sum(c.delta_reserved_bytes) OVER one AS kind_reserved_bytes,\n"
                   "       sum(c.delta_bytes) OVER every AS total_bytes\n"
                   "FROM live_change c JOIN kind k ON k.id = c.kind JOIN device d ON d.id = c.device\n"
                   "WINDOW one AS (PARTITION BY c.run_id, c.kind, c.device ORDER BY c.event_id),\n"
                   "       every AS (PARTITION BY c.run_id ORDER BY c.event_id)\n"
                   "ORDER BY c.run_id, c.event_id"},
    {"peak", "CREATE VIEW peak AS\n"
             "SELECT run_id, total_bytes AS peak_bytes, t_ns, event_id FROM (\n"
             "  SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY total_bytes DESC, event_id) AS place\n"
             "  FROM live_bytes)\n"
             "WHERE place = 1"},
    {"peak_by_kind",
     "CREATE VIEW peak_by_kind AS\n"
     "SELECT run_id, kind, device, kind_bytes AS peak_bytes, t_ns, event_id FROM (\n"
     "  SELECT *, row_number() OVER (PARTITION BY run_id, kind, device ORDER BY kind_bytes DESC, event_id) AS place\n"
     "  FROM live_bytes)\n"
     "WHERE place = 1"},
    {"bytes_by_kind",
     "CREATE VIEW bytes_by_kind AS\n"
     "WITH total AS (\n"
     "  SELECT c.run_id, k.name AS kind, d.name AS device, sum(c.is_alloc) AS allocations, sum(c.is_free) AS frees,\n"
     "         sum(c.is_alloc * c.delta_bytes) AS requested_bytes, sum(c.delta_bytes) AS live_at_end_bytes\n"
     "  FROM live_change c JOIN kind k ON k.id = c.kind JOIN device d ON d.id = c.device\n"
     "  GROUP BY c.run_id, c.kind, c.device),\n"
     "top AS (\n"
     "  SELECT run_id, kind, device, max(kind_bytes) AS peak_bytes, max(kind_reserved_bytes) AS peak_reserved_bytes\n"
     "  FROM live_bytes GROUP BY run_id, kind, device)\n"
     "SELECT run_id, kind, device, allocations, frees, requested_bytes, peak_bytes, peak_reserved_bytes,\n"
     "       live_at_end_bytes\n"
     "FROM total JOIN top USING (run_id, kind, device)"},
    {"blocks", "CREATE VIEW blocks AS\n"
               "SELECT b.id AS block_id, b.run_id, coalesce(t.text, '') AS name, coalesce(sn.text, '') AS scope,\n"
               "       s.step, k.name AS kind, d.name AS device, b.stream, b.requested_bytes, b.reserved_bytes,\n"
               "       b.address, b.thread, a.text AS allocator, b.alloc_ns, b.free_requested_ns, b.free_ns,\n"
               "       b.free_ns - b.alloc_ns AS lifetime_ns, b.alloc_event, b.free_event\n"
               "FROM block b JOIN kind k ON k.id = b.kind JOIN device d ON d.id = b.device\n"
               "LEFT JOIN name t ON t.id = b.tag_id LEFT JOIN name a ON a.id = b.allocator_id\n"
               "LEFT JOIN scope s ON s.id = b.scope_id LEFT JOIN name sn ON sn.id = s.name_id"},
    {"events",
     "CREATE VIEW events AS\n"
     "SELECT e.id AS event_id, e.run_id, e.t_ns, o.name AS op, e.block_id, k.name AS kind, d.name AS device,\n"
     "       e.stream, e.requested_bytes, e.reserved_bytes, e.address, e.thread, a.text AS allocator,\n"
     "       coalesce(t.text, '') AS name, coalesce(sn.text, '') AS scope, s.step\n"
     "FROM event e JOIN op o ON o.id = e.op JOIN kind k ON k.id = e.kind JOIN device d ON d.id = e.device\n"
     "LEFT JOIN name t ON t.id = e.tag_id LEFT JOIN name a ON a.id = e.allocator_id\n"
     "LEFT JOIN scope s ON s.id = e.scope_id LEFT JOIN name sn ON sn.id = s.name_id"},
    {"live_at_peak",
     "CREATE VIEW live_at_peak AS\n"
     "SELECT p.run_id, b.block_id, b.name, b.scope, b.step, b.kind, b.device, b.requested_bytes, b.reserved_bytes,\n"
     "       b.alloc_ns, b.free_ns\n"
     "FROM peak p JOIN blocks b ON b.alloc_event <= p.event_id\n"
     "                         AND (b.free_event IS NULL OR b.free_event > p.event_id)"},
    {"leaks", "CREATE VIEW leaks AS\n"
              "SELECT run_id, block_id, name, scope, step, kind, device, requested_bytes, alloc_ns, thread\n"
              "FROM blocks WHERE free_event IS NULL"},
    {"top_scopes",
     "CREATE VIEW top_scopes AS\n"
     "SELECT n.run_id, coalesce(sn.text, '') AS scope, s.kind AS scope_kind, s.step, count(*) AS allocations,\n"
     "       sum(b.requested_bytes) AS requested_bytes, max(b.requested_bytes) AS largest_bytes\n"
     "FROM span n JOIN block b ON b.alloc_event BETWEEN n.first_event AND n.last_event\n"
     "LEFT JOIN scope s ON s.id = b.scope_id LEFT JOIN name sn ON sn.id = s.name_id\n"
     "GROUP BY n.run_id, sn.text, s.kind, s.step\n"
     "ORDER BY n.run_id, requested_bytes DESC, scope, s.step"},
    {"scopes", "CREATE VIEW scopes AS\n"
               "SELECT e.id AS scope_event_id, e.run_id, e.t_ns, e.enter, n.text AS scope, s.kind AS scope_kind,\n"
               "       s.step, e.thread\n"
               "FROM scope_event e JOIN scope s ON s.id = e.scope_id JOIN name n ON n.id = s.name_id"},
    // First execution of each step, on the thread that began the first operator when it executed the step at all.
    {"steps", "CREATE VIEW steps AS\n"
              "WITH told AS (\n"
              "  SELECT e.id, e.run_id, e.t_ns, e.enter, e.thread, s.step, n.text AS name,\n"
              "         lead(e.enter) OVER turn AS next_enter, lead(e.t_ns) OVER turn AS next_ns\n"
              "  FROM scope_event e JOIN scope s ON s.id = e.scope_id JOIN name n ON n.id = s.name_id\n"
              "  WHERE e.run_id IS NOT NULL AND s.kind = 'operator' AND s.step IS NOT NULL\n"
              "  WINDOW turn AS (PARTITION BY e.run_id, e.thread, e.scope_id ORDER BY e.id)),\n"
              "began AS (\n"
              "  SELECT *, first_value(thread) OVER (PARTITION BY run_id ORDER BY id) AS first_thread\n"
              "  FROM told WHERE enter = 1),\n"
              "placed AS (\n"
              "  SELECT *, row_number() OVER (PARTITION BY run_id, step ORDER BY thread <> first_thread, id) AS place\n"
              "  FROM began)\n"
              "SELECT run_id, step, name, t_ns AS begin_ns, CASE WHEN next_enter = 0 THEN next_ns END AS end_ns\n"
              "FROM placed WHERE place = 1 ORDER BY run_id, step"},
    {"plan_tensors",
     "CREATE VIEW plan_tensors AS\n"
     "SELECT t.run_id, t.idx, t.name, k.name AS kind, t.role, t.persistent, t.size_bytes, t.aligned_bytes,\n"
     "       t.begin_step, t.end_step, t.pool, t.offset_bytes, s.name AS begin_step_name, t.alias,\n"
     "       a.name AS alias_of, t.alias_offset_bytes\n"
     "FROM plan_tensor t JOIN kind k ON k.id = t.kind\n"
     "LEFT JOIN plan_tensor a ON a.run_id = t.run_id AND a.idx = t.alias_of\n"
     "LEFT JOIN plan_step s ON s.run_id = t.run_id AND s.step = t.begin_step"},
    // A naive run frees at the last use, and nothing shares memory; when the peaks of several naive contexts meet is
    // not planned (NULL).
    {"predicted_vs_measured",
     "CREATE VIEW predicted_vs_measured AS\n"
     "WITH buffer AS (\n"
     "  SELECT run_id, kind, sum(bytes) AS bytes, sum(naive_peak_bytes) AS naive_peak_bytes\n"
     "  FROM plan_buffer GROUP BY run_id, kind),\n"
     "predicted AS (\n"
     "  SELECT r.id AS run_id, r.model, r.mode, r.device, k.name AS kind,\n"
     "         CASE WHEN r.mode <> 'naive' THEN coalesce(b.bytes, 0) * r.contexts\n"
     "              WHEN r.contexts = 1 THEN coalesce(b.naive_peak_bytes, 0)\n"
     "              WHEN b.bytes IS NULL AND k.id <> 2 THEN 0 END +\n"
     "         coalesce((SELECT sum(t.aligned_bytes * iif(t.role = 'output', r.contexts, 1)) FROM plan_tensor t\n"
     "                   WHERE t.run_id = r.id AND t.kind = k.id AND t.persistent), 0) AS bytes\n"
     "  FROM run r JOIN plan p ON p.run_id = r.id JOIN kind k\n"
     "  LEFT JOIN buffer b ON b.run_id = r.id AND b.kind = k.id)\n"
     "SELECT p.run_id, p.model, p.mode, p.kind, p.device, p.bytes AS predicted_bytes,\n"
     "       coalesce(m.peak_bytes, 0) AS measured_bytes, p.bytes - coalesce(m.peak_bytes, 0) AS difference_bytes\n"
     "FROM predicted p LEFT JOIN bytes_by_kind m ON m.run_id = p.run_id AND m.kind = p.kind AND m.device = p.device\n"
     "WHERE coalesce(p.bytes, 1) > 0 OR m.peak_bytes > 0"},
    {"oom_attempts", "CREATE VIEW oom_attempts AS\n"
                     "SELECT e.event_id, e.run_id, e.t_ns, e.requested_bytes, e.kind, e.device, e.allocator, e.name,\n"
                     "       e.scope, e.thread\n"
                     "FROM events e WHERE e.op = 'oom'"},
};

size_t tide__schema_tables(const tide__schema_item **out) {
    *out = tables;
    return sizeof tables / sizeof tables[0];
}

size_t tide__schema_views(const tide__schema_item **out) {
    *out = views;
    return sizeof views / sizeof views[0];
}
