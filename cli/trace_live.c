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

static const char *const group_names[] = {"kind", "device", "scope",  "name", "allocator",
                                          "size", "age",    "thread", "run"};
_Static_assert(sizeof group_names / sizeof group_names[0] == TIDE_BY_RUN + 1, "one name for each grouping");

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

static json_t *instant_json(const instant *i) {
    json_t *doc = json_object();
    json_object_set_new(doc, "file", cli_json_text(i->path));
    json_object_set_new(doc, "at", cli_json_text(i->moment.text));
    json_object_set_new(doc, "run", i->span.run_id > 0 ? json_integer(i->span.run_id) : json_null());
    json_object_set_new(doc, "t_ns", cli_json_bytes(i->moment.t_ns));
    json_object_set_new(doc, "since_begin_ns", cli_json_bytes(cli_since(&i->span, i->moment.t_ns)));
    json_object_set_new(doc, "event", cli_json_bytes(i->moment.event));
    json_object_set_new(doc, "live_blocks", cli_json_bytes(i->live.n));
    json_object_set_new(doc, "requested_bytes", cli_json_bytes(i->live.requested_bytes));
    json_object_set_new(doc, "reserved_bytes", cli_json_bytes(i->live.reserved_bytes));
    return doc;
}

static void print_instant(const instant *i) {
    char path[4096], at[256], place[96], bytes[24], reserved[24];
    printf("%s at %s: %s\n", cli_clean(i->path, path, sizeof path), cli_clean(i->moment.text, at, sizeof at),
           cli_moment_place(&i->moment, &i->span, place, sizeof place));
    printf("live: %zu block%s, %s requested, %s reserved\n", i->live.n, i->live.n == 1 ? "" : "s",
           tide_format_bytes(i->live.requested_bytes, bytes, sizeof bytes),
           tide_format_bytes(i->live.reserved_bytes, reserved, sizeof reserved));
}

// ---- block by block ----

static uint64_t age_of(const tide_live *b, const instant *i) {
    return i->moment.t_ns > b->alloc_ns ? i->moment.t_ns - b->alloc_ns : 0;
}

/// "conv1 #3": the number tells operators of one name apart.
static void add_scope(cli_table *t, const char *scope, int64_t index) {
    if (scope[0] == '\0')
        cli_table_add(t, "-");
    else if (index < 0)
        cli_table_add(t, scope);
    else
        cli_table_addf(t, "%.480s #%" PRId64, scope, index);
}

static int by_size(const void *a, const void *b) {
    const tide_live *x = a, *y = b;
    if (x->requested_bytes != y->requested_bytes) return x->requested_bytes < y->requested_bytes ? 1 : -1;
    return (x->block_id > y->block_id) - (x->block_id < y->block_id);
}

static size_t shown_of(size_t n, uint64_t max_rows) { return max_rows > 0 && n > max_rows ? (size_t)max_rows : n; }

static void print_blocks(const instant *i, uint64_t max_rows) {
    static const cli_column columns[] = {{"bytes", true, false}, {"kind", false, false}, {"device", false, false},
                                         {"age", true, false},   {"name", false, true},  {"scope", false, true}};
    cli_table table = {.columns = columns, .n_columns = sizeof columns / sizeof columns[0]};
    const size_t n = shown_of(i->live.n, max_rows);
    uint64_t rest = i->live.requested_bytes;
    for (size_t k = 0; k < n; k++) {
        const tide_live *b = &i->live.items[k];
        cli_table_addf(&table, "%" PRIu64, b->requested_bytes);
        cli_table_add(&table, tide_memory_kind_name(b->kind));
        cli_table_add(&table, b->device);
        cli_table_add_ns(&table, age_of(b, i));
        cli_table_add(&table, b->name[0] != '\0' ? b->name : "-");
        add_scope(&table, b->scope, b->scope_index);
        rest -= b->requested_bytes;
    }
    if (n < i->live.n) { // the column adds up
        cli_table_addf(&table, "%" PRIu64, rest);
        cli_table_addf(&table, "in %zu more", i->live.n - n);
        for (int k = 2; k < 6; k++) cli_table_add(&table, "");
    }
    cli_table_print(&table, "  ", stdout);
}

