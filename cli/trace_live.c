// SPDX-License-Identifier: MIT
//
// Who was live at a moment of a trace, and what changed between two. See trace_view.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/table.h"
#include "cli/trace_view.h"
#include "core/base/host_alloc.h"

#define TEXT TIDE_UNIT_TEXT
#define NAME TIDE_UNIT_NAME
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define DURATION TIDE_UNIT_DURATION

static const char *const group_names[] = {"kind", "device",  "scope", "name",    "allocator", "size",
                                          "age",  "thread",  "run",   "process", "module",    "function",
                                          "file", "library", "stack", "category"};
_Static_assert(sizeof group_names / sizeof group_names[0] == TIDE_BY_CATEGORY + 1, "one name for each grouping");

bool cli_group_by_of(const char *text, tide_group_by *out) {
    for (size_t i = 0; i < sizeof group_names / sizeof group_names[0]; i++) {
        if (strcmp(text, group_names[i]) != 0) continue;
        *out = (tide_group_by)i;
        return true;
    }
    return false;
}

const char *cli_group_by_name(tide_group_by by) { return group_names[by]; }

/// A moment of one trace and who was live there.
typedef struct instant {
    const char *path;
    cli_span span;
    cli_moment moment;
    tide_live_set live;
} instant;

static tide_status look(tide_trace *t, const char *path, int64_t run_id, const char *at, instant *out,
                        tide_error *err) {
    out->path = path;
    TIDE_TRY(cli_trace_span(t, run_id, &out->span, err));
    TIDE_TRY(cli_moment_of(t, &out->span, at, &out->moment, err));
    TIDE_TRY(cli_moment_live(t, &out->moment, &out->live, err));
    out->moment.event = out->live.event_id;
    if (!out->moment.has_time) out->moment.t_ns = out->live.t_ns;
    return TIDE_OK;
}

/// In plans' buffers. What such a buffer has unused stands for its block.
static size_t count_tensors(const tide_live_set *s) {
    size_t n = 0;
    for (size_t k = 0; k < s->n; k++) n += s->items[k].in_buffer && !s->items[k].is_unused;
    return n;
}

static void add_instant(tide_json_out *j, const char *key, const instant *i) {
    tide_json_open(j, key, '{');
    tide_json_text(j, "file", i->path);
    tide_json_text(j, "at", i->moment.text);
    tide_json_u64_if(j, "run", i->span.run_id > 0, (uint64_t)i->span.run_id);
    tide_json_u64(j, "t_ns", i->moment.t_ns);
    tide_json_u64(j, "since_begin_ns", cli_since(&i->span, i->moment.t_ns));
    tide_json_u64(j, "event", i->moment.event);
    tide_json_u64(j, "live_blocks", i->live.n - count_tensors(&i->live));
    tide_json_u64(j, "live_tensors", count_tensors(&i->live));
    tide_json_u64(j, "requested_bytes", i->live.requested_bytes);
    tide_json_u64(j, "reserved_bytes", i->live.reserved_bytes);
    tide_json_close(j, '}');
}

static void print_instant(const instant *i) {
    char path[4096], at[256], place[96], bytes[24], reserved[24];
    printf("%s at %s: %s\n", cli_clean(i->path, path, sizeof path), cli_clean(i->moment.text, at, sizeof at),
           cli_moment_place(&i->moment, &i->span, place, sizeof place));
    char in_buffers[64] = "";
    const size_t n_tensors = count_tensors(&i->live), n = i->live.n - n_tensors;
    if (n_tensors > 0)
        snprintf(in_buffers, sizeof in_buffers, ", %zu tensor%s in plans' buffers", n_tensors,
                 n_tensors == 1 ? "" : "s");
    printf("%s: %zu block%s%s, %s requested, %s reserved\n",
           i->moment.is_temporary ? "freed at once, all together"
           : i->moment.is_leaked  ? "never freed, all together"
                                  : "live",
           n, n == 1 ? "" : "s", in_buffers, tide_format_bytes(i->live.requested_bytes, bytes, sizeof bytes),
           tide_format_bytes(i->live.reserved_bytes, reserved, sizeof reserved));
}

