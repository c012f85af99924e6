// SPDX-License-Identifier: MIT
//
// advice: which single change would make a plan fit. See advice.h.
//
// A change is made to the table, the table is bounded anew, and where the bound says that it may fit a plan is made:
// only a plan says that it does.
#include "planner/advice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/grid.h"
#include "planner/problem.h"
#include "planner/process_need.h"

/// Tensors at the peak that are tried one by one, and plans that are made to see whether a change is enough.
/// Each of those gets a share of the default work.
enum { MAX_TENSORS = 24, MAX_TENSORS_LARGE = 4, LARGE_TABLE = 50000, WORK_PERCENT = 30 };
/// Constants above it are what not folding is tried with.
#define FOLD_LIMIT_BYTES (UINT64_C(1) << 20)

const char *tide_change_name(tide_change_kind kind) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_CHANGE_MAP(XX)
#undef XX
    };
    return (unsigned)kind < TIDE_N_CHANGES ? names[kind] : "change ?";
}

typedef struct adviser {
    const tide_advice_question *q;
    const tide_lifetimes *lt;
    tide_advice *out;
    size_t cap;
    uint64_t bound_bytes; // of the table as it is, with all that is persistent: what a bare bound is held against
    tide_error *err;
} adviser;

static uint64_t sum_of(uint64_t a, uint64_t b) { return tide_add_u64(a, b, &a) ? a : UINT64_MAX; }

/// Bytes of every kind outside the buffers.
static uint64_t persistent_bytes(const tide_lifetimes *lt) {
    uint64_t sum = 0;
    for (size_t i = 0; i < lt->n; i++) {
        if (lt->items[i].persistent) sum = sum_of(sum, tide_lifetime_aligned_bytes(&lt->items[i]));
    }
    return sum;
}

// ---- measuring a changed table ----

/// The best bound on the buffers' bytes that needs no search.
static tide_status bound(const tide_lifetimes *lt, uint64_t *bytes, tide_error *err) {
    tide_problems problems;
    *bytes = 0;
    TIDE_TRY(tide__problems_make(lt, &problems, err));
    for (size_t b = 0; b < problems.n; b++) *bytes = sum_of(*bytes, problems.list[b].proved_bytes);
    tide__problems_deinit(&problems);
    return TIDE_OK;
}

