// SPDX-License-Identifier: MIT
//
// Call stacks of a moment as rows. See call_tree.h.
#include "analysis/call_tree.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"

// ---- making it ----

static void find_keys(tide_call_tree *t) {
    t->keys[0] = 1;
    for (size_t i = 1; i < t->calls.n; i++) {
        const tide_call *c = &t->calls.calls[i];
        TIDE_ASSERT(c->parent < i);
        t->keys[i] = tide_hash_text(tide_hash_u64(TIDE_HASH_START, t->keys[c->parent]), c->name) | 1;
    }
}

/// Names of the trace end with it: the tree takes copies, one after the other.
static tide_status own_names(tide_call_tree *t, tide_error *err) {
    size_t n_bytes = 1;
    for (size_t i = 0; i < t->calls.n; i++) n_bytes += strlen(t->calls.calls[i].name) + 1;
    TIDE_TRY(TIDE_NEW(&t->text, n_bytes, err, "for the names of %zu calls", t->calls.n));
    TIDE_TRY(TIDE_NEW(&t->keys, t->calls.n + 1, err, "for %zu calls", t->calls.n));
    char *at = t->text;
    for (size_t i = 0; i < t->calls.n; i++) {
        const size_t n = strlen(t->calls.calls[i].name) + 1;
        memcpy(at, t->calls.calls[i].name, n);
        t->calls.calls[i].name = at;
        at += n;
    }
    TIDE_ASSERT(at == t->text + n_bytes - 1);
    find_keys(t);
    return TIDE_OK;
}

static tide_status live_at(tide_trace *t, tide_moment at, tide_live_set *out, tide_error *err) {
    if (at.event > 0) return tide_trace_live_set_after(t, at.event, out, err);
    return tide_trace_live_set(t, at.t > 0 ? (uint64_t)at.t : 0, out, err);
}

tide_status tide_subject_call_tree(tide_subject *s, tide_moment at, tide_call_tree *out, tide_error *err) {
    tide_trace *trace = tide_subject_trace(s);
    tide_live_set live = {0};
    tide_call_tree t = {.at = at};
    if (trace != NULL) TIDE_TRY(live_at(trace, at, &live, err));
    tide_status st = tide_live_set_calls(&live, &t.calls, err);
    t.bytes = live.requested_bytes;
    if (trace != NULL) t.at.event = live.event_id;
    tide_live_set_deinit(&live);
    if (st == TIDE_OK) st = own_names(&t, err);
    if (st != TIDE_OK) {
        tide_call_tree_deinit(&t);
        return st;
    }
    *out = t;
    return TIDE_OK;
}

void tide_call_tree_deinit(tide_call_tree *t) {
    tide_calls_deinit(&t->calls);
    tide_host_free(t->keys);
    tide_host_free(t->text);
    *t = (tide_call_tree){0};
}

// ---- rows ----

static const tide_call *call(const tide_call_tree *t, uint32_t i) { return &t->calls.calls[i]; }

/// Its only child is in one row with it.
static bool goes_on(const tide_call_tree *t, uint32_t i) {
    const tide_call *c = call(t, i);
    return c->first_child != 0 && c->own_blocks == 0 && call(t, c->first_child)->next == 0;
}

uint32_t tide_call_tree_tail(const tide_call_tree *t, uint32_t head) {
    while (goes_on(t, head)) head = call(t, head)->first_child;
    return head;
}

uint32_t tide_call_tree_head(const tide_call_tree *t, uint32_t i) {
    while (i != 0 && call(t, i)->parent != 0 && goes_on(t, call(t, i)->parent)) i = call(t, i)->parent;
    return i;
}

// ---- words ----

void tide_call_tree_say(const tide_call_tree *t, uint32_t head, const char *arrow, tide_text *out, size_t *n_hidden) {
    const uint32_t tail = tide_call_tree_tail(t, head);
    tide_call_rank most = TIDE_CALL_OTHER;
    size_t hidden = 0;
    bool is_first = true;
    for (uint32_t i = head;; i = call(t, i)->first_child) {
        if (tide_call_rank_of(call(t, i)) > most) most = tide_call_rank_of(call(t, i));
        if (i == tail) break;
    }
    for (uint32_t i = head;; i = call(t, i)->first_child) {
        const bool is_operator = !call(t, i)->is_frame;
        if (is_operator || tide_call_rank_of(call(t, i)) == most) {
            if (!is_first) tide_text_add(out, arrow);
            is_first = false;
            tide_call_say(call(t, i), out);
        } else {
            hidden++;
        }
        if (i == tail) break;
    }
    if (n_hidden != NULL) *n_hidden = hidden;
}
