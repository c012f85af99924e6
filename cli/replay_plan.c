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

/// Of a block in the table; end -1: alive at the end.
typedef struct row {
    uint64_t bytes;
    int64_t begin, end;
    char *name; // owned; NULL: not wanted
    tide_device device;
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

static tide_status describe(const collecting *c, row *r, const tide_trace_event *e, tide_error *err) {
    (void)cli_replay_kind_of(e->kind, &r->kind);
    TIDE_TRY(tide_device_parse(e->device, &r->device, err));
    return TIDE_COPY_TEXT(&r->name, e->name, err, "for the lifetimes of '%s'", c->source->path);
}

#define NO_ROW SIZE_MAX // of a block of 0 bytes

static tide_status begin_block(collecting *c, const tide_trace_event *e, size_t slot, tide_error *err) {
    if (slot == CLI_REPLAY_NO_SLOT) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&c->row_of, &c->cap_slots, slot + 1, err, "for the blocks of '%s'", c->source->path));
    c->row_of[slot] = NO_ROW;
    if (e->requested_bytes == 0) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&c->rows, &c->cap, c->n + 1, err, "for the lifetimes of '%s'", c->source->path));
    c->row_of[slot] = c->n;
    c->rows[c->n] = (row){.bytes = e->requested_bytes, .begin = (int64_t)c->n, .end = -1, .device = TIDE_CPU};
    c->n++;
    return c->is_list ? describe(c, &c->rows[c->n - 1], e, err) : TIDE_OK;
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

static tide_status to_lifetimes(const collecting *c, uint64_t align_bytes, tide_lifetimes *out, tide_error *err) {
    for (size_t i = 0; i < c->n; i++) {
        char name[512];
        const row *r = &c->rows[i];
        TIDE_ASSERT(r->end < 0 || (r->begin < r->end && r->end <= (int64_t)c->n));
        name_row(c, i, name, sizeof name);
        const uint64_t usual =
            tide_device_equal(r->device, TIDE_CPU) ? MALLOC_ALIGN_BYTES : CLI_REPLAY_PLAN_ALIGN_BYTES;
        tide_lifetime x = tide_lifetime_make(name, r->bytes, align_bytes > 0 ? align_bytes : usual, r->begin,
                                             r->end >= 0 ? r->end : (int64_t)c->n);
        x.kind = r->kind;
        x.device = r->device;
        TIDE_TRY(tide_lifetimes_add(out, &x, err));
    }
    return TIDE_OK;
}

/// *out is the caller's also when it fails.
static tide_status collect(collecting *c, uint64_t align_bytes, tide_lifetimes *out, tide_error *err) {
    tide_status st = cli_replay_each(c->source, collect_event, c, err);
    if (st == TIDE_OK) st = to_lifetimes(c, align_bytes, out, err);
    for (size_t i = 0; i < c->n; i++) tide_host_free(c->rows[i].name);
    tide_host_free(c->row_of);
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
