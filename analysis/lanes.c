// SPDX-License-Identifier: MIT
//
// Which process of a trace differs from the others. See lanes.h.
#include "analysis/lanes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"

// ---- medians ----

/// Values of lanes in one column, rising, and where each lane's is.
typedef struct ranking {
    struct ranked {
        uint64_t bytes;
        size_t lane;
    } * all;       ///< [n], owned
    size_t *place; ///< [lanes], owned; SIZE_MAX: the lane is not there
    size_t n;
} ranking;

static int by_bytes(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

/// The middle of two, without overflow.
static uint64_t middle(uint64_t a, uint64_t b) { return a + (b - a) / 2; }

/// The i-th value that is not that of the lane at `place`.
static const struct ranked *other(const ranking *r, size_t place, size_t i) { return &r->all[i + (i >= place)]; }

/// Median of all but the lane at `place` (r->n: of all). The caller has made sure that there is one.
static uint64_t median_without(const ranking *r, size_t place) {
    const size_t n = r->n - (place < r->n);
    TIDE_ASSERT(n > 0);
    const uint64_t upper = other(r, place, n / 2)->bytes;
    return n % 2 != 0 ? upper : middle(other(r, place, n / 2 - 1)->bytes, upper);
}

/// Highest in a column and in those beside it; not known where the lane is not there in the column itself.
static uint64_t around(const tide_trace_lane *lane, size_t column, size_t n_columns) {
    if (lane->most[column] == TIDE_UNKNOWN_BYTES) return TIDE_UNKNOWN_BYTES;
    uint64_t most = lane->most[column];
    const size_t first = column > 0 ? column - 1 : 0, last = column + 1 < n_columns ? column + 1 : column;
    for (size_t c = first; c <= last; c++)
        if (lane->most[c] != TIDE_UNKNOWN_BYTES && lane->most[c] > most) most = lane->most[c];
    return most;
}

static void rank(const tide_trace_lanes *l, size_t column, bool with_neighbours, ranking *r) {
    r->n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const uint64_t bytes = with_neighbours ? around(&l->items[i], column, l->n_columns) : l->items[i].most[column];
        r->place[i] = SIZE_MAX;
        if (bytes != TIDE_UNKNOWN_BYTES) r->all[r->n++] = (struct ranked){bytes, i};
    }
    if (r->n > 1) qsort(r->all, r->n, sizeof *r->all, by_bytes);
    for (size_t i = 0; i < r->n; i++) r->place[r->all[i].lane] = i;
}

// ---- how far each is from the others ----

static void differ(tide_lane_row *row, uint64_t has, uint64_t typical, uint64_t t_ns) {
    const uint64_t far = row->differs_bytes < 0 ? (uint64_t)-row->differs_bytes : (uint64_t)row->differs_bytes;
    const uint64_t now = has > typical ? has - typical : typical - has;
    if (now <= far || now > INT64_MAX) return;
    row->differs_bytes = has > typical ? (int64_t)now : -(int64_t)now;
    row->differs_ns = t_ns;
    row->typical_bytes = typical;
}

/// `plain`: of the column alone; `wide`: with those beside it.
static void take_column(tide_lanes *out, size_t column, const ranking *plain, const ranking *wide) {
    const tide_trace_lanes *l = &out->trace;
    out->typical[column] = plain->n > 0 ? median_without(plain, plain->n) : TIDE_UNKNOWN_BYTES;
    for (size_t i = 0; i < l->n; i++) {
        const tide_trace_lane *lane = &l->items[i];
        if (plain->place[i] == SIZE_MAX || plain->n < 2) continue;
        const uint64_t others_around = median_without(wide, wide->place[i]),
                       others = median_without(plain, plain->place[i]), own_around = around(lane, column, l->n_columns);
        if (lane->most[column] > others_around)
            differ(&out->rows[i], lane->most[column], others_around, lane->most_ns[column]);
        else if (own_around < others)
            differ(&out->rows[i], own_around, others,
                   l->items[other(plain, plain->place[i], (plain->n - 1) / 2)->lane].most_ns[column]);
    }
}

/// Of two lanes each is as far from the other: it is said of the one that has more.
static size_t find_outlier(const tide_lanes *out) {
    size_t found = SIZE_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < out->trace.n; i++) {
        const int64_t bytes = out->rows[i].differs_bytes;
        const uint64_t far = bytes < 0 ? (uint64_t)-bytes : (uint64_t)bytes;
        if (far > most || (far == most && far > 0 && bytes > 0 && out->rows[found].differs_bytes < 0)) found = i;
        if (far > most) most = far;
    }
    return found;
}

