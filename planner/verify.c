// SPDX-License-Identifier: MIT
//
// verifier: whether a plan is sound, however it was made. Shares no code with any strategy and runs on every plan, in
// release builds too; the runtime's safety rests on it.
//
//     table      lives, gaps and sizes mean something; aliases lie inside their targets
//     buffers    one for each device and kind, in order
//     places     each tensor has one, aligned, inside its buffer, where it was fixed
//     pools      one tensor at a time, large enough, end to end                               verify_shared.c
//     overlap    no byte belongs to two classes at one step, or to two members of a set       verify_shared.c
//     totals     what the plan says of itself
//
// The first fault ends it. Each part may rely on what those before it have found sound.
#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/verify_check.h"

// ---- the table: lives, gaps, sizes, aliases ----
//
// A plan file is read from outside, so all of it is checked: also that chains of aliases end.

// ---- each lifetime alone ----

static tide_status check_life(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    if (item->begin_step >= 0 && item->begin_step < item->end_step && item->end_step <= c->plan->lifetimes.n_steps)
        return TIDE_OK;
    return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NO_ITEM,
                      "tensor '%s' lives from step %" PRId64 " to %" PRId64 " of a plan of %" PRId64 " steps",
                      item->name, item->begin_step, item->end_step, c->plan->lifetimes.n_steps);
}

static tide_status check_gaps(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    int64_t last_end = item->begin_step;
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *g = &item->gaps[k];
        const bool in_order = last_end <= g->begin_step && g->begin_step < g->end_step;
        if (!in_order || g->end_step > item->end_step || g->lo_bytes > g->hi_bytes || g->hi_bytes > item->size_bytes)
            return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NO_ITEM,
                              "gap %" PRIu32 " of tensor '%s', steps %" PRId64 " to %" PRId64 ", bytes %" PRIu64
                              " to %" PRIu64 ", is empty, out of order or outside of the tensor",
                              k, item->name, g->begin_step, g->end_step, g->lo_bytes, g->hi_bytes);
        last_end = g->end_step;
    }
    return TIDE_OK;
}

static tide_status check_size(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    uint64_t rounded;
    if (!tide_is_pow2(item->align_bytes))
        return TIDE_FAULT(c, MISALIGNED, i, TIDE_VERIFY_NO_ITEM,
                          "tensor '%s' is to be aligned to %" PRIu64 ", which is no power of two", item->name,
                          item->align_bytes);
    if (!tide_align_up(item->size_bytes, item->align_bytes, &rounded))
        return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NO_ITEM, "tensor '%s' of %" PRIu64 " bytes, rounded up, passes 2^64",
                          item->name, item->size_bytes);
    for (size_t k = 0; item->point_bytes != NULL && k < c->plan->lifetimes.n_points; k++) {
        if (item->point_bytes[k] > item->size_bytes)
            return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NO_ITEM,
                              "tensor '%s' has %" PRIu64 " bytes at profile point %zu, is planned for %" PRIu64,
                              item->name, item->point_bytes[k], k, item->size_bytes);
    }
    return TIDE_OK;
}

// ---- aliases ----

static const char *why_no_alias(const tide_verify_check *c, size_t i) {
    const tide_lifetime *a = &c->items[i], *of = &c->items[a->alias_of];
    uint64_t end;
    if (a->persistent || of->persistent) return "one of them is persistent";
    if (!tide_device_equal(a->device, of->device) || a->kind != of->kind) return "they differ in device or kind";
    if (a->n_gaps > 0 || a->fixed || a->apart_set != 0) return "it has gaps, a given offset or an apart set of its own";
    if (!tide_add_u64(a->alias_offset_bytes, a->size_bytes, &end) || end > of->size_bytes) return "it ends outside";
    return NULL;
}

