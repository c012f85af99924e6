// SPDX-License-Identifier: MIT
//
// The type of an operator: what the graph's passes and the runtime need to know of one. core/ops fills the table;
// this header lets core/graph infer and fold without knowing any operator by name.
#ifndef TIDE_CORE_GRAPH_OP_DEF_H
#define TIDE_CORE_GRAPH_OP_DEF_H

#include "core/graph/graph.h"
#include "core/graph/intervals.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One operand as a kernel sees it: row-major and dense. Borrowed for the call.
typedef struct tide_operand {
    tide_dtype dtype; ///< TIDE_DTYPE_UNDEFINED: an omitted optional operand
    tide_shape shape; ///< all extents known
    size_t size_bytes;
    void *data; ///< NULL when not (yet) known, omitted or of 0 bytes; inputs are read only. For inference a
                ///< known input of 0 bytes has some address too: the shape operand [] of a scalar is known
} tide_operand;

static inline bool tide_operand_present(const tide_operand *o) { return o->dtype != TIDE_DTYPE_UNDEFINED; }

/// Bytes of the operands before one: an operator that adds them up goes on from here where the next one is asked about.
typedef struct tide_bytes_before {
    size_t in_i, bytes;
} tide_bytes_before;

/// Shape inference: what goes in and where the answer goes. All input shapes are known; `in[i].data` is non-NULL
/// when that input's content is known too (a constant), which is how Reshape or Slice learn their operands.
typedef struct tide_infer {
    const tide_node *node;
    const tide_operand *in; ///< [n_in]
    size_t n_in;
    tide_operand *out; ///< [n_out]; fill dtype and shape; size_bytes and data are ignored
    size_t n_out;
    tide_bytes_before *before; ///< of a caller that asks about all operands in turn, zeros at first; else NULL
    void *scratch;             ///< that it may use while it answers, in a run; NULL: none …
    size_t scratch_bytes;      ///< … of so many bytes
    bool is_running; ///< asked in a run. Else a program is planned: what takes long to count is TIDE_ERR_UNKNOWN_SIZE
} tide_infer;

/// What is known of the size of an operand before a run.
typedef enum tide_bound_state {
    TIDE_BOUND_NONE,
    TIDE_BOUND_SHAPE, ///< no extent is larger than those of its shape
    TIDE_BOUND_COUNT, ///< its shape is [n]: it has at most n elements, in whatever shape
} tide_bound_state;

/// How large results can be: inputs as large as each can be, and where the answer goes. An omitted input is of state
/// SHAPE and of no type.
struct tide_bounds {
    const tide_node *node;
    const tide_operand *in;           ///< [n_in]; data of constants alone
    const tide_shape *least;          ///< [n_in] of inputs of state SHAPE
    const tide_bound_state *state;    ///< [n_in]
    const tide_intervals *in_numbers; ///< [n_in] between which its few whole numbers lie; of constants themselves
    size_t n_in;
    tide_operand *out;           ///< [n_out]; to be filled: type and shape …
    tide_shape *out_least;       ///< [n_out] … the least extents, 0 at first …
    tide_bound_state *out_state; ///< [n_out] … and what they are, NONE at first
    tide_intervals
        *out_numbers; ///< [n_out] the same of results: all that there can be at first, where the size is known
    size_t n_out;
    bool is_by_shapes;         ///< out: sizes follow from those of the operands and from constants alone
    bool is_scratch_by_shapes; ///< out: prepare() may be asked about the largest operands, without other contents
};

typedef struct tide_kernel {
    const tide_op_def *def;
    const tide_node *node;
    void *state;            ///< of the operator; immutable once prepared, shared by all contexts
    size_t workspace_bytes; ///< scratch that one run needs; 0: none
} tide_kernel;

/// Preparation: shapes are final, constant inputs have data (valid as long as the kernel).
typedef struct tide_prepare {
    const tide_node *node;
    const tide_operand *in; ///< [n_in]
    size_t n_in;
    const tide_operand *out; ///< [n_out]; data NULL
    size_t n_out;
} tide_prepare;

/// One run of a kernel.
typedef struct tide_kernel_args {
    const tide_operand *in; ///< [n_in]
    size_t n_in;
    const tide_operand *out; ///< [n_out]; data to be written; omitted ones have dtype UNDEFINED
    size_t n_out;
    void *exec;      ///< from exec_create; NULL when the operator has none
    void *workspace; ///< workspace_bytes, aligned to 64; NULL when 0
} tide_kernel_args;

enum {
    TIDE_OP_VIEW = 1u << 0,       ///< output 0 has the bytes of input 0, unchanged: may be an alias of it
    TIDE_OP_FUSES_ACT = 1u << 1,  ///< honours node->activation
    TIDE_OP_SHAPE_ONLY = 1u << 2, ///< reads its inputs' shapes and never their data: foldable without constants
    TIDE_OP_PLAN_ONLY = 1u << 3,  ///< has no kernel: sizes can be planned, the graph cannot run
    TIDE_OP_NO_FOLD = 1u << 4,    ///< never folded (random, stateful)
    TIDE_OP_CONTROL = 1u << 5,    ///< opens or closes a region (region.h): the runtime does it, there is no kernel
};

