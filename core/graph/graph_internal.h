// SPDX-License-Identifier: MIT
//
// What the files of core/graph share.
#ifndef TIDE_CORE_GRAPH_GRAPH_INTERNAL_H
#define TIDE_CORE_GRAPH_GRAPH_INTERNAL_H

#include "core/base/host_alloc.h"
#include "core/graph/op_def.h"

/// "planning this would take about 2 GiB, and 100 MiB is what it may take" as TIDE_ERR_NOMEM.
static inline tide_status tide__graph_needs_too_much(uint64_t need_bytes, uint64_t max_bytes, tide_error *err) {
    char need[32], most[32];
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "planning this would take about %s, and %s is what it may take",
                     tide_format_bytes(need_bytes, need, sizeof need), tide_format_bytes(max_bytes, most, sizeof most));
}

// ---- graph.c ----

/// `base`, or `base_2`, `base_3` … : the first that no value of `g` has. Owned by the caller; NULL: no memory.
char *tide__value_name_unique(const tide_graph *g, const char *base);
/// `<op_type>_<node_i>`, with `_2`, `_3` … behind where `taken` has that already, into `out` (empty) and into `taken`.
tide_status tide__node_name_make(const char *op_type, size_t node_i, tide_strmap *taken, tide_text *out,
                                 tide_error *err) TIDE_NODISCARD;
/// The last part of a path; "graph" for standard input and for none. Borrowed from `path`.
const char *tide__path_leaf(const char *path);

/// Nothing reads the constant of `value_i` any more, if it has one. Pages of a file that were read for it are given
/// back.
void tide__graph_drop_constant(tide_graph *g, uint32_t value_i);

// ---- number.c ----

/// A tensor for a constant: CPU, HostPageable, from the registry of the process, content undefined.
tide_status tide__constant_create(tide_dtype dtype, const tide_shape *shape, const char *tag, tide_tensor **out,
                                  tide_error *err) TIDE_NODISCARD;
/// Write element `i` of an array of `dtype`; reals are rounded to nearest even. False: `v` is outside the type (an
/// integer type wants a whole number), nothing is written.
bool tide__number_store_real(void *array, tide_dtype dtype, size_t i, double v) TIDE_NODISCARD;
bool tide__number_store_int(void *array, tide_dtype dtype, size_t i, int64_t v) TIDE_NODISCARD;

// ---- eval.c ----

/**
 * Run a node once on known operands.
 *
 * @param in, out  as the kernel sees them; out[i].data is ignored
 * @param results  out [n_out], owned by the caller; NULL entries for omitted outputs; untouched on error
 * @return what the operator returns, TIDE_ERR_NOMEM
 */
tide_status tide__node_eval(const tide_node *node, const tide_operand *in, size_t n_in, const tide_operand *out,
                            size_t n_out, tide_tensor **results, tide_error *err) TIDE_NODISCARD;

// ---- shapes.c ----

/// The extent that the symbol `name` has in an input whose size is known; TIDE_DIM_UNKNOWN when none has it or two
/// inputs differ.
int64_t tide__symbol_extent(const tide_graph *g, const char *name);

// ---- prune.c ----

/// Uses per value over the live nodes, a graph output counting as one more. [n_values], owned; NULL: no memory.
size_t *tide__graph_use_table(const tide_graph *g);

#endif
