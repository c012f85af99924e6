// SPDX-License-Identifier: MIT
//
// session: measured runs of a program, as `run` and `compare` need them: a registry of instrumented allocators, a
// meter that counts, a ledger that knows each live block by name, perhaps a recorder. The program's weights live in it,
// contexts and inputs are made for each run and given back.
#ifndef TIDE_CLI_SESSION_H
#define TIDE_CLI_SESSION_H

#include "cli/bounded_report.h"
#include "cli/buffer_file.h"
#include "cli/cli.h"
#include "core/memory/ledger.h"
#include "core/memory/meter.h"
#include "core/runtime/context.h"
#include "tidemark/record.h"

typedef struct cli_session cli_session;

typedef struct cli_session_options {
    const char *allocator;   ///< as for tide_allocator_create_by_name
    uint64_t limit_bytes;    ///< what all kinds together may hold, one budget; 0: no limit
    tide_recorder *recorder; ///< borrowed, outlives the session; may be NULL
    bool keeps_warm_sites;   ///< count allocations of warm runs by tag and operator: cli_session_warm_sites
} cli_session_options;

/// Open a session: its registry serves every kind of the CPU with instrumented allocators.
tide_status cli_session_open(const cli_session_options *opt, cli_session **out, tide_error *err) TIDE_NODISCARD;
/// Where a program puts its weights, so that they are held once and measured (tide_program_options.weights_registry).
tide_registry *cli_session_registry(cli_session *s);
/// The allocator of weights that stay in their file (tide_program_options.mapped).
tide_allocator *cli_session_mapped(cli_session *s);
/// `plain` within the session's limit, or itself when there is none; a reference of the caller's own. For what takes
/// memory from the system: whatever is built over *out is within the limit then, with all it keeps.
tide_status cli_session_within_limit(cli_session *s, tide_allocator *plain, tide_allocator **out,
                                     tide_error *err) TIDE_NODISCARD;
/// Let `a` (of the CPU) serve `kind` from now on in place of what was there, observed like all others.
tide_status cli_session_serve(cli_session *s, tide_memory_kind kind, tide_allocator *a, tide_error *err) TIDE_NODISCARD;
/// For contexts that run in the session: hears their scopes. Valid until close.
const tide_observer *cli_session_observer(const cli_session *s);
/// The first error of recording, which does not end a run; status TIDE_OK if there is none.
const tide_error *cli_session_record_error(const cli_session *s);
/// Blocks of all kinds that were allocated since the session was opened.
uint64_t cli_session_n_allocated(const cli_session *s);
/// The first turn of every context is over: a moment of the trace, with the name "warm".
void cli_session_mark_warm(cli_session *s);
/// No more runs; what was made inside must be given back before, or it counts as leaked. May be called twice. Takes
/// NULL.
void cli_session_end(cli_session *s);
/// Ends the session and frees it. Blocks that are still alive must not be freed afterwards, because their
/// allocators would notify the freed session. Takes NULL.
void cli_session_close(cli_session *s);

/// What was not given back; all 0 is as it should be. Largest first; both lists and their texts are the session's.
typedef struct cli_leaks {
    const tide_live_block *at_end; ///< [n_at_end], alive when the session ended
    size_t n_at_end;
    const tide_live_block *late; ///< [n_late], born in a run and alive when its contexts, inputs and outputs were
                                 ///< gone, but given back before the session ended
    size_t n_late;
    uint64_t n_blocks; ///< all of them, also those for whose names there was no memory
    uint64_t now_ns;   ///< when the session ended
} cli_leaks;
/// After cli_session_end.
void cli_session_get_leaks(const cli_session *s, cli_leaks *out);
/// Allocations after the mark "warm", counted by tag and operator. Texts belong to the session.
typedef struct cli_warm_site {
    char *tag, *op; ///< "" if unknown
    tide_memory_kind kind;
    uint64_t n, largest_bytes;
} cli_warm_site;
/// [*n], in the order in which they came, with keeps_warm_sites; valid until the next run or close.
const cli_warm_site *cli_session_warm_sites(const cli_session *s, size_t *n);
/// The first allocation that failed, if one did.
bool cli_session_oom(const cli_session *s, tide_oom_report *out);

/// --fill: zero, none or poison; false: said.
bool cli_parse_fill(const cli_command *cmd, const char *text, tide_fill *out);

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
    const char *source;      ///< file, for the trace
    const char *buffer_file; ///< planned mode: the contexts' memory lies in this file; NULL: it is allocated
    bool keep_outputs;       ///< copy the outputs of context 0, last run, out of the measured memory
} cli_session_spec;

typedef struct cli_session_result {
    tide_meter_kind kinds[TIDE_N_KINDS]; ///< since the session was opened, or since the run before this one ended
    uint64_t total_peak_bytes;           ///< peak of the sum over kinds
    uint64_t time_min_ns, time_median_ns, time_max_ns; ///< of one run
    uint64_t warm_allocations; ///< block allocations after the first run of every context was over
    /// Of a model with bodies: what the plan's lifetimes say of Workspace at the peak of a naive run through the steps
    /// that the last run went through; else 0.
    uint64_t path_peak_bytes;
    cli_buffer_use buffer_file; ///< with buffer_file
    cli_bounded_list bounded;   ///< tensors that are sized while running within bounds, over all contexts
    tide_tensor **outputs;      ///< [n_outputs] with keep_outputs; owned
    size_t n_outputs;
} cli_session_result;

/// Run in one mode. May be called several times; weights stay, peaks are counted anew each time.
tide_status cli_session_run(cli_session *s, const cli_session_spec *spec, cli_session_result *out,
                            tide_error *err) TIDE_NODISCARD;
void cli_session_result_deinit(cli_session_result *r);

// For callers that make the contexts of a run themselves: begin, run, free everything, finish.

/// Where a run began. Zero-initialise: finishing what never began does nothing.
typedef struct cli_session_mark {
    bool begun, recorded;
    uint64_t last_id; ///< of the blocks that were there before
} cli_session_mark;
void cli_session_begin(cli_session *s, const cli_session_spec *spec, cli_session_mark *mark);
/// What the kinds held until now, into kinds and total_peak_bytes.
void cli_session_read(const cli_session *s, cli_session_result *out);
/// The run is over and what it made was given back: what is still alive of it is noted as a leak; then as
/// cli_session_read.
void cli_session_finish(cli_session *s, const cli_session_mark *mark, cli_session_result *out);

/// The inputs that `spec` describes, in memory of `registry`. @param inputs  [n_inputs], zeroed; those that were made
/// are there after a failure too, and are the caller's
tide_status cli_session_make_inputs(tide_registry *registry, const cli_session_spec *spec, tide_tensor **inputs,
                                    tide_error *err) TIDE_NODISCARD;
/// Shapes of the inputs that `input_dir` holds, one per graph input, for open extents; names are borrowed from the
/// graph.
tide_status cli_session_shapes_of_dir(const char *input_dir, const tide_graph *graph, tide_shape_binding **bindings,
                                      size_t *n, tide_error *err) TIDE_NODISCARD;

#endif
