// SPDX-License-Identifier: MIT
//
// Device memory: changes and samples of each device are merged by their events into points, each with all sums; a
// question is a search among them. See device_memory.h.
#include "analysis/device_memory.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/lanes.h"

/// What one allocator has of one device.
typedef struct owner {
    const char *device, *allocator;
    bool is_driver;
    int64_t segment_bytes, block_bytes;
} owner;

typedef struct building {
    tide_device_memory *m;
    owner *owners; // [n_owners], owned
    size_t n_owners, cap_owners;
} building;

// ---- devices and owners ----

static int by_device(const void *a, const void *b) {
    return strcmp(((const tide_device_lane *)a)->device, ((const tide_device_lane *)b)->device);
}

static tide_status add_lane(tide_device_memory *m, const char *device, tide_error *err) {
    if (device[0] == '\0' || strcmp(device, "cpu") == 0) return TIDE_OK;
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->lanes[i].device, device) == 0) return TIDE_OK;
    }
    TIDE_TRY(TIDE_GROW(&m->lanes, &m->cap, m->n + 1, err, "for devices"));
    m->lanes[m->n++] = (tide_device_lane){.device = device};
    return TIDE_OK;
}

/// NULL: the CPU.
static tide_device_lane *lane_of(const tide_device_memory *m, const char *device) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->lanes[i].device == device || strcmp(m->lanes[i].device, device) == 0) return &m->lanes[i];
    }
    return NULL;
}

static tide_status owner_of(building *b, const tide_trace_taken *k, owner **out, tide_error *err) {
    for (size_t i = 0; i < b->n_owners; i++) {
        owner *o = &b->owners[i];
        if (strcmp(o->allocator, k->allocator) == 0 && strcmp(o->device, k->device) == 0) {
            *out = o;
            return TIDE_OK;
        }
    }
    TIDE_TRY(TIDE_GROW(&b->owners, &b->cap_owners, b->n_owners + 1, err, "for devices"));
    *out = &b->owners[b->n_owners++];
    **out =
        (owner){.device = k->device, .allocator = k->allocator, .is_driver = tide_allocator_is_driver(k->allocator)};
    return TIDE_OK;
}

/// Blocks of a pool of the driver lie in its segments, and may be told before the pool's growth is.
static int64_t bytes_of(bool is_driver, int64_t segment_bytes, int64_t block_bytes) {
    if (!is_driver) return segment_bytes + block_bytes;
    return segment_bytes > block_bytes ? segment_bytes : block_bytes;
}

// ---- texts ----

/// Our own copy: the same for the same text. Functions, libraries and devices are few.
static tide_status own_text(tide_device_memory *m, const char **text, tide_error *err) {
    for (size_t i = 0; i < m->n_texts; i++) {
        if (strcmp(m->texts[i], *text) != 0) continue;
        *text = m->texts[i];
        return TIDE_OK;
    }
    TIDE_TRY(TIDE_GROW(&m->texts, &m->cap_texts, m->n_texts + 1, err, "for devices"));
    TIDE_TRY(TIDE_COPY_TEXT(&m->texts[m->n_texts], *text, err, "for devices"));
    *text = m->texts[m->n_texts++];
    return TIDE_OK;
}

/// Of blocks of the program's allocators the tags are many, and nothing asks for them.
static tide_status own_texts(tide_device_memory *m, tide_trace_usage *samples, size_t n_samples, tide_error *err) {
    for (size_t i = 0; i < m->n_takes; i++) {
        tide_trace_taken *k = &m->takes[i];
        if (!tide_allocator_is_driver(k->allocator)) k->tag = "";
        TIDE_TRY(own_text(m, &k->device, err));
        TIDE_TRY(own_text(m, &k->allocator, err));
        TIDE_TRY(own_text(m, &k->tag, err));
    }
    for (size_t i = 0; i < n_samples; i++) TIDE_TRY(own_text(m, &samples[i].device, err));
    return TIDE_OK;
}

