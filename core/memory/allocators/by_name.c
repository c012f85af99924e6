// SPDX-License-Identifier: MIT
//
// The allocators that need nothing but a name: a new one is a new file plus one line here.
#include <string.h>

#include "core/memory/allocators/allocators.h"

static const struct {
    const char *name;
    tide_status (*create)(tide_allocator **out, tide_error *err);
} named[] = {
    {"cpu", tide_cpu_allocator_create},
    {"cpu_caching", tide_cpu_caching_allocator_create},
};

tide_status tide_allocator_create_by_name(const char *name, tide_allocator **out, tide_error *err) {
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (strcmp(named[i].name, name) == 0) return named[i].create(out, err);
    }
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no allocator '%s'", name);
    tide_error_hint(err, "allocators: cpu, cpu_caching");
    return st;
}
