// SPDX-License-Identifier: MIT
//
// skyline survey: what a node of the tree looks like. Finds valleys, what fits them, waste that cannot be avoided, and
// the section on which the fewest things can lie next. Cost O(items left + sections). See skyline.h.
#include <string.h>

#include "planner/search/skyline_internal.h"

#include "core/base/assert.h"

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

/// Differences between neighbouring sections of ways, inside and above. @return the smallest size left
static uint32_t count_items(tide_sky_tree *t, const sky_frame *f) {
    const size_t bytes = ((size_t)f->n_sections + 1) * sizeof(uint32_t);
    memset(t->ways, 0, bytes);
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
                t->ways[begin]++;
                t->ways[end]--;
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

sky_window tide__sky_window_of(const tide_sky_tree *t, const sky_frame *f, uint32_t s) {
    const uint32_t at = f->first + s;
    sky_window w = {at, at + 1};
    for (uint32_t k = 0; k < f->n; k++) {
        const sky_item item = t->items[f->id[k]];
        if (item.begin <= at && at < item.end) w = tide__sky_join(w, (sky_window){item.begin, item.end});
    }
    return w;
}

static sky_survey dead_end(tide_sky_tree *t, const sky_frame *f, uint32_t s) {
    t->dead_ends[f->first + s]++;
    t->why = tide__sky_window_of(t, f, s);
    return SKY_DEAD;
}

typedef struct score {
    double first, second; ///< smaller is better
} score;

static score rate(const tide_sky_tree *t, const sky_frame *f, uint32_t s, uint32_t slack, bool may_waste) {
    const double ways = t->ways[s] + (may_waste ? 1.0 : 0.0);
    switch (t->probe->rule) {
    case TIDE_SKY_LOWEST:
        return (score){may_waste, f->floor[s] * 65536.0 + t->ways[s]};
    case TIDE_SKY_LEARN:
        return (score){ways / (1.0 + t->dead_ends[f->first + s]), 0.0};
    case TIDE_SKY_KEY:
    case TIDE_SKY_KEY_LOW:
    case TIDE_SKY_FEWEST:
    default:
        return (score){ways, slack};
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
static bool raise_floor(tide_sky_tree *t, const sky_frame *f, const sky_stuck *stuck) {
    const uint32_t s = stuck->section;
    const sky_window w = stuck->window;
    return tide__sky_set(t, &f->floor[s], stuck->start) && tide__sky_set(t, &f->below[s], UINT32_MAX) &&
           tide__sky_set(t, &f->from[s], w.begin < f->from[s] ? w.begin : f->from[s]) &&
           tide__sky_set(t, &f->to[s], w.end > f->to[s] ? w.end : f->to[s]);
}

/// The first of the stuck sections, which ascend, from `section` on.
static uint32_t first_stuck(const sky_stuck *stuck, uint32_t n, uint32_t section) {
    uint32_t low = 0;
    while (low < n) {
        const uint32_t middle = low + (n - low) / 2;
        if (stuck[middle].section < section)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/// For each section on whose floor nothing can start: where the lowest item on it can, and which sections its items
/// take.
static void look_at_stuck(tide_sky_tree *t, const sky_frame *f, uint32_t n_stuck) {
    for (uint32_t k = 0; k < n_stuck; k++) {
        const uint32_t at = f->first + t->stuck[k].section;
        t->stuck[k].start = UINT32_MAX;
        t->stuck[k].window = (sky_window){at, at + 1};
    }
    for (uint32_t k = 0; k < f->n; k++) {
        const sky_item item = t->items[f->id[k]];
        for (uint32_t j = first_stuck(t->stuck, n_stuck, item.begin - f->first); j < n_stuck; j++) {
            sky_stuck *stuck = &t->stuck[j];
            if (stuck->section >= item.end - f->first) break;
            if (f->at[k] < stuck->start) stuck->start = f->at[k];
            stuck->window = tide__sky_join(stuck->window, (sky_window){item.begin, item.end});
        }
    }
}

/// Raise the floors of sections on which nothing can start.
static sky_survey raise_stuck(tide_sky_tree *t, const sky_frame *f, uint32_t n_stuck) {
    if (n_stuck == 0) return SKY_OPEN;
    TIDE_ASSERT(n_stuck <= f->n_sections);
    look_at_stuck(t, f, n_stuck);
    for (uint32_t k = 0; k < n_stuck; k++) {
        const sky_stuck *stuck = &t->stuck[k];
        if (stuck->start - f->floor[stuck->section] > slack_of(t, f, stuck->section))
            return dead_end(t, f, stuck->section);
        if (!raise_floor(t, f, stuck)) return SKY_DEAD;
    }
    return SKY_OPEN;
}

/// Section `s` is a dead end, unless one of the stuck sections before it is.
static sky_survey dead_end_after(tide_sky_tree *t, const sky_frame *f, uint32_t n_stuck, uint32_t s) {
    return raise_stuck(t, f, n_stuck) == SKY_DEAD ? SKY_DEAD : dead_end(t, f, s);
}

sky_survey tide__sky_survey(tide_sky_tree *t, sky_frame *f, sky_choice *choice) {
    const bool by_item = t->probe->rule == TIDE_SKY_KEY || t->probe->rule == TIDE_SKY_KEY_LOW;
    for (;;) {
        t->n_work += f->n + f->n_sections;
        find_runs(t, f);
        const uint32_t smallest = count_items(t, f);
        bool has_best = false;
        uint32_t n_stuck = 0;
        score best = {0};
        uint32_t ways = 0, inside = 0, above = 0;
        for (uint32_t s = 0; s < f->n_sections; s++) {
            t->ways[s] = ways += t->ways[s];
            inside += t->inside[s];
            above += t->above[s];
            // All of these are alive together, and none can start below.
            if (above > 0 && (uint64_t)f->raised + above > t->capacity) return dead_end_after(t, f, n_stuck, s);
            const uint32_t floor = f->floor[s], slack = slack_of(t, f, s);
            if (t->wall[s] <= floor) continue;
            // What fits the valley does not fill it, and what does not fit begins at its walls.
            const uint32_t depth = t->wall[s] - floor;
            if (inside < f->rest[s] && depth > inside && depth - inside > slack)
                return dead_end_after(t, f, n_stuck, s);
            if (ways == 0) t->stuck[n_stuck++].section = s;
            if (by_item || n_stuck > 0) continue;
            const bool may_waste = can_waste(t, f, s, smallest);
            const score now = rate(t, f, s, slack, may_waste);
            if (has_best && !is_better(now, best)) continue;
            best = now;
            has_best = true;
            choose(t, f, s, may_waste, choice);
        }
        if (raise_stuck(t, f, n_stuck) == SKY_DEAD) return SKY_DEAD;
        if (n_stuck > 0) continue;
        if (by_item) choose_by_item(t, f, smallest, choice);
        return SKY_OPEN;
    }
}
