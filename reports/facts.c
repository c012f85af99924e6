// SPDX-License-Identifier: MIT
//
// Derived facts. See facts.h.
#include "reports/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"

bool tide_report_knows_role(const tide_timeline *tl, const tide_timeline_item *item) {
    return tl->axis == TIDE_AXIS_STEPS || item->role != TIDE_ROLE_INTERMEDIATE;
}

bool tide_report_gap(const tide_timeline *tl, double *out) {
    if (!tl->has_plan || tl->lower_bound_bytes == 0) return false;
    *out = ((double)tl->plan_bytes - (double)tl->lower_bound_bytes) / (double)tl->lower_bound_bytes;
    return true;
}

bool tide_report_saving(const tide_timeline *tl, double *out) {
    if (!tl->has_plan || tl->naive_bytes == 0) return false;
    *out = 1.0 - (double)tl->plan_bytes / (double)tl->naive_bytes;
    return true;
}

// ---- times ----

#define US "\xC2\xB5s"

uint64_t tide_report_time(const tide_timeline *tl, int64_t t) {
    if (tl->axis == TIDE_AXIS_STEPS) return t > 0 ? (uint64_t)t : 0;
    return t > tl->begin ? (uint64_t)t - (uint64_t)tl->begin : 0;
}

char *tide_report_format_time(const tide_timeline *tl, int64_t t, char *buf, size_t buf_bytes) {
    if (tl->axis == TIDE_AXIS_NS) return tide_format_ns(tide_report_time(tl, t), US, buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRId64, t);
    return buf;
}

char *tide_report_format_span(const tide_timeline *tl, int64_t begin, int64_t end, char *buf, size_t buf_bytes) {
    const uint64_t span = end > begin ? (uint64_t)end - (uint64_t)begin : 0;
    if (tl->axis == TIDE_AXIS_NS) return tide_format_ns(span, US, buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRIu64 " step%s", span, span == 1 ? "" : "s");
    return buf;
}

char *tide_report_format_round(uint64_t bytes, char *buf, size_t buf_bytes) {
    tide_format_bytes(bytes, buf, buf_bytes);
    char *zeros = strstr(buf, ".00 ");
    if (zeros != NULL) memmove(zeros, zeros + 3, strlen(zeros + 3) + 1);
    return buf;
}

// ---- the largest items ----

typedef struct sized {
    uint64_t bytes;
    size_t item;
} sized;

static int larger_first(const void *pa, const void *pb) {
    const sized *a = pa, *b = pb;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static int by_index(const void *pa, const void *pb) {
    const size_t *a = pa, *b = pb;
    return *a < *b ? -1 : *a > *b;
}

tide_status tide_report_largest(const tide_timeline *tl, size_t max, size_t **out, size_t *n, tide_error *err) {
    *out = NULL;
    *n = tl->n_items < max ? tl->n_items : max;
    if (*n == 0) return TIDE_OK;
    size_t *items = tide_host_calloc(*n, sizeof *items);
    sized *all = tl->n_items > max ? tide_host_calloc(tl->n_items, sizeof *all) : NULL;
    if (items == NULL || (tl->n_items > max && all == NULL)) {
        tide_host_free(items);
        tide_host_free(all);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to pick the %zu largest of %zu items", *n, tl->n_items);
    }
    if (all == NULL) {
        for (size_t i = 0; i < *n; i++) items[i] = i;
    } else {
        for (size_t i = 0; i < tl->n_items; i++) all[i] = (sized){tl->items[i].size_bytes, i};
        qsort(all, tl->n_items, sizeof *all, larger_first);
        for (size_t i = 0; i < *n; i++) items[i] = all[i].item;
        qsort(items, *n, sizeof *items, by_index);
    }
    tide_host_free(all);
    *out = items;
    return TIDE_OK;
}
