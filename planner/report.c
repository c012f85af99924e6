// SPDX-License-Identifier: MIT
//
// report: the boxed report of seed 23 (S23-16): pools with their tensors, then what was saved; for an offset plan the
// tensors by their place, each buffer for itself. Below it what the bound is proved by, the buffers where there are
// several, and what each pass gained. What the seed calls KB are
// KiB here, as everywhere in the house.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/grid.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/planner.h"

enum { BOX_INNER = 68 };
static const char rule[] = "----------------------------------------\n";

static void add_bar(tide_text *out, const char *left, const char *right) {
    tide_text_add(out, left);
    for (int i = 0; i < BOX_INNER; i++) tide_text_add(out, "═");
    tide_text_add(out, right);
    tide_text_add(out, "\n");
}

static void add_box(tide_text *out) {
    static const char title[] = "Static Memory Planning Result";
    const int pad = BOX_INNER - (int)strlen(title);
    add_bar(out, "╔", "╗");
    tide_text_addf(out, "║%*s%s%*s║\n", pad / 2, "", title, pad - pad / 2, "");
    add_bar(out, "╚", "╝");
    tide_text_add(out, "\n");
}

/// A list is read by people: what is longer is cut, `--dump-stage plan` has all of it.
enum { MAX_LISTED = 200 };

/// A planned tensor and where it is listed.
typedef struct entry {
    uint64_t list, place; // buffer and offset; of a pool plan the pool and in which order the tensor comes to it
    uint32_t root;        // an alias stands behind what it lies in
    const tide_lifetime *item;
} entry;

/// By list and place, then in the order in which they are born.
static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->item->begin_step != y->item->begin_step) return x->item->begin_step < y->item->begin_step ? -1 : 1;
    return strcmp(x->item->name, y->item->name);
}

static size_t buffer_of(const tide_memory_plan *plan, const tide_lifetime *item) {
    size_t b = 0;
    while (b + 1 < plan->n_buffers &&
           (plan->buffers[b].kind != item->kind || !tide_device_equal(plan->buffers[b].device, item->device)))
        b++;
    return b;
}

static int compare_pooled(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    const bool x_inside = x->item->alias != TIDE_ALIAS_NONE, y_inside = y->item->alias != TIDE_ALIAS_NONE;
    if (x_inside != y_inside) return x_inside ? 1 : -1;
    return compare_entries(a, b);
}

static size_t list_entries(const tide_memory_plan *plan, entry *entries) {
    const tide_lifetimes *lt = &plan->lifetimes;
    const bool is_pools = plan->form == TIDE_PLAN_POOLS;
    size_t n = 0;
    for (uint32_t i = 0; i < lt->n; i++) {
        const tide_lifetime *item = &lt->items[i];
        const uint32_t root = tide_lifetimes_root(lt, i, NULL);
        if (item->persistent) continue;
        if (is_pools && plan->pools[root] == TIDE_NO_POOL) continue; // empty: in no pool
        entries[n++] = (entry){.list = is_pools ? (uint64_t)plan->pools[root] : buffer_of(plan, &lt->items[root]),
                               .place = is_pools ? (uint64_t)lt->items[root].begin_step : plan->offsets[i],
                               .root = root,
                               .item = item};
    }
    qsort(entries, n, sizeof *entries, is_pools ? compare_pooled : compare_entries);
    return n;
}

static void add_buffer_name(const tide_plan_buffer *buffer, tide_text *out) {
    char device[16];
    tide_text_addf(out, "%s %s", tide_device_format(buffer->device, device, sizeof device),
                   tide_memory_kind_name(buffer->kind));
}

static void add_alias(const tide_lifetimes *lt, const tide_lifetime *item, tide_text *out) {
    if (item->alias == TIDE_ALIAS_NONE) return;
    tide_text_addf(out, ", %s in ", tide_alias_kind_name(item->alias));
    tide__add_name(out, lt->items[item->alias_of].name);
}

