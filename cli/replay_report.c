// SPDX-License-Identifier: MIT
//
// What a replay says: two tables, in the first rows what was recorded, and a document. See replay_report.h.
#include "cli/replay_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/table.h"
#include "core/device/sim_device.h"

// ---- tables ----

/// A row of both tables: the recorded program, or one allocator. UINT64_MAX: not known.
typedef struct row {
    const char *name;
    uint64_t requested_bytes, active_bytes, reserved_bytes; // peaks
    uint64_t idle_bytes, rounding_bytes;                    // at the peak of requested bytes
    uint64_t worst_idle_bytes, worst_rounding_bytes;
    uint64_t end_reserved_bytes, end_largest_free_bytes;
    uint64_t n_allocs, n_frees, n_system, n_hits, n_failed;
    uint64_t alloc_median_ns, alloc_p99_ns, free_median_ns, free_p99_ns;
    uint64_t wrong_bytes;
} row;

static const tide_column memory_columns[] = {
    {"allocator", "peaks of", TIDE_UNIT_NAME, TIDE_AT(row, name), .may_be_cut = true},
    {"requested_bytes", "requested", TIDE_UNIT_BYTES, TIDE_AT(row, requested_bytes)},
    {"active_bytes", "active", TIDE_UNIT_BYTES, TIDE_AT(row, active_bytes)},
    {"reserved_bytes", "reserved", TIDE_UNIT_BYTES, TIDE_AT(row, reserved_bytes)},
    {"idle_bytes", "idle then", TIDE_UNIT_BYTES, TIDE_AT(row, idle_bytes)},
    {"rounding_bytes", "rounding", TIDE_UNIT_BYTES, TIDE_AT(row, rounding_bytes)},
    {"worst_idle_bytes", "worst idle", TIDE_UNIT_BYTES, TIDE_AT(row, worst_idle_bytes)},
    {"worst_rounding_bytes", "rounding", TIDE_UNIT_BYTES, TIDE_AT(row, worst_rounding_bytes)},
    {"end_reserved_bytes", "at the end", TIDE_UNIT_BYTES, TIDE_AT(row, end_reserved_bytes)},
    {"end_largest_free_bytes", "largest free", TIDE_UNIT_BYTES, TIDE_AT(row, end_largest_free_bytes)},
};
static const tide_column call_columns[] = {
    {"allocator", "calls of", TIDE_UNIT_NAME, TIDE_AT(row, name), .may_be_cut = true},
    {"allocations", "allocs", TIDE_UNIT_COUNT, TIDE_AT(row, n_allocs)},
    {"frees", "frees", TIDE_UNIT_COUNT, TIDE_AT(row, n_frees)},
    {"failed", "failed", TIDE_UNIT_COUNT, TIDE_AT(row, n_failed)},
    {"system_calls", "of system", TIDE_UNIT_COUNT, TIDE_AT(row, n_system)},
    {"cache_hits", "hits", TIDE_UNIT_COUNT, TIDE_AT(row, n_hits)},
    {"alloc_median_ns", "alloc ns", TIDE_UNIT_COUNT, TIDE_AT(row, alloc_median_ns)},
    {"alloc_p99_ns", "99 %", TIDE_UNIT_COUNT, TIDE_AT(row, alloc_p99_ns)},
    {"free_median_ns", "free ns", TIDE_UNIT_COUNT, TIDE_AT(row, free_median_ns)},
    {"free_p99_ns", "99 %", TIDE_UNIT_COUNT, TIDE_AT(row, free_p99_ns)},
    {"wrong_bytes", "wrong bytes", TIDE_UNIT_COUNT, TIDE_AT(row, wrong_bytes)},
};

/// Not known where one is not.
static uint64_t above(uint64_t a, uint64_t b) {
    if (a == UINT64_MAX || b == UINT64_MAX) return UINT64_MAX;
    return a > b ? a - b : 0;
}