static tide_status check_alias(tide_verify_check *c, size_t i) {
    const tide_lifetime *a = &c->items[i];
    if (!tide__verify_is_alias(c, i)) return TIDE_OK;
    if (a->alias_of >= c->n)
        return TIDE_FAULT(c, ALIAS, i, TIDE_VERIFY_NO_ITEM, "tensor '%s' is alias of number %" PRIu32 ", there are %zu",
                          a->name, a->alias_of, c->n);
    const char *why = why_no_alias(c, i);
    if (why == NULL) return TIDE_OK;
    return TIDE_FAULT(c, ALIAS, i, a->alias_of,
                      "tensor '%s' of %" PRIu64 " bytes cannot lie %" PRIu64 " bytes into '%s' of %" PRIu64 ": %s",
                      a->name, a->size_bytes, a->alias_offset_bytes, c->items[a->alias_of].name,
                      c->items[a->alias_of].size_bytes, why);
}

/// Follow each chain to its end once, and set the root of all items on the way. UNKNOWN: not visited. COMING: in this
/// chain; to visit it again means that the chain is a circle.
enum { UNKNOWN = UINT32_MAX, COMING = UINT32_MAX - 1 };

static tide_status find_root(tide_verify_check *c, size_t i) {
    uint32_t at = (uint32_t)i;
    while (c->roots[at] == UNKNOWN && tide__verify_is_alias(c, at)) {
        c->roots[at] = COMING;
        at = c->items[at].alias_of;
    }
    if (c->roots[at] == COMING)
        return TIDE_FAULT(c, ALIAS, i, at, "the aliases from tensor '%s' on come back to '%s'", c->items[i].name,
                          c->items[at].name);
    const uint32_t root = c->roots[at] == UNKNOWN ? at : c->roots[at];
    TIDE_ASSERT(root < c->n && !tide__verify_is_alias(c, root));
    c->roots[at] = root;
    for (at = (uint32_t)i; c->roots[at] == COMING; at = c->items[at].alias_of) c->roots[at] = root;
    return TIDE_OK;
}

// ---- classes that need bytes ----

static bool is_alive_somewhere(const tide_lifetime *item) {
    if (item->persistent || item->size_bytes == 0) return false;
    int64_t at = item->begin_step;
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        if (item->gaps[k].begin_step > at || item->gaps[k].lo_bytes < item->gaps[k].hi_bytes) return true;
        at = item->gaps[k].end_step;
    }
    return at < item->end_step;
}

/// Fills roots and n_alive. SPAN, MISALIGNED, ALIAS.
static tide_status verify_table(tide_verify_check *c) {
    c->roots = tide_host_calloc(c->n, sizeof *c->roots);
    c->n_alive = tide_host_calloc(c->n, sizeof *c->n_alive);
    if (c->roots == NULL || c->n_alive == NULL) return TIDE_NO_MEMORY(c->err, "to verify %zu tensors", c->n);
    for (size_t i = 0; i < c->n; i++) {
        TIDE_TRY(check_life(c, i));
        TIDE_TRY(check_gaps(c, i));
        TIDE_TRY(check_size(c, i));
        TIDE_TRY(check_alias(c, i));
        c->roots[i] = UNKNOWN;
    }
    for (size_t i = 0; i < c->n; i++) {
        TIDE_TRY(find_root(c, i));
        if (is_alive_somewhere(&c->items[i])) c->n_alive[c->roots[i]]++;
    }
    return TIDE_OK;
}

// ---- buffers and places ----

// ---- buffers ----

static int compare_keys(tide_device a, tide_memory_kind a_kind, tide_device b, tide_memory_kind b_kind) {
    if (a.type != b.type) return a.type < b.type ? -1 : 1;
    if (a.index != b.index) return a.index < b.index ? -1 : 1;
    return (a_kind > b_kind) - (a_kind < b_kind);
}

static tide_status check_order(tide_verify_check *c, size_t b) {
    const tide_plan_buffer *x = &c->plan->buffers[b - 1], *y = &c->plan->buffers[b];
    const int order = compare_keys(x->device, x->kind, y->device, y->kind);
    if (order < 0) return TIDE_OK;
    return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM, "buffers %zu and %zu are %s", b - 1, b,
                      order == 0 ? "of the same device and kind" : "not in order of device and kind");
}

