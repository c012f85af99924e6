// SPDX-License-Identifier: MIT
//
// skyline search: the tree. See skyline.h.
// The frame of a node is that of the node above, changed; going back undoes the changes, so that a path takes the
// memory of its changes alone.
//
// Twins (same sections, same size) are placed in the order of their numbers. When no item left crosses a time, the two
// sides are searched apart: neither has to be tried again because the other has no way on.
#include <string.h>

#include "planner/search/skyline_internal.h"

#include "core/base/assert.h"

static bool meet(sky_window a, sky_window b) { return a.begin < b.end && b.begin < a.end; }

/// Arrays of a frame that placing an item cannot be taken back in without a copy: floors below it were level, and what
/// is left to place has lost its size.
enum { FIRST_ROW = 2, ROWS = SKY_ARRAYS - FIRST_ROW };

/// The item's sections of those arrays of the frame, to or from `rows`.
static void copy_rows(const sky_frame *f, uint32_t begin, uint32_t n, uint32_t *rows, bool back) {
    for (size_t k = 0; k < ROWS; k++) {
        uint32_t *at = f->floor + (FIRST_ROW + k) * f->n_sections + begin;
        memcpy(back ? at : rows + k * n, back ? rows + k * n : at, n * sizeof *at);
    }
}

static void take_out(sky_frame *f, uint32_t k) {
    TIDE_ASSERT(k < f->n);
    f->n--;
    memmove(f->id + k, f->id + k + 1, (f->n - k) * sizeof *f->id);
    memmove(f->at + k, f->at + k + 1, (f->n - k) * sizeof *f->at);
}

static void put_back(sky_frame *f, uint32_t k, uint32_t id, uint32_t at) {
    memmove(f->id + k + 1, f->id + k, (f->n - k) * sizeof *f->id);
    memmove(f->at + k + 1, f->at + k, (f->n - k) * sizeof *f->at);
    f->id[k] = id;
    f->at[k] = at;
    f->n++;
}

/// Nothing that meets the sections lies below `top` any more.
static bool raise_items(tide_sky_tree *t, const sky_frame *f, uint32_t begin, uint32_t end, uint32_t top) {
    for (uint32_t k = 0; k < f->n; k++) {
        if (f->at[k] >= top) continue;
        const sky_item other = t->items[f->id[k]];
        if (other.begin < end && begin < other.end && !tide__sky_set(t, &f->at[k], top)) return false;
    }
    return true;
}

static tide_sky_result place(tide_sky_tree *t, sky_frame *f, uint32_t placed, uint32_t floor) {
    const uint32_t i = f->id[placed], at = f->at[placed], raised = f->raised;
    const sky_item item = t->items[i];
    const uint32_t top = floor + item.size, begin = item.begin - f->first, n = item.end - item.begin;
    const size_t n_trail = t->n_trail;
    TIDE_ASSERT(at == floor && top <= t->capacity && item.end - f->first <= f->n_sections);
    uint32_t *rows = tide__sky_push(t, ROWS * (size_t)n * sizeof *rows);
    if (rows == NULL) return t->cut;
    t->offset[i] = floor;
    copy_rows(f, begin, n, rows, false);
    for (uint32_t s = begin; s < begin + n; s++) {
        TIDE_ASSERT(f->floor[s] == floor && f->rest[s] >= item.size);
        f->floor[s] = top;
        f->rest[s] -= item.size;
        f->below[s] = i;
        f->from[s] = UINT32_MAX;
        f->to[s] = 0;
    }
    f->raised = top;
    take_out(f, placed);
    const tide_sky_result got = raise_items(t, f, item.begin, item.end, top) ? tide__sky_solve(t, f) : t->cut;
    tide__sky_undo(t, n_trail);
    put_back(f, placed, i, at);
    for (uint32_t s = begin; s < begin + n; s++) {
        f->floor[s] = floor;
        f->rest[s] += item.size;
    }
    copy_rows(f, begin, n, rows, true);
    f->raised = raised;
    return got;
}

/// Nothing starts on the floor of the section. The lowest item on it then lies on something else: on what carries it
/// above the floor already, or on another item that is still to be placed and is not on this section.
static uint64_t floor_without(const tide_sky_tree *t, const sky_frame *f, const sky_choice *c, sky_window *why) {
    const uint32_t at = f->first + c->section;
    uint32_t begin = at, end = at + 1;
    uint64_t lowest = UINT64_MAX;
    for (uint32_t k = 0; k < f->n; k++) {
        const sky_item item = t->items[f->id[k]];
        if (item.begin > at || at >= item.end) continue;
        if (f->at[k] > c->floor) {
            if (f->at[k] < lowest) lowest = f->at[k];
            continue;
        }
        if (item.begin < begin) begin = item.begin;
        if (item.end > end) end = item.end;
    }
    for (uint32_t k = 0; k < f->n; k++) {
        const sky_item item = t->items[f->id[k]];
        if ((item.begin <= at && at < item.end) || item.begin >= end || begin >= item.end) continue;
        const uint64_t top = (uint64_t)f->at[k] + item.size;
        if (top < lowest) lowest = top;
        *why = tide__sky_join(*why, (sky_window){item.begin, item.end});
    }
    return lowest;
}

