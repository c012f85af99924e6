// SPDX-License-Identifier: MIT
//
// Lifetimes as google/minimalloc reads them: its columns and nothing else. What it has no word for is said in words it
// has: a tensor with its aliases is one buffer as large as the place they share, and where less than all of it is
// needed there is a gap; tensors that must stay apart meet in a step after all others. Every answer to the file is a
// plan of the table. It may be stricter than the table: where two stretches of a place are needed and the bytes between
// them are not, the file keeps those too.
#include <inttypes.h>
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/lifetimes_csv.h"
#include "planner/planner.h"
#include "planner/problem_internal.h"

/// One line of the file.
typedef struct line {
    uint32_t root; // table index of the item that has the place
    int64_t begin, end;
    uint64_t bytes;
    size_t first_gap, n_gaps; // in writer.gaps
} line;

typedef struct writer {
    const tide_lifetimes *lt;
    const tide_memory_plan *plan; // NULL: offsets are those that were given
    line *lines;                  // [n_lines] in table order
    size_t n_lines, cap_lines;
    tide_gap *gaps; // [n_gaps]
    size_t n_gaps, cap_gaps;
    int64_t *cuts; // steps at which a class changes
    size_t cap_cuts;
} writer;

// ---- one class of aliases as a buffer with gaps ----

