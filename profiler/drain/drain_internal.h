// SPDX-License-Identifier: MIT
//
// What the parts of the drain share. Private to profiler/drain/.
//
//     drain.c        life: state of the file, transactions, rounds, the end of the trace, what a killed process left
//     drain_feeds.c  which feeds there are, their log, how far their rings go
//     drain_register.c  processes, runs, plans and facts to rows
//     drain_check.c  whether the file holds what was recorded
//     drain_clock.c  ticks to ns
//     drain_slot.h   slot to event
//     drain_take.c   one event of the file
//     drain_address.c, drain_address_table.c  blocks that are known by their address alone
//     drain_frames.c  call stacks of such blocks
//     drain_merge.c  the next event of all rings, numbered, replayed, kept for the file; what waits for late ones
//     drain_usual.c  the same of some hundred events at once, as long as they are usual
//     drain_sample.c what the system counts of each process
//     drain_ends.c   when recorded processes ended, and the events that say so
//     drain_lock.c   one drain per trace
//     drain_thread.c rounds in a thread
#ifndef TIDE_PROFILER_DRAIN_DRAIN_INTERNAL_H
#define TIDE_PROFILER_DRAIN_DRAIN_INTERNAL_H

#include <sys/stat.h>
#include <time.h>

#include "core/base/map.h"
#include "profiler/drain/drain.h"
#include "profiler/feed/mapped_file.h"
#include "profiler/feed/reader.h"
#include "profiler/store/process_ends.h"
#include "profiler/store/replay.h"
#include "profiler/store/store.h"

enum {
    TIDE__DRAIN_BATCH_EVENTS = 32768,
    TIDE__DRAIN_BATCH_MS = 50,
    TIDE__DRAIN_BUFFER_EVENTS = 4096, ///< go to the store together: one chunk
    TIDE__DRAIN_AHEAD = 64,           ///< slots of a ring whose times are read at once
    TIDE__DRAIN_USUAL = 128,          ///< usual events that are taken at once, at most
    TIDE__DRAIN_CLOCK_PAIRS = 64,
    TIDE__DRAIN_CLOCKS_NS = 100 * 1000,         ///< what clocks of two cores may differ by, generously
    TIDE__DRAIN_LATE_NS = 50 * 1000 * 1000,     ///< of times of the machine's clock that the program read
    TIDE__DRAIN_ASTRAY_NS = 1000 * 1000 * 1000, ///< of those that the recorder read
    TIDE__DRAIN_HOLD_MS = 2000,                 ///< for programs that give times
    TIDE__DRAIN_SEEN = 32,                      ///< moments of the window that is held back
    TIDE__DRAIN_MAX_PROCESSES = 1 << 15,        ///< block numbers of process p are shifted by (p - 1) << 48
};

#define TIDE__DRAIN_SOON_NS UINT64_C(1000000000)
#define TIDE__DRAIN_RECENT_NS UINT64_C(600000000000)

// ---- clock ----

/// The counter as a line from pair to pair: what was read while the feed was drained, a tenth of a second apart.
typedef struct tide__drain_clock {
    tide__tick_pair pairs[TIDE__DRAIN_CLOCK_PAIRS]; ///< [n], oldest first
    size_t n;
    tide__tick_pair now; ///< of this round
    bool has_ticks, is_this_boot;
    // The interval of ticks that was asked last: [lo, hi) is on `line`, which grows by rate / 2^60 ns per tick.
    uint64_t lo, hi, rate; ///< rate 0: it fits into no such fraction
    tide__tick_pair line[2];
    uint64_t n_plain; ///< ticks behind line[0] that one multiplication is enough for
} tide__drain_clock;

/// Events that a ring can have lost: a larger count is wrong.
#define TIDE__DRAIN_MAX_LOST (INT64_C(1) << 48)

/// What the header of a feed knows.
void tide__drain_clock_init(tide__drain_clock *c, const tide__feed_header *head);
/// Read both clocks now, and note both in the header for a drain that takes over.
void tide__drain_clock_read(tide__drain_clock *c, tide__feed_header *head);
/// tide__drain_clock_ns for ticks that are not on the line in use.
uint64_t tide__drain_clock_find_ns(tide__drain_clock *c, uint64_t ticks);
enum { TIDE__DRAIN_RATE_BITS = 60 };
/// Time of a slot in ns; > INT64_MAX: no time that a producer gives.
static inline uint64_t tide__drain_clock_ns(tide__drain_clock *c, uint64_t ticks) {
    const uint64_t since = ticks - c->line[0].ticks;
    if (__builtin_expect(since >= c->n_plain, 0)) return tide__drain_clock_find_ns(c, ticks);
    return c->line[0].ns + (uint64_t)((unsigned __int128)since * c->rate >> TIDE__DRAIN_RATE_BITS);
}

