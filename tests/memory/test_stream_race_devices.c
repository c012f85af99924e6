// SPDX-License-Identifier: MIT
//
// The two-stream race (LT_35) over every stream-aware allocator of a device that the host cannot touch. One stream
// writes a pattern into each block, another checks it later, and the host has long released the block by then.
//
//     host:       alloc on P, queue the rest, record_use(C), release, next block: 64 blocks, then the gate opens
//     stream P:   ... | write pattern 7 | write pattern 8, perhaps into the same block | ...
//     stream C:   | gate ..................................... | check 7 | check 8 | ...
//
// C stands at a gate until everything is queued, so it is certain, and no matter of luck, that an allocator without
// deferral gives a block out again under C's hands: the same race with the planted fault must end with wrong bytes.
//
// The device is the fake one, whose streams are held and stepped, or what $TIDE_TEST_DEVICE names.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/device/plugin.h"
#include "core/memory/poison.h"
#include "memory_test.h"
#include "tests/device/device_test.h"
#include "tests/device/fake_device.h"

enum { N_BLOCKS = 64, N_ROUNDS = 3, BLOCK_BYTES = 32 << 10 };

static bool is_fake(void) { return getenv("TIDE_TEST_DEVICE") == NULL; }

typedef struct kind {
    const char *name;
    tide_status (*create)(tide_device device, bool unsafe, tide_allocator **out, tide_error *err);
    bool keeps_back; ///< released blocks are pending until the other stream is done
} kind;

static tide_status caching(tide_device device, bool unsafe, tide_allocator **out, tide_error *err) {
    return tide_stream_caching_create(device, &(tide_stream_caching_options){.unsafe_no_deferral = unsafe}, out, err);
}
static tide_status vmm(tide_device device, bool unsafe, tide_allocator **out, tide_error *err) {
    return tide_stream_vmm_create(device, &(tide_stream_caching_options){.unsafe_no_deferral = unsafe}, out, err);
}
static tide_status async(tide_device device, bool unsafe, tide_allocator **out, tide_error *err) {
    return tide_stream_pool_create(device, &(tide_stream_pool_options){.unsafe_no_deferral = unsafe}, out, err);
}

enum { N_KINDS = 3, EXIT_CAUGHT = 3, EXIT_ASAN = 65, EXIT_TSAN = 66 };
static const kind kinds[N_KINDS] = {
    {"cuda_caching", caching, true}, {"cuda_vmm", vmm, true}, {"cuda_async", async, false}};

typedef struct race {
    tide_allocator *a;
    tide_stream_id p, c;
    tide_event_id written;
    uint64_t *n_wrong; ///< memory that the device writes
    uint64_t most_pending;
} race;

static tide_memory take_block(race *r) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory mem = {0};
    const tide_alloc_request req = {.size_bytes = BLOCK_BYTES, .stream = r->p, .tag = "raced"};
    assert_tide_ok(tide_allocator_alloc(r->a, &req, &mem, &err), &err);
    return mem;
}

/// Memory that is there, and code that is loaded, before the gate closes: taking more memory may wait for the device,
/// and so may the first launch of a kernel, which loads it.
static void warm_up(race *r) {
    tide_error err = TIDE_ERROR_INIT;
    void *self;
    const tide_device_ops *ops = tide_device_find(subject, &self);
    tide_memory mem[2 * N_BLOCKS];
    for (int i = 0; i < 2 * N_BLOCKS; i++) mem[i] = take_block(r);
    assert_tide_ok(ops->pattern_fill(self, subject.index, r->p, mem[0].data, BLOCK_BYTES, 1, &err), &err);
    finish(subject, r->p);
    assert_tide_ok(ops->pattern_check(self, subject.index, r->c, mem[0].data, BLOCK_BYTES, 1, r->n_wrong, &err), &err);
    finish(subject, r->c);
    for (int i = 0; i < 2 * N_BLOCKS; i++) tide_allocator_release(r->a, &mem[i], r->p);
    finish(subject, r->p);
}

static void run_block(race *r, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    void *self;
    const tide_device_ops *ops = tide_device_find(subject, &self);
    const tide_memory mem = take_block(r);
    assert_tide_ok(ops->pattern_fill(self, subject.index, r->p, mem.data, BLOCK_BYTES, seed, &err), &err);
    record(subject, r->written, r->p);
    wait_for(subject, r->c, r->written);
    assert_tide_ok(ops->pattern_check(self, subject.index, r->c, mem.data, BLOCK_BYTES, seed, r->n_wrong, &err), &err);
    tide_allocator_record_use(r->a, &mem, r->c);
    tide_allocator_release(r->a, &mem, r->p);
    const uint64_t pending = stats_of(r->a).n_pending;
    if (pending > r->most_pending) r->most_pending = pending;
    while (is_fake() && fake_step(r->p)) {
    }
}

