// SPDX-License-Identifier: MIT
//
// A sweep in several processes: the launcher is recognised by its environment variables, and messages go through the
// plug-in. See sweep.h and mpi_plugin.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/sweep_tables.h"
#include "cli/mpi_plugin.h"
#include "cli/sweep.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/base/module.h"

// ---- the launcher ----

static int number_of(const char *name) {
    const char *text = getenv(name);
    if (text == NULL || *text < '0' || *text > '9') return -1;
    return (int)strtol(text, NULL, 10);
}

/// How many processes the launcher of MPI started; 1 without one. Slurm's own count says so only beside PMIx: a batch
/// script has it too.
static int launched(void) {
    int n = number_of("OMPI_COMM_WORLD_SIZE");
    if (n < 0) n = number_of("PMI_SIZE");
    if (n < 0 && getenv("PMIX_RANK") != NULL) n = number_of("SLURM_STEP_NUM_TASKS");
    return n > 0 ? n : 1;
}

// ---- the plug-in ----

static tide_status open_plugin(const tide_mpi_plugin **out, tide_error *err) {
    // Open MPI's parts are modules themselves, which find its library's names in the process.
    static const tide_module module = {
        .file = TIDE_MPI_PLUGIN_FILE, .variable = "TIDEMARK_MPI", .symbol = TIDE_MPI_PLUGIN_SYMBOL, .global = true};
    void *entry = NULL;
    TIDE_TRY(tide_module_open(&module, &entry, err));
    tide_mpi_plugin_get get;
    *(void **)&get = entry;
    *out = get();
    if ((*out)->version == TIDE_MPI_PLUGIN_VERSION) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the plug-in for MPI is of another version of tidemark");
}

static tide_status find_plugin(const tide_mpi_plugin **out, int n, tide_error *err) {
    if (open_plugin(out, err) == TIDE_OK) return TIDE_OK;
    tide_error_prefix(err, "cannot work as one of %d processes", n);
    tide_error_hint(err, "it is " TIDE_MPI_PLUGIN_FILE ", built where cmake finds MPI (libopenmpi-dev), beside the "
                         "program or where $TIDEMARK_MPI says; one process alone needs none");
    if (err != NULL) err->status = TIDE_ERR_NOT_FOUND;
    return TIDE_ERR_NOT_FOUND;
}

static tide_status failed_call(const tide_mpi_plugin *mpi, const char *what, int code, tide_error *err) {
    char text[256];
    mpi->explain(code, text, (int)sizeof text);
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "MPI cannot %s: %s", what, text);
}

tide_status cli_sweep_ranks_open(cli_sweep_ranks *out, tide_error *err) {
    *out = (cli_sweep_ranks){.n = 1};
    const int n = launched();
    if (n < 2) return TIDE_OK;
    const tide_mpi_plugin *mpi = NULL;
    TIDE_TRY(find_plugin(&mpi, n, err));
    int rank = 0, n_ranks = 1;
    const int code = mpi->begin(&rank, &n_ranks);
    if (code != 0) return failed_call(mpi, "begin", code, err);
    *out = (cli_sweep_ranks){.mpi = mpi, .rank = rank, .n = n_ranks};
    return TIDE_OK;
}

int cli_sweep_ranks_close(cli_sweep_ranks *r, int code) {
    if (r->mpi == NULL) return code;
    if (r->mpi->share_code(&code) != 0) code = CLI_EXIT_INTERNAL;
    r->mpi->end();
    *r = (cli_sweep_ranks){.n = 1};
    return code;
}

// ---- what the ranks found ----

/// The messages of all ranks.
typedef struct messages {
    char **bytes; // [n]
    size_t *lens; // [n]
} messages;

static void *make_room(void *ctx, int rank, uint64_t n) {
    messages *l = ctx;
    if (l->bytes == NULL || l->lens == NULL) return NULL;
    l->bytes[rank] = tide_host_alloc((size_t)n + 1);
    if (l->bytes[rank] == NULL) return NULL;
    l->bytes[rank][n] = '\0';
    l->lens[rank] = (size_t)n;
    return l->bytes[rank];
}

