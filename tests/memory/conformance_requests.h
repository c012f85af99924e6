// SPDX-License-Identifier: MIT
//
// The part of the suite in conformance.h that is about single requests and what comes back. Included by it only.
#ifndef TIDE_TESTS_CONFORMANCE_REQUESTS_H
#define TIDE_TESTS_CONFORMANCE_REQUESTS_H

// ---- one request ----

static void name_device_and_props(void **state) { // LT-21, LT-39, PT-13
    const conf_maker *m = *state;
    tide_allocator *a = conf_make(m);
    assert_string_equal(tide_allocator_name(a), m->allocator);
    assert_true(tide_device_equal(tide_allocator_device(a), m->on_device ? conf_device : TIDE_CPU));
    assert_non_null(tide_allocator_self(a));
    const tide_allocator_props p = props_of(a);
    assert_true(p.what != NULL && strlen(p.what) > 0);
    assert_true(p.align_bytes >= 64 && (p.align_bytes & (p.align_bytes - 1)) == 0);
    assert_true(p.max_align_bytes >= p.align_bytes && p.max_bytes > 0);
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == 0 && s.active_bytes == 0 && s.n_allocs == 0 && s.n_failed == 0);
    assert_invariants(a);
    assert_sound(a);
    tide_allocator_unref(a);
}

/// More than props promise: refused, and nothing is changed.
static void assert_refuses_alignment(tide_allocator *a, size_t align) {
    const tide_allocator_stats before = stats_of(a);
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {.size_bytes = 100, .align_bytes = align, .tag = "aligned"};
    tide_memory mem = {0};
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_INVALID);
    const tide_allocator_stats after = stats_of(a);
    assert_same_numbers(&after, &before);
}

/// 1 to 4096 at least, honoured for every small size.
static void every_alignment(void **state) { // S28-23, LT-22
    tide_allocator *a = conf_make(*state);
    const tide_allocator_props p = props_of(a);
    assert_true(p.max_align_bytes >= 4096);
    if (p.max_align_bytes < (uint64_t)1 << 63) assert_refuses_alignment(a, 2 * (size_t)p.max_align_bytes);
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t size = 1; size < 130; size += size < 20 || size > 60 ? 1 : 3) {
            const tide_memory mem = take(a, size, align);
            assert_true((uintptr_t)mem.data % align == 0);
            assert_true((uintptr_t)mem.data % p.align_bytes == 0);
            conf_fill(a, mem.data, 0xAA, size);
            give(a, &mem);
        }
    }
    assert_sound(a);
    assert_empties(a);
    tide_allocator_unref(a);
}

static void assert_meets(tide_allocator *a, size_t size) {
    const tide_memory mem = take(a, size, 0);
    assert_true(mem.requested_bytes == size && mem.reserved_bytes >= size);
    conf_fill(a, mem.data, 1, 1);
    conf_fill(a, (char *)mem.data + size - 1, 2, 1);
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == size && s.active_bytes >= mem.reserved_bytes);
    assert_invariants(a);
    give(a, &mem);
    assert_empties(a);
}

/// Around every power of two from 1 B to 1 GiB: first and last byte are there, or the refusal is clean.
static void every_magnitude(void **state) { // LT-39
    const conf_maker *m = *state;
    tide_allocator *a = conf_make(m);
    // Who needs a reset has what is there, and takes no more from the system.
    const tide_allocator_props p = props_of(a);
    const uint64_t max_bytes = p.needs_reset ? stats_of(a).largest_free_bytes : p.max_bytes;
    const size_t top = m->top_bytes != 0 ? m->top_bytes : ALL_BYTES;
    for (size_t pow = 1; pow <= top; pow *= 2) {
        for (size_t size = pow > 1 ? pow - 1 : 1; size <= pow + 1 && size <= top; size++) {
            if (size <= max_bytes) {
                assert_meets(a, size);
            } else {
                assert_refuses(a, size);
            }
        }
    }
    if (max_bytes <= top) {
        assert_meets(a, (size_t)max_bytes);
        assert_refuses(a, (size_t)max_bytes + 1);
    }
    if (top < TOP_BYTES && max_bytes >= TOP_BYTES) assert_meets(a, TOP_BYTES); // once is enough where each costs much
    tide_allocator_unref(a);
}

