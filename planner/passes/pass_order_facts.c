// SPDX-License-Identifier: MIT
//
// Facts of a program for the order pass and recompute. See pass_order_facts.h.
#include "planner/passes/pass_order_facts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/graph/region.h"
#include "core/ops/ops.h"
#include "core/runtime/alias_facts.h"

// ---- lists by key ----

void tide__table_deinit(tide__table *t) {
    tide_host_free(t->first);
    tide_host_free(t->items);
    *t = (tide__table){0};
}

static int compare_pairs(const void *a, const void *b) {
    const tide__fact_pair *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->other > y->other) - (x->other < y->other);
}

bool tide__table_make(tide__table *t, const tide__fact_pair *pairs, size_t n, size_t n_keys, bool loops) {
    tide__fact_pair *sorted = tide_host_calloc(n + 1, sizeof *sorted);
    t->first = tide_host_calloc(n_keys + 2, sizeof *t->first);
    t->items = tide_host_calloc(n + 1, sizeof *t->items);
    if (sorted == NULL || t->first == NULL || t->items == NULL) {
        tide_host_free(sorted);
        return false;
    }
    if (n > 0) memcpy(sorted, pairs, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_pairs);
    uint32_t n_items = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && compare_pairs(&sorted[i - 1], &sorted[i]) == 0) continue;
        if (!loops && sorted[i].step == sorted[i].other) continue;
        t->items[n_items++] = sorted[i].other;
        t->first[sorted[i].step + 1] = n_items;
    }
    for (size_t k = 1; k <= n_keys; k++) {
        if (t->first[k] < t->first[k - 1]) t->first[k] = t->first[k - 1];
    }
    tide_host_free(sorted);
    return true;
}

bool tide__table_of_nodes(tide__table *t, const tide__fact_pairs *from, const uint32_t *step_key,
                          const uint32_t *other_key, bool turned, size_t n_keys, bool loops) {
    tide__fact_pair *pairs = tide_host_calloc(from->n + 1, sizeof *pairs);
    if (pairs == NULL) return false;
    for (size_t i = 0; i < from->n; i++) {
        const uint32_t step = step_key[from->list[i].step];
        const uint32_t other = other_key != NULL ? other_key[from->list[i].other] : from->list[i].other;
        pairs[i] = turned ? (tide__fact_pair){other, step} : (tide__fact_pair){step, other};
    }
    const bool ok = tide__table_make(t, pairs, from->n, n_keys, loops);
    tide_host_free(pairs);
    return ok;
}

// ---- by hand ----

tide_status tide__facts_init(tide__order_facts *f, size_t n_steps, tide_error *err) {
    *f = (tide__order_facts){.n_steps = n_steps};
    f->scratch_bytes = tide_host_calloc(n_steps + 1, sizeof *f->scratch_bytes);
    return f->scratch_bytes != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for an order");
}

void tide__order_facts_deinit(tide__order_facts *f) {
    tide_host_free(f->scratch_bytes);
    tide_host_free(f->tensors);
    tide_host_free(f->reads.list);
    tide_host_free(f->overwrites.list);
    tide_host_free(f->results.list);
    tide_host_free(f->after.list);
    *f = (tide__order_facts){0};
}

tide_status tide__facts_add_tensor(tide__order_facts *f, uint32_t maker, uint64_t size_bytes, uint64_t align_bytes,
                                   uint32_t *out, tide_error *err) {
    uint64_t own_bytes;
    if (!tide_align_up(size_bytes, align_bytes, &own_bytes) || f->n_tensors >= TIDE_NO_INDEX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "a tensor of %llu bytes is too large to be planned",
                         (unsigned long long)size_bytes);
    TIDE_TRY(TIDE_GROW(&f->tensors, &f->cap_tensors, f->n_tensors + 1, err, "for an order"));
    const uint32_t t = (uint32_t)f->n_tensors++;
    f->tensors[t] = (tide__fact_tensor){
        .maker = maker, .root = t, .next = t, .size_bytes = size_bytes, .own_bytes = own_bytes, .value = TIDE_NO_INDEX};
    if (out != NULL) *out = t;
    return TIDE_OK;
}

