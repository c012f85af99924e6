// SPDX-License-Identifier: MIT
//
// Ticks of slots to ns: the line through the two pairs of readings around them. Pairs are kept a tenth of a second
// apart, so that the error of a reading (some tens of ns) does not tilt the line, and the kernel's corrections of its
// clock are followed.
//
//     pairs   p0 -------- p1 -------- p2 ----- now
//     ticks        ^ line p0 p1           ^ line p2 now         older than p0: line p0 p1
#include <string.h>

#include "profiler/drain/drain_internal.h"

enum { PAIR_NS = 100 * 1000 * 1000, NEAR_NS = 1000 * 1000 };
#define PLAIN_TICKS (UINT64_C(1) << 40) ///< some minutes: at less than 8 ns per tick, the ns of so many are below 2^43
#define PLAIN_NS (UINT64_C(1) << 62)

/// Not known: true.
static bool same_boot(const tide__feed_header *head) {
    char mine[TIDE__BOOT_ID_BYTES];
    tide__clock_boot_id(mine);
    return mine[0] == '\0' || strncmp(mine, head->boot_id, sizeof mine) == 0;
}

static bool is_later(const tide__tick_pair *a, const tide__tick_pair *b) {
    return b->ticks > a->ticks && b->ns > a->ns;
}

static void add_pair(tide__drain_clock *c, const tide__tick_pair *p) {
    if (c->n > 0 && !is_later(&c->pairs[c->n - 1], p)) return;
    if (c->n == TIDE__DRAIN_CLOCK_PAIRS) memmove(&c->pairs[0], &c->pairs[1], --c->n * sizeof c->pairs[0]);
    c->pairs[c->n++] = *p;
}

static void forget_interval(tide__drain_clock *c) { c->lo = c->hi = c->n_plain = 0; }

void tide__drain_clock_init(tide__drain_clock *c, const tide__feed_header *head) {
    *c = (tide__drain_clock){.has_ticks = head->has_ticks != 0, .now = head->first[1]};
    c->is_this_boot = same_boot(head);
    add_pair(c, &head->first[0]);
    // An earlier drain's, when it was not killed while it wrote them.
    const uint32_t n = atomic_load_explicit(&head->last_n, memory_order_acquire);
    if (n == 0 || n % 2 != 0) return;
    add_pair(c, &head->last[0]);
    if (is_later(&c->pairs[c->n - 1], &head->last[1])) c->now = head->last[1];
}

void tide__drain_clock_read(tide__drain_clock *c, tide__feed_header *head) {
    if (!c->has_ticks || !c->is_this_boot) return;
    const tide__tick_pair before = c->now;
    tide__tick_pair now;
    tide__clock_pair(&now);
    if (!is_later(&c->pairs[c->n - 1], &now)) return;
    // What was read last becomes a corner of the line once it is far enough from the corner before.
    if (before.ns - c->pairs[c->n - 1].ns >= PAIR_NS && is_later(&before, &now)) add_pair(c, &before);
    c->now = now;
    forget_interval(c);
    const uint32_t n = atomic_load_explicit(&head->last_n, memory_order_relaxed) | 1;
    atomic_store_explicit(&head->last_n, n, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    head->last[0] = c->pairs[c->n - 1];
    head->last[1] = now;
    atomic_store_explicit(&head->last_n, n + 1, memory_order_release);
}

/// Up to where the short way may go. Where the interval begins behind its line, the one before is on that line too.
static void find_plain(tide__drain_clock *c) {
    const uint64_t begin = c->line[0].ticks, n = c->hi > begin ? c->hi - begin : 0;
    c->n_plain = c->rate == 0 || c->line[0].ns >= PLAIN_NS ? 0 : n < PLAIN_TICKS ? n : PLAIN_TICKS;
}

/// Find the two pairs whose line `ticks` is on.
static void find_line(tide__drain_clock *c, uint64_t ticks) {
    const tide__tick_pair *p = c->pairs;
    size_t i = c->n - 1; // the corner that the interval begins at
    while (i > 0 && ticks < p[i].ticks) i--;
    c->lo = i == 0 ? 0 : p[i].ticks;
    c->hi = i + 1 < c->n ? p[i + 1].ticks : UINT64_MAX;
    if (i + 1 < c->n) {
        c->line[0] = p[i];
        c->line[1] = p[i + 1];
    } else if (i > 0 && c->now.ns - p[i].ns < NEAR_NS) {
        c->line[0] = p[i - 1]; // two readings that are near each other make no line
        c->line[1] = p[i];
    } else {
        c->line[0] = p[i];
        c->line[1] = c->now;
    }
    c->rate = 0;
    const uint64_t ns = c->line[1].ns - c->line[0].ns, n_ticks = c->line[1].ticks - c->line[0].ticks;
    if (c->line[1].ns > c->line[0].ns && c->line[1].ticks > c->line[0].ticks && ns / n_ticks < 8)
        c->rate = (uint64_t)(((unsigned __int128)ns << TIDE__DRAIN_RATE_BITS) / n_ticks);
    find_plain(c);
}

uint64_t tide__drain_clock_find_ns(tide__drain_clock *c, uint64_t ticks) {
    if (!c->has_ticks) return ticks;
    if (ticks < c->lo || ticks >= c->hi) find_line(c, ticks);
    if (!is_later(&c->line[0], &c->line[1])) return c->line[0].ns; // a header that no producer wrote
    if (c->rate == 0 || ticks < c->line[0].ticks) return tide__clock_ns(&c->line[0], &c->line[1], ticks);
    const unsigned __int128 ns =
        ((unsigned __int128)(ticks - c->line[0].ticks) * c->rate >> TIDE__DRAIN_RATE_BITS) + c->line[0].ns;
    return ns > INT64_MAX ? UINT64_MAX : (uint64_t)ns;
}
