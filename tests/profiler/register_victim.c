// SPDX-License-Identifier: MIT
//
// A program that links libtidemark-record.so alone, and tells of runs with plans and of facts until it is killed. What
// each call had taken when it returned, it notes in a ledger outside of the recording (register.py reads it).
//
//     register_victim LEDGER RUNS [TRACE COLLECTOR]    without a trace: into the collector of $TIDEMARK_COLLECT
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tidemark/record.h"

enum { N_TENSORS = 300, N_BLOCKS = 50 };

typedef struct ledger {
    uint64_t pid, is_open, begun, facts, events, ended, is_closed;
} ledger;

static ledger *open_ledger(const char *path) {
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(ledger)) != 0) return NULL;
    void *at = mmap(NULL, sizeof(ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at != MAP_FAILED ? at : NULL;
}

static tide_lifetime items[N_TENSORS];
static uint64_t offsets[N_TENSORS];
static int32_t pools[N_TENSORS];
static char names[N_TENSORS][16], model[] = "net", strategy[] = "by_hand";
static tide_plan_buffer buffer = {.align_bytes = 64, .bytes = UINT64_C(64) * N_TENSORS};

/// A plan that is made without the library of plans: each tensor at its own place.
static tide_memory_plan make_plan(void) {
    for (size_t i = 0; i < N_TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "t%zu", i);
        items[i] = (tide_lifetime){.name = names[i],
                                   .size_bytes = 64,
                                   .align_bytes = 64,
                                   .end_step = (int64_t)(i % 7) + 1,
                                   .kind = TIDE_KIND_WORKSPACE};
        offsets[i] = 64 * i;
        pools[i] = TIDE_NO_POOL;
    }
    return (tide_memory_plan){.strategy = strategy,
                              .form = TIDE_PLAN_OFFSETS,
                              .lifetimes = {.model = model, .items = items, .n = N_TENSORS, .n_steps = 7},
                              .offsets = offsets,
                              .pools = pools,
                              .buffers = &buffer,
                              .n_buffers = 1,
                              .align_bytes = 64,
                              .bytes = UINT64_C(64) * N_TENSORS};
}

static int fail(const char *what, const tide_error *err) {
    fprintf(stderr, "%s: %s (%s)\n", what, err->msg, err->note);
    return 1;
}

static int one_run(tide_recorder *r, ledger *l, uint64_t k, const tide_memory_plan *plan, tide_error *err) {
    char text[24], key[32];
    snprintf(text, sizeof text, "%" PRIu64, k);
    snprintf(key, sizeof key, "fact.%" PRIu64, l->pid);
    const tide_run_info info = {.model = text, .mode = "planned", .strategy = "by_hand"};
    int64_t id;
    if (tide_recorder_begin_run(r, &info, plan, &id, err) != TIDE_OK) return fail("begin", err);
    if ((uint64_t)id != k) return fprintf(stderr, "run %" PRIu64 " is called %" PRId64 "\n", k, id), 1;
    l->begun = k;
    if (k % 3 == 0) { // between them are runs that no fact follows
        if (tide_recorder_put_meta(r, key, text, err) != TIDE_OK) return fail("fact", err);
        l->facts = k;
    }
    for (uintptr_t i = 1; i <= N_BLOCKS; i++) {
        tide_recorder_alloc(r, TIDE_KIND_WORKSPACE, (const void *)(64 * i), 64, "x");
        tide_recorder_free(r, (const void *)(64 * i));
        l->events += 2;
    }
    if (tide_recorder_end_run(r, err) != TIDE_OK) return fail("end", err);
    l->ended = k;
    return 0;
}

/// Whether anything of a database is mapped into this process.
static bool has_database(void) {
    char line[4400];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, "sqlite") != NULL || strstr(line, "libtidemark-trace") != NULL ||
                strstr(line, ".db\n") != NULL || strstr(line, ".db-") != NULL;
    if (maps != NULL) fclose(maps);
    return maps == NULL || found;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    ledger *l = open_ledger(argv[1]);
    if (l == NULL) return 2;
    l->pid = (uint64_t)getpid();
    const tide_memory_plan plan = make_plan();
    const tide_recorder_options opt = {.drain = argc > 4 ? TIDE_RECORD_PROCESS : TIDE_RECORD_ATTACH,
                                       .collector = argc > 4 ? argv[4] : NULL,
                                       .quiet = true};
    tide_recorder *r;
    tide_error err = TIDE_ERROR_INIT;
    if (tide_recorder_open(argc > 4 ? argv[3] : getenv("TIDEMARK_COLLECT"), &opt, &r, &err) != TIDE_OK)
        return fail("open", &err);
    l->is_open = 1;
    const uint64_t n = strtoull(argv[2], NULL, 10);
    for (uint64_t k = 1; k <= n; k++)
        if (one_run(r, l, k, &plan, &err) != 0) return 1;
    if (getenv("TIDE_NO_DATABASE") != NULL && has_database()) return fprintf(stderr, "a database is mapped\n"), 1;
    if (tide_recorder_close(r, &err) != TIDE_OK) return fail("close", &err);
    l->is_closed = 1;
    return getenv("TIDE_NO_DATABASE") != NULL && has_database() ? 1 : 0;
}