static json_t *blocks_json(const instant *i, uint64_t max_rows) {
    json_t *list = json_array();
    for (size_t k = 0; k < shown_of(i->live.n, max_rows); k++) {
        const tide_live *b = &i->live.items[k];
        json_t *row = json_object();
        json_object_set_new(row, "block_id", cli_json_bytes(b->block_id));
        json_object_set_new(row, "name", b->name[0] != '\0' ? cli_json_text(b->name) : json_null());
        json_object_set_new(row, "scope", b->scope[0] != '\0' ? cli_json_text(b->scope) : json_null());
        json_object_set_new(row, "scope_index", b->scope_index >= 0 ? json_integer(b->scope_index) : json_null());
        json_object_set_new(row, "kind", json_string(tide_memory_kind_name(b->kind)));
        json_object_set_new(row, "device", cli_json_text(b->device));
        json_object_set_new(row, "allocator", cli_json_text(b->allocator));
        json_object_set_new(row, "thread", json_integer(b->thread));
        json_object_set_new(row, "run", b->run_id > 0 ? json_integer(b->run_id) : json_null());
        json_object_set_new(row, "requested_bytes", cli_json_bytes(b->requested_bytes));
        json_object_set_new(row, "reserved_bytes", cli_json_bytes(b->reserved_bytes));
        json_object_set_new(row, "alloc_ns", cli_json_bytes(b->alloc_ns));
        json_object_set_new(row, "age_ns", cli_json_bytes(age_of(b, i)));
        json_object_set_new(row, "free_requested", json_boolean(b->free_requested));
        json_array_append_new(list, row);
    }
    return list;
}

// ---- in groups ----

static const char *key_of(const char *key) { return key[0] != '\0' ? key : "-"; }

static void print_groups(const instant *i, const tide_group *groups, size_t n, const cli_trace_options *o) {
    const cli_column columns[] = {{cli_group_by_name(o->by), false, true},
                                  {"blocks", true, false},
                                  {"bytes", true, false},
                                  {"reserved", true, false},
                                  {"share", true, false}};
    cli_table table = {.columns = columns, .n_columns = sizeof columns / sizeof columns[0]};
    const double all = i->live.requested_bytes > 0 ? (double)i->live.requested_bytes : 1.0;
    tide_group rest = {
        .n_blocks = i->live.n, .requested_bytes = i->live.requested_bytes, .reserved_bytes = i->live.reserved_bytes};
    const size_t shown = shown_of(n, o->max_rows);
    for (size_t k = 0; k <= shown; k++) {
        const tide_group *g = k < shown ? &groups[k] : &rest;
        if (k < shown)
            cli_table_add(&table, key_of(g->key));
        else if (shown < n)
            cli_table_addf(&table, "in %zu more", n - shown);
        else
            break;
        cli_table_addf(&table, "%" PRIu64, g->n_blocks);
        cli_table_addf(&table, "%" PRIu64, g->requested_bytes);
        cli_table_addf(&table, "%" PRIu64, g->reserved_bytes);
        cli_table_addf(&table, "%.1f %%", 100.0 * (double)g->requested_bytes / all);
        if (k == shown) break;
        rest.n_blocks -= g->n_blocks;
        rest.requested_bytes -= g->requested_bytes;
        rest.reserved_bytes -= g->reserved_bytes;
    }
    cli_table_print(&table, "  ", stdout);
}

static json_t *groups_json(const tide_group *groups, size_t n) {
    json_t *list = json_array();
    for (size_t k = 0; k < n; k++) {
        json_t *row = json_object();
        json_object_set_new(row, "key", cli_json_text(groups[k].key));
        json_object_set_new(row, "blocks", cli_json_bytes(groups[k].n_blocks));
        json_object_set_new(row, "requested_bytes", cli_json_bytes(groups[k].requested_bytes));
        json_object_set_new(row, "reserved_bytes", cli_json_bytes(groups[k].reserved_bytes));
        json_array_append_new(list, row);
    }
    return list;
}

static int tell_live(instant *i, const tide_group *groups, size_t n, const cli_trace_options *o) {
    if (i->live.n > 0) qsort(i->live.items, i->live.n, sizeof *i->live.items, by_size);
    if (!o->json) {
        print_instant(i);
        if (i->live.n > 0) putchar('\n');
        if (o->grouped && n > 0) print_groups(i, groups, n, o);
        if (!o->grouped && i->live.n > 0) print_blocks(i, o->max_rows);
        return CLI_EXIT_OK;
    }
    json_t *doc = cli_json_document("trace_live");
    json_object_set_new(doc, "moment", instant_json(i));
    if (o->grouped) {
        json_object_set_new(doc, "by", json_string(cli_group_by_name(o->by)));
        json_object_set_new(doc, "groups", groups_json(groups, n));
    } else {
        json_object_set_new(doc, "blocks", blocks_json(i, o->max_rows));
    }
    return cli_json_print(doc);
}