// ---- feeds ----

typedef struct tide__drain_feed tide__drain_feed;
/// Blocks by address, of a feed by address (drain_address.h).
typedef struct tide__drain_addresses tide__drain_addresses;

/// The block that a ring's last free ended, which may come back.
typedef struct tide__drain_went {
    uint64_t address;
    int64_t bytes;
    bool is_there;
} tide__drain_went;

/// When the next slots of a ring are due: what the merge compares.
typedef struct tide__drain_ahead {
    uint64_t begin, end; ///< positions looked at: usual by their operation, and no later than this round takes
    int64_t next_ns;     ///< when the slot at `end` is due, INT64_MAX: none is; only if `is_all`
    bool is_all;         ///< the slot at `end` is not usual, or there is none; otherwise the look went no further
    int64_t t_ns[TIDE__DRAIN_AHEAD]; ///< [end - begin] no smaller than those before
    uint8_t op[TIDE__DRAIN_AHEAD], kind_flags[TIDE__DRAIN_AHEAD];
} tide__drain_ahead;

typedef struct tide__drain_ring {
    tide__drain_feed *feed;
    size_t index;
    tide__ring_header *head; ///< mapped
    tide__ring_room room;    ///< that was looked into last
    uint64_t position;       ///< next slot to take
    uint64_t committed;      ///< next slot that is not in the file
    uint64_t sure_end;       ///< of this round: behind what was there when the round began
    uint64_t end;            ///< of this round: behind what was there a moment later
    bool has_next;           ///< what follows is of the slot at position
    uint8_t op;              ///< as the slot has it, and what follows
    uint8_t kind_flags;
    uint64_t number; ///< block, thread or run
    int64_t t_ns;    ///< no smaller than those of the slots before it
    int64_t own_ns;  ///< as the slot has it
    int64_t thread;  ///< row of table thread; 0: not known
    int64_t n_gap;   ///< events that were lost by what the gaps say
    bool is_broken;  ///< nothing more is taken from it
    bool is_stored;  ///< the file has a position of it
    // of the usual events that are being taken
    uint64_t at;    ///< next slot of it
    int64_t due_ns; ///< when that is due; INT64_MAX: there is none
    tide__drain_ahead ahead;
    // of a feed by address
    tide__drain_went went;
    int64_t range_went; ///< bytes that the last free of a range ended
} tide__drain_ring;

typedef struct tide__drain_probe tide__drain_probe;

/// A call of a call stack, of a feed by address.
typedef struct tide__drain_frame {
    int64_t name_id;
    uint32_t parent_id; ///< number in the feed; 0: it is the outermost
    uint32_t depth;     ///< frames outwards, with itself
} tide__drain_frame;

struct tide__drain_feed {
    tide__feed_reader *reader;
    tide__feed_header *head; ///< mapped
    char *path;              ///< owned
    int64_t process_id;
    int64_t run_id; ///< open run of the process, by its row; 0: none
    int64_t *runs;  ///< [n_runs] rows of its runs, by their numbers in the process - 1, 0: lost; owned
    size_t n_runs, cap_runs;
    uint32_t n_runs_seen, n_facts_seen; ///< in its log
    uint64_t n_seen, n_stored;          ///< both of them; and those that are in the file
    const tide__log_record *waiting;    ///< of the log, mapped: it was given by the reader and is still to be taken
    bool log_is_bad;                    ///< the reader said so, and it is not yet noted
    bool is_alive;                      ///< its producer may still write
    bool is_damaged;
    bool is_ended;    ///< all is in the file; only of a damaged one, which stays where it is
    bool loses;       ///< its rings dropped events: a free may come without its alloc
    bool has_gone;    ///< its process has ended, at end_ns (INT64_MAX: not known)
    bool is_replaced; ///< with has_gone: by exec
    int64_t end_ns;
    bool is_late;                     ///< by address, and it has blocks from before
    bool gives_times;                 ///< its program has a clock of its own, or was late: more of it may come late
    tide__drain_addresses *addresses; ///< NULL: its events say which block
    tide__drain_probe *probe;         ///< of its process, owned; NULL: it is not looked at
    tide__drain_clock clock;
    int64_t *texts;  ///< [n_texts] number in the feed - 1 to number in the file
    int64_t *scopes; ///< [n_scopes]
    size_t n_texts, cap_texts, n_scopes, cap_scopes;
    char **modules; ///< [n_modules] by address: what the files that calls lie in are called here; each owned
    size_t n_modules, cap_modules;
    tide__drain_frame *frames; ///< [n_frames] by address: number in the feed - 1 to what it is
    size_t n_frames, cap_frames;
    tide_map frame_scopes; ///< of frame_scope (drain_frames.c): what the file calls a frame below a scope
    int64_t devices[TIDE__FEED_MAX_DEVICES];       ///< [n_devices]
    int64_t allocators[TIDE__FEED_MAX_ALLOCATORS]; ///< [n_allocators], numbers of texts in the file
    size_t n_devices, n_allocators;
    tide__drain_ring **rings; ///< [n_rings], each owned
    size_t n_rings, cap_rings;
};

