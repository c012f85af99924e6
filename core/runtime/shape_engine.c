// SPDX-License-Identifier: MIT
//
// One request in many sizes. See shape_engine.h.
#include "core/runtime/shape_engine.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/runtime/runtime_internal.h"

/// A size that was met.
typedef struct size {
    tide_shape *shapes; ///< [n_inputs], owned
    tide_inference_plan *plan;
    tide_context *context;
    uint64_t last_used; ///< by the engine's clock
} size;

struct tide_shape_engine {
    tide_shape_engine_options opt;
    tide_shape_range *profile; ///< [n_ranges], owned
    size *sizes;               ///< [n]; the first is the largest, in whose memory all others are
    size_t n, cap, current, n_inputs;
    uint64_t clock;
    tide_shape_engine_stats stats;
};

// ---- ranges ----

static bool is_checked(const tide_shape_range *r, int32_t d) {
    return r->min.dims[d] != TIDE_DIM_UNKNOWN && r->opt.dims[d] != TIDE_DIM_UNKNOWN &&
           r->max.dims[d] != TIDE_DIM_UNKNOWN;
}

tide_status tide_shape_range_check(const tide_shape_range *r, tide_error *err) {
    if (r->min.rank != r->opt.rank || r->opt.rank != r->max.rank || r->min.rank < 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "profile of '%s': %d, %d and %d extents", r->name, (int)r->min.rank,
                         (int)r->opt.rank, (int)r->max.rank);
    for (int32_t d = 0; d < r->min.rank; d++) {
        const bool good = r->min.dims[d] >= 0 && r->min.dims[d] <= r->opt.dims[d] && r->opt.dims[d] <= r->max.dims[d];
        if (!is_checked(r, d) || good) continue;
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "profile of '%s': extent %d goes from %" PRId64 " by %" PRId64 " to %" PRId64, r->name, (int)d,
                         r->min.dims[d], r->opt.dims[d], r->max.dims[d]);
    }
    return TIDE_OK;
}

tide_status tide_shape_range_admits(const tide_shape_range *r, const tide_shape *shape, tide_error *err) {
    if (shape->rank != r->min.rank)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' has %d extents, its profile %d", r->name, (int)shape->rank,
                         (int)r->min.rank);
    for (int32_t d = 0; d < shape->rank; d++) {
        if (!is_checked(r, d) || (shape->dims[d] >= r->min.dims[d] && shape->dims[d] <= r->max.dims[d])) continue;
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "input '%s': extent %d is %" PRId64 ", its profile goes from %" PRId64 " to %" PRId64, r->name,
                         (int)d, shape->dims[d], r->min.dims[d], r->max.dims[d]);
    }
    return TIDE_OK;
}

// ---- sizes ----

static void size_deinit(size *s) {
    tide_context_destroy(s->context);
    tide_inference_plan_unref(s->plan);
    tide_host_free(s->shapes);
    *s = (size){0};
}

static tide_program *program_of(const size *s) { return s->plan->program; }

/// What a plan or a context says of a place that is too small is an error of the run here: the plan was made for less.
static tide_status as_runtime(tide_status st, tide_error *err) {
    if (st != TIDE_ERR_NO_SPACE) return st;
    if (err != NULL) err->status = TIDE_ERR_RUNTIME;
    return TIDE_ERR_RUNTIME;
}

static tide_status make_context(const tide_shape_engine *e, tide_program *program, size *s, tide_error *err) {
    const tide_inference_plan_options plan = {
        .device = TIDE_CPU, .registry = e->opt.registry, .memory_plan = e->opt.memory_plan};
    TIDE_TRY(tide_inference_plan_create(program, &plan, &s->plan, err));
    const tide_context_options context = {.mode = TIDE_RUN_PLANNED,
                                          .fill = e->opt.fill,
                                          .observer = e->opt.observer,
                                          .places_of = e->n > 0 ? e->sizes[0].context : NULL};
    return tide_context_create(s->plan, &context, &s->context, err);
}

