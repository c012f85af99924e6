// SPDX-License-Identifier: MIT
//
// The plug-in of `tidemark sweep` for MPI: a module of its own, so that the program links no MPI (cli/mpi_plugin.h).
// Point-to-point messages of at most 1 GiB: counts of MPI 3 are int.
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/mpi_plugin.h"

enum { CHUNK = 1 << 30, TAG = 7 };

static int mine, n_all;

static int begin(int *rank, int *n_ranks) {
    int code = MPI_Init(NULL, NULL);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    if (code == MPI_SUCCESS) code = MPI_Comm_size(MPI_COMM_WORLD, &n_all);
    *rank = mine;
    *n_ranks = n_all;
    return code;
}

static int send(const char *bytes, uint64_t n) {
    for (uint64_t at = 0; at < n;) {
        const int chunk = n - at < CHUNK ? (int)(n - at) : CHUNK;
        const int code = MPI_Send(bytes + at, chunk, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        if (code != MPI_SUCCESS) return code;
        at += (uint64_t)chunk;
    }
    return MPI_SUCCESS;
}

/// Without room all chunks go into one scratch buffer, because the sender waits until they are received.
static int receive(int from, char *to, uint64_t n) {
    char *scratch = NULL;
    int code = MPI_SUCCESS;
    for (uint64_t at = 0; at < n && code == MPI_SUCCESS;) {
        const int chunk = n - at < CHUNK ? (int)(n - at) : CHUNK;
        if (to == NULL && scratch == NULL) scratch = malloc((size_t)chunk);
        char *into = to != NULL ? to + at : scratch;
        code = into == NULL ? MPI_ERR_NO_MEM
                            : MPI_Recv(into, chunk, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        at += (uint64_t)chunk;
    }
    free(scratch);
    return code;
}

static int gather(const void *bytes, uint64_t n, void *(*room)(void *ctx, int rank, uint64_t n), void *ctx) {
    uint64_t *sizes = mine == 0 ? calloc((size_t)n_all, sizeof *sizes) : NULL;
    if (mine == 0 && sizes == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 5); // the other ranks wait for this one
        return MPI_ERR_NO_MEM;
    }
    int code = MPI_Gather(&n, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS && mine != 0) code = send(bytes, n);
    for (int rank = 1; code == MPI_SUCCESS && sizes != NULL && rank < n_all; rank++)
        code = receive(rank, room(ctx, rank, sizes[rank]), sizes[rank]);
    free(sizes);
    return code;
}

static int share_code(int *code) { return MPI_Bcast(code, 1, MPI_INT, 0, MPI_COMM_WORLD); }

static void end(void) { MPI_Finalize(); }

static void explain(int code, char *text, int text_bytes) {
    char buf[MPI_MAX_ERROR_STRING + 1] = "";
    int n = 0;
    if (MPI_Error_string(code, buf, &n) != MPI_SUCCESS) n = 0;
    if (n > text_bytes - 1) n = text_bytes - 1;
    memcpy(text, buf, (size_t)n);
    text[n] = '\0';
}

static const tide_mpi_plugin plugin = {TIDE_MPI_PLUGIN_VERSION, begin, gather, share_code, end, explain};

const tide_mpi_plugin *tidemark_mpi_plugin(void);
__attribute__((visibility("default"))) const tide_mpi_plugin *tidemark_mpi_plugin(void) { return &plugin; }
