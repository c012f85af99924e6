// SPDX-License-Identifier: MIT
//
// Attributes of a node against those that its operator declares. See attr_check.h.
#include "core/ops/attr_check.h"

#include <string.h>

#include "core/base/nearest.h"
#include "core/base/status.h"
#include "core/base/text.h"

static const char *const type_names[] = {
    [TIDE_ATTR_INT] = "an integer",
    [TIDE_ATTR_FLOAT] = "a number",
    [TIDE_ATTR_STRING] = "a string",
    [TIDE_ATTR_INTS] = "a list of integers",
    [TIDE_ATTR_FLOATS] = "a list of numbers",
    [TIDE_ATTR_TENSOR] = "a tensor",
    [TIDE_ATTR_STRINGS] = "a list of strings",
};

/// Graph text writes 2.0 as 2, and an empty list of anything as [].
static bool serves(const tide_attr *a, tide_attr_type want) {
    const bool is_list = a->type == TIDE_ATTR_INTS || a->type == TIDE_ATTR_FLOATS || a->type == TIDE_ATTR_STRINGS;
    const bool wants_list = want == TIDE_ATTR_INTS || want == TIDE_ATTR_FLOATS || want == TIDE_ATTR_STRINGS;
    if (a->type == want || (is_list && wants_list && a->n == 0)) return true;
    if (want == TIDE_ATTR_FLOAT) return a->type == TIDE_ATTR_INT;
    return want == TIDE_ATTR_FLOATS && a->floats != NULL;
}

static bool is_of(const tide_attr_def *d, int opset) {
    return opset >= d->since && (d->until == 0 || opset <= d->until);
}

static bool may_always_be(const tide_node *n, const char *name) {
    if (name[0] == '_' && name[1] == '_') return true;
    return n->domain[0] == '\0' && n->opset < 6 && strcmp(name, "consumed_inputs") == 0;
}

static size_t n_declared(const tide_op_def *def) {
    size_t n = 0;
    while (def->attrs != NULL && def->attrs[n].name != NULL) n++;
    return n;
}

static const tide_attr_def *find(const tide_op_def *def, const char *name) {
    for (size_t i = 0, n = n_declared(def); i < n; i++)
        if (strcmp(def->attrs[i].name, name) == 0) return &def->attrs[i];
    return NULL;
}

// ---- an attribute that the node must not have ----

/// The operator has it, but in another version.
static tide_status fail_version(const tide_node *n, const char *name, int since, int until, tide_error *err) {
    const bool is_later = n->opset < since;
    TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s '%s': attribute '%s' is there %s opset %d, the node is of opset %d",
              n->op_type, n->name, name, is_later ? "from" : "up to", is_later ? since : until, n->opset);
    tide_error_hint(err, is_later ? "name the later opset in the model, or take the attribute out"
                                  : "name the earlier opset in the model, or say it as the later one does");
    return TIDE_ERR_BAD_INPUT;
}

typedef struct name_list {
    const tide_op_def *def;
    int opset;
} name_list;

/// NULL for those of other versions.
static const char *name_at(const void *ctx, size_t i) {
    const name_list *const l = ctx;
    return is_of(&l->def->attrs[i], l->opset) ? l->def->attrs[i].name : NULL;
}

static tide_status fail_unknown(const tide_node *n, const tide_op_def *def, const char *name, tide_error *err) {
    const name_list l = {def, n->opset};
    const size_t n_attrs = n_declared(def);
    tide_text known = {0};
    TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s '%s': the operator has no attribute '%s'", n->op_type, n->name, name);
    const char *const near = tide_nearest_word(name, name_at, &l, n_attrs);
    for (size_t i = 0; i < n_attrs; i++)
        if (name_at(&l, i) != NULL) tide_text_addf(&known, "%s%s", known.len > 0 ? ", " : "", name_at(&l, i));
    if (near != NULL)
        tide_error_hint(err, "the nearest that it has is '%s'", near);
    else if (known.len > 0 && !known.failed)
        tide_error_hint(err, "it has: %s", known.data);
    else if (known.len == 0)
        tide_error_hint(err, "it has none in opset %d", n->opset);
    tide_text_deinit(&known);
    return TIDE_ERR_BAD_INPUT;
}

static tide_status fail_undeclared(const tide_node *n, const tide_op_def *def, const char *name,
                                   const tide_op_def *const *rows, size_t n_rows, tide_error *err) {
    for (size_t i = 0; i < n_rows; i++) {
        if (strcmp(rows[i]->name, def->name) != 0 || strcmp(rows[i]->domain, def->domain) != 0) continue;
        const tide_attr_def *const d = find(rows[i], name);
        if (d == NULL) continue;
        const int since = d->since > rows[i]->since ? d->since : rows[i]->since;
        return fail_version(n, name, since, d->until != 0 ? d->until : rows[i]->until, err);
    }
    return fail_unknown(n, def, name, err);
}

tide_status tide_op_check_attrs(const tide_node *n, const tide_op_def *def, const tide_op_def *const *rows,
                                size_t n_rows, tide_error *err) {
    for (size_t i = 0; i < n->n_attrs; i++) {
        const tide_attr *const a = &n->attrs[i];
        const tide_attr_def *const d = find(def, a->name);
        if (may_always_be(n, a->name)) continue;
        if (d == NULL || !is_of(d, n->opset)) return fail_undeclared(n, def, a->name, rows, n_rows, err);
        if (!serves(a, d->type))
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s '%s': attribute '%s' is %s, must be %s", n->op_type, n->name,
                             a->name, type_names[a->type], type_names[d->type]);
    }
    return TIDE_OK;
}
