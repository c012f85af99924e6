// SPDX-License-Identifier: MIT
//
// Shape inference and constant folding in one walk along the order: a folded Shape feeds the Reshape behind it.
//
// Sizes are never guessed. What an operator cannot know without data is an error that names the tensor (S23-19).
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/graph/graph_internal.h"
#include "core/graph/infer_region.h"
#include "core/graph/passes.h"
#include "core/graph/sizes.h"

typedef struct infer_pass {
    tide_graph *g;
    bool fold;
    const tide_contents *contents; // which are made; NULL: all that folding may take
    size_t content_bytes;          // with `contents`: that may still be made
    tide_tensor **known;           // [n_values] contents found while folding is off; dropped after the last use
    size_t *n_uses;                // [n_values] uses by living nodes still to come, and as graph outputs
    tide_operand *in;              // [cap_in], operands of the node at hand
    size_t cap_in;
    tide_operand *out; // [cap_out]
    size_t cap_out;
    tide_tensor **result; // [cap_result]
    size_t cap_result;
    size_t fold_bytes;   // that folding may still take
    double fold_work;    // multiply-adds or elements that it may still do
    size_t n_unfolded;   // nodes that could have been folded but for these two
    uint64_t held_bytes; // of constants now, with `fold`; blank ones count as what they will be
    bool *untaken;       // [n_regions + 1] by number: branches that no run takes
    bool needs_blank;    // what a region makes hangs on a content that was left blank
    bool is_trial;       // shapes of a body are tried: no node dies, and no content is given up
    bool has_changed;    // in a trial: a carried value has become dynamic, or larger than what is handed in
    bool *has_grown;     // [n_values] carried values of which an iteration may hand on more than it was given
} infer_pass;

// ---- graph inputs must be known ----

static bool input_known(const tide_value *v) {
    return v->dtype != TIDE_DTYPE_UNDEFINED && v->has_shape && tide_shape_known(&v->shape);
}

static void describe_open(const tide_value *v, tide_text *text) {
    if (!v->has_shape) {
        tide_text_addf(text, "'%s' has no shape at all", v->name);
        return;
    }
    char shape[192];
    tide_text_addf(text, "'%s' is %s", v->name, tide_shape_format(&v->shape, shape, sizeof shape));
    const char *sep = " with ";
    for (int32_t d = 0; v->dim_names != NULL && d < v->shape.rank; d++) {
        if (v->dim_names[d] == NULL || v->shape.dims[d] != TIDE_DIM_UNKNOWN) continue;
        tide_text_addf(text, "%sextent %d = \"%s\"", sep, d, v->dim_names[d]);
        sep = ", ";
    }
}

/// "--shape NAME=1x3x?x?": the user puts numbers for the question marks.
static void hint_shape(const tide_value *v, tide_error *err) {
    if (!v->has_shape) {
        tide_error_hint(err, "give it: --shape %s=1x3x224x224", v->name);
        return;
    }
    char shape[192];
    tide_shape_format(&v->shape, shape, sizeof shape); // "[1x3x?x?]"
    tide_error_hint(err, "give a number for each ?: --shape %s=%.*s", v->name, (int)strlen(shape) - 2, shape + 1);
}

static tide_status check_graph_inputs(const tide_graph *g, tide_error *err) {
    enum { MAX_NAMED = 4 };
    const tide_value *first = NULL;
    tide_text note = {0};
    size_t n_open = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        if (input_known(v)) continue;
        if (v->dtype == TIDE_DTYPE_UNDEFINED) {
            tide_text_deinit(&note);
            const tide_status st =
                TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "graph input '%s' has no element type", v->name);
            tide_error_where(err, "%s", g->source);
            return st;
        }
        if (first == NULL) first = v;
        if (n_open++ >= MAX_NAMED) continue;
        if (n_open > 1) tide_text_add(&note, "; ");
        describe_open(v, &note);
    }
    if (first == NULL) return TIDE_OK;
    if (n_open > MAX_NAMED) tide_text_addf(&note, "; and %zu more", n_open - MAX_NAMED);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "the size of graph input '%s' is not known%s",
                                     first->name, n_open > 1 ? " (nor that of others)" : "");
    tide_error_where(err, "%s", g->source);
    tide_error_note(err, "%s", tide_text_str(&note));
    hint_shape(first, err);
    tide_text_deinit(&note);
    return st;
}

// ---- operands ----

