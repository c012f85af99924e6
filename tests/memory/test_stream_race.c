// SPDX-License-Identifier: MIT
//
// The two-stream race (LT_35) on real threads: a block is written on one stream and read on another, and released by
// the host while both still have to do so. Deferral must keep it from being written for the next block before it was
// read.
//
//     host:       alloc on P, queue the rest, record_use(C), release, next block ...
//     stream P:   ... | write number | ...            | write the next number, perhaps into the same block
//     stream C:           ... waits for P's event ... | read: still the number?
//
// `test_stream_race --unsafe` is the same with deferral planted off, `--expect-failure` runs that as a child and passes
// only when it was caught: blocks read wrong and, under ThreadSanitizer, races reported.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/device/backend.h"
#include "memory_test.h"

enum { N_THREADS = 4, N_STREAMS = 3, N_BLOCKS = 10000, PER_THREAD = N_BLOCKS / N_THREADS, MAX_WORDS = 512 };
enum { EXIT_CAUGHT = 3, EXIT_TSAN = 66, SLOW_EVERY = 64, SLOW_NS = 100000 };

/// One block on its way through two streams; lives until both are done.
typedef struct job {
    uint64_t *words;
    size_t n_words;
    uint64_t number;
    bool read_wrong; ///< written by the reading stream
} job;

typedef struct race {
    tide_allocator *allocator;
    tide_stream_id streams[N_STREAMS];
    job jobs[N_BLOCKS];
} race;

typedef struct worker {
    race *r;
    int index;
    uint64_t most_pending; ///< blocks, seen after a release
    pthread_t thread;
} worker;

static void write_block(void *arg) {
    const job *j = arg;
    for (size_t i = 0; i < j->n_words; i++) j->words[i] = j->number;
}

static void read_block(void *arg) {
    job *j = arg;
    // Now and then a reader is slow, so that others run ahead of it.
    if (j->number % SLOW_EVERY == 0) nanosleep(&(struct timespec){.tv_nsec = SLOW_NS}, NULL);
    for (size_t i = 0; i < j->n_words; i++) {
        if (j->words[i] != j->number) j->read_wrong = true;
    }
}

#define MUST(expr) must((expr), #expr)
static void must(tide_status st, const char *what) {
    if (st == TIDE_OK) return;
    fprintf(stderr, "%s: %s\n", what, tide_status_name(st));
    abort();
}

static void run_block(worker *w, job *j, tide_event_id written, tide_rng *rng) {
    tide_allocator *a = w->r->allocator;
    const size_t p = (size_t)tide_rng_below(rng, N_STREAMS);
    const size_t c = (p + 1 + (size_t)tide_rng_below(rng, N_STREAMS - 1)) % N_STREAMS;
    const tide_stream_id producer = w->r->streams[p], consumer = w->r->streams[c];
    j->n_words = 1 + (size_t)tide_rng_below(rng, MAX_WORDS);
    const tide_alloc_request req = {
        .size_bytes = j->n_words * sizeof j->words[0], .stream = producer, .block_id = j->number};
    tide_memory mem = {0};
    MUST(tide_allocator_alloc(a, &req, &mem, NULL));
    j->words = mem.data;
    MUST(tide_device_call(TIDE_CPU, producer, write_block, j, NULL));
    MUST(tide_event_record(TIDE_CPU, written, producer, NULL));
    MUST(tide_stream_wait_event(TIDE_CPU, consumer, written, NULL));
    MUST(tide_device_call(TIDE_CPU, consumer, read_block, j, NULL));
    tide_allocator_record_use(a, &mem, consumer);
    tide_allocator_release(a, &mem, producer);
}

static void *work(void *arg) {
    worker *w = arg;
    tide_rng rng = {(uint64_t)w->index + 1};
    tide_event_id written = 0;
    MUST(tide_event_create(TIDE_CPU, &written, NULL));
    for (int i = 0; i < PER_THREAD; i++) {
        job *j = &w->r->jobs[w->index * PER_THREAD + i];
        j->number = (uint64_t)(w->index * PER_THREAD + i) + 1;
        run_block(w, j, written, &rng);
        const uint64_t pending = i % 16 == 0 ? stats_of(w->r->allocator).n_pending : 0;
        if (pending > w->most_pending) w->most_pending = pending;
    }
    tide_event_destroy(TIDE_CPU, written);
    return NULL;
}

