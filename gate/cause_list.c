// SPDX-License-Identifier: MIT
//
// The lower half of the causes, which their finders share: the list of causes in its order, what each operator holds at
// both peaks, and words that several sentences use. Each byte that is held belongs to a tensor or to a hole, so the
// parts of the waterfall sum to the change exactly.
#include "gate/causes_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"

int64_t tide__change(uint64_t a, uint64_t b) {
    const uint64_t d = b > a ? b - a : a - b;
    const int64_t size = d < INT64_MAX ? (int64_t)d : INT64_MAX;
    return b > a ? size : -size;
}

// ---- what was found ----

static void cause_deinit(tide_gate_cause *c) {
    tide_host_free(c->name);
    tide_host_free(c->owner);
    tide_host_free(c->a);
    tide_host_free(c->b);
    tide_host_free(c->text);
}

tide_status tide__cause_add(tide__cause_search *g, const tide__cause_draft *d, tide_text *sentence) {
    const bool good =
        !sentence->failed && tide_host_grow(&g->found, &g->cap_found, g->n_found + 1, sizeof *g->found) == TIDE_OK;
    tide_gate_cause c = {.kind = d->kind, .a_bytes = d->a_bytes, .b_bytes = d->b_bytes, .n = d->n > 0 ? d->n : 1};
    if (good) {
        c.name = tide_host_strdup(tide__case_text(d->name));
        c.owner = tide_host_strdup(tide__case_text(d->owner));
        c.a = tide_host_strdup(tide__case_text(d->a));
        c.b = tide_host_strdup(tide__case_text(d->b));
        c.text = tide_host_strdup(tide_text_str(sentence));
    }
    tide_text_deinit(sentence);
    if (c.name == NULL || c.owner == NULL || c.a == NULL || c.b == NULL || c.text == NULL) {
        cause_deinit(&c);
        return TIDE_NO_MEMORY(g->err, "for the causes of a change");
    }
    const bool against = g->direction != 0 && tide__sign(d->weight) == -g->direction;
    g->found[g->n_found] = (tide__cause_found){c, d->rank, d->weight, against, g->n_found};
    g->n_found++;
    return TIDE_OK;
}

static int compare_found(const void *a, const void *b) {
    const tide__cause_found *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->against != y->against) return x->against ? 1 : -1;
    const int64_t wx = llabs(x->weight), wy = llabs(y->weight);
    if (wx != wy) return wx > wy ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

tide_status tide__causes_finish(tide__cause_search *g) {
    if (g->n_found == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&g->out->causes, g->n_found, g->err, "for the causes of a change"));
    qsort(g->found, g->n_found, sizeof *g->found, compare_found);
    for (size_t i = 0; i < g->n_found; i++) g->out->causes[i] = g->found[i].cause;
    g->out->n_causes = g->n_found;
    g->n_found = 0;
    return TIDE_OK;
}

void tide__causes_drop(tide__cause_search *g) {
    for (size_t i = 0; i < g->n_found; i++) cause_deinit(&g->found[i].cause);
    tide_host_free(g->found);
    tide_host_free(g->owners);
    tide_strmap_deinit(&g->owner_index);
}

// ---- words that several causes use ----

void tide__say_instead(tide_text *out, uint64_t b, uint64_t a) {
    const tide__bytes_text words_b = tide__words(b), words_a = tide__words(a);
    if (a != b && strcmp(words_b.text, words_a.text) == 0)
        tide_text_addf(out, "%" PRIu64 " B instead of %" PRIu64 " B", b, a);
    else
        tide_text_addf(out, "%s instead of %s", words_b.text, words_a.text);
}

void tide__say_peak(tide_text *out, const tide__cause_search *g) {
    const char *a = tide__case_text(g->a->peak_step), *b = tide__case_text(g->b->peak_step);
    if (a[0] == '\0' || b[0] == '\0') return;
    if (strcmp(a, b) == 0)
        tide_text_addf(out, "; the peak is at %s on both sides", b);
    else
        tide_text_addf(out, "; the peak is at %s (before: at %s)", b, a);
}

// ---- the waterfall: what each operator and each kind holds at both peaks ----

/// The operator that makes the tensor, or a name in parentheses for tensors that no operator makes.
static const char *owner_key(const tide_gate_tensor *t) {
    if (t->owner != NULL && t->owner[0] != '\0') return t->owner;
    switch (t->kind) {
    case TIDE_KIND_PERSISTENT:
        return "(weights)";
    case TIDE_KIND_DEFAULT:
        return "(inputs and outputs)";
    default:
        return "(no operator)";
    }
}