/// Plan the table where the bound says that it may fit. *planned: row->need_bytes is a plan's, not the bound.
static tide_status try_plan(const adviser *a, const tide_lifetimes *lt, tide_advice_row *row, bool *planned) {
    if (a->q->strategy == NULL || row->need_bytes > a->q->budget_bytes) return TIDE_OK;
    const tide_strategy_options opt = {.work_percent = WORK_PERCENT, .n_threads = 1};
    tide_memory_plan *plan = NULL;
    tide_error own = TIDE_ERROR_INIT;
    const tide_status st = tide_plan_make(lt, a->q->strategy, &opt, &plan, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_FAIL(a->err, st, "no memory to see what would fit");
    if (st != TIDE_OK) return TIDE_OK;
    row->need_bytes = tide_need_bytes(lt, plan->bytes);
    row->fits = row->need_bytes <= a->q->budget_bytes;
    *planned = true;
    tide_memory_plan_destroy(plan);
    return TIDE_OK;
}

/// Take `what`; a change that saves nothing against `now_bytes` is dropped.
static tide_status add_row(adviser *a, tide_advice_row row, uint64_t now_bytes) {
    row.saves_bytes = row.need_bytes < now_bytes ? now_bytes - row.need_bytes : 0;
    if (row.saves_bytes == 0 || row.what == NULL ||
        tide_host_grow(&a->out->rows, &a->cap, a->out->n + 1, sizeof row) != TIDE_OK) {
        const bool failed = row.saves_bytes > 0;
        tide_host_free(row.what);
        return failed ? TIDE_NO_MEMORY(a->err, "for advice") : TIDE_OK;
    }
    a->out->rows[a->out->n++] = row;
    return TIDE_OK;
}

/// What a changed table needs. TIDE_ERR_CANCELLED: it cannot be planned.
static tide_status weigh(const adviser *a, const tide_lifetimes *lt, tide_advice_row *row, bool *planned) {
    tide_error own = TIDE_ERROR_INIT;
    *planned = false;
    const tide_status st = bound(lt, &row->need_bytes, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_FAIL(a->err, st, "no memory for advice");
    if (st != TIDE_OK) return TIDE_ERR_CANCELLED;
    row->need_bytes = tide_need_bytes(lt, row->need_bytes);
    return try_plan(a, lt, row, planned);
}

static tide_status measure(adviser *a, const tide_lifetimes *lt, const tide_change *change, char *what) {
    tide_advice_row row = {.change = *change, .what = what};
    bool planned;
    const tide_status st = weigh(a, lt, &row, &planned);
    // A bound is held against the bound: the gap of today's plan is not what the change would save.
    if (st == TIDE_OK) return add_row(a, row, planned ? a->out->need_bytes : a->bound_bytes);
    tide_host_free(what);
    return st == TIDE_ERR_CANCELLED ? TIDE_OK : st;
}

// ---- changes that need the program ----

static char *usual_words(const tide_change *c) {
    tide_text words = {0};
    switch (c->kind) {
    case TIDE_CHANGE_PASS:
        tide_text_addf(&words, "turn the pass '%s' on", tide_pass_name(c->pass));
        break;
    case TIDE_CHANGE_PASSES:
        tide_text_add(&words, "turn all passes on");
        break;
    case TIDE_CHANGE_FUSE:
        tide_text_add(&words, "fuse operators (leave --no-fuse out)");
        break;
    case TIDE_CHANGE_QDQ:
        tide_text_add(&words, "let operators read and write quantised tensors (leave --no-qdq out)");
        break;
    case TIDE_CHANGE_ALIGN:
        tide_text_addf(&words, "--align %" PRIu64, c->align_bytes);
        break;
    case TIDE_CHANGE_RECOMPUTE:
        tide_text_addf(&words, "--allow-recompute %.0f%%", 100 * c->recompute_share);
        break;
    case TIDE_CHANGE_MAP:
        tide_text_add(&words, "weights stay in their file (leave --weights copy out)");
        break;
    case TIDE_CHANGE_THREADS:
        tide_text_add(&words, "--intra-threads 1");
        break;
    case TIDE_CHANGE_FOLD:
        tide_text_addf(&words, "--fold-limit %" PRIu64 "MiB", c->limit_bytes >> 20);
        break;
    default:
        tide_text_add(&words, "open extents of the inputs half as large");
        break;
    }
    return words.failed ? NULL : words.data;
}

static tide_status try_remake(adviser *a, const tide_change *change) {
    tide_lifetimes lt = {0};
    char *what = NULL;
    tide_error own = TIDE_ERROR_INIT;
    tide_status st = a->q->remake(a->q->ctx, change, &lt, &what, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_FAIL(a->err, st, "no memory to see what would fit");
    if (st != TIDE_OK) return TIDE_OK; // nothing to change, or not possible: no advice
    if (what == NULL) what = usual_words(change);
    st = measure(a, &lt, change, what);
    tide_lifetimes_deinit(&lt);
    return st;
}

/// One batch. *row is `best` afterwards where it fits, or where nothing is known yet.
static tide_status try_one_batch(adviser *a, uint64_t batch, tide_advice_row *best, uint64_t *now_bytes, bool *fits) {
    tide_advice_row row = {.change = {.kind = TIDE_CHANGE_BATCH, .batch = batch}};
    tide_lifetimes lt = {0};
    tide_error own = TIDE_ERROR_INIT;
    bool planned = false;
    *fits = false;
    tide_status st = a->q->remake(a->q->ctx, &row.change, &lt, &row.what, &own);
    if (st == TIDE_ERR_NOMEM) return TIDE_FAIL(a->err, st, "no memory to see what would fit");
    if (st == TIDE_OK) st = weigh(a, &lt, &row, &planned);
    tide_lifetimes_deinit(&lt);
    if (st == TIDE_ERR_NOMEM || st != TIDE_OK) {
        tide_host_free(row.what);
        return st == TIDE_ERR_NOMEM ? st : TIDE_OK;
    }
    *fits = row.fits;
    if (!row.fits && best->what != NULL) {
        tide_host_free(row.what);
        return TIDE_OK;
    }
    tide_host_free(best->what);
    *best = row;
    *now_bytes = planned ? a->out->need_bytes : a->bound_bytes;
    return TIDE_OK;
}

/// The largest batch that fits, by halving; where not even 1 does, that is said.
static tide_status try_batch(adviser *a) {
    tide_advice_row best = {0};
    uint64_t good = 1, bad = a->q->batch, now_bytes = 0;
    bool fits;
    if (bad < 2) return TIDE_OK;
    tide_status st = try_one_batch(a, 1, &best, &now_bytes, &fits);
    while (st == TIDE_OK && fits && bad - good > 1) {
        const uint64_t middle = good + (bad - good) / 2;
        bool middle_fits;
        st = try_one_batch(a, middle, &best, &now_bytes, &middle_fits);
        if (middle_fits)
            good = middle;
        else
            bad = middle;
    }
    if (st == TIDE_OK && best.what != NULL) return add_row(a, best, now_bytes);
    tide_host_free(best.what);
    return st;
}

static tide_status try_program(adviser *a) {
    const tide_advice_question *q = a->q;
    if (q->remake == NULL) return TIDE_OK;
    size_t n_off = 0;
    for (int p = 0; p < TIDE_N_PASSES; p++) {
        if (p == TIDE_PASS_RECOMPUTE || !q->passes.off[p]) continue;
        TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_PASS, .pass = (tide_pass)p}));
        n_off++;
    }
    if (n_off > 1) TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_PASSES}));
    if (q->no_fuse) TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_FUSE}));
    if (q->no_qdq) TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_QDQ}));
    TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_MAP}));
    TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_THREADS}));
    TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_FOLD, .limit_bytes = FOLD_LIMIT_BYTES}));
    static const uint64_t aligns[] = {64, 16};
    for (size_t k = 0; k < sizeof aligns / sizeof aligns[0]; k++) {
        if (aligns[k] >= q->passes.align_bytes) continue;
        TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_ALIGN, .align_bytes = aligns[k]}));
    }
    static const double shares[] = {0.10, 0.25, 0.50};
    for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
        if (shares[k] <= q->passes.recompute_share) continue;
        TIDE_TRY(try_remake(a, &(tide_change){.kind = TIDE_CHANGE_RECOMPUTE, .recompute_share = shares[k]}));
    }
    TIDE_TRY(try_batch(a));
    return try_remake(a, &(tide_change){.kind = TIDE_CHANGE_EXTENTS});
}

