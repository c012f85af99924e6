// SPDX-License-Identifier: MIT
//
// The conformance suite over the allocators of a device that the host cannot touch: each name that can be made on it.
// The device is the fake one, or what $TIDE_TEST_DEVICE names: "cuda:0" of the simulated driver or of a real one.
#include "conformance.h"
#include "core/device/plugin.h"
#include "tests/device/fake_device.h"

static bool is_fake(void) { return getenv("TIDE_TEST_DEVICE") == NULL; }

static void begin(void) {
    if (!is_fake()) return;
    fake_setup_driver(1);
    conf_device = fake_at(0);
}

static void end(void) {
    if (is_fake()) fake_teardown();
}

#define XX(id, name)                                                                                                   \
    static tide_status id(tide_allocator **out, tide_error *err) {                                                     \
        return tide_allocator_create_on(conf_device, name, out, err);                                                  \
    }
XX(plain, "cuda")
XX(caching, "cuda_caching")
XX(async, "cuda_async")
XX(async_none, "cuda_async:keep=none")
XX(vmm, "cuda_vmm")
XX(pinned, "pinned")
#undef XX

/// A device of the environment is opened once, and all it has given is back at the end.
static bool open_device(void) {
    tide_error err = TIDE_ERROR_INIT;
    if (is_fake()) return true;
    if (tide_device_parse(getenv("TIDE_TEST_DEVICE"), &conf_device, &err) == TIDE_OK &&
        tide_device_load(conf_device, &err) == TIDE_OK)
        return true;
    fprintf(stderr, "%s\n", err.msg);
    return false;
}

#define ROW(text, own, make)                                                                                           \
    .name = (text), .allocator = (own), .create = (make), .before = begin, .after = end, .top_bytes = 64 * MIB

int main(void) {
    // tide_device_allocator_create, tide_stream_caching_create, tide_stream_pool_create, tide_stream_vmm_create and
    // tide_pinned_create, by the names of a device.
    static conf_maker makers[] = {
        {ROW("cuda", "device", plain), .on_device = true},
        {ROW("cuda_caching", "stream_caching", caching), .on_device = true},
        {ROW("cuda_async", "cuda_async", async), .on_device = true, .driver_pool = true},
        {ROW("cuda_async:keep=none", "cuda_async", async_none), .on_device = true, .driver_pool = true},
        {ROW("cuda_vmm", "cuda_vmm", vmm), .on_device = true},
        {ROW("pinned", "pinned", pinned)},
    };
    if (!open_device()) return 1;
    const int n_failed = conformance_main(makers, sizeof makers / sizeof makers[0]);
    tide_device_unload();
    return n_failed;
}
