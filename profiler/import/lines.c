// SPDX-License-Identifier: MIT
//
// Lines of a text, for the formats that are one. See import_internal.h.
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/import/import_internal.h"

enum { MAX_LINE = 1 << 24, STEP = 4096 };

tide_status tide__lines_bad(const tide__lines *l, tide_error *err, const char *what) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", l->path, what);
    tide_error_where(err, "%s:%" PRIu64, l->path, l->number);
    return st;
}

tide_status tide__lines_next(tide__lines *l, bool *has, tide_error *err) {
    size_t n = 0;
    do { // in pieces, as long as it is
        TIDE_TRY(TIDE_GROW(&l->text, &l->cap, n + STEP, err, "to read '%s'", l->path));
        if (fgets(l->text + n, (int)(l->cap - n), l->in->file) == NULL) break;
        n += strlen(l->text + n);
        if (n > MAX_LINE) return tide__lines_bad(l, err, "a line of more than 16 MiB");
    } while (n > 0 && l->text[n - 1] != '\n' && !feof(l->in->file));
    if (ferror(l->in->file)) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read '%s': %s", l->path, strerror(errno));
    l->is_cut = l->is_cut || l->in->is_cut;
    if (n > 0 && l->text[n - 1] != '\n' && (l->all_end || l->in->is_cut)) {
        l->is_cut = true;
        n = 0;
    }
    *has = n > 0;
    l->number += *has;
    while (n > 0 && (l->text[n - 1] == '\n' || l->text[n - 1] == '\r')) n--;
    l->text[n] = '\0';
    return TIDE_OK;
}

void tide__lines_deinit(tide__lines *l) { tide_host_free(l->text); }
