// SPDX-License-Identifier: MIT
//
// diff as text for a terminal:
//
//     A  lenet5.json          lenet5: planned, search
//     B  lenet5-nofuse.json   lenet5: planned, search
//
//                            A           B     Change
//     held         51.00 KiB   71.00 KiB  +20.00 KiB (+39.2 %)     at the peak, in conv1 / relu1
//     …
//     by operator  A  B  Change  ####     sums to +20.00 KiB
//     by kind
//     tensors      name  operator  what  A  B  change of what is held
#include "cli/diff_view.h"

#include <inttypes.h>
#include <string.h>

#include "cli/diff_words.h"
#include "cli/table.h"

enum { BAR = 16 };

bool cli_diff_differs(const tide_diff *d) {
    if (d->a_bytes != d->b_bytes || d->a_peak_bytes != d->b_peak_bytes) return true;
    if (d->n_added + d->n_removed + d->n_resized + d->n_moved + d->n_retimed > 0) return true;
    return cli_diff_n_changed(d->by_owner, d->n_by_owner) > 0; // as much, of others
}

// ---- head ----

static void print_sides(const cli_diff_view *v, FILE *to) {
    static const cli_column columns[] = {
        {"", false, false}, {"File", false, true}, {"What", false, true}, {"When", false, true}};
    const cli_diff_side *sides[] = {&v->a, &v->b};
    cli_table t = {.columns = columns, .n_columns = 4};
    for (int i = 0; i < 2; i++) {
        char at[160];
        cli_table_add(&t, i == 0 ? "A" : "B");
        cli_table_add(&t, sides[i]->path);
        cli_table_add(&t, sides[i]->facts->title);
        cli_table_add(&t, cli_diff_moment(sides[i], at, sizeof at));
    }
    cli_table_print(&t, "", to);
}

static void add_figure(cli_table *t, const char *name, uint64_t a, uint64_t b) {
    char change[64];
    cli_table_add(t, name);
    cli_table_add_bytes(t, a);
    cli_table_add_bytes(t, b);
    cli_table_add(t, cli_diff_change(a, b, true, change, sizeof change));
}

static void print_figures(const cli_diff_view *v, FILE *to) {
    static const cli_column columns[] = {
        {"", false, false}, {"A", true, false}, {"B", true, false}, {"Change", true, false}};
    cli_table t = {.columns = columns, .n_columns = 4};
    cli_diff_figure figures[CLI_DIFF_MAX_FIGURES];
    const size_t n = cli_diff_figures(v, figures);
    for (size_t i = 0; i < n; i++) add_figure(&t, figures[i].title, figures[i].a, figures[i].b);
    fputc('\n', to);
    cli_table_print(&t, "", to);
}

// ---- waterfalls ----

static void add_bar(cli_table *t, uint64_t change, uint64_t largest, bool grows) {
    char bar[BAR + 1];
    size_t n = largest == 0 ? 0 : (size_t)((double)change / (double)largest * BAR + 0.5);
    if (n == 0 && change > 0) n = 1;
    memset(bar, grows ? '+' : '-', n);
    bar[n] = '\0';
    cli_table_add(t, bar);
}

static void print_waterfall(const cli_diff_view *v, const char *title, const tide_diff_step *list, size_t n, FILE *to) {
    static const cli_column columns[] = {
        {"", false, true}, {"A", true, false}, {"B", true, false}, {"Change", true, false}, {"", false, false}};
    cli_table t = {.columns = columns, .n_columns = 5};
    const size_t n_changed = cli_diff_n_changed(list, n);
    size_t shown = v->max_rows == 0 || n_changed <= v->max_rows ? n_changed : v->max_rows;
    char change[64];
    if (n_changed == 0) return;
    fprintf(to, "\n%s, in sum %s:\n", title,
            cli_diff_change(v->diff->a_bytes, v->diff->b_bytes, false, change, sizeof change));
    const uint64_t largest = cli_diff_abs(list[0].a_bytes, list[0].b_bytes);
    for (size_t i = 0; i < shown; i++) {
        char name[600];
        cli_table_add(&t, cli_diff_key(&list[i], name, sizeof name));
        cli_table_add_bytes(&t, list[i].a_bytes);
        cli_table_add_bytes(&t, list[i].b_bytes);
        cli_table_add(&t, cli_diff_change(list[i].a_bytes, list[i].b_bytes, false, change, sizeof change));
        add_bar(&t, cli_diff_abs(list[i].a_bytes, list[i].b_bytes), largest, list[i].b_bytes > list[i].a_bytes);
    }
    const cli_diff_rest rest = cli_diff_sum(list + shown, n - shown);
    if (rest.n_changed > 0) {
        char name[64];
        snprintf(name, sizeof name, "(%zu others)", rest.n_changed);
        add_figure(&t, name, rest.a_bytes, rest.b_bytes);
        cli_table_add(&t, "");
    }
    cli_table_print(&t, "  ", to);
}

// ---- items ----

static void print_counts(const cli_diff_view *v, FILE *to) {
    char counts[160];
    fprintf(to, "\n%s\n", cli_diff_counts(v, counts, sizeof counts));
}

static void print_rows(const cli_diff_view *v, FILE *to) {
    static const cli_column columns[] = {{"", false, true},  {"Operator", false, true}, {"What", false, false},
                                         {"A", true, false}, {"B", true, false},        {"Held", true, false}};
    const tide_diff *d = v->diff;
    cli_table t = {.columns = columns, .n_columns = 6};
    size_t shown = 0, n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const tide_diff_row *r = &d->rows[i];
        char what[80], change[64];
        if (!cli_diff_row_differs(r)) continue;
        n++;
        if (v->max_rows != 0 && shown == v->max_rows) continue;
        shown++;
        cli_table_add(&t, r->name[0] != '\0' ? r->name : "(no name)");
        cli_table_add(&t, r->owner);
        cli_table_add(&t, cli_diff_what(v, r, what, sizeof what));
        if (r->what & TIDE_DIFF_ADDED)
            cli_table_add(&t, "");
        else
            cli_table_add_bytes(&t, r->a_bytes);
        if (r->what & TIDE_DIFF_REMOVED)
            cli_table_add(&t, "");
        else
            cli_table_add_bytes(&t, r->b_bytes);
        cli_table_add(&t, r->a_at_bytes == r->b_at_bytes
                              ? ""
                              : cli_diff_change(r->a_at_bytes, r->b_at_bytes, false, change, sizeof change));
    }
    if (n == 0) return;
    cli_table_print(&t, "  ", to);
    if (n > shown) fprintf(to, "  … and %zu more: --rows %zu\n", n - shown, n);
}

void cli_diff_text(const cli_diff_view *v, FILE *to) {
    print_sides(v, to);
    print_figures(v, to);
    if (!cli_diff_differs(v->diff)) {
        fputs("\nNothing differs.\n", to);
        return;
    }
    print_waterfall(v, "By operator", v->diff->by_owner, v->diff->n_by_owner, to);
    print_waterfall(v, "By kind", v->diff->by_kind, v->diff->n_by_kind, to);
    print_counts(v, to);
    print_rows(v, to);
}
