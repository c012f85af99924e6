// SPDX-License-Identifier: MIT
//
// Lifetimes as a CSV (docs/lifetimes-format.md). A column is written where some line needs it, so that a table which
// uses nothing but MiniMalloc's features becomes a file that MiniMalloc reads.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/lifetimes_csv.h"
#include "planner/planner.h"
#include "planner/problem_classes.h"

typedef struct writer {
    const tide_lifetimes *lt;
    const tide_memory_plan *plan; // NULL: offsets are those that were given
    bool *has;                    // [TIDE_N_CSV_COLUMNS]
    tide_text *out;
} writer;
_Static_assert((int)TIDE_N_CSV_COLUMNS <= (int)(sizeof((tide_lifetimes_csv){0}.has) / sizeof(bool)), "they have room");

// ---- names ----

/// CSV of this form has no quoting: a name must survive the reader's trimming and splitting.
static const char *fault_of_name(const char *name) {
    const size_t len = strlen(name);
    if (len == 0) return "it is empty";
    if (strchr(name, ',') != NULL) return "it has a comma";
    if (strpbrk(name, "\r\n") != NULL) return "it has a line break";
    if (name[0] == '"') return "it begins with a quote";
    if (strchr(" \t", name[0]) != NULL || strchr(" \t", name[len - 1]) != NULL) return "it has blanks at an end";
    return NULL;
}

/// CSV of this form has no quoting: TIDE_ERR_INVALID naming a tensor whose name or bound would not survive the reader.
static tide_status check_names(const tide_lifetimes *lt, tide_error *err) {
    for (size_t i = 0; i < lt->n; i++) {
        const char *fault = fault_of_name(lt->items[i].name);
        if (fault == NULL && lt->items[i].bound != NULL && fault_of_name(lt->items[i].bound) != NULL)
            fault = "its bound has a comma, a line break, a quote or a blank that no CSV keeps";
        if (fault == NULL) continue;
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' cannot be listed in a CSV: %s", lt->items[i].name, fault);
        tide_error_hint(err, "this form of CSV has no quoting; JSON holds any name");
        return st;
    }
    return TIDE_OK;
}

/// "a+3" would be read as 3 bytes into "a".
static bool ends_like_an_offset(const char *name) {
    const char *plus = strrchr(name, '+');
    return plus != NULL && plus[1] != '\0' && strspn(plus + 1, "0123456789") == strlen(plus + 1);
}

// ---- columns ----

static bool offset_of(const writer *w, size_t i, uint64_t *out) {
    const tide_lifetime *item = &w->lt->items[i];
    if (w->plan != NULL) {
        *out = w->plan->offsets[i];
        return *out != TIDE_NO_OFFSET;
    }
    *out = item->fixed_offset_bytes;
    return item->fixed;
}

static void note_columns(writer *w) {
    static const tide_csv_column always[] = {TIDE_CSV_COLUMN_ID, TIDE_CSV_COLUMN_BEGIN, TIDE_CSV_COLUMN_END,
                                             TIDE_CSV_COLUMN_SIZE};
    for (size_t k = 0; k < sizeof always / sizeof always[0]; k++) w->has[always[k]] = true;
    for (size_t i = 0; i < w->lt->n; i++) {
        const tide_lifetime *item = &w->lt->items[i];
        uint64_t offset;
        w->has[TIDE_CSV_COLUMN_ALIGNMENT] |= item->align_bytes != 1;
        w->has[TIDE_CSV_COLUMN_GAPS] |= item->n_gaps > 0;
        w->has[TIDE_CSV_COLUMN_OFFSET] |= offset_of(w, i, &offset);
        w->has[TIDE_CSV_COLUMN_ROUNDED] |= !item->unrounded;
        w->has[TIDE_CSV_COLUMN_KIND] |= item->kind != (item->persistent ? TIDE_KIND_DEFAULT : TIDE_KIND_WORKSPACE);
        w->has[TIDE_CSV_COLUMN_DEVICE] |= !tide_device_equal(item->device, TIDE_CPU);
        w->has[TIDE_CSV_COLUMN_ROLE] |= item->role != TIDE_ROLE_INTERMEDIATE;
        w->has[TIDE_CSV_COLUMN_PERSISTENT] |= item->persistent;
        w->has[TIDE_CSV_COLUMN_ALIAS] |= item->alias != TIDE_ALIAS_NONE;
        w->has[TIDE_CSV_COLUMN_ALIAS_KIND] |= item->alias != TIDE_ALIAS_NONE && item->alias != TIDE_ALIAS_GIVEN;
        w->has[TIDE_CSV_COLUMN_APART] |= item->apart_set != 0;
        w->has[TIDE_CSV_COLUMN_BOUND] |= item->bound != NULL;
    }
}

static void add_gaps(tide_text *out, const tide_lifetime *item) {
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *gap = &item->gaps[k];
        tide_text_addf(out, "%s%" PRId64 "-%" PRId64, k > 0 ? " " : "", gap->begin_step, gap->end_step);
        if (gap->hi_bytes > 0) tide_text_addf(out, "@%" PRIu64 ":%" PRIu64, gap->lo_bytes, gap->hi_bytes);
    }
}

