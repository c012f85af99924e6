// SPDX-License-Identifier: MIT
//
// Two runs of one model, tensor by tensor. See run_compare.h.
//
//     naive      notes a hash of each tensor when a step has made it
//     planned    compares its own with these, and before each step what the step reads with what it was when made
//     copies     of the first tensor that differs, from one more run in each mode
//     writer     one more planned run: behind which step the overwritten tensor is another
//
// An observer of the context looks on, so that what is compared are runs like any other.
#include "core/runtime/run_compare.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/runtime/runtime_internal.h"

/// A tensor that a step of the naive run has made.
typedef struct made_tensor {
    uint32_t value;
    uint64_t hash;
} made_tensor;

/// What a value was when the planned run last made it.
typedef struct origin {
    uint64_t hash;
    uint64_t turn; ///< of the step that made it, from 1; 0: none has
    size_t step;
} origin;

typedef enum look { NOTE, COMPARE, COPY, FIND_WRITER } look;

typedef struct comparison {
    const tide_program *p;
    const bool *is_read; ///< [n_values] by a step or as an output
    look look;
    const tide_context *c; ///< the one that runs
    uint64_t turn;         ///< of steps in this run, from 1
    made_tensor *made;     ///< [n_made] of the naive run in the order in which they were made; owned
    size_t n_made, cap_made, next;
    origin *origins; ///< [n_values], owned
    // what was found: of the first turn that differs
    uint64_t turn_found, turn_made; ///< turn_made: when the overwritten tensor was
    uint64_t hash_made;
    tide_run_difference *out;
    tide_tensor *copy; ///< of out->value in the run that goes on; owned
    tide_status st;
    tide_error err;
} comparison;

// ---- one tensor ----

static tide_status hash_of(const tide_tensor *t, uint64_t *out, tide_error *err) {
    const void *data;
    const size_t n = tide_tensor_size_bytes(t);
    *out = TIDE_HASH_START;
    if (n == 0) return TIDE_OK;
    TIDE_TRY(tide_tensor_read(t, &data, err));
    *out = tide_hash_bytes(*out, data, n);
    return TIDE_OK;
}

static tide_status copy_value(comparison *x, uint32_t value) {
    static const tide_tensor_spec here = {.device = TIDE_CPU, .kind = TIDE_KIND_HOST_PAGEABLE, .tag = "compared"};
    const tide_tensor *t = tide_context_value(x->c, value);
    return t != NULL ? tide_tensor_clone(t, &here, &x->copy, &x->err) : TIDE_OK;
}

// ---- what is done at a step ----

static void found_at(comparison *x, size_t step) {
    if (!x->out->is_equal) return;
    x->out->is_equal = false;
    x->out->step = step;
    x->turn_found = x->turn;
}

/// What a step of the planned run reads must be what was made.
static tide_status check_reads(comparison *x, size_t step) {
    const tide_node *node = x->p->steps[step].kernel.node;
    for (size_t i = 0; i < node->n_inputs && x->out->is_equal; i++) {
        const uint32_t v = node->inputs[i];
        const tide_tensor *t = v != TIDE_NO_VALUE && x->origins[v].turn != 0 ? tide_context_value(x->c, v) : NULL;
        uint64_t hash;
        if (t == NULL) continue;
        TIDE_TRY(hash_of(t, &hash, &x->err));
        if (hash == x->origins[v].hash) continue;
        found_at(x, step);
        x->out->overwritten = v;
        x->out->made_by = x->origins[v].step;
        x->turn_made = x->origins[v].turn;
        x->hash_made = x->origins[v].hash;
    }
    return TIDE_OK;
}

static tide_status note_made(comparison *x, uint32_t value, uint64_t hash) {
    if (tide_host_grow(&x->made, &x->cap_made, x->n_made + 1, sizeof *x->made) != TIDE_OK)
        return TIDE_NO_MEMORY(&x->err, "to compare %zu tensors", x->n_made + 1);
    x->made[x->n_made++] = (made_tensor){value, hash};
    return TIDE_OK;
}

static void compare_made(comparison *x, size_t step, uint32_t value, uint64_t hash) {
    x->origins[value] = (origin){hash, x->turn, step};
    // Behind the first difference the two may go different ways.
    if (x->turn_found != 0 && x->turn_found != x->turn) return;
    const bool is_same = x->next < x->n_made && x->made[x->next].value == value && x->made[x->next].hash == hash;
    x->next++;
    if (is_same) {
        if (x->out->is_equal) x->out->n_compared++;
        return;
    }
    found_at(x, step);
    if (x->out->value == TIDE_NO_VALUE) x->out->value = value;
}

/// What a step has made, and a later one or the caller reads. What a naive run has freed again, no step reads.
static tide_status take_made(comparison *x, size_t step) {
    const tide_program_step *s = &x->p->steps[step];
    if (s->jump != 0) return TIDE_OK; // opens or closes a body
    for (size_t i = 0; i < s->kernel.node->n_outputs; i++) {
        const uint32_t v = s->kernel.node->outputs[i];
        const tide_tensor *t = v != TIDE_NO_VALUE && x->is_read[v] ? tide_context_value(x->c, v) : NULL;
        uint64_t hash;
        if (t == NULL) continue;
        TIDE_TRY(hash_of(t, &hash, &x->err));
        if (x->look == NOTE)
            TIDE_TRY(note_made(x, v, hash));
        else
            compare_made(x, step, v, hash);
    }
    return TIDE_OK;
}