static uint32_t find_buffer(const tide_verify_check *c, const tide_lifetime *item) {
    size_t lo = 0, hi = c->plan->n_buffers;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const tide_plan_buffer *b = &c->plan->buffers[mid];
        const int order = compare_keys(b->device, b->kind, item->device, item->kind);
        if (order == 0) return (uint32_t)mid;
        if (order < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return TIDE_VERIFY_NO_BUFFER;
}

/// c->ends counts classes here, so that a buffer without tensors is found.
static tide_status assign_buffers(tide_verify_check *c) {
    for (size_t i = 0; i < c->n; i++) {
        c->buffers[i] = c->items[i].persistent ? TIDE_VERIFY_NO_BUFFER : find_buffer(c, &c->items[i]);
        if (c->n_alive[i] == 0) continue;
        if (c->buffers[i] == TIDE_VERIFY_NO_BUFFER)
            return TIDE_FAULT(c, BUFFER, i, TIDE_VERIFY_NO_ITEM,
                              "there is no buffer for tensor '%s' of kind %s on device %d:%d", c->items[i].name,
                              tide_memory_kind_name(c->items[i].kind), (int)c->items[i].device.type,
                              c->items[i].device.index);
        c->ends[c->buffers[i]]++;
    }
    for (size_t b = 0; b < c->plan->n_buffers; b++) {
        if (c->ends[b] == 0)
            return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM, "no tensor lies in buffer %zu", b);
        c->ends[b] = 0;
    }
    return TIDE_OK;
}

/// Fills buffers and bases. BUFFER.
static tide_status verify_buffers(tide_verify_check *c) {
    const size_t n = c->plan->n_buffers;
    c->buffers = tide_host_calloc(c->n, sizeof *c->buffers);
    c->bases = tide_host_calloc(n, sizeof *c->bases);
    c->ends = tide_host_calloc(n, sizeof *c->ends);
    if (c->buffers == NULL || c->bases == NULL || c->ends == NULL)
        return TIDE_NO_MEMORY(c->err, "to verify %zu tensors", c->n);
    uint64_t at = 0;
    for (size_t b = 0; b < n; b++) {
        if (b > 0) TIDE_TRY(check_order(c, b));
        c->bases[b] = at;
        if (!tide_add_u64(at, c->plan->buffers[b].bytes, &at))
            return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM, "%zu buffers pass 2^64 bytes",
                              b + 1);
    }
    if (at != c->plan->bytes)
        return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
                          "the plan says %" PRIu64 " bytes, its %zu buffers together have %" PRIu64, c->plan->bytes, n,
                          at);
    return assign_buffers(c);
}

// ---- each tensor's place ----

static tide_status check_persistent(tide_verify_check *c, size_t i) {
    const uint64_t offset = c->plan->offsets[i];
    if (offset == TIDE_NO_OFFSET && c->plan->pools[i] == TIDE_NO_POOL) return TIDE_OK;
    return TIDE_FAULT(c, PERSISTENT, i, TIDE_VERIFY_NO_ITEM,
                      "persistent tensor '%s' was given offset %" PRIu64 ", pool %" PRId32, c->items[i].name, offset,
                      c->plan->pools[i]);
}

static tide_status check_alias_place(tide_verify_check *c, size_t i) {
    const tide_lifetime *a = &c->items[i];
    uint64_t want;
    if (!tide_add_u64(c->plan->offsets[a->alias_of], a->alias_offset_bytes, &want) || c->plan->offsets[i] != want)
        return TIDE_FAULT(c, ALIAS, i, a->alias_of,
                          "tensor '%s' lies at %" PRIu64 ", not %" PRIu64 " bytes into '%s' at %" PRIu64, a->name,
                          c->plan->offsets[i], a->alias_offset_bytes, c->items[a->alias_of].name,
                          c->plan->offsets[a->alias_of]);
    if (c->plan->pools[i] != TIDE_NO_POOL)
        return TIDE_FAULT(c, ALIAS, i, a->alias_of, "tensor '%s' names pool %" PRId32 " and lies inside '%s'", a->name,
                          c->plan->pools[i], c->items[a->alias_of].name);
    return TIDE_OK;
}

