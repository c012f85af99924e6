// SPDX-License-Identifier: MIT
//
// Advice as text. See advice.h.
#include "planner/advice.h"
#include "planner/grid.h"

static void add_row(tide_grid *g, const tide_advice_row *row) {
    char need[24], saves[24];
    tide__grid_name(g, row->what);
    tide__grid_cell(g, "%s", tide_format_bytes(row->need_bytes, need, sizeof need));
    tide__grid_cell(g, "%s", tide_format_bytes(row->saves_bytes, saves, sizeof saves));
    tide__grid_cell(g, "%s", row->fits ? "fits" : row->change.kind == TIDE_CHANGE_SEARCH ? "may fit" : "not enough");
}

void tide_advice_print(const tide_advice *a, tide_text *out) {
    char need[24], budget[24], rest[24];
    tide_text_addf(out, "\nIt needs %s of %s; %s of it are weights, inputs and outputs, which no plan changes.\n",
                   tide_format_bytes(a->need_bytes, need, sizeof need),
                   tide_format_bytes(a->budget_bytes, budget, sizeof budget),
                   tide_format_bytes(a->persistent_bytes, rest, sizeof rest));
    if (a->persistent_bytes > a->budget_bytes)
        tide_text_add(out, "These alone exceed the budget: no change to what is planned can make it fit.\n");
    if (a->n == 0) {
        tide_text_add(out, "No single change was found that saves anything.\n");
        return;
    }
    tide_text_add(out, a->rows[0].fits ? "The smallest change that makes it fit comes first:\n"
                                       : "No single change that was tried makes it fit; those that save most:\n");
    static const char *const heads[] = {"change", "needs", "saves", ""};
    tide_grid g = {.columns = "lrrl"};
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) tide__grid_cell(&g, "%s", heads[k]);
    for (size_t k = 0; k < a->n; k++) add_row(&g, &a->rows[k]);
    tide__grid_finish(&g, out);
}
