// SPDX-License-Identifier: MIT
//
// inference plan: program, memory plan and weights, checked against each other once and never changed again. See
// inference_plan.h.
#include "core/runtime/inference_plan.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/graph/region.h"
#include "core/graph/sizes.h"
#include "core/runtime/runtime_internal.h"
#include "core/runtime/value_operand.h"

// ---- weights ----
//
// The constants that a run reads, held once per inference plan in blocks of kind Persistent (S27-28, S27-31).
//
// A program that was built with a weights registry has moved its constants there already; a plan of the same registry
// and alignment then takes references and copies nothing. Otherwise the plan copies, and the constants stay in the
// graph beside the copies: kernels may hold addresses of them, so they can only go with the program.

/// True when `t` is what a copy would be: a whole block of the right allocator, kind, size and alignment; or a block of
/// the file's own bytes.
static bool is_in_place(const tide_inference_plan *p, uint32_t value_i, const tide_allocator *persistent) {
    const tide_tensor *t = p->program->graph->values[value_i].constant;
    const tide_storage *s = tide_tensor_storage(t);
    uint64_t bytes;
    if (tide_program_is_mapped(p->program, value_i) && s->block->kind == TIDE_KIND_PERSISTENT) return true;
    return s->block != NULL && s->block->owner == persistent && s->block->kind == TIDE_KIND_PERSISTENT &&
           tide_tensor_offset_bytes(t) == 0 && s->offset_bytes == 0 &&
           tide_align_up(tide_tensor_size_bytes(t), p->align_bytes, &bytes) && s->block->mem.requested_bytes == bytes &&
           (uintptr_t)s->block->mem.data % p->align_bytes == 0;
}

static tide_status copy_weight(tide_inference_plan *p, uint32_t value_i, tide_error *err) {
    const tide_value *v = &p->program->graph->values[value_i];
    const tide_tensor_spec where = {.dtype = v->dtype,
                                    .shape = v->shape,
                                    .device = p->device,
                                    .kind = TIDE_KIND_PERSISTENT,
                                    .align_bytes = p->align_bytes,
                                    .registry = p->registry,
                                    .tag = v->name};
    const tide_status st = tide_tensor_clone(v->constant, &where, &p->weights[value_i], err);
    if (st != TIDE_OK) tide_error_prefix(err, "weight '%s'", v->name);
    return st;
}

static tide_status load_one(tide_inference_plan *p, uint32_t value_i, const tide_allocator *persistent,
                            tide_error *err) {
    tide_tensor *t = p->program->graph->values[value_i].constant;
    if (tide_constant_is_blank(t))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "weight '%s' has no content: the program was built for its sizes alone",
                         p->program->graph->values[value_i].name);
    if (is_in_place(p, value_i, persistent)) {
        p->weights[value_i] = tide_tensor_ref(t);
        p->n_shared_weights++;
    } else {
        TIDE_TRY(copy_weight(p, value_i, err));
    }
    TIDE_TRY(tide__fix_constant(p->weights[value_i], p->program->graph->values[value_i].name, err));
    TIDE_ASSERT(tide_tensor_is_contiguous(p->weights[value_i]));
    p->n_weights++;
    const tide_block *block = tide_tensor_storage(p->weights[value_i])->block;
    if (block != NULL) p->weight_bytes += block->mem.requested_bytes; // what is allocated cannot overflow
    return TIDE_OK;
}

/// Copy the weights into Persistent memory, or share what the program has placed there already.
static tide_status preload_weights(tide_inference_plan *p, tide_error *err) {
    const tide_graph *g = p->program->graph;
    tide_allocator *persistent;
    TIDE_TRY(tide_registry_acquire(p->registry, p->device, TIDE_KIND_PERSISTENT, &persistent, err));
    p->weights = tide_host_calloc(g->n_values + 1, sizeof *p->weights);
    bool *is_weight = tide_host_calloc(g->n_values + 1, sizeof *is_weight);
    tide_status st = TIDE_OK;
    if (p->weights == NULL || is_weight == NULL) {
        st = TIDE_NO_MEMORY(err, "for %zu values", g->n_values);
        goto done;
    }
    tide__mark_weights(g, &p->program->order, is_weight);
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (is_weight[v]) TIDE_TRY_OR(done, st, load_one(p, v, persistent, err));
    }
    tide_log(TIDE_LOG_INFO,
             "inference plan '%s': preload weights: %zu weights, %" PRIu64 " B, %zu of them shared with the program",
             g->name, p->n_weights, p->weight_bytes, p->n_shared_weights);
