// SPDX-License-Identifier: MIT
//
// bench recorder: what the sections of bench_recorder share: the events that a made-up program sends, clocks, and what
// is printed of repeated measurements.
//
// The made-up program: each thread has BENCH_SLOTS places; a step takes one at random and allocates into it or frees
// what is there, so that half of them are full. Sizes are log-uniform from 64 bytes to 1 MiB.
#ifndef TIDE_BENCH_RECORDER_H
#define TIDE_BENCH_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "core/memory/observer.h"
#include "tidemark/record.h"

typedef struct bench_options {
    const char *dir;      ///< traces are made in a folder below it
    const char *programs; ///< folder of the program that runs: its helpers lie there too
    uint64_t day_events;
    uint64_t query_events;
    uint64_t latency_events;
    uint64_t kills; ///< of each mode in section kill
    int repeats;
} bench_options;

void bench_producer(const bench_options *o);
void bench_latency(const bench_options *o);
void bench_drain(const bench_options *o);
void bench_kill(const bench_options *o);
void bench_query(const bench_options *o);
void bench_day(const bench_options *o);
void bench_heap(const bench_options *o);

// ---- events ----

enum { BENCH_SLOTS = 8192, BENCH_RANDOM = 1 << 16, BENCH_TAGS = 64 };

typedef struct bench_slot {
    uint64_t id, bytes;
} bench_slot;

typedef struct bench_stream {
    bench_slot slots[BENCH_SLOTS];
    uint32_t sizes[BENCH_RANDOM];
    uint16_t places[BENCH_RANDOM];
    uint32_t place_at, size_at;
    uint64_t next_id, address;
    tide_scope scope;
    tide_memory_event event; ///< the one that is sent, filled anew each time
    uint64_t n_allocs, n_frees, requested_bytes, freed_bytes;
    uint32_t first_kind, n_kinds; ///< of its blocks
} bench_stream;

extern const char *const bench_tags[BENCH_TAGS];

/// A stream for thread `thread` (0, 1, ...), on the heap: tide_host_free. NULL: no memory.
bench_stream *bench_stream_new(uint64_t seed, uint32_t thread);

/// The next event, all fields, t_ns 0.
static inline const tide_memory_event *bench_next(bench_stream *s) {
    tide_memory_event *e = &s->event;
    const uint32_t place = s->places[s->place_at++ % BENCH_RANDOM] % BENCH_SLOTS;
    bench_slot *slot = &s->slots[place];
    // the random numbers come round again: a shift of the sizes makes the second round another one
    if (s->place_at % BENCH_RANDOM == 0) s->size_at += 7919;
    if (slot->id == 0) {
        slot->id = s->next_id++;
        slot->bytes = s->sizes[s->size_at++ % BENCH_RANDOM];
        e->op = TIDE_MEM_ALLOC;
        s->n_allocs++;
        s->requested_bytes += slot->bytes;
        e->block_id = slot->id;
    } else {
        e->op = TIDE_MEM_FREE_COMPLETED;
        s->n_frees++;
        s->freed_bytes += slot->bytes;
        e->block_id = slot->id;
        slot->id = 0;
    }
    e->requested_bytes = slot->bytes;
    e->reserved_bytes = (slot->bytes + 63) / 64 * 64;
    e->address = s->address + (uint64_t)place * (1 << 20);
    e->kind = (tide_memory_kind)(s->first_kind + place % s->n_kinds);
    e->tag = bench_tags[place % BENCH_TAGS];
    return e;
}

// ---- clocks ----

static inline double bench_cpu_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// ---- repeated measurements ----

enum { BENCH_MAX_SAMPLES = 4096 };
typedef struct bench_samples {
    double values[BENCH_MAX_SAMPLES];
    size_t n;
} bench_samples;
void bench_add(bench_samples *s, double value);
/// q in [0, 1]; sorts.
double bench_quantile(bench_samples *s, double q);

// ---- folders, files ----

/// A new folder below o->dir; ends the program when there is none.
void bench_make_dir(const bench_options *o, char *path, size_t path_bytes);
/// With what lies in it.
void bench_remove_dir(const char *path);
/// 0 when it is not there.
uint64_t bench_file_bytes(const char *path);
/// Sum over all files in a folder whose name contains `part`.
uint64_t bench_dir_bytes(const char *dir, const char *part);
/// Peak and present memory of this process, in MB of 2^20 bytes.
double bench_peak_rss_mb(void);
double bench_rss_mb(void);
/// Ends the program with the error's words.
void bench_must(tide_status st, const tide_error *err, const char *what);

#endif
