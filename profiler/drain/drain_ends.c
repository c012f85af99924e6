// SPDX-License-Identifier: MIT
//
// The ends of recorded processes. With a process all its memory goes, which no free tells of: an event of its own does,
// at the time at which it ended, so that what others allocate afterwards does not stand on top of it.
//
//     process 1   a   a f   a | exits            its mark says when
//     process 2        a        |    a  f        events
//     file        a a  a f  a   E1   a  f        E1: all that process 1 never freed
//
// The event is written when one of another process follows: the last process to end has none, and what it never freed
// is what is live at the end of the trace. When a process ended:
//
//     closed      it said so at its end (exit, return from main)
//     replaced    it said so before exec; or a process of its number and age lives on without its locks
//     killed      it said nothing: the moment at which this drain saw that it was gone; not known where no drain ran
//
// A program that closes its recorder may live on: of it no end is known.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/drain/drain_internal.h"

/// Whether the process of the feed has ended, not its recording alone. One that has closed its feed to end has ended:
/// it may still be there for a moment, and nothing more comes.
static bool has_process_ended(const tide__drain_feed *f) {
    if (atomic_load_explicit(&f->head->state, memory_order_acquire) == TIDE__FEED_CLOSED)
        return atomic_load_explicit(&f->head->ending, memory_order_acquire) != TIDE__FEED_GOES_ON;
    return tide__feed_reader_producer_has_gone(f->reader);
}

void tide__drain_see_end(const tide__drain *d, tide__drain_feed *f) {
    if (f->has_gone || !has_process_ended(f)) return;
    f->has_gone = true;
    const int64_t now = d->opt.after_all || !f->clock.is_this_boot ? INT64_MAX : (int64_t)tide_now_ns();
    const uint32_t ending = atomic_load_explicit(&f->head->ending, memory_order_acquire);
    const int64_t said_ns = atomic_load_explicit(&f->head->ending_ns, memory_order_relaxed);
    f->is_replaced = ending == TIDE__FEED_IS_REPLACED ||
                     (ending == TIDE__FEED_GOES_ON && tide__feed_reader_process_lives_on(f->reader));
    f->end_ns = ending != TIDE__FEED_GOES_ON && said_ns > 0 && said_ns <= now ? said_ns : now;
}

bool tide__drain_misses_an_end(const tide__drain *d) {
    for (size_t i = 0; i < d->n_feeds; i++) {
        const tide__drain_feed *f = d->feeds[i];
        if (!f->is_ended && !f->has_gone && has_process_ended(f)) return true;
    }
    return false;
}

// ---- which is due ----

static bool is_drained(const tide__drain_feed *f) {
    for (size_t i = 0; i < f->n_rings; i++)
        if (!f->rings[i]->is_broken && f->rings[i]->position < f->rings[i]->end) return false;
    return true;
}

/// When the process of a feed ended, no earlier than its last event; INT64_MAX: it has not, that is not known, or the
/// file has it.
static int64_t end_of(const tide__drain *d, const tide__drain_feed *f) {
    if (!f->has_gone || f->is_ended || tide__process_ends_find(&d->ends, f->process_id) != NULL) return INT64_MAX;
    int64_t t_ns = f->end_ns;
    for (size_t i = 0; i < f->n_rings; i++)
        if (f->rings[i]->t_ns > t_ns) t_ns = f->rings[i]->t_ns;
    return t_ns;
}

void tide__drain_find_ends(tide__drain *d) {
    d->end_due_ns = INT64_MAX;
    for (size_t i = 0; i < d->ends.n; i++)
        if (d->ends.items[i].event == 0 && d->ends.items[i].t_ns < d->end_due_ns) d->end_due_ns = d->ends.items[i].t_ns;
    for (size_t i = 0; i < d->n_feeds; i++) {
        const int64_t t_ns = end_of(d, d->feeds[i]);
        if (t_ns < d->end_due_ns) d->end_due_ns = t_ns;
    }
}

/// The first of the ends that lie before `t_ns`, but for that of `but`, whose event is next. False: there is none.
static bool first_before(const tide__drain *d, int64_t t_ns, const tide__drain_feed *but, tide__process_end *out) {
    *out = (tide__process_end){.t_ns = t_ns};
    for (size_t i = 0; i < d->ends.n; i++)
        if (d->ends.items[i].event == 0 && d->ends.items[i].t_ns < out->t_ns) *out = d->ends.items[i];
    for (size_t i = 0; i < d->n_feeds; i++) {
        const tide__drain_feed *f = d->feeds[i];
        const int64_t end_ns = f != but ? end_of(d, f) : INT64_MAX;
        if (end_ns < out->t_ns && is_drained(f))
            *out = (tide__process_end){.process_id = f->process_id, .t_ns = end_ns};
    }
    return out->process_id != 0;
}

// ---- events and rows ----

static tide_status put(tide__drain *d, const tide__process_end *end, tide_error *err) {
    if (tide__process_ends_put(&d->ends, end) != TIDE_OK) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    return tide__process_end_write(tide__store_sql(d->store), end, err);
}

static tide_status put_event(tide__drain *d, tide__process_end *end, tide_error *err) {
    const size_t n_live = tide__replay_n_live(&d->replay);
    const int64_t bytes = d->replay.series[0].live_bytes;
    d->events[d->n_events] = (tide__event){.t_ns = end->t_ns,
                                           .block_id = (end->process_id - 1) << TIDE__BLOCK_ID_BITS,
                                           .op = TIDE__OP_PROCESS_END,
                                           .kind = TIDE__NO_KIND};
    TIDE_TRY(tide__drain_take(d, NULL, err));
    TIDE_ASSERT(tide__replay_n_live(&d->replay) <= n_live); // it ends blocks, and makes none
    end->event = d->last_event;
    end->t_ns = d->last_ns;
    end->n_blocks = (int64_t)(n_live - tide__replay_n_live(&d->replay));
    end->bytes = bytes - d->replay.series[0].live_bytes;
    return put(d, end, err);
}

tide_status tide__drain_put_ends(tide__drain *d, const tide__drain_ring *next, size_t *n, tide_error *err) {
    tide__process_end end;
    if (d->end_due_ns >= next->t_ns) return TIDE_OK;
    while (first_before(d, next->t_ns, next->feed, &end)) {
        TIDE_TRY(put_event(d, &end, err));
        ++*n;
    }
    tide__drain_find_ends(d);
    return TIDE_OK;
}

tide_status tide__drain_write_end(tide__drain *d, const tide__drain_feed *f, tide_error *err) {
    const bool is_closed = atomic_load_explicit(&f->head->state, memory_order_acquire) == TIDE__FEED_CLOSED ||
                           atomic_load_explicit(&f->head->ending, memory_order_relaxed) == TIDE__FEED_ENDS;
    const tide__process_end end = {.process_id = f->process_id, .t_ns = end_of(d, f)};
    const tide__process_end *known = tide__process_ends_find(&d->ends, f->process_id);
    const int64_t end_ns = known != NULL ? known->t_ns : end.t_ns != INT64_MAX ? end.t_ns : d->last_ns;
    if (end.t_ns != INT64_MAX) TIDE_TRY(put(d, &end, err));
    return tide__store_end_process(d->store, f->process_id,
                                   f->is_replaced ? "replaced"
                                   : is_closed    ? "closed"
                                                  : "killed",
                                   end_ns, err);
}