/// `own`: the sections of all items on the section.
static tide_sky_result waste(tide_sky_tree *t, sky_frame *f, const sky_choice *c, sky_window own) {
    sky_window why = own;
    const uint64_t to = floor_without(t, f, c, &why);
    const uint32_t at = f->first + c->section, raised = f->raised;
    const size_t n_trail = t->n_trail;
    t->why = why;
    if (to > t->capacity - f->rest[c->section]) {
        t->dead_ends[at]++;
        return TIDE_SKY_EXHAUSTED;
    }
    TIDE_ASSERT(to > c->floor);
    f->raised = (uint32_t)to;
    const bool ok = tide__sky_set(t, &f->floor[c->section], (uint32_t)to) &&
                    tide__sky_set(t, &f->below[c->section], UINT32_MAX) && raise_items(t, f, at, at + 1, (uint32_t)to);
    const tide_sky_result got = ok ? tide__sky_solve(t, f) : t->cut;
    tide__sky_undo(t, n_trail);
    f->raised = raised;
    if (got == TIDE_SKY_EXHAUSTED && meet(t->why, own)) t->why = tide__sky_join(why, t->why);
    return got;
}

// ---- parts ----

/// Sections [begin, end) of `f`, between which and the others nothing is left.
static bool push_side(tide_sky_tree *t, const sky_frame *f, uint32_t begin, uint32_t end, sky_frame *out) {
    if (!tide__sky_push_frame(t, f->n, end - begin, out)) return false;
    out->first = f->first + begin;
    out->raised = f->raised;
    memcpy(out->floor, f->floor + begin, (end - begin) * sizeof *f->floor);
    memcpy(out->rest, f->rest + begin, (end - begin) * sizeof *f->rest);
    memcpy(out->below, f->below + begin, (end - begin) * sizeof *f->below);
    memcpy(out->from, f->from + begin, (end - begin) * sizeof *f->from);
    memcpy(out->to, f->to + begin, (end - begin) * sizeof *f->to);
    for (uint32_t k = 0; k < f->n; k++) {
        const uint32_t s = t->items[f->id[k]].begin - f->first;
        if (s < begin || s >= end) continue;
        out->id[out->n] = f->id[k];
        out->at[out->n++] = f->at[k];
    }
    return true;
}

static tide_sky_result solve_sides(tide_sky_tree *t, const sky_frame *f) {
    for (uint32_t s = 0; s < f->n_sections;) {
        uint32_t end = s;
        while (end < f->n_sections && f->rest[end] > 0) end++;
        if (end > s) {
            sky_frame side;
            t->n_work += f->n + (end - s);
            if (!push_side(t, f, s, end, &side)) return t->cut;
            const size_t n_trail = t->n_trail;
            const tide_sky_result got = tide__sky_solve(t, &side);
            t->n_trail = n_trail; // the side's arrays are its own
            if (got != TIDE_SKY_FOUND) return got;
        }
        s = end + 1;
    }
    return TIDE_SKY_FOUND;
}

static bool has_sides(const sky_frame *f) {
    for (uint32_t s = 0; s < f->n_sections; s++) {
        if (f->rest[s] == 0) return true;
    }
    return false;
}

// ---- nodes ----

/// Floors in the window that were raised depend on more sections.
static sky_window close_window(const sky_frame *f, sky_window w) {
    uint32_t from = w.begin, to = w.begin;
    for (;;) {
        const sky_window before = w;
        for (uint32_t s = w.begin; s < w.end; s++) {
            if (s >= from && s < to) continue;
            w = tide__sky_join(w, (sky_window){f->from[s - f->first], f->to[s - f->first]});
        }
        if (w.begin == before.begin && w.end == before.end) return w;
        from = before.begin;
        to = before.end;
    }
}

/// Two items with the same sections, one right on top of the other, can change places: only one order is tried.
static bool is_swapped(const tide_sky_tree *t, const sky_frame *f, uint32_t i) {
    const sky_item *item = &t->items[i];
    const uint32_t under = f->below[item->begin - f->first];
    if (under == UINT32_MAX || under < i) return false;
    return t->items[under].begin == item->begin && t->items[under].end == item->end;
}