static void add_entry(const tide_memory_plan *plan, const entry *e, tide_text *out) {
    char kb[32];
    tide_text_add(out, "    - ");
    tide__add_name(out, e->item->name);
    if (plan->form == TIDE_PLAN_OFFSETS)
        tide_text_addf(out, ": offset %" PRIu64 ", %s KiB, steps %" PRId64 " to %" PRId64, e->place,
                       tide__format_kb(tide_lifetime_aligned_bytes(e->item), kb, sizeof kb), e->item->begin_step,
                       e->item->end_step - 1);
    add_alias(&plan->lifetimes, e->item, out);
    tide_text_add(out, "\n");
}

/// The entries of `list`, of which `entries` are the next; *n_left of all are still to come. @return those behind it
static const entry *add_list(const tide_memory_plan *plan, const entry *entries, size_t *n_left, uint64_t list,
                             tide_text *out) {
    size_t n = 0;
    while (n < *n_left && entries[n].list == list) n++;
    tide_text_addf(out, "  Tensors (%zu):\n", n);
    for (size_t k = 0; k < n && k < MAX_LISTED; k++) add_entry(plan, &entries[k], out);
    if (n > MAX_LISTED) tide_text_addf(out, "    … and %zu more (--dump-stage plan lists all)\n", n - MAX_LISTED);
    tide_text_add(out, "\n");
    *n_left -= n;
    return entries + n;
}

static void add_pools(const tide_memory_plan *plan, const entry *entries, size_t n, tide_text *out) {
    tide_text_addf(out, "Memory Pools: %zu\n%s", plan->n_pools, rule);
    for (size_t p = 0; p < plan->n_pools; p++) {
        const tide_plan_pool *pool = &plan->pool_list[p];
        char kb[32];
        tide_text_addf(out, "Pool %zu: %s KiB", p, tide__format_kb(pool->size_bytes, kb, sizeof kb));
        if (plan->n_buffers > 1) {
            tide_text_add(out, " of ");
            add_buffer_name(&plan->buffers[pool->buffer], out);
        }
        tide_text_add(out, "\n");
        entries = add_list(plan, entries, &n, p, out);
    }
}

static void add_offsets(const tide_memory_plan *plan, const entry *entries, size_t n, tide_text *out) {
    char kb[32];
    tide__format_kb(plan->bytes, kb, sizeof kb);
    if (plan->n_buffers <= 1) {
        tide_text_addf(out, "Memory Buffer: %s KiB\n%s", kb, rule);
        add_list(plan, entries, &n, 0, out);
        return;
    }
    tide_text_addf(out, "Memory Buffers: %zu, %s KiB\n%s", plan->n_buffers, kb, rule);
    for (size_t b = 0; b < plan->n_buffers; b++) {
        tide_text_add(out, "Buffer ");
        add_buffer_name(&plan->buffers[b], out);
        tide_text_addf(out, ": %s KiB\n", tide__format_kb(plan->buffers[b].bytes, kb, sizeof kb));
        entries = add_list(plan, entries, &n, b, out);
    }
}

/// What the plan takes that came with the list, and how much less this one does.
static void add_given(const tide_memory_plan *plan, tide_text *out) {
    const uint64_t given = plan->lifetimes.given_plan_bytes;
    char kb[32], share[32];
    if (given == 0) return;
    const double change = 100 * ((double)plan->bytes / (double)given - 1);
    tide_text_addf(out, "Plan in the File: %s KiB (this one: %s%s%%)\n", tide__format_kb(given, kb, sizeof kb),
                   change > 0 ? "+" : "", tide__format_fixed(change, 2, share, sizeof share));
}

