// SPDX-License-Identifier: MIT
//
// FILE on the command line: found by its content, read once, turned into what the command needs.
#ifndef TIDE_CLI_INPUT_H
#define TIDE_CLI_INPUT_H

#include "core/graph/sizes.h"
#include "core/runtime/program.h"
#include "planner/formats/formats.h"
#include "planner/planner.h"
#include "profiler/query.h"

typedef enum cli_input_kind {
    CLI_INPUT_ONNX,
    CLI_INPUT_GRAPH,
    CLI_INPUT_PLAN,
    CLI_INPUT_LIFETIMES,      ///< CSV
    CLI_INPUT_LIFETIMES_JSON, ///< `tidemark.lifetimes`
    CLI_INPUT_FOREIGN_LIST,   ///< a model or plan of another compiler (planner/formats)
    CLI_INPUT_TRACE,
} cli_input_kind;
typedef struct cli_input {
    const char *path; ///< borrowed
    cli_input_kind kind;
    tide_list_format format; ///< of CLI_INPUT_FOREIGN_LIST
    char *data;              ///< owned, or `file`'s; NULL for a trace (SQLite opens it itself)
    size_t len;
    tide_block *file; ///< owned: a mapping of such a model; NULL: the bytes were read
    bool keep;        ///< cli_input_graph leaves the bytes: the graph will be read again
} cli_input;

/// "an ONNX model", "a trace", …
const char *cli_input_name(const cli_input *in);

/// Read and classify. An ONNX model or a foreign list in a plain file is mapped, and not read here. TIDE_ERR_IO,
/// TIDE_ERR_BAD_INPUT (empty, or nothing we know).
tide_status cli_input_open(const char *path, cli_input *out, tide_error *err) TIDE_NODISCARD;
void cli_input_close(cli_input *in);

/// Whether it begins like one; false for what cannot be read and for "-".
bool cli_input_is_trace(const char *path);
/**
 * Where the trace for FILE is: `path` itself, or, for another tool's recording (profiler/import), a trace made of it in
 * $TMPDIR (/tmp), with a note on stderr. It is made once for each path and removed when the program ends, by a signal
 * too.
 *
 * @param out  borrowed
 * @return what the import returns
 */
tide_status cli_trace_path(const char *path, const char **out, tide_error *err) TIDE_NODISCARD;
/// As tide_trace_open; when it finishes what a killed program left, a note says so.
tide_status cli_trace_open(const char *path, tide_trace **out, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT saying what the file is instead, unless it is an ONNX model or graph text.
tide_status cli_input_require_graph(const cli_input *in, tide_error *err) TIDE_NODISCARD;
/// The graph of an ONNX model or graph text, before shapes are bound; lets go of the file's bytes, unless `keep`
/// (constants may stay in a mapping).
tide_status cli_input_graph(cli_input *in, tide_graph **out, tide_error *err) TIDE_NODISCARD;
/// The same for sizes alone (core/graph/sizes.h). `own_bytes`: what may be taken; 0: 64 MiB and 20 times the file.
tide_status cli_input_sizes(cli_input *in, const tide_contents *contents, uint64_t own_bytes, tide_graph **out,
                            tide_error *err) TIDE_NODISCARD;

#endif
