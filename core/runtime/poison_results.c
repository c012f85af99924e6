// SPDX-License-Identifier: MIT
//
// What poison looks like once a kernel has calculated with it. Used by context_poison.c.
//
// The pattern is a NaN in every float type, and one whose payload no library writes of its own accord. Arithmetic keeps
// the payload of a NaN, so a result that holds the pattern was not written, or was made from memory that nobody had
// written. Integers say nothing: -1 is an ordinary number.
#include <string.h>

#include "core/runtime/context_internal.h"

/// How a type of numbers looks: bytes of one element and the pattern of its infinity. Above it (signs aside) is NaN.
typedef struct float_type {
    size_t size_bytes;
    uint64_t infinity;
} float_type;

static bool float_type_of(tide_dtype dtype, float_type *out) {
    switch (dtype) {
    case TIDE_F64:
        *out = (float_type){8, UINT64_C(0x7FF0000000000000)};
        return true;
    case TIDE_F32:
        *out = (float_type){4, 0x7F800000};
        return true;
    case TIDE_F16:
        *out = (float_type){2, 0x7C00};
        return true;
    case TIDE_BF16:
        *out = (float_type){2, 0x7F80};
        return true;
    default:
        return false;
    }
}

/// First element with all bits set (`only_poison`) or that is any NaN; the number of elements when there is none.
#define FIND_NAN(n_bits)                                                                                               \
    static size_t find_nan_##n_bits(const unsigned char *data, size_t n, uint64_t infinity, bool only_poison) {        \
        const uint##n_bits##_t all = UINT##n_bits##_MAX, inf = (uint##n_bits##_t)infinity;                             \
        for (size_t i = 0; i < n; i++) {                                                                               \
            uint##n_bits##_t x;                                                                                        \
            memcpy(&x, data + i * sizeof x, sizeof x);                                                                 \
            if (only_poison ? x == all : (x & (all >> 1)) > inf) return i;                                             \
        }                                                                                                              \
        return n;                                                                                                      \
    }
FIND_NAN(16)
FIND_NAN(32)
FIND_NAN(64)

static size_t find_nan(const tide_operand *o, const float_type *f, bool only_poison) {
    const size_t n = o->size_bytes / f->size_bytes;
    if (f->size_bytes == 2) return find_nan_16(o->data, n, f->infinity, only_poison);
    if (f->size_bytes == 4) return find_nan_32(o->data, n, f->infinity, only_poison);
    return find_nan_64(o->data, n, f->infinity, only_poison);
}

static bool has_nan(const tide_operand *o) {
    float_type f;
    return o->data != NULL && float_type_of(o->dtype, &f) && find_nan(o, &f, false) < o->size_bytes / f.size_bytes;
}

static bool inputs_have_nan(const tide_context *c, size_t step_i) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    for (size_t k = 0; k < node->n_inputs; k++) {
        tide_operand now = c->steps[step_i].in[k];
        if (node->inputs[k] != TIDE_NO_VALUE) now.data = c->data[node->inputs[k]];
        if (has_nan(&now)) return true;
    }
    return false;
}

/// An input that dies here and lies where the output goes.
static bool overwrites(const tide_context *c, size_t step_i) {
    if (c->mode != TIDE_RUN_PLANNED) return false;
    const uint32_t out = c->plan->program->steps[step_i].kernel.node->outputs[0];
    if (out == TIDE_NO_VALUE) return false;
    const tide__sharing *s = &c->plan->sharing;
    for (uint32_t i = s->first[out]; i < s->first[out + 1]; i++) {
        const tide__need *need = &c->plan->needs[s->list[i]];
        if (need->birth_step < (int64_t)step_i && need->last_step == (int64_t)step_i) return true;
    }
    return false;
}

void tide__poison_look(tide_context *c, size_t step_i) {
    tide__context_step *s = &c->steps[step_i];
    s->overwrites = overwrites(c, step_i);
    s->had_nan = s->overwrites && inputs_have_nan(c, step_i);
}

/// A NaN with every bit set is what arithmetic on poison gives (the payload is kept) and what an element holds that
/// was never written. Where an operand has a NaN of its own it may have come from there: then nothing is said.
static tide_status check_result(const tide_context *c, size_t step_i, size_t port, tide_error *err) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    const tide_operand *o = &c->steps[step_i].out[port];
    float_type f;
    if (o->data == NULL || !float_type_of(o->dtype, &f)) return TIDE_OK;
    const size_t at = find_nan(o, &f, true), n = o->size_bytes / f.size_bytes;
    if (at == n) return TIDE_OK;
    if (c->steps[step_i].overwrites ? c->steps[step_i].had_nan : inputs_have_nan(c, step_i)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "tensor '%s': element %zu of %zu holds the poison pattern after step %zu: it was not written, or "
                     "made from memory that nobody had written",
                     c->plan->program->graph->values[node->outputs[port]].name, at, n, step_i);
}

tide_status tide__poison_results(const tide_context *c, size_t step_i, tide_error *err) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    for (size_t k = 0; k < node->n_outputs; k++) {
        if (node->outputs[k] != TIDE_NO_VALUE) TIDE_TRY(check_result(c, step_i, k, err));
    }
    return TIDE_OK;
}
