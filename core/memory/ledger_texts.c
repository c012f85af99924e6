// SPDX-License-Identifier: MIT
//
// The ledger's texts: tags, operators and names of allocators, each kept once and never moved, so that a pointer to one
// is good as long as the ledger. Runs repeat their tags: the table stays as small as the program that is watched.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/memory/ledger_internal.h"

enum { NO_TEXT = 0, LOST_TEXT = 1, FIRST_TEXT = 2, FIRST_SLOTS = 64 };

/// FNV-1a, 64 bits.
static uint64_t hash_of(const char *text) {
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return h;
}

/// The slot of `text`, or the free one where it would go.
static tide__text_id *slot_of(const tide__ledger_texts *t, const char *text, uint64_t hash) {
    size_t i = (size_t)hash & (t->n_slots - 1);
    while (t->slots[i] != NO_TEXT) {
        const tide__ledger_text *item = &t->items[t->slots[i] - FIRST_TEXT];
        if (item->hash == hash && strcmp(item->text, text) == 0) break;
        i = (i + 1) & (t->n_slots - 1);
    }
    return &t->slots[i];
}

static bool grow_slots(tide__ledger_texts *t) {
    if (2 * (t->n + 1) <= t->n_slots) return true;
    const size_t n_slots = t->n_slots == 0 ? FIRST_SLOTS : 2 * t->n_slots;
    tide__text_id *slots = tide_host_calloc(n_slots, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t k = 0; k < t->n; k++) {
        size_t i = (size_t)t->items[k].hash & (n_slots - 1);
        while (slots[i] != NO_TEXT) i = (i + 1) & (n_slots - 1);
        slots[i] = (tide__text_id)(k + FIRST_TEXT);
    }
    tide_host_free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return true;
}

tide__text_id tide__ledger_text_put(tide__ledger_texts *t, const char *text) {
    if (text == NULL) return NO_TEXT;
    const uint64_t hash = hash_of(text);
    if (t->n_slots > 0) {
        const tide__text_id known = *slot_of(t, text, hash);
        if (known != NO_TEXT) return known;
    }
    if (t->n >= UINT32_MAX - FIRST_TEXT || !grow_slots(t) ||
        tide_host_grow(&t->items, &t->cap, t->n + 1, sizeof *t->items) != TIDE_OK)
        return LOST_TEXT;
    char *copy = tide_host_strdup(text);
    if (copy == NULL) return LOST_TEXT;
    const tide__text_id id = (tide__text_id)(t->n + FIRST_TEXT);
    *slot_of(t, text, hash) = id;
    t->items[t->n++] = (tide__ledger_text){.text = copy, .hash = hash};
    return id;
}

const char *tide__ledger_text_get(const tide__ledger_texts *t, tide__text_id id) {
    if (id == NO_TEXT) return NULL;
    return id == LOST_TEXT ? "(no memory for the name)" : t->items[id - FIRST_TEXT].text;
}

void tide__ledger_texts_deinit(tide__ledger_texts *t) {
    for (size_t i = 0; i < t->n; i++) tide_host_free(t->items[i].text);
    tide_host_free(t->items);
    tide_host_free(t->slots);
    *t = (tide__ledger_texts){0};
}
