// SPDX-License-Identifier: MIT
//
// Fill mode poison: which bytes of a context's memory may be touched, and when.
//
//     buffer    | x: its bytes | red zone | freed: poison | not planned: poison |
//                 ^ open while x is alive
//
//     created          all poison, all closed
//     x is allocated   its place must be poison from end to end, else it was written while no value owned it; opened
//     x is freed       its red zone (from its last byte to the end of its place) must be poison; all poison and
//                      closed again
//     end of a run     the whole buffer must be poison: no value is alive
//
// "Closed" means poisoned for AddressSanitizer; in other builds it has no effect. In naive mode values have blocks of
// their own and the same rules hold; for graph outputs too, from the begin of a run, but these are never closed:
// callers use them.
//
// Where tensors lie on each other's bytes (sharing.h) these rules hold for bytes that no alias owns: a view begins in
// bytes that are in use, and when a value ends its bytes stay with the aliases that are still alive there.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/memory/poison.h"
#include "core/runtime/runtime_internal.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }
static const tide_node *node_of(const tide_context *c, size_t step_i) {
    return c->plan->program->steps[step_i].kernel.node;
}

// ---- results ----
//
// How poison is found in what a kernel calculated.
//
// The pattern is a NaN in every float type, and its payload is one that no library writes by itself. Arithmetic keeps
// the payload of a NaN, so a result that holds the pattern was not written, or was made from memory that was not
// written. Integers cannot be checked: -1 is an ordinary number.

/// A float type: bytes of one element and the pattern of its infinity. Above it (without the sign) is NaN.
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
    if (c->mode != TIDE_RUN_PLANNED || c->steps[step_i].control) return false;
    TIDE_ASSERT(c->plan->program->steps[step_i].kernel.node->n_outputs > 0);
    const uint32_t out = c->plan->program->steps[step_i].kernel.node->outputs[0];
    if (out == TIDE_NO_VALUE) return false;
    const tide__sharing *s = &c->plan->sharing;
    for (uint32_t i = s->first[out]; i < s->first[out + 1]; i++) {
        const tide__need *need = &c->plan->needs[s->list[i]];
        if (need->birth_step < (int64_t)step_i && need->last_step == (int64_t)step_i) return true;
    }
    return false;
}

/// Before a step that overwrites an input: note what check_results needs to know of the inputs.
static void note_inputs(tide_context *c, size_t step_i) {
    tide__context_step *s = &c->steps[step_i];
    s->overwrites = overwrites(c, step_i);
    s->had_nan = s->overwrites && inputs_have_nan(c, step_i);
}

/// A NaN with every bit set is what arithmetic on poison gives (the payload is kept) and what an element holds that
/// was never written. Where an operand has a NaN of its own it may have come from there: then it is no fault.
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
                     "made from memory that was never written",
                     c->plan->program->graph->values[node->outputs[port]].name, at, n, step_i);
}

/// No result of step `step_i` holds the pattern as a number.
static tide_status check_results(const tide_context *c, size_t step_i, tide_error *err) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    for (size_t k = 0; k < node->n_outputs; k++) {
        if (node->outputs[k] != TIDE_NO_VALUE) TIDE_TRY(check_result(c, step_i, k, err));
    }
    return TIDE_OK;
}

// ---- slots ----

/// The place of one tensor or of one step's scratch.
typedef struct slot {
    const char *what, *name; ///< "tensor", "output" or "scratch", and the name of the value or node
    unsigned char *data;
    size_t size_bytes; ///< of the tensor; the rest of the slot is its red zone
    size_t slot_bytes;
    uint64_t offset_bytes;     ///< in the plan buffer; TIDE_NO_OFFSET: a block of its own
    const uint32_t *relatives; ///< [n_relatives] aliases: values that lie on some of its bytes
    size_t n_relatives;
} slot;

static bool slot_in_buffer(const tide_context *c, const tide__place *place, slot *out) {
    if (c->buffer == NULL || place->offset_bytes == TIDE_NO_OFFSET) return false;
    out->data = (unsigned char *)c->buffer->mem.data + place->offset_bytes;
    out->slot_bytes = (size_t)place->slot_bytes;
    out->offset_bytes = place->offset_bytes;
    TIDE_ASSERT(place->offset_bytes + place->slot_bytes <= c->stats.buffer_bytes);
    return true;
}

static bool slot_in_block(const tide_block *block, slot *out) {
    if (block == NULL) return false;
    out->data = block->mem.data;
    out->slot_bytes = block->mem.requested_bytes;
    return true;
}