static const char *or_dash(const char *text) { return text[0] != '\0' ? text : "-"; }

// ---- block by block: the last row may stand for all that are not shown ----

static int by_size(const void *a, const void *b) {
    const tide_live *x = a, *y = b;
    if (x->requested_bytes != y->requested_bytes) return x->requested_bytes < y->requested_bytes ? 1 : -1;
    return (x->block_id > y->block_id) - (x->block_id < y->block_id);
}

static size_t shown_of(size_t n, uint64_t max_rows) { return max_rows > 0 && n > max_rows ? (size_t)max_rows : n; }

typedef struct block_rows {
    const instant *at;
    size_t shown;
    tide_live rest; // bytes of all others
} block_rows;

static const void *block_row(const tide_table *t, size_t i, void *room) {
    const block_rows *rows = t->data;
    (void)room;
    return i < rows->shown ? &rows->at->live.items[i] : &rows->rest;
}
static bool is_rest(const tide_table *t, const void *row) { return row == &((const block_rows *)t->data)->rest; }

static void block_kind(const void *row, tide_cell *v) {
    const block_rows *rows = v->table->data;
    if (is_rest(v->table, row)) snprintf(v->buf, sizeof v->buf, "in %zu more", rows->at->live.n - rows->shown);
    tide_cell_text(v, is_rest(v->table, row) ? v->buf : tide_memory_kind_name(((const tide_live *)row)->kind));
}
static void block_age(const void *row, tide_cell *v) {
    const uint64_t now = ((const block_rows *)v->table->data)->at->moment.t_ns,
                   then = ((const tide_live *)row)->alloc_ns;
    if (!is_rest(v->table, row)) tide_cell_count(v, now > then ? now - then : 0);
}
static void block_name(const void *row, tide_cell *v) {
    if (!is_rest(v->table, row)) tide_cell_text(v, or_dash(((const tide_live *)row)->name));
}
/// "conv1 #3": the number tells operators of one name apart.
static void block_scope(const void *row, tide_cell *v) {
    const tide_live *b = row;
    if (is_rest(v->table, row)) return;
    const bool has_index = b->scope[0] != '\0' && b->scope_index >= 0;
    if (has_index) snprintf(v->buf, 512, "%.480s #%" PRId64, b->scope, b->scope_index);
    tide_cell_text(v, has_index ? v->buf : or_dash(b->scope));
}
static void block_execution(const void *row, tide_cell *v) {
    const tide_live *b = row;
    if (b->in_buffer && !b->is_unused) tide_cell_count(v, b->execution);
}
static void block_run(const void *row, tide_cell *v) {
    const tide_live *b = row;
    if (b->run_id > 0) tide_cell_count(v, (uint64_t)b->run_id);
}

static const tide_column block_columns[] = {
    {"block_id", NULL, COUNT, TIDE_AT(tide_live, block_id)},
    {"name", NULL, TEXT, TIDE_AT(tide_live, name)},
    {"scope", NULL, TEXT, TIDE_AT(tide_live, scope)},
    {"scope_index", NULL, COUNT, TIDE_AT(tide_live, scope_index)},
    {"kind", NULL, TIDE_UNIT_KIND, TIDE_AT(tide_live, kind)},
    {NULL, "bytes", BYTES, TIDE_AT(tide_live, requested_bytes)},
    {NULL, "kind", TEXT, .get = block_kind},
    {"device", "device", NAME, TIDE_AT(tide_live, device)},
    {"allocator", NULL, NAME, TIDE_AT(tide_live, allocator)},
    {"thread", NULL, COUNT, TIDE_AT(tide_live, thread)},
    {"run", NULL, COUNT, .get = block_run},
    {"execution", NULL, COUNT, .get = block_execution},
    {"is_unused", NULL, TIDE_UNIT_FLAG, TIDE_AT(tide_live, is_unused)},
    {"requested_bytes", NULL, BYTES, TIDE_AT(tide_live, requested_bytes)},
    {"reserved_bytes", NULL, BYTES, TIDE_AT(tide_live, reserved_bytes)},
    {"alloc_ns", NULL, DURATION, TIDE_AT(tide_live, alloc_ns)},
    {"age_ns", "age", DURATION, .get = block_age},
    {"free_requested", NULL, TIDE_UNIT_FLAG, TIDE_AT(tide_live, free_requested)},
    {NULL, "name", TEXT, .may_be_cut = true, .get = block_name},
    {NULL, "scope", TEXT, .may_be_cut = true, .get = block_scope},
};