static void add_bounds(const tide_memory_plan *plan, tide_text *out) {
    char kb[32];
    tide_text_addf(out, "Lower Bound: %s KiB", tide__format_kb(plan->lower_bound_bytes, kb, sizeof kb));
    if (plan->bytes == plan->lower_bound_bytes) {
        tide_text_add(out, " (reached: no plan is smaller)\n");
        return;
    }
    const double gap = (double)plan->bytes / (double)plan->lower_bound_bytes - 1;
    tide_text_addf(out, " (gap %s%%)\n", tide__format_fixed(100 * gap, 2, kb, sizeof kb));
    if (plan->proved_bytes == plan->lower_bound_bytes) return;
    tide_text_addf(out, "Proved Bound: %s KiB, by %s (", tide__format_kb(plan->proved_bytes, kb, sizeof kb),
                   tide_proof_name(tide__plan_proof(plan)));
    if (plan->proven) {
        tide_text_add(out, "reached: no plan is smaller)\n");
    } else {
        const double left = (double)plan->bytes / (double)plan->proved_bytes - 1;
        tide_text_addf(out, "gap %s%%)\n", tide__format_fixed(100 * left, 2, kb, sizeof kb));
    }
}

static void add_totals(const tide_memory_plan *plan, tide_text *out) {
    char kb[32];
    tide_text_add(out, rule);
    tide_text_addf(out, "Original Memory: %s KiB\n",
                   tide__format_kb(tide_memory_plan_original_bytes(plan), kb, sizeof kb));
    tide_text_addf(out, "Optimized Memory: %s KiB\n", tide__format_kb(plan->bytes, kb, sizeof kb));
    tide_text_addf(out, "Memory Saving: %s%%\n",
                   tide__format_fixed(100 * tide_memory_plan_saving(plan), 2, kb, sizeof kb));
    add_bounds(plan, out);
    add_given(plan, out);
}

static void add_buffers(const tide_memory_plan *plan, tide_text *out) {
    for (size_t b = 0; b < plan->n_buffers && plan->n_buffers > 1; b++) {
        const tide_plan_buffer *buffer = &plan->buffers[b];
        char kb[32], bound[32];
        tide_text_add(out, "Buffer ");
        add_buffer_name(buffer, out);
        tide_text_addf(out, ": %s KiB (lower bound %s KiB)\n", tide__format_kb(buffer->bytes, kb, sizeof kb),
                       tide__format_kb(buffer->lower_bound_bytes, bound, sizeof bound));
    }
}

/// What has no place here: "Sized while running, on top of this: 3 tensors: y, z, …"
static void add_dynamic(const tide_lifetimes *lt, tide_text *out) {
    enum { MOST = 8 };
    if (lt->n_dynamic == 0) return;
    tide_text_addf(out, "Sized while running, on top of this: %zu tensor%s: ", lt->n_dynamic,
                   lt->n_dynamic == 1 ? "" : "s");
    for (size_t i = 0; i < lt->n_dynamic && i < MOST; i++) {
        if (i > 0) tide_text_add(out, ", ");
        tide__add_name(out, lt->dynamic[i]);
    }
    if (lt->n_dynamic > MOST) tide_text_addf(out, " and %zu more", lt->n_dynamic - MOST);
    tide_text_add(out, "\n");
}

/// "Bodies: 3, which a run may leave out or go through again: then of If_0 (steps 2 to 46), …"
static void add_regions(const tide_lifetimes *lt, tide_text *out) {
    enum { MOST = 6 };
    if (lt->n_regions == 0) return;
    tide_text_addf(out, "Bodies: %zu, which a run may leave out or go through again: ", lt->n_regions);
    for (size_t i = 0; i < lt->n_regions && i < MOST; i++) {
        const tide_plan_region *r = &lt->regions[i];
        tide_text_addf(out, "%s%s of ", i > 0 ? ", " : "", tide_plan_region_name(r));
        tide__add_name(out, (uint64_t)r->open_step < lt->n_step_names ? lt->step_names[r->open_step] : "a step");
        tide_text_addf(out, " (steps %" PRId64 " to %" PRId64 ")", r->begin_step, r->end_step - 1);
    }
    if (lt->n_regions > MOST) tide_text_addf(out, " and %zu more", lt->n_regions - MOST);
    tide_text_add(out, "\n");
}