// ---- points ----

static tide_status too_many(tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "the bytes of a device of the trace sum beyond 2^62");
}

/// The point of that event, the last of the lane; what it says beforehand is what held so far.
static tide_status point_at(tide_device_lane *lane, uint64_t event, uint64_t t_ns, tide_device_point **out,
                            tide_error *err) {
    if (lane->n == 0 || lane->points[lane->n - 1].event != event) {
        TIDE_TRY(TIDE_GROW(&lane->points, &lane->cap, lane->n + 1, err, "for devices"));
        tide_device_point *p = &lane->points[lane->n];
        *p = lane->n > 0 ? lane->points[lane->n - 1] : (tide_device_point){.total_bytes = TIDE_UNKNOWN_BYTES};
        p->event = event;
        p->t = (int64_t)t_ns;
        p->is_sample = false;
        lane->n++;
    }
    *out = &lane->points[lane->n - 1];
    return TIDE_OK;
}

static tide_status take(building *b, const tide_trace_taken *k, tide_error *err) {
    tide_device_lane *lane = lane_of(b->m, k->device);
    owner *o;
    tide_device_point *p;
    if (lane == NULL) return TIDE_OK;
    TIDE_TRY(owner_of(b, k, &o, err));
    TIDE_TRY(point_at(lane, k->event, k->t_ns, &p, err));
    const int64_t before = bytes_of(o->is_driver, o->segment_bytes, o->block_bytes);
    int64_t *of = k->is_segment ? &o->segment_bytes : &o->block_bytes;
    *of += k->is_back ? -(int64_t)k->bytes : (int64_t)k->bytes;
    if (k->bytes >> 62 != 0 || o->segment_bytes >> 62 != 0 || o->block_bytes >> 62 != 0) return too_many(err);
    const int64_t change = bytes_of(o->is_driver, o->segment_bytes, o->block_bytes) - before;
    uint64_t *sum = o->is_driver ? &p->outside_bytes : &p->allocators_bytes;
    *sum += (uint64_t)change;
    if ((p->allocators_bytes | p->outside_bytes) >> 62 != 0) return too_many(err);
    return TIDE_OK;
}

static tide_status sample(building *b, const tide_trace_usage *u, tide_error *err) {
    tide_device_lane *lane = lane_of(b->m, u->device);
    tide_device_point *p;
    if (lane == NULL) return TIDE_OK;
    TIDE_TRY(point_at(lane, u->event, u->t_ns, &p, err));
    p->is_sample = true;
    p->total_bytes = u->total_bytes;
    if (u->used_bytes >> 62 != 0) return too_many(err);
    p->rest_bytes = (int64_t)u->used_bytes - (int64_t)(p->allocators_bytes + p->outside_bytes);
    lane->n_samples++;
    return TIDE_OK;
}

static tide_status merge(building *b, const tide_trace_usage *samples, size_t n_samples, tide_error *err) {
    const tide_device_memory *m = b->m;
    for (size_t i = 0; i < m->n_takes; i++) TIDE_TRY(add_lane(b->m, m->takes[i].device, err));
    for (size_t i = 0; i < n_samples; i++) TIDE_TRY(add_lane(b->m, samples[i].device, err));
    if (m->n > 1) qsort(m->lanes, m->n, sizeof *m->lanes, by_device);
    size_t k = 0;
    for (size_t i = 0; i < m->n_takes; i++) {
        for (; k < n_samples && samples[k].event < m->takes[i].event; k++) TIDE_TRY(sample(b, &samples[k], err));
        TIDE_TRY(take(b, &m->takes[i], err));
    }
    for (; k < n_samples; k++) TIDE_TRY(sample(b, &samples[k], err));
    return TIDE_OK;
}

// ---- processes ----

enum { N_COLUMNS = 2048, MOST_PROCESSES = 12 };

