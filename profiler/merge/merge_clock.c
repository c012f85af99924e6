// SPDX-License-Identifier: MIT
//
// By how much each lane is moved. See merge.h.
//
// Marks: a name that two traces have equally often gives pairs, the first with the first, the second with the second;
// a name that one has more often than the other gives none, for which of them is missing is not known. The lane is
// moved by the median of the distances, which one straggler among many marks does not change.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"
#include "profiler/merge/merge_internal.h"

#define MAX_NS (INT64_C(1) << 62)

const char *tide_merge_clock_name(tide_merge_clock clock) {
    static const char *const names[] = {
#define XX(name, text) [TIDE_MERGE_##name] = (text),
        TIDE_MERGE_CLOCK_MAP(XX)
#undef XX
    };
    TIDE_ASSERT((int)clock >= 0 && clock < TIDE_N_MERGE_CLOCKS);
    return names[clock];
}

// ---- one machine, dates ----

/// A trace without events has nothing to be moved, and stands in no way.
static bool has_events(const tide__merge_source *s) { return s->t->last_event >= s->t->first_event; }

/// The one that keeps its clock: the first that has events.
static size_t first_of(const tide__merge_source *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (has_events(&s[i])) return i;
    return 0;
}

/// The first that is not known to be of the boot of the one that keeps its clock; NULL: all are.
static const tide__merge_source *of_other_boot(const tide__merge_source *s, size_t n) {
    const char *boot_id = s[first_of(s, n)].boot_id;
    for (size_t i = 0; i < n; i++)
        if (has_events(&s[i]) && (s[i].boot_id[0] == '\0' || strcmp(s[i].boot_id, boot_id) != 0)) return &s[i];
    return NULL;
}

bool tide__merge_of_one_boot(const tide__merge_source *s, size_t n) { return of_other_boot(s, n) == NULL; }

/// The first that does not know the date; NULL: all do.
static const tide__merge_source *without_date(const tide__merge_source *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (has_events(&s[i]) && !s[i].has_wall) return &s[i];
    return NULL;
}

static int64_t wall_shift(const tide__merge_source *s, size_t n, size_t i) {
    return has_events(&s[i]) ? s[i].wall_ns - s[first_of(s, n)].wall_ns : 0;
}

/// Whether some lane lies apart from all others by date: runs of two days, which nothing is learnt of side by side.
/// *which: that lane.
static bool one_lies_apart(const tide__merge_source *s, size_t n, size_t *which) {
    size_t n_with = 0;
    for (size_t i = 0; i < n; i++) n_with += has_events(&s[i]);
    for (*which = 0; n_with > 1 && *which < n; ++*which) {
        bool meets = !has_events(&s[*which]);
        const int64_t shift = wall_shift(s, n, *which);
        for (size_t i = 0; i < n && !meets; i++) {
            const int64_t other = wall_shift(s, n, i);
            meets = i != *which && has_events(&s[i]) && s[*which].t->begin_ns + shift <= s[i].t->end_ns + other &&
                    s[i].t->begin_ns + other <= s[*which].t->end_ns + shift;
        }
        if (!meets) return true;
    }
    return false;
}

// ---- marks ----

/// Times of the marks of one trace by name, in order.
typedef struct marks {
    tide_trace_mark *all; ///< [n], owned
    size_t n;
    tide_strmap names; ///< name -> number, from 0
    uint32_t *of;      ///< [n] number of its name, owned
    uint32_t *counts;  ///< [names], owned
    size_t n_names;
} marks;

static void marks_deinit(marks *m) {
    tide_trace_marks_free(m->all);
    tide_strmap_deinit(&m->names);
    tide_host_free(m->of);
    tide_host_free(m->counts);
}

