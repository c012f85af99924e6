// SPDX-License-Identifier: MIT
//
// Items of a trace: its blocks over time, and of a planned run the tensors inside the buffer. See items.h.
//
// Numbers of the file are made texts once: a block costs a look into two tables of numbers.
//
//     (name, scope) of the file -> site      many scopes are one site: each run has scopes of its own. What they say,
//                                            not their numbers, is looked up: a million runs have few sites
//     (sizes, kind, device, allocator, role of the site) -> shape
#include <inttypes.h>
#include <string.h>

#include "analysis/items_internal.h"
#include "analysis/run_plan.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

tide_status tide__trace_axis(tide_trace *trace, int64_t run_id, int64_t *begin, int64_t *end, tide_error *err) {
    tide_trace_extent x;
    TIDE_TRY(tide_trace_get_extent(trace, run_id, &x, err));
    *begin = (int64_t)x.begin_ns;
    *end = (int64_t)x.end_ns;
    if ((run_id == 0 || *end == *begin) && *end < INT64_MAX) ++*end;
    if (run_id != 0) return TIDE_OK;
    // Where the first events were dropped, their leaves are there and the curve goes back as far.
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(trace, &info, err));
    if ((int64_t)info.begin_ns < *begin) *begin = (int64_t)info.begin_ns;
    return TIDE_OK;
}

// ---- items of a plan: its tensors over the steps of the execution order ----

tide_item_shape tide__shape_of_tensor(const tide_lifetime *l) {
    const uint64_t held = l->alias == TIDE_ALIAS_NONE ? tide_lifetime_aligned_bytes(l) : l->size_bytes;
    tide_item_shape shape = {.size_bytes = l->size_bytes,
                             .reserved_bytes = held,
                             .allocator = "",
                             .kind = l->kind,
                             .role = l->role,
                             .alias = l->alias,
                             .is_planned = true};
    tide__shape_classify(&shape, l->persistent);
    return shape;
}

static tide_status add_plan_tensor(tide__items_builder *b, const tide_memory_plan *plan, size_t i, const char *device,
                                   const char *none) {
    const tide_lifetimes *lt = &plan->lifetimes;
    const tide_lifetime *l = &lt->items[i];
    // Persistent ones live for all steps: their first step does not say which operator made them.
    const bool has_owner = !l->persistent && l->begin_step >= 0;
    const bool has_name = has_owner && (uint64_t)l->begin_step < lt->n_step_names;
    tide_item_shape shape = tide__shape_of_tensor(l);
    shape.device = device;
    shape.allocator = none;
    tide__item item = {.begin = l->begin_step, .end = l->end_step, .id = i, .place = plan->offsets[i]};
    TIDE_TRY(tide__items_add_site(b, l->name, has_name ? lt->step_names[l->begin_step] : "",
                                  has_owner ? l->begin_step : -1, &item.site));
    TIDE_TRY(tide__items_put_shape(b, &shape, &item.shape));
    return tide__items_add(b, &item);
}

static tide_status add_plan_tensors(tide__items_builder *b, const tide_memory_plan *plan) {
    const char *device = NULL, *none = tide__items_text(b, "");
    tide_device last = {0};
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_device d = plan->lifetimes.items[i].device;
        if (device == NULL || !tide_device_equal(d, last)) {
            char text[32];
            tide_device_format(d, text, sizeof text);
            device = NULL;
            for (size_t k = 0; k < b->n_shape_texts; k++)
                if (strcmp(b->shape_texts[k], text) == 0) device = b->shape_texts[k];
            if (device == NULL) device = tide__items_text(b, text);
            last = d;
        }
        if (device == NULL || none == NULL) return TIDE_ERR_NOMEM;
        TIDE_TRY(add_plan_tensor(b, plan, i, device, none));
    }
    return TIDE_OK;
}

/// Texts of the plan and the trace become the items' own.
static tide_status own_texts(tide__items_builder *b, tide_sizes *s) {
    const char *bound = NULL, *bound_copy = NULL;
    for (size_t i = 0; i < s->n; i++) {
        tide_size *x = &s->items[i];
        if (x->bound != bound) {
            bound = x->bound;
            bound_copy = tide__items_text(b, bound);
        }
        x->bound = bound_copy;
        x->extents = tide__items_text(b, x->extents);
        if (x->bound == NULL || x->extents == NULL) return TIDE_ERR_NOMEM;
    }
    return TIDE_OK;
}

