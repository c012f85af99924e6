// SPDX-License-Identifier: MIT
//
// KV cache: tables of pages for growing sequences. See kv_cache.h.
//
//     tables         A [ * | * | * ]       B (fork of A) [ * | * ]          pages of 4 tokens
//                        |   |   |                         |   |
//     pages   refs 2 <---|---|---|-------------------------+   |      A has 10 tokens: 4 + 4 + 2
//             refs 2 <-------+---|-----------------------------+      B was cut to 6:  4 + 2
//             refs 1 <-----------+
//
// A sequence writes only behind its last token, so a shared page does no harm until a sequence whose last page it
// is, and not full, appends: that one takes a copy of its own tokens in it. In the drawing B copies 2 tokens, A none.
//
// An append takes all it needs (room in the table, pages) before it changes anything that can be seen: tokens written
// behind the last one do not count until n_tokens says so.
//
// The bytes may be of any device: they are moved by the calling thread on the CPU's default stream, and through the
// device's own copies in the order of the cache's stream otherwise; host bytes are waited for.
#include "core/memory/kv_cache.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/memory/kv_cache_internal.h"

// ---- bytes ----

static bool is_host(const tide_kv_cache *c) { return c->device.type == TIDE_DEVICE_CPU && c->stream == 0; }

static tide_status copy(const tide_kv_cache *c, tide_copy_direction direction, void *dst, const void *src,
                        size_t size_bytes, tide_error *err) {
    if (is_host(c)) {
        memcpy(dst, src, size_bytes);
        return TIDE_OK;
    }
    return tide_device_copy(c->device, c->stream, direction, dst, src, size_bytes, err);
}

/// Host memory is borrowed for the call: copies from or to it, of which the last one ended with `st`, are over when the
/// call returns.
static tide_status wait(const tide_kv_cache *c, tide_status st, tide_error *err) {
    if (is_host(c)) return st;
    const tide_status waited = tide_stream_sync(c->device, c->stream, st == TIDE_OK ? err : NULL);
    return st != TIDE_OK ? st : waited;
}

static char *token_at(const tide_kv_cache *c, const tide__kv_table *t, size_t token) {
    TIDE_ASSERT(token / c->tokens_per_page < t->n_pages);
    const tide__kv_page *p = t->pages[token / c->tokens_per_page];
    return (char *)p->block->mem.data + token % c->tokens_per_page * c->token_bytes;
}

/// How many of `n` tokens from `token` on lie in its page.
static size_t run_in_page(const tide_kv_cache *c, size_t token, size_t n) {
    const size_t room = c->tokens_per_page - token % c->tokens_per_page;
    return n < room ? n : room;
}

// ---- pages ----

static size_t pages_for(const tide_kv_cache *c, size_t n_tokens) {
    return n_tokens / c->tokens_per_page + (n_tokens % c->tokens_per_page != 0);
}

static tide_status take_page(tide_kv_cache *c, tide__kv_page **out, tide_error *err) {
    tide__kv_page *p = tide_host_calloc(1, sizeof *p);
    if (p == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "KV cache: no host memory for the record of a page");
    const tide_status st =
        tide_block_create(c->allocator, c->page_bytes, 0, TIDE_KIND_KV_CACHE, c->stream, c->tag, &p->block, err);
    if (st != TIDE_OK) {
        tide_host_free(p);
        return st;
    }
    TIDE_ASSERT(p->block->mem.requested_bytes == c->page_bytes);
    p->refs = 1;
    p->next = c->pages;
    if (c->pages != NULL) c->pages->prev = p;
    c->pages = p;
    c->n_pages++;
    *out = p;
    return TIDE_OK;
}

static void drop_page(tide_kv_cache *c, tide__kv_page *p) {
    TIDE_ASSERT(p->refs > 0);
    if (--p->refs > 0) return;
    if (p->next != NULL) p->next->prev = p->prev;
    *(p->prev != NULL ? &p->prev->next : &c->pages) = p->next;
    TIDE_ASSERT(c->n_pages > 0 && tide_block_use_count(p->block) == 1);
    c->n_pages--;
    tide_block_unref(p->block);
    tide_host_free(p);
}

static void cut_table(tide_kv_cache *c, tide__kv_table *t, size_t n_pages) {
    TIDE_ASSERT(n_pages <= t->n_pages || t->n_pages < t->cap);
    while (t->n_pages > n_pages) drop_page(c, t->pages[--t->n_pages]);
}

