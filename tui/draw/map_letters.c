// SPDX-License-Identifier: MIT
//
// Letters and shades that tell the items of a map apart. See map_parts.h.
#include <string.h>

#include "tui/draw/map_parts.h"

enum { N_LETTERS = TIDE_TUI_N_LETTERS, TINT_SLOTS = TIDE_TUI_TINT_SLOTS, NO_TINT = 255 };

typedef tide_tui_tints tints;

static uint32_t scatter(uint32_t key) {
    key *= 2654435761u;
    return key ^ key >> 15;
}

/// What items that have a tint in common share.
static uint32_t key_of(const tints *t, uint32_t item) {
    return t->sites_of != NULL && item < t->sites_of->n ? tide_items_site_of(t->sites_of, item) : item;
}

static uint32_t slot_of(const tints *t, uint32_t item) {
    const uint32_t key = key_of(t, item);
    uint32_t i = scatter(key) % TINT_SLOTS;
    while (t->tint[i] != NO_TINT && t->key[i] != key) i = (i + 1) % TINT_SLOTS;
    return i;
}

uint32_t tide_tui_tint_of(const tints *t, uint32_t item) {
    const uint8_t tint = t->tint[slot_of(t, item)];
    return tint != NO_TINT ? tint : scatter(key_of(t, item)) % t->n_tints;
}

uint32_t tide_tui_tint_slot(const tints *t, uint32_t item) {
    const uint32_t slot = slot_of(t, item);
    return t->tint[slot] != NO_TINT ? slot : TINT_SLOTS;
}

static bool is_beside(const tints *t, uint32_t item, uint32_t tint, const tide_space_cell *neighbours[2]) {
    for (int i = 0; i < 2; i++) {
        const tide_space_cell *c = neighbours[i];
        if (c == NULL || !tide_tui_is_item(*c) || key_of(t, c->item) == key_of(t, item)) continue;
        if (tide_tui_tint_of(t, c->item) == tint) return true;
    }
    return false;
}

/// The tint of its number, or the next one that is not used; when all are used, the next one that neither neighbour
/// has.
static void give_tint(tints *t, uint32_t item, const tide_space_cell *neighbours[2]) {
    if (t->n >= TINT_SLOTS * 3 / 4) return;
    const uint32_t slot = slot_of(t, item);
    if (t->tint[slot] != NO_TINT) return;
    const bool any_left = t->n_used < t->n_tints;
    uint32_t tint = scatter(key_of(t, item)) % t->n_tints;
    for (uint32_t tries = 0; tries < t->n_tints; tries++, tint = (tint + 1) % t->n_tints) {
        if (any_left ? !t->is_used[tint] : !is_beside(t, item, tint, neighbours)) break;
    }
    t->n_used += !t->is_used[tint];
    t->is_used[tint] = true;
    t->key[slot] = key_of(t, item);
    t->tint[slot] = (uint8_t)tint;
    t->n++;
}

static void give_tints(tints *t, const tide_space_cell *cells, int w, int h, uint32_t n_tints) {
    memset(t->tint, NO_TINT, sizeof t->tint);
    memset(t->is_used, 0, sizeof t->is_used);
    t->n = t->n_used = 0;
    t->n_tints = n_tints;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            const tide_space_cell *c = &cells[(size_t)y * (size_t)w + (size_t)x];
            if (!tide_tui_is_item(*c)) continue;
            const tide_space_cell *neighbours[2] = {x > 0 ? c - 1 : NULL, y > 0 ? c - w : NULL};
            give_tint(t, c->item, neighbours);
        }
    }
}

void tide_tui_tints_make(tints *t, const tide_items *items, const tide_space_cell *cells, int w, int h,
                         uint32_t n_tints) {
    t->sites_of = NULL;
    give_tints(t, cells, w, h, n_tints);
    if (n_tints != N_LETTERS || t->n <= N_LETTERS || items == NULL) return;
    t->sites_of = items;
    give_tints(t, cells, w, h, n_tints);
}

uint32_t tide_tui_letter(uint32_t tint) { return tint < 26 ? 'A' + tint : 'a' + (tint - 26) % 26; }

void tide_tui_letters_make(const tide_tui_view *v, tide_tui_tints *out) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->map;
    const bool has_letters = v->glyphs->letters && s->cells != NULL && s->layout->panes[TIDE_TUI_PANE_MAP].w > 0;
    const int w = s->map_is_moment ? s->cells_w : r.w;
    const tide_items *items = s->state->a != NULL ? tide_subject_items(s->state->a) : NULL;
    tide_tui_tints_make(out, items, s->cells, has_letters ? w : 0, has_letters ? 2 * r.h : 0, N_LETTERS);
}

uint32_t tide_tui_letter_of(const tide_tui_tints *t, uint32_t item) {
    const uint32_t slot = tide_tui_tint_slot(t, item);
    return slot < TINT_SLOTS ? tide_tui_letter(t->tint[slot]) : 0;
}
