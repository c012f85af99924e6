// SPDX-License-Identifier: MIT
//
// The plug-in through which `sweep` works in several processes. The program links no MPI: under a launcher it opens a
// module that does (mpi/tidemark_mpi.c) and calls it through this table.
#ifndef TIDE_CLI_MPI_PLUGIN_H
#define TIDE_CLI_MPI_PLUGIN_H

#include <stdint.h>

#define TIDE_MPI_PLUGIN_FILE "tidemark_mpi.so"
#define TIDE_MPI_PLUGIN_SYMBOL "tidemark_mpi_plugin"
enum { TIDE_MPI_PLUGIN_VERSION = 1 };

typedef struct tide_mpi_plugin {
    uint32_t version; ///< TIDE_MPI_PLUGIN_VERSION: of this table
    /// Begin; 0, or a code of MPI. All others are called after it, by the same thread.
    int (*begin)(int *rank, int *n_ranks);
    /// Bring the bytes of all ranks to rank 0, which is asked for room for those of each other rank before they come
    /// (NULL: none, its bytes are dropped). All ranks call it. 0, or a code of MPI.
    int (*gather)(const void *bytes, uint64_t n, void *(*room)(void *ctx, int rank, uint64_t n), void *ctx);
    /// All ranks get rank 0's code.
    int (*share_code)(int *code);
    void (*end)(void);
    /// What a code means, into `text`.
    void (*explain)(int code, char *text, int text_bytes);
} tide_mpi_plugin;

/// What the module exports under TIDE_MPI_PLUGIN_SYMBOL.
typedef const tide_mpi_plugin *(*tide_mpi_plugin_get)(void);

#endif