static tide_status look_for_writer(comparison *x, size_t step) {
    const tide_tensor *t = tide_context_value(x->c, x->out->overwritten);
    uint64_t hash;
    if (x->turn <= x->turn_made || x->turn >= x->turn_found || x->out->overwritten_by != SIZE_MAX || t == NULL)
        return TIDE_OK;
    TIDE_TRY(hash_of(t, &hash, &x->err));
    if (hash != x->hash_made) x->out->overwritten_by = step;
    return TIDE_OK;
}

static tide_status left(comparison *x, size_t step) {
    switch (x->look) {
    case COPY:
        if (x->turn == x->turn_found) return copy_value(x, x->out->value);
        return TIDE_OK;
    case FIND_WRITER:
        return look_for_writer(x, step);
    default:
        return take_made(x, step);
    }
}

static void on_scope(void *self, const tide_scope_event *e) {
    comparison *x = self;
    if (e->scope->kind != TIDE_SCOPE_OPERATOR || x->st != TIDE_OK) return;
    const size_t step = (size_t)e->scope->index;
    TIDE_ASSERT(step < x->p->n_steps);
    if (!e->enter) {
        x->st = left(x, step);
        return;
    }
    x->turn++;
    if (x->look == COMPARE) x->st = check_reads(x, step);
    if (x->look == COPY && step == x->out->step && x->turn < x->turn_found) x->out->nth++;
}

static void on_memory(void *self, const tide_memory_event *e) {
    (void)self;
    (void)e;
}

// ---- runs ----

static tide_status run_once(comparison *x, tide_inference_plan *plan, tide_tensor *const *inputs, size_t n,
                            tide_run_mode mode, tide_fill fill, look what, tide_error *err) {
    const tide_observer watch = {.self = x, .on_memory = on_memory, .on_scope = on_scope, .no_time = true};
    const tide_context_options opt = {.mode = mode, .fill = fill, .observer = &watch};
    tide_context *c;
    TIDE_TRY(tide_context_create(plan, &opt, &c, err));
    x->c = c;
    x->look = what;
    x->turn = 0;
    tide_status st = tide_context_set_inputs(c, inputs, n, err);
    if (st == TIDE_OK) st = tide_context_run(c, err);
    if (st == TIDE_OK && x->st != TIDE_OK) {
        st = x->st;
        if (err != NULL) *err = x->err;
    }
    tide_context_destroy(c);
    return st;
}

/// Two more runs, for the tensor that differs itself.
static tide_status measure(comparison *x, tide_inference_plan *plan, tide_tensor *const *inputs, size_t n,
                           tide_fill fill, tide_error *err) {
    TIDE_TRY(run_once(x, plan, inputs, n, TIDE_RUN_PLANNED, fill, COPY, err));
    tide_tensor *planned = x->copy;
    x->copy = NULL;
    x->out->nth = 0;
    tide_status st = run_once(x, plan, inputs, n, TIDE_RUN_NAIVE, fill, COPY, err);
    if (st == TIDE_OK && planned != NULL && x->copy != NULL)
        st = tide_tensor_compare(planned, x->copy, 0.0, 0.0, &x->out->diff, err);
    tide_tensor_unref(planned);
    return st;
}

static tide_status compare_runs(comparison *x, tide_inference_plan *plan, tide_tensor *const *inputs, size_t n,
                                tide_fill fill, tide_error *err) {
    TIDE_TRY(run_once(x, plan, inputs, n, TIDE_RUN_NAIVE, fill, NOTE, err));
    TIDE_TRY(run_once(x, plan, inputs, n, TIDE_RUN_PLANNED, fill, COMPARE, err));
    if (x->out->is_equal) return TIDE_OK;
    TIDE_TRY(measure(x, plan, inputs, n, fill, err));
    if (x->out->overwritten == TIDE_NO_VALUE) return TIDE_OK;
    return run_once(x, plan, inputs, n, TIDE_RUN_PLANNED, fill, FIND_WRITER, err);
}

static void mark_read(const tide_program *p, bool *is_read) {
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_node *node = p->steps[i].kernel.node;
        for (size_t k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != TIDE_NO_VALUE) is_read[node->inputs[k]] = true;
    }
    for (size_t i = 0; i < p->graph->n_outputs; i++) is_read[p->graph->outputs[i]] = true;
}

tide_status tide_runs_compare(tide_inference_plan *plan, tide_tensor *const *inputs, size_t n, tide_fill fill,
                              tide_run_difference *out, tide_error *err) {
    const tide_program *p = plan->program;
    *out = (tide_run_difference){
        .is_equal = true, .value = TIDE_NO_VALUE, .overwritten = TIDE_NO_VALUE, .overwritten_by = SIZE_MAX};
    bool *is_read;
    TIDE_TRY(TIDE_NEW(&is_read, p->graph->n_values + 1, err, "to compare runs"));
    comparison x = {.p = p, .is_read = is_read, .out = out, .err = TIDE_ERROR_INIT};
    tide_status st = TIDE_NEW(&x.origins, p->graph->n_values + 1, err, "to compare runs");
    mark_read(p, is_read);
    if (st == TIDE_OK) st = compare_runs(&x, plan, inputs, n, fill, err);
    tide_tensor_unref(x.copy);
    tide_host_free(x.made);
    tide_host_free(x.origins);
    tide_host_free(is_read);
    return st;
}