/// Constants of 0 bytes have no address, yet operators know a known operand by its data.
static unsigned char empty_content[1];

static tide_tensor *content_of(const infer_pass *p, uint32_t value_i) {
    tide_tensor *constant = p->g->values[value_i].constant;
    if (constant != NULL) return constant;
    return p->known != NULL ? p->known[value_i] : NULL;
}

static tide_status named_bytes(const tide_value *v, const tide_operand *o, size_t *bytes, tide_error *err) {
    const tide_status st = tide_shape_operand_bytes(&o->shape, o->dtype, bytes, err);
    if (st != TIDE_OK) tide_error_prefix(err, "tensor '%s'", v->name);
    return st;
}

/// Read only: an operand has one pointer for inputs and outputs, and the bytes may be a file's.
static tide_status load_content(const tide_value *v, const tide_tensor *content, tide_operand *o, tide_error *err) {
    const void *data;
    const tide_status st = tide_tensor_read(content, &data, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "constant '%s'", v->name);
        return st;
    }
    // The tensor may have other owners too.
    if (tide_tensor_size_bytes(content) != o->size_bytes || (o->size_bytes > 0 && data == NULL) ||
        !tide_tensor_is_contiguous(content))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "constant '%s' is not %zu B without gaps", v->name, o->size_bytes);
    o->data = o->size_bytes > 0 ? (void *)(uintptr_t)data : empty_content;
    return TIDE_OK;
}

static tide_status load_input(const infer_pass *p, const tide_node *n, size_t k, tide_operand *o, tide_error *err) {
    *o = (tide_operand){0};
    if (n->inputs[k] == TIDE_NO_VALUE) return TIDE_OK;
    const tide_value *v = &p->g->values[n->inputs[k]];
    if (v->is_dynamic || !input_known(v))
        return TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "input %zu, '%s', has no known size", k, v->name);
    o->dtype = v->dtype;
    o->shape = v->shape;
    TIDE_TRY(named_bytes(v, o, &o->size_bytes, err));
    const tide_tensor *content = content_of(p, n->inputs[k]);
    return content != NULL && !tide_constant_is_blank(content) ? load_content(v, content, o, err) : TIDE_OK;
}

static tide_status load_operands(infer_pass *p, const tide_node *n, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&p->in, &p->cap_in, n->n_inputs, err, "for shape inference"));
    TIDE_TRY(TIDE_GROW(&p->out, &p->cap_out, n->n_outputs, err, "for shape inference"));
    TIDE_TRY(TIDE_GROW(&p->result, &p->cap_result, n->n_outputs, err, "for shape inference"));
    TIDE_ASSERT(p->cap_in >= n->n_inputs && p->cap_out >= n->n_outputs && p->cap_result >= n->n_outputs);
    for (size_t k = 0; k < n->n_inputs; k++) TIDE_TRY(load_input(p, n, k, &p->in[k], err));
    for (size_t k = 0; k < n->n_outputs; k++) {
        p->out[k] = (tide_operand){0};
        p->result[k] = NULL;
    }
    return TIDE_OK;
}

// ---- results of an operator ----

/// The file may state what an operator computes; fixed extents must agree.
static bool agrees(const tide_value *v, const tide_operand *o) {
    if (v->dtype != TIDE_DTYPE_UNDEFINED && v->dtype != o->dtype) return false;
    if (!v->has_shape) return true;
    if (v->shape.rank != o->shape.rank) return false;
    for (int32_t d = 0; d < o->shape.rank; d++) {
        if (v->shape.dims[d] != TIDE_DIM_UNKNOWN && v->shape.dims[d] != o->shape.dims[d]) return false;
    }
    return true;
}

static tide_status check_answer(const tide_value *v, const tide_operand *o, tide_error *err) {
    if (o->dtype == TIDE_DTYPE_UNDEFINED || o->shape.rank < 0 || o->shape.rank > TIDE_MAX_RANK)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "shape inference left output '%s' without a type or shape", v->name);
    if (!tide_shape_known(&o->shape)) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "the size of '%s' depends on data", v->name);
        tide_error_note(err, "memory is planned before the run; a size that is known only while running has no plan");
        return st;
    }
    size_t bytes;
    TIDE_TRY(named_bytes(v, o, &bytes, err));
    if (agrees(v, o)) return TIDE_OK;
    char computed[192], file[192] = "";
    tide_shape_format(&o->shape, computed, sizeof computed);
    if (v->has_shape) tide_shape_format(&v->shape, file, sizeof file);
    const tide_dtype file_dtype = v->dtype != TIDE_DTYPE_UNDEFINED ? v->dtype : o->dtype;
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "output '%s' comes out as %s %s, the file says %s %s", v->name,
                     tide_dtype_name(o->dtype), computed, tide_dtype_name(file_dtype), file);
}

