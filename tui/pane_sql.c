// SPDX-License-Identifier: MIT
//
// The SQL behind each pane. See pane_sql.h.
#include "tui/pane_sql.h"

#include <inttypes.h>
#include <string.h>

#include "tui/draw/format.h"

// ---- conditions ----

/// Who is alive at a moment: after an event, or when what happened at a time has happened.
static void add_alive(tide_text *out, tide_moment at) {
    if (at.event > 0) {
        tide_text_addf(out, "alloc_event <= %" PRIu64 " AND (end_event IS NULL OR end_event > %" PRIu64 ")", at.event,
                       at.event);
    } else {
        tide_text_addf(out, "alloc_ns <= %" PRId64 " AND (end_ns IS NULL OR end_ns > %" PRId64 ")", at.t, at.t);
    }
}

static void add_until(tide_text *out, tide_moment at) {
    if (at.event > 0) {
        tide_text_addf(out, "event_id <= %" PRIu64, at.event);
    } else {
        tide_text_addf(out, "t_ns <= %" PRId64, at.t);
    }
}

/// Blocks that lived during the run.
static void add_in_run(tide_text *out, int64_t run_id) {
    tide_text_addf(out,
                   "alloc_event <= (SELECT last_event FROM span WHERE run_id = %" PRId64
                   ")\n  AND (end_event IS NULL OR end_event >= (SELECT first_event FROM span WHERE run_id = %" PRId64
                   "))",
                   run_id, run_id);
}

static tide_moment now(const tide_tui_scene *s) {
    return (tide_moment){.t = s->state->cursor, .event = s->state->cursor_event};
}

/// Whether tensors may lie in plans' buffers.
static bool has_buffers(const tide_tui_scene *s) {
    return s->a->run_id == 0 || (s->a->executions != NULL && s->a->executions->plan != NULL);
}

/// What holds memory just after the moment: rows of `holders`.
static void add_held(tide_text *out, tide_moment at) {
    if (at.event > 0) {
        tide_text_addf(out, "begin_event <= %" PRIu64 " AND (end_event IS NULL OR end_event > %" PRIu64 ")", at.event,
                       at.event);
    } else {
        tide_text_addf(out, "begin_ns <= %" PRId64 " AND (end_ns IS NULL OR end_ns > %" PRId64 ")", at.t, at.t);
    }
}

// ---- panes over time ----

static void add_curve(const tide_tui_scene *s, tide_text *out) {
    const tide_tui_window w = s->state->window;
    if (s->state->curve_kind < 0) {
        tide_text_addf(out,
                       "SELECT event_id, t_ns, total_bytes AS bytes\nFROM live_bytes\nWHERE run_id = %" PRId64 "\n",
                       s->a->run_id);
    } else { // on all devices together: no view has that sum
        tide_text_addf(out,
                       "SELECT event_id, t_ns, bytes\nFROM (\n"
                       "  SELECT event_id, t_ns, sum(delta_bytes) OVER (ORDER BY event_id) AS bytes\n"
                       "  FROM live_change\n"
                       "  WHERE run_id = %" PRId64 " AND kind = (SELECT id FROM kind WHERE name = '%s'))\nWHERE true\n",
                       s->a->run_id, tide_memory_kind_name((tide_memory_kind)s->state->curve_kind));
    }
    tide_text_addf(out, "  AND t_ns >= %" PRId64 " AND t_ns < %" PRId64 "\nORDER BY event_id;\n", w.begin, w.end);
}

static void add_gantt(const tide_tui_scene *s, tide_text *out) {
    if (s->state->n_filters > 0 && !s->state->filters_off)
        tide_text_add(out, "-- The filters of the view are not in this: it lists everything that they choose from.\n");
    // Where no plan was run, nothing lies in a buffer and blocks are all there is.
    const bool has_tensors = has_buffers(s);
    tide_text_add(out,
                  "SELECT name, scope, kind, requested_bytes, alloc_ns, free_ns, lifetime_ns\nFROM blocks\nWHERE ");
    add_in_run(out, s->a->run_id);
    if (has_tensors) {
        tide_text_add(out, "\n  AND block_id NOT IN (SELECT block_id FROM buffers)\nUNION ALL\n"
                           "SELECT name, scope, kind, size_bytes, min(begin_ns), max(end_ns), max(end_ns) - "
                           "min(begin_ns)\nFROM tensors");
        if (s->a->run_id > 0) tide_text_addf(out, " WHERE run_id = %" PRId64, s->a->run_id);
        tide_text_add(out, "\nGROUP BY run_id, execution, idx\nORDER BY alloc_ns, requested_bytes DESC;\n");
    } else {
        tide_text_add(out, "\nORDER BY alloc_ns, requested_bytes DESC, block_id;\n");
    }
}