static void refused_requests_change_nothing(void **state) { // LT-39
    tide_allocator *a = conf_make(*state);
    const tide_memory held = take(a, size_within(a, 1000), 64);
    static const struct {
        size_t size_bytes, align_bytes;
    } nonsense[] = {{0, 64}, {0, 0}, {100, 3}, {100, 96}, {SIZE_MAX, 3}};
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        const tide_allocator_stats before = stats_of(a);
        const tide_alloc_request req = {.size_bytes = nonsense[i].size_bytes, .align_bytes = nonsense[i].align_bytes};
        tide_error err = TIDE_ERROR_INIT;
        tide_memory mem = {0};
        assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_INVALID);
        assert_true(strlen(err.msg) > 0 && mem.data == NULL);
        const tide_allocator_stats after = stats_of(a);
        assert_memory_equal(&after, &before, sizeof after);
    }
    static const size_t too_much[] = {SIZE_MAX,         SIZE_MAX - 63,   SIZE_MAX - 4095, PTRDIFF_MAX,
                                      SIZE_MAX / 2 + 2, (size_t)1 << 62, (size_t)1 << 47};
    for (size_t i = 0; i < sizeof too_much / sizeof too_much[0]; i++) assert_refuses(a, too_much[i]);
    give(a, &held);
    assert_empties(a);
    tide_allocator_unref(a);
}

// ---- keeping and giving back ----

/// What was freed serves again: without the system where freed memory is kept, from the system where it is not.
static void reuse_after_free(void **state) { // LT-39
    const conf_maker *m = *state;
    tide_allocator *a = conf_make(m);
    const tide_allocator_props p = props_of(a);
    const size_t size = size_within(a, 5000);
    tide_memory mem = take(a, size, 0);
    const tide_allocator_stats first = stats_of(a);
    give(a, &mem);
    const tide_allocator_stats freed = stats_of(a);
    assert_true(freed.n_frees == 1 && freed.requested_bytes == 0);
    assert_true(p.needs_reset || freed.active_bytes == 0);
    if (m->driver_pool) {
        assert_true(freed.n_pending == 0);
    } else if (p.keeps_freed) {
        assert_true(freed.reserved_bytes == first.reserved_bytes);
        assert_true(freed.largest_free_bytes >= size);
    } else if (!p.needs_reset) {
        assert_true(freed.reserved_bytes == 0 && freed.cached_bytes == 0);
    }
    mem = take(a, size, 0);
    conf_fill(a, mem.data, 1, size);
    const tide_allocator_stats second = stats_of(a);
    if (p.keeps_freed && !m->driver_pool)
        assert_true(second.n_hits == first.n_hits + 1 && second.n_system == first.n_system);
    if (!p.needs_reset && (p.keeps_freed || !m->driver_pool))
        assert_true(second.reserved_bytes == first.reserved_bytes);
    give(a, &mem);
    assert_empties(a);
    tide_allocator_unref(a);
}

/// Trim gives back free memory and leaves live blocks untouched.
static void trim_spares_live_blocks(void **state) { // LT-25
    tide_allocator *a = conf_make(*state);
    tide_memory mem[10];
    const size_t size = size_within(a, 3000);
    for (int i = 0; i < 10; i++) {
        mem[i] = take(a, size, 0);
        conf_fill(a, mem[i].data, i, size);
    }
    for (int i = 0; i < 10; i += 2) give(a, &mem[i]);
    const tide_allocator_stats before = stats_of(a);
    tide_allocator_trim(a);
    const tide_allocator_stats after = stats_of(a);
    assert_true(after.cached_bytes <= before.cached_bytes);
    assert_true(after.active_bytes == before.active_bytes && after.requested_bytes == before.requested_bytes);
    assert_invariants(a);
    assert_sound(a);
    for (int i = 1; i < 10; i += 2) {
        assert_true(conf_are(a, mem[i].data, i, size));
        give(a, &mem[i]);
    }
    assert_empties(a);
    tide_allocator_unref(a);
}