/// One process's samples: those from `first` on, `n` of them.
typedef struct sampled {
    size_t first, n;
    uint64_t peak_bytes;
} sampled;

static int by_peak(const void *a, const void *b) {
    const sampled *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes) return x->peak_bytes > y->peak_bytes ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_first(const void *a, const void *b) {
    const sampled *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/// The largest processes, in order. *out [*n], owned.
static tide_status largest(const tide_trace_process_sample *s, size_t n_samples, sampled **out, size_t *n,
                           tide_error *err) {
    size_t cap = 0;
    *n = 0;
    for (size_t i = 0; i < n_samples; i++) {
        if (i == 0 || s[i].process != s[i - 1].process) {
            TIDE_TRY(TIDE_GROW(out, &cap, *n + 1, err, "for processes"));
            (*out)[(*n)++] = (sampled){.first = i};
        }
        sampled *p = &(*out)[*n - 1];
        p->n++;
        if (s[i].peak_bytes > p->peak_bytes) p->peak_bytes = s[i].peak_bytes;
    }
    TIDE_ASSERT(*n > 0); // who asks has a sample
    qsort(*out, *n, sizeof **out, by_peak);
    if (*n > MOST_PROCESSES) *n = MOST_PROCESSES;
    qsort(*out, *n, sizeof **out, by_first);
    return TIDE_OK;
}

/// "4711 python3": as the lanes of the trace call it, and its program.
static tide_status name_process(tide_device_memory *m, tide_trace *t, uint32_t process, const char **out,
                                tide_error *err) {
    char name[TIDE_LANE_NAME_BYTES], program[48];
    TIDE_TRY(tide_trace_lane_name(t, process, name, err));
    TIDE_TRY(tide_trace_program(t, process, program, sizeof program, err));
    tide_text text = {0};
    tide_text_addf(&text, "%s%s%s", name, program[0] != '\0' ? " " : "", program);
    *out = tide_text_str(&text);
    const tide_status st = text.failed ? TIDE_NO_MEMORY(err, "for processes") : own_text(m, out, err);
    tide_text_deinit(&text);
    return st;
}

/// Live bytes of one process in the column that holds `t_ns`.
static uint64_t live_at(const tide_trace_lanes *lanes, uint32_t process, const uint64_t *alone, uint64_t t_ns) {
    __extension__ typedef unsigned __int128 u128;
    const uint64_t begin = lanes->begin_ns, len = lanes->end_ns - begin + 1;
    if (t_ns < begin || t_ns > lanes->end_ns) return 0;
    const size_t column = (size_t)((u128)(t_ns - begin) * N_COLUMNS / len);
    TIDE_ASSERT(column < N_COLUMNS);
    if (alone != NULL) return alone[column];
    for (size_t i = 0; i < lanes->n; i++) {
        if (lanes->items[i].process != process || !lanes->items[i].is_there) continue;
        const uint64_t most = lanes->items[i].most[column];
        return most != TIDE_UNKNOWN_BYTES ? most : 0;
    }
    return 0;
}

static tide_status add_process(tide_device_memory *m, tide_trace *t, const tide_trace_process_sample *s, size_t n,
                               const tide_trace_lanes *lanes, const uint64_t *alone, tide_error *err) {
    const char *name;
    TIDE_TRY(name_process(m, t, s->process, &name, err));
    TIDE_TRY(TIDE_GROW(&m->lanes, &m->cap, m->n + 1, err, "for processes"));
    tide_device_lane *lane = &m->lanes[m->n++];
    *lane = (tide_device_lane){.device = name, .is_process = true, .n_samples = n, .cap = n};
    TIDE_TRY(TIDE_NEW(&lane->points, n, err, "for processes"));
    for (size_t i = 0; i < n; i++) {
        const uint64_t live = live_at(lanes, s[i].process, alone, s[i].t_ns);
        if ((live | s[i].resident_bytes | s[i].peak_bytes) >> 62 != 0) return too_many(err);
        const uint64_t total = s[i].peak_bytes > s[i].resident_bytes ? s[i].peak_bytes : s[i].resident_bytes;
        lane->points[lane->n++] = (tide_device_point){.t = (int64_t)s[i].t_ns,
                                                      .allocators_bytes = live,
                                                      .total_bytes = total,
                                                      .rest_bytes = (int64_t)s[i].resident_bytes - (int64_t)live,
                                                      .is_sample = true};
    }
    return TIDE_OK;
}

/// What is live over time: of one process that is the curve of the trace, of several a replay tells them apart.
static tide_status live_of_processes(tide_trace *t, tide_trace_lanes *lanes, uint64_t **alone, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(t, &info, err));
    *lanes = (tide_trace_lanes){.begin_ns = info.begin_ns, .end_ns = info.end_ns, .n_columns = N_COLUMNS};
    if (info.n_processes > 1) return tide_trace_get_lanes(t, N_COLUMNS, lanes, err);
    uint64_t *least = NULL;
    tide_status st = TIDE_NEW(alone, N_COLUMNS, err, "for processes");
    if (st == TIDE_OK) st = TIDE_NEW(&least, N_COLUMNS, err, "for processes");
    if (st == TIDE_OK)
        st = tide_trace_columns(t, -1, NULL, info.begin_ns, info.end_ns + 1, N_COLUMNS, TIDE_COLUMNS_FAST, least,
                                *alone, err);
    tide_host_free(least);
    return st;
}

