// SPDX-License-Identifier: MIT
//
// A recorded run as a case: its bytes, the tensors at its peak, its leaks, its allocations after the mark "warm".
#include <inttypes.h>
#include <string.h>

#include "analysis/explain.h"
#include "analysis/pools.h"
#include "cli/measure_internal.h"
#include "core/base/host_alloc.h"

enum { BATCH = 1024 };

/// The trace while it is measured.
typedef struct job {
    tide_gate_case *c;
    tide_subject *s;
    const tide_subject_facts *facts;
    tide_trace *trace;
    tide_trace_info info;
    tide_strmap tensors; // "name\nowner" of a site -> place in c->tensors before they are sorted
    tide_text key;
    size_t cap;
    tide_error *err;
} job;

/// Refuses a trace that lacks events, because its figures would be too small.
static tide_status must_be_whole(job *j) {
    TIDE_TRY(tide_trace_get_info(j->trace, &j->info, j->err));
    if (j->info.state == TIDE_TRACE_RECORDING)
        return TIDE_FAIL(j->err, TIDE_ERR_BAD_INPUT, "the trace is still being recorded");
    if (j->info.state == TIDE_TRACE_CUT_SHORT)
        return TIDE_FAIL(j->err, TIDE_ERR_BAD_INPUT, "the trace was cut short: %s", j->info.reason);
    if (j->info.n_lost > 0)
        return TIDE_FAIL(j->err, TIDE_ERR_BAD_INPUT, "the trace has lost %" PRIu64 " events", j->info.n_lost);
    if (j->info.n_problems > 0)
        return TIDE_FAIL(j->err, TIDE_ERR_BAD_INPUT, "%" PRIu64 " events of the trace contradict each other",
                         j->info.n_problems);
    return TIDE_OK;
}

// ---- figures ----

static void put_kind(job *j, tide_memory_kind kind, uint64_t peak_bytes) {
    tide_gate_case *c = j->c;
    uint64_t predicted = 0, unexplained = 0;
    bool known = false;
    for (size_t i = 0; i < j->facts->n_kinds; i++) {
        const tide_trace_kind *k = &j->facts->kinds[i];
        if (k->kind != kind || k->predicted_bytes == TIDE_UNKNOWN_BYTES) continue;
        known = true;
        predicted += k->predicted_bytes;
        unexplained += k->predicted_bytes > k->peak_bytes ? k->predicted_bytes - k->peak_bytes
                                                          : k->peak_bytes - k->predicted_bytes;
    }
    c->kinds[TIDE_GATE_KIND_PEAK][kind] = cli__measured(peak_bytes);
    c->kinds[TIDE_GATE_PREDICTED][kind] = (tide_gate_value){.known = known, .u = predicted};
    c->kinds[TIDE_GATE_UNEXPLAINED][kind] = (tide_gate_value){.known = known, .u = unexplained};
}

static tide_status put_figures(job *j) {
    tide_gate_case *c = j->c;
    const tide_subject_facts *f = j->facts;
    uint64_t n_allocs = 0;
    for (size_t i = 0; i < f->n_kinds; i++) n_allocs += f->kinds[i].n_allocs;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        uint64_t bytes;
        TIDE_TRY(tide_trace_peak(j->trace, f->run_id, k, &bytes, NULL, j->err));
        put_kind(j, (tide_memory_kind)k, bytes);
    }
    const tide_curve_key reserved = {.of = TIDE_CURVE_RESERVED, .kind = -1};
    uint64_t bytes;
    tide_moment at;
    TIDE_TRY(tide_subject_peak_between(j->s, reserved, f->begin, f->end, &bytes, &at, j->err));
    c->metrics[TIDE_GATE_RESERVED] = cli__measured(bytes);
    c->metrics[TIDE_GATE_PEAK] = cli__measured(f->peak_bytes);
    c->metrics[TIDE_GATE_ALLOCATIONS] = cli__measured(n_allocs);
    return TIDE_OK;
}

/// The figures and steps of the plan of a planned run. The case's tensors are the blocks, not those of the plan.
static tide_status put_plan(job *j) {
    const tide_subject_facts *f = j->facts;
    const bool is_planned = strcmp(f->mode, "planned") == 0 && f->plan != NULL;
    if (is_planned) {
        TIDE_TRY(tide_gate_case_of_plan(f->plan, NULL, j->c, j->err));
        cli__measure_drop_tensors(j->c);
    }
    tide_host_free(j->c->model);
    tide_host_free(j->c->peak_step);
    j->c->model = tide_host_strdup(f->model);
    j->c->peak_step = tide_host_strdup("");
    if (j->c->model == NULL || j->c->peak_step == NULL) return TIDE_NO_MEMORY(j->err, "for '%s'", j->facts->path);
    return f->mode[0] != '\0' ? tide_gate_case_set(j->c, "mode", f->mode, j->err) : TIDE_OK;
}

