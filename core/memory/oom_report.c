// SPDX-License-Identifier: MIT
//
// The ledger's reports as text: why an allocation failed, and which blocks are still alive. See ledger.h.
//
// Names may come from files: control characters in them are shown as '?', so that a report cannot steer a terminal.
#include "core/memory/ledger.h"

#include <inttypes.h>

#include "core/base/utf8.h"

/// Two sources can meet a request: a free block that the allocator keeps, or fresh memory up to what it may still take.
///
///     headroom known        max(largest free, headroom): arenas and pages cannot take more, theirs is 0; a limit's is
///                           what is left of its budget
///     headroom unknown      the system decides, and it has just refused: how much less it would have given is not
///     known
///
/// Rounded down to the requested alignment, because every block is rounded up at least to that. An allocator that
/// rounds up further (cpu_caching under a limit) gives less; how much less is not known here. When the answer would be
/// at least what was asked, an allocator below refused for another reason: not known either.
uint64_t tide_oom_would_fit(const tide_allocator_stats *s, uint64_t asked_bytes, uint64_t align_bytes) {
    if (s->headroom_bytes == TIDE_UNKNOWN_BYTES) return TIDE_UNKNOWN_BYTES;
    uint64_t most = s->largest_free_bytes > s->headroom_bytes ? s->largest_free_bytes : s->headroom_bytes;
    if (align_bytes > 1) most -= most % align_bytes;
    return most < asked_bytes ? most : TIDE_UNKNOWN_BYTES;
}

/// `name`, made safe, padded with spaces to `width` characters.
static void add_name(tide_text *out, const char *name, size_t width) {
    size_t n_chars = 0;
    uint32_t cp;
    for (size_t step; (step = tide_utf8_decode(name, &cp)) > 0; name += step, n_chars++) {
        char bytes[4];
        const bool bad = tide_utf8_is_unsafe(cp);
        tide_text_add_n(out, bytes, tide_utf8_encode(bad ? '?' : cp, bytes));
    }
    for (; n_chars < width; n_chars++) tide_text_add_n(out, " ", 1);
}

static void add_bytes(tide_text *out, uint64_t bytes) {
    char text[24];
    if (bytes == TIDE_UNKNOWN_BYTES)
        tide_text_add(out, "unknown");
    else
        tide_text_add(out, tide_format_bytes(bytes, text, sizeof text));
}

static void add_fact(tide_text *out, const char *what, uint64_t bytes) {
    tide_text_add(out, what);
    add_bytes(out, bytes);
}

// ---- live blocks ----

static const char no_name[] = "-";

/// @param with_age  a last column
static void add_head(tide_text *out, bool with_age) {
    tide_text_addf(out, "  %14s  %-12s  %-24s  ", "bytes", "kind", "tag");
    tide_text_addf(out, with_age ? "%-24s  age\n" : "%s\n", "operator");
}

/// @param age  NULL: not shown
static void add_block(tide_text *out, const tide_live_block *b, const char *age) {
    tide_text_addf(out, "  %14" PRIu64 "  %-12s  ", b->requested_bytes, tide_memory_kind_name(b->kind));
    add_name(out, b->tag != NULL ? b->tag : no_name, 24);
    tide_text_add(out, "  ");
    add_name(out, b->op != NULL ? b->op : no_name, age != NULL ? 24 : 0);
    if (age != NULL) tide_text_addf(out, "  %s", age);
    if (b->pending) tide_text_add(out, "  (released, but a stream may still use it)");
    tide_text_add(out, "\n");
}

/// What is not listed, in the column of bytes, so that the column adds up to what is live.
static void add_rest(tide_text *out, const tide_live_block *blocks, size_t n, size_t n_all, uint64_t live_bytes) {
    for (size_t i = 0; i < n; i++) live_bytes -= blocks[i].requested_bytes;
    if (n_all > n) tide_text_addf(out, "  %14" PRIu64 "  in %zu more\n", live_bytes, n_all - n);
}

void tide_live_blocks_text(const tide_live_block *blocks, size_t n, uint64_t now_ns, tide_text *out) {
    if (n > 0) add_head(out, true);
    for (size_t i = 0; i < n; i++) {
        char age[24];
        const uint64_t born = blocks[i].t_ns;
        add_block(out, &blocks[i], tide_format_ns(now_ns > born ? now_ns - born : 0, "us", age, sizeof age));
    }
}

// ---- out of memory ----

static void add_asked(const tide_oom_report *r, tide_text *out) {
    char device[32], bytes[24];
    tide_text_addf(out, "out of memory on %s: asked %s (%" PRIu64 " bytes",
                   tide_device_format(r->device, device, sizeof device),
                   tide_format_bytes(r->asked_bytes, bytes, sizeof bytes), r->asked_bytes);
    if (r->align_bytes > 0) tide_text_addf(out, ", alignment %" PRIu64, r->align_bytes);
    tide_text_addf(out, ") of kind %s\n  for             ", tide_memory_kind_name(r->kind));
    add_name(out, r->tag != NULL ? r->tag : "(nobody said)", 0);
    if (r->op != NULL) {
        tide_text_add(out, ", operator ");
        add_name(out, r->op, 0);
    }
    tide_text_add(out, "\n  allocator       ");
    add_name(out, r->allocator != NULL ? r->allocator : "(nobody said)", 0);
    tide_text_add(out, "\n");
}

static void add_numbers(const tide_oom_report *r, tide_text *out) {
    const tide_allocator_stats *s = &r->stats;
    if (r->would_fit_bytes == 0)
        tide_text_add(out, "  would have fit  nothing");
    else if (r->would_fit_bytes != TIDE_UNKNOWN_BYTES)
        add_fact(out, "  would have fit  at most ", r->would_fit_bytes);
    else if (s->headroom_bytes == TIDE_UNKNOWN_BYTES)
        add_fact(out, "  would have fit  not known: the system decides; without it ", s->largest_free_bytes);
    else // enough for what was asked
        tide_text_add(out, "  would have fit  not known: there is room, but rounding or the system refused");
    add_fact(out, "\n  its numbers     requested ", s->requested_bytes);
    add_fact(out, ", active ", s->active_bytes);
    add_fact(out, ", cached ", s->cached_bytes);
    add_fact(out, ", reserved ", s->reserved_bytes);
    add_fact(out, "\n                  largest free block ", s->largest_free_bytes);
    add_fact(out, ", may still take ", s->headroom_bytes);
    tide_text_addf(out, ", pending frees %" PRIu64, s->n_pending);
    add_fact(out, " (", s->pending_bytes);
    tide_text_add(out, ")\n");
}

void tide_oom_report_text(const tide_oom_report *r, tide_text *out) {
    char device[32], bytes[24];
    add_asked(r, out);
    add_numbers(r, out);
    tide_text_addf(out, "  live on %s: %zu block%s, %s requested", tide_device_format(r->device, device, sizeof device),
                   r->n_live, r->n_live == 1 ? "" : "s", tide_format_bytes(r->live_bytes, bytes, sizeof bytes));
    if (r->n_blocks < r->n_live) tide_text_addf(out, "; the %zu largest:", r->n_blocks);
    tide_text_add(out, "\n");
    if (r->n_blocks > 0) add_head(out, false);
    for (size_t i = 0; i < r->n_blocks; i++) add_block(out, &r->blocks[i], NULL);
    add_rest(out, r->blocks, r->n_blocks, r->n_live, r->live_bytes);
}