static tide_status store_one(tide_value *v, tide_operand *o, tide_error *err) {
    TIDE_TRY(check_answer(v, o, err));
    TIDE_TRY(tide_shape_bytes(&o->shape, o->dtype, &o->size_bytes, err));
    v->dtype = o->dtype;
    // Symbol names stay beside extents that are now numbers: rank is the same, messages no longer need them.
    v->shape = o->shape;
    v->has_shape = true;
    return TIDE_OK;
}

static tide_status store_answer(infer_pass *p, const tide_node *n, tide_error *err) {
    for (size_t k = 0; k < n->n_outputs; k++) {
        if (n->outputs[k] == TIDE_NO_VALUE) {
            p->out[k] = (tide_operand){0};
            continue;
        }
        TIDE_TRY(store_one(&p->g->values[n->outputs[k]], &p->out[k], err));
    }
    return TIDE_OK;
}

// ---- folding ----

/// Weights of fewer bytes are dequantised when the model is loaded: they take one alignment either way.
enum { MIN_HELD_BYTES = 64 };

static bool can_evaluate(const infer_pass *p, const tide_node *n) {
    const uint32_t flags = n->def->flags;
    if ((flags & (TIDE_OP_NO_FOLD | TIDE_OP_PLAN_ONLY)) != 0 || n->def->run == NULL) return false;
    if ((flags & TIDE_OP_SHAPE_ONLY) != 0) return true;
    if (n->holds_weight && p->in[0].size_bytes >= MIN_HELD_BYTES && tide_dtype_size(p->in[0].dtype) <= 2) return false;
    for (size_t k = 0; k < n->n_inputs; k++) {
        if (n->inputs[k] != TIDE_NO_VALUE && content_of(p, n->inputs[k]) == NULL) return false;
    }
    return true;
}

static double elements_of(const tide_operand *o, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        if (!tide_operand_present(&o[k])) continue;
        const size_t n_elements = o[k].size_bytes / tide_dtype_size(o[k].dtype);
        sum += (double)n_elements;
    }
    return sum;
}

/// Whether a result has more bytes than a constant may be made of.
static bool is_too_large(const infer_pass *p, const tide_infer *x) {
    if (!p->fold || p->g->fold_max_bytes == 0) return false;
    for (size_t k = 0; k < x->n_out; k++)
        if (x->out[k].size_bytes > p->g->fold_max_bytes) return true;
    return false;
}

/// Take what evaluating the node costs from the budget; false when that is more than is left.
static bool afford(infer_pass *p, const tide_infer *x) {
    size_t bytes = 0;
    bool fits = true;
    for (size_t k = 0; k < x->n_out; k++) fits = fits && tide_add_size(bytes, x->out[k].size_bytes, &bytes);
    double work = elements_of(x->in, x->n_in) + elements_of(x->out, x->n_out);
    if (x->node->def->work != NULL) work += x->node->def->work(x);
    if (fits && bytes <= p->fold_bytes && work <= p->fold_work) {
        p->fold_bytes -= bytes;
        p->fold_work -= work;
        return true;
    }
    tide_log(p->n_unfolded++ == 0 ? TIDE_LOG_WARN : TIDE_LOG_INFO,
             "%s: node '%s' (%s) is not folded, though its inputs are constants: that would take %zu bytes and %.3g "
             "steps of calculation",
             p->g->source, x->node->name, x->node->op_type, bytes, work);
    return false;
}

/// Whether the results are left blank; else what they hold is taken from what may still be made.
static bool stays_blank(infer_pass *p, const tide_node *n) {
    if (p->contents == NULL) return false;
    size_t bytes = 0;
    bool blank = false;
    for (size_t k = 0; k < n->n_outputs; k++) {
        blank = blank || p->out[k].size_bytes > p->contents->one_bytes;
        blank = blank || !tide_add_size(bytes, p->out[k].size_bytes, &bytes);
    }
    for (size_t k = 0; (n->def->flags & TIDE_OP_SHAPE_ONLY) == 0 && k < n->n_inputs; k++)
        blank = blank || (n->inputs[k] != TIDE_NO_VALUE && tide_constant_is_blank(content_of(p, n->inputs[k])));
    if (blank || bytes > p->content_bytes) return true;
    TIDE_ASSERT(bytes <= p->contents->all_bytes);
    p->content_bytes -= bytes;
    return false;
}