static row recorded_row(const cli_replay_recorded *r) {
    return (row){.name = "(recorded)",
                 .requested_bytes = r->peak.requested_bytes,
                 .active_bytes = r->active_peak_bytes,
                 .reserved_bytes = r->reserved_peak_bytes,
                 .idle_bytes = above(r->peak.reserved_bytes, r->peak.active_bytes),
                 .rounding_bytes = above(r->peak.active_bytes, r->peak.requested_bytes),
                 .worst_idle_bytes = r->worst_idle_bytes,
                 .worst_rounding_bytes = r->worst_rounding_bytes,
                 .end_reserved_bytes = r->end_reserved_bytes,
                 .end_largest_free_bytes = UINT64_MAX,
                 .n_allocs = r->n_allocs,
                 .n_frees = r->n_frees,
                 .n_system = r->n_segments > 0 ? r->n_segments : UINT64_MAX,
                 .n_hits = UINT64_MAX,
                 .n_failed = r->n_failed,
                 .alloc_median_ns = UINT64_MAX,
                 .alloc_p99_ns = UINT64_MAX,
                 .free_median_ns = UINT64_MAX,
                 .free_p99_ns = UINT64_MAX,
                 .wrong_bytes = UINT64_MAX};
}

static row result_row(const cli_replay_result *r) {
    return (row){.name = r->allocator,
                 .requested_bytes = r->peak.requested_bytes,
                 .active_bytes = r->active_peak_bytes,
                 .reserved_bytes = r->reserved_peak_bytes,
                 .idle_bytes = above(r->peak.reserved_bytes, r->peak.active_bytes),
                 .rounding_bytes = above(r->peak.active_bytes, r->peak.requested_bytes),
                 .worst_idle_bytes = r->worst_idle_bytes,
                 .worst_rounding_bytes = r->worst_rounding_bytes,
                 .end_reserved_bytes = r->end_reserved_bytes,
                 .end_largest_free_bytes = r->end_largest_free_bytes,
                 .n_allocs = r->n_allocs,
                 .n_frees = r->n_frees,
                 .n_system = r->n_system,
                 .n_hits = r->n_hits,
                 .n_failed = r->n_failed,
                 .alloc_median_ns = r->alloc_median_ns,
                 .alloc_p99_ns = r->alloc_p99_ns,
                 .free_median_ns = r->free_median_ns,
                 .free_p99_ns = r->free_p99_ns,
                 .wrong_bytes = r->wrong_bytes};
}

/// A plan has one buffer, and makes no calls.
static row plan_row(const cli_replay_report *r, const cli_replay_plan *p) {
    row out;
    memset(&out, 0xFF, sizeof out); // nothing is known
    out.name = p->name;
    out.requested_bytes = r->recorded.peak.requested_bytes;
    out.active_bytes = p->lower_bound_bytes;
    out.reserved_bytes = out.end_reserved_bytes = p->bytes;
    return out;
}

static const void *make_row(const tide_table *t, size_t i, void *room) {
    const cli_replay_report *r = t->data;
    row *out = room;
    if (i == 0)
        *out = recorded_row(&r->recorded);
    else
        *out = i <= r->n_results ? result_row(&r->results[i - 1]) : plan_row(r, &r->plans[i - 1 - r->n_results]);
    return out;
}

/// @param n_plans  rows of plans behind those of allocators
static void print_table(const cli_replay_report *r, const tide_column *columns, size_t n, size_t n_plans) {
    tide_table t = {.name = "allocators",
                    .columns = columns,
                    .n_columns = n,
                    .n_rows = 1 + r->n_results + n_plans,
                    .row = make_row,
                    .data = r,
                    .blank = "-"};
    putchar('\n');
    cli_table_print(&t, "", stdout);
}

// ---- words ----

/// " (kinds: Default, Workspace; device cpu)"
static void print_part(const cli_replay_source *s) {
    char device[64];
    const char *before = " (kinds: ";
    for (int k = 0; s->kinds != 0 && k < TIDE_N_KINDS; k++) {
        if ((s->kinds >> k & 1u) == 0) continue;
        printf("%s%s", before, tide_memory_kind_name((tide_memory_kind)k));
        before = ", ";
    }
    if (s->of_device != NULL)
        printf("%sdevice %s", s->kinds != 0 ? "; " : " (", cli_clean(s->of_device, device, sizeof device));
    if (s->kinds != 0 || s->of_device != NULL) putchar(')');
}

