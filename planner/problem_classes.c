// SPDX-License-Identifier: MIT
//
// classes: an item of the table with all its aliases, as one stiff shape of disjoint rectangles. See problem.h.
//
// Members of a class may share bytes, so the class owns the union of what they own. A sweep over the steps at which a
// member begins or ends keeps the union's byte ranges; a range that stays the same from one step to the next is one
// rectangle.
//
//     members    whole       [8,12) x [0,96)          rectangles  [3,5)  x [0,32)
//                part 0      [3,9)  x [0,32)                      [5,12) x [0,96)
//                part 1      [5,9)  x [32,96)
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "planner/problem_classes.h"

// ---- members of each class ----

static bool takes_space(const tide_lifetime *item) { return !item->persistent && item->size_bytes > 0; }

/// A counting sort of members by root.
static tide_status gather(const tide_lifetimes *lt, tide_classes *c) {
    uint32_t *root_of = tide_host_calloc(lt->n, sizeof *root_of);
    size_t *count = tide_host_calloc(lt->n + 1, sizeof *count); // count[r + 1] first, then where class r begins
    c->members = tide_host_calloc(lt->n, sizeof *c->members);
    c->list = tide_host_calloc(lt->n, sizeof *c->list);
    const bool good = root_of != NULL && count != NULL && c->members != NULL && c->list != NULL;
    for (uint32_t i = 0; good && i < lt->n; i++) {
        root_of[i] = tide_lifetimes_root(lt, i, NULL);
        if (takes_space(&lt->items[i]) && takes_space(&lt->items[root_of[i]])) count[root_of[i] + 1]++;
    }
    for (size_t r = 0; good && r < lt->n; r++) {
        if (count[r + 1] > 0) c->list[c->n++] = (tide_class){.root = (uint32_t)r, .first = count[r], .n = count[r + 1]};
        count[r + 1] += count[r];
    }
    for (uint32_t i = 0; good && i < lt->n; i++) {
        if (takes_space(&lt->items[i]) && takes_space(&lt->items[root_of[i]])) c->members[count[root_of[i]]++] = i;
    }
    tide_host_free(root_of);
    tide_host_free(count);
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

// ---- rectangles ----

/// Members that lie across each other may make a rectangle for every pair. No operators do; a file could.
enum { MOST_RECTS = 4096, RECTS_PER_MEMBER = 16 };

static tide_status add_rect(tide_step_rects *rects, int64_t begin, int64_t end, uint64_t lo, uint64_t hi) {
    if (begin >= end || lo >= hi) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&rects->list, &rects->cap, rects->n + 1, sizeof *rects->list));
    rects->list[rects->n++] = (tide_step_rect){begin, end, lo, hi};
    return TIDE_OK;
}

/// Where a member's bytes lie in its root. Roots that are rounded up count in whole multiples of their alignment, so
/// that an alias leaves no unusable bytes behind it.
typedef struct window {
    uint64_t at;        // of the member in the root
    uint64_t cell;      // power of two
    uint64_t end_bytes; // of the root
} window;

static tide_status add_window(tide_step_rects *out, const window *w, int64_t begin, int64_t end, uint64_t lo,
                              uint64_t hi) {
    if (lo == hi) return TIDE_OK;
    TIDE_ASSERT(lo < hi && w->at + hi <= w->end_bytes && (w->cell & (w->cell - 1)) == 0);
    const uint64_t up = (w->at + hi + w->cell - 1) & ~(w->cell - 1);
    return add_rect(out, begin, end, (w->at + lo) & ~(w->cell - 1), up < w->end_bytes ? up : w->end_bytes);
}

/// The rectangles of one member alone: its life without its gaps, and what the gaps keep.
static tide_status add_member(const tide_lifetimes *lt, uint32_t i, tide_step_rects *out) {
    const tide_lifetime *item = &lt->items[i];
    window w;
    const tide_lifetime *root = &lt->items[tide_lifetimes_root(lt, i, &w.at)];
    w.cell = root->unrounded ? 1 : root->align_bytes;
    w.end_bytes = tide_lifetime_aligned_bytes(root);
    int64_t from = item->begin_step;
    for (uint32_t g = 0; g < item->n_gaps; g++) {
        const tide_gap *gap = &item->gaps[g];
        TIDE_TRY(add_window(out, &w, from, gap->begin_step, 0, item->size_bytes));
        TIDE_TRY(add_window(out, &w, gap->begin_step, gap->end_step, gap->lo_bytes, gap->hi_bytes));
        from = gap->end_step;
    }
    return add_window(out, &w, from, item->end_step, 0, item->size_bytes);
}