/// How snugly the item lies in the valley: the higher, the earlier it is tried.
static uint32_t rate_snug(const tide_sky_tree *t, const sky_frame *f, const sky_choice *c, uint32_t i) {
    if (t->probe->snug == TIDE_SKY_SNUG_NONE) return 0;
    const sky_item *item = &t->items[i];
    const uint32_t top = c->floor + item->size;
    const bool at_begin = item->begin == f->first + c->begin, at_end = item->end == f->first + c->end;
    const bool left = c->begin > 0 && top == f->floor[c->begin - 1];
    const bool right = c->end < f->n_sections && top == f->floor[c->end];
    if (t->probe->snug == TIDE_SKY_SNUG_FILL) return (at_begin && at_end) + (left || right);
    return at_begin + at_end + left + right;
}

/// The items that can lie next on the section, in the order in which they are tried: indices in the frame.
static bool list_ways(tide_sky_tree *t, const sky_frame *f, const sky_choice *c, uint32_t **ways, uint32_t *n_ways) {
    const uint32_t at = f->first + c->section, begin = f->first + c->begin, end = f->first + c->end;
    uint32_t *list = t->list, *snug = t->snug, n = 0;
    uint32_t before = UINT32_MAX;
    for (uint32_t k = 0; k < f->n; k++) {
        const uint32_t i = f->id[k];
        const sky_item item = t->items[i];
        const bool is_second_twin = before != UINT32_MAX && item.twin == before;
        before = i;
        if (item.begin > at || at >= item.end || f->at[k] != c->floor || is_second_twin) continue;
        if (item.begin < begin || item.end > end || is_swapped(t, f, i)) continue;
        const uint32_t rating = rate_snug(t, f, c, i);
        uint32_t place_at = n++;
        for (; place_at > 0 && snug[place_at - 1] < rating; place_at--) {
            list[place_at] = list[place_at - 1];
            snug[place_at] = snug[place_at - 1];
        }
        list[place_at] = k;
        snug[place_at] = rating;
    }
    *n_ways = n;
    *ways = tide__sky_push(t, n * sizeof **ways);
    if (*ways != NULL && n > 0) memcpy(*ways, list, n * sizeof **ways);
    return *ways != NULL;
}

/// Nothing, or none of the ways, lies next on the section: let it be wasted if that is possible.
static tide_sky_result branch_waste(tide_sky_tree *t, sky_frame *f, const sky_choice *c, sky_window own) {
    t->why = own;
    if (t->capacity - c->floor == f->rest[c->section]) {
        t->dead_ends[f->first + c->section]++;
        return TIDE_SKY_EXHAUSTED;
    }
    return waste(t, f, c, own);
}

/// Every dead end knows the window of sections that it depends on. One that does not depend on what was placed here is
/// one for all other ways as well: they need no try.
static tide_sky_result branch(tide_sky_tree *t, sky_frame *f, const sky_choice *c) {
    uint32_t *ways, n_ways;
    if (!list_ways(t, f, c, &ways, &n_ways)) return t->cut;
    sky_window why = {UINT32_MAX, 0};
    for (uint32_t k = 0; k < n_ways; k++) {
        const sky_item item = t->items[f->id[ways[k]]];
        const sky_mark mark = tide__sky_mark(t);
        const tide_sky_result got = place(t, f, ways[k], c->floor);
        tide__sky_pop(t, mark);
        if (got != TIDE_SKY_EXHAUSTED || !meet(t->why, (sky_window){item.begin, item.end})) return got;
        why = tide__sky_join(why, t->why);
    }
    const sky_window own = close_window(f, tide__sky_window_of(t, f, c->section));
    const tide_sky_result got = branch_waste(t, f, c, own);
    if (got != TIDE_SKY_EXHAUSTED || !meet(t->why, own)) return got;
    t->why = close_window(f, tide__sky_join(tide__sky_join(why, own), t->why));
    return TIDE_SKY_EXHAUSTED;
}

static tide_sky_result solve_whole(tide_sky_tree *t, sky_frame *f) {
    sky_choice choice;
    tide_sky_result got = TIDE_SKY_EXHAUSTED;
    if (tide__sky_survey(t, f, &choice) == SKY_OPEN)
        got = branch(t, f, &choice);
    else if (t->cut == TIDE_SKY_NOMEM)
        got = t->cut;
    if (got == TIDE_SKY_EXHAUSTED) tide__sky_dead_end(t);
    return got;
}

tide_sky_result tide__sky_solve(tide_sky_tree *t, sky_frame *f) {
    if (f->n == 0) return TIDE_SKY_FOUND;
    if (tide__sky_is_over(t)) return t->cut;
    const sky_mark mark = tide__sky_mark(t);
    t->depth++;
    const tide_sky_result got = has_sides(f) ? solve_sides(t, f) : solve_whole(t, f);
    t->depth--;
    tide__sky_pop(t, mark);
    return got;
}
