// SPDX-License-Identifier: MIT
//
// The log of calls. See call_log.h.
#include "cuda/cupti/call_log.h"

#include "cuda/cupti/ledger.h"

bool tide__cupti_log_init(tide__cupti_call_log *log) {
    void *pages = NULL;
    size_t cap = 0;
    *log = (tide__cupti_call_log){0};
    if (!tide__cupti_pages_grow(&pages, &cap, TIDE__CUPTI_LOG_CALLS, sizeof *log->calls)) return false;
    log->calls = pages;
    return true;
}

void tide__cupti_log_clear(tide__cupti_call_log *log) {
    tide__cupti_pages_free(log->calls, TIDE__CUPTI_LOG_CALLS, sizeof *log->calls);
    log->calls = NULL;
}

tide__cupti_logged *tide__cupti_log_at(const tide__cupti_call_log *log, uint32_t correlation) {
    return log->calls != NULL ? &log->calls[correlation & (TIDE__CUPTI_LOG_CALLS - 1)] : NULL;
}

tide__cupti_logged *tide__cupti_log_put(tide__cupti_call_log *log, const tide__cupti_logged *call) {
    tide__cupti_logged *at = tide__cupti_log_at(log, call->correlation);
    if (at != NULL) *at = *call;
    return at;
}