typedef struct change {
    int64_t step;
    uint32_t rect; // of the members'
    bool born;
} change;

static int compare_changes(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->born != y->born) return (int)x->born - (int)y->born;
    return (x->rect > y->rect) - (x->rect < y->rect);
}

/// The sweep over one class.
typedef struct uniter {
    const tide_step_rect *in; // the members' rectangles, overlapping
    change *changes;          // [2n]
    uint32_t *alive;          // [n_alive] of `in`, by lo
    size_t n, n_alive;
    tide_step_rects open, next; // the union since some step: `end` not yet known
} uniter;

static void enter(uniter *u, uint32_t rect) {
    TIDE_ASSERT(u->n_alive < u->n);
    size_t k = u->n_alive++;
    for (; k > 0 && u->in[u->alive[k - 1]].lo > u->in[rect].lo; k--) u->alive[k] = u->alive[k - 1];
    u->alive[k] = rect;
}

static void leave(uniter *u, uint32_t rect) {
    size_t k = 0;
    while (u->alive[k] != rect) k++;
    TIDE_ASSERT(k < u->n_alive);
    memmove(u->alive + k, u->alive + k + 1, (--u->n_alive - k) * sizeof *u->alive);
}

/// The union of what is alive now into u->next, each range with the step at which it began to be as it is.
static tide_status unite(uniter *u, int64_t step) {
    u->next.n = 0;
    size_t open_k = 0;
    for (size_t k = 0; k < u->n_alive;) {
        const uint64_t lo = u->in[u->alive[k]].lo;
        uint64_t hi = lo;
        for (; k < u->n_alive && u->in[u->alive[k]].lo <= hi; k++) {
            if (u->in[u->alive[k]].hi > hi) hi = u->in[u->alive[k]].hi;
        }
        while (open_k < u->open.n && u->open.list[open_k].lo < lo) open_k++;
        const bool stays = open_k < u->open.n && u->open.list[open_k].lo == lo && u->open.list[open_k].hi == hi;
        const int64_t since = stays ? u->open.list[open_k].begin : step;
        TIDE_TRY(add_rect(&u->next, since, INT64_MAX, lo, hi));
    }
    return TIDE_OK;
}

static bool is_in(const tide_step_rects *rects, const tide_step_rect *r) {
    for (size_t k = 0; k < rects->n && rects->list[k].lo <= r->lo; k++) {
        if (rects->list[k].lo == r->lo && rects->list[k].hi == r->hi && rects->list[k].begin == r->begin) return true;
    }
    return false;
}

static tide_status sweep(uniter *u, tide_step_rects *out, size_t max_rects) {
    const size_t first = out->n;
    for (size_t k = 0; k < 2 * u->n;) {
        const int64_t step = u->changes[k].step;
        for (; k < 2 * u->n && u->changes[k].step == step; k++) {
            if (u->changes[k].born)
                enter(u, u->changes[k].rect);
            else
                leave(u, u->changes[k].rect);
        }
        TIDE_TRY(unite(u, step));
        for (size_t r = 0; r < u->open.n; r++) {
            const tide_step_rect *open = &u->open.list[r];
            if (!is_in(&u->next, open)) TIDE_TRY(add_rect(out, open->begin, step, open->lo, open->hi));
        }
        if (out->n - first + u->next.n > max_rects) return TIDE_ERR_NO_SPACE;
        const tide_step_rects swap = u->open;
        u->open = u->next;
        u->next = swap;
    }
    return TIDE_OK;
}

