// SPDX-License-Identifier: MIT
//
// skyline search: the tree. See skyline.h.
// The frame of a node is that of the node above, changed; backtracking undoes the changes, so that a path takes the
// memory of its changes alone.
//
// Twins are placed in the order of their numbers. When no item left crosses a time, what lies before it and behind it
// are independent components, which are searched one after the other: a dead end in one needs no other try in the
// other.
#include <string.h>

#include "core/base/assert.h"
#include "planner/search/skyline_tree.h"

typedef enum sky_survey { SKY_DEAD, SKY_OPEN } sky_survey;

/// Where a node branches.
typedef struct sky_choice {
    uint32_t section;    ///< index in the frame
    uint32_t floor;      ///< of its valley
    uint32_t begin, end; ///< the valley, indices in the frame
    bool may_waste;      ///< perhaps nothing starts there
} sky_choice;

static sky_window join(sky_window a, sky_window b) {
    return (sky_window){a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

// ---- survey: what a node of the tree looks like; O(items left + sections) ----

/// Runs of sections with the same floor and the lower of the floors beside each; none beside it: UINT32_MAX.
static void find_runs(tide_sky_tree *t, const sky_frame *f) {
    const uint32_t n = f->n_sections;
    for (uint32_t s = 0; s < n;) {
        uint32_t e = s + 1;
        while (e < n && f->floor[e] == f->floor[s]) e++;
        const uint32_t left = s > 0 ? f->floor[s - 1] : UINT32_MAX;
        const uint32_t right = e < n ? f->floor[e] : UINT32_MAX;
        for (uint32_t k = s; k < e; k++) {
            t->run_begin[k] = s;
            t->run_end[k] = e;
            t->wall[k] = left < right ? left : right;
        }
        s = e;
    }
}

/// Differences between neighbouring sections of branches, inside and above. @return the smallest size left
static uint32_t count_items(tide_sky_tree *t, const sky_frame *f) {
    const size_t bytes = ((size_t)f->n_sections + 1) * sizeof(uint32_t);
    memset(t->branches, 0, bytes);
    memset(t->inside, 0, bytes);
    memset(t->above, 0, bytes);
    uint32_t smallest = UINT32_MAX, before = UINT32_MAX;
    for (uint32_t k = 0; k < f->n; k++) {
        const sky_item item = t->items[f->id[k]];
        const uint32_t begin = item.begin - f->first, end = item.end - f->first, size = item.size;
        if (size < smallest) smallest = size;
        if (f->at[k] == f->floor[begin] && t->run_end[begin] >= end) {
            t->inside[begin] += size;
            t->inside[end] -= size;
            if (item.twin == UINT32_MAX || item.twin != before) {
                t->branches[begin]++;
                t->branches[end]--;
            }
        }
        if (f->at[k] >= f->raised) {
            t->above[begin] += size;
            t->above[end] -= size;
        }
        before = f->id[k];
    }
    return smallest;
}

/// The sections of all items left that lie on section `s` of the frame.
static sky_window window_of(const tide_sky_tree *t, const sky_frame *f, uint32_t s) {
    const uint32_t at = f->first + s;
    sky_window w = {at, at + 1};
    for (uint32_t k = 0; k < f->n; k++) {
        const sky_item item = t->items[f->id[k]];
        if (item.begin <= at && at < item.end) w = join(w, (sky_window){item.begin, item.end});
    }
    return w;
}

static sky_survey dead_end(tide_sky_tree *t, const sky_frame *f, uint32_t s) {
    t->dead_ends[f->first + s]++;
    t->conflict = window_of(t, f, s);
    return SKY_DEAD;
}

typedef struct score {
    double first, second; ///< smaller is better
} score;

static score rate(const tide_sky_tree *t, const sky_frame *f, uint32_t s, uint32_t slack, bool may_waste) {
    const double branches = t->branches[s] + (may_waste ? 1.0 : 0.0);
    switch (t->probe->rule) {
    case TIDE_SKY_LOWEST:
        return (score){may_waste, f->floor[s] * 65536.0 + t->branches[s]};
    case TIDE_SKY_WEIGHTED:
        return (score){branches / (1.0 + t->dead_ends[f->first + s]), 0.0};
    case TIDE_SKY_KEY:
    case TIDE_SKY_KEY_LOW:
    case TIDE_SKY_FEWEST:
    default:
        return (score){branches, slack};
    }
}

static bool is_better(score a, score b) { return a.first < b.first || (a.first == b.first && a.second < b.second); }

static void choose(const tide_sky_tree *t, const sky_frame *f, uint32_t s, bool may_waste, sky_choice *out) {
    *out = (sky_choice){s, f->floor[s], t->run_begin[s], t->run_end[s], may_waste};
}

static uint32_t slack_of(const tide_sky_tree *t, const sky_frame *f, uint32_t s) {
    TIDE_ASSERT((uint64_t)f->floor[s] + f->rest[s] <= t->capacity);
    return t->capacity - f->floor[s] - f->rest[s];
}

/// When nothing is to start on the floor, it rises at least to the top of another item or to a wall.
static bool can_waste(const tide_sky_tree *t, const sky_frame *f, uint32_t s, uint32_t smallest) {
    const uint32_t wall = t->wall[s] - f->floor[s];
    return slack_of(t, f, s) >= (wall < smallest ? wall : smallest);
}

/// Sections of the first item of the static order that fits a valley.
static void choose_by_item(const tide_sky_tree *t, const sky_frame *f, uint32_t smallest, sky_choice *out) {
    uint32_t first = UINT32_MAX, lowest = UINT32_MAX;
    for (uint32_t k = 0; k < f->n; k++) {
        const uint32_t begin = t->items[f->id[k]].begin - f->first, floor = f->floor[begin];
        if (f->at[k] != floor || t->run_end[begin] < t->items[f->id[k]].end - f->first || t->wall[begin] <= floor)
            continue;
        if (first != UINT32_MAX && floor >= lowest) continue;
        first = f->id[k];
        lowest = floor;
        if (t->probe->rule == TIDE_SKY_KEY) break;
    }
    score best = {0};
    for (uint32_t s = t->items[first].begin - f->first; s < t->items[first].end - f->first; s++) {
        const bool may_waste = can_waste(t, f, s, smallest);
        const score now = rate(t, f, s, slack_of(t, f, s), may_waste);
        if (s > t->items[first].begin - f->first && !is_better(now, best)) continue;
        best = now;
        choose(t, f, s, may_waste, out);
    }
}

/// Nothing can start on the section below `start`. @return false: no memory
static bool raise_floor(tide_sky_tree *t, const sky_frame *f, const sky_blocked *blocked) {
    const uint32_t s = blocked->section;
    const sky_window w = blocked->window;
    return tide__sky_set(t, &f->floor[s], blocked->start) && tide__sky_set(t, &f->below[s], UINT32_MAX) &&
           tide__sky_set(t, &f->from[s], w.begin < f->from[s] ? w.begin : f->from[s]) &&
           tide__sky_set(t, &f->to[s], w.end > f->to[s] ? w.end : f->to[s]);
}

/// The first of the blocked sections, which ascend, from `section` on.
static uint32_t first_blocked(const sky_blocked *blocked, uint32_t n, uint32_t section) {
    uint32_t low = 0;
    while (low < n) {
        const uint32_t middle = low + (n - low) / 2;
        if (blocked[middle].section < section)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/// For each blocked section: where the lowest item on it can start, and which sections its items take.
static void measure_blocked(tide_sky_tree *t, const sky_frame *f, uint32_t n_blocked) {
    for (uint32_t k = 0; k < n_blocked; k++) {
        const uint32_t at = f->first + t->blocked[k].section;
        t->blocked[k].start = UINT32_MAX;
        t->blocked[k].window = (sky_window){at, at + 1};
    }
    for (uint32_t k = 0; k < f->n; k++) {
        const sky_item item = t->items[f->id[k]];
        for (uint32_t j = first_blocked(t->blocked, n_blocked, item.begin - f->first); j < n_blocked; j++) {
            sky_blocked *blocked = &t->blocked[j];
            if (blocked->section >= item.end - f->first) break;
            if (f->at[k] < blocked->start) blocked->start = f->at[k];
            blocked->window = join(blocked->window, (sky_window){item.begin, item.end});
        }
    }
}

/// Raise the floors of blocked sections.
static sky_survey raise_blocked(tide_sky_tree *t, const sky_frame *f, uint32_t n_blocked) {
    if (n_blocked == 0) return SKY_OPEN;
    TIDE_ASSERT(n_blocked <= f->n_sections);
    measure_blocked(t, f, n_blocked);
    for (uint32_t k = 0; k < n_blocked; k++) {
        const sky_blocked *blocked = &t->blocked[k];
        if (blocked->start - f->floor[blocked->section] > slack_of(t, f, blocked->section))
            return dead_end(t, f, blocked->section);
        if (!raise_floor(t, f, blocked)) return SKY_DEAD;
    }
    return SKY_OPEN;
}

/// Section `s` is a dead end, unless one of the blocked sections before it is.
static sky_survey dead_end_after(tide_sky_tree *t, const sky_frame *f, uint32_t n_blocked, uint32_t s) {
    return raise_blocked(t, f, n_blocked) == SKY_DEAD ? SKY_DEAD : dead_end(t, f, s);
}

/// Look at all valleys: raise floors on which nothing can start, find dead ends, choose where to branch.
static sky_survey survey(tide_sky_tree *t, sky_frame *f, sky_choice *choice) {
    const bool by_item = t->probe->rule == TIDE_SKY_KEY || t->probe->rule == TIDE_SKY_KEY_LOW;
    for (;;) {
        t->n_work += f->n + f->n_sections;
        find_runs(t, f);
        const uint32_t smallest = count_items(t, f);
        bool has_best = false;
        uint32_t n_blocked = 0;
        score best = {0};
        uint32_t branches = 0, inside = 0, above = 0;
        for (uint32_t s = 0; s < f->n_sections; s++) {
            t->branches[s] = branches += t->branches[s];
            inside += t->inside[s];
            above += t->above[s];
            // All of these are alive together, and none can start below.
            if (above > 0 && (uint64_t)f->raised + above > t->capacity) return dead_end_after(t, f, n_blocked, s);
            const uint32_t floor = f->floor[s], slack = slack_of(t, f, s);
            if (t->wall[s] <= floor) continue;
            // What fits the valley does not fill it, and what does not fit begins at its walls.
            const uint32_t depth = t->wall[s] - floor;
            if (inside < f->rest[s] && depth > inside && depth - inside > slack)
                return dead_end_after(t, f, n_blocked, s);
            if (branches == 0) t->blocked[n_blocked++].section = s;
            if (by_item || n_blocked > 0) continue;
            const bool may_waste = can_waste(t, f, s, smallest);
            const score now = rate(t, f, s, slack, may_waste);
            if (has_best && !is_better(now, best)) continue;
            best = now;
            has_best = true;
            choose(t, f, s, may_waste, choice);
        }
        if (raise_blocked(t, f, n_blocked) == SKY_DEAD) return SKY_DEAD;
        if (n_blocked > 0) continue;
        if (by_item) choose_by_item(t, f, smallest, choice);
        return SKY_OPEN;
    }
}

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
static uint64_t floor_without(const tide_sky_tree *t, const sky_frame *f, const sky_choice *c, sky_window *conflict) {
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
        *conflict = join(*conflict, (sky_window){item.begin, item.end});
    }
    return lowest;
}

/// `own`: the sections of all items on the section.
static tide_sky_result waste(tide_sky_tree *t, sky_frame *f, const sky_choice *c, sky_window own) {
    sky_window conflict = own;
    const uint64_t to = floor_without(t, f, c, &conflict);
    const uint32_t at = f->first + c->section, raised = f->raised;
    const size_t n_trail = t->n_trail;
    t->conflict = conflict;
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
    if (got == TIDE_SKY_EXHAUSTED && meet(t->conflict, own)) t->conflict = join(conflict, t->conflict);
    return got;
}

// ---- components ----

/// Sections [begin, end) of `f`, which share no item left with the others.
static bool push_component(tide_sky_tree *t, const sky_frame *f, uint32_t begin, uint32_t end, sky_frame *out) {
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

static tide_sky_result solve_components(tide_sky_tree *t, const sky_frame *f) {
    for (uint32_t s = 0; s < f->n_sections;) {
        uint32_t end = s;
        while (end < f->n_sections && f->rest[end] > 0) end++;
        if (end > s) {
            sky_frame component;
            t->n_work += f->n + (end - s);
            if (!push_component(t, f, s, end, &component)) return t->cut;
            const size_t n_trail = t->n_trail;
            const tide_sky_result got = tide__sky_solve(t, &component);
            t->n_trail = n_trail; // the component's arrays are its own
            if (got != TIDE_SKY_FOUND) return got;
        }
        s = end + 1;
    }
    return TIDE_SKY_FOUND;
}

static bool has_components(const sky_frame *f) {
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
            w = join(w, (sky_window){f->from[s - f->first], f->to[s - f->first]});
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

/// How well the item fits the valley: the higher, the earlier it is tried.
static uint32_t rate_fit(const tide_sky_tree *t, const sky_frame *f, const sky_choice *c, uint32_t i) {
    if (t->probe->fit == TIDE_SKY_FIT_NONE) return 0;
    const sky_item *item = &t->items[i];
    const uint32_t top = c->floor + item->size;
    const bool at_begin = item->begin == f->first + c->begin, at_end = item->end == f->first + c->end;
    const bool left = c->begin > 0 && top == f->floor[c->begin - 1];
    const bool right = c->end < f->n_sections && top == f->floor[c->end];
    if (t->probe->fit == TIDE_SKY_FIT_FILL) return (at_begin && at_end) + (left || right);
    return at_begin + at_end + left + right;
}

/// The items that can lie next on the section, in the order in which they are tried: indices in the frame.
static bool list_branches(tide_sky_tree *t, const sky_frame *f, const sky_choice *c, uint32_t **branches,
                          uint32_t *n_branches) {
    const uint32_t at = f->first + c->section, begin = f->first + c->begin, end = f->first + c->end;
    uint32_t *list = t->list, *fit = t->fit, n = 0;
    uint32_t before = UINT32_MAX;
    for (uint32_t k = 0; k < f->n; k++) {
        const uint32_t i = f->id[k];
        const sky_item item = t->items[i];
        const bool is_second_twin = before != UINT32_MAX && item.twin == before;
        before = i;
        if (item.begin > at || at >= item.end || f->at[k] != c->floor || is_second_twin) continue;
        if (item.begin < begin || item.end > end || is_swapped(t, f, i)) continue;
        const uint32_t rating = rate_fit(t, f, c, i);
        uint32_t place_at = n++;
        for (; place_at > 0 && fit[place_at - 1] < rating; place_at--) {
            list[place_at] = list[place_at - 1];
            fit[place_at] = fit[place_at - 1];
        }
        list[place_at] = k;
        fit[place_at] = rating;
    }
    *n_branches = n;
    *branches = tide__sky_push(t, n * sizeof **branches);
    if (*branches != NULL && n > 0) memcpy(*branches, list, n * sizeof **branches);
    return *branches != NULL;
}

/// None of the branches lies next on the section: leave its floor empty if there is room for that.
static tide_sky_result branch_waste(tide_sky_tree *t, sky_frame *f, const sky_choice *c, sky_window own) {
    t->conflict = own;
    if (t->capacity - c->floor == f->rest[c->section]) {
        t->dead_ends[f->first + c->section]++;
        return TIDE_SKY_EXHAUSTED;
    }
    return waste(t, f, c, own);
}

/// Conflict-directed backjumping: a dead end whose conflict does not meet the item placed here is one for all other
/// branches as well. They need no try.
static tide_sky_result branch(tide_sky_tree *t, sky_frame *f, const sky_choice *c) {
    uint32_t *branches, n_branches;
    if (!list_branches(t, f, c, &branches, &n_branches)) return t->cut;
    sky_window conflict = {UINT32_MAX, 0};
    for (uint32_t k = 0; k < n_branches; k++) {
        const sky_item item = t->items[f->id[branches[k]]];
        const sky_mark mark = tide__sky_mark(t);
        const tide_sky_result got = place(t, f, branches[k], c->floor);
        tide__sky_pop(t, mark);
        if (got != TIDE_SKY_EXHAUSTED || !meet(t->conflict, (sky_window){item.begin, item.end})) return got;
        conflict = join(conflict, t->conflict);
    }
    const sky_window own = close_window(f, window_of(t, f, c->section));
    const tide_sky_result got = branch_waste(t, f, c, own);
    if (got != TIDE_SKY_EXHAUSTED || !meet(t->conflict, own)) return got;
    t->conflict = close_window(f, join(join(conflict, own), t->conflict));
    return TIDE_SKY_EXHAUSTED;
}

static tide_sky_result solve_whole(tide_sky_tree *t, sky_frame *f) {
    sky_choice choice = {0};
    tide_sky_result got = TIDE_SKY_EXHAUSTED;
    if (survey(t, f, &choice) == SKY_OPEN)
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
    const tide_sky_result got = has_components(f) ? solve_components(t, f) : solve_whole(t, f);
    t->depth--;
    tide__sky_pop(t, mark);
    return got;
}