/// Writes the message of a rank: its sweep as JSON, or '!' and the reason why it has none.
static void write_message(const tide_sweep *own, tide_status failed, const tide_error *why, tide_text *out) {
    if (failed == TIDE_OK) tide_sweep_write_json(own, false, out);
    if (failed == TIDE_OK && !out->failed) return;
    tide_text_deinit(out);
    *out = (tide_text){0};
    tide_text_addf(out, "!%s", failed != TIDE_OK && why != NULL ? why->msg : "no memory for its points");
}

static tide_status read_message(const messages *l, int rank, const cli_sweep_job *job, tide_sweep *out,
                                tide_error *err) {
    char where[32];
    tide_json_reader r = {.path = where};
    const char *bytes = l->bytes[rank];
    snprintf(where, sizeof where, "rank %d", rank);
    if (bytes == NULL) return cli_sweep_lost(job, (uint32_t)rank, "no memory for what this rank sent", out, err);
    if (bytes[0] == '!') return cli_sweep_lost(job, (uint32_t)rank, bytes + 1, out, err);
    json_t *doc;
    tide_status st = tide_json_parse(&r, bytes, l->lens[rank], 0, "not JSON", &doc);
    if (st == TIDE_ERR_NOMEM) return cli_sweep_lost(job, (uint32_t)rank, "no memory for what this rank sent", out, err);
    if (st != TIDE_OK) return cli_sweep_lost(job, (uint32_t)rank, "what this rank sent cannot be read", out, err);
    st = tide_sweep_of_json(doc, where, out, err);
    json_decref(doc);
    return st;
}

/// On rank 0: merges its own sweep and those of the others.
static tide_status merge_sweeps(const cli_sweep_ranks *r, const cli_sweep_job *job, const messages *l, tide_sweep *own,
                                tide_sweep *out, tide_error *err) {
    tide_sweep *parts;
    TIDE_TRY(TIDE_NEW(&parts, (size_t)r->n, err, "for %d sweeps", r->n));
    tide_status st = TIDE_OK;
    parts[0] = *own;
    *own = (tide_sweep){0};
    for (int rank = 1; st == TIDE_OK && rank < r->n; rank++) st = read_message(l, rank, job, &parts[rank], err);
    if (st == TIDE_OK)
        st = tide_sweep_merge(parts, (size_t)r->n, out, err);
    else
        for (int rank = 0; rank < r->n; rank++) tide_sweep_deinit(&parts[rank]);
    tide_host_free(parts);
    return st;
}

static tide_status exchange(const cli_sweep_ranks *r, const cli_sweep_job *job, tide_sweep *own, tide_status failed,
                            tide_sweep *out, tide_error *err) {
    tide_text message = {0};
    messages l = {tide_host_calloc((size_t)r->n, sizeof *l.bytes), tide_host_calloc((size_t)r->n, sizeof *l.lens)};
    tide_status st = TIDE_OK;
    if (l.bytes == NULL || l.lens == NULL) st = TIDE_NO_MEMORY(err, "for %d ranks", r->n);
    if (r->rank != 0) write_message(own, failed, err, &message);
    // Always called, also after a failure, because the other ranks wait.
    const int code = r->mpi->gather(tide_text_str(&message), message.len, make_room, &l);
    if (st == TIDE_OK && code != 0) st = failed_call(r->mpi, "gather", code, err);
    if (st == TIDE_OK && r->rank == 0 && failed != TIDE_OK)
        st = job != NULL ? cli_sweep_lost(job, 0, err->msg, own, err) : failed;
    if (st == TIDE_OK && r->rank == 0) st = merge_sweeps(r, job, &l, own, out, err);
    for (int rank = 0; l.bytes != NULL && rank < r->n; rank++) tide_host_free(l.bytes[rank]);
    tide_host_free(l.bytes);
    tide_host_free(l.lens);
    tide_text_deinit(&message);
    return st;
}

tide_status cli_sweep_ranks_gather(const cli_sweep_ranks *r, const cli_sweep_job *job, tide_sweep *own,
                                   tide_status failed, tide_sweep *out, tide_error *err) {
    *out = (tide_sweep){0};
    if (r->mpi == NULL) {
        if (failed == TIDE_OK) *out = *own;
        *own = (tide_sweep){0};
        return failed;
    }
    const tide_status st = exchange(r, job, own, failed, out, err);
    tide_sweep_deinit(own);
    return st;
}
