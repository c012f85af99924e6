// SPDX-License-Identifier: MIT
//
// What a selected range of time [begin, end) holds. Values of the curve are cheap; counting births and deaths looks at
// every item that may be alive there, so that many are counted aside. See desk.h.
#include "core/base/host_alloc.h"
#include "tui/desk.h"

typedef struct count {
    tide_items_hold *items;
    int64_t begin, end;
    tide_tui_range_facts facts; ///< counts alone
} count;

static void release_count(void *ctx) {
    count *c = ctx;
    tide_items_let_go(c->items);
    tide_host_free(c);
}

/// Bytes that an alias shares with what it lies in count once, there.
static void count_item(const tide_items *items, uint32_t i, count *c) {
    const tide_item_shape *shape = tide_items_shape(items, i);
    const uint64_t bytes = shape->alias == TIDE_ALIAS_NONE ? shape->size_bytes : 0;
    const bool ends = !tide_items_is_open_ended(items, i);
    const bool is_born = tide_items_begin(items, i) >= c->begin && tide_items_begin(items, i) < c->end;
    const bool dies = ends && tide_items_end(items, i) >= c->begin && tide_items_end(items, i) < c->end;
    if (is_born) {
        c->facts.n_allocs++;
        c->facts.alloc_bytes += bytes;
    }
    if (dies) {
        c->facts.n_frees++;
        c->facts.free_bytes += bytes;
    }
    if (is_born && !dies) {
        c->facts.n_left++;
        c->facts.left_bytes += bytes;
    }
}

static tide_status run_count(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                             tide_error *err) {
    (void)a;
    (void)b;
    count *c = ctx;
    const tide_items *items = tide_items_held(c->items);
    uint32_t from, to;
    // What dies right at the begin of the range is not alive in it, but dies in it.
    tide_items_range(items, c->begin > INT64_MIN ? c->begin - 1 : c->begin, c->end, &from, &to);
    for (uint32_t i = from; i < to; i++) {
        count_item(items, i, c);
        const bool tells = progress != NULL && (i - from) % 65536 == 65535;
        if (tells && !progress->tell(progress->ctx, (double)(i - from) / (double)(to - from), "counting"))
            return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    }
    c->facts.known = true;
    return TIDE_OK;
}

static tide_status ask_count(tide__frame *f, uint64_t key) {
    tide_items_hold *hold = tide_subject_hold_items(f->st->a);
    if (hold == NULL) return TIDE_OK;
    count *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) {
        tide_items_let_go(hold);
        return TIDE_FAIL(f->err, TIDE_ERR_NOMEM, "no memory for a question");
    }
    *c = (count){.items = hold, .begin = f->st->range_begin, .end = f->st->range_end};
    uint32_t from, to;
    tide_items_range(tide_items_held(hold), c->begin, c->end, &from, &to);
    const bool few = to - from <= 4 * (uint32_t)TIDE__FEW_ITEMS;
    return tide__desk_ask(f->desk, TIDE__ASK_RANGE, key, few, run_count, release_count, c, f->err);
}

/// Zero where nobody can tell.
static uint64_t bytes_at(tide_subject *s, int64_t t) {
    const tide_curve_key all = {TIDE_CURVE_LIVE, -1, NULL};
    uint64_t bytes;
    return tide_subject_bytes_at(s, all, (tide_moment){t, 0}, &bytes, NULL) == TIDE_OK ? bytes : 0;
}

tide_status tide__scene_range(tide__frame *f) {
    tide_tui_state *st = f->st;
    if (!st->shows_range || st->range_end <= st->range_begin) return TIDE_OK;
    tide_tui_range_facts *out = &f->out->range;
    const uint64_t of_items = tide__key(tide__key(0, f->desk->a_serial), f->desk->items_serial);
    const uint64_t key = tide__key(tide__key(of_items, (uint64_t)st->range_begin), (uint64_t)st->range_end);
    if (tide__desk_wants(f->desk, TIDE__ASK_RANGE, key)) TIDE_TRY(ask_count(f, key));
    const count *c = tide__desk_answer_of(f, TIDE__ASK_RANGE, key, TIDE_TUI_N_PANES);
    if (c != NULL) *out = c->facts;
    const tide_curve_key all = {TIDE_CURVE_LIVE, -1, NULL};
    tide_error why = TIDE_ERROR_INIT;
    const tide_status got =
        tide_subject_peak_between(st->a, all, st->range_begin, st->range_end - 1, &out->peak_bytes, NULL, &why);
    if (got != TIDE_OK) out->peak_bytes = 0;
    out->begin_bytes = bytes_at(st->a, st->range_begin);
    out->end_bytes = bytes_at(st->a, st->range_end - 1);
    return TIDE_OK;
}