static void add_alias(const writer *w, const tide_lifetime *item) {
    if (item->alias == TIDE_ALIAS_NONE) return;
    const char *name = w->lt->items[item->alias_of].name;
    tide_text_add(w->out, name);
    if (item->alias_offset_bytes > 0 || ends_like_an_offset(name))
        tide_text_addf(w->out, "+%" PRIu64, item->alias_offset_bytes);
}

static void add_cell(const writer *w, tide_csv_column column, size_t i) {
    const tide_lifetime *item = &w->lt->items[i];
    tide_text *out = w->out;
    char device[16];
    uint64_t offset;
    switch (column) {
    case TIDE_CSV_COLUMN_ID:
        tide_text_add(out, item->name);
        break;
    case TIDE_CSV_COLUMN_BEGIN:
        tide_text_addf(out, "%" PRId64, item->begin_step);
        break;
    case TIDE_CSV_COLUMN_END:
        tide_text_addf(out, "%" PRId64, item->end_step);
        break;
    case TIDE_CSV_COLUMN_SIZE:
        tide_text_addf(out, "%" PRIu64, item->size_bytes);
        break;
    case TIDE_CSV_COLUMN_ALIGNMENT:
        tide_text_addf(out, "%" PRIu64, item->align_bytes);
        break;
    case TIDE_CSV_COLUMN_GAPS:
        add_gaps(out, item);
        break;
    case TIDE_CSV_COLUMN_OFFSET:
        if (offset_of(w, i, &offset)) tide_text_addf(out, "%" PRIu64, offset);
        break;
    case TIDE_CSV_COLUMN_ROUNDED:
        tide_text_add(out, item->unrounded ? "0" : "1");
        break;
    case TIDE_CSV_COLUMN_KIND:
        tide_text_add(out, tide_memory_kind_name(item->kind));
        break;
    case TIDE_CSV_COLUMN_DEVICE:
        tide_text_add(out, tide_device_format(item->device, device, sizeof device));
        break;
    case TIDE_CSV_COLUMN_ROLE:
        tide_text_add(out, tide_role_name(item->role));
        break;
    case TIDE_CSV_COLUMN_PERSISTENT:
        tide_text_add(out, item->persistent ? "1" : "0");
        break;
    case TIDE_CSV_COLUMN_ALIAS:
        add_alias(w, item);
        break;
    case TIDE_CSV_COLUMN_ALIAS_KIND:
        if (item->alias != TIDE_ALIAS_NONE) tide_text_add(out, tide_alias_kind_name(item->alias));
        break;
    case TIDE_CSV_COLUMN_APART:
        if (item->apart_set != 0) tide_text_addf(out, "%" PRIu32, item->apart_set);
        break;
    case TIDE_CSV_COLUMN_BOUND:
        if (item->bound != NULL) tide_text_add(out, item->bound);
        break;
    case TIDE_CSV_COLUMN_LAST:
    case TIDE_CSV_COLUMN_HINT:
    case TIDE_N_CSV_COLUMNS:
        break;
    }
}

static void add_heading(const writer *w) {
    const char *comma = "";
    for (int k = 0; k < TIDE_N_CSV_COLUMNS; k++) {
        if (!w->has[k]) continue;
        tide_text_addf(w->out, "%s%s", comma, tide__csv_heads[k]);
        comma = ",";
    }
    tide_text_add(w->out, "\n");
}

static void add_rows(const writer *w) {
    for (size_t i = 0; i < w->lt->n; i++) {
        const char *comma = "";
        for (int k = 0; k < TIDE_N_CSV_COLUMNS; k++) {
            if (!w->has[k]) continue;
            tide_text_add(w->out, comma);
            add_cell(w, (tide_csv_column)k, i);
            comma = ",";
        }
        tide_text_add(w->out, "\n");
    }
}

/// Append a finished text to `out`, or fail where memory ran out; `own` is freed either way.
static tide_status hand_over(tide_text *own, tide_text *out, tide_error *err) {
    if (out->len == 0 && !own->failed) { // most texts are long: not twice
        tide_text_deinit(out);
        *out = *own;
        return TIDE_OK;
    }
    if (!own->failed) tide_text_add_n(out, own->data, own->len);
    const bool failed = own->failed || out->failed;
    tide_text_deinit(own);
    return failed ? TIDE_NO_MEMORY(err, "for a list of lifetimes") : TIDE_OK;
}

tide_status tide_lifetimes_csv_note(tide_lifetimes_csv *c, const tide_lifetimes *part, tide_error *err) {
    TIDE_TRY(check_names(part, err));
    writer w = {.lt = part, .has = c->has};
    note_columns(&w);
    return TIDE_OK;
}

