// SPDX-License-Identifier: MIT
//
// table: plans of the same lifetimes side by side, for `plan --all`. The gap is to what is proved: `proven` says that
// no plan is smaller.
#include <inttypes.h>

#include "planner/grid.h"
#include "planner/plan_json.h"
#include "planner/planner.h"

static const char columns[] = "llrrrrrl";

static void add_row(tide_grid *g, const tide_memory_plan *p) {
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
    for (size_t i = 0; i < n; i++) add_row(&g, plans[i]);
    for (size_t k = 0; extras != NULL && k < extras->n_refused; k++) add_refusal(&g, &extras->refused[k]);
    tide__grid_finish(&g, out);
}

void tide_plan_table(const tide_memory_plan *const *plans, size_t n, tide_text *out) {
    tide_plan_table_with(plans, n, NULL, out);
}