// ---- changes to one tensor ----

static uint64_t half(uint64_t bytes, bool round_up) { return round_up ? bytes - bytes / 2 : bytes / 2; }

/// Its size at every profile point follows.
static void resize(const tide_lifetimes *lt, tide_lifetime *item, bool gone, bool round_up) {
    item->size_bytes = gone ? 0 : half(item->size_bytes, round_up);
    for (size_t k = 0; item->point_bytes != NULL && k < lt->n_points; k++)
        item->point_bytes[k] = gone ? 0 : half(item->point_bytes[k], round_up);
}

/// The tensor and all that lies in it, taking nothing or half. @return how many lie in it
static size_t shrink(tide_lifetimes *lt, uint32_t root, bool gone) {
    size_t n_inside = 0;
    for (uint32_t i = 0; i < lt->n; i++) {
        tide_lifetime *item = &lt->items[i];
        if (tide_lifetimes_root(lt, i, NULL) != root) continue;
        n_inside += i != root;
        // Half of a whole holds the halves of its parts: all are rounded down alike.
        resize(lt, item, gone, i == root);
        item->alias_offset_bytes = gone ? 0 : item->alias_offset_bytes / 2;
        for (uint32_t g = 0; g < item->n_gaps; g++) {
            item->gaps[g].lo_bytes = gone ? 0 : item->gaps[g].lo_bytes / 2;
            item->gaps[g].hi_bytes = gone ? 0 : item->gaps[g].hi_bytes / 2;
        }
    }
    return n_inside;
}

static tide_status try_tensor(adviser *a, uint32_t root, bool gone) {
    tide_lifetimes copy;
    TIDE_TRY(tide_lifetimes_copy(a->lt, &copy, a->err));
    const size_t n_inside = shrink(&copy, root, gone);
    char with[64] = "";
    if (n_inside > 0) snprintf(with, sizeof with, " and the %zu in it", n_inside);
    tide_text what = {0};
    if (gone)
        tide_text_addf(&what, "without '%s'%s", a->lt->items[root].name, with);
    else
        tide_text_addf(&what, "'%s'%s at half %s size (16-bit)", a->lt->items[root].name, with,
                       n_inside > 0 ? "their" : "its");
    const tide_change change = {.kind = gone ? TIDE_CHANGE_GONE : TIDE_CHANGE_HALF, .item = root};
    if (what.failed) {
        tide_text_deinit(&what);
        what.data = NULL;
    }
    const tide_status st = measure(a, &copy, &change, what.data);
    tide_lifetimes_deinit(&copy);
    return st;
}