static void run_round(race *r, uint64_t seed) {
    gate g = GATE_INIT;
    if (is_fake()) fake_hold(true);
    put_call(subject, r->c, gate_pass, &g);
    for (int i = 0; i < N_BLOCKS; i++) run_block(r, seed + (uint64_t)i);
    gate_open(&g);
    finish(subject, r->c);
    finish(subject, r->p);
    if (is_fake()) fake_hold(false);
}

/// @return bytes that were read wrong
static uint64_t run_race(const kind *k, bool unsafe, uint64_t *most_pending) {
    tide_error err = TIDE_ERROR_INIT;
    race r = {.n_wrong = take_shared(sizeof *r.n_wrong)};
    assert_tide_ok(k->create(subject, unsafe, &r.a, &err), &err);
    r.p = new_stream(subject);
    r.c = new_stream(subject);
    r.written = new_event(subject);
    warm_up(&r);
    for (uint64_t i = 0; i < N_ROUNDS; i++) run_round(&r, 1 + i * N_BLOCKS);
    const uint64_t n_wrong = *r.n_wrong;
    *most_pending = r.most_pending;
    assert_sound(r.a);
    tide_allocator_trim(r.a);
    assert_true(stats_of(r.a).reserved_bytes == 0);
    tide_event_destroy(subject, r.written);
    tide_stream_destroy(subject, r.p);
    tide_stream_destroy(subject, r.c);
    tide_allocator_unref(r.a);
    give_shared(r.n_wrong);
    return n_wrong;
}

static void begin(void) {
    if (!is_fake()) return;
    fake_setup_driver(1);
    subject = fake_at(0);
}

static void end(void) {
    if (is_fake()) fake_teardown();
}

static void blocks_are_read_as_written(void **state) {
    const kind *k = *state;
    uint64_t most_pending = 0;
    begin();
    const uint64_t n_wrong = run_race(k, false, &most_pending);
    if (n_wrong != 0) fail_msg("%s: %llu bytes were read wrong", k->name, (unsigned long long)n_wrong);
    assert_true(!k->keeps_back || most_pending > 0); // else nothing was ever deferred, and the test shows nothing
    end();
}

// ---- the planted fault, in a process of its own: a sanitizer may end it ----

/// @return EXIT_CAUGHT when bytes were read wrong
static int run_unsafe(size_t i) {
    void *none = NULL;
    uint64_t most_pending = 0;
    subject_setup(&none);
    begin();
    const uint64_t n_wrong = run_race(&kinds[i], true, &most_pending);
    printf("%s without deferral: %llu bytes were read wrong\n", kinds[i].name, (unsigned long long)n_wrong);
    return n_wrong > 0 && most_pending == 0 ? EXIT_CAUGHT : 0;
}

static int exit_code_of_unsafe(size_t i) {
    char number[8];
    snprintf(number, sizeof number, "%zu", i);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("ASAN_OPTIONS", "exitcode=65 detect_leaks=0", 1);
        setenv("TSAN_OPTIONS", "exitcode=66 symbolize=0", 1);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(1); // reports are expected
        execl(program_invocation_name, program_invocation_name, "stream_race_devices", "--unsafe", number,
              (char *)NULL);
        _exit(1);
    }
    int status = 0;
    assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void without_deferral_they_are_not(void **state) {
    const kind *k = *state;
    const int code = exit_code_of_unsafe((size_t)(k - kinds));
    // Where a sanitizer knows the memory that streams use, it ends the process with a code of its own.
    const bool by_sanitizer = (tide_asan_active() && code == EXIT_ASAN) || (HAS_TSAN && code == EXIT_TSAN);
    if (code != EXIT_CAUGHT && !by_sanitizer) fail_msg("%s without deferral: exit code %d", k->name, code);
}

#define ROW(test, i)                                                                                                   \
    { #test, test, NULL, NULL, (void *)(uintptr_t)&kinds[i] }

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--unsafe") == 0) return run_unsafe((size_t)(argv[2][0] - '0') % N_KINDS);
    const struct CMUnitTest tests[] = {
        ROW(blocks_are_read_as_written, 0),    ROW(blocks_are_read_as_written, 1),
        ROW(blocks_are_read_as_written, 2),    ROW(without_deferral_they_are_not, 0),
        ROW(without_deferral_they_are_not, 1), ROW(without_deferral_they_are_not, 2),
    };
    return cmocka_run_group_tests_name("stream race on a device", tests, subject_setup, subject_teardown);
}
