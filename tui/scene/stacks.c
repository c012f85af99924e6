// SPDX-License-Identifier: MIT
//
// Call stacks of what is alive at the cursor: the tree is asked for once a moment, its rows are made for each frame of
// what is open. See scene_parts.h.
#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

typedef struct stacks_query {
    tide_moment at;
    tide_call_tree tree;
} stacks_query;

static void release_stacks(void *ctx) {
    stacks_query *q = ctx;
    tide_call_tree_deinit(&q->tree);
    tide_host_free(q);
}

static tide_status run_stacks(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                              tide_error *err) {
    (void)b;
    (void)progress;
    stacks_query *q = ctx;
    return tide_subject_call_tree(a, q->at, &q->tree, err);
}

// ---- rows ----

enum { OPEN_FROM = 10 }; // a row is open that holds a tenth

static tide_status put_row(tide__frame *f, const tide_call_tree *t, uint32_t head, uint32_t caller) {
    tide_tui_query_cache *cache = f->cache;
    TIDE_TRY(TIDE_GROW(&cache->stack_rows, &cache->stack_rows_cap, cache->n_stack_rows + 1, f->err,
                       "for the rows of call stacks"));
    const uint32_t tail = tide_call_tree_tail(t, head);
    const tide_call *calls = t->calls.calls;
    const bool has_callees = calls[tail].first_child != 0;
    const bool is_heavy = !f->st->closes_stacks && calls[tail].bytes >= f->out->stack_bytes / OPEN_FROM;
    cache->stack_rows[cache->n_stack_rows++] =
        (tide_tui_stack_row){.head = head,
                             .tail = tail,
                             .level = caller != UINT32_MAX ? cache->stack_rows[caller].level + 1 : 0,
                             .caller = caller,
                             .has_callees = has_callees,
                             .is_open = has_callees && tide_tui_fold_of(f->st, t->keys[head], is_heavy)};
    return TIDE_OK;
}

/// The call that is shown alone, where something is alive that it asked for; 0: there is none.
static uint32_t find_root(const tide__frame *f, const tide_call_tree *t) {
    for (uint32_t i = 1; f->st->stack_root != 0 && i < t->calls.n; i++)
        if (t->keys[i] == f->st->stack_root) return i;
    return 0;
}

/// From the root down, heavy before light, through what is open.
static tide_status make_rows(tide__frame *f, const tide_call_tree *t) {
    tide_tui_query_cache *cache = f->cache;
    const tide_call *calls = t->calls.calls;
    const uint32_t root = find_root(f, t);
    uint32_t head = root != 0 ? root : calls[0].first_child, caller = UINT32_MAX;
    f->out->stack_root = root;
    f->out->stack_bytes = root != 0 ? calls[root].bytes : calls[0].bytes;
    cache->n_stack_rows = 0;
    if (f->st->stack_root != 0 && root == 0) return TIDE_OK;
    while (head != 0) {
        TIDE_TRY(put_row(f, t, head, caller));
        const uint32_t row = (uint32_t)cache->n_stack_rows - 1;
        if (cache->stack_rows[row].is_open) {
            caller = row;
            head = calls[cache->stack_rows[row].tail].first_child;
            continue;
        }
        while (head != root && calls[head].next == 0 && caller != UINT32_MAX) {
            head = cache->stack_rows[caller].head;
            caller = cache->stack_rows[caller].caller;
        }
        head = head != root ? calls[head].next : 0;
    }
    return TIDE_OK;
}

/// The selected row stays the same call, where it is.
static void keep_selection(tide__frame *f, const tide_call_tree *t) {
    const tide_tui_query_cache *cache = f->cache;
    for (size_t i = 0; f->st->stack_at != 0 && i < cache->n_stack_rows; i++) {
        if (t->keys[cache->stack_rows[i].head] != f->st->stack_at) continue;
        f->st->pane_row[TIDE_TUI_PANE_STACKS] = i;
        return;
    }
}

tide_status tide__scene_stacks(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    if (!tide__is_shown(f, TIDE_TUI_PANE_STACKS)) return TIDE_OK;
    const uint64_t key = tide__key_moment(tide__key(tide__key(0, cache->a_serial), 's'), tide_tui_now(f->st));
    if (tide__query_is_needed(cache, TIDE__QUERY_STACKS, key)) {
        stacks_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        q->at = tide_tui_now(f->st);
        const bool at_once = tide__is_small(f->st->a) || f->out->a->is_recording;
        TIDE_TRY(tide__query_start_at_cursor(f, TIDE__QUERY_STACKS, key, at_once, run_stacks, release_stacks, q));
    }
    const stacks_query *q = tide__query_result_of(f, TIDE__QUERY_STACKS, key, TIDE_TUI_PANE_STACKS);
    if (q == NULL) q = tide__query_previous_result(f, TIDE__QUERY_STACKS, TIDE_TUI_PANE_STACKS);
    if (q == NULL || q->tree.calls.n == 0) return TIDE_OK;
    TIDE_TRY(make_rows(f, &q->tree));
    keep_selection(f, &q->tree);
    f->out->call_tree = &q->tree;
    f->out->stack_rows = cache->stack_rows;
    f->out->n_stack_rows = cache->n_stack_rows;
    return TIDE_OK;
}