static tide_status make_blank(infer_pass *p, const tide_node *n, tide_error *err) {
    for (size_t k = 0; k < n->n_outputs; k++) {
        if (n->outputs[k] == TIDE_NO_VALUE) continue;
        const tide_operand *o = &p->out[k];
        TIDE_TRY(tide_tensor_create_unbound(o->dtype, &o->shape, TIDE_CPU, &p->result[k], err));
    }
    return TIDE_OK;
}

static tide_status evaluate(infer_pass *p, const tide_node *n, tide_error *err) {
    if (stays_blank(p, n)) return make_blank(p, n, err);
    return tide__node_eval(n, p->in, n->n_inputs, p->out, n->n_outputs, p->result, err);
}

/// What a constant takes of the process's own memory.
static uint64_t private_bytes(const tide_tensor *t) {
    return tide_block_is_mapped(tide_tensor_storage(t)->block) ? 0 : tide_tensor_size_bytes(t);
}

static void note_held(infer_pass *p, uint64_t more) {
    p->held_bytes += more;
    if (p->held_bytes > p->g->constants_peak_bytes) p->g->constants_peak_bytes = p->held_bytes;
}

static void keep_results(infer_pass *p, tide_node *n) {
    for (size_t k = 0; k < n->n_outputs; k++) {
        if (n->outputs[k] == TIDE_NO_VALUE) continue;
        const uint32_t value_i = n->outputs[k];
        TIDE_ASSERT(p->result[k] != NULL);
        TIDE_ASSERT(tide_tensor_size_bytes(p->result[k]) == p->out[k].size_bytes);
        if (p->fold) {
            note_held(p, tide_tensor_size_bytes(p->result[k]));
            tide_graph_set_constant(p->g, value_i, p->result[k]);
            p->g->values[value_i].producer = TIDE_NO_NODE;
        } else if (p->n_uses[value_i] > 0) {
            p->known[value_i] = tide_tensor_ref(p->result[k]);
        }
    }
    n->dead = p->fold;
}

/// Nothing reads the value any more: neither its content nor, where folding has taken its readers, its constant is
/// needed.
static void drop_content(infer_pass *p, uint32_t value_i) {
    if (p->fold) {
        const tide_tensor *constant = p->g->values[value_i].constant;
        TIDE_ASSERT(constant == NULL || p->held_bytes >= private_bytes(constant));
        if (constant != NULL) p->held_bytes -= private_bytes(constant);
        tide__graph_drop_constant(p->g, value_i);
    } else {
        tide_tensor_unref(p->known[value_i]);
        p->known[value_i] = NULL;
    }
}

static void drop_used(infer_pass *p, const tide_node *n) {
    if (p->is_trial) return;
    // While folding is on, a node that stays reads its constants when it runs.
    for (size_t k = 0; (!p->fold || n->dead) && k < n->n_inputs; k++) {
        const uint32_t value_i = n->inputs[k];
        if (value_i == TIDE_NO_VALUE) continue;
        TIDE_ASSERT(p->n_uses[value_i] > 0);
        if (--p->n_uses[value_i] == 0) drop_content(p, value_i);
    }
}

/// An operator could not infer its sizes: because a content was left blank?
static bool note_wanted(const infer_pass *p, const tide_node *n) {
    bool is_wanted = false;
    for (size_t k = 0; p->contents != NULL && k < n->n_inputs; k++) {
        const tide_tensor *content = n->inputs[k] != TIDE_NO_VALUE ? content_of(p, n->inputs[k]) : NULL;
        is_wanted = is_wanted || (content != NULL && tide_constant_is_blank(content));
    }
    if (is_wanted) *p->contents->wanted = true;
    return is_wanted;
}

static void make_value_dynamic(const infer_pass *p, const tide_node *n, uint32_t value_i) {
    tide_value *v = &p->g->values[value_i];
    v->is_dynamic = true;
    if (p->is_trial) return;
    tide_log(TIDE_LOG_INFO, "%s: the size of tensor '%s' is known only while running (%s '%s')", p->g->source, v->name,
             n->op_type, n->name);
}