static tide_status compare_columns(tide_lanes *out, tide_error *err) {
    const tide_trace_lanes *l = &out->trace;
    ranking r[2] = {{0}, {0}};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < 2; i++) {
        st = TIDE_NEW(&r[i].all, l->n + 1, err, "for %zu lanes", l->n);
        if (st == TIDE_OK) st = TIDE_NEW(&r[i].place, l->n + 1, err, "for %zu lanes", l->n);
    }
    for (size_t c = 0; st == TIDE_OK && c < l->n_columns; c++) {
        rank(l, c, false, &r[0]);
        rank(l, c, true, &r[1]);
        take_column(out, c, &r[0], &r[1]);
    }
    for (size_t i = 0; i < 2; i++) {
        tide_host_free(r[i].all);
        tide_host_free(r[i].place);
    }
    return st;
}

// ---- by what ----

/// Bytes of one name in one lane.
typedef struct share {
    const char *name; ///< borrowed from the live set
    size_t lane;
    uint64_t bytes;
} share;

static int by_name(const void *a, const void *b) {
    const share *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->lane > y->lane) - (x->lane < y->lane);
}

static size_t lane_of(const tide_trace_lanes *l, uint64_t block_id) {
    const uint32_t process = tide_trace_process_of(block_id);
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].process == process) return i;
    return SIZE_MAX;
}

/// What is alive, summed by name and lane. *out [*n] is owned.
static tide_status share_out(const tide_trace_lanes *l, const tide_live_set *set, share **out, size_t *n,
                             tide_error *err) {
    TIDE_TRY(TIDE_NEW(out, set->n + 1, err, "for %zu blocks", set->n));
    *n = 0;
    for (size_t i = 0; i < set->n; i++) {
        const size_t lane = lane_of(l, set->items[i].block_id);
        if (lane != SIZE_MAX) (*out)[(*n)++] = (share){set->items[i].name, lane, set->items[i].requested_bytes};
    }
    if (*n > 1) qsort(*out, *n, sizeof **out, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        share *last = kept > 0 ? &(*out)[kept - 1] : NULL;
        if (last != NULL && by_name(last, &(*out)[i]) == 0)
            last->bytes += (*out)[i].bytes;
        else
            (*out)[kept++] = (*out)[i];
    }
    *n = kept;
    return TIDE_OK;
}

/// One name: what the outlier has of it, and the median of the others, those included that have none.
static void take_name(const tide_lanes *out, const share *shares, size_t n, ranking *r, tide_lane_cause *cause) {
    const tide_trace_lanes *l = &out->trace;
    r->n = l->n;
    for (size_t i = 0; i < l->n; i++) r->all[i] = (struct ranked){0, i};
    for (size_t i = 0; i < n; i++) r->all[shares[i].lane].bytes = shares[i].bytes;
    cause->bytes = r->all[out->outlier].bytes;
    qsort(r->all, r->n, sizeof *r->all, by_bytes);
    size_t place = 0;
    while (r->all[place].lane != out->outlier) place++;
    cause->typical_bytes = median_without(r, place);
}

static int64_t more_of(const tide_lane_cause *c) { return (int64_t)(c->bytes - c->typical_bytes); }

/// Keep the causes that tell most, in the direction in which the lane differs.
static tide_status keep(tide_lanes *out, const tide_lane_cause *cause, const char *name, tide_error *err) {
    const bool has_more = out->rows[out->outlier].differs_bytes > 0;
    const int64_t tells = has_more ? more_of(cause) : -more_of(cause);
    if (tells <= 0) return TIDE_OK;
    size_t at = out->n_causes;
    while (at > 0 && tells > (has_more ? more_of(&out->causes[at - 1]) : -more_of(&out->causes[at - 1]))) at--;
    if (at == TIDE_LANES_CAUSES) return TIDE_OK;
    tide_lane_cause kept = *cause;
    TIDE_TRY(TIDE_COPY_TEXT(&kept.name, name, err, "for the lanes"));
    if (out->n_causes == TIDE_LANES_CAUSES) tide_host_free(out->causes[--out->n_causes].name);
    memmove(&out->causes[at + 1], &out->causes[at], (out->n_causes - at) * sizeof *out->causes);
    out->causes[at] = kept;
    out->n_causes++;
    return TIDE_OK;
}

