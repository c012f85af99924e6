// SPDX-License-Identifier: MIT
//
// Attributes of nodes: storing them and reading them by name. Operators and passes read, importers store.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"

void tide_attr_deinit(tide_attr *attr) {
    for (size_t i = 0; attr->strings != NULL && i < attr->n; i++) tide_host_free(attr->strings[i]);
    tide_host_free(attr->strings);
    tide_host_free(attr->name);
    tide_host_free(attr->s);
    tide_host_free(attr->ints);
    tide_host_free(attr->floats);
    tide_tensor_unref(attr->tensor);
    *attr = (tide_attr){0};
}

tide_status tide_graph_add_attr(tide_graph *g, uint32_t node_i, tide_attr *attr, tide_error *err) {
    tide_node *n = &g->nodes[node_i];
    tide_status st = TIDE_OK;
    if (tide_node_attr(n, attr->name) != NULL) {
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "node '%s' (%s) has two attributes '%s'", n->name, n->op_type,
                       attr->name);
    } else {
        tide_attr *attrs = tide_host_realloc(n->attrs, (n->n_attrs + 1) * sizeof *attrs);
        if (attrs == NULL) {
            st = TIDE_NO_MEMORY(err, "for %s", attr->name);
        } else {
            n->attrs = attrs;
            n->attrs[n->n_attrs++] = *attr;
            *attr = (tide_attr){0};
        }
    }
    if (st != TIDE_OK) tide_attr_deinit(attr);
    return st;
}

const tide_attr *tide_node_attr(const tide_node *n, const char *name) {
    for (size_t i = 0; i < n->n_attrs; i++) {
        if (strcmp(n->attrs[i].name, name) == 0) return &n->attrs[i];
    }
    return NULL;
}

int64_t tide_node_attr_int(const tide_node *n, const char *name, int64_t absent) {
    const tide_attr *a = tide_node_attr(n, name);
    return a != NULL && a->type == TIDE_ATTR_INT ? a->i : absent;
}

float tide_node_attr_float(const tide_node *n, const char *name, float absent) {
    const tide_attr *a = tide_node_attr(n, name);
    if (a != NULL && a->type == TIDE_ATTR_FLOAT) return a->f;
    return a != NULL && a->type == TIDE_ATTR_INT ? (float)a->i : absent;
}

const char *tide_node_attr_string(const tide_node *n, const char *name, const char *absent) {
    const tide_attr *a = tide_node_attr(n, name);
    return a != NULL && a->type == TIDE_ATTR_STRING ? a->s : absent;
}

const int64_t *tide_node_attr_ints(const tide_node *n, const char *name, size_t *len) {
    const tide_attr *a = tide_node_attr(n, name);
    const bool here = a != NULL && a->ints != NULL;
    *len = here ? a->n : 0;
    return here ? a->ints : NULL;
}

const float *tide_node_attr_floats(const tide_node *n, const char *name, size_t *len) {
    const tide_attr *a = tide_node_attr(n, name);
    const bool here = a != NULL && a->floats != NULL;
    *len = here ? a->n : 0;
    return here ? a->floats : NULL;
}

const char *const *tide_node_attr_strings(const tide_node *n, const char *name, size_t *len) {
    const tide_attr *a = tide_node_attr(n, name);
    const bool here = a != NULL && a->strings != NULL;
    *len = here ? a->n : 0;
    return here ? (const char *const *)a->strings : NULL;
}