/// What the node makes is sized while it runs, and so is what hangs on it.
static tide_status make_dynamic(infer_pass *p, tide_node *n, tide_error *err) {
    for (size_t k = 0; k < n->n_outputs; k++) {
        if (n->outputs[k] != TIDE_NO_VALUE) make_value_dynamic(p, n, n->outputs[k]);
    }
    TIDE_TRY(tide__bound_node(p->g, n, p->known, err));
    drop_used(p, n);
    return TIDE_OK;
}

static tide_status infer_node(infer_pass *p, tide_node *n, tide_error *err) {
    if (n->def == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "the operator is not resolved");
    TIDE_ASSERT(!n->dead && n->def->infer != NULL);
    TIDE_TRY(load_operands(p, n, err));
    const tide_infer x = {.node = n, .in = p->in, .n_in = n->n_inputs, .out = p->out, .n_out = n->n_outputs};
    TIDE_TRY(n->def->infer(&x, err));
    TIDE_TRY(store_answer(p, n, err));
    if (can_evaluate(p, n) && !is_too_large(p, &x) && afford(p, &x)) {
        const tide_status st = evaluate(p, n, err);
        if (st == TIDE_OK) keep_results(p, n);
        for (size_t k = 0; k < n->n_outputs; k++) tide_tensor_unref(p->result[k]);
        if (st != TIDE_OK) return st;
    }
    drop_used(p, n);
    return TIDE_OK;
}

static tide_status pass_init(infer_pass *p, tide_error *err) {
    p->fold_bytes = (size_t)1 << 30;
    p->fold_work = 0x1p34;
    for (size_t i = 0; i < p->g->n_values; i++) {
        const tide_tensor *constant = p->g->values[i].constant;
        if (constant == NULL) continue;
        p->fold_bytes += 2 * tide_tensor_size_bytes(constant);
        note_held(p, private_bytes(constant));
    }
    if (!p->fold) p->known = tide_host_calloc(p->g->n_values, sizeof *p->known);
    p->n_uses = tide__graph_use_table(p->g);
    p->untaken = tide_host_calloc(p->g->n_regions + 1, sizeof *p->untaken);
    p->has_grown = tide_host_calloc(p->g->n_values + 1, sizeof *p->has_grown);
    const bool good = p->n_uses != NULL && p->untaken != NULL && p->has_grown != NULL && (p->fold || p->known != NULL);
    return good ? TIDE_OK : TIDE_NO_MEMORY(err, "for shape inference");
}

static void pass_deinit(infer_pass *p) {
    for (size_t i = 0; p->known != NULL && i < p->g->n_values; i++) tide_tensor_unref(p->known[i]);
    tide_host_free(p->known);
    tide_host_free(p->n_uses);
    tide_host_free(p->untaken);
    tide_host_free(p->has_grown);
    tide_host_free(p->in);
    tide_host_free(p->out);
    tide_host_free(p->result);
}

/// Operators mostly name the node themselves; the errors of this file do not.
static void name_node(const tide_graph *g, const tide_node *n, tide_error *err) {
    if (err == NULL) return;
    char quoted[128];
    snprintf(quoted, sizeof quoted, "'%s'", n->name);
    if (strstr(err->msg, quoted) == NULL) tide_error_prefix(err, "%s '%s'", n->op_type, n->name);
    tide_error_where(err, "%s: node '%s'", g->source, n->name);
}

// ---- regions ----
//
// A body is walked like all other nodes, behind the node that opens it. What hangs on the whole body (results of an If,
// what a Loop collects) is known at the node that closes it. Whether a carried value keeps its size is known there too:
// before the outermost Loop or Scan is walked for good, with folding, its shapes are tried without, again for each
// carried value that turns out to be dynamic.

static tide__region_view view_of(infer_pass *p) {
    return (tide__region_view){.g = p->g, .known = p->known, .untaken = p->untaken, .needs_blank = &p->needs_blank};
}

static tide_status bound_region_output(infer_pass *p, const tide_node *open, size_t k, tide_error *err) {
    const tide__region_view x = view_of(p);
    tide__size s = tide__region_size(&x, open, k);
    if (p->has_grown[open->outputs[k]]) s.state = TIDE_BOUND_NONE;
    return tide__bound_value(p->g, open->outputs[k], &s, err);
}

