// SPDX-License-Identifier: MIT
//
// A session's life: its allocators, who watches them, and what was not given back. See session.h.
//
//     meter, ledger, recorder  <- observers of ->  instrumented -> (limit ->) plain      one such chain per kind
//
// The limits share one budget and lie next to what takes memory: pages of a KV cache come between (decode.c), so that
// what they are cut from is counted.
#include "cli/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/session_internal.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"
#include "core/ops/ops.h"

tide_status cli_session_within_limit(cli_session *s, tide_allocator *plain, tide_allocator **out, tide_error *err) {
    if (s->limit_bytes == 0) {
        *out = tide_allocator_ref(plain);
        return TIDE_OK;
    }
    if (s->limit != NULL) return tide_limit_create_shared(plain, s->limit, out, err);
    TIDE_TRY(tide_limit_create(plain, s->limit_bytes, out, err));
    s->limit = tide_allocator_ref(*out);
    return TIDE_OK;
}

tide_status cli_session_serve(cli_session *s, tide_memory_kind kind, tide_allocator *a, tide_error *err) {
    tide_allocator *observed = NULL;
    TIDE_TRY(tide_instrumented_create(a, &s->all, &observed, err));
    const tide_status st = tide_registry_add(s->registry, kind, observed, 0, err);
    tide_allocator_unref(observed);
    return st;
}

static tide_status serve_by_name(cli_session *s, tide_memory_kind kind, const char *name, tide_error *err) {
    tide_allocator *plain = NULL, *limited = NULL;
    TIDE_TRY(tide_allocator_create_by_name(name, &plain, err));
    tide_status st = cli_session_within_limit(s, plain, &limited, err);
    tide_allocator_unref(plain);
    if (st != TIDE_OK) return st;
    st = cli_session_serve(s, kind, limited, err);
    tide_allocator_unref(limited);
    return st;
}

static tide_status open_parts(cli_session *s, const cli_session_options *opt, tide_error *err) {
    TIDE_TRY(tide_meter_create(&s->meter, err));
    TIDE_TRY(tide_ledger_create(&s->ledger, err));
    s->meter_obs = tide_meter_observer(s->meter);
    s->ledger_obs = tide_ledger_observer(s->ledger);
    s->named_pair.a = &s->ledger_obs;
    if (s->recorder != NULL) {
        s->recorder_obs = tide_recorder_observer(s->recorder);
        s->named_pair.b = &s->recorder_obs;
    }
    s->named = tide_observer_both(&s->named_pair);
    s->warm_obs = cli__warm_watch_observer(&s->warm);
    s->watched_pair = (tide_observer_pair){.a = &s->named, .b = opt->keeps_warm_sites ? &s->warm_obs : NULL};
    s->watched = tide_observer_both(&s->watched_pair);
    s->all_pair = (tide_observer_pair){.a = &s->meter_obs, .b = &s->watched};
    s->all = tide_observer_both(&s->all_pair);
    if (s->recorder != NULL) TIDE_TRY(tide_recorder_put_meta(s->recorder, "tool_version", TIDE_VERSION, err));
    char threads[16];
    snprintf(threads, sizeof threads, "%u", (unsigned)tide_ops_threads());
    if (s->recorder != NULL) TIDE_TRY(tide_recorder_put_meta(s->recorder, "kernel_threads", threads, err));
    TIDE_TRY(tide_registry_create(&s->registry, err));
    for (int k = 0; k < TIDE_N_KINDS; k++) TIDE_TRY(serve_by_name(s, (tide_memory_kind)k, opt->allocator, err));
    return TIDE_OK;
}

