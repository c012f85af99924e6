// SPDX-License-Identifier: MIT
//
// The blocks of a trace as lifetimes, for a list and for the plan that a strategy makes of them: what the best
// placement would have needed that knew all of them before. See replay.h.
//
//     alloc a   alloc b   free a   alloc c  …       a [0, 2)   b [1, …)   c [2, …)
//     step 0    step 1             step 2           a step for each block that is given
#include <inttypes.h>

#include "cli/replay.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/device/device.h"

/// Of a block in the table, which begins with its own step; end -1: alive at the end.
typedef struct row {
    uint64_t bytes;
    int64_t end;
    const char *name, *device; // texts of the trace; NULL: not wanted
    tide_memory_kind kind;
} row;

typedef struct collecting {
    const cli_replay_source *source;
    size_t *row_of; // by slot [cap_slots], owned
    size_t cap_slots;
    row *rows; // [n], owned; in the order of their begin
    size_t n, cap;
    bool is_list; // rows have names, kinds and devices
} collecting;

#define NO_ROW SIZE_MAX // of a block of 0 bytes

static tide_status begin_block(collecting *c, const tide_trace_event *e, size_t slot, tide_error *err) {
    if (slot == CLI_REPLAY_NO_SLOT) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&c->row_of, &c->cap_slots, slot + 1, err, "for the blocks of '%s'", c->source->path));
    c->row_of[slot] = NO_ROW;
    if (e->requested_bytes == 0) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&c->rows, &c->cap, c->n + 1, err, "for the lifetimes of '%s'", c->source->path));
    c->row_of[slot] = c->n;
    row *r = &c->rows[c->n++];
    *r = (row){.bytes = e->requested_bytes, .end = -1};
    if (!c->is_list) return TIDE_OK;
    r->name = e->name;
    r->device = e->device;
    (void)cli_replay_kind_of(e->kind, &r->kind);
    return TIDE_OK;
}

static tide_status collect_event(void *ctx, tide_memory_op op, const tide_trace_event *e, size_t slot,
                                 tide_error *err) {
    collecting *c = ctx;
    if (op == TIDE_MEM_ALLOC) return begin_block(c, e, slot, err);
    if (op != TIDE_MEM_FREE_COMPLETED || slot == CLI_REPLAY_NO_SLOT || c->row_of[slot] == NO_ROW) return TIDE_OK;
    TIDE_ASSERT(c->row_of[slot] < c->n && c->rows[c->row_of[slot]].end < 0);
    c->rows[c->row_of[slot]].end = (int64_t)c->n;
    return TIDE_OK;
}

/// A name of its own for each: many blocks have one name.
static void name_row(const collecting *c, size_t i, char *out, size_t out_bytes) {
    const char *name = c->rows[i].name;
    if (name != NULL && name[0] != '\0')
        snprintf(out, out_bytes, "%.*s #%zu", (int)(out_bytes - 24), name, i + 1);
    else
        snprintf(out, out_bytes, "block %zu", i + 1);
}

enum { MALLOC_ALIGN_BYTES = 16 };

/// Row `i`, added to the list.
static tide_status add_row(const collecting *c, size_t i, uint64_t align_bytes, tide_lifetimes *out, tide_error *err) {
    char name[512];
    const row *r = &c->rows[i];
    tide_device device = TIDE_CPU;
    TIDE_ASSERT(r->end < 0 || ((int64_t)i < r->end && r->end <= (int64_t)c->n));
    if (r->device != NULL) TIDE_TRY(tide_device_parse(r->device, &device, err));
    name_row(c, i, name, sizeof name);
    const uint64_t usual = tide_device_equal(device, TIDE_CPU) ? MALLOC_ALIGN_BYTES : CLI_REPLAY_PLAN_ALIGN_BYTES;
    tide_lifetime x = tide_lifetime_make(name, r->bytes, align_bytes > 0 ? align_bytes : usual, (int64_t)i,
                                         r->end >= 0 ? r->end : (int64_t)c->n);
    x.kind = r->kind;
    x.device = device;
    return tide_lifetimes_add(out, &x, err);
}

static tide_status collect_rows(collecting *c, tide_error *err) {
    const tide_status st = cli_replay_each(c->source, collect_event, c, err);
    tide_host_free(c->row_of);
    c->row_of = NULL;
    return st;
}

/// *out is the caller's also when it fails.
static tide_status collect(collecting *c, uint64_t align_bytes, tide_lifetimes *out, tide_error *err) {
    tide_status st = collect_rows(c, err);
    for (size_t i = 0; i < c->n && st == TIDE_OK; i++) st = add_row(c, i, align_bytes, out, err);
    tide_host_free(c->rows);
    return st;
}

tide_status cli_replay_lifetimes(const cli_replay_source *s, uint64_t align_bytes, tide_lifetimes *out,
                                 tide_error *err) {
    collecting c = {.source = s, .is_list = true};
    *out = (tide_lifetimes){0};
    const tide_status st = collect(&c, align_bytes, out, err);
    if (st != TIDE_OK) tide_lifetimes_deinit(out);
    return st;
}

/// Rows [from, from + n).
static tide_status give_part(const collecting *c, size_t from, size_t n, uint64_t align_bytes, int pass,
                             cli_replay_part_fn take, void *ctx, tide_error *err) {
    tide_lifetimes part = {0};
    tide_status st = TIDE_OK;
    for (size_t i = from; i < from + n && st == TIDE_OK; i++) st = add_row(c, i, align_bytes, &part, err);
    part.n_steps = (int64_t)c->n;
    if (st == TIDE_OK) st = take(ctx, pass, &part, err);
    tide_lifetimes_deinit(&part);
    return st;
}

tide_status cli_replay_lifetimes_in_parts(const cli_replay_source *s, uint64_t align_bytes, cli_replay_part_fn take,
                                          void *ctx, tide_error *err) {
    enum { PART = 4096 };
    collecting c = {.source = s, .is_list = true};
    tide_status st = collect_rows(&c, err);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; (i < c.n || i == 0) && st == TIDE_OK; i += PART) // an empty one too
            st = give_part(&c, i, c.n - i < PART ? c.n - i : PART, align_bytes, pass, take, ctx, err);
    tide_host_free(c.rows);
    return st;
}

tide_status cli_replay_plan_make(const cli_replay_source *s, const tide_strategy *strategy, cli_replay_plan *out,
                                 tide_error *err) {
    collecting c = {.source = s};
    tide_lifetimes lt = {0};
    tide_memory_plan *plan = NULL;
    tide_status st = collect(&c, CLI_REPLAY_PLAN_ALIGN_BYTES, &lt, err);
    if (st == TIDE_OK) st = tide_plan_make(&lt, strategy, NULL, &plan, err);
    if (st == TIDE_OK) {
        *out = (cli_replay_plan){.n_blocks = c.n,
                                 .bytes = plan->bytes,
                                 .lower_bound_bytes = plan->lower_bound_bytes,
                                 .proved_bytes = plan->proved_bytes,
                                 .proven = plan->proven,
                                 .time_ns = plan->time_ns};
        snprintf(out->strategy, sizeof out->strategy, "%s", plan->strategy);
        snprintf(out->name, sizeof out->name, "plan: %s", out->strategy);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
    return st;
}