static tide_status marks_read(const tide__merge_source *s, marks *m, tide_error *err) {
    TIDE_TRY(tide_trace_marks(s->t, &m->all, &m->n, err));
    TIDE_TRY(TIDE_NEW(&m->of, m->n + 1, err, "for the marks of '%s'", tide__merge_name(s)));
    TIDE_TRY(TIDE_NEW(&m->counts, m->n + 1, err, "for the marks of '%s'", tide__merge_name(s)));
    for (size_t i = 0; i < m->n; i++) {
        uint64_t number;
        if (!tide_strmap_get(&m->names, m->all[i].name, &number)) {
            number = m->n_names++;
            if (tide_strmap_put(&m->names, m->all[i].name, number) != TIDE_OK)
                return TIDE_NO_MEMORY(err, "for the marks of '%s'", tide__merge_name(s));
        }
        m->of[i] = (uint32_t)number;
        m->counts[number]++;
    }
    return TIDE_OK;
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/// Distances of the marks of `b` behind their partners in `a`, rising; `out` has room for all of b's. @return how many
static size_t distances(const marks *a, const marks *b, int64_t *out, uint32_t *seen, const int64_t *const *times) {
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        uint64_t other;
        const uint32_t place = seen[b->of[i]]++;
        if (!tide_strmap_get(&a->names, b->all[i].name, &other) || a->counts[other] != b->counts[b->of[i]]) continue;
        out[n++] = (int64_t)b->all[i].t_ns - times[other][place];
    }
    if (n > 1) qsort(out, n, sizeof *out, by_number);
    return n;
}

/// Times of the marks of each name, behind one another: *list [m->n] is owned, *times [names] lie in it.
static tide_status times_by_name(const marks *m, int64_t **list, const int64_t ***times, tide_error *err) {
    uint32_t *at;
    TIDE_TRY(TIDE_NEW(list, m->n + 1, err, "for %zu marks", m->n));
    TIDE_TRY(TIDE_NEW(times, m->n_names + 1, err, "for %zu marks", m->n));
    TIDE_TRY(TIDE_NEW(&at, m->n_names + 1, err, "for %zu marks", m->n));
    uint32_t next = 0;
    for (size_t name = 0; name < m->n_names; name++) {
        at[name] = next;
        (*times)[name] = *list + next;
        next += m->counts[name];
    }
    TIDE_ASSERT(next == m->n);
    for (size_t i = 0; i < m->n; i++) (*list)[at[m->of[i]]++] = (int64_t)m->all[i].t_ns;
    tide_host_free(at);
    return TIDE_OK;
}

/// Move `s` so that its marks fall together with those of the first source; n_marks 0: there is none.
static tide_status align_by_marks(const marks *first, const int64_t *const *times, tide__merge_source *s,
                                  tide_error *err) {
    marks m = {0};
    int64_t *all = NULL;
    uint32_t *seen = NULL;
    tide_status st = marks_read(s, &m, err);
    if (st == TIDE_OK) st = TIDE_NEW(&all, m.n + 1, err, "for the marks of '%s'", tide__merge_name(s));
    if (st == TIDE_OK) st = TIDE_NEW(&seen, m.n_names + 1, err, "for the marks of '%s'", tide__merge_name(s));
    s->lane->n_marks = 0;
    if (st == TIDE_OK) {
        const size_t n = distances(first, &m, all, seen, times);
        s->lane->n_marks = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        if (n > 0) {
            const int64_t median = all[n / 2];
            for (size_t i = 0; i < n; i++) all[i] = all[i] < median ? median - all[i] : all[i] - median;
            qsort(all, n, sizeof *all, by_number);
            s->shift_ns = -median;
            s->lane->usual_ns = (uint64_t)all[n / 2];
            s->lane->apart_ns = (uint64_t)all[n - 1];
        }
    }
    tide_host_free(all);
    tide_host_free(seen);
    marks_deinit(&m);
    return st;
}

/// *lacks: the first source that has no mark in common with the first; NULL: all have.
static tide_status align_marks(tide__merge_source *s, size_t n, const tide__merge_source **lacks, tide_error *err) {
    marks first = {0};
    int64_t *list = NULL;
    const int64_t **times = NULL;
    *lacks = NULL;
    const size_t keeps = first_of(s, n);
    tide_status st = marks_read(&s[keeps], &first, err);
    if (st == TIDE_OK) st = times_by_name(&first, &list, &times, err);
    s[keeps].shift_ns = 0;
    s[keeps].lane->n_marks = (uint32_t)first.n;
    for (size_t i = keeps + 1; st == TIDE_OK && *lacks == NULL && i < n; i++) {
        if (!has_events(&s[i])) continue;
        st = align_by_marks(&first, times, &s[i], err);
        if (st == TIDE_OK && s[i].lane->n_marks == 0) *lacks = &s[i];
    }
    tide_host_free(list);
    tide_host_free(times);
    marks_deinit(&first);
    return st;
}

// ---- which of them ----