/// `bindings` [n] are what `s->shapes` says, by name.
static tide_status make_size(tide_shape_engine *e, const tide_shape_binding *bindings, size_t n, size *s,
                             tide_error *err) {
    tide_program *program = NULL;
    TIDE_TRY(e->opt.build(e->opt.build_ctx, bindings, n, e->n > 0 ? program_of(&e->sizes[0]) : NULL, &program, err));
    e->stats.n_inferred++;
    const tide_status st = as_runtime(make_context(e, program, s, err), err);
    const tide_graph *g = program->graph;
    if (st == TIDE_OK && s->shapes == NULL) {
        e->n_inputs = g->n_inputs;
        const tide_status made = TIDE_NEW(&s->shapes, g->n_inputs + 1, err, "for %zu inputs", g->n_inputs);
        for (size_t i = 0; made == TIDE_OK && i < g->n_inputs; i++) s->shapes[i] = g->values[g->inputs[i]].shape;
        tide_program_unref(program);
        return made;
    }
    tide_program_unref(program); // the plan holds it
    return st;
}

static void log_change(const tide_shape_engine *e, const size *s) {
    char shape[192];
    const tide_log_level level = e->opt.profiles ? TIDE_LOG_INFO : TIDE_LOG_DEBUG;
    const tide_graph *g = program_of(s)->graph;
    for (size_t i = 0; i < e->n_inputs; i++)
        tide_log(level, "shape engine '%s': input '%s' is %s", g->name, g->values[g->inputs[i]].name,
                 tide_shape_format(&s->shapes[i], shape, sizeof shape));
}

/// Of those beside the first and the present one, the one that was not used longest.
static void drop_oldest(tide_shape_engine *e) {
    size_t oldest = 0;
    for (size_t k = 1; k < e->n; k++) {
        if (k != e->current && (oldest == 0 || e->sizes[k].last_used < e->sizes[oldest].last_used)) oldest = k;
    }
    if (oldest == 0) return;
    size_deinit(&e->sizes[oldest]);
    e->sizes[oldest] = e->sizes[--e->n];
    if (e->current == e->n) e->current = oldest;
}

// ---- inputs ----

static bool has_shapes(const tide_shape_engine *e, const size *s, tide_tensor *const *tensors) {
    for (size_t i = 0; i < e->n_inputs; i++) {
        if (!tide_shape_equal(&s->shapes[i], tide_tensor_shape(tensors[i]))) return false;
    }
    return true;
}

static tide_status check_profile(const tide_shape_engine *e, tide_tensor *const *tensors, tide_error *err) {
    const tide_graph *g = program_of(&e->sizes[0])->graph;
    for (size_t r = 0; r < e->opt.n_ranges; r++) {
        for (size_t i = 0; i < e->n_inputs; i++) {
            if (strcmp(g->values[g->inputs[i]].name, e->profile[r].name) == 0)
                TIDE_TRY(tide_shape_range_admits(&e->profile[r], tide_tensor_shape(tensors[i]), err));
        }
    }
    return TIDE_OK;
}

static tide_status add_size(tide_shape_engine *e, tide_tensor *const *tensors, tide_error *err) {
    const tide_graph *g = program_of(&e->sizes[0])->graph;
    size s = {0};
    tide_shape_binding *bindings = NULL;
    tide_status st = TIDE_NEW(&s.shapes, e->n_inputs + 1, err, "for %zu inputs", e->n_inputs);
    if (st == TIDE_OK) st = TIDE_NEW(&bindings, e->n_inputs + 1, err, "for %zu inputs", e->n_inputs);
    for (size_t i = 0; st == TIDE_OK && i < e->n_inputs; i++) {
        s.shapes[i] = *tide_tensor_shape(tensors[i]);
        bindings[i] = (tide_shape_binding){.name = g->values[g->inputs[i]].name, .shape = s.shapes[i]};
    }
    if (st == TIDE_OK) st = TIDE_GROW(&e->sizes, &e->cap, e->n + 1, err, "for %zu sizes", e->n + 1);
    if (st == TIDE_OK) st = make_size(e, bindings, e->n_inputs, &s, err);
    tide_host_free(bindings);
    if (st == TIDE_OK) st = tide_context_set_inputs(s.context, tensors, e->n_inputs, err);
    if (st != TIDE_OK) {
        size_deinit(&s);
        return st;
    }
    e->sizes[e->n++] = s;
    return TIDE_OK;
}

