// SPDX-License-Identifier: MIT
//
// graph: values and nodes of a tensor program, as read from a file and rewritten by passes.
//
// A value is produced by at most one node and used by any number; it is a graph input, a constant (initialiser or
// folded), or the output of a node. Indices are stable: passes mark nodes dead and never renumber; the execution
// order is a list of node indices beside the graph (order.h).
#ifndef TIDE_CORE_GRAPH_GRAPH_H
#define TIDE_CORE_GRAPH_GRAPH_H

#include "core/base/map.h"
#include "core/tensor/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_NO_VALUE UINT32_MAX ///< an omitted optional input or output
#define TIDE_NO_NODE UINT32_MAX

typedef struct tide_op_def tide_op_def; // op_def.h
typedef struct tide_bounds tide_bounds; // op_def.h
struct tide_node;
struct tide_graph;
/// Fills in how large the outputs can be. @return false: nothing is known
typedef bool (*tide_bound_rule)(tide_bounds *x);
/// Gives a node the row that serves the types of its operands, once they are known.
typedef void (*tide_widen_rule)(struct tide_node *node, const struct tide_graph *g);

/// What the user says of a tensor that is sized while running: no extent is larger. -1 (TIDE_DIM_UNKNOWN): not said.
typedef struct tide_bound_given {
    const char *name;
    tide_shape most;
} tide_bound_given;

typedef enum tide_attr_type {
    TIDE_ATTR_INT,
    TIDE_ATTR_FLOAT,
    TIDE_ATTR_STRING,
    TIDE_ATTR_INTS,
    TIDE_ATTR_FLOATS,
    TIDE_ATTR_TENSOR,
    TIDE_ATTR_STRINGS,
} tide_attr_type;

typedef struct tide_attr {
    char *name;
    tide_attr_type type;
    int64_t i;
    float f;
    char *s;             ///< owned
    size_t n;            ///< elements of ints / floats / strings
    int64_t *ints;       ///< [n], owned
    float *floats;       ///< [n], owned; graph text fills it beside `ints`, since JSON writes 2.0 as 2
    char **strings;      ///< [n], owned
    tide_tensor *tensor; ///< referenced
} tide_attr;

/// An activation that a fusion pass has moved into the node that produces its input.
typedef enum tide_activation_kind {
    TIDE_ACT_NONE,
    TIDE_ACT_RELU,
    TIDE_ACT_CLIP,
    TIDE_ACT_SIGMOID,
    TIDE_ACT_TANH,
    TIDE_ACT_LEAKY_RELU,
} tide_activation_kind;
typedef struct tide_activation {
    tide_activation_kind kind;
    float alpha; ///< Clip: lower bound; LeakyRelu: slope
    float beta;  ///< Clip: upper bound
} tide_activation;

/// How large a value can be whose size is known only while running.
typedef struct tide_bound {
    tide_shape most;  ///< no extent is larger; with is_count [n]: it has at most n elements, in whatever shape
    tide_shape least; ///< no extent is smaller; of the rank of `most`
    bool is_count;
    bool by_file; ///< the file says so, and the operator has no rule
    bool by_user; ///< the user says so
} tide_bound;

/// How an operand of a node is quantised: x = (q - zero) * scale.
typedef struct tide_quant_operand {
    uint32_t scale; ///< which input of the node is the scale; TIDE_NO_VALUE: the operand is not quantised
    uint32_t zero;  ///< which input of the node is the zero point; TIDE_NO_VALUE: it is 0
    int32_t axis;   ///< there is a scale for each index of this axis; -1: one for all
} tide_quant_operand;

/// Of a node that reads or writes quantised tensors where its operator knows real numbers alone (core/ops/quantised.c).
typedef struct tide_quant {
    const tide_op_def *def; ///< the row of the operator; node->def is that of tidemark.Quantised
    size_t n_inputs;        ///< of the operator; behind them in node->inputs are scales and zero points
    tide_dtype out_dtype;   ///< of what is written, where `out` is quantised
    tide_quant_operand out;
    tide_quant_operand in[]; ///< [n_inputs]
} tide_quant;