static void add_blocks(const instant *i, const cli_trace_options *o, tide_json_out *j) {
    block_rows rows = {.at = i,
                       .shown = shown_of(i->live.n, o->max_rows),
                       .rest = {.name = "", .scope = "", .device = "", .requested_bytes = i->live.requested_bytes}};
    tide_table t = {.name = "blocks",
                    TIDE_COLUMNS(block_columns),
                    .row = block_row,
                    .n_rows = rows.shown,
                    .data = &rows,
                    .is_exact = true};
    if (j != NULL) {
        tide_table_json(&t, false, j);
        return;
    }
    for (size_t k = 0; k < rows.shown; k++) rows.rest.requested_bytes -= i->live.items[k].requested_bytes;
    if (rows.shown < i->live.n) t.n_rows++; // the column adds up
    cli_table_print(&t, "  ", stdout);
}

// ---- in groups ----

static void group_key(const void *row, tide_cell *v) { tide_cell_text(v, or_dash(((const tide_group *)row)->key)); }
static void group_share(const void *row, tide_cell *v) {
    const uint64_t all = ((const instant *)v->table->data)->live.requested_bytes;
    tide_cell_share(v, ((const tide_group *)row)->requested_bytes, all > 0 ? all : 1);
}

/// Several called the same: their blocks do not add up.
static void group_with_bytes(const void *row, tide_cell *v) {
    const tide_group *g = row;
    if (g->with_blocks > 0) tide_cell_bytes(v, g->with_bytes);
}
static void group_with_share(const void *row, tide_cell *v) {
    const uint64_t all = ((const instant *)v->table->data)->live.requested_bytes;
    const tide_group *g = row;
    if (g->with_blocks > 0) tide_cell_share(v, g->with_bytes, all > 0 ? all : 1);
}

/// The groups, and for people those that are not shown as one more.
static void add_groups(const instant *i, const tide_group *groups, size_t n, const cli_trace_options *o,
                       tide_json_out *j) {
    const bool has_callees = tide_group_by_has_callees(o->by);
    const tide_column columns[] = {
        {"key", NULL, NAME, TIDE_AT(tide_group, key)},
        {NULL, cli_group_by_name(o->by), TEXT, .may_be_cut = true, .get = group_key},
        {"blocks", "blocks", COUNT, TIDE_AT(tide_group, n_blocks)},
        {"requested_bytes", has_callees ? "own" : "bytes", BYTES, TIDE_AT(tide_group, requested_bytes)},
        {"reserved_bytes", "reserved", BYTES, TIDE_AT(tide_group, reserved_bytes)},
        {NULL, "share", TIDE_UNIT_SHARE, .get = group_share},
        {"with_callees_blocks", NULL, COUNT, TIDE_AT(tide_group, with_blocks)},
        {"with_callees_bytes", "with callees", BYTES, .get = group_with_bytes},
        {NULL, "share", TIDE_UNIT_SHARE, .get = group_with_share},
    };
    enum { WITHOUT_CALLEES = 6 };
    tide_table t = {.name = "groups",
                    .columns = columns,
                    .n_columns = has_callees ? sizeof columns / sizeof columns[0] : WITHOUT_CALLEES,
                    .rows = groups,
                    .row_bytes = sizeof *groups,
                    .n_rows = n,
                    .data = i,
                    .is_exact = true};
    if (j != NULL) {
        tide_table_json(&t, false, j);
        return;
    }
    const size_t shown = shown_of(n, o->max_rows);
    char key[64];
    tide_group *rows = tide_host_calloc(shown + 1, sizeof *rows), *rest = rows + shown;
    if (rows == NULL) {
        cli_cut(stdout);
        return;
    }
    if (shown > 0) memcpy(rows, groups, shown * sizeof *rows);
    snprintf(key, sizeof key, "in %zu more", n - shown);
    rest->key = key;
    for (size_t k = shown; k < n; k++) {
        rest->n_blocks += groups[k].n_blocks;
        rest->requested_bytes += groups[k].requested_bytes;
        rest->reserved_bytes += groups[k].reserved_bytes;
    }
    t.rows = rows;
    t.n_rows = shown + (shown < n);
    cli_table_print(&t, "  ", stdout);
    tide_host_free(rows);
}

