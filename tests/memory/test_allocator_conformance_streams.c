// SPDX-License-Identifier: MIT
//
// The conformance suite over the stream-aware allocators: on the CPU's own memory and on a device's page-locked memory.
#include "conformance.h"
#include "tests/device/fake_device.h"

static tide_status stream_caching(tide_allocator **out, tide_error *err) {
    return tide_stream_caching_create(TIDE_CPU, NULL, out, err);
}

static tide_status pinned_fallback(tide_allocator **out, tide_error *err) {
    return tide_pinned_create(TIDE_CPU, out, err);
}

static tide_status pinned_fake(tide_allocator **out, tide_error *err) {
    return tide_pinned_create(fake_at(0), out, err);
}

static void fake_begin(void) { fake_setup_with(1, true); }

int main(void) {
    static conf_maker makers[] = {
        {.name = "stream_caching", .allocator = "stream_caching", .create = stream_caching},
        {.name = "pinned fallback", .allocator = "pinned", .create = pinned_fallback},
        {.name = "pinned page-locked",
         .allocator = "pinned",
         .create = pinned_fake,
         .before = fake_begin,
         .after = fake_teardown},
    };
    return conformance_main(makers, sizeof makers / sizeof makers[0]);
}
