// SPDX-License-Identifier: MIT
//
// Readers of files that may be anything, for libFuzzer: it changes the bytes, keeps what reaches new code, and the
// sanitizers look on. `make fuzz` builds and runs it (scripts/fuzz.sh); the reader is named by TIDE_FUZZ.
//
//     bytes --> one reader --> read, or refused with words --> what was read holds together
//
// Recordings become events of a trace in memory (/dev/shm), which serves many files before it is made anew: to make one
// takes a hundred times as long as to read a small file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/graph/import.h"
#include "planner/formats/formats.h"
#include "planner/planner.h"
#include "profiler/import/import_internal.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { FILES_PER_TRACE = 500 };

/// Anything else is a fault of the reader.
static void check(tide_status st, const tide_error *err) {
    const bool is_known = st == TIDE_OK || st == TIDE_ERR_BAD_INPUT || st == TIDE_ERR_NOT_IMPLEMENTED ||
                          st == TIDE_ERR_INVALID || st == TIDE_ERR_OVERFLOW;
    if (!is_known || (st != TIDE_OK && err->msg[0] == '\0')) {
        fprintf(stderr, "status %d: '%s' at '%s'\n", (int)st, err->msg, err->where);
        abort();
    }
}

// ---- lists, plans and graphs ----

static void lists_of(tide_list_format format, const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    if (tide_list_look(data, len) != format) return; // as the program asks first
    const tide_status st = tide_lifetimes_from_format(format, data, len, "/dev/null/fuzzed", &lt, &err);
    check(st, &err);
    tide_lifetimes_deinit(&lt);
}
static void read_tflite(const char *data, size_t len) { lists_of(TIDE_LIST_TFLITE, data, len); }
static void read_executorch(const char *data, size_t len) { lists_of(TIDE_LIST_EXECUTORCH, data, len); }
static void read_xla(const char *data, size_t len) { lists_of(TIDE_LIST_XLA, data, len); }
static void read_somas(const char *data, size_t len) { lists_of(TIDE_LIST_SOMAS, data, len); }

static void read_csv(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    check(tide_lifetimes_from_csv(data, len, "fuzzed", 64, &lt, &err), &err);
    tide_lifetimes_deinit(&lt);
}

static void read_list_json(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    check(tide_lifetimes_from_json(data, len, "fuzzed", &lt, &err), &err);
    tide_lifetimes_deinit(&lt);
}

static void read_plan_json(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = NULL;
    check(tide_plan_from_json(data, len, "fuzzed", NULL, &plan, &err), &err);
    tide_memory_plan_destroy(plan);
}

static void read_onnx(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    check(tide_graph_from_onnx(data, len, "/dev/null/fuzzed", &g, &err), &err);
    tide_graph_destroy(g);
}

static void read_graph_text(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    check(tide_graph_from_json(data, len, "fuzzed", &g, &err), &err);
    tide_graph_destroy(g);
}

// ---- recordings ----

static char trace_path[64], file_path[64];
static tide__new_trace trace;
static unsigned n_in_trace;

static void need(bool good, const char *what) {
    if (good) return;
    perror(what);
    exit(2); // no finding
}

/// A trace that takes events.
static tide__new_trace *an_open_trace(void) {
    tide_error err = TIDE_ERROR_INIT;
    if (n_in_trace++ % FILES_PER_TRACE != 0) return &trace;
    tide__new_trace_deinit(&trace);
    trace = (tide__new_trace){0};
    need(tide__new_trace_create(&trace, trace_path, &err) == TIDE_OK, err.msg);
    return &trace;
}

static FILE *opened(const char *data, size_t len) {
    FILE *f = fmemopen((void *)(uintptr_t)data, len > 0 ? len : 1, "r"); // nothing writes to it
    need(f != NULL, "fmemopen");
    return f;
}

typedef tide_status (*importer)(const tide__unpack *in, const char *path, tide__new_trace *out, tide_import_report *r,
                                tide_error *err);
