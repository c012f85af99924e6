// SPDX-License-Identifier: MIT
//
// decode: a graph that is one step of a decoder, run token by token over a KV cache (`run --decode N`). The five kinds
// of memory that a language model has are then all there: weights Persistent, activations Workspace, keys and values
// KVCache in pages, the buffer that gathers them HostPinned, inputs and outputs Default (LT-40).
//
// The graph says by names what is what (docs/graph-text.md):
//
//     token, position, cache.X [… T …], cache.Y [… T …]  ->  step  ->  next, new.X [… 1 …], new.Y [… 1 …]
#ifndef TIDE_CLI_DECODE_H
#define TIDE_CLI_DECODE_H

#include <stdbool.h>

#include "cli/session.h"
#include "core/base/json_out.h"
#include "core/memory/kv_cache.h"

enum { CLI_DECODE_PAGE_TOKENS = 16 };

typedef struct cli_decode_spec {
    const cli_session_spec *run; ///< as for a plain run; runs, contexts, input_dir and keep_outputs are not read. The
                                 ///< seed draws a first token that is no integer; an integer is 0
    size_t n_tokens;             ///< steps, >= 1
    size_t page_tokens;          ///< tokens in one page of the cache, >= 1
    const char *allocator;       ///< what the cache takes its slabs from
} cli_decode_spec;

/// The cache after one step.
typedef struct cli_decode_step {
    int64_t token; ///< that the step chose; meaningful with has_tokens
    tide_kv_cache_stats kv;
} cli_decode_step;

typedef struct cli_decode_result {
    cli_session_result session; ///< kinds, times; no outputs. warm_allocations: all but pages of the cache
    cli_decode_step *steps;     ///< [n_steps], owned
    size_t n_steps;
    bool has_tokens; ///< `next` is one integer
    size_t max_tokens, page_tokens, token_bytes;
    uint64_t total_ns; ///< of all steps, gathering included
    uint64_t hash;     ///< FNV-1a over every output of every step: equal runs have equal ones
} cli_decode_result;

/// @return TIDE_ERR_BAD_INPUT (no decoder step), TIDE_ERR_INVALID (more tokens than the cache holds), and what a run
/// returns
tide_status cli_decode_run(cli_session *s, const cli_decode_spec *spec, cli_decode_result *out,
                           tide_error *err) TIDE_NODISCARD;
void cli_decode_result_deinit(cli_decode_result *r);

/// What comes after the table of kinds: the cache's growth, one line where it took a page.
void cli_decode_print(const cli_decode_result *r);
/// The value of "decode" in the document of `run`.
void cli_json_decode(tide_json_out *j, const char *key, const cli_decode_result *r);

#endif