static void print_trace(const cli_replay_report *r) {
    const cli_replay_source *s = &r->source;
    const cli_replay_recorded *c = &r->recorded;
    char path[4096], a[24], run[32] = "";
    if (s->run_id > 0) snprintf(run, sizeof run, ", run %" PRId64, s->run_id);
    printf("%s%s", cli_clean(s->path, path, sizeof path), run);
    print_part(s);
    printf(": %" PRIu64 " block%s, the largest %s", c->n_allocs, c->n_allocs == 1 ? "" : "s",
           tide_format_bytes(c->largest_bytes, a, sizeof a));
    if (c->n_live_at_begin > 0) printf("; %" PRIu64 " were alive before", c->n_live_at_begin);
    if (c->n_leaked > 0)
        printf("; %" PRIu64 " are alive at the end (%s)", c->n_leaked, tide_format_bytes(c->leaked_bytes, a, sizeof a));
    if (c->n_left > 0)
        printf("; %" PRIu64 " ended with their process (%s)", c->n_left, tide_format_bytes(c->left_bytes, a, sizeof a));
    putchar('\n');
    if (s->n_processes > 1)
        printf("%u processes: all of them together, in the order of time\n", (unsigned)s->n_processes);
    if (s->n_dropped > 0)
        printf("the first %" PRIu64 " events were dropped (--max-trace): it begins with what was alive behind them\n",
               s->n_dropped);
    if (s->is_unfinished) puts("the trace is not whole: what is in it is replayed");
    if (s->n_planned_runs > 0)
        printf("%" PRIu64 " planned run%s: the buffer (%s) is one block, the tensors that lie in it are none\n",
               s->n_planned_runs, s->n_planned_runs == 1 ? "" : "s", tide_format_bytes(s->plan_bytes, a, sizeof a));
    if (c->n_unknown_frees + c->n_twice + c->n_empty > 0)
        printf("left out: %" PRIu64 " frees of blocks that are not alive, %" PRIu64
               " allocations of blocks that are, %" PRIu64 " blocks of 0 bytes\n",
               c->n_unknown_frees, c->n_twice, c->n_empty);
}

static void print_failure(const cli_replay_result *r) {
    const cli_replay_failure *f = &r->failure;
    char name[128], why[1024], a[24], b[24], c[24], d[24], t[24];
    printf("%s: %" PRIu64 " request%s failed; the first, event %" PRIu64 " at %s, asked for %s for '%s'\n",
           r->allocator, r->n_failed, r->n_failed == 1 ? "" : "s", f->event,
           tide_format_ns(f->since_begin_ns, "us", t, sizeof t), tide_format_bytes(f->asked_bytes, a, sizeof a),
           cli_clean(f->name, name, sizeof name));
    printf("  held then: %s requested, %s active, %s reserved; %s\n",
           tide_format_bytes(f->requested_bytes, b, sizeof b), tide_format_bytes(f->active_bytes, c, sizeof c),
           tide_format_bytes(f->reserved_bytes, d, sizeof d), cli_clean(f->why, why, sizeof why));
}

static void print_wrong(const cli_replay_result *r) {
    char name[128], a[24];
    printf("%s: %" PRIu64 " bytes of %" PRIu64 " blocks were not what was written; the first: %s of '%s'", r->allocator,
           r->wrong_bytes, r->n_wrong_blocks, tide_format_bytes(r->wrong.asked_bytes, a, sizeof a),
           cli_clean(r->wrong.name, name, sizeof name));
    if (r->wrong.event > 0) printf(", freed by event %" PRIu64, r->wrong.event);
    putchar('\n');
}

