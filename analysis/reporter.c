// SPDX-License-Identifier: MIT
//
// See reporter.h.
#include "analysis/reporter.h"

static bool go_on(const tide__reporter *t) {
    return tide_progress_goes_on(t->progress, t->share < 1 ? t->share : 1, t->what);
}

/// A trace does not know how much of the whole its events are.
static bool on_reading(void *ctx, double share) {
    (void)share;
    return go_on(ctx);
}

void tide__reporter_begin(tide__reporter *t, const tide_progress *progress, tide_trace *trace, const char *what) {
    *t = (tide__reporter){.progress = progress, .what = what, .trace = progress != NULL ? trace : NULL};
    t->reading = (tide_reading){.tell = on_reading, .ctx = t};
    if (t->trace != NULL) tide_trace_hear(t->trace, &t->reading);
}

void tide__reporter_end(tide__reporter *t) {
    if (t->trace != NULL) tide_trace_hear(t->trace, NULL);
    *t = (tide__reporter){0};
}

tide_status tide__report_share(tide__reporter *t, double share, tide_error *err) {
    if (share > t->share) t->share = share;
    return go_on(t) ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_CANCELLED, "%s was cancelled", t->what);
}
