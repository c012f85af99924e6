// SPDX-License-Identifier: MIT
//
// Values of XLA as a table of lifetimes. Planned are those of temporary memory; each other allocation is one item that
// persists, as what it holds beside its parameter or result is there anyway. See texts.h.
#include <inttypes.h>
#include <stdio.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "planner/formats/texts.h"

/// Memory spaces as XLA numbers them; the others differ from device to device.
enum { SPACE_DEVICE = 0, SPACE_HOST = 5 };
/// What devices align to at the most.
enum { MAX_ALIGN = 256 };

typedef struct maker {
    const tide__xla *x;
    uint32_t *items; // [n_values] index in the table; TIDE_NO_INDEX: not planned
    uint64_t align_bytes;
    tide_lifetimes out;
    tide_error *err;
} maker;

static tide_status no_memory(const maker *m) { return TIDE_NO_MEMORY(m->err, "to read '%s'", m->x->of_values.path); }

// ---- steps ----

/// What leaves the module is needed until behind its last instruction: a step more.
static tide_status name_steps(maker *m) {
    const size_t n = m->x->n_steps + 1;
    TIDE_TRY(TIDE_NEW(&m->out.step_names, n, m->err, "to read '%s'", m->x->of_values.path));
    for (size_t i = 0; i < n; i++) {
        m->out.step_names[i] = tide_host_strdup(i < m->x->n_steps ? m->x->steps[i] : "(end)");
        if (m->out.step_names[i] == NULL) return no_memory(m);
        m->out.n_step_names = i + 1;
    }
    m->out.n_steps = (int64_t)n;
    return TIDE_OK;
}

// ---- what persists ----

/// The value that the allocation is there for: a parameter begins first, a result is needed longest.
static const tide__xla_value *main_value(const tide__xla *x, const tide__xla_allocation *a) {
    const tide__xla_value *best = NULL;
    for (size_t i = a->first; i < a->first + a->n; i++) {
        const tide__xla_value *v = &x->values[i];
        const bool better =
            best == NULL || (a->is_live_out && !a->is_parameter ? v->end >= best->end : v->begin < best->begin);
        if (better) best = v;
    }
    return best;
}

static tide_status add_persistent(maker *m, size_t i) {
    const tide__xla_allocation *a = &m->x->allocations[i];
    const tide__xla_value *v = main_value(m->x, a);
    char name[48];
    snprintf(name, sizeof name, "(allocation %zu)", i);
    tide_lifetime item = tide_lifetime_make(v != NULL ? v->name : name, a->bytes, 1, 0, m->out.n_steps);
    item.persistent = true;
    item.unrounded = true;
    item.kind = a->is_constant ? TIDE_KIND_PERSISTENT : TIDE_KIND_DEFAULT;
    item.role = a->is_constant ? TIDE_ROLE_WEIGHT : a->is_parameter ? TIDE_ROLE_INPUT : TIDE_ROLE_OUTPUT;
    return tide_lifetimes_add(&m->out, &item, m->err);
}

// ---- what is planned ----

static tide_status check_space(const maker *m, size_t i) {
    const tide__xla_allocation *a = &m->x->allocations[i];
    if (a->color == SPACE_DEVICE || a->color == SPACE_HOST || a->n == 0) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(m->err, TIDE_ERR_BAD_INPUT, "allocation %zu lies in memory space %" PRIu64, i, a->color);
    tide_error_note(m->err,
                    "a list knows the memory of the device (0) and of the host (%d); what other numbers mean "
                    "differs from device to device",
                    SPACE_HOST);
    return tide__scan_fault(&m->x->of_values, a->line, st);
}