tide_status tide_items_of_plan(const tide_memory_plan *plan, tide_items *out, tide_error *err) {
    tide__items_builder b;
    tide_status st = tide__items_start(&b, plan->lifetimes.n, 0, plan->lifetimes.n_steps);
    if (st == TIDE_OK) st = add_plan_tensors(&b, plan);
    if (st == TIDE_OK) st = tide_sizes_of_plan(plan, &b.items.sizes, NULL);
    if (st == TIDE_OK) st = own_texts(&b, &b.items.sizes);
    if (st == TIDE_OK) st = tide__items_finish(&b, NULL, out);
    tide__items_abandon(&b);
    if (st == TIDE_ERR_OVERFLOW) return TIDE_FAIL(err, st, "the plan has too many tensors to be shown");
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for the tensors of a plan");
}

enum { REPORT_BLOCKS = 65536 };

/// What the plan says of the blocks of a site.
typedef struct site_role {
    tide_role role;
    bool persistent;
} site_role;

typedef struct loader {
    tide_trace *trace;
    const tide_progress *progress;
    tide__items_builder b;
    tide__run_plan run;
    site_role *roles; // [n_roles] by site
    size_t n_roles, cap_roles;
    const char **texts; // [n_texts] by number of a name: the items' copy, NULL: none yet
    size_t n_texts;
    const char *devices[1024]; // the same, of devices
    const char *none;
    uint64_t n_seen, n_expected;
    tide__planned_runs planned;
    size_t *n_like_buffer;    // [planned.n] of runs that do not say where they work; owned
    uint32_t *sites, *shapes; // [tensors] of the run whose tensors are added; owned
} loader;

// ---- texts ----

static const char *text_of(loader *l, uint32_t number) {
    if (number >= l->n_texts) {
        size_t cap = l->n_texts;
        if (tide_host_grow(&l->texts, &cap, (size_t)number + 1, sizeof *l->texts) != TIDE_OK) return NULL;
        memset(l->texts + l->n_texts, 0, (cap - l->n_texts) * sizeof *l->texts);
        l->n_texts = cap;
    }
    if (l->texts[number] == NULL) l->texts[number] = tide__items_text(&l->b, tide_trace_text_of(l->trace, number));
    return l->texts[number];
}

static const char *device_of(loader *l, uint32_t number) {
    const size_t n = sizeof l->devices / sizeof l->devices[0];
    if (number >= n) return NULL;
    if (l->devices[number] == NULL)
        l->devices[number] = tide__items_text(&l->b, tide_trace_device_of(l->trace, number));
    return l->devices[number];
}

// ---- sites ----

static tide_status add_role(loader *l, const char *name) {
    const tide_lifetime *tensor = tide__run_plan_tensor(&l->run, name);
    TIDE_TRY(tide_host_grow(&l->roles, &l->cap_roles, l->n_roles + 1, sizeof *l->roles));
    l->roles[l->n_roles++] =
        tensor != NULL ? (site_role){tensor->role, tensor->persistent} : (site_role){TIDE_ROLE_INTERMEDIATE, false};
    return TIDE_OK;
}

/// By names and steps, not by numbers: those of scopes differ from run to run.
static tide_status site_of(loader *l, uint32_t name, uint32_t scope, uint32_t *site) {
    int64_t step;
    const char *owner = tide_trace_scope_of(l->trace, scope, &step);
    // A text of the file stays where it is, so that its address stands for it.
    const uint64_t key[3] = {name, (uint64_t)(uintptr_t)owner, (uint64_t)step};
    bool is_new;
    uint32_t made;
    TIDE_TRY(tide__intern_put(&l->b.sites, key, site, &is_new));
    if (!is_new) return TIDE_OK;
    const char *text = tide_trace_text_of(l->trace, name);
    TIDE_TRY(tide__items_add_site(&l->b, text, owner, step, &made));
    return add_role(l, text);
}

// ---- blocks ----

static bool has_size_of(const loader *l, const tide_executions *x, const tide_trace_block_row *row) {
    const char *device = tide_trace_device_of(l->trace, row->device);
    return tide_executions_buffer(x, row->kind, device, row->requested_bytes) != NULL;
}

/// Of runs that do not say in which block they work: how many it can be.
static tide_status count_buffers(void *ctx, const tide_trace_block_row *rows, size_t n) {
    loader *l = ctx;
    for (size_t r = 0; r < l->planned.n; r++)
        for (size_t i = 0; i < n; i++) l->n_like_buffer[r] += has_size_of(l, l->planned.items[r], &rows[i]);
    return TIDE_OK;
}

static tide_status find_buffers(loader *l, int64_t run_id, tide_error *err) {
    bool all_say = true;
    for (size_t r = 0; r < l->planned.n; r++) all_say = all_say && tide_executions_say_buffers(l->planned.items[r]);
    TIDE_TRY(TIDE_NEW(&l->n_like_buffer, l->planned.n + 1, err, "for blocks"));
    return all_say ? TIDE_OK : tide_trace_each_block(l->trace, run_id, count_buffers, l, err);
}