static tide_status refuse(const tide__merge_source *s, tide_merge_clock asked, const char *why, tide_error *err) {
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot bring '%s' to the clock of the others: %s", tide__merge_name(s), why);
    tide_error_hint(err, "%s",
                    asked == TIDE_MERGE_AUTO
                        ? "--align begin lets all begin at once; --offsets says when each begins, after the first"
                        : "--align begin, or --offsets; or --align without a clock that they do not share");
    return st;
}

static void shift_walls(tide__merge_source *s, size_t n) {
    for (size_t i = 0; i < n; i++) s[i].shift_ns = wall_shift(s, n, i);
}

static tide_status align_auto(tide__merge_source *s, size_t n, tide_merge_clock *used, tide_error *err) {
    size_t apart = 0;
    const tide__merge_source *dateless = without_date(s, n), *lacks;
    *used = TIDE_MERGE_BOOT;
    if (of_other_boot(s, n) == NULL) return TIDE_OK;
    *used = TIDE_MERGE_WALL;
    if (dateless == NULL && !one_lies_apart(s, n, &apart)) {
        shift_walls(s, n);
        return TIDE_OK;
    }
    *used = TIDE_MERGE_MARKS;
    TIDE_TRY(align_marks(s, n, &lacks, err));
    if (lacks == NULL) return TIDE_OK;
    if (dateless == NULL)
        return refuse(&s[apart], TIDE_MERGE_AUTO, "by date it lies apart from all of them, and they share no marks",
                      err);
    return refuse(lacks, TIDE_MERGE_AUTO, "they are not of one machine, not all know the date, and they share no marks",
                  err);
}

static tide_status align_as_asked(tide__merge_source *s, size_t n, tide_merge_clock asked, tide_error *err) {
    const tide__merge_source *lacks = NULL;
    switch (asked) {
    case TIDE_MERGE_BOOT:
        lacks = of_other_boot(s, n);
        return lacks == NULL ? TIDE_OK
                             : refuse(lacks, asked, "it is not known to be of the same machine and start of it", err);
    case TIDE_MERGE_WALL:
        lacks = without_date(s, n);
        if (lacks != NULL) return refuse(lacks, asked, "it does not know the date", err);
        shift_walls(s, n);
        return TIDE_OK;
    case TIDE_MERGE_MARKS:
        TIDE_TRY(align_marks(s, n, &lacks, err));
        return lacks == NULL ? TIDE_OK
                             : refuse(lacks, asked, "it has no mark of a name that the first one has as often", err);
    default:
        TIDE_ASSERT(asked == TIDE_MERGE_BEGIN || asked == TIDE_MERGE_GIVEN);
        for (size_t i = 0, keeps = first_of(s, n); i < n; i++)
            if (has_events(&s[i]))
                s[i].shift_ns =
                    s[keeps].t->begin_ns - s[i].t->begin_ns + (asked == TIDE_MERGE_GIVEN ? s[i].in->offset_ns : 0);
        return TIDE_OK;
    }
}

// ---- no time below 0, none beyond what is read ----

static tide_status check_times(const tide__merge_source *s, int64_t more, tide_error *err) {
    const tide_trace *t = s->t;
    const bool fits = t->begin_ns <= MAX_NS && t->end_ns <= MAX_NS && s->shift_ns > -MAX_NS && s->shift_ns < MAX_NS &&
                      s->shift_ns + more < MAX_NS && t->end_ns + s->shift_ns + more <= MAX_NS;
    if (fits) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW,
                     "cannot move '%s' to the clock of the others: its times would pass 2^62 ns", tide__merge_name(s));
}

tide_status tide__merge_align(tide__merge_source *s, size_t n, tide_merge_clock asked, tide_merge_clock *used,
                              tide_error *err) {
    *used = asked;
    for (size_t i = 0; i < n; i++) TIDE_TRY(check_times(&s[i], 0, err));
    if (asked == TIDE_MERGE_AUTO)
        TIDE_TRY(align_auto(s, n, used, err));
    else
        TIDE_TRY(align_as_asked(s, n, asked, err));
    int64_t more = 0; // that all are moved by, the first one too: a clock's zero means nothing
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(check_times(&s[i], 0, err));
        s[i].lane->offset_ns = s[i].shift_ns;
        if (has_events(&s[i]) && s[i].first_ns + s[i].shift_ns < -more) more = -(s[i].first_ns + s[i].shift_ns);
    }
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(check_times(&s[i], more, err));
        s[i].shift_ns += more;
    }
    return TIDE_OK;
}
