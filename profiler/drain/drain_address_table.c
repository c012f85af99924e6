// SPDX-License-Identifier: MIT
//
// The table of blocks by address: made anew of what the file has, kept, and what of it the file must have for a drain
// that takes over. See drain_address.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/drain/drain_address.h"

// ---- ranges ----

size_t tide__drain_find_range(const tide__drain_addresses *a, uint64_t address) {
    size_t lo = 0, hi = a->n_ranges;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (a->ranges[mid].end <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool tide__drain_put_range(tide__drain_addresses *a, const tide__address_range *fresh) {
    if (tide_host_grow(&a->ranges, &a->cap_ranges, a->n_ranges + 1, sizeof *a->ranges) != TIDE_OK) return false;
    const size_t i = tide__drain_find_range(a, fresh->begin);
    TIDE_ASSERT(fresh->begin < fresh->end && (i == 0 || a->ranges[i - 1].end <= fresh->begin));
    TIDE_ASSERT(i == a->n_ranges || fresh->end <= a->ranges[i].begin);
    memmove(&a->ranges[i + 1], &a->ranges[i], (a->n_ranges - i) * sizeof *a->ranges);
    a->ranges[i] = *fresh;
    a->n_ranges++;
    return true;
}

// ---- from the file ----

enum { KEY_BYTES = 48, TEXT_BYTES = 192 };

static void make_key(char key[KEY_BYTES], int64_t process_id) {
    snprintf(key, KEY_BYTES, "by_address.%" PRId64, process_id);
}

static tide_status read_counts(const tide__drain *d, int64_t process_id, tide__address_counts *c, bool *is_there,
                               tide_error *err) {
    const tide__sql *s = tide__store_sql(d->store);
    char key[KEY_BYTES];
    make_key(key, process_id);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "SELECT value FROM meta WHERE key = ?", &stmt, err));
    tide__sql_bind_text(stmt, 1, key);
    tide_status st = tide__sql_step(s, stmt, is_there, err);
    *c = (tide__address_counts){0};
    // What cannot be read is as good as not there: these are differences, and the end compares the sums.
    if (st == TIDE_OK && *is_there)
        (void)!sscanf(tide__sql_text(stmt, 0),
                      "unknown=%" SCNd64 " twice=%" SCNd64 " allocs=%" SCNd64 " frees=%" SCNd64 " requested=%" SCNd64
                      " freed=%" SCNd64,
                      &c->unknown, &c->twice, &c->allocs, &c->frees, &c->requested, &c->freed);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status load_live(tide__drain *d, const tide__drain_feed *f, tide__drain_addresses *a) {
    int64_t ranges;
    TIDE_TRY(tide__names_text(&d->names, TIDE__BY_ADDRESS_RANGES, &ranges));
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(&d->replay, &i)) != NULL;) {
        if (b->block_id >> TIDE__BLOCK_ID_BITS != f->process_id - 1) continue;
        const tide__address_block fresh = {(uint64_t)b->address, b->block_id, b->requested_bytes};
        const tide__address_range pages = {fresh.address, fresh.address + (uint64_t)fresh.bytes, b->block_id, b->tag_id,
                                           b->scope_id};
        const bool is_range = b->allocator_id == ranges;
        if (fresh.address == 0) continue;
        if (!(is_range ? tide__drain_put_range(a, &pages) : tide_map_put(&a->blocks, &fresh))) return TIDE_ERR_NOMEM;
    }
    return TIDE_OK;
}

tide_status tide__drain_addresses_make(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    tide__drain_addresses *a;
    TIDE_TRY(TIDE_NEW(&a, 1, err, "to record into '%s'", d->path));
    a->blocks = (tide_map)TIDE_MAP(tide__address_block);
    f->addresses = a;
    TIDE_TRY(read_counts(d, f->process_id, &a->now, &a->is_stored, err));
    a->stored = a->now;
    if (!a->is_stored) return TIDE_OK;
    return load_live(d, f, a) == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
}

void tide__drain_addresses_destroy(tide__drain_addresses *a) {
    if (a == NULL) return;
    tide_map_deinit(&a->blocks);
    tide_host_free(a->ranges);
    tide_host_free(a);
}

// ---- into the file ----

static bool are_same(const tide__address_counts *a, const tide__address_counts *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

tide_status tide__drain_addresses_write(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    const tide__drain_addresses *a = f->addresses;
    if (a == NULL || (a->is_stored && are_same(&a->now, &a->stored))) return TIDE_OK;
    char key[KEY_BYTES], text[TEXT_BYTES];
    make_key(key, f->process_id);
    snprintf(text, sizeof text,
             "unknown=%" PRId64 " twice=%" PRId64 " allocs=%" PRId64 " frees=%" PRId64 " requested=%" PRId64
             " freed=%" PRId64,
             a->now.unknown, a->now.twice, a->now.allocs, a->now.frees, a->now.requested, a->now.freed);
    return tide__store_put_meta(d->store, key, text, err);
}

void tide__drain_addresses_written(tide__drain_feed *f) {
    if (f->addresses == NULL) return;
    f->addresses->stored = f->addresses->now;
    f->addresses->is_stored = true;
}

void tide__drain_addresses_correct(const tide__drain_addresses *a, tide__ring_total *total) {
    const tide__address_counts *c = &a->now;
    atomic_store_explicit(&total->n_allocs, total->n_allocs + (uint64_t)c->allocs, memory_order_relaxed);
    atomic_store_explicit(&total->n_frees, total->n_frees + (uint64_t)c->frees, memory_order_relaxed);
    atomic_store_explicit(&total->requested_bytes, total->requested_bytes + (uint64_t)c->requested,
                          memory_order_relaxed);
    atomic_store_explicit(&total->freed_bytes, total->freed_bytes + (uint64_t)c->freed, memory_order_relaxed);
}