/// Why a replay has not reserved what was recorded.
static const char *why_apart(const cli_replay_report *r, const cli_replay_result *result) {
    if (strncmp(result->allocator, "pytorch:", 8) == 0) return "it has settings of its own";
    if (r->limit_bytes > 0) return "it has the memory of --limit";
    if (strcmp(result->allocator, CLI_REPLAY_AS_RECORDED) == 0 && result->like.n_adopted == 0)
        return "the recorded allocators had other options or alignments, or a stream gave a block back later";
    if (result->like.n_adopted == 0) return "it did not begin with the segments that were there";
    return "the recorded program had other settings, or the driver put segments in another order";
}

/// With settings of its own it is another question: what they save.
static void print_settings(const cli_replay_report *r, const cli_replay_result *result) {
    const uint64_t recorded = r->recorded.reserved_peak_bytes, here = result->reserved_peak_bytes;
    char a[24], b[24];
    if (recorded == TIDE_UNKNOWN_BYTES || recorded == 0) return;
    printf("%s: reserves at most %s, %s ", result->allocator, tide_format_bytes(here, a, sizeof a),
           tide_format_bytes(here > recorded ? here - recorded : recorded - here, b, sizeof b));
    printf("(%.1f %%) %s than was recorded; the blocks of before are asked for anew\n",
           100.0 * (double)(here > recorded ? here - recorded : recorded - here) / (double)recorded,
           here > recorded ? "more" : "less");
}

static void print_like(const cli_replay_report *r, const cli_replay_result *result) {
    const cli_replay_like *l = &result->like;
    char a[24], b[24], c[24];
    if (l->n_moments > 0 && strncmp(result->allocator, "pytorch:", 8) == 0) {
        print_settings(r, result);
        return;
    }
    if (l->n_moments > 0 && r->source.settings[0] != '\0')
        printf("%s: with the settings of the recorded program: %s\n", result->allocator, r->source.settings);
    if (l->n_adopted > 0)
        printf("%s: begins with the %" PRIu64 " segment%s of before (%s), and the blocks in %s\n", result->allocator,
               l->n_adopted, l->n_adopted == 1 ? "" : "s", tide_format_bytes(l->adopted_bytes, a, sizeof a),
               l->n_adopted == 1 ? "it" : "them");
    if (l->n_moments == 0) return;
    if (l->n_apart == 0) {
        printf("%s: has reserved what was recorded at each of %" PRIu64 " moments\n", result->allocator, l->n_moments);
        return;
    }
    const uint64_t recorded = l->worst.recorded_bytes, replayed = l->worst.replayed_bytes;
    const uint64_t apart = recorded > replayed ? recorded - replayed : replayed - recorded;
    printf("%s: has reserved something else than was recorded from event %" PRIu64 " on (%" PRIu64 " of %" PRIu64
           " moments), most at event %" PRIu64 ": %s, not %s (%.2f %%)",
           result->allocator, l->first.event, l->n_apart, l->n_moments, l->worst.event,
           tide_format_bytes(replayed, b, sizeof b), tide_format_bytes(recorded, c, sizeof c),
           100.0 * (double)apart / (double)(recorded > 0 ? recorded : 1));
    printf("; %s\n", why_apart(r, result));
}

static void print_plan(const cli_replay_report *r, const cli_replay_plan *p) {
    char a[24], b[24], c[24];
    printf("%s: placed with all of them known before, the blocks fit into %s", p->strategy,
           tide_format_bytes(p->bytes, a, sizeof a));
    if (p->proven)
        printf(", proven: none fits into less");
    else
        printf("; none is proven to fit into less than %s", tide_format_bytes(p->proved_bytes, b, sizeof b));
    const uint64_t reserved = r->recorded.reserved_peak_bytes;
    if (reserved != TIDE_UNKNOWN_BYTES && reserved > p->bytes)
        printf("; recorded were %s more (%.1f %%)", tide_format_bytes(reserved - p->bytes, c, sizeof c),
               100.0 * (double)(reserved - p->bytes) / (double)reserved);
    putchar('\n');
}

