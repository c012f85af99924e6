// SPDX-License-Identifier: MIT
//
// report: the boxed report of seed 23 (S23-16): pools with their tensors, then what was saved; for an offset plan the
// tensors by their place. KB are 1024 bytes, as in the seed.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/grid.h"
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

/// A planned tensor and where it is listed.
typedef struct entry {
    uint64_t group; // pool, or offset
    const tide_lifetime *item;
    size_t i;
} entry;

/// By group, then in the order in which they are born.
static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->item->begin_step != y->item->begin_step) return x->item->begin_step < y->item->begin_step ? -1 : 1;
    return strcmp(x->item->name, y->item->name);
}

static size_t list_entries(const tide_memory_plan *plan, entry *entries) {
    size_t n = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (item->persistent) continue;
        if (plan->form == TIDE_PLAN_POOLS && plan->pools[i] == TIDE_NO_POOL) continue; // empty: in no pool
        const uint64_t group = plan->form == TIDE_PLAN_POOLS ? (uint64_t)plan->pools[i] : plan->offsets[i];
        entries[n++] = (entry){group, item, i};
    }
    qsort(entries, n, sizeof *entries, compare_entries);
    return n;
}

static void add_pools(const tide_memory_plan *plan, const entry *entries, size_t n, tide_text *out) {
    tide_text_addf(out, "Memory Pools: %zu\n%s", plan->n_pools, rule);
    size_t k = 0;
    for (size_t p = 0; p < plan->n_pools; p++) {
        char kb[32];
        tide_text_addf(out, "Pool %zu: %s KB\n", p, tide__format_kb(plan->pool_list[p].size_bytes, kb, sizeof kb));
        tide_text_addf(out, "  Tensors (%zu):\n", plan->pool_list[p].n_members);
        for (; k < n && entries[k].group == p; k++) {
            tide_text_add(out, "    - ");
            tide__add_name(out, entries[k].item->name);
            tide_text_add(out, "\n");
        }
        tide_text_add(out, "\n");
    }
}

static void add_offsets(const tide_memory_plan *plan, const entry *entries, size_t n, tide_text *out) {
    char kb[32];
    tide_text_addf(out, "Memory Buffer: %s KB\n%s", tide__format_kb(plan->bytes, kb, sizeof kb), rule);
    tide_text_addf(out, "  Tensors (%zu):\n", n);
    for (size_t k = 0; k < n; k++) {
        const tide_lifetime *item = entries[k].item;
        tide_text_add(out, "    - ");
        tide__add_name(out, item->name);
        tide_text_addf(out, ": offset %" PRIu64 ", %s KB, steps %" PRId64 " to %" PRId64 "\n", entries[k].group,
                       tide__format_kb(tide_lifetime_aligned_bytes(item), kb, sizeof kb), item->begin_step,
                       item->end_step - 1);
    }
    tide_text_add(out, "\n");
}

static void add_totals(const tide_memory_plan *plan, tide_text *out) {
    char kb[32];
    tide_text_add(out, rule);
    tide_text_addf(out, "Original Memory: %s KB\n", tide__format_kb(plan->naive_bytes, kb, sizeof kb));
    tide_text_addf(out, "Optimized Memory: %s KB\n", tide__format_kb(plan->bytes, kb, sizeof kb));
    tide_text_addf(out, "Memory Saving: %s%%\n",
                   tide__format_fixed(100 * tide_memory_plan_saving(plan), 2, kb, sizeof kb));
    tide_text_addf(out, "Lower Bound: %s KB", tide__format_kb(plan->lower_bound_bytes, kb, sizeof kb));
    if (plan->proven) {
        tide_text_add(out, " (reached: no plan is smaller)\n");
        return;
    }
    const double gap = (double)plan->bytes / (double)plan->lower_bound_bytes - 1;
    tide_text_addf(out, " (gap %s%%)\n", tide__format_fixed(100 * gap, 2, kb, sizeof kb));
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
    tide_host_free(entries);
}