static void add_map(const tide_tui_scene *s, tide_text *out) {
    tide_text_add(out, "-- Addresses at the cursor; columns before and behind it are other moments. Segments:\n"
                       "--   SELECT * FROM events WHERE op IN ('segment_alloc', 'segment_free');\n"
                       "SELECT address, address + reserved_bytes AS address_end, name, allocator, requested_bytes,\n"
                       "       reserved_bytes\nFROM blocks\nWHERE ");
    add_alive(out, now(s));
    tide_text_add(out, "\nORDER BY address;\n");
}

/// What tensors take of the plan's buffers at a step, more and fewer than before, all that share bytes together.
static void add_tensor_changes(int64_t run, tide_text *out) {
    tide_text_addf(
        out,
        "WITH RECURSIVE shared(idx, root) AS (\n"
        "  SELECT idx, idx FROM plan_tensor WHERE run_id = %" PRId64 " AND alias_of IS NULL\n"
        "  UNION ALL SELECT t.idx, s.root FROM plan_tensor t JOIN shared s ON s.idx = t.alias_of\n"
        "  WHERE t.run_id = %" PRId64 "),\n"
        "part AS (SELECT s.root, p.* FROM plan_part p JOIN shared s ON s.idx = p.idx WHERE p.run_id = %" PRId64 "),\n"
        "change AS (\n"
        "  SELECT step, sum(bytes) AS bytes FROM (\n"
        "    SELECT root, begin_step AS step, bytes FROM part\n"
        "    UNION ALL SELECT root, end_step, -bytes FROM part)\n"
        "  GROUP BY root, step)\n",
        run, run, run);
}

static void add_operators(const tide_tui_scene *s, tide_text *out) {
    const int64_t run = s->a->run_id;
    const bool has_tensors = run > 0 && has_buffers(s);
    tide_text_add(out, "-- Bytes that are allocated and freed while the first execution of a step runs.\n");
    if (has_tensors) add_tensor_changes(run, out);
    tide_text_addf(out,
                   "SELECT s.step, s.name,\n"
                   "       coalesce(sum(c.delta_bytes) FILTER (WHERE c.is_alloc), 0)%s AS makes_bytes,\n"
                   "       coalesce(-sum(c.delta_bytes) FILTER (WHERE c.is_free), 0)%s AS frees_bytes\n"
                   "FROM steps s LEFT JOIN live_change c ON c.run_id = s.run_id\n"
                   "  AND c.t_ns >= s.begin_ns AND c.t_ns < s.end_ns\n"
                   "WHERE s.run_id = %" PRId64 "\nGROUP BY s.step, s.name\nORDER BY s.step;\n",
                   has_tensors ? "\n         + (SELECT coalesce(sum(bytes), 0) FROM change WHERE step = s.step AND "
                                 "bytes > 0)"
                               : "",
                   has_tensors ? "\n         - (SELECT coalesce(sum(bytes), 0) FROM change WHERE step = s.step + 1 AND "
                                 "bytes < 0)"
                               : "",
                   run);
}

// ---- panes of a moment ----

static void add_table(const tide_tui_scene *s, tide_text *out) {
    const tide_moment at = s->live != NULL ? s->live->at : now(s);
    if (!has_buffers(s)) {
        tide_text_add(out, "SELECT name, scope, kind, requested_bytes,\n"
                           "       round(100.0 * requested_bytes / sum(requested_bytes) OVER (), 1) AS percent,\n"
                           "       alloc_ns, address\nFROM blocks\nWHERE ");
        add_alive(out, at);
        tide_text_add(out, "\nORDER BY requested_bytes DESC, block_id;\n");
        return;
    }
    tide_text_add(out, "SELECT name, scope, kind, sum(bytes) AS requested_bytes,\n"
                       "       round(100.0 * sum(bytes) / sum(sum(bytes)) OVER (), 1) AS percent,\n"
                       "       min(begin_ns) AS alloc_ns, min(address) AS address\nFROM holders\nWHERE ");
    add_held(out, at);
    tide_text_add(out, "\nGROUP BY block_id, execution, idx, name\n"
                       "ORDER BY requested_bytes DESC, execution IS NOT NULL, block_id, execution, idx;\n");
}