/// Whether the block is a plan's buffer, in whose place the tensors stand that lay in it.
static bool is_buffer(const loader *l, const tide_trace_block_row *row) {
    for (size_t r = 0; r < l->planned.n; r++) {
        const tide_executions *x = l->planned.items[r];
        const bool says = tide_executions_say_buffers(x);
        if (!has_size_of(l, x, row)) continue;
        if (says ? tide_executions_works_in(x, row->id) : l->n_like_buffer[r] == 1 && x->n_lanes == 1) return true;
    }
    return false;
}

static tide_status add_block(loader *l, const tide_trace_block_row *row) {
    if (is_buffer(l, row)) return TIDE_OK;
    tide__item item = {.begin = tide__cut(l->b.begin, l->b.end, row->alloc_ns),
                       .end = tide__cut(l->b.begin, l->b.end, row->end_ns),
                       .id = row->id,
                       .place = row->address,
                       .open_ended = row->end_ns == UINT64_MAX,
                       .is_left = row->free_ns == UINT64_MAX && row->end_ns != UINT64_MAX};
    TIDE_TRY(site_of(l, row->name, row->scope, &item.site));
    tide_item_shape shape = {.size_bytes = row->requested_bytes,
                             .reserved_bytes = row->reserved_bytes,
                             .device = device_of(l, row->device),
                             .allocator = text_of(l, row->allocator),
                             .kind = row->kind,
                             .role = l->roles[item.site].role};
    if (shape.device == NULL || shape.allocator == NULL) return TIDE_ERR_NOMEM;
    tide__shape_classify(&shape, l->roles[item.site].persistent);
    TIDE_TRY(tide__items_put_shape(&l->b, &shape, &item.shape));
    return tide__items_add(&l->b, &item);
}

static tide_status on_blocks(void *ctx, const tide_trace_block_row *rows, size_t n) {
    loader *l = ctx;
    for (size_t i = 0; i < n; i++) TIDE_TRY(add_block(l, &rows[i]));
    const bool reports = l->n_seen / REPORT_BLOCKS != (l->n_seen + n) / REPORT_BLOCKS;
    l->n_seen += n;
    if (!reports) return TIDE_OK;
    const double share = l->n_expected > l->n_seen ? (double)l->n_seen / (double)l->n_expected : 1;
    return tide_progress_goes_on(l->progress, 0.9 * share, "reading blocks") ? TIDE_OK : TIDE_ERR_CANCELLED;
}

// ---- planned tensors ----

static const char *device_named(loader *l, const char *text) {
    for (size_t k = 0; k < l->b.n_shape_texts; k++)
        if (strcmp(l->b.shape_texts[k], text) == 0) return l->b.shape_texts[k];
    return tide__items_text(&l->b, text);
}

/// Sites and shapes of a run's tensors: the same in each execution.
static tide_status describe_tensors(loader *l, const tide_executions *x) {
    const tide_lifetimes *lt = &x->plan->lifetimes;
    tide_host_free(l->sites);
    tide_host_free(l->shapes);
    l->sites = tide_host_calloc(lt->n + 1, sizeof *l->sites);
    l->shapes = tide_host_calloc(lt->n + 1, sizeof *l->shapes);
    if (l->sites == NULL || l->shapes == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *t = &lt->items[i];
        if (t->persistent) continue;
        const bool has_name = t->begin_step >= 0 && (uint64_t)t->begin_step < lt->n_step_names;
        char text[32];
        tide_device_format(t->device, text, sizeof text);
        tide_item_shape shape = tide__shape_of_tensor(t);
        shape.device = device_named(l, text);
        shape.allocator = l->none;
        if (shape.device == NULL) return TIDE_ERR_NOMEM;
        TIDE_TRY(tide__items_add_site(&l->b, t->name, has_name ? lt->step_names[t->begin_step] : "", t->begin_step,
                                      &l->sites[i]));
        TIDE_TRY(add_role(l, t->name));
        TIDE_TRY(tide__items_put_shape(&l->b, &shape, &l->shapes[i]));
    }
    return TIDE_OK;
}

/// A run has a buffer of Workspace; what a plan has in others is no part of it.
static bool is_in_buffer(const tide_executions *x, const tide_lifetime *t) {
    return !t->persistent && t->kind == TIDE_KIND_WORKSPACE &&
           tide_memory_plan_buffer(x->plan, t->device, t->kind) != NULL;
}