/// What is known of a usual event that was collected, beside the event.
typedef struct tide__drain_row {
    tide__drain_ring *ring;
    int64_t t_ns;  ///< as the ring has it, while the event may be later
    uint32_t hint; ///< of the table of live blocks: where its block was, or where there was room for it
    uint8_t tag;
} tide__drain_row;

struct tide__drain {
    tide__drain_options opt; ///< its path is ours
    char *path;
    tide__drain_lock_file lock;
    tide__store *store;
    dev_t file_dev; ///< of the trace when it was opened: it is gone when its name means another file
    ino_t file_ino;
    uint64_t looked_ns;
    tide__process_memory *samples; ///< [n_samples] for the next transaction, owned
    size_t n_samples, cap_samples;
    uint64_t sample_due_ns;

    tide__names names;
    tide__replay replay;
    tide__leaves leaves;
    int64_t last_event, last_ns, last_snapshot;
    tide__process_ends ends; ///< of processes: those in the file, and those whose event is still to be written
    int64_t end_due_ns;      ///< no end that is still to be written is due before; INT64_MAX: there is none
    int64_t n_orphans, n_orphans_stored, n_late, n_late_stored;
    tide__position *positions; ///< [n_positions] as the file had them at open
    size_t n_positions;

    tide__drain_feed **feeds; ///< [n_feeds], each owned
    size_t n_feeds, cap_feeds;
    char **foreign; ///< [n_foreign], owned: names that are no feeds of this trace
    size_t n_foreign, cap_foreign;
    struct timespec dir_changed; ///< of the folder when its feeds were listed
    uint64_t listed_ns;

    tide__drain_ring **active; ///< [n_active] of this round: rings with something to take
    size_t n_active, cap_active;
    int64_t round_ns; ///< of this round: time of the youngest event that was there when it began
    int64_t hold_ns;  ///< of this round: nothing later is taken; INT64_MAX: all is
    struct {
        uint64_t wall_ns;     ///< when it was seen
        int64_t t_ns;         ///< the youngest event by then
    } seen[TIDE__DRAIN_SEEN]; ///< [n_seen] oldest first, over the window
    size_t n_seen;
    bool release;          ///< hold nothing back in the next round
    size_t usual_limit;    ///< usual events to take at once, by what the last ones were like
    tide__drain_row *rows; ///< [TIDE__DRAIN_USUAL] see drain_usual.c
    tide__event *events;   ///< [n_events] taken, not yet with the store; there is room for one more
    size_t n_events;
    bool as_chunks;
    tide_text scratch;

    uint64_t feed_bytes, blocked_ns; ///< of feeds that have ended
    bool has_counted;                ///< the last of them was closed by its process, which had counted
    uint64_t n_heard, n_dropped;     ///< so many events, and of these dropped
    bool has_seen_feed;
    bool has_held_feed;     ///< a feed that a drain before us has not let go of yet
    uint64_t held_since_ns; ///< 0: there was none when feeds were last listed
    uint64_t batch_began_ns, busy_since_ns;
    uint64_t recent_ns; ///< how old a time of the machine's clock may be in this batch
    tide_error failure; ///< what ended the recording
    bool is_removed;    ///< the trace is gone: there is nothing to finish
    char reason[512];   ///< of an earlier drain that failed; empty: none
};