/// A tensor without bytes, or with none at any step, may lie anywhere up to the end, and where it is fixed anywhere.
static tide_status check_bounds(tide_verify_check *c, size_t i) {
    const uint32_t b = c->buffers[i];
    const uint64_t offset = c->plan->offsets[i], bytes = c->n_alive[i] > 0 ? tide__verify_bytes_of(c, i) : 0,
                   room = b != TIDE_VERIFY_NO_BUFFER ? c->plan->buffers[b].bytes : 0;
    uint64_t end;
    if (c->n_alive[i] == 0 && c->items[i].fixed) return TIDE_OK;
    if (!tide_add_u64(offset, bytes, &end) || end > room)
        return TIDE_FAULT(c, OUT_OF_BUFFER, i, TIDE_VERIFY_NO_ITEM,
                          "tensor '%s' of %" PRIu64 " bytes at %" PRIu64 " ends outside its buffer of %" PRIu64,
                          c->items[i].name, bytes, offset, room);
    if (bytes > 0 && end > c->ends[b]) c->ends[b] = end;
    return TIDE_OK;
}

static tide_status check_pool_entry(tide_verify_check *c, size_t i) {
    const int32_t pool = c->plan->pools[i];
    const char *name = c->items[i].name;
    if (c->plan->form == TIDE_PLAN_OFFSETS) {
        if (pool == TIDE_NO_POOL) return TIDE_OK;
        return TIDE_FAULT(c, POOL_SIZE, i, TIDE_VERIFY_NO_ITEM,
                          "tensor '%s' names pool %" PRId32 " of a plan without pools", name, pool);
    }
    if (pool == TIDE_NO_POOL && c->n_alive[i] == 0) return TIDE_OK;
    if (pool < 0 || (size_t)pool >= c->plan->n_pools)
        return TIDE_FAULT(c, MISSING, i, TIDE_VERIFY_NO_ITEM, "tensor '%s' has pool %" PRId32 ", the plan has %zu",
                          name, pool, c->plan->n_pools);
    const tide_plan_pool *p = &c->plan->pool_list[pool];
    if (c->plan->offsets[i] != p->offset_bytes)
        return TIDE_FAULT(c, POOL_SIZE, i, TIDE_VERIFY_NO_ITEM,
                          "tensor '%s' lies at %" PRIu64 ", its pool %" PRId32 " begins at %" PRIu64, name,
                          c->plan->offsets[i], pool, p->offset_bytes);
    if (p->buffer != c->buffers[i])
        return TIDE_FAULT(c, BUFFER, i, TIDE_VERIFY_NO_ITEM,
                          "tensor '%s' belongs to buffer %" PRIu32 ", its pool %" PRId32 " to buffer %" PRIu32, name,
                          c->buffers[i], pool, p->buffer);
    return TIDE_OK;
}

static tide_status check_root_place(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    const uint64_t offset = c->plan->offsets[i];
    if (item->fixed && offset != item->fixed_offset_bytes)
        return TIDE_FAULT(c, FIXED, i, TIDE_VERIFY_NO_ITEM, "tensor '%s' lies at %" PRIu64 ", it was fixed at %" PRIu64,
                          item->name, offset, item->fixed_offset_bytes);
    if (offset % item->align_bytes != 0)
        return TIDE_FAULT(c, MISALIGNED, i, TIDE_VERIFY_NO_ITEM,
                          "tensor '%s' lies at %" PRIu64 ", which is no multiple of %" PRIu64, item->name, offset,
                          item->align_bytes);
    TIDE_TRY(check_bounds(c, i));
    return check_pool_entry(c, i);
}

static tide_status check_entry(tide_verify_check *c, size_t i) {
    if (c->items[i].persistent) return check_persistent(c, i);
    if (c->plan->offsets[i] != TIDE_NO_OFFSET) return TIDE_OK;
    return TIDE_FAULT(c, MISSING, i, TIDE_VERIFY_NO_ITEM, "tensor '%s' has no offset", c->items[i].name);
}

