// SPDX-License-Identifier: MIT
//
// The views of a trace, as text: answers in one SELECT for whoever opens the file with SQLite alone. See schema.h.
#include "profiler/store/schema.h"

static const tide__schema_item views[] = {
    // Every run that began and, as run 0, the whole trace: all views below have a row or more for each. Events may be
    // rows or lie in chunks, and the oldest may be gone: leaves tell of those.
    {"span",
     "CREATE VIEW span AS\n"
     "WITH whole AS (\n"
     "  SELECT max(coalesce((SELECT id FROM event ORDER BY id DESC LIMIT 1), 0),\n"
     "             coalesce((SELECT last_event FROM event_chunk ORDER BY first_event DESC LIMIT 1), 0),\n"
     "             coalesce((SELECT last_event FROM leaf WHERE series = 0 ORDER BY first_event DESC LIMIT 1), 0)) AS "
     "last_event,\n"
     "         (SELECT coalesce(min(t_ns), 0) FROM (\n"
     "            SELECT * FROM (SELECT t_ns FROM event ORDER BY id LIMIT 1)\n"
     "            UNION ALL SELECT * FROM (SELECT begin_ns FROM event_chunk ORDER BY first_event LIMIT 1)\n"
     "            UNION ALL SELECT * FROM (SELECT begin_ns FROM leaf ORDER BY series, first_event LIMIT 1))) AS "
     "begin_ns,\n"
     "         (SELECT coalesce(max(t_ns), 0) FROM (\n"
     "            SELECT * FROM (SELECT t_ns FROM event ORDER BY id DESC LIMIT 1)\n"
     "            UNION ALL SELECT * FROM (SELECT end_ns FROM event_chunk ORDER BY first_event DESC LIMIT 1)\n"
     "            UNION ALL SELECT * FROM (SELECT end_ns FROM leaf WHERE series = 0 ORDER BY first_event DESC LIMIT "
     "1))) AS end_ns)\n"
     "SELECT 0 AS run_id, 1 AS first_event, last_event, begin_ns, end_ns FROM whole\n"
     "UNION ALL\n"
     "SELECT r.id, r.first_event, coalesce(r.last_event, w.last_event), r.begin_ns, coalesce(r.end_ns, w.end_ns)\n"
     "FROM run r, whole w WHERE r.first_event IS NOT NULL"},
    // What is alive when a span begins arrives together, one event before the first. Spans come first (CROSS JOIN keeps
    // the order): where none is asked for, no block is looked at.
    {"live_change",
     "CREATE VIEW live_change AS\n"
     "SELECT s.run_id, max(b.alloc_event, s.first_event - 1) AS event_id, max(b.alloc_ns, s.begin_ns) AS t_ns,\n"
     "       b.id AS block_id, b.kind, b.device, b.alloc_event >= s.first_event AS is_alloc, 0 AS is_free,\n"
     "       b.requested_bytes AS delta_bytes, b.reserved_bytes AS delta_reserved_bytes\n"
     "FROM span s CROSS JOIN block b ON b.alloc_event <= s.last_event\n"
     "                             AND (b.free_event IS NULL OR b.free_event >= s.first_event)\n"
     "UNION ALL\n"
     "SELECT s.run_id, b.free_event, b.free_ns, b.id, b.kind, b.device, 0, 1, -b.requested_bytes, -b.reserved_bytes\n"
     "FROM span s CROSS JOIN block b ON b.free_event BETWEEN s.first_event AND s.last_event"},
    // One window in each SELECT, and no GROUP BY over it: then SQLite computes only the runs that are asked for. So too
    // below.
    {"live_bytes", "CREATE VIEW live_bytes AS\n"
                   "SELECT run_id, event_id, t_ns, kind, device, kind_bytes, kind_reserved_bytes,\n"
                   "       sum(delta_bytes) OVER (PARTITION BY run_id ORDER BY event_id) AS total_bytes\n"
                   "FROM (\n"
                   "  SELECT c.run_id, c.event_id, c.t_ns, k.name AS kind, d.name AS device, c.delta_bytes,\n"
                   "         sum(c.delta_bytes) OVER one AS kind_bytes,\n"
                   "         sum(c.delta_reserved_bytes) OVER one AS kind_reserved_bytes\n"
                   "  FROM live_change c JOIN kind k ON k.id = c.kind JOIN device d ON d.id = c.device\n"
                   "  WINDOW one AS (PARTITION BY c.run_id, c.kind, c.device ORDER BY c.event_id))\n"
                   "ORDER BY run_id, event_id"},
    // Of the whole trace by the leaves, which hold for events too that are gone.
    {"peak",
     "CREATE VIEW peak AS\n"
     "SELECT 0 AS run_id, max_bytes AS peak_bytes, max_ns AS t_ns, max_event AS event_id FROM (\n"
     "  SELECT * FROM leaf WHERE series = 0 ORDER BY max_bytes DESC, first_event LIMIT 1)\n"
     "UNION ALL\n"
     "SELECT run_id, total_bytes, t_ns, event_id FROM (\n"
     "  SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY total_bytes DESC, event_id) AS place FROM (\n"
     "    SELECT run_id, event_id, t_ns, sum(delta_bytes) OVER (PARTITION BY run_id ORDER BY event_id) AS total_bytes\n"
     "    FROM live_change WHERE run_id > 0))\n"
     "WHERE place = 1"},
    {"peak_by_kind",
     "CREATE VIEW peak_by_kind AS\n"
     "SELECT 0 AS run_id, k.name AS kind, d.name AS device, l.max_bytes AS peak_bytes, l.max_ns AS t_ns,\n"
     "       l.max_event AS event_id\n"
     "FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY max_bytes DESC, first_event) AS place\n"
     "      FROM leaf WHERE series > 0) l\n"
     "JOIN series s ON s.id = l.series JOIN kind k ON k.id = s.kind JOIN device d ON d.id = s.device\n"
     "WHERE l.place = 1\n"
     "UNION ALL\n"
     "SELECT c.run_id, k.name, d.name, c.kind_bytes, c.t_ns, c.event_id FROM (\n"
     "  SELECT *, row_number() OVER (PARTITION BY run_id, kind, device ORDER BY kind_bytes DESC, event_id) AS place "
     "FROM (\n"
     "    SELECT run_id, kind, device, event_id, t_ns,\n"
     "           sum(delta_bytes) OVER (PARTITION BY run_id, kind, device ORDER BY event_id) AS kind_bytes\n"
     "    FROM live_change WHERE run_id > 0)) c\n"
     "JOIN kind k ON k.id = c.kind JOIN device d ON d.id = c.device\n"
     "WHERE c.place = 1"},
    {"bytes_by_kind",
     "CREATE VIEW bytes_by_kind AS\n"
     "WITH every AS (\n"
     "  SELECT kind, device, count(*) AS allocations, count(free_event) AS frees, sum(requested_bytes) AS "
     "requested_bytes,\n"
     "         sum(iif(free_event IS NULL, requested_bytes, 0)) AS live_at_end_bytes\n"
     "  FROM block GROUP BY kind, device),\n"
     "top AS (\n"
     "  SELECT s.kind, s.device, max(l.max_bytes) AS peak_bytes, max(l.max_reserved_bytes) AS peak_reserved_bytes\n"
     "  FROM leaf l JOIN series s ON s.id = l.series WHERE l.series > 0 GROUP BY l.series),\n"
     "curve AS (\n"
     "  SELECT *, sum(delta_bytes) OVER one AS kind_bytes, sum(delta_reserved_bytes) OVER one AS kind_reserved_bytes\n"
     "  FROM live_change WHERE run_id > 0 WINDOW one AS (PARTITION BY run_id, kind, device ORDER BY event_id)),\n"
     "sums AS (\n"
     "  SELECT 0 AS run_id, e.kind, e.device, e.allocations, e.frees, e.requested_bytes, t.peak_bytes,\n"
     "         t.peak_reserved_bytes, e.live_at_end_bytes\n"
     "  FROM every e JOIN top t ON t.kind = e.kind AND t.device = e.device\n"
     "  UNION ALL\n"
     "  SELECT run_id, kind, device, allocations, frees, requested_bytes, peak_bytes, peak_reserved_bytes, "
     "live_at_end_bytes\n"
     "  FROM (SELECT run_id, kind, device, row_number() OVER one AS place, sum(is_alloc) OVER one AS allocations,\n"
     "               sum(is_free) OVER one AS frees, sum(is_alloc * delta_bytes) OVER one AS requested_bytes,\n"
     "               max(kind_bytes) OVER one AS peak_bytes, max(kind_reserved_bytes) OVER one AS "
     "peak_reserved_bytes,\n"
     "               sum(delta_bytes) OVER one AS live_at_end_bytes\n"
     "        FROM curve WINDOW one AS (PARTITION BY run_id, kind, device))\n"
     "  WHERE place = 1)\n"
     "SELECT s.run_id, k.name AS kind, d.name AS device, s.allocations, s.frees, s.requested_bytes, s.peak_bytes,\n"
     "       s.peak_reserved_bytes, s.live_at_end_bytes\n"
     "FROM sums s JOIN kind k ON k.id = s.kind JOIN device d ON d.id = s.device\n"
     "ORDER BY s.run_id, k.name, d.name"},
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
     "FROM event e LEFT JOIN op o ON o.id = e.op\n"
     "LEFT JOIN kind k ON k.id = e.kind LEFT JOIN device d ON d.id = e.device\n"
     "LEFT JOIN name t ON t.id = e.tag_id LEFT JOIN name a ON a.id = e.allocator_id\n"
     "LEFT JOIN scope s ON s.id = e.scope_id LEFT JOIN name sn ON sn.id = s.name_id"},
    {"live_at_peak",
     "CREATE VIEW live_at_peak AS\n"
     "SELECT p.run_id, b.block_id, b.name, b.scope, b.step, b.kind, b.device, b.requested_bytes, b.reserved_bytes,\n"
     "       b.alloc_ns, b.free_ns\n"
     "FROM peak p JOIN blocks b ON b.alloc_event <= p.event_id\n"
     "                         AND (b.free_event IS NULL OR b.free_event > p.event_id)"},
    {"leaks", "CREATE VIEW leaks AS\n"
              "SELECT run_id, block_id, name, scope, step, kind, device, requested_bytes, alloc_ns, thread,\n"
              "       (SELECT coalesce(sum(n_lost), 0) > 0 FROM position) AS uncertain\n"
              "FROM blocks WHERE free_event IS NULL"},
    {"top_scopes",
     "CREATE VIEW top_scopes AS\n"
     "SELECT n.run_id, coalesce(sn.text, '') AS scope, s.kind AS scope_kind, s.step, count(*) AS allocations,\n"
     "       sum(b.requested_bytes) AS requested_bytes, max(b.requested_bytes) AS largest_bytes\n"
     "FROM span n CROSS JOIN block b ON b.alloc_event BETWEEN n.first_event AND n.last_event\n"
     "LEFT JOIN scope s ON s.id = b.scope_id LEFT JOIN name sn ON sn.id = s.name_id\n"
     "GROUP BY n.run_id, sn.text, s.kind, s.step\n"
     "ORDER BY n.run_id, requested_bytes DESC, scope, s.step"},
    {"scope_event", "CREATE VIEW scope_event AS\n"
                    "SELECT id, run_id, t_ns, op = 16 AS enter, scope_id, thread FROM event WHERE op IN (16, 17)"},
    {"scopes", "CREATE VIEW scopes AS\n"
               "SELECT e.id AS scope_event_id, e.run_id, e.t_ns, e.enter, n.text AS scope, s.kind AS scope_kind,\n"
               "       s.step, e.thread\n"
               "FROM scope_event e JOIN scope s ON s.id = e.scope_id JOIN name n ON n.id = s.name_id"},
    {"steps", "CREATE VIEW steps AS\n"
              "SELECT s.run_id, s.step, n.text AS name, s.begin_ns, s.end_ns\n"
              "FROM step s JOIN name n ON n.id = s.name_id ORDER BY s.run_id, s.step"},
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
                     "SELECT e.id AS event_id, e.run_id, e.t_ns, e.requested_bytes, k.name AS kind, d.name AS device, "
                     "a.text AS allocator,\n"
                     "       coalesce(t.text, '') AS name, coalesce(sn.text, '') AS scope, e.thread\n"
                     "FROM event e LEFT JOIN kind k ON k.id = e.kind LEFT JOIN device d ON d.id = e.device\n"
                     "LEFT JOIN name t ON t.id = e.tag_id LEFT JOIN name a ON a.id = e.allocator_id\n"
                     "LEFT JOIN scope s ON s.id = e.scope_id LEFT JOIN name sn ON sn.id = s.name_id\n"
                     "WHERE e.op = 6"},
    {"timeline",
     "CREATE VIEW timeline AS\n"
     "SELECT l.series, k.name AS kind, d.name AS device, l.first_event, l.last_event, l.begin_ns, l.end_ns, "
     "l.min_bytes,\n"
     "       l.max_bytes, l.max_event, l.max_ns, l.max_reserved_bytes, l.last_bytes, l.last_reserved_bytes\n"
     "FROM leaf l JOIN series s ON s.id = l.series LEFT JOIN kind k ON k.id = s.kind LEFT JOIN device d ON d.id = "
     "s.device"},
    {"marks", "CREATE VIEW marks AS\n"
              "SELECT e.id AS event_id, e.run_id, e.t_ns, coalesce(t.text, '') AS name, e.thread\n"
              "FROM event e LEFT JOIN name t ON t.id = e.tag_id WHERE e.op = 8"},
    {"gaps",
     "CREATE VIEW gaps AS\n"
     "SELECT e.id AS event_id, e.run_id, e.t_ns, e.requested_bytes AS lost, e.thread FROM event e WHERE e.op = 18"},
    {"problems", "CREATE VIEW problems AS\n"
                 "SELECT p.id AS problem_id, p.event_id, e.t_ns, o.name AS op, e.block_id, p.problem, p.what\n"
                 "FROM problem p LEFT JOIN event e ON e.id = p.event_id LEFT JOIN op o ON o.id = e.op"},
    {"late",
     "CREATE VIEW late AS\n"
     "SELECT p.event_id, e.t_ns, CAST(substr(p.what, instr(p.what, 'own time is ') + 12) AS INTEGER) AS own_ns,\n"
     "       o.name AS op, e.block_id, e.thread\n"
     "FROM problem p LEFT JOIN event e ON e.id = p.event_id LEFT JOIN op o ON o.id = e.op\n"
     "WHERE p.problem = 8"},
    {"totals", "CREATE VIEW totals AS\n"
               "SELECT t.process_id, k.name AS kind, d.name AS device, t.n_allocs AS allocations, t.n_frees AS frees,\n"
               "       t.requested_bytes, t.freed_bytes, t.requested_bytes - t.freed_bytes AS live_at_end_bytes\n"
               "FROM total t JOIN kind k ON k.id = t.kind JOIN device d ON d.id = t.device"},
    {"processes", "CREATE VIEW processes AS\n"
                  "SELECT p.id AS process_id, p.pid, p.rank, p.command, p.begin_ns, p.end_ns, p.how,\n"
                  "       (SELECT count(*) FROM thread t WHERE t.process_id = p.id) AS threads,\n"
                  "       (SELECT count(*) FROM run r WHERE r.process_id = p.id) AS runs,\n"
                  "       (SELECT coalesce(sum(o.n_lost), 0) FROM position o WHERE o.process_id = p.id) AS lost\n"
                  "FROM process p"},
};

size_t tide__schema_views(const tide__schema_item **out) {
    *out = views;
    return sizeof views / sizeof views[0];
}