typedef struct tide_value {
    char *name;             ///< unique in the graph, never empty
    tide_dtype dtype;       ///< TIDE_DTYPE_UNDEFINED until inferred
    bool has_shape;         ///< false: not even the rank is known
    tide_shape shape;       ///< extents may be TIDE_DIM_UNKNOWN
    char **dim_names;       ///< [shape.rank] or NULL; a symbolic extent's name, for messages; entries may be NULL
    uint32_t producer;      ///< node index or TIDE_NO_NODE
    uint32_t producer_port; ///< which output of it
    bool is_input;          ///< a graph input that the caller feeds (constants that are also listed are not)
    bool is_output;
    tide_tensor *constant; ///< referenced; non-NULL: the value is known before any run
    /// Its size is known only while running: `dtype` and `shape` are what the file promises of it, if anything. Every
    /// node that reads or makes such a value is dynamic: shapes are inferred and the kernel prepared in each run.
    bool is_dynamic;
    /// A dynamic value that has a place in the plan, with room for its bound; `dtype` is then known.
    bool is_bounded;
    tide_bound *bound; ///< of a dynamic value, owned; NULL: none is known
} tide_value;

typedef struct tide_node {
    char *name; ///< never empty; made up as "<op>_<index>" where the file has none
    char *op_type;
    char *domain;     ///< "" for the standard one ("ai.onnx" is read as "")
    int opset;        ///< version of its domain
    tide_attr *attrs; ///< [n_attrs], owned
    size_t n_attrs;
    uint32_t *inputs; ///< [n_inputs] value indices or TIDE_NO_VALUE
    size_t n_inputs;
    uint32_t *outputs; ///< [n_outputs] value indices or TIDE_NO_VALUE
    size_t n_outputs;
    tide_activation activation;
    const tide_op_def *def;    ///< set by the operator registry (core/ops); NULL until then
    tide_quant *quant;         ///< owned; NULL: the operator reads and writes what its inputs and outputs are
    bool holds_weight;         ///< a DequantizeLinear that is not folded: its readers can read the quantised tensor
    tide_bound_rule rule;      ///< how large its results can be, set with `def`; NULL: nothing is known
    tide_widen_rule widen;     ///< set with `def`; NULL: its row is final
    const tide_op_def *narrow; ///< of a node on 16-bit floats the row of its operator, which knows float32 alone
    /// A dynamic node whose results' sizes follow from its inputs' sizes and from constants: a kernel is good as long
    /// as these sizes stay, and it could be prepared for the largest ones.
    bool is_sized_by_shapes;
    bool has_most_scratch; ///< a dynamic node whose kernel can be asked how much scratch the largest operands take
    bool dead;             ///< removed by a pass
    uint32_t region;       ///< number of the region that it belongs to; 0: of none
    uint32_t opens;        ///< number of its first region: an If, a Loop or a Scan; 0: an ordinary node
    uint32_t closes;       ///< number of the region of which it is the last node; 0: an ordinary node
} tide_node;

typedef struct tide_region tide_region; // region.h

typedef struct tide_graph {
    char *name;   ///< of the model; never empty
    char *source; ///< file it came from, for messages; "" when built in memory
    char **files; ///< [n_files] other files that constants came from, each once
    size_t n_files, cap_files;
    /// The most bytes that constants held at once while shapes were inferred and nodes folded, but for those that stay
    /// in a mapped file; 0 before that.
    uint64_t constants_peak_bytes;
    /// Nodes whose results would be larger are not folded, but run; 0: all are folded that can be. Set before shapes
    /// are inferred.
    uint64_t fold_max_bytes;
    /// A size that hangs on data makes a value dynamic; false: it is an error. Set before shapes are inferred.
    bool allows_dynamic;
    /// A dynamic value is planned at its bound where that is at most so many bytes, or was given. Set before shapes are
    /// inferred.
    uint64_t bound_limit_bytes;
    const tide_bound_given *given; ///< [n_given], borrowed while shapes are inferred
    size_t n_given;
    char *comment; ///< what it shows (graph text) or the producer (ONNX); may be NULL
    tide_value *values;
    size_t n_values, cap_values;
    tide_node *nodes;
    size_t n_nodes, cap_nodes;
    uint32_t *inputs; ///< [n_inputs] values the caller feeds, in file order
    size_t n_inputs, cap_inputs;
    uint32_t *outputs; ///< [n_outputs], in file order
    size_t n_outputs, cap_outputs;
    tide_strmap value_index; ///< name -> value index
    tide_region *regions;    ///< [n_regions]; region number r is regions[r - 1] (region.h)
    size_t n_regions, cap_regions;
} tide_graph;