static tide_status add_processes(tide_device_memory *m, tide_trace *t, tide_error *err) {
    tide_trace_process_sample *samples = NULL;
    size_t n_samples = 0, n = 0;
    sampled *list = NULL;
    uint64_t *alone = NULL;
    tide_trace_lanes lanes = {0};
    TIDE_TRY(tide_trace_process_samples(t, N_COLUMNS, &samples, &n_samples, err));
    if (n_samples == 0) return TIDE_OK;
    tide_status st = largest(samples, n_samples, &list, &n, err);
    if (st == TIDE_OK) st = live_of_processes(t, &lanes, &alone, err);
    for (size_t i = 0; st == TIDE_OK && i < n; i++)
        st = add_process(m, t, &samples[list[i].first], list[i].n, &lanes, alone, err);
    tide_trace_lanes_deinit(&lanes);
    tide_host_free(alone);
    tide_host_free(list);
    tide_host_free(samples);
    return st;
}

// ---- all of it ----

static tide_status make_devices(tide_trace *t, const tide_reading *reading, tide_device_memory *out, tide_error *err) {
    building b = {.m = out};
    tide_trace_usage *samples = NULL;
    size_t n_samples = 0;
    tide_status st = tide_trace_device_takes(t, reading, &out->takes, &out->n_takes, err);
    if (st == TIDE_OK) st = tide_trace_device_usage(t, &samples, &n_samples, err);
    if (st == TIDE_OK) st = own_texts(out, samples, n_samples, err);
    if (st == TIDE_OK) st = merge(&b, samples, n_samples, err);
    tide_host_free(samples);
    tide_host_free(b.owners);
    return st;
}

tide_status tide_device_memory_make(tide_trace *t, const tide_reading *reading, tide_device_memory *out,
                                    tide_error *err) {
    *out = (tide_device_memory){0};
    if (t == NULL) return TIDE_OK;
    out->first_event = tide_trace_first_kept(t);
    const bool has_devices = tide_trace_has_devices(t);
    if (has_devices) TIDE_TRY(make_devices(t, reading, out, err));
    // Blocks on devices are not told apart from a process's others: where there are both, the rest would be wrong.
    return has_devices ? TIDE_OK : add_processes(out, t, err);
}

void tide_device_memory_deinit(tide_device_memory *m) {
    for (size_t i = 0; i < m->n; i++) tide_host_free(m->lanes[i].points);
    for (size_t i = 0; i < m->n_texts; i++) tide_host_free(m->texts[i]);
    tide_host_free(m->texts);
    tide_host_free(m->lanes);
    tide_host_free(m->takes);
    *m = (tide_device_memory){0};
}