/// @return blocks that were read wrong
static uint64_t run_race(bool unsafe, uint64_t *most_pending) {
    static race r;
    r = (race){0};
    worker workers[N_THREADS];
    MUST(tide_stream_caching_create(TIDE_CPU, &(tide_stream_caching_options){.unsafe_no_deferral = unsafe},
                                    &r.allocator, NULL));
    for (int i = 0; i < N_STREAMS; i++) MUST(tide_stream_create(TIDE_CPU, &r.streams[i], NULL));
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.r = &r, .index = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) abort();
    }
    *most_pending = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].most_pending > *most_pending) *most_pending = workers[i].most_pending;
    }
    for (int i = 0; i < N_STREAMS; i++) MUST(tide_stream_sync(TIDE_CPU, r.streams[i], NULL));
    MUST(tide_allocator_check(r.allocator, NULL));
    tide_allocator_trim(r.allocator);
    const tide_allocator_stats s = stats_of(r.allocator);
    if (s.reserved_bytes != 0 || s.n_allocs != N_BLOCKS || s.n_frees != N_BLOCKS) abort();
    for (int i = 0; i < N_STREAMS; i++) tide_stream_destroy(TIDE_CPU, r.streams[i]);
    tide_allocator_unref(r.allocator);
    uint64_t n_wrong = 0;
    for (int i = 0; i < N_BLOCKS; i++) n_wrong += r.jobs[i].read_wrong;
    return n_wrong;
}

static void blocks_are_read_as_written_LT_26_LT_35(void **state) {
    (void)state;
    uint64_t most_pending = 0;
    const uint64_t n_wrong = run_race(false, &most_pending);
    if (n_wrong != 0) fail_msg("%llu of %d blocks were read wrong", (unsigned long long)n_wrong, N_BLOCKS);
    assert_true(most_pending > 0); // else nothing was ever deferred, and the test shows nothing
}

// ---- the planted fault ----

static int run_unsafe(void) {
    uint64_t most_pending = 0;
    const uint64_t n_wrong = run_race(true, &most_pending);
    printf("read wrong %llu\n", (unsigned long long)n_wrong);
    fflush(stdout);
    return n_wrong > 0 ? EXIT_CAUGHT : 0;
}

/// Run `self --unsafe`; its output into `out`. @return its exit code, -1 when it did not end by itself
static int run_child(const char *self, char *out, size_t out_bytes) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t pid = fork();
    if (pid < 0) return -1;
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        // Reports are expected by the thousand, and one that says where says enough.
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(1);
        setenv("TSAN_OPTIONS", "exitcode=66 halt_on_error=0 symbolize=0", 1);
        execl(self, self, "--unsafe", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < out_bytes && (got = read(ends[0], out + n, out_bytes - 1 - n)) > 0;) n += (size_t)got;
    out[n] = '\0';
    close(ends[0]);
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

/// Deferral off must not go unnoticed: 0 when it was caught.
static int expect_failure(const char *self) {
    char out[256] = "";
    const int code = run_child(self, out, sizeof out);
    const int want = HAS_TSAN ? EXIT_TSAN : EXIT_CAUGHT;
    unsigned long long n_wrong = 0;
    const char *const text = "read wrong ";
    const char *const at = strstr(out, text);
    if (at != NULL) n_wrong = strtoull(at + strlen(text), NULL, 10);
    printf("without deferral: %llu of %d blocks read wrong, exit code %d (want %d)\n", n_wrong, N_BLOCKS, code, want);
    return n_wrong > 0 && code == want ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--unsafe") == 0) return run_unsafe();
    if (argc == 2 && strcmp(argv[1], "--expect-failure") == 0) return expect_failure(argv[0]);
    const struct CMUnitTest tests[] = {tide_unit_test(blocks_are_read_as_written_LT_26_LT_35)};
    return cmocka_run_group_tests_name("stream race", tests, NULL, NULL);
}
