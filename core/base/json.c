// SPDX-License-Identifier: MIT
//
// json: jansson on our memory. See json.h.
#include "core/base/json.h"

#include <setjmp.h>
#include <stdatomic.h>

#include "core/base/host_alloc.h"

static atomic_size_t n_failed;

// Reading does not survive a failed allocation: jansson drops the end of a string then and copies past it. So it is
// left by a jump; what it had made until then stays behind.
static _Thread_local jmp_buf *way_out; // while this thread reads

static void *counted_alloc(size_t size_bytes) {
    void *p = tide_host_alloc(size_bytes);
    if (p != NULL) return p;
    if (way_out != NULL) longjmp(*way_out, 1);
    atomic_fetch_add(&n_failed, 1);
    return NULL;
}

void tide_json_use_host_alloc(void) { json_set_alloc_funcs(counted_alloc, tide_host_free); }

json_t *tide_json_load(const char *data, size_t len, size_t flags, json_error_t *to) {
    json_error_t own;
    json_error_t *volatile const at = to != NULL ? to : &own;
    jmp_buf here;
    if (setjmp(here) != 0) {
        way_out = NULL;
        *at = (json_error_t){.line = -1, .column = -1};
        at->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory; // where json_error_code looks
        return NULL;
    }
    way_out = &here;
    json_t *doc = json_loadb(data, len, flags, at);
    way_out = NULL;
    return doc;
}

bool tide_json_ran_out(void) { return atomic_load(&n_failed) != 0; }