// ---- questions ----

static tide_device_figures figures_of(const tide_device_point *p) {
    tide_device_figures f = {.allocators_bytes = p->allocators_bytes,
                             .outside_bytes = p->outside_bytes,
                             .unexplained_bytes = TIDE_UNKNOWN_BYTES,
                             .used_bytes = TIDE_UNKNOWN_BYTES,
                             .total_bytes = p->total_bytes,
                             .free_bytes = TIDE_UNKNOWN_BYTES};
    if (p->total_bytes == TIDE_UNKNOWN_BYTES) return f;
    const uint64_t known = p->allocators_bytes + p->outside_bytes;
    f.unexplained_bytes = p->rest_bytes > 0 ? (uint64_t)p->rest_bytes : 0;
    f.off_bytes = p->rest_bytes < 0 ? (uint64_t)-p->rest_bytes : 0;
    if (f.off_bytes > known) f.off_bytes = known; // given back since the sample
    f.used_bytes = known + f.unexplained_bytes - f.off_bytes;
    f.free_bytes = f.used_bytes < f.total_bytes ? f.total_bytes - f.used_bytes : 0;
    TIDE_ASSERT(f.unexplained_bytes == 0 || f.off_bytes == 0);
    return f;
}

static const tide_device_point nothing = {.total_bytes = TIDE_UNKNOWN_BYTES};

static bool is_behind(const tide_device_point *p, tide_moment at) {
    return at.event != 0 ? p->event > at.event : p->t > at.t;
}