// ---- tensors ----

/// Place of the tensor of a name and owner; made with `row` when it is not there. TIDE_ERR_NOMEM.
static tide_status find_or_add(job *j, const cli__tensor_row *row, uint64_t *place) {
    j->key.len = 0;
    tide_text_addf(&j->key, "%s\n%s", row->name, row->owner);
    if (j->key.failed) return TIDE_NO_MEMORY(j->err, "for '%s'", j->facts->path);
    if (tide_strmap_get(&j->tensors, j->key.data, place)) return TIDE_OK;
    *place = j->c->n_tensors;
    if (tide_strmap_put(&j->tensors, j->key.data, *place) != TIDE_OK)
        return TIDE_NO_MEMORY(j->err, "for '%s'", j->facts->path);
    cli__tensor_row shown = *row;
    shown.name = cli__measure_label(row->name, row->owner);
    return cli__measure_add_tensor(j->c, &shown, &j->cap, j->err);
}

static cli__tensor_row row_of(const tide_item_site *site, const tide_item_shape *shape) {
    return (cli__tensor_row){.name = site->name,
                             .owner = site->owner,
                             .inside = "",
                             .alias = shape->alias != TIDE_ALIAS_NONE ? tide_alias_kind_name(shape->alias) : "",
                             .kind = shape->kind,
                             .persistent = shape->persistent,
                             .bytes = shape->size_bytes};
}

static tide_status put_tensors(job *j) {
    const tide_items *items = tide_subject_items(j->s);
    uint64_t *of_site = tide_host_alloc((items->n_sites + 1) * sizeof *of_site);
    if (of_site == NULL) return TIDE_NO_MEMORY(j->err, "for '%s'", j->facts->path);
    memset(of_site, 0xFF, (items->n_sites + 1) * sizeof *of_site);
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < items->n; i++) {
        const uint32_t site = tide_items_site_of(items, i);
        const tide_item_shape *shape = tide_items_shape(items, i);
        const cli__tensor_row row = row_of(&items->sites[site], shape);
        if (of_site[site] == UINT64_MAX) st = find_or_add(j, &row, &of_site[site]);
        if (st != TIDE_OK) break;
        tide_gate_tensor *t = &j->c->tensors[of_site[site]];
        if (shape->size_bytes > t->bytes) t->bytes = shape->size_bytes;
    }
    tide_host_free(of_site);
    return st;
}

/// The tensors' bytes at the peak. Bytes without a tensor are holes (in the buffer of a planned run).
static tide_status put_peak(job *j) {
    tide_gate_case *c = j->c;
    tide_explanation e;
    TIDE_TRY(tide_explain(j->s, j->facts->peak, 0, NULL, &e, j->err));
    c->held_bytes = j->facts->peak_bytes;
    c->holes_bytes = c->held_bytes;
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < e.live.n; i++) {
        const tide_live_item *item = &e.live.items[i];
        const cli__tensor_row row = row_of(&item->site, &item->shape);
        uint64_t place;
        st = find_or_add(j, &row, &place);
        const uint64_t bytes = item->counts_bytes < c->holes_bytes ? item->counts_bytes : c->holes_bytes;
        if (st == TIDE_OK) c->tensors[place].at_peak_bytes += bytes;
        if (st == TIDE_OK) c->holes_bytes -= bytes;
    }
    tide_explanation_deinit(&e);
    return st;
}

// ---- leaks ----