static tide_status change_size(tide_shape_engine *e, tide_tensor *const *tensors, size_t *to, tide_error *err) {
    TIDE_TRY(check_profile(e, tensors, err));
    for (size_t k = 0; k < e->n; k++) {
        if (!has_shapes(e, &e->sizes[k], tensors)) continue;
        *to = k;
        return tide_context_set_inputs(e->sizes[k].context, tensors, e->n_inputs, err);
    }
    TIDE_TRY(add_size(e, tensors, err));
    *to = e->n - 1;
    return TIDE_OK;
}

tide_status tide_shape_engine_set_inputs(tide_shape_engine *e, tide_tensor *const *tensors, size_t n, tide_error *err) {
    size *now = &e->sizes[e->current];
    bool complete = n == e->n_inputs;
    for (size_t i = 0; complete && i < n; i++) complete = tensors[i] != NULL;
    // The context says what is wrong with the number, and what is missing.
    if (!complete || has_shapes(e, now, tensors)) {
        TIDE_TRY(tide_context_set_inputs(now->context, tensors, n, err));
        e->stats.n_unchanged++;
        now->last_used = ++e->clock;
        return TIDE_OK;
    }
    size_t to;
    TIDE_TRY(change_size(e, tensors, &to, err));
    e->current = to;
    e->sizes[to].last_used = ++e->clock;
    e->stats.n_changes++;
    log_change(e, &e->sizes[to]);
    if (e->n > e->opt.max_sizes + 1) drop_oldest(e);
    return TIDE_OK;
}

/// All sizes work in the buffer of the first, and one of them is the present one. For assertions.
static bool holds(const tide_shape_engine *e) {
    if (e->n == 0 || e->current >= e->n || e->n > e->opt.max_sizes + 2) return false;
    for (size_t k = 1; k < e->n; k++) {
        if (tide_context_buffer(e->sizes[k].context) != tide_context_buffer(e->sizes[0].context)) return false;
    }
    return true;
}

tide_status tide_shape_engine_run(tide_shape_engine *e, tide_error *err) {
    TIDE_ASSERT(holds(e));
    return tide_context_run(e->sizes[e->current].context, err);
}

tide_context *tide_shape_engine_context(const tide_shape_engine *e) { return e->sizes[e->current].context; }

void tide_shape_engine_get_stats(const tide_shape_engine *e, tide_shape_engine_stats *out) {
    *out = e->stats;
    out->n_sizes = e->n;
}

// ---- begin and end ----

static tide_status take_profile(tide_shape_engine *e, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&e->profile, e->opt.n_ranges + 1, err, "for a profile"));
    for (size_t r = 0; r < e->opt.n_ranges; r++) {
        e->profile[r] = e->opt.profile[r];
        TIDE_TRY(tide_shape_range_check(&e->profile[r], err));
    }
    return TIDE_OK;
}

static tide_status make_largest(tide_shape_engine *e, tide_error *err) {
    tide_shape_binding *bindings;
    size s = {0};
    TIDE_TRY(TIDE_NEW(&bindings, e->opt.n_ranges + 1, err, "for a profile"));
    for (size_t r = 0; r < e->opt.n_ranges; r++)
        bindings[r] = (tide_shape_binding){.name = e->profile[r].name, .shape = e->profile[r].max};
    tide_status st = TIDE_GROW(&e->sizes, &e->cap, 1, err, "for the largest size");
    if (st == TIDE_OK) st = make_size(e, bindings, e->opt.n_ranges, &s, err);
    tide_host_free(bindings);
    if (st != TIDE_OK) {
        size_deinit(&s);
        return st;
    }
    e->sizes[e->n++] = s;
    log_change(e, &e->sizes[0]);
    return TIDE_OK;
}

tide_status tide_shape_engine_create(const tide_shape_engine_options *opt, tide_shape_engine **out, tide_error *err) {
    tide_shape_engine *e;
    TIDE_TRY(TIDE_NEW(&e, 1, err, "for a shape engine"));
    e->opt = *opt;
    if (e->opt.max_sizes == 0) e->opt.max_sizes = 16;
    tide_status st = take_profile(e, err);
    if (st == TIDE_OK) st = make_largest(e, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "shape engine");
        tide_shape_engine_destroy(e);
        return st;
    }
    *out = e;
    return TIDE_OK;
}

void tide_shape_engine_destroy(tide_shape_engine *e) {
    if (e == NULL) return;
    for (size_t k = e->n; k-- > 0;) size_deinit(&e->sizes[k]);
    tide_host_free(e->sizes);
    tide_host_free(e->profile);
    tide_host_free(e);
}