static void add_explain(const tide_tui_scene *s, tide_text *out) {
    tide_text_add(out, "-- Who holds memory, tensors in plans' buffers too: SELECT * FROM holders;\n"
                       "-- Conclusions (\"without ...\") are computed from this and from the curve.\n"
                       "SELECT scope AS operator, count(*) AS blocks, sum(requested_bytes) AS live_bytes,\n"
                       "       sum(reserved_bytes - requested_bytes) AS rounding_bytes\nFROM blocks\nWHERE ");
    add_alive(out, s->explanation != NULL ? s->explanation->at : now(s));
    tide_text_add(out, "\nGROUP BY scope\nORDER BY live_bytes DESC;\n");
}

static void add_stacks(const tide_tui_scene *s, tide_text *out) {
    tide_text_add(
        out,
        "-- Each call with what it holds with all that it called; a call that lies in itself counts once a level.\n"
        "WITH RECURSIVE up(block, scope, bytes) AS (\n"
        "  SELECT id, scope_id, requested_bytes FROM life WHERE ");
    add_alive(out, s->call_tree != NULL ? s->call_tree->at : now(s));
    tide_text_add(
        out, "\n  UNION ALL\n"
             "  SELECT up.block, s.parent_id, up.bytes FROM up JOIN scope s ON s.id = up.scope)\n"
             "SELECT s.id AS scope, s.parent_id AS caller, n.text AS call, count(*) AS blocks, sum(up.bytes) AS bytes\n"
             "FROM up JOIN scope s ON s.id = up.scope JOIN name n ON n.id = s.name_id\n"
             "GROUP BY s.id ORDER BY bytes DESC, s.id;\n");
}

static void add_leaks(const tide_tui_scene *s, tide_text *out) {
    tide_text_add(out, "-- What persists (weights) is no leak while a trace is being recorded.\n"
                       "SELECT name, scope, kind, device, count(*) AS blocks, sum(requested_bytes) AS bytes,\n"
                       "       min(alloc_ns) AS began_ns\nFROM leaks\n");
    if (s->a->run_id > 0) tide_text_addf(out, "WHERE run_id = %" PRId64 "\n", s->a->run_id);
    tide_text_add(out, "GROUP BY name, scope, kind, device\nORDER BY bytes DESC;\n");
}

static void add_pools(const tide_tui_scene *s, tide_text *out) {
    const tide_moment at = s->pools != NULL ? s->pools->at : now(s);
    if (s->pools != NULL && s->leaks != NULL && s->state->pane_row[TIDE_TUI_PANE_POOLS] >= s->pools->n &&
        s->leaks->n > 0) {
        add_leaks(s, out);
        return;
    }
    tide_text_add(out, "-- Select a leak for the SQL of the leaks below.\n"
                       "SELECT allocator, device, kind, max(sum(segment_bytes), sum(active_bytes)) AS reserved_bytes,\n"
                       "       sum(active_bytes) AS active_bytes, sum(requested_bytes) AS requested_bytes,\n"
                       "       max(sum(segment_bytes) - sum(active_bytes), 0) AS cached_bytes\n"
                       "FROM (\n"
                       "  SELECT allocator, device, kind, 0 AS segment_bytes, reserved_bytes AS active_bytes,\n"
                       "         requested_bytes\n  FROM blocks WHERE ");
    add_alive(out, at);
    tide_text_add(out, "\n  UNION ALL\n"
                       "  SELECT allocator, device, kind,\n"
                       "         iif(op = 'segment_alloc', reserved_bytes, -reserved_bytes), 0, 0\n"
                       "  FROM events WHERE op IN ('segment_alloc', 'segment_free') AND ");
    add_until(out, at);
    tide_text_add(out, ")\nGROUP BY allocator, device, kind\nORDER BY reserved_bytes DESC;\n");
}

static void add_case(tide_text *out, tide_moment at, const char *name) {
    tide_text_add(out, "sum(iif(");
    add_alive(out, at);
    tide_text_addf(out, ",\n               requested_bytes, 0)) AS %s", name);
}

static void add_compare(const tide_tui_scene *s, tide_text *out) {
    const tide_diff *d = s->diff;
    if (d == NULL) {
        tide_text_add(out, "-- There is nothing to compare with: no second input, no two moments.\n"
                           "SELECT * FROM peak;\n");
        return;
    }
    if (!s->state->compares_moments) {
        tide_text_add(out, "-- Two inputs: ask A this, and B the same at its own moment.\n"
                           "SELECT scope, sum(requested_bytes) AS bytes\nFROM blocks\nWHERE ");
        add_alive(out, d->a_at);
        tide_text_add(out, "\nGROUP BY scope\nORDER BY bytes DESC;\n");
        return;
    }
    tide_text_add(out, "SELECT scope,\n       ");
    add_case(out, d->a_at, "a_bytes");
    tide_text_add(out, ",\n       ");
    add_case(out, d->b_at, "b_bytes");
    tide_text_add(out, "\nFROM blocks\nGROUP BY scope\nHAVING a_bytes <> b_bytes\n"
                       "ORDER BY abs(b_bytes - a_bytes) DESC;\n");
}

