// SPDX-License-Identifier: MIT
//
// The tensors of a case: adding, sorting, and adding leaks and allocations to them.
#include <stdlib.h>
#include <string.h>

#include "cli/measure_internal.h"
#include "core/base/host_alloc.h"

tide_gate_value cli__measured(uint64_t u) { return (tide_gate_value){.known = true, .u = u}; }

static void free_tensor(tide_gate_tensor *t) {
    tide_host_free(t->name);
    tide_host_free(t->owner);
    tide_host_free(t->inside);
    tide_host_free(t->alias);
}

void cli__measure_drop_tensors(tide_gate_case *c) {
    for (size_t i = 0; i < c->n_tensors; i++) free_tensor(&c->tensors[i]);
    tide_host_free(c->tensors);
    c->tensors = NULL;
    c->n_tensors = 0;
}

const char *cli__measure_label(const char *name, const char *owner) {
    if (name[0] != '\0') return name;
    return owner[0] != '\0' ? owner : "(no operator)";
}

tide_status cli__measure_add_tensor(tide_gate_case *c, const cli__tensor_row *row, size_t *cap, tide_error *err) {
    tide_gate_tensor t = {.name = tide_host_strdup(row->name),
                          .owner = tide_host_strdup(row->owner),
                          .inside = tide_host_strdup(row->inside),
                          .alias = tide_host_strdup(row->alias),
                          .kind = row->kind,
                          .persistent = row->persistent,
                          .bytes = row->bytes};
    if (t.name == NULL || t.owner == NULL || t.inside == NULL || t.alias == NULL ||
        tide_host_grow(&c->tensors, cap, c->n_tensors + 1, sizeof *c->tensors) != TIDE_OK) {
        free_tensor(&t);
        return TIDE_NO_MEMORY(err, "for tensor '%s'", row->name);
    }
    c->tensors[c->n_tensors++] = t;
    return TIDE_OK;
}

static int by_name(const void *a, const void *b) {
    const tide_gate_tensor *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c != 0 ? c : strcmp(x->owner, y->owner);
}

void cli__measure_sort(tide_gate_case *c) {
    if (c->n_tensors > 1) qsort(c->tensors, c->n_tensors, sizeof *c->tensors, by_name);
}

/// The tensor of that name and owner, or else of that name; NULL.
static tide_gate_tensor *find(tide_gate_case *c, const char *name, const char *owner) {
    size_t lo = 0, hi = c->n_tensors;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (strcmp(c->tensors[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    tide_gate_tensor *first = NULL;
    for (; lo < c->n_tensors && strcmp(c->tensors[lo].name, name) == 0; lo++) {
        if (first == NULL) first = &c->tensors[lo];
        if (strcmp(c->tensors[lo].owner, owner) == 0) return &c->tensors[lo];
    }
    return first;
}

tide_status cli__measure_charge(tide_gate_case *c, const cli__tensor_row *who, uint64_t leaked_bytes,
                                uint64_t warm_allocations, tide_error *err) {
    cli__tensor_row row = *who;
    row.name = cli__measure_label(who->name, who->owner);
    row.inside = row.alias = "";
    tide_gate_tensor *t = find(c, row.name, row.owner);
    if (t == NULL) {
        size_t cap = c->n_tensors; // the room behind the table is not known
        TIDE_TRY(cli__measure_add_tensor(c, &row, &cap, err));
        cli__measure_sort(c);
        t = find(c, row.name, row.owner);
    }
    t->leaked_bytes += leaked_bytes;
    t->warm_allocations += warm_allocations;
    return TIDE_OK;
}