int cli_trace_live(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    instant i = {0};
    tide_group *groups = NULL;
    size_t n = 0;
    tide_status st = look(t, o->path, o->run_id, o->at, &i, &err);
    if (st == TIDE_OK && o->grouped) st = tide_live_set_group(&i.live, o->by, &groups, &n, &err);
    const int code = st == TIDE_OK ? tell_live(&i, groups, n, o) : cli_fail(&err);
    tide_groups_free(groups, n);
    tide_live_set_deinit(&i.live);
    return st == TIDE_ERR_INVALID ? CLI_EXIT_USAGE : code;
}

// ---- two of them ----

static bool unchanged(const tide_group_change *c) { return c->a_bytes == c->b_bytes && c->a_blocks == c->b_blocks; }

static void add_change(cli_table *table, const char *key, const tide_group_change *c) {
    cli_table_add(table, key);
    cli_table_addf(table, "%" PRIu64, c->a_blocks);
    cli_table_addf(table, "%" PRIu64, c->b_blocks);
    cli_table_addf(table, "%" PRIu64, c->a_bytes);
    cli_table_addf(table, "%" PRIu64, c->b_bytes);
    cli_table_addf(table, "%+" PRId64, (int64_t)(c->b_bytes - c->a_bytes));
}

static void sum_up(tide_group_change *sum, const tide_group_change *c) {
    sum->a_blocks += c->a_blocks;
    sum->b_blocks += c->b_blocks;
    sum->a_bytes += c->a_bytes;
    sum->b_bytes += c->b_bytes;
}

static void print_changes(const tide_group_change *changes, size_t n, const cli_trace_options *o) {
    const cli_column columns[] = {{cli_group_by_name(o->by), false, true},
                                  {"blocks", true, false},
                                  {"then", true, false},
                                  {"bytes", true, false},
                                  {"then", true, false},
                                  {"change", true, false}};
    cli_table table = {.columns = columns, .n_columns = sizeof columns / sizeof columns[0]};
    tide_group_change same = {0}, more = {0}, all = {0};
    size_t n_shown = 0, n_same = 0, n_more = 0;
    char key[64];
    for (size_t k = 0; k < n; k++) {
        sum_up(&all, &changes[k]);
        if (unchanged(&changes[k])) {
            sum_up(&same, &changes[k]);
            n_same++;
        } else if (o->max_rows > 0 && n_shown == o->max_rows) {
            sum_up(&more, &changes[k]);
            n_more++;
        } else {
            add_change(&table, key_of(changes[k].key), &changes[k]);
            n_shown++;
        }
    }
    snprintf(key, sizeof key, "in %zu more", n_more);
    if (n_more > 0) add_change(&table, key, &more);
    snprintf(key, sizeof key, "%zu unchanged", n_same);
    if (n_same > 0) add_change(&table, key, &same);
    add_change(&table, "together", &all);
    cli_table_print(&table, "  ", stdout);
}

static json_t *changes_json(const tide_group_change *changes, size_t n) {
    json_t *list = json_array();
    for (size_t k = 0; k < n; k++) {
        const tide_group_change *c = &changes[k];
        json_t *row = json_object();
        json_object_set_new(row, "key", cli_json_text(c->key));
        json_object_set_new(row, "a_blocks", cli_json_bytes(c->a_blocks));
        json_object_set_new(row, "b_blocks", cli_json_bytes(c->b_blocks));
        json_object_set_new(row, "a_bytes", cli_json_bytes(c->a_bytes));
        json_object_set_new(row, "b_bytes", cli_json_bytes(c->b_bytes));
        json_object_set_new(row, "change_bytes", json_integer((json_int_t)(c->b_bytes - c->a_bytes)));
        json_array_append_new(list, row);
    }
    return list;
}

static int tell_changes(const instant *a, const instant *b, const tide_group_change *changes, size_t n,
                        const cli_trace_options *o) {
    if (o->json) {
        json_t *doc = cli_json_document("trace_changes");
        json_object_set_new(doc, "a", instant_json(a));
        json_object_set_new(doc, "b", instant_json(b));
        json_object_set_new(doc, "change_bytes",
                            json_integer((json_int_t)(b->live.requested_bytes - a->live.requested_bytes)));
        json_object_set_new(doc, "by", json_string(cli_group_by_name(o->by)));
        json_object_set_new(doc, "groups", changes_json(changes, n));
        return cli_json_print(doc);
    }
    print_instant(a);
    print_instant(b);
    putchar('\n');
    print_changes(changes, n, o);
    return CLI_EXIT_OK;
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
    const int code = st == TIDE_OK ? tell_changes(&a, &b, changes, n, o) : cli_fail(&err);
    tide_group_changes_free(changes, n);
    tide_live_set_deinit(&a.live);
    tide_live_set_deinit(&b.live);
    tide_trace_close(second);
    return st == TIDE_ERR_INVALID ? CLI_EXIT_USAGE : code;
}