/// Which of the replays gave back what they kept when the recorded program did.
static void print_emptied(const cli_replay_report *r) {
    uint64_t most = 0;
    for (size_t i = 0; i < r->n_results; i++)
        if (r->results[i].like.n_emptied > most) most = r->results[i].like.n_emptied;
    if (most == 0) return;
    printf("the recorded program gave back what was kept %" PRIu64
           " time%s (empty_cache, out of memory, or the end of an allocator); so did",
           most, most == 1 ? "" : "s");
    const char *before = " ";
    for (size_t i = 0; i < r->n_results; i++) {
        if (r->results[i].like.n_emptied == 0) continue;
        printf("%s%s", before, r->results[i].allocator);
        before = ", ";
    }
    putchar('\n');
}

static void print_limit(const cli_replay_report *r) {
    char a[24];
    printf("\nlimit %s:", tide_format_bytes(r->limit_bytes, a, sizeof a));
    for (size_t i = 0; i < r->n_results; i++)
        printf("%s %s %s", i == 0 ? "" : ",", r->results[i].allocator,
               r->results[i].n_failed == 0 ? "fits" : "does not fit");
    putchar('\n');
}

void cli_replay_print(const cli_replay_report *r) {
    char device[32];
    print_trace(r);
    printf("replayed on %s%s; %s; times are the host's, %" PRIu64 " ns of each are the clock's%s\n",
           tide_device_format(r->device, device, sizeof device),
           tide_sim_device_is(r->device) ? " (simulated: addresses without memory)" : "",
           r->checked ? "blocks are filled and checked" : "blocks are not touched", r->clock_ns,
           r->is_recorded ? ", and the recorder's part is in them" : "");
    print_table(r, memory_columns, sizeof memory_columns / sizeof memory_columns[0], r->n_plans);
    print_table(r, call_columns, sizeof call_columns / sizeof call_columns[0], 0);
    for (size_t i = 0; i < r->n_results; i++) print_like(r, &r->results[i]);
    for (size_t i = 0; i < r->n_plans; i++) print_plan(r, &r->plans[i]);
    print_emptied(r);
    if (r->limit_bytes > 0) print_limit(r);
    for (size_t i = 0; i < r->n_results; i++) {
        if (r->results[i].n_failed > 0) print_failure(&r->results[i]);
        if (r->results[i].n_wrong_blocks > 0) print_wrong(&r->results[i]);
    }
}

// ---- JSON ----

static void add_moment(tide_json_out *j, const cli_replay_moment *m) {
    tide_json_open(j, "peak", '{');
    tide_json_u64(j, "event", m->event);
    tide_json_u64(j, "since_begin_ns", m->since_begin_ns);
    tide_json_u64(j, "requested_bytes", m->requested_bytes);
    tide_json_u64(j, "active_bytes", m->active_bytes);
    tide_json_bytes(j, "reserved_bytes", m->reserved_bytes);
    tide_json_bytes(j, "idle_bytes", above(m->reserved_bytes, m->active_bytes));
    tide_json_u64(j, "rounding_bytes", above(m->active_bytes, m->requested_bytes));
    tide_json_close(j, '}');
}

static void add_failure(tide_json_out *j, const char *key, bool is_there, const cli_replay_failure *f) {
    if (!is_there) {
        tide_json_null(j, key);
        return;
    }
    tide_json_open(j, key, '{');
    tide_json_u64_if(j, "event", f->event > 0, f->event);
    tide_json_u64(j, "since_begin_ns", f->since_begin_ns);
    tide_json_text(j, "name", f->name);
    tide_json_u64(j, "asked_bytes", f->asked_bytes);
    tide_json_u64(j, "requested_bytes", f->requested_bytes);
    tide_json_u64(j, "active_bytes", f->active_bytes);
    tide_json_u64(j, "reserved_bytes", f->reserved_bytes);
    tide_json_text_or_null(j, "reason", f->why);
    tide_json_close(j, '}');
}