/// Whether an operand may lie inside another one, so that the kernel has nothing to copy.
typedef enum tide_op_alias_kind {
    TIDE_OP_ALIAS_NONE,
    TIDE_OP_ALIAS_VIEW,  ///< the output has the input's bytes, all of them (TIDE_OP_VIEW, output 0 and input 0)
    TIDE_OP_ALIAS_PART,  ///< the input is a stretch of the output without gaps: Concat
    TIDE_OP_ALIAS_SLICE, ///< the output is a stretch of the input without gaps: Split, Slice
    TIDE_OP_ALIAS_NEXT, ///< of a step that closes a region: the input becomes what a value of the region is from now on
} tide_op_alias_kind;
typedef struct tide_op_alias {
    tide_op_alias_kind kind;
    uint64_t offset_bytes; ///< where the stretch begins in the whole
} tide_op_alias;

/// An attribute that an operator has.
typedef struct tide_attr_def {
    const char *name; ///< NULL: the list ends here
    tide_attr_type type;
    int since; ///< versions of the domain in which it has it, both inclusive; 0: from the row's first …
    int until; ///< … and to its last
} tide_attr_def;

/// One of them: TIDE_ATTR(INT, "axis"), TIDE_ATTR(INT, "layout", .since = 14). A name of NULL ends the list.
#define TIDE_ATTR(type_, ...)                                                                                          \
    { .type = TIDE_ATTR_##type_, .name = __VA_ARGS__ }
/// A list for tide_op_def.attrs: TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(INT, "layout", .since = 14))
#define TIDE_ATTRS(...)                                                                                                \
    (const tide_attr_def[]) {                                                                                          \
        __VA_ARGS__, { 0 }                                                                                             \
    }

/// One row of the operator registry. Functions without "optional" must be there unless TIDE_OP_PLAN_ONLY; of
/// TIDE_OP_CONTROL infer() alone.
struct tide_op_def {
    const char *domain; ///< "" is the standard one
    const char *name;
    int since, until; ///< opset versions this row serves, both inclusive; until 0: no end
    const tide_attr_def
        *attrs; ///< all that a node may have but bodies, ended by a name of NULL; NULL: it may have none
    uint32_t flags;
    uint32_t inplace_inputs; ///< bit i: output 0 may overwrite input i when that dies here, has as many elements of the
                             ///< same size, and no other input lies there but such whose bit is set too
    size_t min_inputs, max_inputs; ///< checked before infer; max 0: any number
    size_t min_outputs, max_outputs;
    const void *family; ///< optional: parameters of this row for functions that it shares with others; they read it as
                        ///< node->def->family
    tide_status (*infer)(const tide_infer *x, tide_error *err);
    /**
     * optional: how input `in_i` and output `out_i` may share bytes; without it, what TIDE_OP_VIEW says. `x` as infer
     * has filled it. Where the answer is PART or SLICE the kernel must find out by the addresses and then leave those
     * bytes alone: run() is called with in[in_i].data and out[out_i].data offset_bytes apart. Ask tide_op_alias_of.
     */
    tide_op_alias (*alias)(const tide_infer *x, size_t in_i, size_t out_i);
    /// optional: decides of the inputs in inplace_inputs, instead of the rule that there are as many elements of the
    /// same size: output 0 has at most the input's bytes, is written from its first byte on, and what a run has written
    /// never reaches what it will still read. Ask tide_op_may_overwrite.
    bool (*overwrites)(const tide_infer *x, size_t in_i);
    /// optional: multiply-adds of one run, about; for operators that do far more than read and write each element once.
    /// `x` as infer has filled it. Folding has a budget of them.
    double (*work)(const tide_infer *x);
    tide_status (*prepare)(const tide_prepare *x, tide_kernel *k, tide_error *err); ///< optional: no state, no scratch
    void (*destroy)(tide_kernel *k);                                                ///< optional: frees k->state
    /// optional: what one context needs for itself (memory descriptors of a library …), made once per context so
    /// that running allocates nothing
    tide_status (*exec_create)(const tide_kernel *k, void **exec, tide_error *err);
    void (*exec_destroy)(const tide_kernel *k, void *exec); ///< optional
    tide_status (*run)(const tide_kernel *k, const tide_kernel_args *args, tide_error *err);
};

/// How input `in_i` and output `out_i` of a node may share bytes: its row's alias(), else TIDE_OP_VIEW. All shapes of
/// `x` are known, those of the outputs too. NONE where either is absent or has no bytes.
tide_op_alias tide_op_alias_of(const tide_op_def *def, const tide_infer *x, size_t in_i, size_t out_i);
/// Whether output 0 may overwrite input `in_i` from its first byte on: the row says so, and both have as many elements
/// of the same size, or the row's overwrites() says so.
bool tide_op_may_overwrite(const tide_op_def *def, const tide_infer *x, size_t in_i);

#ifdef __cplusplus
}
#endif
#endif