tide_status cli_session_open(const cli_session_options *opt, cli_session **out, tide_error *err) {
    cli_session *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a session");
    s->recorder = opt->recorder;
    s->limit_bytes = opt->limit_bytes;
    pthread_mutex_init(&s->warm.lock, NULL);
    const tide_status st = open_parts(s, opt, err);
    if (st != TIDE_OK) {
        cli_session_close(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

tide_registry *cli_session_registry(cli_session *s) { return s->registry; }
const tide_observer *cli_session_observer(const cli_session *s) { return &s->all; }
const tide_error *cli_session_record_error(const cli_session *s) { return &s->record_err; }

void cli_session_mark_warm(cli_session *s) {
    cli__warm_watch_arm(&s->warm, true);
    if (s->recorder != NULL) tide_recorder_mark(s->recorder, "warm");
}

// ---- what was not given back ----

/// Append the live blocks born after `after_id`. @return how many are missing for want of memory
static size_t list_live(cli_session *s, uint64_t after_id, block_list *list) {
    const size_t n = tide_ledger_largest(s->ledger, after_id, NULL, 0);
    if (n == 0 || tide_host_grow(&list->items, &list->cap, list->n + n, sizeof *list->items) != TIDE_OK) return n;
    const size_t found = tide_ledger_largest(s->ledger, after_id, list->items + list->n, n);
    list->n += found < n ? found : n;
    return 0;
}

void cli__session_note_late(cli_session *s, uint64_t after_id) { s->n_leaked += list_live(s, after_id, &s->late); }

static int by_id(const void *a, const void *b) {
    const uint64_t x = ((const tide_live_block *)a)->block_id, y = ((const tide_live_block *)b)->block_id;
    return (x > y) - (x < y);
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = ((const tide_live_block *)a)->requested_bytes, y = ((const tide_live_block *)b)->requested_bytes;
    return x != y ? (x < y) - (x > y) : by_id(a, b);
}

/// Each late block once, and none that is still there: that one is in the other list.
static void settle_late(cli_session *s) {
    block_list *late = &s->late, *end = &s->at_end;
    if (late->n == 0) return;
    if (end->n > 0) qsort(end->items, end->n, sizeof *end->items, by_id);
    qsort(late->items, late->n, sizeof *late->items, by_id);
    size_t kept = 0;
    for (size_t i = 0; i < late->n; i++) {
        const tide_live_block *b = &late->items[i];
        const bool again = kept > 0 && late->items[kept - 1].block_id == b->block_id;
        const bool still = end->n > 0 && bsearch(b, end->items, end->n, sizeof *b, by_id) != NULL;
        if (!again && !still) late->items[kept++] = *b;
    }
    late->n = kept;
    if (kept > 0) qsort(late->items, kept, sizeof *late->items, by_size);
    if (end->n > 0) qsort(end->items, end->n, sizeof *end->items, by_size);
}

void cli_session_end(cli_session *s) {
    if (s == NULL || s->registry == NULL) return;
    tide_registry_destroy(s->registry);
    s->registry = NULL;
    tide_allocator_unref(s->limit);
    s->limit = NULL;
    s->end_ns = tide_now_ns();
    (void)list_live(s, 0, &s->at_end); // the meter counts what is missing
    settle_late(s);
    tide_meter_kind total;
    tide_meter_total(s->meter, &total);
    s->n_leaked += total.n_live + s->late.n;
}

void cli_session_get_leaks(const cli_session *s, cli_leaks *out) {
    *out = (cli_leaks){.at_end = s->at_end.items,
                       .n_at_end = s->at_end.n,
                       .late = s->late.items,
                       .n_late = s->late.n,
                       .n_blocks = s->n_leaked,
                       .now_ns = s->end_ns};
}

const cli_warm_site *cli_session_warm_sites(const cli_session *s, size_t *n) {
    *n = s->warm.n;
    return s->warm.sites;
}

bool cli_session_oom(const cli_session *s, tide_oom_report *out) { return tide_ledger_oom(s->ledger, out); }

void cli_session_close(cli_session *s) {
    if (s == NULL) return;
    cli_session_end(s);
    tide_allocator_unref(s->limit);
    tide_host_free(s->at_end.items);
    tide_host_free(s->late.items);
    cli__warm_watch_deinit(&s->warm);
    tide_meter_destroy(s->meter);
    tide_ledger_destroy(s->ledger);
    tide_host_free(s);
}
