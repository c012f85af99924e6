// SPDX-License-Identifier: MIT
//
// Blocks into table block_chunk. See block_pack.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/store/block_chunk.h"
#include "profiler/store/block_pack.h"
#include "profiler/store/cursor.h"
#include "profiler/store/schema.h"

enum {
    OPEN = 64, ///< chunks whose blocks may still end; a power of two
    /// Late ends that wait: rewriting a chunk for many of them costs as much as for one.
    MIN_LATE = 1 << 16,
    MAX_LATE = 1 << 20,
    LATE_PER_CHUNK = 64,
    HOLES = 256,
    PROCESS_SHIFT = 48, ///< of a block's number
};
enum { NO_BLOCK = UINT16_MAX };

typedef struct open_chunk {
    int64_t end_ns; ///< time of its last event
    int64_t min_id, max_id;
    uint16_t block_of[TIDE__CHUNK_MAX_EVENTS]; ///< by event: its block; NO_BLOCK: it made none
    tide__block_ends ends;
} open_chunk;

/// An end of a block whose chunk is in the table.
typedef struct late_end {
    int64_t alloc_event, free_event, free_ns; ///< free_event 0: only its free was requested
    int64_t requested_ns;                     ///< as in tide__block_end
} late_end;

/// Events [first, last] that lay in chunks.
typedef struct range {
    int64_t first, last;
} range;

/// Numbers of a process below the highest that no block has had, the newest ones.
typedef struct numbers {
    int64_t highest;
    bool has_forgotten; ///< there were more holes
    size_t n;           ///< that were put in
    range holes[HOLES]; ///< ring; first > last: there is none any more
} numbers;

struct tide__block_pack {
    const tide__sql *sql;
    tide_status status;
    tide_error error;
    open_chunk *open[OPEN]; ///< ring; owned, made when first used
    size_t first, n;        ///< of `open`
    bool is_in_chunk;       ///< the last of them is what events come from
    range *ranges;          ///< [n_ranges], owned
    size_t n_ranges, cap_ranges;
    late_end *late; ///< [n_late], owned
    size_t n_late, cap_late, n_written;
    numbers **numbers; ///< [n_numbers] by process; NULL: no block of it yet; owned
    size_t n_numbers, cap_numbers;
    sqlite3_stmt *insert, *find, *update;
    tide__block_ends ends; ///< of a chunk that is read again
    uint8_t bytes[TIDE__BLOCK_CHUNK_MAX_BYTES];
};

// ---- the table ----

static tide_status set_version(const tide__sql *s, bool is_packed, tide_error *err) {
    TIDE_TRY(tide__sql_exec(s,
                            is_packed ? "PRAGMA user_version = " TIDE__TRACE_PACKED_TEXT
                                      : "PRAGMA user_version = " TIDE__TRACE_PLAIN_TEXT,
                            err));
    TIDE_TRY(tide__sql_exec(s,
                            is_packed ? "UPDATE meta SET value = '" TIDE__TRACE_PACKED_TEXT "' WHERE key = 'version'"
                                      : "UPDATE meta SET value = '" TIDE__TRACE_PLAIN_TEXT "' WHERE key = 'version'",
                            err));
    return tide__sql_exec(s,
                          is_packed ? "INSERT OR REPLACE INTO meta(key, value) VALUES('packed', '" TIDE__PACKED_TEXT
                                      "')"
                                    : "DELETE FROM meta WHERE key = 'packed'",
                          err);
}

tide_status tide__block_pack_make_table(const tide__sql *s, tide_error *err) {
    TIDE_TRY(tide__sql_exec(s, "DROP TABLE IF EXISTS main.block_chunk", err));
    TIDE_TRY(tide__sql_exec(s, tide__schema_block_chunk()->sql, err));
    return set_version(s, true, err);
}

tide_status tide__block_pack_leave_table(const tide__sql *s, tide_error *err) { return set_version(s, false, err); }

// ---- one pack ----

