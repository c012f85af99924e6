// SPDX-License-Identifier: MIT
//
// The allocators that can be made from a text, for the command line: "cpu", "cpu:align=256". A new one is a new file
// plus one line of `named` here, and one more for each value of an option.
//
//     text     name [ ":" key "=" value ]
#include <string.h>

#include "core/base/text.h"
#include "core/memory/allocators/allocators.h"

typedef tide_status (*create_fn)(tide_allocator **out, tide_error *err);

static tide_status cpu_64(tide_allocator **out, tide_error *err) {
    return tide_cpu_allocator_create_aligned(64, out, err);
}
static tide_status cpu_256(tide_allocator **out, tide_error *err) {
    return tide_cpu_allocator_create_aligned(256, out, err);
}
static tide_status caching_pow2(tide_allocator **out, tide_error *err) {
    return tide_cpu_caching_allocator_create_sized(TIDE_SIZES_POW2, out, err);
}
static tide_status caching_steps(tide_allocator **out, tide_error *err) {
    return tide_cpu_caching_allocator_create_sized(TIDE_SIZES_STEPS, out, err);
}
static tide_status stream_caching(tide_allocator **out, tide_error *err) {
    return tide_stream_caching_create(TIDE_CPU, NULL, out, err);
}
static tide_status pinned(tide_allocator **out, tide_error *err) { return tide_pinned_create(TIDE_CPU, out, err); }

static const struct {
    const char *text;
    create_fn create;
} named[] = {
    {"cpu", tide_cpu_allocator_create},
    {"cpu:align=64", cpu_64},
    {"cpu:align=256", cpu_256},
    {"cpu_caching", tide_cpu_caching_allocator_create},
    {"cpu_caching:sizes=pow2", caching_pow2},
    {"cpu_caching:sizes=steps", caching_steps},
    {"stream_caching", stream_caching},
    {"pinned", pinned},
};
enum { N_NAMED = sizeof named / sizeof named[0] };

const char *tide_allocator_name_at(size_t i) { return i < N_NAMED ? named[i].text : NULL; }

/// The whole list as a hint.
static void hint_names(tide_error *err) {
    tide_text list = {0};
    for (size_t i = 0; i < N_NAMED; i++) tide_text_addf(&list, "%s%s", i > 0 ? ", " : "", named[i].text);
    tide_error_hint(err, "allocators: %s", tide_text_str(&list));
    tide_text_deinit(&list);
}

tide_status tide_allocator_create_by_name(const char *name, tide_allocator **out, tide_error *err) {
    const size_t name_len = strcspn(name, ":");
    bool known = false;
    for (size_t i = 0; i < N_NAMED; i++) {
        if (strcmp(named[i].text, name) == 0) return named[i].create(out, err);
        known = known || (strcspn(named[i].text, ":") == name_len && memcmp(named[i].text, name, name_len) == 0);
    }
    const char *const option = name[name_len] == ':' ? name + name_len + 1 : "";
    const tide_status st =
        known ? TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%.*s' has no option '%s'", (int)name_len, name, option)
              : TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no allocator '%.*s'", (int)name_len, name);
    hint_names(err);
    return st;
}
