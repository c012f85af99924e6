// SPDX-License-Identifier: MIT
//
// What a process takes. See process_need.h.
#include "planner/process_need.h"

#include "core/base/assert.h"
#include "core/base/checked.h"

/// Measured, x86-64 with oneDNN 2.6 (docs/benchmarks.md): a process less its tensors and its bookkeeping has 11 MiB
/// where no kernel is oneDNN's, and 13 to 22 MiB where some are.
#define PROGRAM_BYTES (UINT64_C(17) << 20)
/// Of these the pages of files, which processes share: 13.8 to 14.4 MiB where kernels are oneDNN's, 11 where none are.
#define PROGRAM_SHARED_BYTES (UINT64_C(14) << 20)
/// The bookkeeping of a model: 0.1 to 3.7 MiB for 5 to 1,000 nodes.
enum { OWN_BYTES = 512 << 10, OWN_NODE_BYTES = 4 << 10 };
/// What each context but the first takes beside buffer and outputs: its tables, and its thread. 26 to 59 kB for 4 to 13
/// steps, 286 kB for 137 (convolutions), 377 kB for 300.
enum { CONTEXT_BYTES = 40 << 10, CONTEXT_STEP_BYTES = 1280 };

static uint64_t sum(uint64_t a, uint64_t b) { return tide_add_u64(a, b, &a) ? a : UINT64_MAX; }
static uint64_t times(uint64_t a, uint64_t n) { return tide_mul_u64(a, n, &a) ? a : UINT64_MAX; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

tide_process_facts tide_process_facts_of(const tide_program *program, const tide_lifetimes *lt) {
    tide_process_facts facts = {.program_bytes = PROGRAM_BYTES,
                                .own_bytes = sum(OWN_BYTES, times(program->n_nodes_before, OWN_NODE_BYTES)),
                                .constants_bytes = program->graph->constants_peak_bytes};
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *t = &lt->items[i];
        if (t->role == TIDE_ROLE_WEIGHT && t->value < program->graph->n_values &&
            tide_program_is_mapped(program, t->value))
            facts.mapped_bytes = sum(facts.mapped_bytes, tide_lifetime_aligned_bytes(t));
    }
    return facts;
}

static void add_tensor(tide_process_need *need, const tide_lifetime *t) {
    const uint64_t bytes = tide_lifetime_aligned_bytes(t);
    if (t->role == TIDE_ROLE_WEIGHT)
        need->weights_bytes = sum(need->weights_bytes, bytes);
    else if (t->role == TIDE_ROLE_INPUT)
        need->inputs_bytes = sum(need->inputs_bytes, bytes);
    else
        need->outputs_bytes = sum(need->outputs_bytes, bytes);
}

static uint64_t context_own_bytes(const tide_lifetimes *lt) {
    if (!tide_process_is_known(lt)) return 0;
    return sum(CONTEXT_BYTES, times(lt->n_steps > 0 ? (uint64_t)lt->n_steps : 0, CONTEXT_STEP_BYTES));
}

/// Of a table, its buffers as if they had so many bytes in each context: a plan's, or a bound.
static tide_process_need need_with(const tide_lifetimes *lt, uint64_t buffer_bytes, uint64_t n_contexts) {
    const tide_process_facts *facts = &lt->process;
    tide_process_need need = {.program_bytes = facts->program_bytes,
                              .own_bytes = facts->own_bytes,
                              .context_own_bytes = context_own_bytes(lt),
                              .constants_bytes = facts->constants_bytes,
                              .n_contexts = n_contexts};
    TIDE_ASSERT(n_contexts > 0);
    const uint64_t load_base_bytes = sum(need.program_bytes, need.own_bytes); // contexts are made after that
    need.own_bytes = sum(need.own_bytes, times(need.context_own_bytes, n_contexts - 1));
    for (size_t i = 0; i < lt->n; i++)
        if (lt->items[i].persistent) add_tensor(&need, &lt->items[i]);
    // A table whose weights were changed may have fewer of them than the file.
    need.mapped_bytes = facts->mapped_bytes < need.weights_bytes ? facts->mapped_bytes : need.weights_bytes;
    need.weights_bytes -= need.mapped_bytes;
    need.context_bytes = sum(need.outputs_bytes, buffer_bytes);
    need.outputs_bytes = times(need.outputs_bytes, n_contexts);
    need.buffer_bytes = times(buffer_bytes, n_contexts);
    if (need.constants_bytes < need.weights_bytes) need.constants_bytes = need.weights_bytes;
    const uint64_t base_bytes = sum(need.program_bytes, need.own_bytes);
    need.load_bytes = sum(load_base_bytes, need.constants_bytes);
    need.run_bytes = sum(sum(base_bytes, sum(need.weights_bytes, need.mapped_bytes)),
                         sum(sum(need.inputs_bytes, need.outputs_bytes), need.buffer_bytes));
    need.peak_bytes = need.load_bytes > need.run_bytes ? need.load_bytes : need.run_bytes;
    const uint64_t code_bytes = least(PROGRAM_SHARED_BYTES, need.program_bytes); // a file may say that it has less
    if (need.program_bytes > 0) need.shared_bytes = sum(code_bytes, need.mapped_bytes);
    // While it is loaded nothing of the weights has been read from the file.
    const uint64_t run_private = need.run_bytes - least(need.run_bytes, need.shared_bytes);
    const uint64_t load_private = need.load_bytes - code_bytes;
    need.private_bytes = run_private > load_private ? run_private : load_private;
    need.shared_bytes = least(need.shared_bytes, need.peak_bytes - need.private_bytes);
    return need;
}