tide_status tide_lifetimes_csv_add(tide_lifetimes_csv *c, const tide_lifetimes *part, tide_text *out, tide_error *err) {
    const writer w = {.lt = part, .has = c->has, .out = out};
    if (!c->is_begun) add_heading(&w);
    c->is_begun = true;
    add_rows(&w);
    return out->failed ? TIDE_NO_MEMORY(err, "for a list of lifetimes") : TIDE_OK;
}

tide_status tide_lifetimes_to_csv(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                  tide_error *err) {
    TIDE_TRY(check_names(lt, err));
    tide_text own = {0};
    bool has[TIDE_N_CSV_COLUMNS] = {false};
    writer w = {.lt = lt, .plan = plan, .has = has, .out = &own};
    note_columns(&w);
    add_heading(&w);
    add_rows(&w);
    return hand_over(&own, out, err);
}

// ---- for google/minimalloc ----
//
// Its columns and nothing else. What they cannot say is said with what there is: a tensor with its aliases is one
// buffer as large as the place they share, and where less than all of it is needed there is a gap; tensors that must
// stay apart meet in a step after all others. Every answer to the file is a plan of the table. It may be stricter than
// the table: where two stretches of a place are needed and the bytes between them are not, the file keeps those too.

/// One line of the file.
typedef struct line {
    uint32_t root; // table index of the item that has the place
    int64_t begin, end;
    uint64_t bytes;
    size_t first_gap, n_gaps; // in minimalloc.gaps
} line;

typedef struct minimalloc {
    const tide_lifetimes *lt;
    const tide_memory_plan *plan; // NULL: offsets are those that were given
    line *lines;                  // [n_lines] in table order
    size_t n_lines, cap_lines;
    tide_gap *gaps; // [n_gaps]
    size_t n_gaps, cap_gaps;
    int64_t *cuts; // steps at which a class changes
    size_t cap_cuts;
} minimalloc;

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
static tide_status add_gap(minimalloc *w, line *l, int64_t begin, int64_t end, uint64_t lo, uint64_t hi) {
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

static tide_status add_gap_list(minimalloc *w, line *l, const tide_step_rect *rects, size_t n) {
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

static tide_status add_class(minimalloc *w, const tide_classes *c, const tide_class *of) {
    TIDE_TRY(tide_host_grow(&w->lines, &w->cap_lines, w->n_lines + 1, sizeof *w->lines));
    line *l = &w->lines[w->n_lines];
    *l =
        (line){.root = of->root, .bytes = tide_lifetime_aligned_bytes(&w->lt->items[of->root]), .first_gap = w->n_gaps};
    TIDE_TRY(add_gap_list(w, l, c->rects.list + of->first_rect, of->n_rects));
    w->n_lines++;
    return TIDE_OK;
}

static int compare_lines(const void *a, const void *b) {
    const line *x = a, *y = b;
    return (x->root > y->root) - (x->root < y->root);
}

// ---- checks ----

static bool given_offset(const minimalloc *w, const line *l, uint64_t *out) {
    *out = w->plan != NULL ? w->plan->offsets[l->root] : w->lt->items[l->root].fixed_offset_bytes;
    return w->plan != NULL ? *out != TIDE_NO_OFFSET : w->lt->items[l->root].fixed;
}

static tide_status check_one_buffer(const minimalloc *w, tide_error *err) {
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
static tide_status check_offsets(const minimalloc *w, tide_error *err) {
    for (size_t k = 0; k < w->n_lines; k++) {
        uint64_t offset;
        if (given_offset(w, &w->lines[k], &offset) == given_offset(w, &w->lines[0], &offset)) continue;
        const bool first = given_offset(w, &w->lines[0], &offset);
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

static void add_line(const minimalloc *w, const line *l, const bool *has, tide_text *out) {
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
    if (has[2] && given_offset(w, l, &offset)) tide_text_addf(out, "%" PRIu64, offset);
    tide_text_add(out, "\n");
}

static void add_lines(const minimalloc *w, tide_text *out) {
    bool has[3] = {false, w->n_gaps > 0, false}; // alignment, gaps, offset
    for (size_t k = 0; k < w->n_lines; k++) {
        uint64_t offset;
        has[0] |= w->lt->items[w->lines[k].root].align_bytes != 1;
        has[2] |= given_offset(w, &w->lines[k], &offset);
    }
    tide_text_addf(out, "id,lower,upper,size%s%s%s\n", has[0] ? ",alignment" : "", has[1] ? ",gaps" : "",
                   has[2] ? ",offset" : "");
    for (size_t k = 0; k < w->n_lines; k++) add_line(w, &w->lines[k], has, out);
}

static tide_status write_lines(minimalloc *w, tide_text *out, tide_error *err) {
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
    return hand_over(&own, out, err);
}

tide_status tide_lifetimes_to_minimalloc(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                                         tide_error *err) {
    TIDE_TRY(check_names(lt, err));
    TIDE_TRY(check_steps(lt, err));
    minimalloc w = {.lt = lt, .plan = plan};
    const tide_status st = write_lines(&w, out, err);
    tide_host_free(w.lines);
    tide_host_free(w.gaps);
    tide_host_free(w.cuts);
    return st;
}
