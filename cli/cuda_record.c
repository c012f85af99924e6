// SPDX-License-Identifier: MIT
//
// CUDA memory under `tidemark record`. See cuda_record.h.
#include "cli/cuda_record.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/host_alloc.h"
#include "core/base/module.h"
#include "core/base/text.h"
#include "core/device/cupti_plugin.h"
#include "profiler/query.h"

#define INJECTION_ENV "CUDA_INJECTION64_PATH"

// ---- before the command ----

static const tide_module plugin = {
    .file = TIDE_CUPTI_LIBRARY, .variable = "TIDEMARK_CUPTI_PLUGIN", .symbol = TIDE_CUPTI_SYMBOL};

/// The command sees the same library path as this program.
static bool has_driver(char *why, size_t bytes) {
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (lib == NULL) {
        snprintf(why, bytes, "%s", dlerror());
        return false;
    }
    dlclose(lib);
    return true;
}

static tide_status in_the_way(cli_when mode, const char *users, tide_error *err) {
    char clean[512];
    cli_clean(users, clean, sizeof clean);
    if (mode == CLI_WHEN_ON)
        return TIDE_FAIL(err, TIDE_ERR_EXISTS, "--cuda on: " INJECTION_ENV " is set already: %s", clean);
    fprintf(stderr, "note: " INJECTION_ENV " is set already and stays (%s): CUDA memory is not recorded\n", clean);
    return TIDE_OK;
}

/// `err` says what is missing.
static tide_status no_plugin(tide_error *err) {
    tide_error_prefix(err, "--cuda on");
    tide_error_hint(err, "it is built where CMake finds the CUDA Toolkit 13 (-DTIDE_CUDA=ON says why not)");
    return err->status;
}

tide_status cli_cuda_prepare(cli_when mode, bool *is_on, tide_error *err) {
    char path[4096], why[512];
    *is_on = false;
    if (mode == CLI_WHEN_OFF) return TIDE_OK;
    if (cli_library_path(&plugin, path, sizeof path, err) != TIDE_OK)
        return mode == CLI_WHEN_ON ? no_plugin(err) : TIDE_OK;
    if (!has_driver(why, sizeof why)) {
        if (mode == CLI_WHEN_AUTO) return TIDE_OK;
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "--cuda on: there is no NVIDIA driver: %s", why);
    }
    const char *users = getenv(INJECTION_ENV);
    if (users != NULL && users[0] != '\0' && strcmp(users, path) != 0) return in_the_way(mode, users, err);
    if (setenv(INJECTION_ENV, path, 1) != 0) return TIDE_NO_MEMORY(err, "for the command's environment");
    *is_on = true;
    return TIDE_OK;
}

// ---- after it ----

/// What the recorders in the processes wrote into table meta, added up (cuda/cupti/inject.c).
typedef struct cuda_summary {
    uint64_t n_processes, n_cut, n_off;
    uint64_t dropped, unmatched, no_room, flush_hung;
    char off[512]; ///< why the first of those was not recorded
} cuda_summary;

/// The number behind " name=" in the line; 0: not there.
static uint64_t number_in(const char *line, const char *name) {
    char find[64];
    snprintf(find, sizeof find, " %s=", name);
    const char *at = strstr(line, find);
    return at != NULL ? strtoull(at + strlen(find), NULL, 10) : 0;
}

static void take_line(const char *line, cuda_summary *s) {
    s->n_processes++;
    if (strncmp(line, "off ", 4) == 0) {
        if (s->n_off++ == 0) cli_clean(line + 4 + (strncmp(line + 4, "busy ", 5) == 0 ? 5 : 0), s->off, sizeof s->off);
    } else if (strncmp(line, "ended", 5) == 0) {
        s->dropped += number_in(line, "dropped");
        s->unmatched += number_in(line, "unmatched");
        s->no_room += number_in(line, "no_room");
        s->flush_hung += number_in(line, "flush_hung");
    } else {
        s->n_cut++;
    }
}

static tide_status read_summary(const tide_trace *t, cuda_summary *s, tide_error *err) {
    tide_text text = {0};
    *s = (cuda_summary){0};
    const tide_status st = tide_trace_meta_lines(t, "cuda.", &text, err);
    char *rest = st == TIDE_OK ? text.data : NULL;
    while (rest != NULL && *rest != '\0') {
        char *end = strchr(rest, '\n');
        if (end != NULL) *end = '\0';
        take_line(rest, s);
        rest = end != NULL ? end + 1 : NULL;
    }
    tide_text_deinit(&text);
    return st;
}

static void print_faults(const cuda_summary *s) {
    if (s->n_off > 0)
        fprintf(stderr, "warning: CUDA memory of %" PRIu64 " process%s was not recorded: %s\n", s->n_off,
                s->n_off == 1 ? "" : "es", s->off);
    if (s->dropped > 0)
        fprintf(stderr, "warning: CUPTI dropped %" PRIu64 " records: what pools have reserved may be wrong\n",
                s->dropped);
    if (s->unmatched > 0)
        fprintf(stderr,
                "warning: %" PRIu64 " records of CUPTI told of memory that no known call took or gave back; "
                "they are in the trace, under the name `unmatched`\n",
                s->unmatched);
    if (s->no_room > 0)
        fprintf(stderr, "warning: there was no memory to note %" PRIu64 " events of CUDA memory\n", s->no_room);
    if (s->flush_hung > 0)
        fprintf(stderr, "warning: in %" PRIu64 " process%s CUPTI did not give out its last records in time\n",
                s->flush_hung, s->flush_hung == 1 ? "" : "es");
}

/// " peak 1.2 GiB on cuda:0, 3 GiB on cuda:1"
static tide_status add_peaks(tide_trace *t, tide_text *out, tide_error *err) {
    tide_trace_kind *kinds = NULL;
    size_t n = 0;
    char bytes[24];
    TIDE_TRY(tide_trace_kinds(t, 0, &kinds, &n, err));
    tide_status st = TIDE_OK;
    bool any = false;
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        bool is_new = strncmp(kinds[i].device, "cuda:", 5) == 0;
        for (size_t k = 0; k < i; k++) is_new = is_new && strcmp(kinds[k].device, kinds[i].device) != 0;
        if (!is_new) continue;
        uint64_t peak;
        st = tide_trace_run_peak(t, 0, -1, kinds[i].device, &peak, NULL, NULL, err);
        if (st == TIDE_OK)
            tide_text_addf(out, "%s%s on %s", any ? ", " : ", peak ", tide_format_bytes(peak, bytes, sizeof bytes),
                           kinds[i].device);
        any = true;
    }
    tide_trace_kinds_free(kinds);
    return st;
}

tide_status cli_cuda_print(tide_trace *t, bool quiet, tide_error *err) {
    cuda_summary s;
    TIDE_TRY(read_summary(t, &s, err));
    const uint64_t n = s.n_processes - s.n_off;
    if (n > 0 && !quiet) {
        tide_text line = {0};
        const tide_status st = add_peaks(t, &line, err);
        if (st == TIDE_OK && !line.failed)
            fprintf(stderr, "cuda: %" PRIu64 " process%s%s\n", n, n == 1 ? "" : "es",
                    line.data != NULL ? line.data : "");
        tide_text_deinit(&line);
        if (st != TIDE_OK) return st;
        if (s.n_cut > 0)
            fprintf(stderr, "note: %" PRIu64 " of them ended without saying what CUPTI had dropped\n", s.n_cut);
    }
    print_faults(&s);
    return TIDE_OK;
}
