// SPDX-License-Identifier: MIT
//
// Leaks: blocks that were never freed, by who made them. See pools.h.
//
//     items -> (name and owner of the site) x (kind and device of the shape) -> a leak each
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pools.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"

enum { N_TENTHS = 10, GROWS_FROM = 3, NONE = UINT32_MAX };

typedef struct finder {
    const tide_subject_facts *facts;
    const tide_items *items;
    bool skips_persistent;
    tide_trace_run *runs; // [n_runs] by begin; owned
    size_t n_runs;
    uint32_t *names;   // [n_sites] of each site, sites of one name and owner share a number; owned
    uint32_t *classes; // [n_shapes] the same by kind and device; owned
    uint32_t n_names, n_classes;
    uint32_t *leak_of;     // [n_names * n_classes] place in out; owned
    uint32_t *n_allocated; // [n_names * n_classes]; owned
    struct spread {
        uint64_t tenths; // bit by tenth of the axis
        size_t last_run, n_runs;
    } * spread; // [out->n], owned
    size_t cap_spread, cap;
    tide_leaks *out;
} finder;

void tide_leaks_deinit(tide_leaks *l) {
    for (size_t i = 0; i < l->n; i++) {
        tide_host_free(l->items[i].name);
        tide_host_free(l->items[i].owner);
    }
    tide_host_free(l->items);
    *l = (tide_leaks){0};
}

static tide_status no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for leaks"); }

// ---- numbers for names and classes ----

static tide_status number_names(finder *f) {
    tide_strmap map = {0};
    tide_text key = {0};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < f->items->n_sites; i++) {
        const tide_item_site *site = &f->items->sites[i];
        key.len = 0;
        tide_text_addf(&key, "%s\n%s", site->name, site->owner);
        uint64_t number = f->n_names;
        if (key.failed) {
            st = TIDE_ERR_NOMEM;
        } else if (!tide_strmap_get(&map, key.data, &number)) {
            st = tide_strmap_put(&map, key.data, f->n_names++);
        }
        f->names[i] = (uint32_t)number;
    }
    tide_strmap_deinit(&map);
    tide_text_deinit(&key);
    return st;
}

/// Few of them: kinds times devices. `known`: a shape of each class so far, for sizes make many shapes.
static tide_status number_classes(finder *f) {
    const tide_item_shape **known = NULL;
    size_t cap = 0;
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < f->items->n_shapes; i++) {
        const tide_item_shape *shape = &f->items->shapes[i];
        uint32_t k = 0;
        while (k < f->n_classes && (known[k]->kind != shape->kind || strcmp(known[k]->device, shape->device) != 0)) k++;
        f->classes[i] = k;
        if (k < f->n_classes) continue;
        st = tide_host_grow(&known, &cap, (size_t)f->n_classes + 1, sizeof *known);
        if (st == TIDE_OK) known[f->n_classes++] = shape;
    }
    tide_host_free(known);
    return st;
}

static tide_status prepare(finder *f) {
    f->names = tide_host_alloc((f->items->n_sites + 1) * sizeof *f->names);
    f->classes = tide_host_alloc((f->items->n_shapes + 1) * sizeof *f->classes);
    if (f->names == NULL || f->classes == NULL) return TIDE_ERR_NOMEM;
    TIDE_TRY(number_names(f));
    TIDE_TRY(number_classes(f));
    size_t n;
    if (!tide_mul_size((size_t)f->n_names + 1, (size_t)f->n_classes + 1, &n)) return TIDE_ERR_NOMEM;
    f->leak_of = tide_host_alloc(n * sizeof *f->leak_of);
    f->n_allocated = tide_host_calloc(n, sizeof *f->n_allocated);
    if (f->leak_of == NULL || f->n_allocated == NULL) return TIDE_ERR_NOMEM;
    memset(f->leak_of, 0xFF, n * sizeof *f->leak_of);
    return TIDE_OK;
}

// ---- items ----

