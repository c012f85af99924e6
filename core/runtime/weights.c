// SPDX-License-Identifier: MIT
//
// weights: the constants a run reads, held once per inference plan in blocks of kind Persistent (S27-28, S27-31).
//
// A program that was built with a weights registry has moved its constants there already; a plan of the same registry
// and alignment then takes references and copies nothing. Otherwise the plan copies, and the constants stay in the
// graph beside the copies: kernels may hold addresses of them, so they can only go with the program.
#include <inttypes.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/graph/sizes.h"
#include "core/runtime/inference_plan_internal.h"
#include "core/runtime/value_operand.h"

/// True when `t` is what a copy would be: a whole block of the right allocator, kind, size and alignment.
static bool is_in_place(const tide_inference_plan *p, const tide_tensor *t, const tide_allocator *persistent) {
    const tide_storage *s = tide_tensor_storage(t);
    uint64_t bytes;
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
    if (is_in_place(p, t, persistent)) {
        p->weights[value_i] = tide_tensor_ref(t);
        p->n_shared_weights++;
    } else {
        TIDE_TRY(copy_weight(p, value_i, err));
    }
    TIDE_TRY(tide__fix_constant(p->weights[value_i], p->program->graph->values[value_i].name, err));
    p->n_weights++;
    const tide_block *block = tide_tensor_storage(p->weights[value_i])->block;
    if (block != NULL) p->weight_bytes += block->mem.requested_bytes; // what is allocated cannot overflow
    return TIDE_OK;
}

tide_status tide__weights_preload(tide_inference_plan *p, tide_error *err) {
    const tide_graph *g = p->program->graph;
    tide_allocator *persistent;
    TIDE_TRY(tide_registry_acquire(p->registry, p->device, TIDE_KIND_PERSISTENT, &persistent, err));
    p->weights = tide_host_calloc(g->n_values + 1, sizeof *p->weights);
    bool *is_weight = tide_host_calloc(g->n_values + 1, sizeof *is_weight);
    tide_status st = TIDE_OK;
    if (p->weights == NULL || is_weight == NULL) {
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu values", g->n_values);
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

void tide__weights_drop(tide_inference_plan *p) {
    if (p->weights == NULL) return;
    for (size_t v = 0; v < p->program->graph->n_values; v++) tide_tensor_unref(p->weights[v]);
    tide_host_free(p->weights);
    p->weights = NULL;
}