tide_status tide__facts_add_pair(tide__fact_pairs *pairs, uint32_t step, uint32_t other, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&pairs->list, &pairs->cap, pairs->n + 1, err, "for an order"));
    pairs->list[pairs->n++] = (tide__fact_pair){step, other};
    return TIDE_OK;
}

tide_status tide__facts_add_read(tide__order_facts *f, uint32_t step, uint32_t tensor, tide_error *err) {
    TIDE_TRY(tide__facts_add_pair(&f->reads, step, tensor, err));
    return tide__facts_add_pair(&f->after, step, f->tensors[tensor].maker, err);
}

bool tide__facts_put_inside(tide__order_facts *f, uint32_t inner, uint32_t outer, uint64_t at_bytes) {
    const uint32_t from = f->tensors[inner].root, to = f->tensors[outer].root;
    const uint64_t bytes = f->tensors[inner].size_bytes;
    if (from == to || f->tensors[inner].at_bytes != 0 || f->tensors[from].size_bytes != bytes) return false;
    if (bytes > f->tensors[outer].size_bytes || at_bytes > f->tensors[outer].size_bytes - bytes) return false;
    const uint64_t at = f->tensors[outer].at_bytes + at_bytes;
    uint32_t t = inner;
    do {
        f->tensors[t].root = to;
        f->tensors[t].at_bytes += at;
        t = f->tensors[t].next;
    } while (t != inner);
    const uint32_t behind = f->tensors[inner].next; // two rings become one by crossing over
    f->tensors[inner].next = f->tensors[outer].next;
    f->tensors[outer].next = behind;
    return true;
}

// ---- of a program ----

/// Where the step at `at` has a value among its inputs.
typedef struct value_use {
    uint32_t at, first;     ///< the first position; `at` is another step's: it has not
    uint32_t n_positions;   ///< how many there are
    uint32_t n_overwritten; ///< how many of them output 0 may overwrite
} value_use;

typedef struct reader {
    const tide__fact_source *s;
    const tide_program *program;
    const tide_graph *graph;
    const uint32_t *sequence; ///< NULL: all steps as they stand
    tide__order_facts *f;
    uint32_t *tensor_of;   ///< [n_values] what the last run so far has made of the value; TIDE_NO_INDEX: no tensor
    uint32_t *made_at;     ///< [n_values] and when; TIDE_NO_INDEX: never
    value_use *uses;       ///< [n_values] by the step that is looked at
    uint32_t *run_at;      ///< [n_nodes] when the node ran first; TIDE_NO_INDEX
    uint64_t sum_bytes;    ///< of all tensors and scratch
    tide__fact_pairs in;   ///< alias fact, and the tensor of its input
    tide__fact_pairs made; ///< alias fact, and the tensor of its output; as long as `in`
} reader;

static uint32_t step_at(const reader *r, uint32_t at) { return r->sequence != NULL ? r->sequence[at] : at; }

static const tide_node *node_at(const reader *r, uint32_t at) {
    return &r->graph->nodes[r->program->steps[step_at(r, at)].node];
}

static tide_status count_bytes(reader *r, uint64_t bytes, tide_error *err) {
    if (tide_add_u64(r->sum_bytes, bytes, &r->sum_bytes) && r->sum_bytes <= INT64_MAX) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the tensors of '%s' add up to more than 2^63 - 1 bytes", r->graph->name);
}

static uint64_t value_align(const reader *r, const tide_value *v) {
    const uint64_t element = tide_dtype_size(v->dtype), wanted = r->s->opt->align_bytes;
    return element > wanted && tide_is_pow2(element) ? element : wanted;
}

static tide_status add_output(reader *r, uint32_t at, uint32_t port, uint32_t value_i, tide_error *err) {
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    const tide_value *v = &r->graph->values[value_i];
    r->made_at[value_i] = at;
    if (v->is_output || v->constant != NULL || (v->is_dynamic && !v->is_bounded)) return TIDE_OK;
    if (v->dtype == TIDE_DTYPE_UNDEFINED || !(v->has_shape || v->is_bounded) || !tide_shape_known(tide_value_most(v)))
        return TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "the size of tensor '%s' is not known", v->name);
    size_t bytes;
    TIDE_TRY(tide_shape_bytes(tide_value_most(v), v->dtype, &bytes, err));
    if (bytes == 0) return TIDE_OK;
    uint32_t t;
    TIDE_TRY(tide__facts_add_tensor(r->f, at, bytes, value_align(r, v), &t, err));
    r->f->tensors[t].value = value_i;
    r->tensor_of[value_i] = t;
    TIDE_TRY(count_bytes(r, r->f->tensors[t].own_bytes, err));
    return port == 0 ? tide__facts_add_pair(&r->f->results, at, t, err) : TIDE_OK;
}

