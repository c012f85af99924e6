// SPDX-License-Identifier: MIT
//
// The blocks of a trace as lifetimes, and the plan that a strategy makes of them: what the best placement would have
// needed that knew all of them before. See replay.h.
//
//     alloc a   alloc b   free a   alloc c  …       a [0, 2)   b [1, …)   c [2, …)
//     step 0    step 1             step 2           a step for each block that is given
#include <inttypes.h>

#include "cli/replay.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"

/// Of a block in the table; end -1: alive at the end.
typedef struct row {
    uint64_t bytes;
    int64_t begin, end;
} row;

typedef struct live_block {
    cli_replay_held held; // first
    size_t row;
} live_block;

typedef struct collecting {
    const cli_replay_source *source;
    tide_map live; // live_block
    row *rows;     // [n], owned; in the order of their begin
    size_t n, cap;
} collecting;

static tide_status begin_block(collecting *c, const tide_trace_event *e, tide_error *err) {
    const live_block b = {.held = cli_replay_held_of(e), .row = c->n};
    if (e->requested_bytes == 0 || tide_map_find(&c->live, b.held.key) != NULL) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&c->rows, &c->cap, c->n + 1, err, "for the lifetimes of '%s'", c->source->path));
    if (!tide_map_put(&c->live, &b)) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", c->source->path);
    c->rows[c->n] = (row){.bytes = e->requested_bytes, .begin = (int64_t)c->n, .end = -1};
    c->n++;
    return TIDE_OK;
}

static void end_block(collecting *c, live_block *b) {
    TIDE_ASSERT(b->row < c->n && c->rows[b->row].end < 0);
    c->rows[b->row].end = (int64_t)c->n;
    tide_map_take(&c->live, b);
}

static tide_status collect_event(void *ctx, tide_memory_op op, const tide_trace_event *e, tide_error *err) {
    collecting *c = ctx;
    if (op == TIDE_MEM_ALLOC) return begin_block(c, e, err);
    if (op == TIDE_MEM_FREE_COMPLETED) {
        live_block *b = tide_map_find(&c->live, cli_replay_key(e));
        if (b != NULL) end_block(c, b);
    }
    if (op != TIDE_MEM_POOL_DISCARD) return TIDE_OK;
    uint64_t *keys = NULL;
    size_t n = 0;
    TIDE_TRY(cli_replay_discarded(&c->live, e, &keys, &n, err));
    for (size_t i = 0; i < n; i++) end_block(c, tide_map_find(&c->live, keys[i]));
    tide_host_free(keys);
    return TIDE_OK;
}

static tide_status to_lifetimes(const collecting *c, tide_lifetimes *out, tide_error *err) {
    for (size_t i = 0; i < c->n; i++) {
        char name[32];
        const row *r = &c->rows[i];
        snprintf(name, sizeof name, "block %zu", i + 1);
        const tide_lifetime x = tide_lifetime_make(name, r->bytes, CLI_REPLAY_PLAN_ALIGN_BYTES, r->begin,
                                                   r->end >= 0 ? r->end : (int64_t)c->n);
        TIDE_TRY(tide_lifetimes_add(out, &x, err));
    }
    return TIDE_OK;
}

tide_status cli_replay_plan_make(const cli_replay_source *s, const tide_strategy *strategy, cli_replay_plan *out,
                                 tide_error *err) {
    collecting c = {.source = s, .live = TIDE_MAP(live_block)};
    tide_lifetimes lt = {0};
    tide_memory_plan *plan = NULL;
    tide_status st = cli_replay_each(s, collect_event, &c, err);
    if (st == TIDE_OK) st = to_lifetimes(&c, &lt, err);
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
    tide_map_deinit(&c.live);
    tide_host_free(c.rows);
    return st;
}