/// Of the rows from `first` on the one to show: the smallest tensor that is enough, else the one that saves most.
static void keep_best(adviser *a, size_t first) {
    size_t best = first;
    for (size_t k = first; k < a->out->n; k++) {
        const tide_advice_row *x = &a->out->rows[k], *y = &a->out->rows[best];
        const uint64_t size = a->lt->items[x->change.item].size_bytes, other = a->lt->items[y->change.item].size_bytes;
        if (x->fits != y->fits ? x->fits : x->fits ? size < other : x->saves_bytes > y->saves_bytes) best = k;
    }
    for (size_t k = first; k < a->out->n; k++) {
        if (k != best) tide_host_free(a->out->rows[k].what);
    }
    if (first >= a->out->n) return;
    a->out->rows[first] = a->out->rows[best];
    a->out->n = first + 1;
}

static tide_status try_tensors(adviser *a, const tide_peaks *peaks, bool gone) {
    const size_t first = a->out->n;
    size_t left = a->lt->n > LARGE_TABLE ? MAX_TENSORS_LARGE : MAX_TENSORS;
    for (size_t b = 0; b < peaks->n; b++) {
        for (size_t k = 0; k < peaks->list[b].n && left > 0; k++) {
            const tide_peak_entry *e = &peaks->list[b].entries[k];
            // Scratch is what a kernel asks for: it has no narrower type.
            if (e->inside || (!gone && a->lt->items[e->item].role == TIDE_ROLE_SCRATCH)) continue;
            TIDE_TRY(try_tensor(a, e->item, gone));
            left--;
        }
    }
    keep_best(a, first);
    return TIDE_OK;
}

static tide_status try_weights(adviser *a) {
    tide_lifetimes copy;
    TIDE_TRY(tide_lifetimes_copy(a->lt, &copy, a->err));
    for (size_t i = 0; i < copy.n; i++) {
        if (copy.items[i].role == TIDE_ROLE_WEIGHT) resize(&copy, &copy.items[i], false, true);
    }
    copy.process.mapped_bytes = half(copy.process.mapped_bytes, true);
    copy.process.constants_bytes = half(copy.process.constants_bytes, true);
    const tide_status st = measure(a, &copy, &(tide_change){.kind = TIDE_CHANGE_WEIGHTS},
                                   tide_host_strdup("weights at half their size (16-bit)"));
    tide_lifetimes_deinit(&copy);
    return st;
}

/// The bound leaves room that no plan has used: a longer search may be enough.
static tide_status try_search(adviser *a) {
    const uint64_t proved = tide_need_bytes(a->lt, a->q->plan->proved_bytes);
    const uint64_t need = a->bound_bytes < proved ? proved : a->bound_bytes;
    if (need > a->q->budget_bytes) return TIDE_OK;
    const tide_advice_row row = {.change = {.kind = TIDE_CHANGE_SEARCH},
                                 .what = tide_host_strdup("search longer (--time-limit): a smaller plan may exist, "
                                                          "none was found"),
                                 .need_bytes = need};
    return add_row(a, row, a->out->need_bytes);
}

// ---- entry points ----

static int compare_rows(const void *a, const void *b) {
    const tide_advice_row *x = a, *y = b;
    if (x->fits != y->fits) return x->fits ? -1 : 1;
    if (x->fits && x->change.kind != y->change.kind) return x->change.kind < y->change.kind ? -1 : 1;
    if (x->fits && x->change.kind == TIDE_CHANGE_RECOMPUTE)
        return (x->change.recompute_share > y->change.recompute_share) -
               (x->change.recompute_share < y->change.recompute_share);
    if (x->fits && x->change.kind == TIDE_CHANGE_ALIGN) return x->change.align_bytes > y->change.align_bytes ? -1 : 1;
    if (x->saves_bytes != y->saves_bytes) return x->saves_bytes > y->saves_bytes ? -1 : 1;
    return strcmp(x->what, y->what);
}

/// Kernels' scratch among what is alive at the peaks.
static uint64_t scratch_at(const tide_peaks *peaks, const tide_lifetimes *lt) {
    uint64_t sum = 0;
    for (size_t b = 0; b < peaks->n; b++)
        for (size_t k = 0; k < peaks->list[b].n; k++)
            if (lt->items[peaks->list[b].entries[k].item].role == TIDE_ROLE_SCRATCH)
                sum = sum_of(sum, peaks->list[b].entries[k].bytes);
    return sum;
}