done:
    tide_allocator_unref(persistent);
    tide_host_free(is_weight);
    return st;
}

static void drop_weights(tide_inference_plan *p) {
    if (p->weights == NULL) return;
    for (size_t v = 0; v < p->program->graph->n_values; v++) tide_tensor_unref(p->weights[v]);
    tide_host_free(p->weights);
    p->weights = NULL;
}

enum { DEFAULT_ALIGN_BYTES = 256 };

// ---- stages ----

static tide_status check_runnable(const tide_program *program, tide_error *err) {
    if (program->no_kernels)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the program was built without kernels: it can be planned but not run");
    for (size_t i = 0; i < program->n_steps; i++) {
        const tide_kernel *k = &program->steps[i].kernel;
        if ((k->def->flags & TIDE_OP_PLAN_ONLY) == 0 && k->def->run != NULL) continue;
        if (tide_node_is_control(k->node)) continue;
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED,
                         "node '%s': operator %s has no kernel, the program can be planned but not run", k->node->name,
                         k->node->op_type);
    }
    return TIDE_OK;
}

static tide_status check_request(const tide_program *program, const tide_inference_plan_options *opt, tide_error *err) {
    TIDE_TRY(tide_device_require(opt->device, err));
    if (opt->align_bytes != 0 && !tide_is_pow2(opt->align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment of %zu B is no power of two", opt->align_bytes);
    if (opt->memory_plan != NULL && !opt->memory_plan->verified)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "memory plan '%s' has not been verified", opt->memory_plan->strategy);
    if (opt->memory_plan != NULL && !tide_is_pow2(opt->memory_plan->align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "memory plan '%s': alignment of %" PRIu64 " B is no power of two",
                         opt->memory_plan->strategy, opt->memory_plan->align_bytes);
    return check_runnable(program, err);
}

/// The smallest of a memory plan's alignments is the one it was asked for: scratch and wide elements only raise it.
/// What lies in buffers that a run does not take has no say.
static size_t choose_alignment(const tide_inference_plan_options *opt) {
    if (opt->align_bytes != 0) return opt->align_bytes;
    uint64_t align = 0;
    for (size_t i = 0; opt->memory_plan != NULL && i < opt->memory_plan->lifetimes.n; i++) {
        const tide_lifetime *x = &opt->memory_plan->lifetimes.items[i];
        if (x->role == TIDE_ROLE_WEIGHT) continue; // one in a file lies as it may
        const bool is_here = x->kind == TIDE_KIND_WORKSPACE && tide_device_equal(x->device, opt->device);
        if ((x->persistent || is_here) && (align == 0 || x->align_bytes < align)) align = x->align_bytes;
    }
    return align != 0 ? (size_t)align : DEFAULT_ALIGN_BYTES;
}

static tide_status take_memory_plan(tide_inference_plan *p, const tide_memory_plan *plan, tide_error *err) {
    if (plan == NULL) return tide__sharing_check(p->program, p->needs, NULL, NULL, &p->sharing, err);
    p->places = tide_host_calloc(p->program->graph->n_values + 1, sizeof *p->places);
    p->scratch = tide_host_calloc(p->program->n_steps + 1, sizeof *p->scratch);
    if (p->places == NULL || p->scratch == NULL)
        return TIDE_NO_MEMORY(err, "for %zu values", p->program->graph->n_values);
    TIDE_TRY(tide__places_find(p->program, p->needs, plan, p->device, p->places, p->scratch, err));
    TIDE_TRY(tide__sharing_check(p->program, p->needs, p->places, p->scratch, &p->sharing, err));
    TIDE_TRY(tide_memory_plan_copy(plan, &p->memory, err));
    p->buffer = tide_memory_plan_buffer(p->memory, p->device, TIDE_KIND_WORKSPACE);
    tide_log(TIDE_LOG_INFO, "inference plan '%s': check memory plan: '%s', %zu entries, buffer of %" PRIu64 " B",
             p->program->graph->name, plan->strategy, plan->lifetimes.n, p->buffer != NULL ? p->buffer->bytes : 0);
    return TIDE_OK;
}

static tide_status fill_plan(tide_inference_plan *p, const tide_inference_plan_options *opt, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&p->needs, p->program->graph->n_values + 1, err, "for %zu values", p->program->graph->n_values));
    TIDE_TRY(tide__needs_of(p->program, p->needs, err));
    if (opt->memory_plan != NULL) tide__needs_leave(p->program, opt->memory_plan, p->needs);
    tide_status st = take_memory_plan(p, opt->memory_plan, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "inference plan: check memory plan");
        return st;
    }
    TIDE_ASSERT(p->buffer == NULL || p->memory != NULL);
    st = preload_weights(p, err);
    if (st != TIDE_OK) tide_error_prefix(err, "inference plan: preload weights");
    return st;
}