static bool slot_of_intermediate(const tide_context *c, uint32_t value_i, slot *out) {
    *out = (slot){.what = "tensor",
                  .name = graph_of(c)->values[value_i].name,
                  .size_bytes = (size_t)c->plan->needs[value_i].size_bytes,
                  .offset_bytes = TIDE_NO_OFFSET};
    if (c->plan->needs[value_i].bounded) out->size_bytes = tide_tensor_size_bytes(c->values[value_i]);
    if (c->mode == TIDE_RUN_PLANNED) {
        const tide__sharing *s = &c->plan->sharing;
        out->relatives = s->list + s->first[value_i];
        out->n_relatives = s->first[value_i + 1] - s->first[value_i];
        return slot_in_buffer(c, &c->plan->places[value_i], out);
    }
    return slot_in_block(tide_tensor_storage(c->values[value_i])->block, out);
}

static bool slot_of_scratch(const tide_context *c, size_t step_i, slot *out) {
    *out = (slot){.what = "scratch",
                  .name = c->steps[step_i].scratch_tag,
                  .size_bytes = c->plan->program->steps[step_i].kernel.workspace_bytes,
                  .offset_bytes = TIDE_NO_OFFSET};
    if (out->size_bytes == 0) return false;
    if (c->mode == TIDE_RUN_PLANNED) return slot_in_buffer(c, &c->plan->scratch[step_i], out);
    return slot_in_block(c->scratch, out);
}

/// A graph output; its block's padding is a red zone as long as the block is the one the runtime made.
static bool slot_of_output(const tide_context *c, size_t i, slot *out) {
    if (c->outputs[i] == NULL) return false; // sized while running, and not made yet
    const tide_storage *s = tide_tensor_storage(c->outputs[i]);
    *out = (slot){.what = "output",
                  .name = graph_of(c)->values[graph_of(c)->outputs[i]].name,
                  .size_bytes = tide_tensor_size_bytes(c->outputs[i]),
                  .offset_bytes = TIDE_NO_OFFSET};
    if (out->size_bytes == 0) return false;
    out->data = tide_tensor_data(c->outputs[i]);
    const bool ours = s->block->id == c->output_blocks[i];
    out->slot_bytes = ours ? tide_tensor_capacity_bytes(c->outputs[i]) : out->size_bytes;
    return out->data != NULL;
}

static bool slot_of_value(const tide_context *c, uint32_t value_i, slot *out) {
    if (c->plan->needs[value_i].intermediate) return slot_of_intermediate(c, value_i, out);
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        if (graph_of(c)->outputs[i] == value_i) return slot_of_output(c, i, out);
    }
    return false;
}

static const char *place_text(const slot *s, char *buf, size_t buf_bytes) {
    if (s->offset_bytes == TIDE_NO_OFFSET)
        snprintf(buf, buf_bytes, "a block of %zu B", s->slot_bytes);
    else
        snprintf(buf, buf_bytes, "%zu B at offset %" PRIu64 " of the plan buffer", s->slot_bytes, s->offset_bytes);
    return buf;
}

/// All poison: no value owns it. Memory of this context stays off limits; a block that is given back is opened, for its
/// allocator touches it.
static void close_bytes(const slot *s, size_t from, size_t n) {
    TIDE_ASSERT(from <= s->slot_bytes && n <= s->slot_bytes - from);
    tide_asan_unpoison(s->data + from, n);
    tide_poison_fill(s->data + from, n);
    if (s->offset_bytes != TIDE_NO_OFFSET) tide_asan_poison(s->data + from, n);
}

static void close_slot(const slot *s) { close_bytes(s, 0, s->slot_bytes); }

// ---- bytes that no alias owns ----

/// At which moment aliases count as alive: before a step those that it does not write, after it those that it is not
/// the last to need.
typedef struct moment {
    int64_t step;
    bool after;
} moment;

static bool is_alive(const tide_context *c, uint32_t value_i, moment t) {
    const tide__need *need = &c->plan->needs[value_i];
    if (!t.after) return need->birth_step < t.step && need->last_step >= t.step;
    if (need->birth_step > t.step || need->last_step < t.step) return false;
    return need->last_step > t.step || !tide__value_ends(c, value_i, (size_t)t.step);
}

/// The end of the alias of `s` that is alive at `t` and has the byte at `at`; `at` when none has it.
static uint64_t owned_until(const tide_context *c, const slot *s, moment t, uint64_t at) {
    for (size_t i = 0; i < s->n_relatives; i++) {
        const tide__place *p = &c->plan->places[s->relatives[i]];
        if (is_alive(c, s->relatives[i], t) && p->offset_bytes <= at && at - p->offset_bytes < p->slot_bytes)
            return p->offset_bytes + p->slot_bytes;
    }
    return at;
}