static void add_whatif(const tide_tui_scene *s, tide_text *out) {
    tide_text_addf(out,
                   "-- Advice is planned anew and stands in no table; this is the plan that it starts from.\n"
                   "SELECT strategy, bytes, naive_bytes, lower_bound_bytes, proved_bytes, proven\nFROM plan\n"
                   "WHERE run_id = %" PRId64 ";\n",
                   s->a->run_id);
}

static void add_details(const tide_tui_scene *s, tide_text *out) {
    if (!s->has_selection) {
        tide_text_add(out, "-- Nothing is selected.\nSELECT count(*) AS blocks FROM blocks;\n");
    } else if (s->selection.shape.is_planned) {
        tide_text_addf(out, "SELECT * FROM plan_tensors WHERE run_id = %" PRId64 " AND idx = %" PRIu64 ";\n",
                       tide_planned_run(s->selection.id), tide_planned_tensor(s->selection.id));
    } else {
        tide_text_addf(out, "SELECT * FROM blocks WHERE block_id = %" PRId64 ";\n", (int64_t)s->selection.id);
    }
}

// ---- a plan file ----

/// What `jq` makes of the plan's document, by pane.
static void add_plan_paths(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out) {
    const int64_t t = s->state->cursor;
    switch (pane) {
    case TIDE_TUI_PANE_TABLE:
    case TIDE_TUI_PANE_EXPLAIN:
    case TIDE_TUI_PANE_MAP:
    case TIDE_TUI_PANE_CURVE:
        tide_text_addf(out,
                       "--   alive at the cursor, largest first (persistent ones always are):\n"
                       "jq '[.tensors[] | select(.persistent or (.begin <= %" PRId64 " and .end > %" PRId64
                       "))] | sort_by(-.size_bytes)[] | [.name, .size_bytes, .begin, .end, .places]' -c FILE\n",
                       t, t);
        break;
    case TIDE_TUI_PANE_GANTT:
        tide_text_add(out, "jq '.tensors[] | [.name, .size_bytes, .begin, .end]' -c FILE\n");
        break;
    case TIDE_TUI_PANE_OPERATORS:
        tide_text_add(out, "jq '.order | to_entries[] | [.key, .value]' -c FILE\n");
        break;
    case TIDE_TUI_PANE_POOLS:
        tide_text_add(out, "jq '.plans[0].buffers, .plans[0].pools' -c FILE\n");
        break;
    case TIDE_TUI_PANE_DETAILS:
        tide_text_addf(out, "jq '.tensors[%" PRIu64 "]' FILE\n", s->has_selection ? s->selection.id : 0);
        break;
    default:
        tide_text_add(out, "jq '.plans[] | {strategy, bytes, naive_bytes, lower_bound_bytes, proved_bytes}' FILE\n");
        break;
    }
}

static void add_plan(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out) {
    tide_text_add(out, "-- A plan has no SQL: its file is JSON (docs/plan-format.md), and jq answers.\n"
                       "-- FILE: what `tidemark plan … -o FILE` writes, or the plan file itself.\n");
    add_plan_paths(s, pane, out);
}

void tide_tui_pane_sql(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out) {
    if (!s->a->is_trace) {
        add_plan(s, pane, out);
        return;
    }
    switch (pane) {
    case TIDE_TUI_PANE_CURVE:
        add_curve(s, out);
        break;
    case TIDE_TUI_PANE_GANTT:
        add_gantt(s, out);
        break;
    case TIDE_TUI_PANE_MAP:
        add_map(s, out);
        break;
    case TIDE_TUI_PANE_TABLE:
        add_table(s, out);
        break;
    case TIDE_TUI_PANE_OPERATORS:
        add_operators(s, out);
        break;
    case TIDE_TUI_PANE_POOLS:
        add_pools(s, out);
        break;
    case TIDE_TUI_PANE_EXPLAIN:
        add_explain(s, out);
        break;
    case TIDE_TUI_PANE_COMPARE:
        add_compare(s, out);
        break;
    case TIDE_TUI_PANE_WHATIF:
        add_whatif(s, out);
        break;
    case TIDE_TUI_PANE_STACKS:
        add_stacks(s, out);
        break;
    case TIDE_TUI_PANE_DETAILS:
        add_details(s, out);
        break;
    default:
        break;
    }
}