// ---- the cache ----

static tide_status check_options(const tide_allocator *pages, const tide_kv_cache_options *opt, size_t *page_bytes,
                                 tide_error *err) {
    if (opt->token_bytes == 0 || opt->tokens_per_page == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "KV cache: pages of %zu tokens of %zu B", opt->tokens_per_page,
                         opt->token_bytes);
    if (!tide_mul_size(opt->token_bytes, opt->tokens_per_page, page_bytes))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "KV cache: a page of %zu tokens of %zu B is beyond all addresses",
                         opt->tokens_per_page, opt->token_bytes);
    tide_allocator_props props;
    tide_allocator_get_props(pages, &props);
    if (*page_bytes > props.max_bytes) // unknown is the largest number there is
        return TIDE_FAIL(
            err, TIDE_ERR_INVALID,
            "KV cache: %zu tokens of %zu B need pages of %zu B, allocator '%s' gives at most %" PRIu64 " B",
            opt->tokens_per_page, opt->token_bytes, *page_bytes, tide_allocator_name(pages), props.max_bytes);
    return TIDE_OK;
}

tide_status tide_kv_cache_create(tide_allocator *pages, const tide_kv_cache_options *opt, tide_kv_cache **out,
                                 tide_error *err) {
    size_t page_bytes = 0;
    TIDE_TRY(check_options(pages, opt, &page_bytes, err));
    tide_kv_cache *c = tide_host_calloc(1, sizeof *c);
    char *tag = c != NULL && opt->tag != NULL ? tide_host_strdup(opt->tag) : NULL;
    if (c == NULL || (opt->tag != NULL && tag == NULL)) {
        tide_host_free(c);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a KV cache");
    }
    c->allocator = tide_allocator_ref(pages);
    c->device = tide_allocator_device(pages);
    c->token_bytes = opt->token_bytes;
    c->tokens_per_page = opt->tokens_per_page;
    c->page_bytes = page_bytes;
    c->stream = opt->stream;
    c->tag = tag;
    c->first_free = TIDE__KV_NO_NUMBER;
    *out = c;
    return TIDE_OK;
}

void tide_kv_cache_destroy(tide_kv_cache *c) {
    if (c == NULL) return;
    for (size_t i = 0; i < c->n_tables; i++) {
        cut_table(c, &c->tables[i], 0);
        tide_host_free(c->tables[i].pages);
    }
    tide_allocator_unref(c->allocator);
    tide_host_free(c->tables);
    tide_host_free(c->tag);
    tide_host_free(c);
}

// ---- sequences ----

static tide__kv_table *find(const tide_kv_cache *c, tide_kv_sequence s) {
    return s < c->n_tables && c->tables[s].used ? &c->tables[s] : NULL;
}

static tide_status no_such(tide_kv_sequence s, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "KV cache: there is no sequence %" PRIu32, s);
}

/// The first free number, with what room its table has; it stays free until use_number. O(1).
static tide_status free_number(tide_kv_cache *c, tide_kv_sequence *out, tide_error *err) {
    if (c->first_free == TIDE__KV_NO_NUMBER) {
        const size_t i = c->n_tables;
        if (i == UINT32_MAX || tide_host_grow(&c->tables, &c->cap, i + 1, sizeof c->tables[0]) != TIDE_OK)
            return TIDE_FAIL(err, TIDE_ERR_NOMEM, "KV cache: no host memory for sequence %zu", i);
        c->tables[c->n_tables++] = (tide__kv_table){.next_free = TIDE__KV_NO_NUMBER};
        c->first_free = i;
    }
    *out = (tide_kv_sequence)c->first_free;
    return TIDE_OK;
}

/// `s` is the last result of free_number.
static void use_number(tide_kv_cache *c, tide_kv_sequence s) {
    TIDE_ASSERT(c->first_free == s && s < c->n_tables && !c->tables[s].used);
    c->first_free = c->tables[s].next_free;
    c->tables[s].used = true;
    c->n_sequences++;
}

static tide_status make_room(tide__kv_table *t, tide_kv_sequence s, size_t n_pages, tide_error *err) {
    if (tide_host_grow(&t->pages, &t->cap, n_pages, sizeof t->pages[0]) == TIDE_OK) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "KV cache: no host memory for a table of %zu pages of sequence %" PRIu32,
                     n_pages, s);
}