tide_status tide__block_pack_create(const tide__sql *s, tide__block_pack **out, tide_error *err) {
    tide__block_pack *p;
    TIDE_TRY(TIDE_NEW(&p, 1, err, "to finish '%s'", s->path));
    p->sql = s;
    tide_status st = tide__sql_prepare(s, "INSERT INTO main.block_chunk VALUES(?, ?, ?, ?, ?, ?)", &p->insert, err);
    if (st == TIDE_OK)
        st = tide__sql_prepare(s,
                               "SELECT b.data, e.end_ns FROM main.block_chunk b JOIN main.event_chunk e "
                               "USING(first_event) WHERE b.first_event <= ? ORDER BY b.first_event DESC LIMIT 1",
                               &p->find, err);
    if (st == TIDE_OK)
        st = tide__sql_prepare(s, "UPDATE main.block_chunk SET never_freed = ?2, data = ?3 WHERE first_event = ?1",
                               &p->update, err);
    if (st != TIDE_OK) {
        tide__block_pack_destroy(p);
        return st;
    }
    *out = p;
    return TIDE_OK;
}

void tide__block_pack_destroy(tide__block_pack *p) {
    if (p == NULL) return;
    sqlite3_finalize(p->insert);
    sqlite3_finalize(p->find);
    sqlite3_finalize(p->update);
    for (size_t i = 0; i < OPEN; i++) tide_host_free(p->open[i]);
    for (size_t i = 0; i < p->n_numbers; i++) tide_host_free(p->numbers[i]);
    tide_host_free(p->numbers);
    tide_host_free(p->ranges);
    tide_host_free(p->late);
    tide_host_free(p);
}

tide_status tide__block_pack_status(tide__block_pack *p, tide_error *err) {
    if (p->status != TIDE_OK && err != NULL) *err = p->error;
    return p->status;
}

/// The first failure stays.
static void note(tide__block_pack *p, tide_status st, const tide_error *err) {
    if (p->status != TIDE_OK || st == TIDE_OK) return;
    p->status = st;
    p->error = *err;
}

// ---- into the table ----

static int64_t count_never_freed(const tide__block_ends *b) {
    int64_t n = 0;
    for (size_t i = 0; i < b->n; i++) n += b->items[i].distance == 0;
    return n;
}

static tide_status write_chunk(tide__block_pack *p, const open_chunk *c, tide_error *err) {
    if (c->ends.n == 0) return TIDE_OK;
    const size_t n_bytes = tide__block_chunk_encode(&c->ends, p->bytes);
    TIDE_ASSERT(n_bytes <= sizeof p->bytes && c->min_id <= c->max_id);
    sqlite3_bind_int64(p->insert, 1, c->ends.first_event);
    sqlite3_bind_int64(p->insert, 2, c->ends.n);
    sqlite3_bind_int64(p->insert, 3, count_never_freed(&c->ends));
    sqlite3_bind_int64(p->insert, 4, c->min_id);
    sqlite3_bind_int64(p->insert, 5, c->max_id);
    sqlite3_bind_blob64(p->insert, 6, p->bytes, n_bytes, SQLITE_STATIC);
    p->n_written++;
    return tide__sql_run(p->sql, p->insert, err);
}

/// The oldest open chunk is closed.
static void close_oldest(tide__block_pack *p) {
    tide_error err = TIDE_ERROR_INIT;
    TIDE_ASSERT(p->n > 0 && p->n <= OPEN && p->open[p->first] != NULL);
    if (p->status == TIDE_OK) note(p, write_chunk(p, p->open[p->first], &err), &err);
    p->first = (p->first + 1) % OPEN;
    p->n--;
}

// ---- ends of blocks whose chunk is in the table ----

static int by_alloc(const void *a, const void *b) {
    const int64_t x = ((const late_end *)a)->alloc_event, y = ((const late_end *)b)->alloc_event;
    return (x > y) - (x < y);
}

static tide__block_end *end_at(tide__block_ends *b, int64_t alloc_event) {
    size_t lo = 0, hi = b->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (b->first_event + b->items[mid].at < alloc_event) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < b->n && b->first_event + b->items[lo].at == alloc_event ? &b->items[lo] : NULL;
}

