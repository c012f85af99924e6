// SPDX-License-Identifier: MIT
//
// peaks: which tensors are alive where a buffer's lower bound is made. See advice.h.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/advice.h"
#include "planner/grid.h"
#include "planner/problem.h"

static bool alive(const tide_lifetime *item, int64_t step) { return item->begin_step <= step && step < item->end_step; }

/// Bytes of an item's rectangles at one tick.
static uint64_t bytes_at(const tide_problem *p, const tide_item *item, uint32_t tick) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < item->n_rects; k++) {
        const tide_rect *r = &tide__rects_of(p, item)[k];
        if (r->begin <= tick && tick < r->end) sum += r->hi_bytes - r->lo_bytes;
    }
    return sum;
}

/// What is sorted: a root, or an alias behind it.
typedef struct candidate {
    uint64_t root_bytes;
    uint32_t root;
    tide_peak_entry entry;
} candidate;

/// Roots by size, each with its aliases behind it in table order.
static int compare_candidates(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->root_bytes != y->root_bytes) return x->root_bytes > y->root_bytes ? -1 : 1;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    if (x->entry.inside != y->entry.inside) return x->entry.inside ? 1 : -1;
    return (x->entry.item > y->entry.item) - (x->entry.item < y->entry.item);
}

static uint64_t sum_of(const uint64_t *bytes, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += bytes[i];
    return sum;
}

/// `bytes` [lt->n] is scratch: what each root takes at the peak, 0 for all others.
static tide_status find_peak(const tide_lifetimes *lt, const tide_problem *p, uint64_t *bytes, tide_peak *out) {
    *out = (tide_peak){.device = p->device, .kind = p->kind, .bytes = p->lower_bound_bytes};
    if (p->n == 0) return TIDE_OK;
    out->step = p->tick_steps != NULL ? p->tick_steps[p->peak_tick] : (int64_t)p->peak_tick;
    memset(bytes, 0, lt->n * sizeof *bytes);
    for (size_t i = 0; i < p->n; i++) bytes[p->items[i].lifetime] = bytes_at(p, &p->items[i], p->peak_tick);
    TIDE_ASSERT(sum_of(bytes, lt->n) == p->lower_bound_bytes); // roots at the peak add up to the bound
    size_t n = 0;
    candidate *all = tide_host_calloc(lt->n, sizeof *all);
    if (all == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t i = 0; i < lt->n; i++) {
        const uint32_t root = tide_lifetimes_root(lt, i, NULL);
        const bool inside = root != i;
        if (bytes[root] == 0 || (inside && (!alive(&lt->items[i], out->step) || lt->items[i].size_bytes == 0)))
            continue;
        all[n++] = (candidate){bytes[root], root, {i, inside ? lt->items[i].size_bytes : bytes[root], inside}};
    }
    TIDE_ASSERT(n <= lt->n);
    qsort(all, n, sizeof *all, compare_candidates);
    out->entries = tide_host_calloc(n, sizeof *out->entries);
    for (size_t k = 0; out->entries != NULL && k < n; k++) out->entries[k] = all[k].entry;
    out->n = out->entries != NULL ? n : 0;
    tide_host_free(all);
    return out->entries != NULL || n == 0 ? TIDE_OK : TIDE_ERR_NOMEM;
}

tide_status tide_peaks_find(const tide_lifetimes *lt, tide_peaks *out, tide_error *err) {
    tide_problems problems;
    TIDE_TRY(tide__problems_make(lt, &problems, err));
    *out = (tide_peaks){0};
    tide_status st = TIDE_OK;
    out->list = tide_host_calloc(problems.n, sizeof *out->list);
    uint64_t *bytes = tide_host_calloc(lt->n, sizeof *bytes);
    if (out->list == NULL || bytes == NULL) st = TIDE_ERR_NOMEM;
    for (size_t b = 0; b < problems.n && st == TIDE_OK; b++) {
        st = find_peak(lt, &problems.list[b], bytes, &out->list[b]);
        out->n = b + 1;
    }
    tide_host_free(bytes);
    tide__problems_deinit(&problems);
    if (st == TIDE_OK) return TIDE_OK;
    tide_peaks_deinit(out);
    return TIDE_FAIL(err, st, "no memory for the peak of %zu lifetimes", lt->n);
}

void tide_peaks_deinit(tide_peaks *p) {
    for (size_t b = 0; b < p->n; b++) tide_host_free(p->list[b].entries);
    tide_host_free(p->list);
    *p = (tide_peaks){0};
}

// ---- text ----

/// For people: the rows after the largest are summed up. JSON has all of them.
enum { DEFAULT_LISTED = 60 };

static void add_step(tide_grid *g, const tide_lifetimes *lt, int64_t step) {
    if (step >= 0 && (uint64_t)step < lt->n_step_names)
        tide__grid_name(g, lt->step_names[step]);
    else
        tide__grid_cell(g, "step %" PRId64, step);
}

static void add_entry(tide_grid *g, const tide_peak *peak, const tide_lifetimes *lt, const tide_peak_entry *e) {
    const tide_lifetime *item = &lt->items[e->item];
    char share[32];
    tide_text name = {0};
    tide_text_addf(&name, "%s%s", e->inside ? "  in it: " : "", item->name);
    if (name.failed) g->failed = true;
    tide__grid_name(g, tide_text_str(&name));
    tide_text_deinit(&name);
    tide__grid_cell(g, "%" PRIu64, e->bytes);
    if (e->inside)
        tide__grid_cell(g, "-");
    else
        tide__grid_cell(g, "%s%%",
                        tide__format_fixed(100 * (double)e->bytes / (double)peak->bytes, 1, share, sizeof share));
    add_step(g, lt, item->begin_step);
    add_step(g, lt, item->end_step - 1);
}

static void print_peak(const tide_peak *peak, const tide_lifetimes *lt, size_t max_rows, tide_text *out) {
    char bytes[24], device[16];
    tide_text_addf(out, "\nPeak of %s on %s: %s at step %" PRId64, tide_memory_kind_name(peak->kind),
                   tide_device_format(peak->device, device, sizeof device),
                   tide_format_bytes(peak->bytes, bytes, sizeof bytes), peak->step);
    if ((uint64_t)peak->step < lt->n_step_names) {
        tide_text_add(out, " (");
        tide__add_name(out, lt->step_names[peak->step]);
        tide_text_add(out, ")");
    }
    tide_text_add(out, "\n");
    static const char *const heads[] = {"tensor", "bytes", "share", "made by", "last read by"};
    tide_grid g = {.columns = "lrrll"};
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) tide__grid_cell(&g, "%s", heads[k]);
    uint64_t rest = 0;
    for (size_t k = 0; k < peak->n; k++) {
        if (k < max_rows)
            add_entry(&g, peak, lt, &peak->entries[k]);
        else if (!peak->entries[k].inside)
            rest += peak->entries[k].bytes;
    }
    tide__grid_finish(&g, out);
    if (peak->n > max_rows)
        tide_text_addf(out, "… and %zu more of %s together (-v --json lists all)\n", peak->n - max_rows,
                       tide_format_bytes(rest, bytes, sizeof bytes));
}

void tide_peaks_print(const tide_peaks *p, const tide_lifetimes *lt, size_t max_rows, tide_text *out) {
    for (size_t b = 0; b < p->n; b++) {
        if (p->list[b].n > 0) print_peak(&p->list[b], lt, max_rows > 0 ? max_rows : DEFAULT_LISTED, out);
    }
}
