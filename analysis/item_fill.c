// SPDX-License-Identifier: MIT
//
// Classes of items. See item_fill.h.
#include "analysis/item_fill.h"

tide_item_fill tide_item_fill_of(tide_memory_kind kind, tide_role role) {
    switch (kind) {
    case TIDE_KIND_KV_CACHE:
        return TIDE_ITEM_FILL_KV_CACHE;
    case TIDE_KIND_HOST_PINNED:
    case TIDE_KIND_HOST_PAGEABLE:
        return TIDE_ITEM_FILL_HOST;
    case TIDE_KIND_PERSISTENT:
        return TIDE_ITEM_FILL_WEIGHT;
    default:
        break;
    }
    switch (role) {
    case TIDE_ROLE_SCRATCH:
        return TIDE_ITEM_FILL_SCRATCH;
    case TIDE_ROLE_WEIGHT:
        return TIDE_ITEM_FILL_WEIGHT;
    case TIDE_ROLE_INPUT:
    case TIDE_ROLE_OUTPUT:
        return TIDE_ITEM_FILL_INOUT;
    default:
        return kind == TIDE_KIND_DEFAULT ? TIDE_ITEM_FILL_INOUT : TIDE_ITEM_FILL_INTERMEDIATE;
    }
}

const char *tide_item_fill_text(tide_item_fill fill) {
    static const char *const texts[] = {
#define XX(name, text) text,
        TIDE_ITEM_FILL_MAP(XX)
#undef XX
    };
    return (unsigned)fill < TIDE_N_ITEM_FILLS ? texts[fill] : "";
}

bool tide_item_persists(tide_memory_kind kind, tide_role role, bool in_plan) {
    return in_plan || kind == TIDE_KIND_PERSISTENT || role == TIDE_ROLE_WEIGHT || role == TIDE_ROLE_INPUT ||
           role == TIDE_ROLE_OUTPUT;
}