tide_status tide_kv_cache_add(tide_kv_cache *c, tide_kv_sequence *out, tide_error *err) {
    TIDE_TRY(free_number(c, out, err));
    use_number(c, *out);
    return TIDE_OK;
}

tide_status tide_kv_cache_fork(tide_kv_cache *c, tide_kv_sequence from, tide_kv_sequence *out, tide_error *err) {
    if (find(c, from) == NULL) return no_such(from, err);
    tide_kv_sequence s = 0;
    TIDE_TRY(free_number(c, &s, err)); // may move the tables
    const tide__kv_table *const base = &c->tables[from];
    tide__kv_table *const t = &c->tables[s];
    TIDE_TRY(make_room(t, s, base->n_pages, err));
    for (size_t i = 0; i < base->n_pages; i++) {
        t->pages[i] = base->pages[i];
        t->pages[i]->refs++;
    }
    t->n_pages = base->n_pages;
    t->n_tokens = base->n_tokens;
    TIDE_ASSERT(t->n_pages == pages_for(c, t->n_tokens) && t->n_pages <= t->cap);
    use_number(c, s);
    *out = s;
    return TIDE_OK;
}

/// The last page is written next and belongs to others too.
static bool must_copy(const tide_kv_cache *c, const tide__kv_table *t) {
    TIDE_ASSERT(t->n_pages == pages_for(c, t->n_tokens));
    return t->n_tokens % c->tokens_per_page != 0 && t->pages[t->n_pages - 1]->refs > 1;
}

/// A page of its own with the tokens that `t` has in its last page.
static tide_status copy_last(tide_kv_cache *c, const tide__kv_table *t, tide__kv_page **out, tide_error *err) {
    TIDE_TRY(take_page(c, out, err));
    const tide_status st =
        copy(c, TIDE_COPY_WITHIN_DEVICE, (*out)->block->mem.data, t->pages[t->n_pages - 1]->block->mem.data,
             t->n_tokens % c->tokens_per_page * c->token_bytes, err);
    if (st == TIDE_OK) return TIDE_OK;
    drop_page(c, *out);
    return st;
}

static tide_status write_tokens(const tide_kv_cache *c, const tide__kv_table *t, const char *data, size_t n_tokens,
                                tide_error *err) {
    TIDE_ASSERT(pages_for(c, t->n_tokens + n_tokens) <= t->n_pages);
    tide_status st = TIDE_OK;
    for (size_t i = 0, n; i < n_tokens && st == TIDE_OK; i += n) {
        n = run_in_page(c, t->n_tokens + i, n_tokens - i);
        st = copy(c, TIDE_COPY_HOST_TO_DEVICE, token_at(c, t, t->n_tokens + i), data + i * c->token_bytes,
                  n * c->token_bytes, err);
    }
    return wait(c, st, err);
}

tide_status tide_kv_cache_append(tide_kv_cache *c, tide_kv_sequence s, const void *data, size_t n_tokens,
                                 tide_error *err) {
    tide__kv_table *t = find(c, s);
    if (t == NULL) return no_such(s, err);
    size_t n_after, data_bytes;
    if (!tide_add_size(t->n_tokens, n_tokens, &n_after) || !tide_mul_size(n_after, c->token_bytes, &data_bytes))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "KV cache: %zu tokens more for sequence %" PRIu32, n_tokens, s);
    if (n_tokens == 0) return TIDE_OK;
    const size_t n_pages_before = t->n_pages, n_pages_after = pages_for(c, n_after);
    TIDE_TRY(make_room(t, s, n_pages_after, err));
    tide__kv_page *shared = NULL, *own = NULL;
    if (must_copy(c, t)) {
        TIDE_TRY(copy_last(c, t, &own, err));
        shared = t->pages[n_pages_before - 1];
        t->pages[n_pages_before - 1] = own;
    }
    tide_status st = TIDE_OK;
    while (st == TIDE_OK && t->n_pages < n_pages_after) {
        st = take_page(c, &t->pages[t->n_pages], err);
        if (st == TIDE_OK) t->n_pages++;
    }
    if (st == TIDE_OK && data != NULL) st = write_tokens(c, t, data, n_tokens, err);
    if (st != TIDE_OK) {
        cut_table(c, t, n_pages_before);
        if (own != NULL) {
            t->pages[n_pages_before - 1] = shared;
            drop_page(c, own);
        }
        tide_error_prefix(err, "KV cache: %zu token%s more for sequence %" PRIu32 " of %zu", n_tokens,
                          n_tokens == 1 ? "" : "s", s, t->n_tokens);
        return st;
    }
    if (own != NULL) {
        drop_page(c, shared);
        c->n_copied++;
    }
    t->n_tokens = n_after;
    TIDE_ASSERT(t->n_pages == pages_for(c, n_after));
    TIDE_ASSERT_SLOW(tide_kv_cache_check(c, NULL) == TIDE_OK);
    return TIDE_OK;
}