/// Roots before aliases: of a faulty target and its alias, the error names the target.
/// Fills ends. MISSING, PERSISTENT, FIXED, ALIAS, MISALIGNED, OUT_OF_BUFFER, POOL_SIZE.
static tide_status verify_places(tide_verify_check *c) {
    for (size_t i = 0; i < c->n; i++) TIDE_TRY(check_entry(c, i));
    for (size_t i = 0; i < c->n; i++) {
        if (!c->items[i].persistent && !tide__verify_is_alias(c, i)) TIDE_TRY(check_root_place(c, i));
    }
    for (size_t i = 0; i < c->n; i++) {
        if (tide__verify_is_alias(c, i)) TIDE_TRY(check_alias_place(c, i));
    }
    return TIDE_OK;
}

// ---- totals: what the plan says of itself ----
//
// Computed again from the table. Bounds proved by search cannot be; they must only not contradict the plan.

/// What is computed for one buffer.
typedef struct sums {
    uint64_t align_bytes, naive_bytes, naive_peak_bytes, fixed_end_bytes;
    uint64_t live_bytes; // of the sweep
} sums;

static tide_status check_number(tide_verify_check *c, size_t b, const char *what, uint64_t claimed, uint64_t is) {
    if (claimed == is) return TIDE_OK;
    return TIDE_FAULT(c, TOTAL, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
                      "buffer %zu says %s %" PRIu64 ", its tensors say %" PRIu64, b, what, claimed, is);
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
            return TIDE_FAULT(c, TOTAL, i, TIDE_VERIFY_NO_ITEM, "the sizes up to tensor '%s' pass 2^64 - 1",
                              item->name);
        if (c->n_alive[i] == 0) continue; // not a root, or one without bytes
        if (item->align_bytes > s->align_bytes) s->align_bytes = item->align_bytes;
        const uint64_t end = c->plan->offsets[i] + tide__verify_bytes_of(c, i);
        if (item->fixed && end > s->fixed_end_bytes) s->fixed_end_bytes = end;
    }
    return TIDE_OK;
}

/// A separate sweep over lifetimes as the table has them, gaps included.
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
        TIDE_ASSERT(n_dead <= k);
        sums *s = &all[c->buffers[births[k].id]];
        s->live_bytes += naive_bytes_of(&c->items[births[k].id]);
        if (s->live_bytes > s->naive_peak_bytes) s->naive_peak_bytes = s->live_bytes;
    }
}

// ---- what the plan claims ----

/// A simulated allocator may reserve more than its tensors take.
static bool is_simulated(const tide_memory_plan *p) {
    return p->strategy != NULL && strncmp(p->strategy, "sim:", 4) == 0;
}

static tide_status check_buffer(tide_verify_check *c, size_t b, const sums *s, uint64_t peak) {
    const tide_plan_buffer *claimed = &c->plan->buffers[b];
    TIDE_TRY(check_number(c, b, "naive_bytes", claimed->naive_bytes, s->naive_bytes));
    TIDE_TRY(check_number(c, b, "naive_peak_bytes", claimed->naive_peak_bytes, s->naive_peak_bytes));
    TIDE_TRY(check_number(c, b, "lower_bound_bytes", claimed->lower_bound_bytes, peak));
    TIDE_TRY(check_number(c, b, "align_bytes", claimed->align_bytes, s->align_bytes));
    // Rounding up to the alignment is all that a buffer may have beyond its last tensor.
    if (!is_simulated(c->plan) && claimed->bytes - c->ends[b] >= s->align_bytes)
        return check_number(c, b, "bytes", claimed->bytes, c->ends[b]);
    return TIDE_OK;
}

static tide_status check_proof(tide_verify_check *c, size_t b, const sums *s) {
    const tide_plan_buffer *claimed = &c->plan->buffers[b];
    const char *why = NULL;
    if (claimed->proved_bytes < claimed->lower_bound_bytes) why = "is below the lower bound";
    if (claimed->proved_bytes > claimed->bytes) why = "is more than the buffer has";
    if (claimed->proof == TIDE_PROOF_LIVE_SUM && claimed->proved_bytes != claimed->lower_bound_bytes)
        why = "is not the live sum that is to prove it";
    if (claimed->proof == TIDE_PROOF_FIXED && claimed->proved_bytes > s->fixed_end_bytes)
        why = "is beyond the last tensor with a given offset, which is to prove it";
    if (why == NULL) return TIDE_OK;
    return TIDE_FAULT(c, PROOF, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
                      "buffer %zu of %" PRIu64 " bytes with lower bound %" PRIu64 ": proved_bytes %" PRIu64 " %s", b,
                      claimed->bytes, claimed->lower_bound_bytes, claimed->proved_bytes, why);
}