/// The first point behind `at`.
static size_t first_behind(const tide_device_lane *lane, tide_moment at) {
    size_t lo = 0, hi = lane->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (is_behind(&lane->points[mid], at))
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

tide_device_figures tide_device_at(const tide_device_lane *lane, tide_moment at) {
    const size_t i = first_behind(lane, at);
    return figures_of(i > 0 ? &lane->points[i - 1] : &nothing);
}

/// What is known to be in use then.
static uint64_t known_of(const tide_device_figures *f) {
    return f->used_bytes != TIDE_UNKNOWN_BYTES ? f->used_bytes : f->allocators_bytes + f->outside_bytes;
}

/// The highest of points [first, end); *best is the first of them, or unchanged where it is as high.
static void raise(const tide_device_lane *lane, size_t first, size_t end, tide_device_figures *best, size_t *best_i) {
    for (size_t i = first; i < end; i++) {
        const tide_device_figures f = figures_of(&lane->points[i]);
        if (*best_i != SIZE_MAX && known_of(&f) <= known_of(best)) continue;
        *best = f;
        *best_i = i;
    }
}

tide_device_figures tide_device_peak(const tide_device_lane *lane, int64_t t0, int64_t t1, tide_moment *at) {
    const size_t first = t0 > INT64_MIN ? first_behind(lane, (tide_moment){.t = t0 - 1}) : 0;
    const size_t end = first_behind(lane, (tide_moment){.t = t1});
    tide_device_figures best = figures_of(first > 0 ? &lane->points[first - 1] : &nothing);
    size_t best_i = first > 0 ? first - 1 : SIZE_MAX;
    raise(lane, first, end, &best, &best_i);
    const bool is_before = best_i == SIZE_MAX || best_i < first;
    if (at != NULL)
        *at = is_before ? (tide_moment){.t = t0}
                        : (tide_moment){.t = lane->points[best_i].t, .event = lane->points[best_i].event};
    return best;
}

/// Begin of column `i` of `n`.
static int64_t edge(int64_t t0, int64_t t1, size_t i, size_t n) {
    __extension__ typedef unsigned __int128 u128;
    return t0 + (int64_t)((u128)((uint64_t)t1 - (uint64_t)t0) * i / n);
}

void tide_device_columns(const tide_device_lane *lane, int64_t t0, int64_t t1, size_t n, tide_device_figures *out) {
    TIDE_ASSERT(t1 > t0 && n > 0);
    for (size_t i = 0; i < n; i++) {
        const int64_t lo = edge(t0, t1, i, n), hi = edge(t0, t1, i + 1, n);
        out[i] = tide_device_peak(lane, lo, hi > lo ? hi - 1 : lo, NULL);
    }
}

// ---- parts ----

typedef struct parting {
    tide_device_part *parts; // [n], owned
    size_t n, cap;
} parting;

static tide_status part_of(parting *g, tide_device_part_of of, const char *name, tide_device_part **out,
                           tide_error *err) {
    for (size_t i = 0; i < g->n; i++) {
        *out = &g->parts[i];
        if (g->parts[i].of == of && strcmp(g->parts[i].name, name) == 0) return TIDE_OK;
    }
    TIDE_TRY(TIDE_GROW(&g->parts, &g->cap, g->n + 1, err, "for devices"));
    *out = &g->parts[g->n++];
    **out = (tide_device_part){.of = of, .name = name};
    return TIDE_OK;
}

static tide_status add_take(parting *g, const tide_trace_taken *k, tide_error *err) {
    const bool is_driver = tide_allocator_is_driver(k->allocator);
    const uint64_t change = k->is_back ? -k->bytes : k->bytes;
    tide_device_part *p;
    TIDE_TRY(part_of(g, is_driver ? TIDE_DEVICE_API : TIDE_DEVICE_ALLOCATOR, k->allocator, &p, err));
    if (k->is_segment)
        p->segment_bytes += change;
    else
        p->bytes += change;
    if (!is_driver || k->is_segment) return TIDE_OK;
    TIDE_TRY(part_of(g, TIDE_DEVICE_LIBRARY, k->tag, &p, err));
    p->bytes += change;
    return TIDE_OK;
}

/// Segments become bytes; what pools of the driver have beyond their blocks becomes a library's.
static tide_status settle_parts(parting *g, tide_error *err) {
    uint64_t kept = 0;
    for (size_t i = 0; i < g->n; i++) {
        tide_device_part *p = &g->parts[i];
        const uint64_t all = (uint64_t)bytes_of(p->of == TIDE_DEVICE_API, (int64_t)p->segment_bytes, (int64_t)p->bytes);
        if (p->of == TIDE_DEVICE_API) kept += all - p->bytes;
        p->bytes = all;
    }
    tide_device_part *p;
    if (kept == 0) return TIDE_OK;
    TIDE_TRY(part_of(g, TIDE_DEVICE_LIBRARY, "kept by the driver's pools", &p, err));
    p->bytes += kept;
    return TIDE_OK;
}

static int by_bytes(const void *a, const void *b) {
    const tide_device_part *x = a, *y = b;
    if (x->of != y->of) return x->of < y->of ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

tide_status tide_device_parts(const tide_device_memory *m, size_t lane, tide_moment at, tide_device_part **out,
                              size_t *n, tide_error *err) {
    TIDE_ASSERT(lane < m->n);
    parting g = {0};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < m->n_takes; i++) {
        const tide_trace_taken *k = &m->takes[i];
        if (at.event != 0 ? k->event > at.event : (int64_t)k->t_ns > at.t) break;
        if (strcmp(k->device, m->lanes[lane].device) == 0) st = add_take(&g, k, err);
    }
    if (st == TIDE_OK) st = settle_parts(&g, err);
    if (st != TIDE_OK) {
        tide_host_free(g.parts);
        return st;
    }
    if (g.n > 1) qsort(g.parts, g.n, sizeof *g.parts, by_bytes);
    *n = 0;
    for (size_t i = 0; i < g.n; i++) {
        if (g.parts[i].bytes > 0) g.parts[(*n)++] = g.parts[i];
    }
    *out = g.parts;
    return TIDE_OK;
}
