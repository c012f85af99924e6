// SPDX-License-Identifier: MIT
//
// whatif, recompute with the model at hand: one tensor of a program is made a second time rather than kept.
//
//     uses    made . read . . . peak . . . read         the longest wait, or the one across the peak, goes:
//     steps   top    mean1      wide       top.again join
#include <inttypes.h>

#include "analysis/whatif_internal.h"
#include "core/base/host_alloc.h"

static bool reads(const tide_program *p, size_t step, uint32_t value) {
    const tide_node *node = &p->graph->nodes[p->steps[step].node];
    for (size_t k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] == value) return true;
    }
    return false;
}

/// Where the tensor waits while the most bytes of its buffer are alive, or else where it waits longest, it is made
/// again before the first step that reads it afterwards. @return that step; -1: it never waits
static int64_t find_reader(const tide_program *p, const tide_lifetime *item, int64_t peak) {
    int64_t used = item->begin_step, best = -1, longest = 1;
    for (int64_t step = used + 1; step < (int64_t)p->n_steps; step++) {
        if (!reads(p, (size_t)step, item->value)) continue;
        if (used < peak && peak < step) return step;
        if (step - used > longest) {
            longest = step - used;
            best = step;
        }
        used = step;
    }
    return best;
}

static tide_status find_peak(const tide_lifetimes *lt, const tide_lifetime *item, int64_t *step, tide_error *err) {
    tide_peaks peaks;
    TIDE_TRY(tide_peaks_find(lt, &peaks, err));
    *step = -1;
    for (size_t b = 0; b < peaks.n; b++) {
        const tide_peak *p = &peaks.list[b];
        if (p->n > 0 && p->kind == item->kind && tide_device_equal(p->device, item->device)) *step = p->step;
    }
    tide_peaks_deinit(&peaks);
    return TIDE_OK;
}

tide_status tide_whatif_repeat(tide_program *program, const tide_pass_options *passes, const char *tensor,
                               tide_lifetimes *lt, tide_error *err) {
    uint32_t i;
    int64_t peak;
    TIDE_TRY(tide__whatif_find(lt, tensor, &i, err));
    const tide_lifetime *item = &lt->items[i];
    if (item->persistent || item->role == TIDE_ROLE_SCRATCH || item->value == TIDE_NO_INDEX)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot recompute '%s': it is no intermediate result", tensor);
    TIDE_TRY(find_peak(lt, item, &peak, err));
    const int64_t reader = find_reader(program, item, peak);
    if (reader < 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "cannot recompute '%s': from step %" PRId64 " on every step uses it until it dies", tensor,
                         item->begin_step);
    TIDE_TRY(tide_program_repeat(program, (uint32_t)item->begin_step, (uint32_t)reader, err));
    // The order is what it is now: sorting anew would move the second run.
    tide_pass_options opt = *passes;
    opt.off[TIDE_PASS_ORDER] = true;
    opt.recompute_share = 0;
    tide_lifetimes now = {0};
    TIDE_TRY(tide_passes_run(program, &opt, &now, NULL, err));
    tide_lifetimes_deinit(lt);
    *lt = now;
    return TIDE_OK;
}