static int compare_steps(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/// The range from the lowest to the highest byte that is needed from `begin` on; empty: none is.
static void hull_at(const tide_step_rect *rects, size_t n, int64_t begin, uint64_t *lo, uint64_t *hi) {
    *lo = *hi = 0;
    for (size_t k = 0; k < n; k++) {
        if (rects[k].begin > begin || rects[k].end <= begin) continue;
        if (*hi == 0 || rects[k].lo < *lo) *lo = rects[k].lo;
        if (rects[k].hi > *hi) *hi = rects[k].hi;
    }
}

/// A stretch in which less than the whole is needed; joined to the one before where both keep the same.
static tide_status add_gap(writer *w, line *l, int64_t begin, int64_t end, uint64_t lo, uint64_t hi) {
    if (begin >= end || (lo == 0 && hi == l->bytes)) return TIDE_OK;
    tide_gap *last = l->n_gaps > 0 ? &w->gaps[w->n_gaps - 1] : NULL;
    if (last != NULL && last->end_step == begin && last->lo_bytes == lo && last->hi_bytes == hi) {
        last->end_step = end;
        return TIDE_OK;
    }
    TIDE_TRY(tide_host_grow(&w->gaps, &w->cap_gaps, w->n_gaps + 1, sizeof *w->gaps));
    w->gaps[w->n_gaps++] = (tide_gap){begin, end, lo, hi};
    l->n_gaps++;
    return TIDE_OK;
}

static tide_status add_gaps(writer *w, line *l, const tide_step_rect *rects, size_t n) {
    TIDE_TRY(tide_host_grow(&w->cuts, &w->cap_cuts, 2 * n, sizeof *w->cuts));
    for (size_t k = 0; k < n; k++) {
        w->cuts[2 * k] = rects[k].begin;
        w->cuts[2 * k + 1] = rects[k].end;
    }
    qsort(w->cuts, 2 * n, sizeof *w->cuts, compare_steps);
    l->begin = w->cuts[0];
    l->end = w->cuts[2 * n - 1];
    for (size_t k = 0; k + 1 < 2 * n; k++) {
        uint64_t lo, hi;
        hull_at(rects, n, w->cuts[k], &lo, &hi);
        TIDE_TRY(add_gap(w, l, w->cuts[k], w->cuts[k + 1], lo, hi));
    }
    // Members of a set are alive together in a step of their own, behind all others.
    const uint32_t set = w->lt->items[l->root].apart_set;
    if (set == 0) return TIDE_OK;
    const int64_t meet = w->lt->n_steps + set;
    TIDE_TRY(add_gap(w, l, l->end, meet, 0, 0));
    l->end = meet + 1;
    return TIDE_OK;
}

static tide_status add_class(writer *w, const tide_classes *c, const tide_class *of) {
    TIDE_TRY(tide_host_grow(&w->lines, &w->cap_lines, w->n_lines + 1, sizeof *w->lines));
    line *l = &w->lines[w->n_lines];
    *l =
        (line){.root = of->root, .bytes = tide_lifetime_aligned_bytes(&w->lt->items[of->root]), .first_gap = w->n_gaps};
    TIDE_TRY(add_gaps(w, l, c->rects.list + of->first_rect, of->n_rects));
    w->n_lines++;
    return TIDE_OK;
}

static int compare_lines(const void *a, const void *b) {
    const line *x = a, *y = b;
    return (x->root > y->root) - (x->root < y->root);
}

// ---- checks ----

static bool offset_of(const writer *w, const line *l, uint64_t *out) {
    *out = w->plan != NULL ? w->plan->offsets[l->root] : w->lt->items[l->root].fixed_offset_bytes;
    return w->plan != NULL ? *out != TIDE_NO_OFFSET : w->lt->items[l->root].fixed;
}

static tide_status check_one_buffer(const writer *w, tide_error *err) {
    for (size_t k = 1; k < w->n_lines; k++) {
        const tide_lifetime *a = &w->lt->items[w->lines[0].root], *b = &w->lt->items[w->lines[k].root];
        if (a->kind == b->kind && tide_device_equal(a->device, b->device)) continue;
        char x[16], y[16];
        const tide_status st = TIDE_FAIL(
            err, TIDE_ERR_INVALID, "MiniMalloc plans one buffer: tensor '%s' is %s on %s, tensor '%s' is %s on %s",
            a->name, tide_memory_kind_name(a->kind), tide_device_format(a->device, x, sizeof x), b->name,
            tide_memory_kind_name(b->kind), tide_device_format(b->device, y, sizeof y));
        tide_error_hint(err, "--to csv and --to json hold any number of buffers");
        return st;
    }
    return TIDE_OK;
}

/// MiniMalloc's reader wants an offset in every line or in none.
static tide_status check_offsets(const writer *w, tide_error *err) {
    for (size_t k = 0; k < w->n_lines; k++) {
        uint64_t offset;
        if (offset_of(w, &w->lines[k], &offset) == offset_of(w, &w->lines[0], &offset)) continue;
        const bool first = offset_of(w, &w->lines[0], &offset);
        const tide_status st = TIDE_FAIL(
            err, TIDE_ERR_INVALID,
            "MiniMalloc takes an offset for every buffer or for none: tensor '%s' has one, tensor '%s' has none",
            w->lt->items[w->lines[first ? 0 : k].root].name, w->lt->items[w->lines[first ? k : 0].root].name);
        tide_error_hint(err, "--with-offsets gives all of them the places of a plan");
        return st;
    }
    return TIDE_OK;
}

/// Sets are steps here: their numbers must leave room behind the last one.
static tide_status check_steps(const tide_lifetimes *lt, tide_error *err) {
    int64_t last;
    bool any = false;
    for (size_t i = 0; i < lt->n && !any; i++) any = lt->items[i].apart_set != 0;
    if (!any || tide_add_i64(lt->n_steps, (int64_t)UINT32_MAX + 1, &last)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "steps up to %" PRId64 " leave no room for sets to be kept apart",
                     lt->n_steps);
}

// ---- text ----

static void add_line(const writer *w, const line *l, const bool *has, tide_text *out) {
    const tide_lifetime *root = &w->lt->items[l->root];
    uint64_t offset;
    tide_text_addf(out, "%s,%" PRId64 ",%" PRId64 ",%" PRIu64, root->name, l->begin, l->end, l->bytes);
    if (has[0]) tide_text_addf(out, ",%" PRIu64, root->align_bytes);
    if (has[1]) tide_text_add(out, ",");
    for (size_t k = 0; k < l->n_gaps; k++) {
        const tide_gap *gap = &w->gaps[l->first_gap + k];
        tide_text_addf(out, "%s%" PRId64 "-%" PRId64, k > 0 ? " " : "", gap->begin_step, gap->end_step);
        if (gap->hi_bytes > 0) tide_text_addf(out, "@%" PRIu64 ":%" PRIu64, gap->lo_bytes, gap->hi_bytes);
    }
    if (has[2]) tide_text_add(out, ",");
    if (has[2] && offset_of(w, l, &offset)) tide_text_addf(out, "%" PRIu64, offset);
    tide_text_add(out, "\n");
}

static void add_lines(const writer *w, tide_text *out) {
    bool has[3] = {false, w->n_gaps > 0, false}; // alignment, gaps, offset
    for (size_t k = 0; k < w->n_lines; k++) {
        uint64_t offset;
        has[0] |= w->lt->items[w->lines[k].root].align_bytes != 1;
        has[2] |= offset_of(w, &w->lines[k], &offset);
    }
    tide_text_addf(out, "id,lower,upper,size%s%s%s\n", has[0] ? ",alignment" : "", has[1] ? ",gaps" : "",
                   has[2] ? ",offset" : "");
    for (size_t k = 0; k < w->n_lines; k++) add_line(w, &w->lines[k], has, out);
}

static tide_status write_lines(writer *w, tide_text *out, tide_error *err) {
    tide_classes classes;
    TIDE_TRY(tide__classes_make(w->lt, &classes, err));
    tide_status st = TIDE_OK;
    for (size_t k = 0; k < classes.n && st == TIDE_OK; k++) st = add_class(w, &classes, &classes.list[k]);
    tide__classes_deinit(&classes);
    if (st != TIDE_OK) return TIDE_FAIL(err, st, "no memory for a list of lifetimes");
    TIDE_TRY(check_one_buffer(w, err));
    TIDE_TRY(check_offsets(w, err));
    if (w->n_lines > 1) qsort(w->lines, w->n_lines, sizeof *w->lines, compare_lines);
    tide_text own = {0};
    add_lines(w, &own);
    return tide__csv_hand_over(&own, out, err);
}

tide_status tide_lifetimes_to_minimalloc(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                         tide_error *err) {
    TIDE_TRY(tide__csv_check_names(lt, err));
    TIDE_TRY(check_steps(lt, err));
    writer w = {.lt = lt, .plan = plan};
    const tide_status st = write_lines(&w, out, err);
    tide_host_free(w.lines);
    tide_host_free(w.gaps);
    tide_host_free(w.cuts);
    return st;
}
