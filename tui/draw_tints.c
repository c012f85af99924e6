// SPDX-License-Identifier: MIT
//
// Letters and shades that tell the items of a picture apart. See draw_picture.h.
#include <string.h>

#include "tui/draw_picture.h"

static uint32_t scatter(uint32_t item) {
    item *= 2654435761u;
    return item ^ item >> 15;
}

static uint32_t slot_of(const tide__tints *t, uint32_t item) {
    uint32_t i = scatter(item) % TIDE__TINT_SLOTS;
    while (t->tint[i] != TIDE__NO_TINT && t->item[i] != item) i = (i + 1) % TIDE__TINT_SLOTS;
    return i;
}

uint32_t tide__tint_of(const tide__tints *t, uint32_t item) {
    const uint8_t tint = t->tint[slot_of(t, item)];
    return tint != TIDE__NO_TINT ? tint : scatter(item) % t->n_tints;
}

uint32_t tide__tint_slot(const tide__tints *t, uint32_t item) {
    const uint32_t slot = slot_of(t, item);
    return t->tint[slot] != TIDE__NO_TINT ? slot : TIDE__TINT_SLOTS;
}

static bool is_beside(const tide__tints *t, uint32_t item, uint32_t tint, const tide_space_cell *neighbours[2]) {
    for (int i = 0; i < 2; i++) {
        const tide_space_cell *c = neighbours[i];
        if (c != NULL && tide__is_item(*c) && c->item != item && tide__tint_of(t, c->item) == tint) return true;
    }
    return false;
}

/// The tint of its number, or the next that nobody has; when all are in use, the next that neither neighbour has.
static void give_tint(tide__tints *t, uint32_t item, const tide_space_cell *neighbours[2]) {
    if (t->n >= TIDE__TINT_SLOTS * 3 / 4) return;
    const uint32_t slot = slot_of(t, item);
    if (t->tint[slot] != TIDE__NO_TINT) return;
    const bool any_left = t->n_used < t->n_tints;
    uint32_t tint = scatter(item) % t->n_tints;
    for (uint32_t tries = 0; tries < t->n_tints; tries++, tint = (tint + 1) % t->n_tints) {
        if (any_left ? !t->is_used[tint] : !is_beside(t, item, tint, neighbours)) break;
    }
    t->n_used += !t->is_used[tint];
    t->is_used[tint] = true;
    t->item[slot] = item;
    t->tint[slot] = (uint8_t)tint;
    t->n++;
}

void tide__tints_make(tide__tints *t, const tide_space_cell *cells, int w, int h, uint32_t n_tints) {
    memset(t->tint, TIDE__NO_TINT, sizeof t->tint);
    memset(t->is_used, 0, sizeof t->is_used);
    t->n = t->n_used = 0;
    t->n_tints = n_tints;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            const tide_space_cell *c = &cells[(size_t)y * (size_t)w + (size_t)x];
            if (!tide__is_item(*c)) continue;
            const tide_space_cell *neighbours[2] = {x > 0 ? c - 1 : NULL, y > 0 ? c - w : NULL};
            give_tint(t, c->item, neighbours);
        }
    }
}
