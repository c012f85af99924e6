// SPDX-License-Identifier: MIT
//
// What holds of every table that is made of a text. See texts.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/formats/texts.h"

/// The file's name without folders and ending.
static tide_status name_table(tide_lifetimes *lt, const char *path, tide_error *err) {
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const size_t len = dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base);
    lt->model = tide_host_strndup(base, len);
    return lt->model != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "to read '%s'", path);
}

/// The plan that the file has is a plan of the table: more cannot be needed at once.
static tide_status check_bound(const tide_lifetimes *lt, const char *path, tide_error *err) {
    uint64_t bytes;
    int64_t step;
    if (lt->given_plan_bytes == 0) return TIDE_OK;
    TIDE_TRY(tide_lower_bound(lt, &bytes, &step, err));
    if (bytes <= lt->given_plan_bytes) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                                     "'%s' needs %" PRIu64 " bytes in step %" PRId64 ", and its own plan has %" PRIu64,
                                     path, bytes, step, lt->given_plan_bytes);
    return tide__scan_fault(&(tide__scan){.path = path, .err = err}, 0, st);
}

tide_status tide__text_table_finish(tide_lifetimes *lt, const char *path, tide_error *err) {
    TIDE_TRY(check_bound(lt, path, err));
    return name_table(lt, path, err);
}