/// Put the first of late[n], sorted, and all others of its chunk in. *n_done: how many
static tide_status put_late_of_chunk(tide__block_pack *p, const late_end *late, size_t n, size_t *n_done,
                                     tide_error *err) {
    bool has_row;
    *n_done = 0;
    sqlite3_bind_int64(p->find, 1, late[0].alloc_event);
    tide_status st = tide__sql_step(p->sql, p->find, &has_row, err);
    if (st == TIDE_OK && (!has_row || !tide__block_chunk_decode(sqlite3_column_blob(p->find, 0),
                                                                (size_t)sqlite3_column_bytes(p->find, 0), &p->ends)))
        st = tide__cursor_bad(p->sql, "block_chunk", late[0].alloc_event, "a chunk of blocks is damaged", err);
    const int64_t end_ns = has_row ? sqlite3_column_int64(p->find, 1) : 0;
    sqlite3_reset(p->find);
    TIDE_TRY(st);
    tide__block_ends *b = &p->ends;
    for (size_t i = 0; i < n && late[i].alloc_event < b->first_event + b->n_events; i++, (*n_done)++) {
        tide__block_end *end = end_at(b, late[i].alloc_event);
        if (end == NULL)
            return tide__cursor_bad(p->sql, "block_chunk", b->first_event, "a chunk of blocks is damaged", err);
        end->requested_ns = late[i].requested_ns;
        if (late[i].free_event == 0) continue;
        end->distance = late[i].free_event - late[i].alloc_event;
        end->behind_ns = late[i].free_ns - end_ns;
    }
    if (*n_done == 0)
        return tide__cursor_bad(p->sql, "block_chunk", late[0].alloc_event, "a chunk of blocks is not there", err);
    const size_t n_bytes = tide__block_chunk_encode(b, p->bytes);
    sqlite3_bind_int64(p->update, 1, b->first_event);
    sqlite3_bind_int64(p->update, 2, count_never_freed(b));
    sqlite3_bind_blob64(p->update, 3, p->bytes, n_bytes, SQLITE_STATIC);
    return tide__sql_run(p->sql, p->update, err);
}

static tide_status put_late(tide__block_pack *p, tide_error *err) {
    if (p->n_late > 1) qsort(p->late, p->n_late, sizeof *p->late, by_alloc);
    for (size_t i = 0, n_done; i < p->n_late; i += n_done)
        TIDE_TRY(put_late_of_chunk(p, p->late + i, p->n_late - i, &n_done, err));
    p->n_late = 0;
    return TIDE_OK;
}

static size_t max_late(const tide__block_pack *p) {
    const size_t n = p->n_written * LATE_PER_CHUNK;
    return n < MIN_LATE ? MIN_LATE : n > MAX_LATE ? MAX_LATE : n;
}

static void add_late(tide__block_pack *p, const late_end *late) {
    tide_error err = TIDE_ERROR_INIT;
    if (p->status == TIDE_OK && p->n_late >= max_late(p)) note(p, put_late(p, &err), &err);
    if (p->status != TIDE_OK) return;
    if (tide_host_grow(&p->late, &p->cap_late, p->n_late + 1, sizeof *p->late) != TIDE_OK) {
        note(p, TIDE_NO_MEMORY(&err, "to finish '%s'", p->sql->path), &err);
        return;
    }
    p->late[p->n_late++] = *late;
}

// ---- chunks ----

static tide_status add_range(tide__block_pack *p, int64_t first, int64_t last, tide_error *err) {
    if (p->n_ranges > 0 && p->ranges[p->n_ranges - 1].last + 1 == first) {
        p->ranges[p->n_ranges - 1].last = last;
        return TIDE_OK;
    }
    TIDE_TRY(TIDE_GROW(&p->ranges, &p->cap_ranges, p->n_ranges + 1, err, "to finish '%s'", p->sql->path));
    p->ranges[p->n_ranges++] = (range){first, last};
    return TIDE_OK;
}

static bool is_in_ranges(const tide__block_pack *p, int64_t event) {
    size_t lo = 0, hi = p->n_ranges;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (p->ranges[mid].last < event) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < p->n_ranges && p->ranges[lo].first <= event;
}

tide_status tide__block_pack_begin(tide__block_pack *p, const tide__event *events, size_t n, tide_error *err) {
    if (p->n == OPEN) close_oldest(p);
    TIDE_TRY(tide__block_pack_status(p, err));
    TIDE_TRY(add_range(p, events[0].id, events[n - 1].id, err));
    open_chunk **place = &p->open[(p->first + p->n) % OPEN];
    if (*place == NULL) TIDE_TRY(TIDE_NEW(place, 1, err, "to finish '%s'", p->sql->path));
    open_chunk *c = *place;
    c->end_ns = events[n - 1].t_ns;
    c->min_id = INT64_MAX;
    c->max_id = INT64_MIN;
    memset(c->block_of, 0xff, n * sizeof c->block_of[0]);
    c->ends.first_event = events[0].id;
    c->ends.n_events = (uint32_t)n;
    c->ends.n = 0;
    p->n++;
    p->is_in_chunk = true;
    return TIDE_OK;
}

