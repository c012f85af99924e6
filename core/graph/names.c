// SPDX-License-Identifier: MIT
//
// Names: made-up ones that must not clash.
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
    if (out->failed || tide_strmap_put(taken, out->data, 0) != TIDE_OK) return TIDE_NO_MEMORY(err, "for node names");
    return TIDE_OK;
}

const char *tide__path_leaf(const char *path) {
    if (path == NULL || path[0] == '\0' || strcmp(path, "-") == 0) return "graph";
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}
