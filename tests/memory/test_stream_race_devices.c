// SPDX-License-Identifier: MIT
//
// The two-stream race (LT_35) over every stream-aware allocator of a device that the host cannot touch. One stream
// writes a pattern into each block, another checks it later, and the host has long released the block by then.
//
//     host:       alloc on P, queue the rest, record_use(C), release, next block ...      64 blocks, then the gate
//     opens stream P:   ... | write pattern 7 | write pattern 8, perhaps into the same block | ... stream C:   | gate
//     ..................................... | check 7 | check 8 | ...
//
// C stands at a gate until everything is queued, so it is certain, and no matter of luck, that an allocator without
// deferral gives a block out again under C's hands: the same race with the planted fault must end with wrong bytes.
//
// The device is the fake one, whose streams are held and stepped, or what $TIDE_TEST_DEVICE names.
#include "core/device/plugin.h"
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

static const kind kinds[] = {{"cuda_caching", caching, true}, {"cuda_vmm", vmm, true}, {"cuda_async", async, false}};

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

/// Memory that is there before the gate closes: taking more of it may wait for the device.
static void warm_up(race *r) {
    tide_memory mem[2 * N_BLOCKS];
    for (int i = 0; i < 2 * N_BLOCKS; i++) mem[i] = take_block(r);
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

static void without_deferral_they_are_not(void **state) {
    const kind *k = *state;
    uint64_t most_pending = 0;
    begin();
    const uint64_t n_wrong = run_race(k, true, &most_pending);
    printf("%s without deferral: %llu bytes were read wrong\n", k->name, (unsigned long long)n_wrong);
    assert_true(n_wrong > 0);
    assert_true(most_pending == 0);
    if (is_fake()) fake.n_faults = 0; // use after free: they were wanted
    end();
}

#define ROW(test, i)                                                                                                   \
    { #test, test, NULL, NULL, (void *)(uintptr_t)&kinds[i] }

int main(void) {
    const struct CMUnitTest tests[] = {
        ROW(blocks_are_read_as_written, 0),    ROW(blocks_are_read_as_written, 1),
        ROW(blocks_are_read_as_written, 2),    ROW(without_deferral_they_are_not, 0),
        ROW(without_deferral_they_are_not, 1), ROW(without_deferral_they_are_not, 2),
    };
    return cmocka_run_group_tests_name("stream race on a device", tests, subject_setup, subject_teardown);
}