static size_t run_at(const finder *f, int64_t t) {
    size_t lo = 0, hi = f->n_runs;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (f->runs[mid].begin_ns <= (uint64_t)t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 && f->runs[lo - 1].end_ns > (uint64_t)t ? lo - 1 : SIZE_MAX;
}

static void note_time(finder *f, struct spread *s, int64_t t) {
    const double share = ((double)t - (double)f->facts->begin) / ((double)f->facts->end - (double)f->facts->begin);
    const int tenth = share < 1 ? (int)(share * N_TENTHS) : N_TENTHS - 1;
    s->tenths |= UINT64_C(1) << tenth;
    const size_t run = run_at(f, t);
    if (run == SIZE_MAX || run == s->last_run) return;
    s->last_run = run;
    s->n_runs++;
}

static tide_status begin_leak(finder *f, uint32_t item, uint32_t *place) {
    tide_leaks *out = f->out;
    TIDE_TRY(tide_host_grow(&out->items, &f->cap, out->n + 1, sizeof *out->items));
    TIDE_TRY(tide_host_grow(&f->spread, &f->cap_spread, out->n + 1, sizeof *f->spread));
    const tide_item_site *site = tide_items_site(f->items, item);
    const tide_item_shape *shape = tide_items_shape(f->items, item);
    tide_leak *l = &out->items[out->n];
    *l = (tide_leak){.name = tide_host_strdup(site->name),
                     .owner = tide_host_strdup(site->owner),
                     .kind = shape->kind,
                     .first = tide_items_begin(f->items, item),
                     .first_item = item};
    f->spread[out->n] = (struct spread){.last_run = SIZE_MAX};
    if (l->name == NULL || l->owner == NULL) {
        tide_host_free(l->name);
        tide_host_free(l->owner);
        return TIDE_ERR_NOMEM;
    }
    snprintf(l->device, sizeof l->device, "%s", shape->device);
    *place = (uint32_t)out->n++;
    return TIDE_OK;
}

static tide_status take_item(finder *f, uint32_t i) {
    const tide_item_shape *shape = tide_items_shape(f->items, i);
    if (shape->is_planned) return TIDE_OK;
    const size_t at =
        (size_t)f->names[tide_items_site_of(f->items, i)] * f->n_classes + f->classes[tide_items_shape_of(f->items, i)];
    f->n_allocated[at]++;
    if (!tide_items_is_open_ended(f->items, i) || (f->skips_persistent && shape->persistent)) return TIDE_OK;
    if (f->leak_of[at] == NONE) TIDE_TRY(begin_leak(f, i, &f->leak_of[at]));
    tide_leak *l = &f->out->items[f->leak_of[at]];
    l->n++;
    l->bytes += shape->size_bytes;
    l->last = tide_items_begin(f->items, i); // items come by begin
    f->out->bytes += shape->size_bytes;
    note_time(f, &f->spread[f->leak_of[at]], l->last);
    return TIDE_OK;
}

static void finish_leaks(finder *f) {
    const size_t n = (size_t)f->n_names * f->n_classes;
    for (size_t i = 0; i < n; i++) {
        if (f->leak_of[i] == NONE) continue;
        tide_leak *l = &f->out->items[f->leak_of[i]];
        const struct spread *s = &f->spread[f->leak_of[i]];
        l->n_allocated = f->n_allocated[i];
        if (l->last > l->first) l->per_second = (double)l->bytes / ((double)(l->last - l->first) / 1e9);
        l->grows = s->n_runs >= GROWS_FROM || __builtin_popcountll(s->tenths) >= GROWS_FROM;
    }
}

static int by_weight(const void *a, const void *b) {
    const tide_leak *x = a, *y = b;
    if (x->grows != y->grows) return x->grows ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    int c = strcmp(x->name, y->name);
    if (c == 0) c = strcmp(x->owner, y->owner);
    return c != 0 ? c : (x->first_item > y->first_item) - (x->first_item < y->first_item);
}

// ---- the answer ----

static tide_status find(finder *f, tide_trace *trace, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(trace, &info, err));
    TIDE_TRY(tide_trace_runs(trace, &f->runs, &f->n_runs, err));
    f->skips_persistent = info.state != TIDE_TRACE_COMPLETE;
    if (prepare(f) != TIDE_OK) return no_memory(err);
    for (uint32_t i = 0; i < f->items->n; i++) {
        if (take_item(f, i) != TIDE_OK) return no_memory(err);
    }
    finish_leaks(f);
    if (f->out->n > 1) qsort(f->out->items, f->out->n, sizeof *f->out->items, by_weight);
    return TIDE_OK;
}

tide_status tide_leaks_find(tide_subject *s, tide_leaks *out, tide_error *err) {
    *out = (tide_leaks){0};
    finder f = {.facts = tide_subject_get_facts(s), .items = tide_subject_items(s), .out = out};
    if (f.items == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "leaks need the table of items");
    if (!f.facts->is_trace) return TIDE_OK; // everything in a plan ends
    out->n_lost = f.facts->n_lost;
    const tide_status st = find(&f, tide_subject_trace(s), err);
    tide_host_free(f.runs);
    tide_host_free(f.names);
    tide_host_free(f.classes);
    tide_host_free(f.leak_of);
    tide_host_free(f.n_allocated);
    tide_host_free(f.spread);
    if (st != TIDE_OK) tide_leaks_deinit(out);
    return st;
}
