// SPDX-License-Identifier: MIT
//
// session: measured runs of a program, as `run` and `compare` need them: a registry of instrumented allocators, a
// meter, perhaps a recorder. The program's weights live in it, contexts and inputs are made for each run and given
// back.
#ifndef TIDE_CLI_SESSION_H
#define TIDE_CLI_SESSION_H

#include "core/memory/meter.h"
#include "core/runtime/context.h"
#include "profiler/recorder.h"

typedef struct cli_session cli_session;

/**
 * Open a session: its registry serves every kind of the CPU with instrumented allocators.
 *
 * @param allocator  "cpu" or "cpu_caching"
 * @param recorder   borrowed, outlives the session; may be NULL
 */
tide_status cli_session_open(const char *allocator, tide_recorder *recorder, cli_session **out,
                             tide_error *err) TIDE_NODISCARD;
/// Where a program puts its weights, so that they are held once and measured (tide_program_options.weights_registry).
tide_registry *cli_session_registry(cli_session *s);

/// What a session still held when it was closed; all 0 is as it should be.
typedef struct cli_leaks {
    uint64_t blocks[TIDE_N_KINDS];
    uint64_t bytes[TIDE_N_KINDS];
} cli_leaks;
/// Close: everything that was made inside must be given back before, or it counts as leaked. Takes NULL; `leaks` may
/// be NULL.
void cli_session_close(cli_session *s, cli_leaks *leaks);

typedef struct cli_session_spec {
    tide_program *program;        ///< borrowed; its weights are in the session's registry
    const tide_memory_plan *plan; ///< borrowed; its lifetimes go into the trace in naive mode too
    tide_run_mode mode;
    tide_fill fill;
    tide_device device;
    size_t runs;           ///< per context, >= 1
    size_t contexts;       ///< threads, one context each, >= 1
    const char *input_dir; ///< ONNX layout: input_0.pb …; NULL: inputs are drawn from `seed`
    uint64_t seed;
    const char *source; ///< file, for the trace
    bool keep_outputs;  ///< copy the outputs of context 0, last run, out of the measured memory
} cli_session_spec;

typedef struct cli_session_result {
    tide_meter_kind kinds[TIDE_N_KINDS]; ///< since the session was opened, or since the run before this one ended
    uint64_t total_peak_bytes;           ///< peak of the sum over kinds
    uint64_t time_min_ns, time_median_ns, time_max_ns; ///< of one run
    uint64_t warm_allocations; ///< block allocations after the first run of every context was over
    tide_tensor **outputs;     ///< [n_outputs] with keep_outputs; owned
    size_t n_outputs;
} cli_session_result;

/// Run in one mode. May be called several times; weights stay, peaks are counted anew each time.
tide_status cli_session_run(cli_session *s, const cli_session_spec *spec, cli_session_result *out,
                            tide_error *err) TIDE_NODISCARD;
void cli_session_result_deinit(cli_session_result *r);

/// Shapes of the inputs that `input_dir` holds, one per graph input, for open extents; names are borrowed from the
/// graph.
tide_status cli_session_shapes_of_dir(const char *input_dir, const tide_graph *graph, tide_shape_binding **bindings,
                                      size_t *n, tide_error *err) TIDE_NODISCARD;

#endif