static tide_status add_scratch(reader *r, uint32_t at, tide_error *err) {
    const size_t bytes = r->program->steps[step_at(r, at)].kernel.workspace_bytes;
    if (bytes == 0) return TIDE_OK;
    const uint64_t wanted = r->s->opt->align_bytes,
                   align = wanted > TIDE_WORKSPACE_ALIGN ? wanted : TIDE_WORKSPACE_ALIGN;
    if (!tide_align_up(bytes, align, &r->f->scratch_bytes[at]))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the scratch of node '%s' is too large to be planned",
                         node_at(r, at)->name);
    return count_bytes(r, r->f->scratch_bytes[at], err);
}

/// The first input position that has the value; later ones add no fact.
static bool is_first_position(const reader *r, const tide_node *n, size_t k) {
    return r->uses[n->inputs[k]].first == k;
}

/// Note where the step has its inputs. Cost: a look at each, however many there are.
static void note_uses(reader *r, uint32_t at) {
    const tide_node *n = node_at(r, at);
    const tide_alias_facts *aliases = &r->s->aliases;
    const uint32_t step = step_at(r, at);
    for (uint32_t k = 0; k < n->n_inputs; k++) {
        if (n->inputs[k] == TIDE_NO_VALUE) continue;
        value_use *use = &r->uses[n->inputs[k]];
        if (use->at != at) *use = (value_use){.at = at, .first = k};
        use->n_positions++;
    }
    for (size_t k = aliases->first[step]; k < aliases->first[step + 1]; k++) {
        const tide_alias_fact *a = &aliases->list[k];
        if (a->may_overwrite && r->uses[a->in_value].at == at) r->uses[a->in_value].n_overwritten++;
    }
}

static tide_status add_reads(reader *r, uint32_t at, tide_error *err) {
    const tide_node *n = node_at(r, at);
    for (size_t k = 0; k < n->n_inputs; k++) {
        if (n->inputs[k] == TIDE_NO_VALUE || !is_first_position(r, n, k)) continue;
        const uint32_t t = r->tensor_of[n->inputs[k]], maker = r->made_at[n->inputs[k]];
        if (t != TIDE_NO_INDEX) TIDE_TRY(tide__facts_add_pair(&r->f->reads, at, t, err));
        if (maker != TIDE_NO_INDEX) TIDE_TRY(tide__facts_add_pair(&r->f->after, at, maker, err));
    }
    return TIDE_OK;
}

// ---- what lies inside what ----

/// Output 0 may overwrite what lies at every position that has the value of the alias fact `i`.
static bool may_overwrite(const reader *r, size_t i) {
    const value_use *use = &r->uses[r->s->aliases.list[i].in_value];
    TIDE_ASSERT(use->n_overwritten <= use->n_positions);
    return use->n_positions == use->n_overwritten;
}

/// What the step's operator says, of the tensors that its inputs are before it and its outputs behind it.
static tide_status add_aliases(reader *r, uint32_t at, tide_error *err) {
    const tide_alias_facts *aliases = &r->s->aliases;
    const uint32_t step = step_at(r, at);
    for (size_t i = aliases->first[step]; i < aliases->first[step + 1]; i++) {
        const tide_alias_fact *a = &aliases->list[i];
        const uint32_t in = r->tensor_of[a->in_value], out = r->tensor_of[a->out_value];
        if (in == TIDE_NO_INDEX || out == TIDE_NO_INDEX) continue;
        TIDE_TRY(tide__facts_add_pair(&r->in, (uint32_t)i, in, err));
        TIDE_TRY(tide__facts_add_pair(&r->made, (uint32_t)i, out, err));
        // Views are another pass's, on or off.
        if (r->s->opt->off[TIDE_PASS_IN_PLACE] || !a->may_overwrite || a->alias.kind == TIDE_OP_ALIAS_VIEW) continue;
        if (is_first_position(r, node_at(r, at), a->in_i) && may_overwrite(r, i))
            TIDE_TRY(tide__facts_add_pair(&r->f->overwrites, at, in, err));
    }
    return TIDE_OK;
}