static void add_recorded(tide_json_out *j, const cli_replay_report *r) {
    const cli_replay_recorded *c = &r->recorded;
    tide_json_open(j, "recorded", '{');
    tide_json_u64(j, "allocations", c->n_allocs);
    tide_json_u64(j, "frees", c->n_frees);
    tide_json_u64(j, "live_at_begin", c->n_live_at_begin);
    tide_json_u64(j, "live_at_end", c->n_leaked);
    tide_json_u64(j, "live_at_end_bytes", c->leaked_bytes);
    tide_json_u64(j, "left", c->n_left);
    tide_json_u64(j, "left_bytes", c->left_bytes);
    tide_json_u64(j, "unknown_frees", c->n_unknown_frees);
    tide_json_u64(j, "allocated_twice", c->n_twice);
    tide_json_u64(j, "empty_blocks", c->n_empty);
    tide_json_u64(j, "failed", c->n_failed);
    tide_json_u64(j, "segments", c->n_segments);
    tide_json_u64(j, "largest_bytes", c->largest_bytes);
    tide_json_u64(j, "requested_peak_bytes", c->peak.requested_bytes);
    tide_json_u64(j, "active_peak_bytes", c->active_peak_bytes);
    tide_json_bytes(j, "reserved_peak_bytes", c->reserved_peak_bytes);
    add_moment(j, &c->peak);
    tide_json_bytes(j, "worst_idle_bytes", c->worst_idle_bytes);
    tide_json_u64(j, "worst_rounding_bytes", c->worst_rounding_bytes);
    tide_json_bytes(j, "end_reserved_bytes", c->end_reserved_bytes);
    tide_json_text_or_null(j, "settings", r->source.settings);
    tide_json_close(j, '}');
}

static void add_times(tide_json_out *j, const cli_replay_result *r) {
    tide_json_bytes(j, "alloc_median_ns", r->alloc_median_ns);
    tide_json_bytes(j, "alloc_p99_ns", r->alloc_p99_ns);
    tide_json_bytes(j, "free_median_ns", r->free_median_ns);
    tide_json_bytes(j, "free_p99_ns", r->free_p99_ns);
}

static void add_apart(tide_json_out *j, const char *key, const cli_replay_apart *a) {
    tide_json_open(j, key, '{');
    tide_json_u64(j, "event", a->event);
    tide_json_u64(j, "recorded_bytes", a->recorded_bytes);
    tide_json_u64(j, "replayed_bytes", a->replayed_bytes);
    tide_json_close(j, '}');
}

static void add_like(tide_json_out *j, const cli_replay_report *r, const cli_replay_result *result) {
    const cli_replay_like *l = &result->like;
    tide_json_u64(j, "begins_with_segments", l->n_adopted);
    tide_json_u64(j, "begins_with_bytes", l->adopted_bytes);
    tide_json_u64(j, "emptied", l->n_emptied);
    if (l->n_moments == 0) {
        tide_json_null(j, "beside_recorded");
        return;
    }
    tide_json_open(j, "beside_recorded", '{');
    tide_json_u64(j, "moments", l->n_moments);
    tide_json_u64(j, "moments_apart", l->n_apart);
    if (l->n_apart > 0) {
        add_apart(j, "first", &l->first);
        add_apart(j, "worst", &l->worst);
        tide_json_text(j, "reason", why_apart(r, result));
    } else {
        tide_json_null(j, "first");
        tide_json_null(j, "worst");
        tide_json_null(j, "reason");
    }
    tide_json_close(j, '}');
}

static void add_plan(tide_json_out *j, const cli_replay_plan *p) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "strategy", p->strategy);
    tide_json_u64(j, "blocks", p->n_blocks);
    tide_json_u64(j, "bytes", p->bytes);
    tide_json_u64(j, "lower_bound_bytes", p->lower_bound_bytes);
    tide_json_u64(j, "proved_bytes", p->proved_bytes);
    tide_json_bool(j, "proven", p->proven);
    tide_json_u64(j, "plan_time_ns", p->time_ns);
    tide_json_close(j, '}');
}