/// Output `k` of the opening node: its size now, or none.
static tide_status infer_region_output(infer_pass *p, const tide_node *open, size_t k, tide_error *err) {
    const uint32_t value_i = open->outputs[k];
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    if (p->g->values[value_i].is_dynamic) return bound_region_output(p, open, k, err);
    const tide__region_view x = view_of(p);
    tide_operand o;
    tide_error own = TIDE_ERROR_INIT;
    tide_status st = tide__region_output(&x, open, k, &o, &own);
    if (st == TIDE_OK) st = store_one(&p->g->values[value_i], &o, &own);
    if (st == TIDE_ERR_UNKNOWN_SIZE && p->g->allows_dynamic) {
        make_value_dynamic(p, open, value_i);
        return bound_region_output(p, open, k, err);
    }
    if (st != TIDE_OK && err != NULL) *err = own;
    return st;
}

static tide_status choose_branch(infer_pass *p, const tide_node *open, tide_error *err) {
    const uint32_t first = open->opens, second = tide_region_of(p->g, first)->other;
    const tide__region_view x = view_of(p);
    tide__branch branch;
    if (second == 0) return TIDE_OK;
    p->untaken[first] = p->untaken[second] = false; // a trial may have known less
    TIDE_TRY(tide__region_branch(&x, open, &branch, err));
    p->untaken[first] = branch == TIDE__BRANCH_ELSE;
    p->untaken[second] = branch == TIDE__BRANCH_THEN;
    return TIDE_OK;
}

static tide_status open_region(infer_pass *p, const tide_node *open, tide_error *err) {
    if (!tide_region_repeats(tide_region_of(p->g, open->opens))) return choose_branch(p, open, err);
    TIDE_TRY(tide__region_check_open(p->g, open, err));
    for (size_t k = 0; k < open->n_outputs; k++) {
        if (!tide__region_is_late(p->g, open, k)) TIDE_TRY(infer_region_output(p, open, k, err));
    }
    return TIDE_OK;
}

/// A dynamic carried value got the bound of what is handed in: what an iteration hands on must fit there too.
static void check_growth(infer_pass *p, const tide_region *r, size_t k) {
    const uint32_t value_i = p->g->nodes[r->open].outputs[k];
    if (!p->g->values[value_i].is_dynamic || p->has_grown[value_i]) return;
    const tide__size now = tide__size_of(&p->g->values[value_i]);
    const tide__size next = tide__size_of(&p->g->values[p->g->nodes[r->close].inputs[tide_region_first_next(r) + k]]);
    if (now.state == TIDE_BOUND_NONE || tide__size_fits(&next, &now)) return;
    p->has_grown[value_i] = p->has_changed = true;
}

static tide_status close_loop(infer_pass *p, const tide_region *r, tide_error *err) {
    const tide__region_view x = view_of(p);
    for (size_t k = 0; k < r->n_carried; k++) {
        const tide_status st = tide__region_check_carried(&x, r, k, err);
        if (st == TIDE_OK) check_growth(p, r, k);
        if (st == TIDE_OK) continue;
        if (st != TIDE_ERR_UNKNOWN_SIZE || !p->is_trial || !p->g->allows_dynamic) return st;
        p->g->values[p->g->nodes[r->open].outputs[k]].is_dynamic = p->has_changed = true;
    }
    TIDE_TRY(tide__region_check_trips(&x, r, err));
    const tide_node *open = &p->g->nodes[r->open];
    for (size_t k = 0; k < r->n_collected; k++) TIDE_TRY(infer_region_output(p, open, r->n_carried + k, err));
    return TIDE_OK;
}

/// What read a result of the If reads that of the branch from now on, as often.
static void move_uses(infer_pass *p, const tide_region *r) {
    const tide_node *open = &p->g->nodes[r->open], *close = &p->g->nodes[r->close];
    for (size_t k = 0; k < r->n_carried; k++) {
        if (open->outputs[k] != TIDE_NO_VALUE) p->n_uses[close->inputs[k]] += p->n_uses[open->outputs[k]];
    }
}