void tide__block_pack_leave(tide__block_pack *p) { p->is_in_chunk = false; }

/// The open chunk that `event` lies in; NULL: none.
static open_chunk *open_of(const tide__block_pack *p, int64_t event) {
    size_t lo = 0, hi = p->n; // the last one that begins at or before it
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (p->open[(p->first + mid) % OPEN]->ends.first_event <= event) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == 0) return NULL;
    open_chunk *c = p->open[(p->first + lo - 1) % OPEN];
    return event - c->ends.first_event < c->ends.n_events ? c : NULL;
}

// ---- blocks ----

static void add_hole(numbers *n, int64_t first, int64_t last) {
    if (first > last) return;
    range *place = &n->holes[n->n++ % HOLES];
    n->has_forgotten = n->has_forgotten || (n->n > HOLES && place->first <= place->last);
    *place = (range){first, last};
}

/// Whether a block before had this number, as far as is remembered: numbers rise, but for those that threads take at
/// the same time.
static bool is_used(numbers *n, int64_t id) {
    if (id > n->highest) {
        add_hole(n, n->highest + 1, id - 1);
        n->highest = id;
        return false;
    }
    for (size_t i = n->n; i-- > 0 && n->n - i <= HOLES;) {
        range *hole = &n->holes[i % HOLES];
        if (id < hole->first || id > hole->last) continue;
        const int64_t last = hole->last;
        hole->last = id - 1;
        add_hole(n, id + 1, last);
        return false;
    }
    return !n->has_forgotten;
}

static bool has_number_before(tide__block_pack *p, int64_t id) {
    const size_t process = (size_t)(id >> PROCESS_SHIFT);
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = TIDE_OK;
    if (process >= p->n_numbers) {
        st = TIDE_GROW(&p->numbers, &p->cap_numbers, process + 1, &err, "to finish '%s'", p->sql->path);
        while (st == TIDE_OK && p->n_numbers <= process) p->numbers[p->n_numbers++] = NULL;
    }
    if (st == TIDE_OK && p->numbers[process] == NULL) {
        st = TIDE_NEW(&p->numbers[process], 1, &err, "to finish '%s'", p->sql->path);
        if (st == TIDE_OK) p->numbers[process]->highest = (int64_t)(process << PROCESS_SHIFT) - 1;
    }
    note(p, st, &err);
    return st == TIDE_OK && is_used(p->numbers[process], id);
}

bool tide__block_pack_alloc(tide__block_pack *p, const tide__event *e) {
    const bool is_second = has_number_before(p, e->block_id);
    if (!p->is_in_chunk) return false;
    open_chunk *c = p->open[(p->first + p->n - 1) % OPEN];
    const int64_t at = e->id - c->ends.first_event, id = is_second ? -e->id : e->block_id;
    c->block_of[at] = (uint16_t)c->ends.n;
    c->ends.items[c->ends.n++] = (tide__block_end){.at = (uint16_t)at, .is_second = is_second, .requested_ns = -1};
    if (id < c->min_id) c->min_id = id;
    if (id > c->max_id) c->max_id = id;
    return true;
}

bool tide__block_pack_end(tide__block_pack *p, const tide__block_row *row) {
    const int64_t requested_ns = row->free_requested_ns != 0 ? row->free_requested_ns - row->alloc_ns : -1;
    open_chunk *c = open_of(p, row->alloc_event);
    if (c == NULL) {
        if (!is_in_ranges(p, row->alloc_event)) return false;
        const late_end late = {row->alloc_event, row->free_event, row->free_ns, requested_ns};
        if (row->free_event != 0 || requested_ns >= 0) add_late(p, &late);
        return true;
    }
    const uint16_t place = c->block_of[row->alloc_event - c->ends.first_event];
    if (place == NO_BLOCK) return false;
    tide__block_end *end = &c->ends.items[place];
    end->requested_ns = requested_ns;
    if (row->free_event == 0) return true;
    end->distance = row->free_event - row->alloc_event;
    if (row->free_event >= c->ends.first_event + c->ends.n_events) end->behind_ns = row->free_ns - c->end_ns;
    return true;
}

tide_status tide__block_pack_finish(tide__block_pack *p, tide_error *err) {
    while (p->n > 0) close_oldest(p);
    TIDE_TRY(tide__block_pack_status(p, err));
    return put_late(p, err);
}