static tide_status unite_members(const tide_step_rects *in, tide_step_rects *out, size_t max_rects) {
    uniter u = {.in = in->list, .n = in->n};
    u.changes = tide_host_calloc(in->n, 2 * sizeof *u.changes);
    u.alive = tide_host_calloc(in->n, sizeof *u.alive);
    tide_status st = u.changes != NULL && u.alive != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (uint32_t r = 0; r < in->n && st == TIDE_OK; r++) {
        u.changes[2 * r] = (change){in->list[r].begin, r, true};
        u.changes[2 * r + 1] = (change){in->list[r].end, r, false};
    }
    if (st == TIDE_OK) {
        qsort(u.changes, 2 * u.n, sizeof *u.changes, compare_changes);
        st = sweep(&u, out, max_rects);
    }
    TIDE_ASSERT(st != TIDE_OK || (u.n_alive == 0 && u.open.n == 0)); // all that began has ended
    tide_host_free(u.changes);
    tide_host_free(u.alive);
    tide_host_free(u.open.list);
    tide_host_free(u.next.list);
    return st;
}

static int compare_rects(const void *a, const void *b) {
    const tide_step_rect *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->hi > y->hi) - (x->hi < y->hi);
}

/// Whether no two of them share a byte at a step.
static bool are_apart(const tide_step_rect *rects, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            const tide_step_rect *x = &rects[i], *y = &rects[k];
            if (x->begin < y->end && y->begin < x->end && x->lo < y->hi && y->lo < x->hi) return false;
        }
    }
    return true;
}

/// `room` is scratch for the members' own rectangles.
static tide_status shape(const tide_lifetimes *lt, tide_classes *c, tide_class *of, tide_step_rects *room) {
    of->first_rect = c->rects.n;
    if (of->n == 1) {
        TIDE_TRY(add_member(lt, c->members[of->first], &c->rects));
    } else {
        room->n = 0;
        for (size_t k = 0; k < of->n; k++) TIDE_TRY(add_member(lt, c->members[of->first + k], room));
        TIDE_TRY(unite_members(room, &c->rects, MOST_RECTS + RECTS_PER_MEMBER * of->n));
    }
    of->n_rects = c->rects.n - of->first_rect;
    if (of->n_rects > 1) qsort(c->rects.list + of->first_rect, of->n_rects, sizeof *c->rects.list, compare_rects);
    TIDE_ASSERT_SLOW(are_apart(c->rects.list + of->first_rect, of->n_rects));
    return TIDE_OK;
}

// ---- canonical order ----

/// What is compared, so that qsort needs no context.
typedef struct sort_key {
    const tide_lifetime *root;
    const tide_step_rect *rects;
    uint64_t bytes;
    int64_t begin, end;
    tide_class class_;
} sort_key;

static int compare_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }
static int compare_i64(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int compare_buffers(const tide_lifetime *a, const tide_lifetime *b) {
    int c = compare_i64((int64_t)a->device.type, (int64_t)b->device.type);
    if (c == 0) c = compare_i64(a->device.index, b->device.index);
    return c != 0 ? c : compare_i64((int64_t)a->kind, (int64_t)b->kind);
}

static int compare_shapes(const sort_key *x, const sort_key *y) {
    int c = compare_u64(x->class_.n_rects, y->class_.n_rects);
    for (size_t r = 0; c == 0 && r < x->class_.n_rects; r++) c = compare_rects(&x->rects[r], &y->rects[r]);
    return c;
}

static int compare_keys(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    int c = compare_buffers(x->root, y->root);
    if (c == 0) c = compare_i64(x->begin, y->begin);
    if (c == 0) c = compare_i64(y->end, x->end);
    if (c == 0) c = compare_u64(y->bytes, x->bytes);
    if (c == 0) c = compare_u64(y->root->align_bytes, x->root->align_bytes);
    if (c == 0) c = (int)y->root->fixed - (int)x->root->fixed;
    if (c == 0 && x->root->fixed) c = compare_u64(x->root->fixed_offset_bytes, y->root->fixed_offset_bytes);
    if (c == 0) c = compare_shapes(x, y);
    return c != 0 ? c : strcmp(x->root->name, y->root->name);
}

static void find_hull(const tide_classes *c, sort_key *k) {
    TIDE_ASSERT(k->class_.n_rects > 0 && k->class_.first_rect + k->class_.n_rects <= c->rects.n);
    k->begin = INT64_MAX;
    k->end = 0;
    for (size_t r = 0; r < k->class_.n_rects; r++) {
        const tide_step_rect *rect = &c->rects.list[k->class_.first_rect + r];
        if (rect->begin < k->begin) k->begin = rect->begin;
        if (rect->end > k->end) k->end = rect->end;
    }
}

static bool are_in_order(const sort_key *keys, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (compare_keys(&keys[i - 1], &keys[i]) > 0) return false;
    }
    return true;
}