/// Where the next such alias begins behind `at`; `end` when none does.
static uint64_t free_until(const tide_context *c, const slot *s, moment t, uint64_t at, uint64_t end) {
    for (size_t i = 0; i < s->n_relatives; i++) {
        const uint64_t begin = c->plan->places[s->relatives[i]].offset_bytes;
        if (is_alive(c, s->relatives[i], t) && at < begin && begin < end) end = begin;
    }
    return end;
}

/// The next bytes of the slot, from *begin on, that no live alias owns: [*begin, *end). @return false: none
static bool next_free(const tide_context *c, const slot *s, moment t, size_t *begin, size_t *end) {
    *end = s->slot_bytes;
    if (s->n_relatives == 0) return *begin < *end; // also a block of its own, which has no offset
    uint64_t at = s->offset_bytes + *begin;
    for (uint64_t next; (next = owned_until(c, s, t, at)) != at;) at = next;
    TIDE_ASSERT(at >= s->offset_bytes + *begin);
    *end = (size_t)(free_until(c, s, t, at, s->offset_bytes + s->slot_bytes) - s->offset_bytes);
    *begin = (size_t)(at - s->offset_bytes);
    return *begin < *end;
}

// ---- before a step ----

static tide_status open_slot(const tide_context *c, const slot *s, bool barred, size_t step_i, tide_error *err) {
    tide_asan_unpoison(s->data, s->slot_bytes);
    for (size_t at = 0, end; next_free(c, s, (moment){(int64_t)step_i, false}, &at, &end); at = end) {
        const size_t n = tide_poison_find(s->data + at, end - at);
        if (n == end - at) continue;
        char place[96];
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                         "%s '%s': byte %zu of its place (%s) was written while it was free: found before step %zu",
                         s->what, s->name, at + n, place_text(s, place, sizeof place), step_i);
    }
    if (barred) tide_asan_poison(s->data + s->size_bytes, s->slot_bytes - s->size_bytes);
    return TIDE_OK;
}

tide_status tide__poison_before_step(tide_context *c, size_t step_i, tide_error *err) {
    if (c->fill != TIDE_FILL_POISON) return TIDE_OK;
    const tide_node *node = node_of(c, step_i);
    slot s;
    for (size_t k = 0; k < node->n_outputs; k++) {
        const uint32_t v = node->outputs[k];
        if (v == TIDE_NO_VALUE || !slot_of_value(c, v, &s)) continue;
        // A region gives a bounded value its size later, and more than once.
        const bool barred = c->plan->needs[v].intermediate && !(c->plan->needs[v].bounded && c->steps[step_i].control);
        TIDE_TRY(open_slot(c, &s, barred, step_i, err));
    }
    if (!c->steps[step_i].control) note_inputs(c, step_i);
    return slot_of_scratch(c, step_i, &s) ? open_slot(c, &s, true, step_i, err) : TIDE_OK;
}

// ---- after a step ----

static tide_status check_red_zone(const slot *s, const char *when, tide_error *err) {
    TIDE_ASSERT(s->size_bytes <= s->slot_bytes);
    tide_asan_unpoison(s->data, s->slot_bytes);
    const size_t zone = s->slot_bytes - s->size_bytes;
    const size_t at = tide_poison_find(s->data + s->size_bytes, zone);
    if (at == zone) return TIDE_OK;
    char place[96];
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "%s '%s' of %zu B: byte %zu behind its end was written, in a red zone of %zu B (its place: %s): "
                     "found %s",
                     s->what, s->name, s->size_bytes, at, zone, place_text(s, place, sizeof place), when);
}

static tide_status end_slot(const tide_context *c, const slot *s, size_t step_i, tide_error *err) {
    char when[48];
    snprintf(when, sizeof when, "after step %zu", step_i);
    TIDE_TRY(check_red_zone(s, when, err));
    for (size_t at = 0, end; next_free(c, s, (moment){(int64_t)step_i, true}, &at, &end); at = end)
        close_bytes(s, at, end - at);
    return TIDE_OK;
}

static tide_status end_if_last(tide_context *c, uint32_t value_i, size_t step_i, tide_error *err) {
    slot s;
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    if (!c->plan->needs[value_i].intermediate || !tide__value_ends(c, value_i, step_i)) return TIDE_OK;
    return slot_of_intermediate(c, value_i, &s) ? end_slot(c, &s, step_i, err) : TIDE_OK;
}