static tide_status close_branch(infer_pass *p, const tide_node *close, tide_error *err) {
    const uint32_t number = close->closes;
    const tide_region *r = tide_region_of(p->g, number);
    const bool decided = r->other == 0 || p->untaken[r->other];
    if (r->kind == TIDE_REGION_THEN && !decided) return TIDE_OK; // known with the other branch
    for (size_t k = 0; k < r->n_carried; k++) TIDE_TRY(infer_region_output(p, &p->g->nodes[r->open], k, err));
    if (p->is_trial || !p->fold || r->other == 0 || !decided) return TIDE_OK;
    move_uses(p, r);
    tide_region_kill(p->g, r->other);
    tide_region_dissolve(p->g, number);
    return TIDE_OK;
}

static tide_status infer_ends(infer_pass *p, const tide_node *n, tide_error *err) {
    if (n->opens != 0) return open_region(p, n, err);
    const tide_region *r = tide_region_of(p->g, n->closes);
    return tide_region_repeats(r) ? close_loop(p, r, err) : close_branch(p, n, err);
}

static tide_status infer_control(infer_pass *p, const tide_node *n, tide_error *err) {
    p->needs_blank = false;
    TIDE_TRY(infer_ends(p, n, err));
    return p->needs_blank ? TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "a condition has no content") : TIDE_OK;
}

static bool is_untaken(const infer_pass *p, const tide_node *n) {
    for (uint32_t at = n->region; at != 0; at = tide_region_of(p->g, at)->parent) {
        if (p->untaken[at]) return true;
    }
    return false;
}

// ---- the walk ----

/// In a branch that a run may not take a node may be wrong for the sizes at hand: the run will find that out.
static bool may_wait(const infer_pass *p, const tide_node *n, tide_status st) {
    if (!p->g->allows_dynamic || n->def == NULL || tide_node_is_control(n)) return false;
    if (st == TIDE_ERR_UNKNOWN_SIZE) return true;
    return (st == TIDE_ERR_BAD_INPUT || st == TIDE_ERR_OVERFLOW) && tide_node_is_conditional(p->g, n);
}

static tide_status walk_node(infer_pass *p, uint32_t node_i, tide_error *err) {
    tide_node *n = &p->g->nodes[node_i];
    if (n->dead || is_untaken(p, n)) return TIDE_OK;
    tide_error own = TIDE_ERROR_INIT;
    if (n->widen != NULL && n->narrow == NULL) n->widen(n, p->g);
    const tide_status st = tide_node_is_control(n) ? infer_control(p, n, &own) : infer_node(p, n, &own);
    if (st == TIDE_OK) return TIDE_OK;
    const bool is_wanted = st == TIDE_ERR_UNKNOWN_SIZE && note_wanted(p, n);
    if (!is_wanted && may_wait(p, n, st)) {
        if (st != TIDE_ERR_UNKNOWN_SIZE && !p->is_trial)
            tide_log(TIDE_LOG_INFO, "%s: node '%s' (%s) is looked at again when it runs: %s", p->g->source, n->name,
                     n->op_type, own.msg);
        tide_error_clear(&own);
        const tide_status made = make_dynamic(p, n, &own);
        if (made != TIDE_OK && err != NULL) *err = own;
        return made;
    }
    name_node(p->g, n, &own);
    if (err != NULL) *err = own;
    return st;
}

/// What is known of a value before its node is walked.
typedef struct promise {
    tide_dtype dtype;
    bool has_shape;
    tide_shape shape;
} promise;

/// What a trial has to leave as it was: nodes order[begin] … order[end].
typedef struct trial {
    const tide_order *order;
    size_t begin, end;
    promise *before; // [n_values]
    bool *carried;   // [n_values] carried values of these nodes: they stay dynamic
    tide_tensor **known;
    size_t fold_bytes, content_bytes;
    double fold_work;
    bool fold;
} trial;

static const tide_node *node_in(const infer_pass *p, const trial *t, size_t i) {
    return &p->g->nodes[t->order->nodes[i]];
}

static void note_promises(const infer_pass *p, trial *t) {
    for (size_t i = t->begin; i <= t->end; i++) {
        const tide_node *n = node_in(p, t, i);
        const bool repeats = n->opens != 0 && tide_region_repeats(tide_region_of(p->g, n->opens));
        for (size_t k = 0; k < n->n_outputs; k++) {
            if (n->outputs[k] == TIDE_NO_VALUE) continue;
            const tide_value *v = &p->g->values[n->outputs[k]];
            t->before[n->outputs[k]] = (promise){v->dtype, v->has_shape, v->shape};
            t->carried[n->outputs[k]] = repeats && k < tide_region_of(p->g, n->opens)->n_carried;
        }
    }
}