static tide_status add_to_owner(tide__cause_search *g, const tide_gate_tensor *t, bool is_b) {
    const char *key = owner_key(t);
    uint64_t i;
    if (!tide_strmap_get(&g->owner_index, key, &i)) {
        if (tide_host_grow(&g->owners, &g->cap_owners, g->n_owners + 1, sizeof *g->owners) != TIDE_OK ||
            tide_strmap_put(&g->owner_index, key, g->n_owners) != TIDE_OK)
            return TIDE_NO_MEMORY(g->err, "for the causes of a change");
        i = g->n_owners++;
        g->owners[i] = (tide__cause_owner){.key = key};
    }
    tide__cause_owner *o = &g->owners[i];
    const tide_gate_tensor **largest = is_b ? &o->b_largest : &o->a_largest;
    *(is_b ? &o->b_bytes : &o->a_bytes) += t->at_peak_bytes; // cannot overflow: tide__case_check has summed these
    if (t->at_peak_bytes > (*largest != NULL ? (*largest)->at_peak_bytes : 0)) *largest = t;
    return TIDE_OK;
}

tide_status tide__causes_find_owners(tide__cause_search *g) {
    for (size_t i = 0; i < g->a->n_tensors; i++) TIDE_TRY(add_to_owner(g, &g->a->tensors[i], false));
    for (size_t i = 0; i < g->b->n_tensors; i++) TIDE_TRY(add_to_owner(g, &g->b->tensors[i], true));
    return TIDE_OK;
}

tide__cause_owner *tide__causes_owner(const tide__cause_search *g, const char *key) {
    uint64_t i;
    return tide_strmap_get(&g->owner_index, key, &i) ? &g->owners[i] : NULL;
}

// ---- parts ----

static int compare_parts(const void *a, const void *b) {
    const tide_gate_part *x = a, *y = b;
    const int64_t dx = llabs(tide__change(x->a_bytes, x->b_bytes)), dy = llabs(tide__change(y->a_bytes, y->b_bytes));
    if (dx != dy) return dx > dy ? -1 : 1;
    return strcmp(x->key, y->key);
}

/// Adds a part. Parts that did not change are left out.
static tide_status add_part(const tide__cause_search *g, tide_gate_part *list, size_t *n, const char *key, uint64_t a,
                            uint64_t b) {
    if (a == b) return TIDE_OK;
    char *copy;
    TIDE_TRY(TIDE_COPY_TEXT(&copy, key, g->err, "for the causes of a change"));
    list[(*n)++] = (tide_gate_part){.key = copy, .a_bytes = a, .b_bytes = b};
    return TIDE_OK;
}

static tide_status finish_parts(const tide__cause_search *g, tide_gate_part *list, size_t *n) {
    TIDE_TRY(add_part(g, list, n, "holes", g->a->holes_bytes, g->b->holes_bytes));
    if (*n > 1) qsort(list, *n, sizeof *list, compare_parts);
    return TIDE_OK;
}

tide_status tide__causes_add_parts(tide__cause_search *g) {
    tide_gate_judged *out = g->out;
    uint64_t a[TIDE_N_KINDS] = {0}, b[TIDE_N_KINDS] = {0};
    TIDE_TRY(TIDE_NEW(&out->by_operator, g->n_owners + 1, g->err, "for the causes of a change"));
    TIDE_TRY(TIDE_NEW(&out->by_kind, TIDE_N_KINDS + 1, g->err, "for the causes of a change"));
    for (size_t i = 0; i < g->n_owners; i++) {
        const tide__cause_owner *o = &g->owners[i];
        TIDE_TRY(add_part(g, out->by_operator, &out->n_by_operator, o->key, o->a_bytes, o->b_bytes));
    }
    for (size_t i = 0; i < g->a->n_tensors; i++) a[g->a->tensors[i].kind] += g->a->tensors[i].at_peak_bytes;
    for (size_t i = 0; i < g->b->n_tensors; i++) b[g->b->tensors[i].kind] += g->b->tensors[i].at_peak_bytes;
    for (int k = 0; k < TIDE_N_KINDS; k++)
        TIDE_TRY(add_part(g, out->by_kind, &out->n_by_kind, tide_memory_kind_name((tide_memory_kind)k), a[k], b[k]));
    TIDE_TRY(finish_parts(g, out->by_operator, &out->n_by_operator));
    return finish_parts(g, out->by_kind, &out->n_by_kind);
}