tide_process_need tide_process_need_of(const tide_memory_plan *plan, uint64_t n_contexts) {
    return need_with(&plan->lifetimes, plan->bytes, n_contexts);
}

uint64_t tide_need_bytes(const tide_lifetimes *lt, uint64_t buffer_bytes) {
    const tide_process_need need = need_with(lt, buffer_bytes, 1);
    return tide_process_is_known(lt) ? need.peak_bytes : need.run_bytes;
}

// ---- in words ----

static void add_part(tide_text *out, const char *name, uint64_t bytes, const char *before) {
    char text[24];
    if (bytes > 0) tide_text_addf(out, "%s%s %s", before, name, tide_format_bytes(bytes, text, sizeof text));
}

void tide_process_need_parts(const tide_process_need *need, tide_text *out) {
    add_part(out, "program", need->program_bytes, "");
    add_part(out, "own", need->own_bytes, ", ");
    add_part(out, "weights", need->weights_bytes, ", ");
    add_part(out, "in the file", need->mapped_bytes, ", ");
    add_part(out, "inputs", need->inputs_bytes, ", ");
    add_part(out, "outputs", need->outputs_bytes, ", ");
    add_part(out, "buffer", need->buffer_bytes, ", ");
}

void tide_process_need_print(const tide_process_need *need, tide_text *out) {
    char peak[24], load[24], more[24], beside[24], alone[24], shared[24];
    tide_text_addf(out, "process: %s at its peak: ", tide_format_bytes(need->peak_bytes, peak, sizeof peak));
    tide_process_need_parts(need, out);
    tide_text_addf(out, "; %s while it is loaded; %s for one more context, and %s of bookkeeping\n",
                   tide_format_bytes(need->load_bytes, load, sizeof load),
                   tide_format_bytes(need->context_bytes, more, sizeof more),
                   tide_format_bytes(need->context_own_bytes, beside, sizeof beside));
    tide_format_bytes(need->private_bytes, alone, sizeof alone);
    tide_text_addf(
        out,
        "N processes: %s shared (code, weights in the file) + N x %s private; in a cgroup it takes %s, for the "
        "system can drop what is shared\n",
        tide_format_bytes(need->shared_bytes, shared, sizeof shared), alone, alone);
}

void tide_process_need_json(tide_json_out *j, const tide_process_need *need) {
    tide_json_open(j, "process", '{');
    tide_json_sum(j, "peak_bytes", need->peak_bytes);
    tide_json_sum(j, "load_bytes", need->load_bytes);
    tide_json_sum(j, "run_bytes", need->run_bytes);
    tide_json_sum(j, "program_bytes", need->program_bytes);
    tide_json_sum(j, "own_bytes", need->own_bytes);
    tide_json_sum(j, "constants_bytes", need->constants_bytes);
    tide_json_sum(j, "weights_bytes", need->weights_bytes);
    tide_json_sum(j, "mapped_bytes", need->mapped_bytes);
    tide_json_sum(j, "inputs_bytes", need->inputs_bytes);
    tide_json_sum(j, "outputs_bytes", need->outputs_bytes);
    tide_json_sum(j, "buffer_bytes", need->buffer_bytes);
    tide_json_u64(j, "contexts", need->n_contexts);
    tide_json_sum(j, "context_bytes", need->context_bytes);
    tide_json_sum(j, "context_own_bytes", need->context_own_bytes);
    tide_json_sum(j, "shared_bytes", need->shared_bytes);
    tide_json_sum(j, "private_bytes", need->private_bytes);
    tide_json_close(j, '}');
}