static void restore_promises(infer_pass *p, const trial *t) {
    for (size_t i = t->begin; i <= t->end; i++) {
        const tide_node *n = node_in(p, t, i);
        for (size_t k = 0; k < n->n_outputs; k++) {
            const uint32_t value_i = n->outputs[k];
            if (value_i == TIDE_NO_VALUE) continue;
            tide_value *v = &p->g->values[value_i];
            const promise *before = &t->before[value_i];
            v->dtype = before->dtype;
            v->has_shape = before->has_shape;
            v->shape = before->shape;
            v->is_dynamic = v->is_dynamic && t->carried[value_i];
            v->is_bounded = false;
            tide_tensor_unref(p->known[value_i]);
            p->known[value_i] = NULL;
        }
    }
    p->fold_bytes = t->fold_bytes;
    p->fold_work = t->fold_work;
    p->content_bytes = t->content_bytes;
}

static tide_status run_trial(infer_pass *p, trial *t, tide_error *err) {
    tide_status st = TIDE_OK;
    note_promises(p, t);
    do {
        p->has_changed = false;
        for (size_t i = t->begin; st == TIDE_OK && i <= t->end; i++) st = walk_node(p, t->order->nodes[i], err);
        restore_promises(p, t);
    } while (st == TIDE_OK && p->has_changed);
    return st;
}

/// Find out which carried values keep their size, of the Loop or Scan at order[begin] and of those in it.
static tide_status try_body(infer_pass *p, const tide_order *order, size_t begin, tide_error *err) {
    trial t = {.order = order,
               .begin = begin,
               .end = begin,
               .fold = p->fold,
               .fold_bytes = p->fold_bytes,
               .fold_work = p->fold_work,
               .content_bytes = p->content_bytes};
    const uint32_t close = tide_region_of(p->g, p->g->nodes[order->nodes[begin]].opens)->close;
    while (order->nodes[t.end] != close) t.end++;
    const size_t n_values = p->g->n_values + 1;
    tide_status st = TIDE_NEW(&t.before, n_values, err, "for %zu values", n_values);
    if (st == TIDE_OK) st = TIDE_NEW(&t.carried, n_values, err, "for %zu values", n_values);
    if (st == TIDE_OK && p->known == NULL) st = TIDE_NEW(&t.known, n_values, err, "for %zu values", n_values);
    if (st == TIDE_OK) {
        if (p->known == NULL) p->known = t.known;
        p->fold = false;
        p->is_trial = true;
        st = run_trial(p, &t, err);
        p->fold = t.fold;
        p->is_trial = false;
        if (p->known == t.known) p->known = NULL;
    }
    tide_host_free(t.before);
    tide_host_free(t.carried);
    tide_host_free(t.known);
    return st;
}

/// The node opens a Loop or a Scan that lies in no other one.
static bool is_outermost_loop(const infer_pass *p, const tide_node *n) {
    if (n->dead || n->opens == 0 || !tide_region_repeats(tide_region_of(p->g, n->opens)) || is_untaken(p, n))
        return false;
    for (uint32_t at = n->region; at != 0; at = tide_region_of(p->g, at)->parent) {
        if (tide_region_repeats(tide_region_of(p->g, at))) return false;
    }
    return true;
}

static tide_status run_pass(infer_pass *p, const tide_order *order, tide_error *err) {
    TIDE_TRY(check_graph_inputs(p->g, err));
    tide_status st = pass_init(p, err);
    for (size_t i = 0; st == TIDE_OK && i < order->n; i++) {
        if (is_outermost_loop(p, &p->g->nodes[order->nodes[i]])) st = try_body(p, order, i, err);
        if (st == TIDE_OK) st = walk_node(p, order->nodes[i], err);
    }
    if (st == TIDE_OK) st = tide__bounds_check_given(p->g, err);
    TIDE_ASSERT(tide__graph_holds(p->g));
    pass_deinit(p);
    return st;
}

tide_status tide_graph_infer(tide_graph *g, const tide_order *order, bool fold, tide_error *err) {
    infer_pass p = {.g = g, .fold = fold};
    return run_pass(&p, order, err);
}

tide_status tide_graph_infer_sizes(tide_graph *g, const tide_order *order, const tide_contents *contents,
                                   tide_error *err) {
    infer_pass p = {.g = g, .fold = true, .contents = contents, .content_bytes = contents->all_bytes};
    return run_pass(&p, order, err);
}