static tide_status check_sum(tide_verify_check *c, const char *what, uint64_t claimed, uint64_t is) {
    if (claimed == is) return TIDE_OK;
    return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
                      "the plan says %s %" PRIu64 ", its buffers say %" PRIu64, what, claimed, is);
}

static tide_status check_plan(tide_verify_check *c) {
    const tide_memory_plan *p = c->plan;
    uint64_t naive = 0, naive_peak = 0, bound = 0, proved = 0, align = 1;
    for (size_t b = 0; b < p->n_buffers; b++) {
        const tide_plan_buffer *x = &p->buffers[b];
        if (!tide_add_u64(naive, x->naive_bytes, &naive))
            return TIDE_FAULT(c, TOTAL, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM, "naive_bytes pass 2^64 - 1");
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
    return TIDE_FAULT(c, PROOF, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
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

/// TOTAL, BUFFER, PROOF.
static tide_status verify_totals(tide_verify_check *c, const uint64_t *peaks) {
    sums *all = tide_host_calloc(c->plan->n_buffers, sizeof *all);
    tide_radix_key *keys = tide_host_calloc(c->n, 3 * sizeof *keys);
    const tide_status st = all != NULL && keys != NULL ? check_all(c, peaks, all, keys)
                                                       : TIDE_NO_MEMORY(c->err, "to verify %zu tensors", c->n);
    tide_host_free(all);
    tide_host_free(keys);
    return st;
}

// ---- entry points ----

const char *tide_verify_text(tide_verify_code code) {
    switch (code) {
#define XX(name, text)                                                                                                 \
    case TIDE_VERIFY_##name:                                                                                           \
        return text;
        TIDE_VERIFY_MAP(XX)
#undef XX
    }
    return "fault ?";
}

static tide_status check_has_places(tide_verify_check *c) {
    if (c->n > UINT32_MAX / 4)
        return TIDE_FAIL(c->err, TIDE_ERR_OVERFLOW, "%zu tensors are more than the verifier can number", c->n);
    if (c->n == 0 || (c->plan->offsets != NULL && c->plan->pools != NULL)) return TIDE_OK;
    return TIDE_FAULT(c, MISSING, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM, "the plan of %zu tensors has no places",
                      c->n);
}

static tide_status check_all_parts(tide_verify_check *c, uint64_t *peaks) {
    TIDE_TRY(verify_places(c));
    TIDE_TRY(tide__verify_rects(c));
    TIDE_TRY(tide__verify_pools(c));
    TIDE_TRY(tide__verify_overlap(c, peaks));
    TIDE_TRY(tide__verify_apart(c));
    return verify_totals(c, peaks);
}

static tide_status check_plan_parts(tide_verify_check *c) {
    TIDE_TRY(check_has_places(c));
    TIDE_TRY(verify_table(c));
    TIDE_TRY(verify_buffers(c));
    uint64_t *peaks;
    TIDE_TRY(TIDE_NEW(&peaks, c->plan->n_buffers, c->err, "to verify %zu buffers", c->plan->n_buffers));
    const tide_status st = check_all_parts(c, peaks);
    tide_host_free(peaks);
    return st;
}

tide_status tide_plan_verify(const tide_memory_plan *plan, tide_verify_result *result, tide_error *err) {
    tide_verify_check c = {.plan = plan,
                           .items = plan->lifetimes.items,
                           .n = plan->lifetimes.n,
                           .result = {TIDE_VERIFY_OK, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM},
                           .err = err};
    const tide_status st = check_plan_parts(&c);
    tide_host_free(c.roots);
    tide_host_free(c.n_alive);
    tide_host_free(c.buffers);
    tide_host_free(c.bases);
    tide_host_free(c.ends);
    tide_host_free(c.rects);
    if (st == TIDE_ERR_VERIFY) tide_error_note(err, "%s", tide_verify_text(c.result.code));
    if (result != NULL) *result = c.result;
    return st;
}