/// Which part of what it takes is the largest.
static void name_largest(adviser *a, const tide_peaks *peaks) {
    const tide_process_need need = tide_process_need_of(a->q->plan, 1);
    uint64_t scratch = scratch_at(peaks, a->lt);
    if (scratch > need.buffer_bytes) scratch = need.buffer_bytes;
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"weights", need.weights_bytes},
                 {"weights that stay in the file", need.mapped_bytes},
                 {"intermediate tensors", need.buffer_bytes - scratch},
                 {"scratch of kernels", scratch},
                 {"inputs and outputs", sum_of(need.inputs_bytes, need.outputs_bytes)},
                 {"the program", sum_of(need.program_bytes, need.own_bytes)},
                 // What folding takes beside the weights that stay.
                 {"constants while the model is loaded", need.load_bytes > need.run_bytes ? need.constants_bytes : 0}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].bytes <= a->out->largest_bytes) continue;
        a->out->largest = parts[i].name;
        a->out->largest_bytes = parts[i].bytes;
    }
}

static tide_status advise(adviser *a) {
    tide_peaks peaks;
    TIDE_TRY(bound(a->lt, &a->bound_bytes, a->err));
    a->bound_bytes = tide_need_bytes(a->lt, a->bound_bytes);
    TIDE_TRY(tide_peaks_find(a->lt, &peaks, a->err));
    name_largest(a, &peaks);
    tide_status st = try_search(a);
    if (st == TIDE_OK) st = try_program(a);
    if (st == TIDE_OK) st = try_tensors(a, &peaks, false);
    if (st == TIDE_OK) st = try_tensors(a, &peaks, true);
    if (st == TIDE_OK) st = try_weights(a);
    tide_peaks_deinit(&peaks);
    return st;
}

tide_status tide_advice_make(const tide_advice_question *q, tide_advice *out, tide_error *err) {
    *out =
        (tide_advice){.budget_bytes = q->budget_bytes,
                      .persistent_bytes = persistent_bytes(&q->plan->lifetimes),
                      .process_bytes = q->plan->lifetimes.process.program_bytes + q->plan->lifetimes.process.own_bytes};
    out->need_bytes = tide_need_bytes(&q->plan->lifetimes, q->plan->bytes);
    adviser a = {.q = q, .lt = &q->plan->lifetimes, .out = out, .err = err};
    const tide_status st = advise(&a);
    if (st != TIDE_OK) {
        tide_advice_deinit(out);
        return st;
    }
    if (out->n > 1) qsort(out->rows, out->n, sizeof *out->rows, compare_rows);
    return TIDE_OK;
}

void tide_advice_deinit(tide_advice *a) {
    for (size_t k = 0; k < a->n; k++) tide_host_free(a->rows[k].what);
    tide_host_free(a->rows);
    *a = (tide_advice){0};
}

// ---- in words ----

static void print_row(tide_grid *g, const tide_advice_row *row) {
    char need[24], saves[24];
    tide__grid_name(g, row->what);
    tide__grid_cell(g, "%s", tide_format_bytes(row->need_bytes, need, sizeof need));
    tide__grid_cell(g, "%s", tide_format_bytes(row->saves_bytes, saves, sizeof saves));
    tide__grid_cell(g, "%s", row->fits ? "fits" : row->change.kind == TIDE_CHANGE_SEARCH ? "may fit" : "not enough");
}

void tide_advice_print(const tide_advice *a, tide_text *out) {
    char need[24], budget[24], rest[24];
    const uint64_t fixed = sum_of(a->persistent_bytes, a->process_bytes);
    tide_text_addf(out, "\nIt needs %s of %s; %s of it are %sweights, inputs and outputs, which no plan changes.\n",
                   tide_format_bytes(a->need_bytes, need, sizeof need),
                   tide_format_bytes(a->budget_bytes, budget, sizeof budget),
                   tide_format_bytes(fixed, rest, sizeof rest), a->process_bytes > 0 ? "the program, " : "");
    if (a->largest != NULL)
        tide_text_addf(out, "The largest part: %s, %s.\n", a->largest,
                       tide_format_bytes(a->largest_bytes, need, sizeof need));
    if (fixed > a->budget_bytes)
        tide_text_add(out, "These alone exceed the budget: no other plan of them can make it fit.\n");
    if (a->n == 0) {
        tide_text_add(out, "No single change was found that saves anything.\n");
        return;
    }
    tide_text_add(out, a->rows[0].fits ? "The smallest change that makes it fit comes first:\n"
                                       : "No single change that was tried makes it fit; those that save most:\n");
    static const char *const heads[] = {"change", "needs", "saves", ""};
    tide_grid g = {.columns = "lrrl"};
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) tide__grid_cell(&g, "%s", heads[k]);
    for (size_t k = 0; k < a->n; k++) print_row(&g, &a->rows[k]);
    tide__grid_finish(&g, out);
}