static void import_with(importer reads, const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_import_report report = {0};
    if (len == 0) return;
    const tide__unpack in = {.file = opened(data, len), .path = "fuzzed"};
    check(reads(&in, "fuzzed", an_open_trace(), &report, &err), &err);
    fclose(in.file);
}
static void read_rmm(const char *data, size_t len) { import_with(tide__import_rmm, data, len); }
static void read_heaptrack(const char *data, size_t len) { import_with(tide__import_heaptrack, data, len); }
static void read_memray(const char *data, size_t len) { import_with(tide__import_memray, data, len); }
static void read_tflm(const char *data, size_t len) { import_with(tide__import_tflm, data, len); }

static void read_torch(const char *data, size_t len) {
    static FILE *spool;
    tide_error err = TIDE_ERROR_INIT;
    tide_import_report report = {0};
    tide__torch_snapshot s = {0};
    if (len == 0) return;
    if (spool == NULL) need((spool = tmpfile()) != NULL, "tmpfile");
    rewind(spool);
    FILE *in = opened(data, len);
    const tide_status st = tide__torch_snapshot_read(in, "fuzzed", spool, &s, &err);
    check(st, &err);
    if (st == TIDE_OK) check(tide__torch_trace(&s, "fuzzed", an_open_trace(), &report, &err), &err);
    tide__torch_snapshot_deinit(&s);
    fclose(in);
}

/// The bytes as a file that has a name.
static void put_file(const char *data, size_t len) {
    FILE *f = fopen(file_path, "w");
    need(f != NULL && fwrite(data, 1, len, f) == len && fclose(f) == 0, file_path);
}

static void read_torch_sqlite(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide__torch_snapshot s = {0};
    FILE *spool = tmpfile();
    need(spool != NULL, "tmpfile");
    put_file(data, len);
    if (tide__import_is_torch_sqlite(file_path)) check(tide__torch_sqlite_read(file_path, spool, &s, &err), &err);
    tide__torch_snapshot_deinit(&s);
    fclose(spool);
}

static void read_nsight(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_import_report report = {0};
    put_file(data, len);
    if (tide__import_is_nsight(file_path))
        check(tide__import_nsight(NULL, file_path, an_open_trace(), &report, &err), &err);
}

/// What is packed, up to a megabyte of it.
static void read_unpack(const char *data, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide__unpack u;
    char part[4096];
    put_file(data, len);
    if (tide__unpack_open(file_path, &u, &err) != TIDE_OK) return;
    size_t n, all = 0;
    while (all < 1 << 20 && (n = fread(part, 1, sizeof part, u.file)) > 0) all += n;
    const tide_status st = tide__unpack_fault(&u, TIDE_OK, &err);
    check(st, &err);
    tide__unpack_close(&u);
}

// ---- which ----

static const struct reader {
    const char *name;
    void (*reads)(const char *data, size_t len);
} readers[] = {
    {"torch", read_torch},
    {"torch_sqlite", read_torch_sqlite},
    {"nsight", read_nsight},
    {"memray", read_memray},
    {"heaptrack", read_heaptrack},
    {"rmm", read_rmm},
    {"tflm", read_tflm},
    {"unpack", read_unpack},
    {"tflite", read_tflite},
    {"pte", read_executorch},
    {"xla", read_xla},
    {"somas", read_somas},
    {"csv", read_csv},
    {"list", read_list_json},
    {"plan", read_plan_json},
    {"onnx", read_onnx},
    {"graph", read_graph_text},
};
static const struct reader *chosen;

static void forget(void) {
    tide__new_trace_deinit(&trace);
    unlink(file_path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const char *name = getenv("TIDE_FUZZ");
    for (size_t i = 0; name != NULL && i < sizeof readers / sizeof readers[0]; i++)
        if (strcmp(name, readers[i].name) == 0) chosen = &readers[i];
    if (chosen == NULL) {
        fprintf(stderr, "TIDE_FUZZ names no reader:");
        for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) fprintf(stderr, " %s", readers[i].name);
        fprintf(stderr, "\n");
        exit(2);
    }
    snprintf(trace_path, sizeof trace_path, "/dev/shm/tidemark-fuzz-%ld.db", (long)getpid());
    snprintf(file_path, sizeof file_path, "/dev/shm/tidemark-fuzz-%ld", (long)getpid());
    return atexit(forget);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    chosen->reads((const char *)data, len);
    return 0;
}
