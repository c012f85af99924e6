// SPDX-License-Identifier: MIT
//
// What the tests of the CUDA plug-in on the simulated driver share: the plug-in loaded, its table, and what is left of
// it.
#ifndef TIDE_TESTS_CUDA_PLUGIN_CUDA_TEST_H
#define TIDE_TESTS_CUDA_PLUGIN_CUDA_TEST_H

#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/device/plugin.h"
#include "tests/cuda/driver/tidesim.h"
#include "tests/tide_test.h"

#define MIB ((size_t)1 << 20)

static TIDE_UNUSED const tide_device cuda_0 = {TIDE_DEVICE_CUDA, 0};

/// The table of the devices and its state, while they are loaded.
static TIDE_UNUSED const tide_device_ops *ops;
static TIDE_UNUSED void *self;

static TIDE_UNUSED void open_cuda(void) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_load(cuda_0, &err), &err);
    ops = tide_device_find(cuda_0, &self);
    assert_non_null(ops);
}

/// The driver has everything back, and was called with nothing that it does not know.
static TIDE_UNUSED void close_cuda(void) {
    tide_device_unload();
    ops = NULL;
    assert_int_equal(tidesim_left(true), 0);
    assert_int_equal(tidesim_live("context"), 0);
    assert_int_equal(tidesim_misuse(), 0);
}

static TIDE_UNUSED int setup(void **state) {
    tide_leak_setup(state);
    open_cuda();
    return 0;
}

static TIDE_UNUSED int teardown(void **state) {
    close_cuda();
    return tide_leak_teardown(state);
}
#define cuda_unit_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static TIDE_UNUSED uint64_t live_bytes(tidesim_kind kind) {
    tidesim_count count;
    assert_true(tidesim_ledger(0, kind, &count));
    return count.live_bytes;
}

#endif
