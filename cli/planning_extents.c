// SPDX-License-Identifier: MIT
//
// Open extents by name, "N=8": one number for all inputs that have the symbol, where --shape gives one input whole.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/planning.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"

const char *cli__extent_name(const tide_value *v, int32_t d, char *buf, size_t buf_bytes) {
    const char *symbol = v->dim_names != NULL ? v->dim_names[d] : NULL;
    if (symbol != NULL && symbol[0] != '\0') return symbol;
    snprintf(buf, buf_bytes, "%s.%d", v->name, (int)d);
    return buf;
}

static bool is_open(const tide_value *v, int32_t d) { return v->shape.dims[d] == TIDE_DIM_UNKNOWN; }

tide_status cli_extents_of_graph(const tide_graph *g, char ***names, size_t *n, tide_error *err) {
    char **list = NULL;
    size_t count = 0, cap = 0;
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        for (int32_t d = 0; st == TIDE_OK && v->has_shape && d < v->shape.rank; d++) {
            char buf[512];
            const char *name = is_open(v, d) ? cli__extent_name(v, d, buf, sizeof buf) : NULL;
            bool known = name == NULL;
            for (size_t k = 0; !known && k < count; k++) known = strcmp(list[k], name) == 0;
            if (known) continue;
            char *copy = tide_host_strdup(name);
            if (copy == NULL || tide_host_grow(&list, &cap, count + 1, sizeof *list) != TIDE_OK) {
                tide_host_free(copy);
                st = TIDE_NO_MEMORY(err, "for the extents of '%s'", g->source);
            } else {
                list[count++] = copy;
            }
        }
    }
    *names = list;
    *n = count;
    if (st != TIDE_OK) cli_extents_free(names, n);
    return st;
}

void cli_extents_free(char ***names, size_t *n) {
    for (size_t i = 0; i < *n; i++) tide_host_free((*names)[i]);
    tide_host_free(*names);
    *names = NULL;
    *n = 0;
}

tide_status cli_extent_parse(const char *text, size_t *name_len, int64_t *value, tide_error *err) {
    const char *eq = strrchr(text, '=');
    char *end = NULL;
    errno = 0;
    const long long number = eq != NULL && eq[1] >= '0' && eq[1] <= '9' ? strtoll(eq + 1, &end, 10) : 0;
    if (eq == NULL || eq == text || end == NULL || *end != '\0' || errno != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not of the form N=8", text);
    *name_len = (size_t)(eq - text);
    *value = number;
    return TIDE_OK;
}

/// One extent, taken apart.
typedef struct extent {
    const char *text;
    size_t name_len;
    int64_t value;
    bool used;
} extent;

static const extent *find(const extent *all, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strlen(name) == all[i].name_len && strncmp(name, all[i].text, all[i].name_len) == 0) return &all[i];
    }
    return NULL;
}

static tide_status parse_all(const cli_planning *p, extent *all, tide_error *err) {
    for (size_t i = 0; i < p->n_extents; i++) {
        all[i].text = p->extents[i];
        TIDE_TRY(cli_extent_parse(all[i].text, &all[i].name_len, &all[i].value, err));
        for (size_t k = 0; k < i; k++) {
            if (all[k].name_len != all[i].name_len || strncmp(all[k].text, all[i].text, all[i].name_len) != 0) continue;
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "extent '%.*s' is given twice: '%s' and '%s'", (int)all[i].name_len,
                             all[i].text, all[k].text, all[i].text);
        }
    }
    return TIDE_OK;
}

static tide_status unknown_extent(const tide_graph *g, const extent *e, tide_error *err) {
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)e->name_len, e->text);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the graph has no open extent '%s'", name);
    tide_error_where(err, "%s", g->source);
    char **names = NULL;
    size_t n = 0;
    if (cli_extents_of_graph(g, &names, &n, NULL) != TIDE_OK) return st;
    tide_text list = {0};
    for (size_t i = 0; i < n; i++) tide_text_addf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    tide_error_note(err, "its open extents are: %s", n > 0 ? tide_text_str(&list) : "none");
    const char *meant = tide_nearest_of(name, (const char *const *)names, n);
    if (meant != NULL) tide_error_hint(err, "did you mean '%s'?", meant);
    tide_text_deinit(&list);
    cli_extents_free(&names, &n);
    return st;
}

static const tide_shape_binding *binding_of(const tide_shape_binding *all, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i].name, name) == 0) return &all[i];
    }
    return NULL;
}

/// The shape of one input with the extents in it. `given`: the whole shape of this input from --shape; NULL: none.
static tide_status fill_input(const tide_value *v, const tide_shape_binding *given, extent *all, size_t n,
                              tide_shape *shape, tide_error *err) {
    *shape = v->shape;
    for (int32_t d = 0; d < v->shape.rank; d++) {
        char buf[512];
        if (!is_open(v, d)) continue;
        const extent *found = find(all, n, cli__extent_name(v, d, buf, sizeof buf));
        if (found == NULL) continue;
        all[found - all].used = true;
        shape->dims[d] = found->value;
        if (given == NULL || d >= given->shape.rank || given->shape.dims[d] == found->value) continue;
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' contradicts the shape of input '%s', where that extent is %lld",
                         found->text, v->name, (long long)given->shape.dims[d]);
    }
    return TIDE_OK;
}

tide_status cli__extents_bind(const tide_graph *g, const cli_planning *p, tide_shape_binding *bindings, size_t *n,
                              tide_error *err) {
    if (p->n_extents == 0) return TIDE_OK;
    extent *all;
    TIDE_TRY(TIDE_NEW(&all, p->n_extents, err, "for %zu extents", p->n_extents));
    tide_status st = parse_all(p, all, err);
    const size_t n_given = *n;
    for (size_t i = 0; st == TIDE_OK && i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        if (!v->has_shape) continue;
        const tide_shape_binding *given = binding_of(bindings, n_given, v->name);
        tide_shape shape;
        st = fill_input(v, given, all, p->n_extents, &shape, err);
        // What is still open is asked for where sizes are inferred.
        if (st == TIDE_OK && given == NULL && tide_shape_known(&shape))
            bindings[(*n)++] = (tide_shape_binding){.name = v->name, .shape = shape};
    }
    for (size_t i = 0; st == TIDE_OK && i < p->n_extents; i++) {
        if (!all[i].used) st = unknown_extent(g, &all[i], err);
    }
    tide_host_free(all);
    return st;
}