static tide_status add_execution(loader *l, const tide_executions *x, size_t execution) {
    const tide_lifetimes *lt = &x->plan->lifetimes;
    for (size_t i = 0; i < lt->n; i++) {
        uint64_t begin_ns, end_ns;
        if (!is_in_buffer(x, &lt->items[i]) || !tide_planned_id_fits(x->run_id, execution, i) ||
            !tide__planned_times(x, &x->items[execution], &lt->items[i], &begin_ns, &end_ns))
            continue;
        const tide__item item = {.begin = tide__cut(l->b.begin, l->b.end, begin_ns),
                                 .end = tide__cut(l->b.begin, l->b.end, end_ns),
                                 .site = l->sites[i],
                                 .shape = l->shapes[i],
                                 .id = tide_planned_id(x->run_id, execution, i),
                                 .place = x->plan->offsets[i],
                                 .open_ended = end_ns == UINT64_MAX};
        TIDE_TRY(tide__items_add(&l->b, &item));
    }
    return TIDE_OK;
}

static tide_status add_tensors(loader *l) {
    for (size_t r = 0; r < l->planned.n; r++) {
        const tide_executions *x = l->planned.items[r];
        TIDE_TRY(describe_tensors(l, x));
        for (size_t i = 0; i < x->n; i++) {
            TIDE_TRY(add_execution(l, x, i));
            if (i % 256 == 255 && !tide_progress_goes_on(l->progress, 0.9, "reading tensors"))
                return TIDE_ERR_CANCELLED;
        }
    }
    return TIDE_OK;
}

// ---- sizes ----

static tide_status add_sizes(loader *l, int64_t run_id, tide_error *err) {
    tide_sizes *sizes = &l->b.items.sizes;
    TIDE_TRY(tide_sizes_of_trace(l->trace, run_id, &l->planned, l->run.plan, sizes, err));
    return own_texts(&l->b, sizes) == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(err, "for the sizes of a trace");
}

// ---- all of it ----

/// How many there can be at most: every block of the file, or every alloc of the events when the file has no count.
static tide_status expect(loader *l, const tide_trace_info *info, tide_error *err) {
    l->n_expected = info->n_blocks;
    if (info->state == TIDE_TRACE_RECORDING || info->first_kept_event > 1) l->n_expected = info->n_events;
    size_t cap = (size_t)l->n_expected;
    for (size_t i = 0; i < l->planned.n; i++) {
        size_t n;
        if (!tide_mul_size(l->planned.items[i]->n, l->planned.items[i]->plan->lifetimes.n, &n) ||
            !tide_add_size(cap, n, &cap))
            return TIDE_NO_MEMORY(err, "for the tensors of %zu executions", l->planned.items[i]->n);
    }
    int64_t begin, end;
    TIDE_TRY(tide__trace_axis(l->trace, l->run.run.id, &begin, &end, err));
    const tide_status st = tide__items_start(&l->b, cap, begin, end);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for %" PRIu64 " blocks", l->n_expected);
}

static tide_status load(loader *l, int64_t run_id, tide_items *out, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(tide__run_plan_read(l->trace, run_id, &l->run, err));
    TIDE_TRY(tide__planned_runs_read(l->trace, run_id, &l->planned, err));
    TIDE_TRY(tide_trace_get_info(l->trace, &info, err));
    TIDE_TRY(expect(l, &info, err));
    TIDE_TRY(find_buffers(l, run_id, err));
    l->none = text_of(l, 0);
    tide_status st = l->none != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for blocks");
    if (st == TIDE_OK) st = tide_trace_each_block(l->trace, run_id, on_blocks, l, err);
    if (st == TIDE_OK) st = add_sizes(l, run_id, err);
    TIDE_TRY(st);
    st = add_tensors(l);
    if (st == TIDE_OK) st = tide__items_finish(&l->b, l->progress, out);
    if (st == TIDE_ERR_CANCELLED) return TIDE_FAIL(err, st, "sorting blocks was cancelled");
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for %" PRIu64 " blocks", l->n_seen);
}

tide_status tide_items_of_trace(tide_trace *trace, int64_t run_id, const tide_progress *progress, tide_items *out,
                                tide_error *err) {
    loader *l;
    TIDE_TRY(TIDE_NEW(&l, 1, err, "for blocks"));
    *l = (loader){.trace = trace, .progress = progress};
    const tide_status st = load(l, run_id, out, err);
    tide__items_abandon(&l->b);
    tide__run_plan_deinit(&l->run);
    tide__planned_runs_deinit(&l->planned);
    tide_host_free(l->n_like_buffer);
    tide_host_free(l->sites);
    tide_host_free(l->shapes);
    tide_host_free(l->roles);
    tide_host_free(l->texts);
    tide_host_free(l);
    return st;
}