static tide_status find_causes(tide_trace *t, tide_lanes *out, tide_error *err) {
    const size_t n_lanes = out->trace.n;
    tide_live_set set = {0};
    share *shares = NULL;
    size_t n = 0;
    ranking r = {0};
    TIDE_TRY(TIDE_NEW(&out->causes, TIDE_LANES_CAUSES, err, "for %zu lanes", n_lanes));
    TIDE_TRY(tide_trace_live_set(t, out->rows[out->outlier].differs_ns, &set, err));
    tide_status st = share_out(&out->trace, &set, &shares, &n, err);
    if (st == TIDE_OK) st = TIDE_NEW(&r.all, n_lanes, err, "for %zu lanes", n_lanes);
    for (size_t i = 0, end; st == TIDE_OK && i < n; i = end) {
        tide_lane_cause cause = {0};
        for (end = i + 1; end < n && strcmp(shares[end].name, shares[i].name) == 0;) end++;
        take_name(out, &shares[i], end - i, &r, &cause);
        st = keep(out, &cause, shares[i].name, err);
    }
    tide_host_free(r.all);
    tide_host_free(shares);
    tide_live_set_deinit(&set);
    return st;
}

// ---- the whole ----

static tide_status make(tide_trace *t, tide_lanes *out, tide_error *err) {
    TIDE_TRY(tide_trace_get_lanes(t, TIDE_LANES_COLUMNS, &out->trace, err));
    TIDE_TRY(TIDE_NEW(&out->rows, out->trace.n + 1, err, "for %zu lanes", out->trace.n));
    TIDE_TRY(TIDE_NEW(&out->typical, out->trace.n_columns, err, "for %zu lanes", out->trace.n));
    for (size_t i = 0; i < out->trace.n; i++)
        out->rows[i] = (tide_lane_row){.lane = &out->trace.items[i], .differs_ns = UINT64_MAX};
    TIDE_TRY(compare_columns(out, err));
    out->outlier = find_outlier(out);
    return out->outlier != SIZE_MAX ? find_causes(t, out, err) : TIDE_OK;
}

tide_status tide_lanes_make(tide_trace *t, tide_lanes *out, tide_error *err) {
    *out = (tide_lanes){.outlier = SIZE_MAX};
    const tide_status st = make(t, out, err);
    if (st != TIDE_OK) tide_lanes_deinit(out);
    return st;
}

void tide_lanes_deinit(tide_lanes *l) {
    for (size_t i = 0; i < l->n_causes; i++) tide_host_free(l->causes[i].name);
    tide_host_free(l->causes);
    tide_host_free(l->typical);
    tide_host_free(l->rows);
    tide_trace_lanes_deinit(&l->trace);
    *l = (tide_lanes){.outlier = SIZE_MAX};
}

// ---- tables ----

static const tide_trace_lane *lane_at(const void *row) { return ((const tide_lane_row *)row)->lane; }

static uint64_t since(const tide_cell *v, uint64_t t_ns) {
    const tide_lanes *l = v->table->data;
    return t_ns > l->trace.begin_ns ? t_ns - l->trace.begin_ns : 0;
}