/// Look for feeds beside the trace; `now`: also when the folder did not change.
tide_status tide__drain_list(tide__drain *d, bool now, tide_error *err) TIDE_NODISCARD;
/// How far each feed goes, and all names that what lies before it needs.
tide_status tide__drain_look_at_feeds(tide__drain *d, tide_error *err) TIDE_NODISCARD;
/// Say in the file and to the producer that nothing is taken from this feed (`ring` NULL) or ring any more.
tide_status tide__drain_damage(tide__drain *d, tide__drain_feed *f, tide__drain_ring *ring, const char *what,
                               tide_error *err) TIDE_NODISCARD;
void tide__drain_feed_destroy(tide__drain_feed *f, bool remove);

// ---- registration ----

/// The row of the process whose feed it is, found or made, and what of its runs and facts is in the file. Sees to its
/// own transaction. TIDE_ERR_BAD_INPUT, TIDE_ERR_NO_SPACE: it can be no feed of this trace
tide_status tide__drain_register_process(tide__drain *d, tide__drain_feed *f, tide_error *err) TIDE_NODISCARD;
/// A run or a fact of the log into the file, unless it is there. Sees to its own transaction, and may be called again
/// for the same record after an error. *bad: no producer wrote it
tide_status tide__drain_register(tide__drain *d, tide__drain_feed *f, const tide__log_record *r, const void *payload,
                                 bool *bad, tide_error *err) TIDE_NODISCARD;

// ---- samples of processes ----

