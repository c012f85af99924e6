// SPDX-License-Identifier: MIT
//
// What a process takes. See process_need.h.
#include "planner/process_need.h"

#include "core/base/assert.h"
#include "core/base/checked.h"

/// Measured, x86-64 with oneDNN 2.6 (docs/benchmarks.md): a process less its tensors and its bookkeeping has 11 MiB
/// where no kernel is oneDNN's, and 13 to 22 MiB where some are.
#define PROGRAM_BYTES (UINT64_C(17) << 20)
/// The bookkeeping of a model: 0.1 to 3.7 MiB for 5 to 1,000 nodes.
enum { OWN_BYTES = 512 << 10, OWN_NODE_BYTES = 4 << 10 };

static uint64_t sum(uint64_t a, uint64_t b) { return tide_add_u64(a, b, &a) ? a : UINT64_MAX; }
static uint64_t times(uint64_t a, uint64_t n) { return tide_mul_u64(a, n, &a) ? a : UINT64_MAX; }

static uint64_t run_with(const tide_process_need *need, uint64_t buffer_bytes) {
    uint64_t all = sum(need->program_bytes, need->own_bytes);
    all = sum(all, sum(need->weights_bytes, need->mapped_bytes));
    all = sum(all, sum(need->inputs_bytes, need->outputs_bytes));
    return sum(all, buffer_bytes);
}

static void add_tensor(tide_process_need *need, const tide_program *program, const tide_lifetime *t) {
    const uint64_t bytes = tide_lifetime_aligned_bytes(t);
    if (t->role == TIDE_ROLE_WEIGHT && tide_program_is_mapped(program, t->value))
        need->mapped_bytes = sum(need->mapped_bytes, bytes);
    else if (t->role == TIDE_ROLE_WEIGHT)
        need->weights_bytes = sum(need->weights_bytes, bytes);
    else if (t->role == TIDE_ROLE_INPUT)
        need->inputs_bytes = sum(need->inputs_bytes, bytes);
    else
        need->outputs_bytes = sum(need->outputs_bytes, bytes);
}

tide_process_need tide_process_need_of(const tide_program *program, const tide_memory_plan *plan, uint64_t n_contexts) {
    tide_process_need need = {.program_bytes = PROGRAM_BYTES, .n_contexts = n_contexts};
    need.own_bytes = sum(OWN_BYTES, times(program->n_nodes_before, OWN_NODE_BYTES));
    for (size_t i = 0; i < plan->lifetimes.n; i++)
        if (plan->lifetimes.items[i].persistent) add_tensor(&need, program, &plan->lifetimes.items[i]);
    need.context_bytes = sum(need.outputs_bytes, plan->bytes);
    need.outputs_bytes = times(need.outputs_bytes, n_contexts);
    need.buffer_bytes = times(plan->bytes, n_contexts);
    need.constants_bytes = program->graph->constants_peak_bytes;
    if (need.constants_bytes < need.weights_bytes) need.constants_bytes = need.weights_bytes;
    TIDE_ASSERT(n_contexts > 0);
    need.load_bytes = sum(sum(need.program_bytes, need.own_bytes), need.constants_bytes);
    need.run_bytes = run_with(&need, need.buffer_bytes);
    need.peak_bytes = need.load_bytes > need.run_bytes ? need.load_bytes : need.run_bytes;
    return need;
}

uint64_t tide_process_need_with(const tide_process_need *need, uint64_t buffer_bytes) {
    const uint64_t run_bytes = run_with(need, times(buffer_bytes, need->n_contexts));
    return need->load_bytes > run_bytes ? need->load_bytes : run_bytes;
}

// ---- in words ----

static void add_part(tide_text *out, const char *name, uint64_t bytes, const char *before) {
    char text[24];
    if (bytes > 0) tide_text_addf(out, "%s%s %s", before, name, tide_format_bytes(bytes, text, sizeof text));
}

void tide_process_need_print(const tide_process_need *need, tide_text *out) {
    char peak[24], load[24], more[24];
    tide_text_addf(out, "process: %s at its peak: ", tide_format_bytes(need->peak_bytes, peak, sizeof peak));
    add_part(out, "program", need->program_bytes, "");
    add_part(out, "own", need->own_bytes, ", ");
    add_part(out, "weights", need->weights_bytes, ", ");
    add_part(out, "in the file", need->mapped_bytes, ", ");
    add_part(out, "inputs", need->inputs_bytes, ", ");
    add_part(out, "outputs", need->outputs_bytes, ", ");
    add_part(out, "buffer", need->buffer_bytes, ", ");
    tide_text_addf(out, "; %s while it is loaded; %s for one more context\n",
                   tide_format_bytes(need->load_bytes, load, sizeof load),
                   tide_format_bytes(need->context_bytes, more, sizeof more));
}

void tide_process_need_json(tide_json_out *j, const tide_process_need *need) {
    tide_json_open(j, "process", '{');
    tide_json_u64(j, "peak_bytes", need->peak_bytes);
    tide_json_u64(j, "load_bytes", need->load_bytes);
    tide_json_u64(j, "run_bytes", need->run_bytes);
    tide_json_u64(j, "program_bytes", need->program_bytes);
    tide_json_u64(j, "own_bytes", need->own_bytes);
    tide_json_u64(j, "constants_bytes", need->constants_bytes);
    tide_json_u64(j, "weights_bytes", need->weights_bytes);
    tide_json_u64(j, "mapped_bytes", need->mapped_bytes);
    tide_json_u64(j, "inputs_bytes", need->inputs_bytes);
    tide_json_u64(j, "outputs_bytes", need->outputs_bytes);
    tide_json_u64(j, "buffer_bytes", need->buffer_bytes);
    tide_json_u64(j, "contexts", need->n_contexts);
    tide_json_u64(j, "context_bytes", need->context_bytes);
    tide_json_close(j, '}');
}