void tide_plan_report(const tide_memory_plan *plan, tide_text *out) {
    entry *entries = tide_host_calloc(plan->lifetimes.n, sizeof *entries);
    if (entries == NULL) {
        out->failed = true;
        return;
    }
    const size_t n = list_entries(plan, entries);
    add_box(out);
    if (plan->form == TIDE_PLAN_POOLS) {
        add_pools(plan, entries, n, out);
    } else {
        add_offsets(plan, entries, n, out);
    }
    add_totals(plan, out);
    add_buffers(plan, out);
    add_dynamic(&plan->lifetimes, out);
    add_regions(&plan->lifetimes, out);
    tide_host_free(entries);
}

void tide_plan_verdict(const tide_memory_plan *plan, tide_text *out) {
    char kib[32];
    add_box(out);
    tide__format_kb(plan->bytes, kib, sizeof kib);
    if (plan->form == TIDE_PLAN_POOLS)
        tide_text_addf(out, "Memory Pools: %zu, %s KiB\n", plan->n_pools, kib);
    else if (plan->n_buffers <= 1)
        tide_text_addf(out, "Memory Buffer: %s KiB\n", kib);
    else
        tide_text_addf(out, "Memory Buffers: %zu, %s KiB\n", plan->n_buffers, kib);
    add_totals(plan, out);
    add_buffers(plan, out);
    add_dynamic(&plan->lifetimes, out);
    add_regions(&plan->lifetimes, out);
}

// ---- passes ----

/// What of the allowance was used, and why no more.
static void add_recompute(const tide_pass_report *r, tide_grid *g) {
    char used[32], allowed[32];
    tide__format_fixed(100 * r->extra_work / r->work, 2, used, sizeof used);
    tide__format_fixed(100 * r->allowed_share, 2, allowed, sizeof allowed);
    const char *why = r->recompute_is_cut ? "; its search ended at its limit of steps" : "";
    const size_t n = r->gains[TIDE_PASS_RECOMPUTE].n;
    if (n == 0)
        tide__grid_cell(g, "nothing lowers the peak: %s%% of work allowed, none used%s", allowed, why);
    else
        tide__grid_cell(g, "nodes run twice: %zu, +%s%% work of %s%% allowed%s", n, used, allowed, why);
}

static void add_gain(const tide_pass_report *r, tide_pass pass, tide_grid *g) {
    const tide_pass_gain *gain = &r->gains[pass];
    static const char *const what[TIDE_N_PASSES] = {
        [TIDE_PASS_VIEWS] = "tensors", [TIDE_PASS_SLICES] = "tensors",    [TIDE_PASS_IN_PLACE] = "tensors",
        [TIDE_PASS_PARTS] = "tensors", [TIDE_PASS_ORDER] = "steps moved", [TIDE_PASS_RECOMPUTE] = "nodes run twice"};
    char before[24], after[24], share[32];
    tide__grid_cell(g, "%s", tide_pass_name(pass));
    tide__grid_cell(g, "%s", tide_format_bytes(gain->before_bytes, before, sizeof before));
    tide__grid_cell(g, "%s", tide_format_bytes(gain->after_bytes, after, sizeof after));
    const double saved = gain->before_bytes > 0 ? 1 - (double)gain->after_bytes / (double)gain->before_bytes : 0;
    tide__grid_cell(g, "%s%%", tide__format_fixed(-100 * saved, 2, share, sizeof share));
    if (pass == TIDE_PASS_RECOMPUTE && r->work > 0)
        add_recompute(r, g);
    else
        tide__grid_cell(g, "%s: %zu", what[pass], gain->n);
}

static void add_quantised(const tide_quantise_stats *q, tide_text *out) {
    char before[24], after[24], saved[24];
    if (q->n_nodes == 0) return;
    tide_text_addf(
        out,
        "\nQuantised tensors: read and written by %zu operators, which makes %s of what steps write instead of "
        "%s, and weights %s smaller; QuantizeLinear and DequantizeLinear that are left: %zu\n",
        q->n_operators, tide_format_bytes(q->bytes_after, after, sizeof after),
        tide_format_bytes(q->bytes_before, before, sizeof before),
        tide_format_bytes(q->weights_saved, saved, sizeof saved), q->n_left);
}