static void add_result(tide_json_out *j, const cli_replay_report *report, const cli_replay_result *r) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "allocator", r->allocator);
    tide_json_bool(j, "fits", r->n_failed == 0);
    tide_json_u64(j, "requested_peak_bytes", r->peak.requested_bytes);
    tide_json_u64(j, "active_peak_bytes", r->active_peak_bytes);
    tide_json_u64(j, "reserved_peak_bytes", r->reserved_peak_bytes);
    add_moment(j, &r->peak);
    tide_json_u64(j, "worst_idle_bytes", r->worst_idle_bytes);
    tide_json_u64(j, "worst_rounding_bytes", r->worst_rounding_bytes);
    tide_json_u64(j, "allocations", r->n_allocs);
    tide_json_u64(j, "frees", r->n_frees);
    tide_json_u64(j, "failed", r->n_failed);
    add_failure(j, "first_failure", r->n_failed > 0, &r->failure);
    tide_json_u64(j, "system_calls", r->n_system);
    tide_json_u64(j, "cache_hits", r->n_hits);
    add_times(j, r);
    tide_json_u64(j, "end_active_bytes", r->end_active_bytes);
    tide_json_u64(j, "end_reserved_bytes", r->end_reserved_bytes);
    tide_json_u64(j, "end_largest_free_bytes", r->end_largest_free_bytes);
    tide_json_u64(j, "live_at_end", r->n_leaked);
    tide_json_u64(j, "live_at_end_bytes", r->leaked_bytes);
    tide_json_u64(j, "streams", r->n_streams);
    tide_json_u64(j, "checked_blocks", r->n_checked);
    tide_json_bytes(j, "wrong_bytes", r->wrong_bytes);
    tide_json_u64(j, "wrong_blocks", r->n_wrong_blocks);
    add_failure(j, "first_wrong", r->n_wrong_blocks > 0, &r->wrong);
    add_like(j, report, r);
    tide_json_u64_if(j, "run", r->out_run > 0, (uint64_t)r->out_run);
    tide_json_close(j, '}');
}

static void add_part(tide_json_out *j, const cli_replay_source *s) {
    if (s->kinds == 0) {
        tide_json_null(j, "kinds");
    } else {
        tide_json_open_flat(j, "kinds", '[');
        for (int k = 0; k < TIDE_N_KINDS; k++)
            if ((s->kinds >> k & 1u) != 0) tide_json_text(j, NULL, tide_memory_kind_name((tide_memory_kind)k));
        tide_json_close(j, ']');
    }
    tide_json_text(j, "of_device", s->of_device);
}

void cli_replay_json(tide_json_out *j, const cli_replay_report *r) {
    const cli_replay_source *s = &r->source;
    char device[32];
    tide_json_text(j, "file", s->path);
    tide_json_u64_if(j, "run", s->run_id > 0, (uint64_t)s->run_id);
    add_part(j, s);
    tide_json_text(j, "device", tide_device_format(r->device, device, sizeof device));
    tide_json_bool(j, "simulated", tide_sim_device_is(r->device));
    tide_json_u64_if(j, "limit_bytes", r->limit_bytes > 0, r->limit_bytes);
    tide_json_bool(j, "checked", r->checked);
    tide_json_u64(j, "clock_ns", r->clock_ns);
    tide_json_u64(j, "processes", s->n_processes);
    tide_json_u64(j, "dropped_events", s->n_dropped);
    tide_json_bool(j, "unfinished", s->is_unfinished);
    tide_json_u64(j, "planned_runs", s->n_planned_runs);
    tide_json_u64_if(j, "plan_bytes", s->n_planned_runs > 0, s->plan_bytes);
    add_recorded(j, r);
    tide_json_open(j, "allocators", '[');
    for (size_t i = 0; i < r->n_results; i++) add_result(j, r, &r->results[i]);
    tide_json_close(j, ']');
    tide_json_open(j, "plans", '[');
    for (size_t i = 0; i < r->n_plans; i++) add_plan(j, &r->plans[i]);
    tide_json_close(j, ']');
}