/// Kernels count on this much in any operand, so nothing lies at less inside another tensor.
static bool is_aligned(const tide__order_facts *f, uint32_t inner, uint32_t outer, uint64_t at_bytes) {
    const uint64_t at = f->tensors[outer].at_bytes + at_bytes;
    uint32_t t = inner;
    do {
        if ((at + f->tensors[t].at_bytes) % TIDE_WORKSPACE_ALIGN != 0) return false;
        t = f->tensors[t].next;
    } while (t != inner);
    return true;
}

static void merge(reader *r, tide_op_alias_kind kind) {
    const bool is_part = kind == TIDE_OP_ALIAS_PART;
    for (size_t i = 0; i < r->in.n; i++) {
        const tide_alias_fact *a = &r->s->aliases.list[r->in.list[i].step];
        const uint32_t in = r->in.list[i].other, out = r->made.list[i].other;
        const uint32_t inner = is_part ? in : out, outer = is_part ? out : in;
        if (a->alias.kind == kind && is_aligned(r->f, inner, outer, a->alias.offset_bytes))
            (void)tide__facts_put_inside(r->f, inner, outer, a->alias.offset_bytes);
    }
}

/// As the alias passes do it, one after the other.
static void merge_all(reader *r) {
    const bool *off = r->s->opt->off;
    if (!off[TIDE_PASS_VIEWS]) merge(r, TIDE_OP_ALIAS_VIEW);
    if (!off[TIDE_PASS_SLICES]) merge(r, TIDE_OP_ALIAS_SLICE);
    if (!off[TIDE_PASS_PARTS]) merge(r, TIDE_OP_ALIAS_PART);
}

// ---- order for other reasons ----

/// Readers of a first run stay before the second: behind it they would read the second.
static tide_status add_twin(reader *r, const tide__table *readers, uint32_t first, uint32_t again, tide_error *err) {
    const tide__span span = tide__table_span(readers, first);
    TIDE_TRY(tide__facts_add_pair(&r->f->after, again, first, err));
    for (uint32_t k = 0; k < span.n; k++) {
        const uint32_t reader_at = readers->items[span.first + k];
        if (reader_at != again) TIDE_TRY(tide__facts_add_pair(&r->f->after, again, reader_at, err));
    }
    return TIDE_OK;
}

/// The steps that read what each step has made.
static bool list_readers(const reader *r, tide__table *out) {
    tide__fact_pair *pairs = tide_host_calloc(r->f->reads.n + 1, sizeof *pairs);
    if (pairs == NULL) return false;
    for (size_t k = 0; k < r->f->reads.n; k++) {
        const tide__fact_pair read = r->f->reads.list[k];
        pairs[k] = (tide__fact_pair){.step = r->f->tensors[read.other].maker, .other = read.step};
    }
    const bool ok = tide__table_make(out, pairs, r->f->reads.n, r->f->n_steps, true);
    tide_host_free(pairs);
    return ok;
}

static tide_status add_twins(reader *r, tide_error *err) {
    if (r->program->n_twins == 0) return TIDE_OK;
    tide__table readers = {0};
    tide_status st = list_readers(r, &readers) ? TIDE_OK : TIDE_NO_MEMORY(err, "for an order");
    for (size_t i = 0; i < r->program->n_twins && st == TIDE_OK; i++) {
        const uint32_t first = r->run_at[r->program->twins[i].first], again = r->run_at[r->program->twins[i].again];
        if (first == TIDE_NO_INDEX || again == TIDE_NO_INDEX) continue;
        st = add_twin(r, &readers, first, again, err);
    }
    tide__table_deinit(&readers);
    return st;
}

/// Steps of one name keep their order: plan files have only the names.
static tide_status add_namesakes(reader *r, tide_error *err) {
    tide_strmap last = {0};
    tide_status st = TIDE_OK;
    for (uint32_t at = 0; at < r->f->n_steps && st == TIDE_OK; at++) {
        uint64_t before;
        const char *name = node_at(r, at)->name;
        if (tide_strmap_get(&last, name, &before)) st = tide__facts_add_pair(&r->f->after, at, (uint32_t)before, err);
        if (st == TIDE_OK && tide_strmap_put(&last, name, at) != TIDE_OK) st = TIDE_NO_MEMORY(err, "for an order");
    }
    tide_strmap_deinit(&last);
    return st;
}

