// SPDX-License-Identifier: MIT
//
// symbols: names for the call stacks of native code, after the run. Who finds them is not known here: debug information
// is read by a plug-in (symbols/), which the caller opens and hands on.
//
//     recorded   sort+0x5601                                   file and address, as long as nothing else is known
//     named      read_line @ /src/sort.c:812 [sort]            function, file and line, library
//                memcpy [libc.so.6]                            a symbol alone
//     inlined    read_line @ /src/sort.c:812 [sort] in main @ /src/sort.c:90 [sort]: two frames of one address
//
// A name is sure or there is none: a library whose file is another one by now (build id), or gone, stays as it was
// recorded, and the trace says why.
#ifndef TIDE_PROFILER_SYMBOLS_H
#define TIDE_PROFILER_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A function at an address. Of several the first one is the innermost: it was inlined into the second, and so on.
typedef struct tide_symbol {
    const char *function; ///< as the source has it; C++ as a person reads it
    const char *file;     ///< NULL: not known
    int line;             ///< in `file`: of the address, or of the call that was inlined; 0: not known
} tide_symbol;
typedef void (*tide_symbol_put)(void *ctx, const tide_symbol *symbol);

/// What the module exports, by a function without parameters, under TIDE_SYMBOLS_PLUGIN_SYMBOL.
typedef struct tide_symbols_plugin {
    uint32_t version; ///< TIDE_SYMBOLS_PLUGIN_VERSION: of this table
    /// Open the program or library at `path`. `build_id` (hexadecimal; "-": it has none): another one is refused.
    /// NULL: `why` says why.
    void *(*open)(const char *path, const char *build_id, char *why, size_t why_bytes);
    /// Call `put` for each function at an address of the file: none where nothing is known for sure. What it gets is
    /// borrowed until it returns.
    void (*find)(void *file, uint64_t address, tide_symbol_put put, void *ctx);
    void (*close)(void *file);
} tide_symbols_plugin;
#define TIDE_SYMBOLS_PLUGIN_FILE "libtidemark-symbols.so"
#define TIDE_SYMBOLS_PLUGIN_SYMBOL "tidemark_symbols_plugin"
enum { TIDE_SYMBOLS_PLUGIN_VERSION = 1 };
typedef const tide_symbols_plugin *(*tide_symbols_plugin_get)(void);

typedef struct tide_symbols_report {
    uint64_t n_frames, n_named; ///< frames of native code that had no name; those that have one now
    uint64_t n_files, n_refused;
    char refused[768]; ///< the first of those, and why
} tide_symbols_report;

/// Name the frames of the trace at `path` that have no name yet: in place, in one transaction. A trace that is not
/// finished is TIDE_ERR_IO; TIDE_ERR_BUSY while another process writes it; TIDE_ERR_BAD_INPUT; TIDE_ERR_NOMEM. After a
/// failure the trace is as it was. Costs the reading of the files that the frames lie in, and a few microseconds each.
tide_status tide_trace_name_frames(const char *path, const tide_symbols_plugin *symbols, tide_symbols_report *out,
                                   tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
