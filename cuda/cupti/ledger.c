// SPDX-License-Identifier: MIT
//
// The ledger: a table with linear probing, without marks for what was deleted (the entries behind move up), and an
// array of blocks. See ledger.h.
#include "cuda/cupti/ledger.h"

#include <string.h>
#include <sys/mman.h>

enum { FIRST_SLOTS = 4096, FIRST_ITEMS = 1024 };

bool tide__cupti_pages_grow(void **pages, size_t *cap, size_t want, size_t item_bytes) {
    if (want <= *cap) return true;
    size_t n = *cap != 0 ? *cap : FIRST_ITEMS;
    while (n < want) n *= 2;
    void *more = *pages == NULL ? mmap(NULL, n * item_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                : mremap(*pages, *cap * item_bytes, n * item_bytes, MREMAP_MAYMOVE);
    if (more == MAP_FAILED) return false;
    *pages = more;
    *cap = n;
    return true;
}

void tide__cupti_pages_free(void *pages, size_t cap, size_t item_bytes) {
    if (pages != NULL) munmap(pages, cap * item_bytes);
}

void tide__cupti_ledger_clear(tide__cupti_ledger *l) {
    const uint64_t n_serials = l->n_serials;
    tide__cupti_pages_free(l->keys, l->n_slots, sizeof *l->keys);
    tide__cupti_pages_free(l->blocks, l->cap_blocks, sizeof *l->blocks);
    *l = (tide__cupti_ledger){.n_serials = n_serials};
}

// ---- blocks ----

tide__cupti_block *tide__cupti_ledger_new(tide__cupti_ledger *l) {
    tide__cupti_block *b;
    if (l->first_free != 0) {
        b = &l->blocks[l->first_free - 1];
        l->first_free = b->next_free;
    } else {
        void *pages = l->blocks;
        if (!tide__cupti_pages_grow(&pages, &l->cap_blocks, l->n_blocks + 1, sizeof *b)) return NULL;
        l->blocks = pages;
        b = &l->blocks[l->n_blocks++];
    }
    *b = (tide__cupti_block){.serial = ++l->n_serials, .is_used = true};
    return b;
}

void tide__cupti_ledger_drop(tide__cupti_ledger *l, tide__cupti_block *b) {
    *b = (tide__cupti_block){.next_free = l->first_free};
    l->first_free = (uint32_t)(b - l->blocks) + 1;
}

tide__cupti_block *tide__cupti_ledger_next(const tide__cupti_ledger *l, size_t *at) {
    while (*at < l->n_blocks) {
        tide__cupti_block *b = &l->blocks[(*at)++];
        if (b->is_used) return b;
    }
    return NULL;
}

// ---- names ----

static size_t home_of(const tide__cupti_ledger *l, uint32_t space, uint64_t key) {
    uint64_t h = (key ^ (uint64_t)space << 61) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
    return (size_t)h & (l->n_slots - 1);
}

/// The entry of that name, or the free one where it would be. There is a table with room.
static size_t slot_of(const tide__cupti_ledger *l, uint32_t space, uint64_t key) {
    size_t i = home_of(l, space, key);
    while (l->keys[i].block != 0 && (l->keys[i].key != key || l->keys[i].space != space))
        i = (i + 1) & (l->n_slots - 1);
    return i;
}

/// A table of twice the size; nothing has changed when there is no memory.
static bool grow_keys(tide__cupti_ledger *l) {
    tide__cupti_ledger larger = *l;
    void *pages = NULL;
    larger.n_slots = 0;
    const size_t want = l->n_slots != 0 ? l->n_slots * 2 : (size_t)FIRST_SLOTS;
    if (!tide__cupti_pages_grow(&pages, &larger.n_slots, want, sizeof *l->keys)) return false;
    larger.keys = pages;
    for (size_t i = 0; i < l->n_slots; i++) {
        const tide__cupti_key *k = &l->keys[i];
        if (k->block != 0) larger.keys[slot_of(&larger, k->space, k->key)] = *k;
    }
    tide__cupti_pages_free(l->keys, l->n_slots, sizeof *l->keys);
    *l = larger;
    return true;
}

bool tide__cupti_ledger_bind(tide__cupti_ledger *l, tide__cupti_space space, uint64_t key, uint64_t bytes,
                             const tide__cupti_block *b) {
    if ((l->n_keys + 1) * 2 > l->n_slots && !grow_keys(l)) return false;
    tide__cupti_key *k = &l->keys[slot_of(l, space, key)];
    l->n_keys += k->block == 0;
    *k = (tide__cupti_key){.key = key, .bytes = bytes, .block = (uint32_t)(b - l->blocks) + 1, .space = space};
    return true;
}

void tide__cupti_ledger_unbind(tide__cupti_ledger *l, tide__cupti_space space, uint64_t key) {
    if (l->n_slots == 0) return;
    const size_t mask = l->n_slots - 1;
    size_t hole = slot_of(l, space, key);
    if (l->keys[hole].block == 0) return;
    l->n_keys--;
    for (size_t i = (hole + 1) & mask; l->keys[i].block != 0; i = (i + 1) & mask) {
        const size_t home = home_of(l, l->keys[i].space, l->keys[i].key);
        if (((i - home) & mask) < ((i - hole) & mask)) continue; // it lies between its home and the hole already
        l->keys[hole] = l->keys[i];
        hole = i;
    }
    l->keys[hole] = (tide__cupti_key){0};
}

tide__cupti_block *tide__cupti_ledger_find(const tide__cupti_ledger *l, tide__cupti_space space, uint64_t key,
                                           uint64_t *bytes) {
    if (l->n_slots == 0) return NULL;
    const tide__cupti_key *k = &l->keys[slot_of(l, space, key)];
    if (k->block == 0) return NULL;
    if (bytes != NULL) *bytes = k->bytes;
    return &l->blocks[k->block - 1];
}

tide__cupti_block *tide__cupti_ledger_first_in(const tide__cupti_ledger *l, uint64_t begin, uint64_t end,
                                               uint64_t *address, uint64_t *bytes) {
    *address = begin;
    tide__cupti_block *at_begin = tide__cupti_ledger_find(l, TIDE__CUPTI_ADDRESS, begin, bytes);
    if (at_begin != NULL && begin < end) return at_begin;
    const tide__cupti_key *best = NULL;
    for (size_t i = 0; i < l->n_slots; i++) {
        const tide__cupti_key *k = &l->keys[i];
        const bool is_in = k->block != 0 && k->space == TIDE__CUPTI_ADDRESS && k->key >= begin && k->key < end;
        if (is_in && (best == NULL || k->key < best->key)) best = k;
    }
    if (best == NULL) return NULL;
    *address = best->key;
    *bytes = best->bytes;
    return &l->blocks[best->block - 1];
}