/// What opens or closes a body of an If, a Loop or a Scan stays behind all that stands before it, and before all that
/// stands behind it: bodies are stretches of the order.
static tide_status add_bodies(reader *r, tide_error *err) {
    uint32_t begin = 0; // the last such step, or the first of all
    if (r->graph->n_regions == 0) return TIDE_OK;
    for (uint32_t at = 1; at < r->f->n_steps; at++) {
        if (tide_node_is_control(node_at(r, at))) {
            for (; begin < at; begin++) TIDE_TRY(tide__facts_add_pair(&r->f->after, at, begin, err));
        } else if (tide_node_is_control(node_at(r, begin))) {
            TIDE_TRY(tide__facts_add_pair(&r->f->after, at, begin, err));
        }
    }
    return TIDE_OK;
}

// ---- entry points ----

static tide_status add_step(reader *r, uint32_t at, tide_error *err) {
    const tide_node *n = node_at(r, at);
    uint32_t *run_at = &r->run_at[r->program->steps[step_at(r, at)].node];
    if (*run_at == TIDE_NO_INDEX) *run_at = at;
    note_uses(r, at);
    TIDE_TRY(add_reads(r, at, err));
    for (uint32_t port = 0; port < n->n_outputs; port++) TIDE_TRY(add_output(r, at, port, n->outputs[port], err));
    TIDE_TRY(add_scratch(r, at, err));
    return add_aliases(r, at, err);
}

static tide_status read_program(reader *r, size_t n, tide_error *err) {
    TIDE_TRY(tide__facts_init(r->f, n, err));
    const size_t n_values = r->graph->n_values, n_nodes = r->graph->n_nodes;
    r->tensor_of = tide_host_calloc(n_values + 1, sizeof *r->tensor_of);
    r->made_at = tide_host_calloc(n_values + 1, sizeof *r->made_at);
    r->run_at = tide_host_calloc(n_nodes + 1, sizeof *r->run_at);
    r->uses = tide_host_calloc(n_values + 1, sizeof *r->uses);
    if (r->tensor_of == NULL || r->made_at == NULL || r->run_at == NULL || r->uses == NULL)
        return TIDE_NO_MEMORY(err, "for an order");
    for (size_t v = 0; v < n_values; v++) r->uses[v].at = TIDE_NO_INDEX;
    for (size_t v = 0; v < n_values; v++) r->tensor_of[v] = r->made_at[v] = TIDE_NO_INDEX;
    for (size_t i = 0; i < n_nodes; i++) r->run_at[i] = TIDE_NO_INDEX;
    for (uint32_t at = 0; at < n; at++) TIDE_TRY(add_step(r, at, err));
    merge_all(r);
    TIDE_TRY(add_twins(r, err));
    TIDE_TRY(add_bodies(r, err));
    return add_namesakes(r, err);
}

tide_status tide__order_facts_of(const tide__fact_source *s, const uint32_t *sequence, size_t n, tide__order_facts *out,
                                 tide_error *err) {
    *out = (tide__order_facts){0};
    reader r = {.s = s, .program = s->program, .graph = s->program->graph, .sequence = sequence, .f = out};
    const tide_status st = read_program(&r, sequence != NULL ? n : s->program->n_steps, err);
    if (st != TIDE_OK) tide__order_facts_deinit(out);
    tide_host_free(r.tensor_of);
    tide_host_free(r.made_at);
    tide_host_free(r.run_at);
    tide_host_free(r.uses);
    tide_host_free(r.in.list);
    tide_host_free(r.made.list);
    return st;
}

tide_status tide__fact_source_init(tide__fact_source *s, const tide_program *program, const tide_pass_options *opt,
                                   tide_error *err) {
    *s = (tide__fact_source){.program = program, .opt = opt};
    if (!tide_is_pow2(opt->align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment of %llu bytes: want a power of two",
                         (unsigned long long)opt->align_bytes);
    return tide_alias_facts_make(program, &s->aliases, err);
}

void tide__fact_source_deinit(tide__fact_source *s) { tide_alias_facts_deinit(&s->aliases); }