tide_status tide_inference_plan_create(tide_program *program, const tide_inference_plan_options *opt,
                                       tide_inference_plan **out, tide_error *err) {
    static const tide_inference_plan_options defaults = {.device = {TIDE_DEVICE_CPU, 0}};
    if (opt == NULL) opt = &defaults;
    TIDE_TRY(check_request(program, opt, err));
    tide_registry *registry = opt->registry != NULL ? opt->registry : tide_registry_default();
    if (registry == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "inference plan: no memory for the registry");
    tide_inference_plan *p = tide_host_calloc(1, sizeof *p);
    if (p == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "inference plan: no memory");
    atomic_init(&p->refs, 1);
    p->program = tide_program_ref(program);
    p->device = opt->device;
    p->registry = registry;
    p->align_bytes = choose_alignment(opt);
    const tide_status st = fill_plan(p, opt, err);
    if (st != TIDE_OK) {
        tide_inference_plan_unref(p);
        return st;
    }
    TIDE_ASSERT(p->n_shared_weights <= p->n_weights && tide_is_pow2(p->align_bytes));
    *out = p;
    return TIDE_OK;
}

tide_inference_plan *tide_inference_plan_ref(tide_inference_plan *p) {
    const uint32_t before = atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    TIDE_ASSERT(before > 0 && before < UINT32_MAX);
    return p;
}

void tide_inference_plan_unref(tide_inference_plan *p) {
    if (p == NULL) return;
    const uint32_t before = atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel);
    TIDE_ASSERT(before > 0);
    if (before != 1) return;
    drop_weights(p);
    tide_memory_plan_destroy(p->memory);
    tide_host_free(p->places);
    tide_host_free(p->scratch);
    tide__sharing_deinit(&p->sharing);
    tide_host_free(p->needs);
    tide_program_unref(p->program);
    tide_host_free(p);
}

const tide_memory_plan *tide_inference_plan_memory(const tide_inference_plan *p) { return p->memory; }

void tide_inference_plan_weights(const tide_inference_plan *p, size_t *n, uint64_t *bytes) {
    if (n != NULL) *n = p->n_weights;
    if (bytes != NULL) *bytes = p->weight_bytes;
}

// ---- hash ----

static uint64_t hash_value(const tide_inference_plan *p, uint32_t v, uint64_t h) {
    const tide_value *value = &p->program->graph->values[v];
    h = tide_hash_u64(h, (uint64_t)value->dtype);
    h = tide_hash_u64(h, (uint64_t)value->shape.rank);
    for (int32_t d = 0; d < value->shape.rank; d++) h = tide_hash_u64(h, (uint64_t)value->shape.dims[d]);
    const tide_shape *most = tide_value_most(value);
    for (int32_t d = 0; value->is_bounded && d < most->rank; d++) h = tide_hash_u64(h, (uint64_t)most->dims[d]);
    if (p->places != NULL) h = tide_hash_u64(h, p->places[v].offset_bytes);
    const tide_tensor *w = p->weights[v];
    if (w == NULL || tide_tensor_size_bytes(w) == 0) return h;
    // Without asking guards: a hash changes nothing, and contexts read the weights all the same.
    const char *slice = tide_storage_data(tide_tensor_storage(w));
    return tide_hash_bytes(h, slice + tide_tensor_offset_bytes(w), tide_tensor_size_bytes(w));
}

uint64_t tide_inference_plan_hash(const tide_inference_plan *p) {
    uint64_t h = TIDE_HASH_START;
    h = tide_hash_u64(h, p->align_bytes);
    h = tide_hash_u64(h, p->buffer != NULL ? p->buffer->bytes : 0);
    for (size_t i = 0; i < p->program->n_steps; i++) {
        h = tide_hash_u64(h, p->program->steps[i].node);
        h = tide_hash_u64(h, p->program->steps[i].kernel.workspace_bytes);
        if (p->scratch != NULL) h = tide_hash_u64(h, p->scratch[i].offset_bytes);
    }
    for (uint32_t v = 0; v < p->program->graph->n_values; v++) h = hash_value(p, v, h);
    return h;
}
