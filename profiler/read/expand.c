// SPDX-License-Identifier: MIT
//
// A trace whose events are rows, all of them. See query.h.
#include "profiler/query.h"
#include "profiler/store/finish.h"

tide_status tide_trace_expand(const char *path, tide_error *err) {
    tide_trace *t = NULL;
    tide_trace_info info;
    TIDE_TRY(tide_trace_open(path, &t, err)); // finishes what a killed program left
    const tide_status st = tide_trace_get_info(t, &info, err);
    tide_trace_close(t);
    if (st != TIDE_OK) return st;
    if (info.state == TIDE_TRACE_RECORDING)
        return TIDE_FAIL(err, TIDE_ERR_IO, "cannot expand '%s': it is not finished", path);
    return info.n_chunks > 0 ? tide__finish_expand(path, err) : TIDE_OK;
}
