// SPDX-License-Identifier: MIT
//
// Private pools by address. See torch_private.h.
#include "profiler/import/torch_private.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/host_alloc.h"

typedef struct tide__torch_private_segment segment;

static int by_address(const void *a, const void *b) {
    const segment *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static bool is_wanted(const tide__torch_segment *g, int64_t device) {
    return g->device == device && g->pool != 0 && g->total > 0;
}

static tide_status add(tide__torch_private *p, const tide__torch_segment *g, tide__names *names, const char *path,
                       tide_error *err) {
    char name[64];
    segment *to = &p->items[p->n];
    *to = (segment){.address = g->address, .bytes = g->total};
    snprintf(name, sizeof name, "pytorch pool %" PRIu64 ".%" PRIu64, g->pool >> 32, g->pool & UINT32_MAX);
    if (tide__names_text(names, name, &to->name) != TIDE_OK) return TIDE_NO_MEMORY(err, "to read '%s'", path);
    p->n++;
    return TIDE_OK;
}

tide_status tide__torch_private_init(tide__torch_private *p, const tide__torch_snapshot *s, int64_t device,
                                     tide__names *names, const char *path, tide_error *err) {
    size_t n = 0;
    *p = (tide__torch_private){0};
    for (size_t i = 0; i < s->n_segments; i++) n += is_wanted(&s->segments[i], device);
    if (n == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&p->items, n, err, "to read '%s'", path));
    for (size_t i = 0; i < s->n_segments; i++)
        if (is_wanted(&s->segments[i], device)) TIDE_TRY(add(p, &s->segments[i], names, path, err));
    qsort(p->items, p->n, sizeof *p->items, by_address);
    return TIDE_OK;
}

/// The last one that does not begin behind `address`; NULL: none.
static segment *find(const tide__torch_private *p, uint64_t address) {
    size_t lo = 0, hi = p->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (p->items[mid].address <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? &p->items[lo - 1] : NULL;
}

void tide__torch_private_count(tide__torch_private *p, uint64_t address) {
    segment *g = find(p, address);
    if (g != NULL && g->address == address) g->n_left++;
}

void tide__torch_private_take(tide__torch_private *p, uint64_t address) {
    segment *g = find(p, address);
    if (g != NULL && g->address == address && g->n_left > 0) g->n_left--;
}

int64_t tide__torch_private_of(const tide__torch_private *p, uint64_t address) {
    const segment *g = find(p, address);
    return g != NULL && g->n_left == 0 && address - g->address < g->bytes ? g->name : 0;
}

void tide__torch_private_deinit(tide__torch_private *p) { tide_host_free(p->items); }