static int print_live(tide_trace *t, instant *i, const tide_group *groups, size_t n, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    if (i->live.n > 0) qsort(i->live.items, i->live.n, sizeof *i->live.items, by_size);
    if (!o->json) {
        print_instant(i);
        if (i->live.n > 0) putchar('\n');
        if (o->grouped && n > 0) add_groups(i, groups, n, o, NULL);
        if (!o->grouped && i->live.n > 0) add_blocks(i, o, NULL);
        const tide_status st = cli_trace_devices(t, &i->span, &i->moment, NULL, &err);
        return st == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
    }
    tide_text text = {0};
    tide_json_out j = cli_document_begin("trace_live", &text);
    add_instant(&j, "moment", i);
    if (o->grouped) {
        tide_json_text(&j, "by", cli_group_by_name(o->by));
        add_groups(i, groups, n, o, &j);
    } else {
        add_blocks(i, o, &j);
    }
    if (cli_trace_devices(t, &i->span, &i->moment, &j, &err) != TIDE_OK) {
        tide_text_deinit(&text);
        return cli_fail(&err);
    }
    cli_document_end(&j);
    return cli_document_print(&text);
}

int cli_trace_live(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    instant i = {0};
    tide_group *groups = NULL;
    size_t n = 0;
    tide_status st = look(t, o->path, o->run_id, o->at, &i, &err);
    if (st == TIDE_OK && o->grouped) st = tide_live_set_group(&i.live, o->by, &groups, &n, &err);
    if (o->by_callees) tide_groups_sort_by_callees(groups, n);
    const int code = st == TIDE_OK ? print_live(t, &i, groups, n, o) : cli_fail(&err);
    tide_groups_free(groups, n);
    tide_live_set_deinit(&i.live);
    return st == TIDE_ERR_INVALID ? CLI_EXIT_USAGE : code;
}

// ---- two of them ----

static char together[] = "together"; // keys of groups are no constants

static bool unchanged(const tide_group_change *c) { return c->a_bytes == c->b_bytes && c->a_blocks == c->b_blocks; }

static void sum_up(tide_group_change *sum, const tide_group_change *c) {
    sum->a_blocks += c->a_blocks;
    sum->b_blocks += c->b_blocks;
    sum->a_bytes += c->a_bytes;
    sum->b_bytes += c->b_bytes;
}

static void change_key(const void *row, tide_cell *v) {
    tide_cell_text(v, or_dash(((const tide_group_change *)row)->key));
}
static void change_bytes(const void *row, tide_cell *v) {
    const tide_group_change *c = row;
    tide_cell_change(v, c->a_bytes, c->b_bytes);
}