void tide_pass_report_print(const tide_pass_report *report, tide_text *out) {
    static const char *const heads[] = {"pass", "bound before", "after", "", ""};
    tide_grid g = {.columns = "lrrrl"};
    bool any = false;
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) tide__grid_cell(&g, "%s", heads[k]);
    for (int p = 0; p < TIDE_N_PASSES; p++) {
        if (!report->gains[p].ran) continue;
        any = true;
        add_gain(report, (tide_pass)p, &g);
    }
    tide_text rows = {0};
    tide__grid_finish(&g, &rows);
    if (rows.failed) out->failed = true;
    char given[24], final[24];
    if (any)
        tide_text_addf(out, "\nPasses: lower bound %s -> %s\n%s",
                       tide_format_bytes(report->given_bytes, given, sizeof given),
                       tide_format_bytes(report->final_bytes, final, sizeof final), tide_text_str(&rows));
    tide_text_deinit(&rows);
    if (report->allowed_share > 0 && report->has_bodies)
        tide_text_add(out, "Nothing is made twice: the model has bodies of If, Loop or Scan\n");
    add_quantised(&report->quantised, out);
}

// ---- plans side by side, for `plan --all` ----
//
// The gap is to what is proved: `proven` says that no plan is smaller.

static const char columns[] = "llrrrrrl";

static void add_plan_row(tide_grid *g, const tide_memory_plan *p) {
    char buf[32];
    tide__grid_name(g, p->strategy);
    tide__grid_cell(g, "%s", p->form == TIDE_PLAN_POOLS ? "pools" : "offsets");
    tide__grid_cell(g, "%" PRIu64, p->bytes);
    if (p->proven) {
        tide__grid_cell(g, "proven");
    } else {
        const double gap = (double)p->bytes / (double)p->proved_bytes - 1;
        tide__grid_cell(g, "+%s%%", tide__format_fixed(100 * gap, 2, buf, sizeof buf));
    }
    tide__grid_cell(g, "%s%%", tide__format_fixed(100 * tide_memory_plan_saving(p), 2, buf, sizeof buf));
    if (p->form == TIDE_PLAN_POOLS) {
        tide__grid_cell(g, "%zu", p->n_pools);
    } else {
        tide__grid_cell(g, "-");
    }
    tide__grid_cell(g, "%s ms", tide__format_fixed((double)p->time_ns / 1e6, 3, buf, sizeof buf));
    tide__grid_cell(g, "%s", "");
}

static void add_refusal(tide_grid *g, const tide_plan_refusal *r) {
    tide__grid_name(g, r->strategy);
    for (int k = 0; k < 6; k++) tide__grid_cell(g, "-");
    tide__grid_name(g, r->why);
}

void tide_plan_table_with(const tide_memory_plan *const *plans, size_t n, const tide_plan_extras *extras,
                          tide_text *out) {
    static const char *const heads[] = {"strategy", "form", "bytes", "gap", "saving", "pools", "time", ""};
    tide_grid g = {.columns = columns};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) tide__grid_cell(&g, "%s", heads[i]);
    for (size_t i = 0; i < n; i++) add_plan_row(&g, plans[i]);
    for (size_t k = 0; extras != NULL && k < extras->n_refused; k++) add_refusal(&g, &extras->refused[k]);
    tide__grid_finish(&g, out);
    if (n > 0 && plans[0]->lifetimes.given_plan_bytes > 0)
        tide_text_addf(out, "\nThe plan in the file takes %" PRIu64 " bytes.\n", plans[0]->lifetimes.given_plan_bytes);
}

void tide_plan_table(const tide_memory_plan *const *plans, size_t n, tide_text *out) {
    tide_plan_table_with(plans, n, NULL, out);
}
