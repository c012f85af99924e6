// SPDX-License-Identifier: MIT
//
// verifier, totals: what buffers and plan say of themselves is computed again from the table. Bounds proved by search
// cannot be; they must only not contradict the plan.
#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/verify_internal.h"

/// What is computed for one buffer.
typedef struct sums {
    uint64_t align_bytes, naive_bytes, naive_peak_bytes, fixed_end_bytes;
    uint64_t live_bytes; // of the sweep
} sums;

static tide_status check_number(tide_verify_check *c, size_t b, const char *what, uint64_t said, uint64_t is) {
    if (said == is) return TIDE_OK;
    return TIDE_FAULT(c, TOTAL, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                      "buffer %zu says %s %" PRIu64 ", its tensors say %" PRIu64, b, what, said, is);
}

// ---- as if every tensor had memory of its own ----

/// Aliases too are rounded up there.
static uint64_t naive_bytes_of(const tide_lifetime *item) {
    return item->unrounded ? item->size_bytes : (item->size_bytes + item->align_bytes - 1) & ~(item->align_bytes - 1);
}

static bool counts(const tide_verify_check *c, size_t i) {
    return !c->items[i].persistent && c->items[i].size_bytes > 0 && c->buffers[i] != TIDE_VERIFY_NO_BUFFER;
}

static tide_status add_up(tide_verify_check *c, sums *all) {
    for (size_t b = 0; b < c->plan->n_buffers; b++) all[b].align_bytes = 1;
    for (size_t i = 0; i < c->n; i++) {
        const tide_lifetime *item = &c->items[i];
        if (!counts(c, i)) continue;
        sums *s = &all[c->buffers[i]];
        if (!tide_add_u64(s->naive_bytes, naive_bytes_of(item), &s->naive_bytes))
            return TIDE_FAULT(c, TOTAL, i, TIDE_VERIFY_NOBODY, "the sizes up to tensor '%s' pass 2^64 - 1", item->name);
        if (c->n_alive[i] == 0) continue; // not a root, or one without bytes
        if (item->align_bytes > s->align_bytes) s->align_bytes = item->align_bytes;
        const uint64_t end = c->plan->offsets[i] + tide__verify_bytes_of(c, i);
        if (item->fixed && end > s->fixed_end_bytes) s->fixed_end_bytes = end;
    }
    return TIDE_OK;
}

/// A sweep of its own: lives as the table has them, gaps or not.
static void find_naive_peaks(const tide_verify_check *c, sums *all, tide_radix_key *births, tide_radix_key *deaths,
                             tide_radix_key *room) {
    size_t n = 0, n_dead = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!counts(c, i)) continue;
        births[n] = (tide_radix_key){(uint64_t)c->items[i].begin_step, (uint32_t)i};
        deaths[n++] = (tide_radix_key){(uint64_t)c->items[i].end_step, (uint32_t)i};
    }
    tide__radix_sort(births, room, n);
    tide__radix_sort(deaths, room, n);
    for (size_t k = 0; k < n; k++) {
        for (; deaths[n_dead].key <= births[k].key; n_dead++) {
            const uint32_t i = deaths[n_dead].id;
            all[c->buffers[i]].live_bytes -= naive_bytes_of(&c->items[i]);
        }
        sums *s = &all[c->buffers[births[k].id]];
        s->live_bytes += naive_bytes_of(&c->items[births[k].id]);
        if (s->live_bytes > s->naive_peak_bytes) s->naive_peak_bytes = s->live_bytes;
    }
}

// ---- what is said ----

/// What simulates an allocator reserves what that allocator would.
static bool is_simulated(const tide_memory_plan *p) {
    return p->strategy != NULL && strncmp(p->strategy, "sim:", 4) == 0;
}

static tide_status check_buffer(tide_verify_check *c, size_t b, const sums *s, uint64_t peak) {
    const tide_plan_buffer *said = &c->plan->buffers[b];
    TIDE_TRY(check_number(c, b, "naive_bytes", said->naive_bytes, s->naive_bytes));
    TIDE_TRY(check_number(c, b, "naive_peak_bytes", said->naive_peak_bytes, s->naive_peak_bytes));
    TIDE_TRY(check_number(c, b, "lower_bound_bytes", said->lower_bound_bytes, peak));
    TIDE_TRY(check_number(c, b, "align_bytes", said->align_bytes, s->align_bytes));
    // Rounding up to the alignment is all that a buffer may have beyond its last tensor.
    if (!is_simulated(c->plan) && said->bytes - c->ends[b] >= s->align_bytes)
        return check_number(c, b, "bytes", said->bytes, c->ends[b]);
    return TIDE_OK;
}