/// Those that changed, what is not shown, what did not change, and the sum of all. `out` [n + 3]. @return how many
static size_t sum_changes(const tide_group_change *changes, size_t n, uint64_t max_rows, char keys[2][64],
                          tide_group_change *out) {
    tide_group_change same = {.key = keys[0]}, more = {.key = keys[1]}, all = {.key = together};
    size_t n_out = 0, n_same = 0, n_more = 0;
    for (size_t k = 0; k < n; k++) {
        sum_up(&all, &changes[k]);
        if (unchanged(&changes[k])) {
            sum_up(&same, &changes[k]);
            n_same++;
        } else if (max_rows > 0 && n_out == max_rows) {
            sum_up(&more, &changes[k]);
            n_more++;
        } else {
            out[n_out++] = changes[k];
        }
    }
    snprintf(keys[0], 64, "%zu unchanged", n_same);
    snprintf(keys[1], 64, "in %zu more", n_more);
    if (n_more > 0) out[n_out++] = more;
    if (n_same > 0) out[n_out++] = same;
    out[n_out++] = all;
    return n_out;
}

static void add_changes(const tide_group_change *changes, size_t n, const cli_trace_options *o, tide_json_out *j) {
    const tide_column columns[] = {
        {"key", NULL, NAME, TIDE_AT(tide_group_change, key)},
        {NULL, cli_group_by_name(o->by), TEXT, .may_be_cut = true, .get = change_key},
        {"a_blocks", "blocks", COUNT, TIDE_AT(tide_group_change, a_blocks)},
        {"b_blocks", "then", COUNT, TIDE_AT(tide_group_change, b_blocks)},
        {"a_bytes", "bytes", BYTES, TIDE_AT(tide_group_change, a_bytes)},
        {"b_bytes", "then", BYTES, TIDE_AT(tide_group_change, b_bytes)},
        {"change_bytes", "change", TIDE_UNIT_CHANGE, .get = change_bytes},
    };
    tide_table t = {.name = "groups",
                    TIDE_COLUMNS(columns),
                    .rows = changes,
                    .row_bytes = sizeof *changes,
                    .n_rows = n,
                    .is_exact = true};
    if (j != NULL) {
        tide_table_json(&t, false, j);
        return;
    }
    char keys[2][64];
    tide_group_change *rows = tide_host_calloc(n + 3, sizeof *rows);
    if (rows == NULL) {
        cli_cut(stdout);
        return;
    }
    t.rows = rows;
    t.n_rows = sum_changes(changes, n, o->max_rows, keys, rows);
    cli_table_print(&t, "  ", stdout);
    tide_host_free(rows);
}

static int print_changes(const instant *a, const instant *b, const tide_group_change *changes, size_t n,
                         const cli_trace_options *o) {
    if (!o->json) {
        print_instant(a);
        print_instant(b);
        putchar('\n');
        add_changes(changes, n, o, NULL);
        return CLI_EXIT_OK;
    }
    tide_text text = {0};
    tide_json_out j = cli_document_begin("trace_changes", &text);
    add_instant(&j, "a", a);
    add_instant(&j, "b", b);
    tide_json_i64(&j, "change_bytes", (int64_t)(b->live.requested_bytes - a->live.requested_bytes));
    tide_json_text(&j, "by", cli_group_by_name(o->by));
    add_changes(changes, n, o, &j);
    cli_document_end(&j);
    return cli_document_print(&text);
}

int cli_trace_changes(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *second = NULL;
    instant a = {0}, b = {0};
    tide_group_change *changes = NULL;
    size_t n = 0;
    const char *at = o->at != NULL ? o->at : "peak";
    tide_status st = TIDE_OK;
    if (o->other != NULL) st = cli_trace_open(o->other, &second, &err);
    if (st == TIDE_OK) st = look(t, o->path, o->run_id, at, &a, &err);
    if (st == TIDE_OK)
        st = look(second != NULL ? second : t, o->other != NULL ? o->other : o->path, o->run_id,
                  o->and_at != NULL ? o->and_at : at, &b, &err);
    if (st == TIDE_OK) st = tide_live_set_compare(&a.live, &b.live, o->by, &changes, &n, &err);
    const int code = st == TIDE_OK ? print_changes(&a, &b, changes, n, o) : cli_fail(&err);
    tide_group_changes_free(changes, n);
    tide_live_set_deinit(&a.live);
    tide_live_set_deinit(&b.live);
    tide_trace_close(second);
    return st == TIDE_ERR_INVALID ? CLI_EXIT_USAGE : code;
}
