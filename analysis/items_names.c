// SPDX-License-Identifier: MIT
//
// Names of sites: their order, and their texts in lower case for searches. See items_internal.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/items_internal.h"
#include "analysis/items_order.h"
#include "core/base/host_alloc.h"

static bool named_before(const void *ctx, uint32_t a, uint32_t b) {
    const tide_item_site *x = &((const tide_items *)ctx)->sites[a], *y = &((const tide_items *)ctx)->sites[b];
    int order = strcmp(x->name, y->name);
    if (order == 0) order = strcmp(x->owner, y->owner);
    return order != 0 ? order < 0 : x->step <= y->step;
}

static char *fold(char *out, const char *text) {
    for (; *text != '\0'; text++) *out++ = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    return out;
}

static tide_status make_folded(const tide_items *items, tide__site_names *n) {
    size_t bytes = 1;
    for (size_t i = 0; i < items->n_sites; i++)
        bytes += strlen(items->sites[i].name) + strlen(items->sites[i].owner) + 2;
    if (bytes > UINT32_MAX) return TIDE_ERR_OVERFLOW;
    n->folded = tide_host_alloc(bytes);
    n->folded_at = tide_host_alloc((items->n_sites + 1) * sizeof *n->folded_at);
    if (n->folded == NULL || n->folded_at == NULL) return TIDE_ERR_NOMEM;
    char *at = n->folded;
    for (size_t i = 0; i < items->n_sites; i++) {
        n->folded_at[i] = (uint32_t)(at - n->folded);
        at = fold(at, items->sites[i].name);
        *at++ = '\n';
        at = fold(at, items->sites[i].owner);
        *at++ = '\0';
    }
    n->folded_at[items->n_sites] = (uint32_t)(at - n->folded);
    return TIDE_OK;
}

static tide_status make_ranks(const tide_items *items, tide__site_names *n) {
    uint32_t *order = tide_host_alloc((items->n_sites + 1) * sizeof *order);
    n->rank = tide_host_alloc((items->n_sites + 1) * sizeof *n->rank);
    tide_status st = order != NULL && n->rank != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (uint32_t i = 0; st == TIDE_OK && i < items->n_sites; i++) order[i] = i;
    if (st == TIDE_OK) st = tide__merge_sort(order, items->n_sites, named_before, items, NULL);
    for (uint32_t i = 0; st == TIDE_OK && i < items->n_sites; i++) n->rank[order[i]] = i;
    tide_host_free(order);
    return st;
}

tide_status tide__site_names_make(const tide_items *items, tide__site_names *out) {
    *out = (tide__site_names){0};
    tide_status st = make_ranks(items, out);
    if (st == TIDE_OK) st = make_folded(items, out);
    if (st != TIDE_OK) tide__site_names_deinit(out);
    return st;
}

void tide__site_names_deinit(tide__site_names *n) {
    tide_host_free(n->rank);
    tide_host_free(n->folded);
    tide_host_free(n->folded_at);
    *n = (tide__site_names){0};
}