static tide_status check_proof(tide_verify_check *c, size_t b, const sums *s) {
    const tide_plan_buffer *said = &c->plan->buffers[b];
    const char *why = NULL;
    if (said->proved_bytes < said->lower_bound_bytes) why = "is below the lower bound";
    if (said->proved_bytes > said->bytes) why = "is more than the buffer has";
    if (said->proof == TIDE_PROOF_LIVE_SUM && said->proved_bytes != said->lower_bound_bytes)
        why = "is not the live sum that is to prove it";
    if (said->proof == TIDE_PROOF_FIXED && said->proved_bytes > s->fixed_end_bytes)
        why = "is beyond the last tensor with a given offset, which is to prove it";
    if (why == NULL) return TIDE_OK;
    return TIDE_FAULT(c, PROOF, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                      "buffer %zu of %" PRIu64 " bytes with lower bound %" PRIu64 ": proved_bytes %" PRIu64 " %s", b,
                      said->bytes, said->lower_bound_bytes, said->proved_bytes, why);
}

static tide_status check_sum(tide_verify_check *c, const char *what, uint64_t said, uint64_t is) {
    if (said == is) return TIDE_OK;
    return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                      "the plan says %s %" PRIu64 ", its buffers say %" PRIu64, what, said, is);
}

static tide_status check_plan(tide_verify_check *c) {
    const tide_memory_plan *p = c->plan;
    uint64_t naive = 0, naive_peak = 0, bound = 0, proved = 0, align = 1;
    for (size_t b = 0; b < p->n_buffers; b++) {
        const tide_plan_buffer *x = &p->buffers[b];
        if (!tide_add_u64(naive, x->naive_bytes, &naive))
            return TIDE_FAULT(c, TOTAL, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY, "naive_bytes pass 2^64 - 1");
        naive_peak += x->naive_peak_bytes; // each at most naive_bytes
        bound += x->lower_bound_bytes;     // these two at most bytes
        proved += x->proved_bytes;
        if (x->align_bytes > align) align = x->align_bytes;
    }
    TIDE_TRY(check_sum(c, "naive_bytes", p->naive_bytes, naive));
    TIDE_TRY(check_sum(c, "naive_peak_bytes", p->naive_peak_bytes, naive_peak));
    TIDE_TRY(check_sum(c, "lower_bound_bytes", p->lower_bound_bytes, bound));
    TIDE_TRY(check_sum(c, "proved_bytes", p->proved_bytes, proved));
    TIDE_TRY(check_sum(c, "align_bytes", p->align_bytes, align));
    if (p->proven == (p->bytes == proved)) return TIDE_OK;
    return TIDE_FAULT(c, PROOF, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                      "a plan of %" PRIu64 " bytes of which %" PRIu64 " are proved says that it is %sproven", p->bytes,
                      proved, p->proven ? "" : "not ");
}

static tide_status check_all(tide_verify_check *c, const uint64_t *peaks, sums *all, tide_radix_key *keys) {
    TIDE_TRY(add_up(c, all));
    find_naive_peaks(c, all, keys, keys + c->n, keys + 2 * c->n);
    for (size_t b = 0; b < c->plan->n_buffers; b++) {
        TIDE_TRY(check_buffer(c, b, &all[b], peaks[b]));
        TIDE_TRY(check_proof(c, b, &all[b]));
    }
    return check_plan(c);
}

tide_status tide__verify_totals(tide_verify_check *c, const uint64_t *peaks) {
    sums *all = tide_host_calloc(c->plan->n_buffers, sizeof *all);
    tide_radix_key *keys = tide_host_calloc(c->n, 3 * sizeof *keys);
    const tide_status st = all != NULL && keys != NULL
                               ? check_all(c, peaks, all, keys)
                               : TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to verify %zu tensors", c->n);
    tide_host_free(all);
    tide_host_free(keys);
    return st;
}