tide_status tide_graph_create(const char *name, const char *source, tide_graph **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL. Drops the references to constants.
void tide_graph_destroy(tide_graph *g);

/// Add a value. @return TIDE_ERR_BAD_INPUT naming it when the name is taken; TIDE_ERR_NOMEM
tide_status tide_graph_add_value(tide_graph *g, const char *name, uint32_t *out, tide_error *err) TIDE_NODISCARD;
/// The value of that name, added without type or shape when there is none yet.
tide_status tide_graph_intern_value(tide_graph *g, const char *name, uint32_t *out, tide_error *err) TIDE_NODISCARD;
/// TIDE_NO_VALUE when there is none.
uint32_t tide_graph_find_value(const tide_graph *g, const char *name);
/**
 * Add a node with its edges; sets producer and port of its outputs.
 *
 * @param name  may be NULL or "": one is made up
 * @return TIDE_ERR_BAD_INPUT naming node and value when an output already has a producer, is a graph input or a
 *         constant; TIDE_ERR_NOMEM. On error the graph is unchanged.
 */
tide_status tide_graph_add_node(tide_graph *g, const char *name, const char *op_type, const char *domain, int opset,
                                const uint32_t *inputs, size_t n_inputs, const uint32_t *outputs, size_t n_outputs,
                                uint32_t *out, tide_error *err) TIDE_NODISCARD;
/// Append an attribute (taken: freed with the node, also when this fails). TIDE_ERR_BAD_INPUT when the name repeats.
tide_status tide_graph_add_attr(tide_graph *g, uint32_t node_i, tide_attr *attr, tide_error *err) TIDE_NODISCARD;
void tide_attr_deinit(tide_attr *attr);
tide_status tide_graph_add_input(tide_graph *g, uint32_t value_i, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT when the value is already an output.
tide_status tide_graph_add_output(tide_graph *g, uint32_t value_i, tide_error *err) TIDE_NODISCARD;
/// Make the value a constant; takes its own reference; sets dtype and shape from the tensor.
void tide_graph_set_constant(tide_graph *g, uint32_t value_i, tide_tensor *tensor);
/**
 * Every live node's inputs exist: each is omitted, a graph input, a constant, or the output of a live node; every
 * graph output is one of these.
 *
 * @return TIDE_ERR_BAD_INPUT naming the node and the value, or the output
 */
tide_status tide_graph_validate(const tide_graph *g, tide_error *err) TIDE_NODISCARD;
/// The largest shape that a value of a known size, or a bounded one, can have.
static inline const tide_shape *tide_value_most(const tide_value *v) {
    return v->is_bounded ? &v->bound->most : &v->shape;
}
/// Whether it reads or makes a dynamic value.
bool tide_node_is_dynamic(const tide_graph *g, const tide_node *n);
/// A copy, owned by the caller (tide_host_free); NULL: no memory.
tide_quant *tide_quant_copy(const tide_quant *q);
/// Live nodes that use `value_i` (an input position counts once per position).
size_t tide_graph_count_uses(const tide_graph *g, uint32_t value_i);

const tide_attr *tide_node_attr(const tide_node *n, const char *name); ///< NULL when absent
int64_t tide_node_attr_int(const tide_node *n, const char *name, int64_t absent);
float tide_node_attr_float(const tide_node *n, const char *name, float absent); ///< an integer reads as a float
const char *tide_node_attr_string(const tide_node *n, const char *name, const char *absent);
/// The list, or NULL with *len = 0 when absent; borrowed.
const int64_t *tide_node_attr_ints(const tide_node *n, const char *name, size_t *len);
const float *tide_node_attr_floats(const tide_node *n, const char *name, size_t *len);
const char *const *tide_node_attr_strings(const tide_node *n, const char *name, size_t *len);

#ifdef __cplusplus
}
#endif
#endif
