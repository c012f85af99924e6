// SPDX-License-Identifier: MIT
//
// What the runtime's tests share: a rig of metered allocators, small graphs by hand, and the way from a graph to a
// context in one call each. Everything here fails the test by itself.
#ifndef TIDE_TESTS_RUNTIME_RT_UTIL_H
#define TIDE_TESTS_RUNTIME_RT_UTIL_H

#include "core/memory/allocators/allocators.h"
#include "core/memory/meter.h"
#include "core/runtime/context.h"
#include "planner/passes.h"
#include "tests/tide_test.h"

// ---- rig: every allocation of weights, outputs, buffers and births goes through one metered allocator ----

typedef struct rt_rig {
    tide_meter *meter;
    tide_observer observer;
    tide_registry *registry;
} rt_rig;
void rt_rig_open(rt_rig *r);
/// Checks that nothing is alive any more.
void rt_rig_close(rt_rig *r);
uint64_t rt_live(const rt_rig *r, tide_memory_kind kind);
uint64_t rt_peak(const rt_rig *r, tide_memory_kind kind);
uint64_t rt_n_allocs(const rt_rig *r);

// ---- graphs by hand: shapes are "2x3", lists of values "a,b" ("" between commas: omitted) ----

tide_graph *rt_graph(const char *name);
void rt_input(tide_graph *g, const char *name, const char *shape);
/// A float constant: start, start + step, start + 2 step, …
void rt_weight(tide_graph *g, const char *name, const char *shape, float start, float step);
void rt_weight_i64(tide_graph *g, const char *name, const int64_t *data, size_t n);
uint32_t rt_node(tide_graph *g, const char *op, const char *name, const char *inputs, const char *outputs);
void rt_attr_ints(tide_graph *g, uint32_t node, const char *name, const int64_t *ints, size_t n);
void rt_attr_int(tide_graph *g, uint32_t node, const char *name, int64_t i);
void rt_output(tide_graph *g, const char *name);

tide_graph *rt_graph_diamond(void);      ///< x -> relu -> {sigmoid, tanh} -> add -> y
tide_graph *rt_graph_early_output(void); ///< an output that is born first and read again last (X-5)
tide_graph *rt_graph_conv(void);         ///< two convolutions, pooling, an inner product: weights and scratch
tide_graph *rt_graph_long(void);         ///< 12 steps of different sizes with long skips
/// The four above by number, NULL past the end: for tests that hold on any graph.
tide_graph *rt_graph_nth(size_t i);
/// sample_graphs/NAME.json
tide_graph *rt_graph_sample(const char *name);

// ---- from graph to context ----

tide_program *rt_build(tide_graph *g);
tide_memory_plan *rt_plan(const tide_program *p, const char *strategy);
/// A plan with the alias passes whose bits are set (1u << TIDE_PASS_VIEWS, …). *n_aliases may be NULL.
tide_memory_plan *rt_plan_aliased(const tide_program *p, const char *strategy, unsigned passes, size_t *n_aliases);
enum {
    RT_ALL_ALIASES = (1 << TIDE_PASS_VIEWS | 1 << TIDE_PASS_SLICES | 1 << TIDE_PASS_IN_PLACE | 1 << TIDE_PASS_PARTS)
};
/// Entry of that name in the plan; fails the test when there is none.
size_t rt_entry(const tide_memory_plan *m, const char *name);
tide_inference_plan *rt_inference(rt_rig *r, tide_program *p, const tide_memory_plan *m);
tide_context *rt_context(tide_inference_plan *ip, tide_run_mode mode, tide_fill fill);
/// A float tensor of the default registry, filled with numbers that depend on `seed`.
tide_tensor *rt_tensor(const char *shape, uint64_t seed);
/// Feed every input of the context's graph with numbers of `seed` out of the rig's registry (kind Default).
void rt_feed(tide_context *c, const tide_program *p, rt_rig *r, uint64_t seed);
void rt_run(tide_context *c);
/// All outputs of two contexts have the same bytes.
void rt_assert_same_outputs(const tide_context *a, const tide_context *b);
/// Copy of all output bytes, one behind the other; host memory of the caller.
char *rt_output_bytes(const tide_context *c, size_t *n);

#endif
