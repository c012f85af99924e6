// SPDX-License-Identifier: MIT
//
// Names: made-up ones that must not clash, and the one that somebody probably meant.
#include <string.h>

#include "core/graph/graph_internal.h"

char *tide__value_name_unique(const tide_graph *g, const char *base) {
    tide_text name = {0};
    tide_text_add(&name, base);
    for (unsigned i = 2; !name.failed && tide_graph_find_value(g, name.data) != TIDE_NO_VALUE; i++) {
        name.len = 0;
        tide_text_addf(&name, "%s_%u", base, i);
    }
    if (!name.failed) return name.data;
    tide_text_deinit(&name);
    return NULL;
}

tide_status tide__node_name_make(const char *op_type, size_t node_i, tide_strmap *taken, tide_text *out,
                                 tide_error *err) {
    tide_text_addf(out, "%s_%zu", op_type, node_i);
    const size_t len = out->len;
    for (unsigned k = 2; !out->failed && tide_strmap_get(taken, out->data, NULL); k++) {
        out->len = len;
        tide_text_addf(out, "_%u", k);
    }
    if (out->failed || tide_strmap_put(taken, out->data, 0) != TIDE_OK) return TIDE__NOMEM(err, "node names");
    return TIDE_OK;
}

const char *tide__path_leaf(const char *path) {
    if (path == NULL || path[0] == '\0' || strcmp(path, "-") == 0) return "graph";
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

enum { MAX_WORD = 48 };

/// Levenshtein distance, one row at a time; words longer than MAX_WORD are as far as it goes.
static size_t edit_distance(const char *a, const char *b) {
    const size_t len_a = strlen(a), len_b = strlen(b);
    if (len_a > MAX_WORD || len_b > MAX_WORD) return SIZE_MAX;
    size_t row[MAX_WORD + 1];
    for (size_t k = 0; k <= len_b; k++) row[k] = k;
    for (size_t i = 1; i <= len_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= len_b; k++) {
            const size_t above = row[k];
            size_t best = diagonal + (a[i - 1] != b[k - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[k - 1] + 1 < best) best = row[k - 1] + 1;
            row[k] = best;
            diagonal = above;
        }
    }
    return row[len_b];
}

const char *tide__nearest_word(const char *word, const char *const *known, size_t n) {
    const char *nearest = NULL;
    size_t best = strlen(word) / 2 + 1; // farther than half its letters is no typing error
    for (size_t i = 0; i < n; i++) {
        const size_t distance = edit_distance(word, known[i]);
        if (distance >= best) continue;
        best = distance;
        nearest = known[i];
    }
    return nearest;
}
