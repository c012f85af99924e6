// SPDX-License-Identifier: MIT
//
// json: jansson on our memory. See json.h.
#include "core/base/json.h"

#include <stdatomic.h>

#include "core/base/host_alloc.h"

static atomic_size_t n_failed, n_failed_reading;

static void *counted_alloc(size_t size_bytes) {
    void *p = tide_host_alloc(size_bytes);
    if (p == NULL) atomic_fetch_add(&n_failed, 1);
    return p;
}

void tide_json_use_host_alloc(void) { json_set_alloc_funcs(counted_alloc, tide_host_free); }

json_t *tide_json_load(const char *data, size_t len, size_t flags, json_error_t *at) {
    json_error_t own;
    if (at == NULL) at = &own;
    const size_t before = atomic_load(&n_failed);
    json_t *doc = json_loadb(data, len, flags, at);
    const size_t failed = atomic_load(&n_failed) - before;
    if (failed == 0) return doc;
    atomic_fetch_add(&n_failed_reading, failed);
    json_decref(doc);                                                // it may lack something
    at->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory; // where json_error_code looks
    return NULL;
}

bool tide_json_ran_out(void) { return atomic_load(&n_failed) != atomic_load(&n_failed_reading); }
