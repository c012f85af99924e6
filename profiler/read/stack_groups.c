// SPDX-License-Identifier: MIT
//
// What functions, files, libraries and modules hold with all that they called. See moments.h.
//
//     main > forward > forward > bmm   4 MiB      main 7, forward 4: it lies in itself, which counts once
//     main > step                      3 MiB      step 3, bmm 4
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/calls.h"
#include "profiler/read/moments_internal.h"

typedef struct summing {
    tide_group *groups; ///< [n], the caller's: grown here
    size_t n, cap;
    tide_strmap by_key; ///< place of each
    tide_text key;      ///< room
} summing;

/// The group of s->key, made where it is new.
static tide_status group_of_key(summing *s, uint32_t *out) {
    uint64_t i;
    if (s->key.failed) return TIDE_ERR_NOMEM;
    if (tide_strmap_get(&s->by_key, tide_text_str(&s->key), &i)) {
        *out = (uint32_t)i;
        return TIDE_OK;
    }
    TIDE_TRY(tide_host_grow(&s->groups, &s->cap, s->n + 1, sizeof *s->groups));
    TIDE_TRY(tide_strmap_put(&s->by_key, tide_text_str(&s->key), s->n));
    char *copy = tide_host_strdup(tide_text_str(&s->key));
    if (copy == NULL) return TIDE_ERR_NOMEM;
    *out = (uint32_t)s->n;
    s->groups[s->n++] = (tide_group){.key = copy};
    return TIDE_OK;
}

static tide_status add_to_key(summing *s, uint64_t n_blocks, uint64_t bytes) {
    uint32_t at;
    TIDE_TRY(group_of_key(s, &at));
    s->groups[at].with_blocks += n_blocks;
    s->groups[at].with_bytes += bytes;
    return TIDE_OK;
}

// ---- frames ----

/// Of each call its group; of an operator none.
static tide_status groups_of_calls(summing *s, const tide_calls *c, tide_group_by by, uint32_t *group_of) {
    for (size_t i = 1; i < c->n; i++) {
        if (!c->calls[i].is_frame) continue;
        s->key.len = 0;
        tide__frame_key(c->calls[i].name, by, &s->key);
        TIDE_TRY(group_of_key(s, &group_of[i]));
    }
    return TIDE_OK;
}

/// `entered` [s->n]: how many calls of a group the walk is in.
static void leave_to(const tide_calls *c, const uint32_t *group_of, uint32_t from, uint32_t to, uint32_t *entered) {
    for (uint32_t i = from; i != to; i = c->calls[i].parent)
        if (c->calls[i].is_frame) entered[group_of[i]]--;
}

static void sum_frames(summing *s, const tide_calls *c, const uint32_t *group_of, uint32_t *entered) {
    uint32_t last = 0;
    for (uint32_t i = tide_calls_next(c, 0); i != 0; i = tide_calls_next(c, i)) {
        const tide_call *call = &c->calls[i];
        leave_to(c, group_of, last, call->parent, entered);
        last = i;
        if (!call->is_frame || entered[group_of[i]]++ > 0) continue;
        s->groups[group_of[i]].with_blocks += call->n_blocks;
        s->groups[group_of[i]].with_bytes += call->bytes;
    }
}

static tide_status add_frames(summing *s, const tide_calls *c, tide_group_by by) {
    uint32_t *group_of = tide_host_calloc(c->n, sizeof *group_of), *entered = NULL;
    tide_status st = group_of != NULL ? groups_of_calls(s, c, by, group_of) : TIDE_ERR_NOMEM;
    if (st == TIDE_OK && (entered = tide_host_calloc(s->n + 1, sizeof *entered)) == NULL) st = TIDE_ERR_NOMEM;
    if (st == TIDE_OK) sum_frames(s, c, group_of, entered);
    tide_host_free(group_of);
    tide_host_free(entered);
    return st;
}

// ---- modules ----

/// Each module holds what the modules in it do: "a > b > c" counts in "a", "a > b" and itself.
static tide_status add_modules(summing *s, const tide_trace *t, const tide_calls *c) {
    for (size_t i = 1; i < c->n; i++) {
        const tide_call *call = &c->calls[i];
        size_t ends[TIDE__MAX_MODULES];
        if (call->own_blocks == 0) continue;
        s->key.len = 0;
        for (size_t k = tide__module_keys(t, call->scope_id, &s->key, ends); k-- > 0;) {
            if (s->key.failed) return TIDE_ERR_NOMEM;
            s->key.len = ends[k];
            s->key.data[ends[k]] = '\0';
            TIDE_TRY(add_to_key(s, call->own_blocks, call->own_bytes));
        }
    }
    return TIDE_OK;
}

// ---- all ----

static tide_status sum(summing *s, const tide_live_set *set, const tide_calls *c, tide_group_by by) {
    for (size_t i = 0; i < s->n; i++) TIDE_TRY(tide_strmap_put(&s->by_key, s->groups[i].key, i));
    if (c->untold_blocks > 0) {
        s->key.len = 0;
        tide_text_add(&s->key, "(no stack)");
        TIDE_TRY(add_to_key(s, c->untold_blocks, c->untold_bytes));
    }
    return by == TIDE_BY_MODULE ? add_modules(s, set->trace, c) : add_frames(s, c, by);
}

/// Lines of Python say more than what carried them out.
static bool is_python(const char *key) {
    const size_t n = strlen(key);
    return n > 3 && strcmp(key + n - 3, ".py") == 0;
}

static int by_callees(const void *a, const void *b) {
    const tide_group *x = a, *y = b;
    if (x->with_bytes != y->with_bytes) return x->with_bytes > y->with_bytes ? -1 : 1;
    if (x->requested_bytes != y->requested_bytes) return x->requested_bytes > y->requested_bytes ? -1 : 1;
    if (x->with_blocks != y->with_blocks) return x->with_blocks > y->with_blocks ? -1 : 1;
    if (is_python(x->key) != is_python(y->key)) return is_python(x->key) ? -1 : 1;
    return strcmp(x->key, y->key);
}

void tide_groups_sort_by_callees(tide_group *groups, size_t n) {
    if (n > 1) qsort(groups, n, sizeof *groups, by_callees);
}

tide_status tide__groups_add_callees(const tide_live_set *s, tide_group_by by, tide_group **groups, size_t *n,
                                     tide_error *err) {
    summing sums = {.groups = *groups, .n = *n, .cap = *n};
    const size_t n_own = *n;
    tide_calls calls = {0};
    TIDE_TRY(tide_live_set_calls(s, &calls, err));
    tide_status st = sum(&sums, s, &calls, by);
    tide_calls_deinit(&calls);
    tide_strmap_deinit(&sums.by_key);
    tide_text_deinit(&sums.key);
    *groups = sums.groups;
    *n = sums.n;
    if (st != TIDE_OK) return TIDE_NO_MEMORY(err, "to group blocks");
    tide_groups_sort_by_callees(sums.groups + n_own, sums.n - n_own);
    return TIDE_OK;
}
