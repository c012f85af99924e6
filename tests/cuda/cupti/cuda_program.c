// SPDX-License-Identifier: MIT
//
// A foreign CUDA program for the tests of the recorder: the driver's API, several threads, two contexts, an allocator
// of its own, and nothing of tidemark. It takes and gives memory in all the ways that there are, at random, and stops
// now and then: no call is under way at such a moment, whose time goes into a file.
//
//     cuda_program MOMENTS STEPS [leave | endless | fork | exec | faults]
//
//     leave     ends with memory that was not given back (otherwise everything is)
//     endless   until it is killed
//     fork      a child tries to use CUDA, as it may not, while the program goes on
//     exec      becomes itself once more, after its work
//     faults    makes every mistake on the way that the driver notices
//
// Exit code 7, and one line on standard output that hangs on the seed alone.
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_THREADS = 4, N_HELD = 24, STEPS_PER_MOMENT = 60, GRANULE = 2 << 20, EXIT_CODE = 7, SEGMENT = 20 << 20 };

typedef enum sort { PLAIN, PITCH, MANAGED, HOST, HOST2, ASYNC, POOLED, MAPPED, UNMAPPED, CACHED, N_SORTS } sort;

typedef struct held {
    bool is_there;
    sort sort;
    CUdeviceptr at;
    void *host;
    size_t bytes;
    CUmemGenericAllocationHandle handle;
} held;

typedef struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t seed, sum;
    CUcontext context;
    CUstream stream;
    held held[N_HELD];
} worker;

static pthread_barrier_t stop, go;
static atomic_bool is_over;
static bool makes_faults;
static CUdevice device;
static CUmemoryPool pool;

#define MUST(call) must(#call, (call))
static void must(const char *what, CUresult got) {
    if (got == CUDA_SUCCESS) return;
    fprintf(stderr, "cuda_program: %s: %d\n", what, (int)got);
    _exit(1);
}
static void expect(const char *what, CUresult want, CUresult got) {
    if (got == want) return;
    fprintf(stderr, "cuda_program: %s: %d and not %d\n", what, (int)got, (int)want);
    _exit(1);
}

static uint64_t next(worker *w) {
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return w->seed;
}

// ---- an allocator of its own: segments of 20 MiB, cut from the front, given back when nothing is in them ----

static struct {
    pthread_mutex_t lock;
    CUdeviceptr at;
    size_t used, n;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static CUdeviceptr cache_alloc(size_t bytes) {
    CUdeviceptr out = 0;
    pthread_mutex_lock(&cache.lock);
    if (cache.at == 0) MUST(cuMemAlloc(&cache.at, SEGMENT));
    if (cache.used + bytes <= SEGMENT) {
        out = cache.at + cache.used;
        cache.used += bytes;
        cache.n++;
    }
    pthread_mutex_unlock(&cache.lock);
    return out;
}

static void cache_free(void) {
    pthread_mutex_lock(&cache.lock);
    if (--cache.n == 0) {
        MUST(cuMemFree(cache.at));
        cache.at = 0;
        cache.used = 0;
    }
    pthread_mutex_unlock(&cache.lock);
}

// ---- taking and giving ----

static void map(held *h, bool is_mapped) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    h->bytes = (h->bytes + GRANULE - 1) / GRANULE * GRANULE;
    MUST(cuMemCreate(&h->handle, h->bytes, &prop, 0));
    if (!is_mapped) return;
    MUST(cuMemAddressReserve(&h->at, h->bytes, 0, 0, 0));
    MUST(cuMemMap(h->at, h->bytes, 0, h->handle, 0));
    MUST(cuMemSetAccess(h->at, h->bytes, &access, 1));
    if (h->bytes > GRANULE) { // as a program that needs no handle any more
        MUST(cuMemRelease(h->handle));
        h->handle = 0;
    }
}

static void unmap(held *h) {
    MUST(cuMemUnmap(h->at, h->bytes));
    if (h->handle != 0) MUST(cuMemRelease(h->handle));
    MUST(cuMemAddressFree(h->at, h->bytes));
}

static void take(worker *w, held *h) {
    size_t pitch;
    *h = (held){.is_there = true, .sort = (sort)(next(w) % N_SORTS), .bytes = 1 + next(w) % (3 << 20)};
    switch (h->sort) {
    case PLAIN:
        MUST(cuMemAlloc(&h->at, h->bytes));
        break;
    case PITCH:
        MUST(cuMemAllocPitch(&h->at, &pitch, 1 + h->bytes % 5000, 64, 4));
        break;
    case MANAGED:
        MUST(cuMemAllocManaged(&h->at, h->bytes, CU_MEM_ATTACH_GLOBAL));
        break;
    case HOST:
        MUST(cuMemHostAlloc(&h->host, h->bytes, 0));
        break;
    case HOST2:
        MUST(cuMemAllocHost(&h->host, h->bytes));
        break;
    case ASYNC:
        MUST(cuMemAllocAsync(&h->at, h->bytes, w->stream));
        break;
    case POOLED:
        MUST(cuMemAllocFromPoolAsync(&h->at, h->bytes, pool, w->stream));
        break;
    case MAPPED:
        map(h, true);
        break;
    case UNMAPPED:
        map(h, false);
        break;
    default:
        h->at = cache_alloc(h->bytes % (1 << 20));
        h->is_there = h->at != 0;
    }
}