tide_status tide__poison_end_value(tide_context *c, uint32_t value_i, size_t next, tide_error *err) {
    slot s;
    if (c->fill != TIDE_FILL_POISON || !slot_of_intermediate(c, value_i, &s)) return TIDE_OK;
    return end_slot(c, &s, next - 1, err);
}

tide_status tide__poison_after_step(tide_context *c, size_t step_i, tide_error *err) {
    if (c->fill != TIDE_FILL_POISON) return TIDE_OK;
    const tide_node *node = node_of(c, step_i);
    slot s;
    // Overruns first: a result may have been made from the bytes they hit.
    if (slot_of_scratch(c, step_i, &s)) TIDE_TRY(end_slot(c, &s, step_i, err));
    // What a region makes is written where it is closed, out of results that were looked at.
    if (!c->steps[step_i].control) TIDE_TRY(check_results(c, step_i, err));
    for (size_t k = 0; k < node->n_inputs; k++) TIDE_TRY(end_if_last(c, node->inputs[k], step_i, err));
    for (size_t k = 0; k < node->n_outputs; k++) TIDE_TRY(end_if_last(c, node->outputs[k], step_i, err));
    return TIDE_OK;
}

// ---- whole runs ----

void tide__poison_open(tide_context *c) {
    if (c->fill == TIDE_FILL_POISON && c->buffer != NULL) tide_asan_poison(c->buffer->mem.data, c->stats.buffer_bytes);
}

void tide__poison_close(tide_context *c) {
    if (c->fill == TIDE_FILL_POISON && c->buffer != NULL)
        tide_asan_unpoison(c->buffer->mem.data, c->stats.buffer_bytes);
}

void tide__poison_begin(tide_context *c) {
    slot s;
    for (size_t i = 0; c->fill == TIDE_FILL_POISON && i < graph_of(c)->n_outputs; i++) {
        if (slot_of_output(c, i, &s)) close_slot(&s);
    }
}

/// The value or scratch whose place byte `at` of the buffer is, for the message; NULL: none.
static const char *name_at(const tide_context *c, size_t at) {
    for (uint32_t v = 0; v < graph_of(c)->n_values; v++) {
        const tide__place *p = &c->plan->places[v];
        if (p->offset_bytes != TIDE_NO_OFFSET && p->offset_bytes <= at && at - p->offset_bytes < p->slot_bytes)
            return graph_of(c)->values[v].name;
    }
    return NULL;
}

static tide_status check_buffer(tide_context *c, tide_error *err) {
    const size_t n = (size_t)c->stats.buffer_bytes;
    tide_asan_unpoison(c->buffer->mem.data, n);
    const size_t at = tide_poison_find(c->buffer->mem.data, n);
    if (at == n) {
        tide_asan_poison(c->buffer->mem.data, n);
        return TIDE_OK;
    }
    const char *name = name_at(c, at);
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                     "plan buffer of %zu B: byte %zu was written while it was free (the place of %s%s%s): found at "
                     "the end of the run",
                     n, at, name != NULL ? "tensor '" : "", name != NULL ? name : "no tensor", name != NULL ? "'" : "");
}

static tide_status check_end(tide_context *c, tide_error *err) {
    slot s;
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        if (slot_of_output(c, i, &s)) TIDE_TRY(check_red_zone(&s, "at the end of the run", err));
    }
    return c->buffer != NULL ? check_buffer(c, err) : TIDE_OK;
}

tide_status tide__poison_end(tide_context *c, tide_error *err) {
    if (c->fill != TIDE_FILL_POISON) return TIDE_OK;
    const tide_status st = check_end(c, err);
    if (st != TIDE_OK) tide__poison_abandon(c);
    return st;
}

void tide__poison_abandon(tide_context *c) {
    if (c->fill != TIDE_FILL_POISON) return;
    if (c->buffer != NULL) {
        const slot all = {.data = c->buffer->mem.data, .slot_bytes = (size_t)c->stats.buffer_bytes};
        close_slot(&all);
        return;
    }
    slot s;
    for (uint32_t v = 0; c->mode == TIDE_RUN_NAIVE && v < graph_of(c)->n_values; v++) {
        if (c->plan->needs[v].intermediate && slot_of_intermediate(c, v, &s)) close_slot(&s);
    }
    s = (slot){.offset_bytes = TIDE_NO_OFFSET};
    if (slot_in_block(c->scratch, &s)) close_slot(&s);
}