static tide_status put_leaks_of(job *j, tide_subject *s, uint64_t *n_blocks) {
    tide_leaks leaks;
    TIDE_TRY(tide_subject_load(s, NULL, j->err));
    TIDE_TRY(tide_leaks_find(s, &leaks, j->err));
    *n_blocks = 0;
    for (size_t i = 0; i < leaks.n; i++) *n_blocks += leaks.items[i].n;
    tide_status st = TIDE_OK;
    // If the run does not have all leaks of the trace, they are looked for in the whole trace.
    const bool all = *n_blocks == j->info.n_leaked || tide_subject_get_facts(s)->run_id == 0;
    for (size_t i = 0; st == TIDE_OK && all && i < leaks.n; i++) {
        const tide_leak *l = &leaks.items[i];
        const cli__tensor_row row = {.name = l->name, .owner = l->owner, .kind = l->kind, .bytes = l->bytes / l->n};
        st = cli__measure_charge(j->c, &row, l->bytes, 0, j->err);
    }
    if (st == TIDE_OK && all) {
        j->c->metrics[TIDE_GATE_LEAKED] = cli__measured(leaks.bytes);
        j->c->metrics[TIDE_GATE_LEAKED_BLOCKS] = cli__measured(*n_blocks);
    }
    tide_leaks_deinit(&leaks);
    return st;
}

static tide_status put_leaks(job *j) {
    uint64_t n = 0;
    TIDE_TRY(put_leaks_of(j, j->s, &n));
    if (j->c->metrics[TIDE_GATE_LEAKED].known) return TIDE_OK;
    tide_subject *whole = NULL;
    TIDE_TRY(tide_subject_of_trace(j->facts->path, 0, &whole, j->err));
    const tide_status st = put_leaks_of(j, whole, &n);
    tide_subject_destroy(whole);
    return st;
}

// ---- steady state ----

/// The first event behind the first mark "warm" of the run; 0: there is none.
static tide_status find_warm(job *j, const tide_trace_extent *extent, uint64_t *first) {
    tide_trace_mark *marks = NULL;
    size_t n = 0;
    TIDE_TRY(tide_trace_marks(j->trace, &marks, &n, j->err));
    *first = 0;
    for (size_t i = 0; i < n && *first == 0; i++) {
        const bool inside = marks[i].event_id >= extent->first_event && marks[i].event_id <= extent->last_event;
        if (inside && strcmp(marks[i].name, "warm") == 0) *first = marks[i].event_id + 1;
    }
    tide_trace_marks_free(marks);
    return TIDE_OK;
}

static tide_status put_warm(job *j) {
    tide_trace_extent extent;
    uint64_t from = 0, total = 0;
    TIDE_TRY(tide_trace_get_extent(j->trace, j->facts->run_id, &extent, j->err));
    TIDE_TRY(find_warm(j, &extent, &from));
    if (from == 0) return TIDE_OK; // the run has no mark "warm"
    tide_trace_event *events = tide_host_alloc(BATCH * sizeof *events);
    if (events == NULL) return TIDE_NO_MEMORY(j->err, "for '%s'", j->facts->path);
    tide_status st = TIDE_OK;
    size_t n = 1;
    while (st == TIDE_OK && n > 0 && from <= extent.last_event) {
        st = tide_trace_events(j->trace, from, events, BATCH, &n, j->err);
        for (size_t i = 0; st == TIDE_OK && i < n; i++) {
            const tide_trace_event *e = &events[i];
            from = e->id + 1;
            if (e->id > extent.last_event || strcmp(e->op, "alloc") != 0) continue;
            tide_memory_kind kind = TIDE_KIND_DEFAULT;
            st = tide_memory_kind_parse(e->kind, &kind, j->err);
            const cli__tensor_row row = {.name = e->name, .owner = e->scope, .kind = kind, .bytes = e->requested_bytes};
            if (st == TIDE_OK) st = cli__measure_charge(j->c, &row, 0, 1, j->err);
            total++;
        }
    }
    tide_host_free(events);
    j->c->metrics[TIDE_GATE_WARM] = cli__measured(total);
    return st;
}

// ---- the trace ----

static tide_status measure(job *j) {
    TIDE_TRY(must_be_whole(j));
    TIDE_TRY(tide_subject_load(j->s, NULL, j->err));
    TIDE_TRY(put_plan(j));
    TIDE_TRY(put_figures(j));
    TIDE_TRY(put_tensors(j));
    TIDE_TRY(put_peak(j));
    cli__measure_sort(j->c);
    TIDE_TRY(put_leaks(j));
    return put_warm(j);
}

tide_status cli__measure_trace(const char *path, tide_gate_case *c, tide_error *err) {
    job j = {.c = c, .err = err};
    TIDE_TRY(tide_subject_of_trace(path, -1, &j.s, err));
    j.facts = tide_subject_get_facts(j.s);
    j.trace = tide_subject_trace(j.s);
    const tide_status st = measure(&j);
    tide_strmap_deinit(&j.tensors);
    tide_text_deinit(&j.key);
    tide_subject_destroy(j.s);
    return st;
}
