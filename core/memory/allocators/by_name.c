// SPDX-License-Identifier: MIT
//
// The allocators that can be made from a text, for the command line: "cpu", "cpu:align=256"; and those of a device
// that is not the CPU: "cuda_caching". A new one is a new file plus one line of `named` or `on_device` here, and one
// more for each value of an option.
//
//     text     name [ ":" key "=" value ]
//
// pytorch takes several options, in any order, with commas between them; it is there on the simulated device alone.
//
// The names on a device begin with "cuda" because that is what their users know them by. Each works on every type of
// device whose table has what it is made over.
#include <string.h>

#include "core/base/text.h"
#include "core/device/backend.h"
#include "core/device/sim_device.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/pytorch.h"

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

// ---- on a device ----

typedef tide_status (*create_on_fn)(tide_device device, tide_allocator **out, tide_error *err);

static tide_status device_caching(tide_device device, tide_allocator **out, tide_error *err) {
    return tide_stream_caching_create(device, NULL, out, err);
}
static tide_status device_pinned(tide_device device, tide_allocator **out, tide_error *err) {
    TIDE_TRY(tide_device_require(device, err));
    if (tide_device_has_pinned(device)) return tide_pinned_create(device, out, err);
    char name[32];
    return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "device %s has no page-locked host memory to give",
                     tide_device_format(device, name, sizeof name));
}

static tide_status device_vmm(tide_device device, tide_allocator **out, tide_error *err) {
    return tide_stream_vmm_create(device, NULL, out, err);
}
static tide_status async_keep_all(tide_device device, tide_allocator **out, tide_error *err) {
    return tide_stream_pool_create(device, NULL, out, err);
}
static tide_status async_keep_none(tide_device device, tide_allocator **out, tide_error *err) {
    return tide_stream_pool_create(device, &(tide_stream_pool_options){.keep_none = true}, out, err);
}

static const struct {
    const char *text;
    create_on_fn create;
} on_device[] = {
    {"cuda", tide_device_allocator_create},
    {"cuda_caching", device_caching},
    {"cuda_async", async_keep_all},
    {"cuda_async:keep=all", async_keep_all},
    {"cuda_async:keep=none", async_keep_none},
    {"cuda_vmm", device_vmm},
    {"pinned", device_pinned},
};
enum { N_ON_DEVICE = sizeof on_device / sizeof on_device[0] };

// ---- on the simulated device ----

static tide_status pytorch(tide_device device, tide_allocator **out, tide_error *err) {
    return tide_pytorch_create(device, NULL, out, err);
}
static tide_status pytorch_expandable(tide_device device, tide_allocator **out, tide_error *err) {
    return tide_pytorch_create(device, &(tide_pytorch_options){.expandable_segments = true}, out, err);
}

static const struct {
    const char *text;
    create_on_fn create;
} simulated[] = {
    {"pytorch", pytorch},
    {"pytorch:expandable_segments", pytorch_expandable},
    {"cuda", tide_device_allocator_create},
    {"cuda_caching", device_caching},
    {"cuda_vmm", device_vmm},
};
enum { N_SIMULATED = sizeof simulated / sizeof simulated[0] };

/// What stands behind the name of the allocator pytorch; NULL: it is another name.
static const char *pytorch_options(const char *name) {
    static const char own[] = "pytorch";
    if (strncmp(name, own, sizeof own - 1) != 0) return NULL;
    const char *const rest = name + sizeof own - 1;
    return rest[0] == '\0' ? rest : rest[0] == ':' ? rest + 1 : NULL;
}

// ---- all ----

const char *tide_allocator_name_at(size_t i) { return i < N_NAMED ? named[i].text : NULL; }

const char *tide_allocator_name_on(tide_device device, size_t i) {
    if (device.type == TIDE_DEVICE_CPU) return tide_allocator_name_at(i);
    if (tide_sim_device_is(device)) return i < N_SIMULATED ? simulated[i].text : NULL;
    return i < N_ON_DEVICE ? on_device[i].text : NULL;
}

/// The whole list of that device as a hint.
static void hint_names(tide_device device, tide_error *err) {
    tide_text list = {0};
    const char *text;
    for (size_t i = 0; (text = tide_allocator_name_on(device, i)) != NULL; i++)
        tide_text_addf(&list, "%s%s", i > 0 ? ", " : "", text);
    char name[32];
    if (device.type == TIDE_DEVICE_CPU) {
        tide_error_hint(err, "allocators: %s", tide_text_str(&list));
    } else {
        tide_error_hint(err, "allocators on %s: %s", tide_device_format(device, name, sizeof name),
                        tide_text_str(&list));
    }
    tide_text_deinit(&list);
}

/// The index of `text` in the list of the device; TIDE_ERR_INVALID with the list as hint.
static tide_status find(tide_device device, const char *text, size_t *out, tide_error *err) {
    const size_t len = strcspn(text, ":");
    bool known = false;
    const char *at;
    for (size_t i = 0; (at = tide_allocator_name_on(device, i)) != NULL; i++) {
        *out = i;
        if (strcmp(at, text) == 0) return TIDE_OK;
        known = known || (strcspn(at, ":") == len && memcmp(at, text, len) == 0);
    }
    const char *const option = text[len] == ':' ? text + len + 1 : "";
    const tide_status st =
        known ? TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%.*s' has no option '%s'", (int)len, text, option)
              : TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no allocator '%.*s'", (int)len, text);
    hint_names(device, err);
    return st;
}

tide_status tide_allocator_create_by_name(const char *name, tide_allocator **out, tide_error *err) {
    size_t i;
    TIDE_TRY(find(TIDE_CPU, name, &i, err));
    return named[i].create(out, err);
}

tide_status tide_allocator_create_on(tide_device device, const char *name, tide_allocator **out, tide_error *err) {
    TIDE_TRY(tide_device_require(device, err));
    const char *const options = pytorch_options(name);
    if (options != NULL) {
        tide_pytorch_options opt;
        TIDE_TRY(tide_pytorch_options_parse(options, &opt, err));
        return tide_pytorch_create(device, &opt, out, err);
    }
    if (device.type == TIDE_DEVICE_CPU) return tide_allocator_create_by_name(name, out, err);
    size_t i;
    TIDE_TRY(find(device, name, &i, err));
    return (tide_sim_device_is(device) ? simulated[i].create : on_device[i].create)(device, out, err);
}
