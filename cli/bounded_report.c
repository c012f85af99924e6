// SPDX-License-Identifier: MIT
//
// What came out of bounded tensors. See bounded_report.h.
//
//     sized while running     at most                  last              most     used
//     boxes                   [300x6]   7.03 KiB     [12x6]   288 B    576 B    8.0 %
#include "cli/bounded_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"

enum { MOST_ROWS = 12 };

static tide_status fill(cli_bounded_list *list, const tide_context_bounded *of, size_t n, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&list->items, n, err, "for %zu tensors", n));
    for (size_t i = 0; i < n; i++) {
        list->items[i].facts = of[i];
        list->items[i].name = tide_host_strdup(of[i].name);
        list->n = i + 1;
        if (list->items[i].name == NULL) return TIDE_NO_MEMORY(err, "for %zu tensors", n);
        list->items[i].facts.name = list->items[i].name;
    }
    return TIDE_OK;
}

static void merge(tide_context_bounded *into, const tide_context_bounded *more) {
    if (more->n_runs == 0) return;
    if (into->n_runs == 0 || more->least_bytes < into->least_bytes) into->least_bytes = more->least_bytes;
    if (more->most_bytes > into->most_bytes) into->most_bytes = more->most_bytes;
    into->last = more->last;
    into->last_bytes = more->last_bytes;
    into->n_runs += more->n_runs;
}

tide_status cli_bounded_add(cli_bounded_list *list, const tide_context *c, tide_error *err) {
    const tide_context_bounded *of;
    const size_t n = tide_context_list_bounded(c, &of);
    if (n == 0) return TIDE_OK;
    if (list->n == 0) {
        const tide_status st = fill(list, of, n, err);
        if (st != TIDE_OK) cli_bounded_deinit(list);
        return st;
    }
    // Of another size some may have one size there, and are not in its list.
    for (size_t i = 0, k = 0; i < n; i++) {
        while (k < list->n && strcmp(list->items[k].name, of[i].name) != 0) k++;
        if (k == list->n)
            k = 0;
        else
            merge(&list->items[k].facts, &of[i]);
    }
    return TIDE_OK;
}

void cli_bounded_deinit(cli_bounded_list *list) {
    for (size_t i = 0; i < list->n; i++) tide_host_free(list->items[i].name);
    tide_host_free(list->items);
    *list = (cli_bounded_list){0};
}

static const char *bound_text(const tide_context_bounded *b, char *buf, size_t buf_bytes) {
    if (!b->is_count) return tide_shape_format(&b->bound, buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRId64 " elements", b->bound.dims[0]);
    return buf;
}

static double share_of(const tide_context_bounded *b) {
    return b->bound_bytes > 0 ? (double)b->most_bytes / (double)b->bound_bytes : 0;
}

static void print_one(const cli_bounded *b) {
    char name[33], bound[192], bytes[24], last[192], last_bytes[24], most[24];
    const tide_context_bounded *f = &b->facts;
    printf("%-32s %14s %11s", cli_clean(b->name, name, sizeof name), bound_text(f, bound, sizeof bound),
           tide_format_bytes(f->bound_bytes, bytes, sizeof bytes));
    if (f->n_runs == 0) {
        puts("  not made");
        return;
    }
    printf(" %14s %11s %11s %6.1f %%\n", tide_shape_format(&f->last, last, sizeof last),
           tide_format_bytes(f->last_bytes, last_bytes, sizeof last_bytes),
           tide_format_bytes(f->most_bytes, most, sizeof most), 100 * share_of(f));
}

/// The largest bounds first.
static size_t next_largest(const cli_bounded_list *list, bool *is_done) {
    size_t best = list->n;
    for (size_t i = 0; i < list->n; i++) {
        if (is_done[i]) continue;
        if (best == list->n || list->items[i].facts.bound_bytes > list->items[best].facts.bound_bytes) best = i;
    }
    is_done[best] = true;
    return best;
}

void cli_bounded_print(const cli_bounded_list *list) {
    if (list->n == 0) return;
    bool *is_done = tide_host_calloc(list->n, sizeof *is_done);
    if (is_done == NULL) return; // a table less, when memory is at its end
    printf("%-32s %14s %11s %14s %11s %11s %8s\n", "sized while running", "at most", "", "last", "", "most", "used");
    for (size_t k = 0; k < list->n && k < MOST_ROWS; k++) print_one(&list->items[next_largest(list, is_done)]);
    if (list->n > MOST_ROWS) printf("and %zu more: --json\n", list->n - MOST_ROWS);
    puts("");
    tide_host_free(is_done);
}

static void add_shape(tide_json_out *j, const char *key, const tide_shape *s) {
    tide_json_open_flat(j, key, '[');
    for (int32_t d = 0; d < s->rank; d++) tide_json_i64(j, NULL, s->dims[d]);
    tide_json_close(j, ']');
}

static void add_one(tide_json_out *j, const tide_context_bounded *b) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "name", b->name);
    tide_json_text(j, "dtype", tide_dtype_name(b->dtype));
    if (b->is_count)
        tide_json_i64(j, "bound_elements", b->bound.dims[0]);
    else
        add_shape(j, "bound", &b->bound);
    tide_json_u64(j, "bound_bytes", b->bound_bytes);
    tide_json_u64(j, "runs", b->n_runs);
    if (b->n_runs > 0) {
        add_shape(j, "last", &b->last);
        tide_json_u64(j, "last_bytes", b->last_bytes);
        tide_json_u64(j, "least_bytes", b->least_bytes);
        tide_json_u64(j, "most_bytes", b->most_bytes);
    }
    tide_json_close(j, '}');
}

void cli_bounded_json(tide_json_out *j, const char *key, const cli_bounded_list *list) {
    if (list->n == 0) return;
    tide_json_open(j, key, '[');
    for (size_t i = 0; i < list->n; i++) add_one(j, &list->items[i].facts);
    tide_json_close(j, ']');
}