tide_status tide_kv_cache_truncate(tide_kv_cache *c, tide_kv_sequence s, size_t n_tokens, tide_error *err) {
    tide__kv_table *t = find(c, s);
    if (t == NULL) return no_such(s, err);
    if (n_tokens > t->n_tokens)
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "KV cache: sequence %" PRIu32 " has %zu tokens, it cannot be cut to %zu", s, t->n_tokens,
                         n_tokens);
    cut_table(c, t, pages_for(c, n_tokens));
    t->n_tokens = n_tokens;
    TIDE_ASSERT_SLOW(tide_kv_cache_check(c, NULL) == TIDE_OK);
    return TIDE_OK;
}

tide_status tide_kv_cache_free(tide_kv_cache *c, tide_kv_sequence s, tide_error *err) {
    tide__kv_table *t = find(c, s);
    if (t == NULL) return no_such(s, err);
    cut_table(c, t, 0);
    tide_host_free(t->pages);
    *t = (tide__kv_table){.next_free = c->first_free};
    c->first_free = s;
    TIDE_ASSERT(c->n_sequences > 0);
    c->n_sequences--;
    TIDE_ASSERT_SLOW(tide_kv_cache_check(c, NULL) == TIDE_OK);
    return TIDE_OK;
}

// ---- access ----

size_t tide_kv_cache_n_tokens(const tide_kv_cache *c, tide_kv_sequence s) {
    const tide__kv_table *t = find(c, s);
    return t != NULL ? t->n_tokens : 0;
}

const void *tide_kv_cache_token(const tide_kv_cache *c, tide_kv_sequence s, size_t token) {
    const tide__kv_table *t = find(c, s);
    return t != NULL && token < t->n_tokens ? token_at(c, t, token) : NULL;
}

tide_status tide_kv_cache_gather(const tide_kv_cache *c, tide_kv_sequence s, size_t first, size_t n_tokens, void *out,
                                 tide_error *err) {
    const tide__kv_table *t = find(c, s);
    if (t == NULL) return no_such(s, err);
    if (first > t->n_tokens || n_tokens > t->n_tokens - first)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "KV cache: tokens %zu + %zu of sequence %" PRIu32 ", it has %zu", first,
                         n_tokens, s, t->n_tokens);
    tide_status st = TIDE_OK;
    for (size_t i = 0, n; i < n_tokens && st == TIDE_OK; i += n) {
        n = run_in_page(c, first + i, n_tokens - i);
        st = copy(c, TIDE_COPY_DEVICE_TO_HOST, (char *)out + i * c->token_bytes, token_at(c, t, first + i),
                  n * c->token_bytes, err);
    }
    return wait(c, st, err);
}

size_t tide_kv_cache_table(const tide_kv_cache *c, tide_kv_sequence s, uint64_t *page_ids, size_t n_max) {
    const tide__kv_table *t = find(c, s);
    if (t == NULL) return 0;
    for (size_t i = 0; i < t->n_pages && i < n_max; i++) page_ids[i] = t->pages[i]->block->id;
    return t->n_pages;
}

// ---- report ----
//
// The numbers and the check, both by walking all tables.

/// Tokens that table `t` has in its page `page_i`.
static size_t tokens_in(const tide_kv_cache *c, const tide__kv_table *t, size_t page_i) {
    TIDE_ASSERT(page_i * c->tokens_per_page < t->n_tokens); // a page in a table holds a token
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
    // A shared page counts with the table that has most tokens in it.
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
    TIDE_ASSERT(out->used_bytes <= out->taken_bytes && n_entries >= c->n_pages);
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

/// Every free number is in the list of them once: the next sequence gets one that is not in use.
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