static tide_status add_value(maker *m, size_t i) {
    const tide__xla_value *v = &m->x->values[i];
    if (v->begin < 0) {
        const tide_status st =
            TIDE_FAIL(m->err, TIDE_ERR_BAD_INPUT, "value '%s' takes temporary memory and has no live range", v->name);
        tide_error_note(m->err, "the two parts are not of one module, or lines of the second are missing");
        return tide__scan_fault(&m->x->of_values, v->line, st);
    }
    tide_lifetime item = tide_lifetime_make(v->name, v->bytes, m->align_bytes, v->begin, v->end + 1);
    item.unrounded = true;
    if (m->x->allocations[v->allocation].color == SPACE_HOST) item.kind = TIDE_KIND_HOST_PINNED;
    m->items[i] = (uint32_t)m->out.n;
    return tide_lifetimes_add(&m->out, &item, m->err);
}

static tide_status find_alignment(maker *m) {
    uint64_t *places = NULL;
    size_t n = 0;
    TIDE_TRY(TIDE_NEW(&places, m->x->n_values, m->err, "to read '%s'", m->x->of_values.path));
    for (size_t i = 0; i < m->x->n_values; i++) {
        if (m->x->allocations[m->x->values[i].allocation].is_temp) places[n++] = m->x->values[i].offset;
    }
    m->align_bytes = tide__together_alignment(places, n, MAX_ALIGN);
    tide_host_free(places);
    return TIDE_OK;
}

/// Values first: their numbers in the table are those of `tide__together`.
static tide_status add_values(maker *m) {
    TIDE_TRY(find_alignment(m));
    for (size_t i = 0; i < m->x->n_values; i++) m->items[i] = TIDE_NO_INDEX;
    for (size_t k = 0; k < m->x->n_allocations; k++) {
        const tide__xla_allocation *a = &m->x->allocations[k];
        if (!a->is_temp) continue;
        TIDE_TRY(check_space(m, k));
        m->out.given_plan_bytes += a->bytes;
        for (size_t i = a->first; i < a->first + a->n; i++) TIDE_TRY(add_value(m, i));
    }
    return TIDE_OK;
}

static tide_status put_together(maker *m) {
    tide__together t;
    TIDE_TRY(tide__together_init(&t, m->out.n, m->err));
    for (size_t i = 0; i < m->x->n_values; i++) {
        if (m->items[i] != TIDE_NO_INDEX) t.place[m->items[i]] = m->x->values[i].offset;
    }
    tide_status st = tide__xla_place(m->x, m->items, &t, m->err);
    if (st == TIDE_OK) st = tide__together_apply(&t, &m->out, m->err);
    tide__together_deinit(&t);
    return st;
}

// ---- all of it ----

static tide_status add_rest(maker *m) {
    uint64_t bytes = 0;
    size_t n = 0;
    for (size_t i = 0; i < m->x->n_allocations; i++) {
        const tide__xla_allocation *a = &m->x->allocations[i];
        if (a->is_thread_local) {
            n++;
            bytes += a->bytes;
        } else if (!a->is_temp) {
            TIDE_TRY(add_persistent(m, i));
        }
    }
    if (n > 0)
        tide_log(TIDE_LOG_INFO, "'%s': %zu thread-local allocation%s (%" PRIu64 " bytes) %s not in the list",
                 m->x->of_values.path, n, n == 1 ? "" : "s", bytes, n == 1 ? "is" : "are");
    return TIDE_OK;
}

static tide_status make(maker *m) {
    TIDE_TRY(TIDE_NEW(&m->items, m->x->n_values, m->err, "to read '%s'", m->x->of_values.path));
    TIDE_TRY(name_steps(m));
    TIDE_TRY(add_values(m));
    TIDE_TRY(put_together(m));
    return add_rest(m);
}

bool tide__list_is_xla(const char *data, size_t len) {
    return tide__scan_begins(data, len, "BufferAssignment:") || tide__scan_begins(data, len, "HloLiveRange ");
}

tide_status tide__list_xla(const char *data, size_t len, const char *path, tide_lifetimes *out, tide_error *err) {
    tide__xla x = {0};
    maker m = {.x = &x, .err = err};
    tide_status st = tide__xla_read(&x, data, len, path, err);
    if (st == TIDE_OK) st = make(&m);
    tide_host_free(m.items);
    if (st == TIDE_OK)
        *out = m.out;
    else
        tide_lifetimes_deinit(&m.out);
    tide__xla_deinit(&x);
    return st;
}