static void give(worker *w, held *h) {
    switch (h->sort) {
    case HOST:
    case HOST2:
        if (cuMemFreeHost(h->host) != CUDA_SUCCESS) MUST(cuMemFreeHost(h->host)); // tried again
        break;
    case ASYNC:
        MUST(cuMemFreeAsync(h->at, w->stream));
        break;
    case POOLED: // outside of its stream
        MUST(cuMemFree(h->at));
        break;
    case MAPPED:
        unmap(h);
        break;
    case UNMAPPED:
        MUST(cuMemRelease(h->handle));
        break;
    case CACHED:
        cache_free();
        break;
    default:
        MUST(cuMemFree(h->at));
    }
    h->is_there = false;
}

static void make_faults(worker *w) {
    CUdeviceptr p;
    MUST(cuMemAlloc(&p, 4096));
    expect("a free of an address inside", CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 256));
    MUST(cuMemFree(p));
    expect("a request for nothing", CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
    expect("too much", CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t)1 << 45));
    expect("too much of a pool", CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&p, (size_t)1 << 45, w->stream));
    expect("a free of no address", CUDA_ERROR_INVALID_VALUE, cuMemFree(12345));
}

/// While no other thread could be given the same address in between.
static void free_twice(void) {
    CUdeviceptr p;
    MUST(cuMemAlloc(&p, 4096));
    MUST(cuMemFree(p));
    expect("a double free", CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}

static void step(worker *w) {
    held *h = &w->held[next(w) % N_HELD];
    if (h->is_there)
        give(w, h);
    else
        take(w, h);
    w->sum = w->sum * 31 + w->number; // whatever the other threads do
    if (makes_faults && next(w) % 40 == 0) make_faults(w);
    if (next(w) % 32 == 0) MUST(cuStreamSynchronize(w->stream));
    errno = 99;
    size_t free_bytes, total;
    MUST(cuMemGetInfo(&free_bytes, &total));
}

static void *work(void *arg) {
    worker *w = arg;
    MUST(cuCtxSetCurrent(w->context));
    MUST(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
    for (;;) {
        for (int i = 0; i < STEPS_PER_MOMENT; i++) step(w);
        pthread_barrier_wait(&stop);
        pthread_barrier_wait(&go);
        if (is_over) break;
    }
    return NULL;
}

static void end_worker(worker *w, bool leaves) {
    MUST(cuCtxSetCurrent(w->context));
    for (size_t i = 0; i < N_HELD && !leaves; i++)
        if (w->held[i].is_there) give(w, &w->held[i]);
    MUST(cuStreamSynchronize(w->stream));
    MUST(cuStreamDestroy(w->stream));
}

// ---- moments ----

static int moments = -1;

static void note_moment(void) {
    struct timespec t;
    char line[32];
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int n = snprintf(line, sizeof line, "%lld%09ld\n", (long long)t.tv_sec, t.tv_nsec);
    if (write(moments, line, (size_t)n) != n) _exit(1);
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

static void fork_child(void) {
    const pid_t pid = fork();
    if (pid == 0) {
        CUdeviceptr p;
        expect("a child's call", CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&p, 100));
        exit(0);
    }
    int how;
    waitpid(pid, &how, 0);
    if (how != 0) _exit(1);
}

/// Ends in files of its own.
static void exec_again(char **argv) {
    static char ledger[4096], file[4096];
    const char *before = getenv("TIDESIM_LEDGER");
    snprintf(ledger, sizeof ledger, "%s.again", before != NULL ? before : "");
    snprintf(file, sizeof file, "%s.again", argv[1]);
    if (before != NULL) setenv("TIDESIM_LEDGER", ledger, 1);
    execl("/proc/self/exe", argv[0], file, argv[2], "leave", (char *)NULL);
}

int main(int argc, char **argv) {
    static worker workers[N_THREADS];
    CUcontext primary, second;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const char *mode = argc > 3 ? argv[3] : "";
    const unsigned long n_moments = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (n_moments == 0) return fputs("usage: cuda_program MOMENTS_FILE MOMENTS [MODE]\n", stderr), 2;
    moments = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    makes_faults = strcmp(mode, "faults") == 0;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxCreate(&second, NULL, 0, device));
    MUST(cuCtxSetCurrent(primary));
    MUST(cuMemPoolCreate(&pool, &props));
    pthread_barrier_init(&stop, NULL, N_THREADS + 1);
    pthread_barrier_init(&go, NULL, N_THREADS + 1);
    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.number = i, .seed = 88172645463325252U + i * 7919, .context = i == 3 ? second : primary};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned long i = 0; !is_over; i++) {
        pthread_barrier_wait(&stop);
        note_moment();
        if (strcmp(mode, "fork") == 0 && i == 3) fork_child();
        if (makes_faults) free_twice();
        is_over = strcmp(mode, "endless") != 0 && i + 1 >= n_moments;
        pthread_barrier_wait(&go);
    }
    uint64_t sum = 0;
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].sum;
    }
    const bool leaves = strcmp(mode, "leave") == 0;
    for (unsigned i = 0; i < N_THREADS; i++) end_worker(&workers[i], leaves || i == 3);
    note_moment();
    MUST(cuCtxSetCurrent(primary));
    MUST(cuCtxDestroy(second)); // with what the fourth thread left in it
    note_moment();
    if (!leaves) MUST(cuMemPoolDestroy(pool));
    MUST(cuDevicePrimaryCtxRelease(device));
    note_moment();
    printf("sum %llu\n", (unsigned long long)sum);
    fflush(stdout);
    if (strcmp(mode, "exec") == 0) exec_again(argv);
    return EXIT_CODE;
}