/// An allocator that needs a reset can be reset when no block is live; all other allocators refuse a reset.
static void reset_rules(void **state) { // LT-28
    tide_allocator *a = conf_make(*state);
    tide_memory mem = take(a, size_within(a, 1000), 0);
    conf_fill(a, mem.data, 7, 1);
    const tide_allocator_stats before = stats_of(a);
    tide_error err = TIDE_ERROR_INIT;
    const bool can = props_of(a).needs_reset;
    assert_tide_status(tide_allocator_reset(a, &err), can ? TIDE_ERR_BUSY : TIDE_ERR_NOT_IMPLEMENTED);
    assert_true(strlen(err.msg) > 0);
    const tide_allocator_stats after = stats_of(a);
    assert_memory_equal(&after, &before, sizeof after);
    assert_true(conf_are(a, mem.data, 7, 1));
    give(a, &mem);
    assert_tide_status(tide_allocator_reset(a, NULL), can ? TIDE_OK : TIDE_ERR_NOT_IMPLEMENTED);
    assert_empties(a);
    tide_allocator_unref(a);
}

/// LT-34: what was given out keeps its allocator alive, whichever way it was taken.
static void blocks_outlive_the_callers_reference(void **state) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = conf_make(*state);
    const size_t size = size_within(a, 5000);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, size, 64, TIDE_KIND_DEFAULT, 0, "late", &b, &err), &err);
    tide_data_ptr ptr = TIDE_DATA_PTR_INIT;
    const tide_alloc_request req = {.size_bytes = size, .tag = "later"};
    assert_tide_ok(tide_allocator_alloc_data_ptr(a, &req, &ptr, &err), &err);
    tide_allocator_unref(a);
    conf_fill(b->owner, b->mem.data, 1, size);
    conf_fill(b->owner, ptr.data, 2, size);
    assert_true(stats_of(b->owner).requested_bytes == 2 * size);
    tide_block_unref(b);
    assert_true(bytes_are(tide_data_ptr_device(&ptr), ptr.data, 2, size));
    tide_data_ptr_reset(&ptr);
}

/// PT-13: data pointers, raw calls where there are any, clone and copy.
static void memory_as_a_data_pointer(void **state) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = conf_make(*state);
    const size_t size = size_within(a, 777);
    const bool raw = tide_allocator_raw_release(a) != NULL;
    tide_data_ptr one = TIDE_DATA_PTR_INIT, two = TIDE_DATA_PTR_INIT;
    const tide_alloc_request req = {.size_bytes = size, .align_bytes = 64, .tag = "one"};
    assert_tide_ok(tide_allocator_alloc_data_ptr(a, &req, &one, &err), &err);
    assert_true((uintptr_t)one.data % 64 == 0);
    assert_true(tide_data_ptr_is_simple(&one) == raw);
    assert_true(tide_device_equal(tide_data_ptr_device(&one), tide_allocator_device(a)));
    conf_fill(a, one.data, 42, size);
    assert_tide_ok(tide_allocator_clone(a, one.data, size, &two, &err), &err);
    assert_ptr_not_equal(one.data, two.data);
    assert_true(conf_are(a, two.data, 42, size));
    conf_fill(a, one.data, 43, size);
    assert_tide_ok(tide_allocator_copy(a, two.data, one.data, size, &err), &err);
    assert_true(conf_are(a, two.data, 43, size));
    assert_true(stats_of(a).requested_bytes == 2 * size && stats_of(a).n_allocs == 2);
    tide_data_ptr_reset(&one);
    tide_data_ptr_reset(&two);
    void *data = NULL;
    assert_tide_status(tide_allocator_raw_alloc(a, 0, &data, NULL), raw ? TIDE_ERR_INVALID : TIDE_ERR_NOT_IMPLEMENTED);
    assert_tide_status(tide_allocator_raw_alloc(a, size, &data, NULL), raw ? TIDE_OK : TIDE_ERR_NOT_IMPLEMENTED);
    if (raw) {
        conf_fill(a, data, 1, size);
        assert_true(stats_of(a).requested_bytes == size);
        tide_allocator_raw_release(a)(data);
    } else {
        assert_null(data);
    }
    assert_empties(a);
    tide_allocator_unref(a);
}

#endif
