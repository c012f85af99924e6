// SPDX-License-Identifier: MIT
//
// nn_case: one operator run as the runtime would run it, for test_nn_ops and its oracles.
//
// A case is a one-node graph made from texts ("1x3x8x8", "strides=[2,2] group=2"). nn_run goes through resolve, infer,
// prepare (without any data, to prove that none is read), two execs and several runs: outputs and scratch are poisoned
// before each, addresses differ between runs, guards after every buffer must survive, and all runs must agree bit for
// bit; operators that say they may work in place are run so as well.
#ifndef TIDE_TESTS_OPS_NN_CASE_H
#define TIDE_TESTS_OPS_NN_CASE_H

#include "core/base/text.h"
#include "core/ops/op_util.h"
#include "core/ops/ops.h"
#include "tests/tide_test.h"

enum { NN_MAX = 9 };

typedef struct nn_case {
    tide_graph *g;
    tide_node *node;
    size_t n_in, n_out;
    tide_operand in[NN_MAX];  ///< data owned by the case, filled with seeded numbers
    tide_operand out[NN_MAX]; ///< after nn_run: result of the first run, owned
    tide_error err;
    size_t workspace_bytes; ///< after nn_run
} nn_case;

/**
 * Build a case.
 *
 * @param op     with its domain in front where it is not the standard one: "com.microsoft.Attention"
 * @param in     shapes separated by spaces; "-" is an omitted input; "u8:2x3" another dtype than float32 ("b:" is bool)
 * @param attrs  "name=3 name=0.5 name=TEXT name=[1,2]"
 * @param n_out  outputs; all are asked for
 */
void nn_make(nn_case *c, const char *op, int opset, const char *in, const char *attrs, size_t n_out);
void nn_done(nn_case *c);
/// Resolve and infer.
tide_status nn_infer(nn_case *c);
/// All of it; fails the test when any step does.
void nn_run(nn_case *c);
/// Two threads with an exec each run the same kernel many times; results must be those of nn_run.
void nn_run_threads(nn_case *c);
/// The inferred shape of output `i` is `want` ("1x4x5x5").
void nn_assert_shape(const nn_case *c, size_t i, const char *want);
/// Output i against `want`, element by element.
void nn_assert_close(const nn_case *c, size_t i, const double *want, double rel, double abs);

static inline float *nn_f32(const tide_operand *o) { return o->data; }

#endif