/// The process of a feed whose row is known is looked at from now on, where the options say so.
tide_status tide__drain_probe_open(const tide__drain *d, tide__drain_feed *f, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__drain_probe_close(tide__drain_probe *p);
/// Look at all processes, where that is due.
tide_status tide__drain_sample(tide__drain *d, tide_error *err) TIDE_NODISCARD;
/// Whether so many wait that they want a transaction of their own.
bool tide__drain_samples_wait(const tide__drain *d);
/// Inside a transaction. They are given up by the caller, after COMMIT.
tide_status tide__drain_write_samples(const tide__drain *d, tide_error *err) TIDE_NODISCARD;

// ---- call stacks (drain_frames.c) ----

/// A file that calls lie in gets its name in the trace. Sees to its own transaction. *bad: no producer wrote it
tide_status tide__drain_take_module(tide__drain *d, tide__drain_feed *f, const tide__log_record *r, const void *payload,
                                    bool *bad, tide_error *err) TIDE_NODISCARD;
/// Keep a frame of the log. TIDE_ERR_NOMEM; anything else: no producer wrote it
tide_status tide__drain_take_frame(tide__drain *d, tide__drain_feed *f, const tide__log_record *r,
                                   const void *payload) TIDE_NODISCARD;
/// Of an event of a feed by address, made of a slot: its scope becomes that of the frame which asked, below the scope
/// that the program was in, and its stream says what it is about and no more.
tide_status tide__drain_find_caller(tide__drain *d, tide__drain_feed *f, tide__event *e,
                                    tide_error *err) TIDE_NODISCARD;
/// At the end of a process: how many of its events have no stack, or a part of one. Inside a transaction.
tide_status tide__drain_write_stacks(tide__drain *d, const tide__drain_feed *f, tide_error *err) TIDE_NODISCARD;

// ---- ends of processes ----

/// Note that the process of the feed has ended, if it has, and when. Before its heads are read for the last time.
void tide__drain_see_end(const tide__drain *d, tide__drain_feed *f);
/// Whether one has ended of which that is not noted.
bool tide__drain_misses_an_end(const tide__drain *d);
/// Which ends are due, once the heads of a round are known.
void tide__drain_find_ends(tide__drain *d);
/// Take the ends that lie before the slot which `next` stands at; inside a transaction. *n: in and out, events taken
tide_status tide__drain_put_ends(tide__drain *d, const tide__drain_ring *next, size_t *n,
                                 tide_error *err) TIDE_NODISCARD;
/// All of the feed is in the file: how and when its process ended, in the row of it.
tide_status tide__drain_write_end(tide__drain *d, const tide__drain_feed *f, tide_error *err) TIDE_NODISCARD;

// ---- events ----

/// Whether the slot is about the feed itself: a thread, a run.
static inline bool tide__drain_is_control(int op) { return op >= TIDE__SLOT_THREAD && op <= TIDE__SLOT_RUN_END; }
/// What the file calls block `number` of the feed's process.
static inline int64_t tide__drain_block_id(const tide__drain_feed *f, uint64_t number) {
    return (int64_t)(number + ((uint64_t)(f->process_id - 1) << TIDE__BLOCK_ID_BITS));
}
/// Where the slot at `position`, below the ring's end, is.
static inline const tide__slot *tide__drain_place(tide__drain_ring *r, uint64_t position) {
    if (__builtin_expect(position - r->room.begin >= r->room.n, 0))
        r->room = tide__feed_reader_room(r->feed->reader, r->index, position);
    return &r->room.slots[position & r->room.mask];
}
/// The same; NULL when it is another one's.
static inline const tide__slot *tide__drain_slot(tide__drain_ring *r, uint64_t position) {
    const tide__slot *s = tide__drain_place(r, position);
    return atomic_load_explicit(&s->sequence, memory_order_acquire) == (uint32_t)(position + 1) ? s : NULL;
}
/// Take up to `limit` events in the order of time; inside a transaction. *n: taken, control slots not counted.
tide_status tide__drain_merge(tide__drain *d, size_t limit, size_t *n, tide_error *err) TIDE_NODISCARD;
/// Take usual events, *n of them, at most `limit`: in the order, and with all that follows, as the merge would one by
/// one. Stops before the first that is not usual; the active rings then stand at what is next.
tide_status tide__drain_take_usual(tide__drain *d, size_t limit, size_t *n, tide_error *err) TIDE_NODISCARD;
/// A time of the machine's clock in this batch is at most so old: some minutes, or half of what the clock shows where
/// it began not long ago, so that a program's own clock that counts from 0 is told apart soon after the machine was
/// started.
static inline void tide__drain_begin_batch(tide__drain *d, uint64_t now_ns) {
    d->batch_began_ns = now_ns;
    d->recent_ns = now_ns / 2 < TIDE__DRAIN_RECENT_NS ? now_ns / 2 : TIDE__DRAIN_RECENT_NS;
}
/// Whether a slot has a time that its program gave it, of another clock than the machine's.
static inline bool tide__drain_is_foreign(const tide__drain *d, uint64_t ns, unsigned kind_flags) {
    return (kind_flags >> TIDE__SLOT_FLAG_SHIFT & TIDE__SLOT_GIVEN) != 0 &&
           d->batch_began_ns + TIDE__DRAIN_SOON_NS - ns > TIDE__DRAIN_SOON_NS + d->recent_ns;
}
/// Whether a slot that is due at t_ns, with a time of its own before that, is to be kept with both. A thread may be
/// interrupted between reading the machine's clock and its slot: a little of that is no news.
static inline bool tide__drain_is_late(const tide__drain *d, int64_t own_ns, int64_t t_ns, unsigned kind_flags) {
    if (own_ns >= t_ns) return false;
    const bool given = (kind_flags >> TIDE__SLOT_FLAG_SHIFT & TIDE__SLOT_GIVEN) != 0;
    return t_ns - own_ns > (given ? TIDE__DRAIN_LATE_NS : TIDE__DRAIN_ASTRAY_NS) ||
           tide__drain_is_foreign(d, (uint64_t)own_ns, kind_flags);
}
/// Number the event at d->events[d->n_events], replay it, keep it for the file. Its time is raised to that of the event
/// before.
tide_status tide__drain_take(tide__drain *d, const tide__drain_feed *f, tide_error *err) TIDE_NODISCARD;
/// A line of the trace's problems that is of no event; inside a transaction.
tide_status tide__drain_insert_problem(tide__drain *d, const char *what, tide_error *err) TIDE_NODISCARD;
/// Hand the events that wait to the store.
tide_status tide__drain_write_events(tide__drain *d, tide_error *err) TIDE_NODISCARD;
/// One transaction; *n: events in it.
tide_status tide__drain_batch(tide__drain *d, size_t *n, tide_error *err) TIDE_NODISCARD;

// ---- lock ----

/// TIDE_ERR_BUSY: another drain is at it; TIDE_ERR_IO; TIDE_ERR_NOMEM.
tide_status tide__drain_lock(const char *trace_path, tide__drain_lock_file *lock, tide_error *err) TIDE_NODISCARD;
/// Takes one that was never locked.
void tide__drain_unlock(tide__drain_lock_file *lock);

#endif