static tide_status sort_classes(const tide_lifetimes *lt, tide_classes *c) {
    sort_key *keys = tide_host_calloc(c->n, sizeof *keys);
    if (keys == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < c->n; i++) {
        const tide_lifetime *root = &lt->items[c->list[i].root];
        keys[i] = (sort_key){.root = root,
                             .rects = c->rects.list + c->list[i].first_rect,
                             .bytes = tide_lifetime_aligned_bytes(root),
                             .class_ = c->list[i]};
        find_hull(c, &keys[i]);
    }
    qsort(keys, c->n, sizeof *keys, compare_keys);
    for (size_t i = 0; i < c->n; i++) c->list[i] = keys[i].class_;
    TIDE_ASSERT_SLOW(are_in_order(keys, c->n));
    tide_host_free(keys);
    return TIDE_OK;
}

// ---- entry points ----

static tide_status shape_all(const tide_lifetimes *lt, tide_classes *c, tide_error *err) {
    tide_step_rects room = {0};
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < c->n && st == TIDE_OK; i++) {
        st = shape(lt, c, &c->list[i], &room);
        if (st == TIDE_ERR_NO_SPACE)
            TIDE_FAIL(err, st, "tensor '%s' and the %zu in it lie across each other in more than %zu ways",
                      lt->items[c->list[i].root].name, c->list[i].n - 1,
                      (size_t)MOST_RECTS + RECTS_PER_MEMBER * c->list[i].n);
    }
    tide_host_free(room.list);
    return st;
}

tide_status tide__classes_make(const tide_lifetimes *lt, tide_classes *out, tide_error *err) {
    *out = (tide_classes){0};
    tide_status st = gather(lt, out);
    if (st == TIDE_OK) st = shape_all(lt, out, err);
    size_t n = 0; // a class whose gaps leave nothing takes no space
    for (size_t i = 0; i < out->n && st == TIDE_OK; i++) {
        if (out->list[i].n_rects > 0) out->list[n++] = out->list[i];
    }
    out->n = n;
    if (st == TIDE_OK) st = sort_classes(lt, out);
    if (st == TIDE_OK) return TIDE_OK;
    tide__classes_deinit(out);
    return st == TIDE_ERR_NOMEM ? TIDE_FAIL(err, st, "no memory for the shapes of %zu lifetimes", lt->n) : st;
}

void tide__classes_deinit(tide_classes *c) {
    tide_host_free(c->list);
    tide_host_free(c->members);
    tide_host_free(c->rects.list);
    *c = (tide_classes){0};
}

tide_status tide_lifetimes_occupied(const tide_lifetimes *lt, tide_occupied **out, size_t *n, tide_error *err) {
    tide_classes c;
    TIDE_TRY(tide__classes_make(lt, &c, err));
    tide_occupied *list = tide_host_calloc(c.rects.n, sizeof *list);
    size_t n_list = 0;
    for (size_t i = 0; list != NULL && i < c.n; i++) {
        for (size_t r = 0; r < c.list[i].n_rects; r++) {
            const tide_step_rect *rect = &c.rects.list[c.list[i].first_rect + r];
            list[n_list++] = (tide_occupied){c.list[i].root, rect->begin, rect->end, rect->lo, rect->hi};
        }
    }
    tide__classes_deinit(&c);
    if (list == NULL) return TIDE_NO_MEMORY(err, "for what %zu lifetimes occupy", lt->n);
    *out = list;
    *n = n_list;
    return TIDE_OK;
}