static void get_name(const void *row, tide_cell *v) { tide_cell_text(v, lane_at(row)->name); }
static void get_pid(const void *row, tide_cell *v) {
    if (lane_at(row)->pid > 0) tide_cell_count(v, (uint64_t)lane_at(row)->pid);
}
static void get_rank(const void *row, tide_cell *v) {
    if (lane_at(row)->rank >= 0) tide_cell_count(v, (uint64_t)lane_at(row)->rank);
}
static void get_blocks(const void *row, tide_cell *v) { tide_cell_count(v, lane_at(row)->n_blocks); }
/// A moment of a lane that has blocks.
static void set_since(const void *row, uint64_t t_ns, tide_cell *v) {
    if (lane_at(row)->is_there && t_ns != UINT64_MAX) tide_cell_count(v, since(v, t_ns));
}
static void get_begin(const void *row, tide_cell *v) { set_since(row, lane_at(row)->begin_ns, v); }
static void get_end(const void *row, tide_cell *v) { set_since(row, lane_at(row)->end_ns, v); }
static void get_peak(const void *row, tide_cell *v) { tide_cell_bytes(v, lane_at(row)->peak_bytes); }
static void get_peak_at(const void *row, tide_cell *v) { set_since(row, lane_at(row)->peak_ns, v); }
static void get_mean(const void *row, tide_cell *v) { tide_cell_bytes(v, lane_at(row)->mean_bytes); }
static void get_end_bytes(const void *row, tide_cell *v) { tide_cell_bytes(v, lane_at(row)->end_bytes); }
static void get_differs(const void *row, tide_cell *v) {
    const tide_lane_row *r = row;
    v->known = r->differs_ns != UINT64_MAX;
    v->i = r->differs_bytes;
}
static void get_differs_at(const void *row, tide_cell *v) {
    set_since(row, ((const tide_lane_row *)row)->differs_ns, v);
}
static void get_typical(const void *row, tide_cell *v) {
    const tide_lane_row *r = row;
    if (r->differs_ns != UINT64_MAX) tide_cell_bytes(v, r->typical_bytes);
}

tide_table tide_table_of_lanes(const tide_lanes *l) {
    static const tide_column columns[] = {
        {"name", "Lane", TIDE_UNIT_NAME, .get = get_name, .may_be_cut = true},
        {"pid", NULL, TIDE_UNIT_COUNT, .get = get_pid},
        {"rank", NULL, TIDE_UNIT_COUNT, .get = get_rank},
        {"blocks", "Blocks", TIDE_UNIT_COUNT, .get = get_blocks},
        {"begin_ns", "From", TIDE_UNIT_DURATION, .get = get_begin},
        {"end_ns", "To", TIDE_UNIT_DURATION, .get = get_end},
        {"peak_bytes", "Peak", TIDE_UNIT_BYTES, .get = get_peak},
        {"peak_ns", "At", TIDE_UNIT_DURATION, .get = get_peak_at},
        {"mean_bytes", "Mean", TIDE_UNIT_BYTES, .get = get_mean},
        {"end_bytes", "At the end", TIDE_UNIT_BYTES, .get = get_end_bytes},
        {"differs_bytes", "Differs by", TIDE_UNIT_CHANGE, .get = get_differs},
        {"differs_ns", "At", TIDE_UNIT_DURATION, .get = get_differs_at},
        {"typical_bytes", "Others then", TIDE_UNIT_BYTES, .get = get_typical},
    };
    return (tide_table){.name = "lanes",
                        TIDE_COLUMNS(columns),
                        .n_rows = l->trace.n,
                        .rows = l->rows,
                        .row_bytes = sizeof *l->rows,
                        .data = l};
}

static void get_more(const void *row, tide_cell *v) {
    v->known = true;
    v->i = more_of(row);
}

tide_table tide_table_of_lane_causes(const tide_lanes *l) {
    static const tide_column columns[] = {
        {"name", "What", TIDE_UNIT_NAME, TIDE_AT(tide_lane_cause, name), .may_be_cut = true},
        {"bytes", "Here", TIDE_UNIT_BYTES, TIDE_AT(tide_lane_cause, bytes)},
        {"typical_bytes", "Others", TIDE_UNIT_BYTES, TIDE_AT(tide_lane_cause, typical_bytes)},
        {"more_bytes", "More", TIDE_UNIT_CHANGE, .get = get_more},
    };
    return (tide_table){.name = "lane_causes",
                        TIDE_COLUMNS(columns),
                        .n_rows = l->n_causes,
                        .rows = l->causes,
                        .row_bytes = sizeof *l->causes,
                        .data = l};
}

void tide_lanes_say(const tide_lanes *l, tide_text *out) {
    if (l->outlier == SIZE_MAX) return;
    const tide_lane_row *row = &l->rows[l->outlier];
    const bool has_more = row->differs_bytes > 0;
    const uint64_t bytes = has_more ? (uint64_t)row->differs_bytes : (uint64_t)-row->differs_bytes;
    char amount[24], at[32];
    tide_text_addf(out, "%s has up to %s %s than %s, %s from the begin", row->lane->name,
                   tide_format_bytes(bytes, amount, sizeof amount), has_more ? "more" : "less",
                   l->trace.n > 2 ? "the median of the others" : "the other",
                   tide_format_ns(row->differs_ns - l->trace.begin_ns, "us", at, sizeof at));
}
