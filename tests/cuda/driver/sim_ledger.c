// SPDX-License-Identifier: MIT
//
// The driver's own book: every byte it has given, by device and kind, and on demand a mapped file with a record of each
// allocation and free, which outlives a killed process. Nothing of the program under test goes into it.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"

#define FILE_RECORDS ((uint64_t)1 << 20)

static tidesim_count counts[SIM_MAX_DEVICES][TIDESIM_KINDS];
static tidesim_file_head *file;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *const kind_names[TIDESIM_KINDS] = {"device",     "managed",  "pool",   "pool_block",
                                                      "physical",   "reserved", "mapped", "pinned",
                                                      "registered", "context",  "graph"};

SIM_API const char *tidesim_kind_name(tidesim_kind kind) {
    return (unsigned)kind < TIDESIM_KINDS ? kind_names[kind] : NULL;
}

// %p in the name is the process, so that each of several has a file of its own.
static void path_of(const char *pattern, char *path, size_t bytes) {
    const char *mark = strstr(pattern, "%p");
    if (mark == NULL)
        snprintf(path, bytes, "%s", pattern);
    else
        snprintf(path, bytes, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(), mark + 2);
}

static void open_file(void) {
    const char *pattern = getenv("TIDESIM_LEDGER");
    if (pattern == NULL) return;
    char path[4096];
    path_of(pattern, path, sizeof path);
    const size_t bytes = sizeof(tidesim_file_head) + FILE_RECORDS * sizeof(tidesim_record);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED) {
        fprintf(stderr, "tidesim: cannot write the ledger %s\n", path);
        abort();
    }
    file = map;
    *file = (tidesim_file_head){.magic = TIDESIM_FILE_MAGIC,
                                .version = TIDESIM_FILE_VERSION,
                                .record_bytes = sizeof(tidesim_record),
                                .capacity = FILE_RECORDS,
                                .pid = (uint64_t)getpid()};
}

static void write_record(const sim_entry_info *what, uint32_t op, uint64_t t_ns) {
    if (file == NULL) return;
    const uint64_t i = file->n_records;
    if (i == file->capacity) {
        file->n_lost++;
        return;
    }
    tidesim_record *record = (tidesim_record *)(void *)(file + 1) + i;
    *record = (tidesim_record){.t_ns = t_ns,
                               .address = what->address,
                               .bytes = what->bytes,
                               .kind = (uint32_t)what->kind,
                               .device = what->device != NULL ? what->device->ordinal : 0,
                               .op = op,
                               .tid = sim_tid(),
                               .pool = (uint64_t)(uintptr_t)what->pool,
                               .context = what->ctx != NULL ? what->ctx->object.id : 0};
    __atomic_store_n(&record->seq, i + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&file->n_records, i + 1, __ATOMIC_RELEASE);
}

static void tell_hook(const sim_entry_info *what, bool alloc, uint64_t t_ns) {
    const tidesim_hooks *hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);
    if (what->quiet || hooks == NULL || hooks->memory == NULL) return;
    const sim_pool *pool = what->pool;
    const tidesim_memory event = {.alloc = alloc,
                                  .kind = what->kind,
                                  .address = what->address,
                                  .bytes = what->bytes,
                                  .t_ns = t_ns,
                                  .device = what->device != NULL ? (uint32_t)what->device->ordinal : 0,
                                  .context = what->ctx != NULL ? (uint32_t)what->ctx->object.id : 0,
                                  .stream = what->stream != NULL ? (uint32_t)what->stream->id : TIDESIM_NO_STREAM,
                                  .is_async = what->is_async,
                                  .pool = (uint64_t)(uintptr_t)pool,
                                  .pool_threshold = pool != NULL ? sim_pool_threshold(pool) : 0,
                                  .pool_reserved = pool != NULL ? sim_pool_reserved(pool) : 0,
                                  .pool_used = pool != NULL ? sim_pool_used(pool) : 0,
                                  .correlation = sim_correlation_now(),
                                  .pid = (uint32_t)getpid(),
                                  .tid = sim_tid()};
    hooks->memory(hooks->user, &event);
}

static tidesim_count *count_of(const sim_entry_info *what) {
    return &counts[what->device != NULL ? what->device->ordinal : 0][what->kind];
}

void sim_ledger_alloc(const sim_entry_info *what) {
    pthread_once(&once, open_file);
    tidesim_count *count = count_of(what);
    count->live_bytes += what->bytes;
    count->n_live++;
    count->n_allocs++;
    if (count->live_bytes > count->peak_bytes) count->peak_bytes = count->live_bytes;
    const uint64_t t_ns = sim_now_ns();
    write_record(what, 1, t_ns);
    tell_hook(what, true, t_ns);
}

void sim_ledger_free(const sim_entry_info *what) {
    tidesim_count *count = count_of(what);
    if (count->n_live == 0 || count->live_bytes < what->bytes) {
        fprintf(stderr, "tidesim: the ledger of %s goes below zero\n", kind_names[what->kind]);
        abort();
    }
    count->live_bytes -= what->bytes;
    count->n_live--;
    count->n_frees++;
    const uint64_t t_ns = sim_now_ns();
    write_record(what, 2, t_ns);
    tell_hook(what, false, t_ns);
}

tidesim_count sim_ledger_count(int device, tidesim_kind kind) { return counts[device][kind]; }

uint64_t sim_round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

bool sim_take(sim_device *device, uint64_t bytes) {
    if (device->taken_bytes > device->total_bytes || bytes > device->total_bytes - device->taken_bytes) return false;
    device->taken_bytes += bytes;
    return true;
}

void sim_give(sim_device *device, uint64_t bytes) {
    if (bytes > device->taken_bytes) abort();
    device->taken_bytes -= bytes;
}

SIM_API bool tidesim_ledger(int device, tidesim_kind kind, tidesim_count *out) {
    sim_configure();
    if (device < 0 || device >= sim.n_devices || (unsigned)kind >= TIDESIM_KINDS) return false;
    sim_lock_take();
    *out = counts[device][kind];
    sim_lock_drop();
    return true;
}

SIM_API uint64_t tidesim_taken(int device) {
    sim_configure();
    if (device < 0 || device >= sim.n_devices) return 0;
    sim_lock_take();
    const uint64_t taken = sim.devices[device].taken_bytes;
    sim_lock_drop();
    return taken;
}
