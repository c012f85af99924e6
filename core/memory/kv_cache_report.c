// SPDX-License-Identifier: MIT
//
// KV cache: its numbers and its check, both by walking all tables. See kv_cache.h.
#include <inttypes.h>

#include "core/memory/kv_cache_internal.h"

/// Tokens that table `t` has in its page `page_i`.
static size_t tokens_in(const tide_kv_cache *c, const tide__kv_table *t, size_t page_i) {
    const size_t rest = t->n_tokens - page_i * c->tokens_per_page;
    return rest < c->tokens_per_page ? rest : c->tokens_per_page;
}

void tide_kv_cache_get_stats(const tide_kv_cache *c, tide_kv_cache_stats *out) {
    size_t n_entries = 0;
    *out = (tide_kv_cache_stats){.n_sequences = c->n_sequences,
                                 .n_pages = c->n_pages,
                                 .page_bytes = c->page_bytes,
                                 .taken_bytes = (uint64_t)c->n_pages * c->page_bytes,
                                 .n_copied = c->n_copied};
    for (tide__kv_page *p = c->pages; p != NULL; p = p->next) {
        p->seen = 0;
        if (p->refs > 1) out->n_shared_pages++;
    }
    // Of a shared page, what counts is the table that has most tokens in it.
    for (size_t i = 0; i < c->n_tables; i++) {
        const tide__kv_table *t = &c->tables[i];
        n_entries += t->n_pages;
        for (size_t j = 0; j < t->n_pages; j++) {
            const size_t n = tokens_in(c, t, j);
            if (n > t->pages[j]->seen) t->pages[j]->seen = n;
        }
    }
    for (const tide__kv_page *p = c->pages; p != NULL; p = p->next)
        out->used_bytes += (uint64_t)p->seen * c->token_bytes;
    out->waste_bytes = out->taken_bytes - out->used_bytes;
    out->saved_bytes = (uint64_t)(n_entries - c->n_pages) * c->page_bytes;
}

static tide_status check_table(const tide_kv_cache *c, size_t i, tide_error *err) {
    const tide__kv_table *t = &c->tables[i];
    if (!t->used && (t->n_pages > 0 || t->n_tokens > 0))
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: sequence %zu is free and has %zu pages", i, t->n_pages);
    const size_t wanted = t->n_tokens / c->tokens_per_page + (t->n_tokens % c->tokens_per_page != 0);
    if (t->n_pages != wanted || t->n_pages > t->cap)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: sequence %zu has %zu pages for %zu tokens, %zu are wanted",
                         i, t->n_pages, t->n_tokens, wanted);
    for (size_t j = 0; j < t->n_pages; j++) t->pages[j]->seen++;
    return TIDE_OK;
}

static tide_status check_pages(const tide_kv_cache *c, tide_error *err) {
    size_t n_pages = 0;
    for (const tide__kv_page *p = c->pages; p != NULL; p = p->next) {
        n_pages++;
        if (p->refs == 0 || p->seen != p->refs)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: page %" PRIu64 " is in %zu tables, its count says %zu",
                             p->block->id, p->seen, p->refs);
        if (p->block->mem.requested_bytes != c->page_bytes || tide_block_use_count(p->block) != 1)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: page %" PRIu64 " has %zu B and %" PRIu32 " owners",
                             p->block->id, p->block->mem.requested_bytes, tide_block_use_count(p->block));
    }
    if (n_pages != c->n_pages)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: %zu pages are there, %zu are counted", n_pages, c->n_pages);
    return TIDE_OK;
}

/// Every free number is in the list of them once: the next sequence gets one that nobody has.
static tide_status check_free(const tide_kv_cache *c, tide_error *err) {
    const size_t n_free = c->n_tables - c->n_sequences;
    size_t n = 0;
    for (size_t i = c->first_free; i != TIDE__KV_NO_NUMBER && n <= n_free; i = c->tables[i].next_free, n++) {
        if (i >= c->n_tables || c->tables[i].used)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: sequence %zu is free and in use", i);
    }
    if (n == n_free) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: %zu numbers are free, the list of them does not say so", n_free);
}

tide_status tide_kv_cache_check(const tide_kv_cache *c, tide_error *err) {
    size_t n_used = 0;
    for (tide__kv_page *p = c->pages; p != NULL; p = p->next) p->seen = 0;
    for (size_t i = 0; i < c->n_tables; i++) {
        TIDE_TRY(check_table(c, i, err));
        if (c->tables[i].used) n_used++;
    }
    if (n_used != c->n_sequences)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "KV cache: %zu sequences are there, %zu are counted", n_used,
                         c->n_sequences);
    TIDE_TRY(check_free(c, err));
    return check_pages(c, err);
}
