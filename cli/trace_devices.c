// SPDX-License-Identifier: MIT
//
// Devices of a trace: where their bytes were when most was in use, or at a moment. See trace_view.h.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/device_memory.h"
#include "cli/trace_view.h"
#include "core/base/host_alloc.h"

/// A device at its peak within the span, or at the moment that was asked for; [n_parts] is owned.
typedef struct instant {
    const tide_device_lane *lane;
    bool is_peak;
    uint64_t first_event; ///< of a trace that lost its oldest events; 0: of one that is whole
    tide_moment at;
    tide_device_figures figures;
    tide_device_part *parts;
    size_t n_parts;
} instant;

static tide_status find_instant(const tide_device_memory *m, size_t i, const cli_span *span, const cli_moment *at,
                                instant *out, tide_error *err) {
    *out = (instant){.lane = &m->lanes[i], .is_peak = at == NULL};
    if (tide_device_is_cut(m)) out->first_event = m->first_event;
    if (at != NULL) {
        out->at = (tide_moment){.t = (int64_t)at->t_ns, .event = at->event};
        out->figures = tide_device_at(out->lane, out->at);
    } else {
        out->figures = tide_device_peak(out->lane, (int64_t)span->begin_ns, (int64_t)span->end_ns, &out->at);
    }
    return tide_device_parts(m, i, out->at, &out->parts, &out->n_parts, err);
}

// ---- text ----

/// "libcublas.so.13 64.1 MiB, …": the largest of one sort, in brackets.
static void print_parts(const instant *p, tide_device_part_of of) {
    enum { MOST = 4 };
    char name[64], bytes[24];
    size_t n = 0;
    for (size_t i = 0; i < p->n_parts; i++) {
        if (p->parts[i].of != of) continue;
        if (n < MOST) {
            const char *text = p->parts[i].name[0] != '\0' ? p->parts[i].name : "(not known)";
            printf("%s%s %s", n == 0 ? " (" : ", ", cli_clean(text, name, sizeof name),
                   tide_format_bytes(p->parts[i].bytes, bytes, sizeof bytes));
        }
        n++;
    }
    if (n > MOST) printf(", %zu more", n - MOST);
    if (n > 0) putchar(')');
}

/// "device cuda:0: used 663 MiB of 79 GiB at the peak, 16 ms from the begin"; a moment that was asked for stands above.
static void print_head(const instant *p, const cli_span *span) {
    const tide_device_figures *f = &p->figures;
    char a[24], b[24], place[96];
    const cli_moment at = {
        .t_ns = (uint64_t)p->at.t, .event = p->at.event, .by_event = p->at.event > 0, .has_time = true};
    printf("\n%s %s:", p->lane->is_process ? "process" : "device", p->lane->device);
    if (f->used_bytes != TIDE_UNKNOWN_BYTES)
        printf(p->lane->is_process ? " resident %s, at most %s until then;" : " used %s of %s",
               tide_format_bytes(f->used_bytes, a, sizeof a), tide_format_bytes(f->total_bytes, b, sizeof b));
    if (p->is_peak) printf(" at the peak, %s", cli_moment_place(&at, span, place, sizeof place));
    putchar('\n');
}

/// What the system counts of a process, beside what its blocks say.
static void print_process(const instant *p) {
    const tide_device_figures *f = &p->figures;
    char a[24];
    printf("  blocks       %s live", tide_format_bytes(f->allocators_bytes, a, sizeof a));
    if (f->off_bytes > 0) printf(", %s of them not resident", tide_format_bytes(f->off_bytes, a, sizeof a));
    if (f->unexplained_bytes == TIDE_UNKNOWN_BYTES)
        puts("\n  the rest     not known: it was first looked at later");
    else
        printf("\n  the rest     %s resident beside them: code, stacks, what malloc keeps\n",
               tide_format_bytes(f->unexplained_bytes, a, sizeof a));
}

static void print_device(const instant *p, const cli_span *span) {
    const tide_device_figures *f = &p->figures;
    char a[24];
    print_head(p, span);
    if (p->lane->is_process) {
        print_process(p);
        return;
    }
    printf("  allocators   %s", tide_format_bytes(f->allocators_bytes, a, sizeof a));
    print_parts(p, TIDE_DEVICE_ALLOCATOR);
    printf("\n  outside      %s", tide_format_bytes(f->outside_bytes, a, sizeof a));
    print_parts(p, TIDE_DEVICE_LIBRARY);
    if (f->unexplained_bytes == TIDE_UNKNOWN_BYTES) {
        printf("\n  unexplained  not known: %s\n",
               p->lane->n_samples > 0 ? "the first sample of the device came later" : "no sample of the device");
    } else {
        printf("\n  unexplained  %s", tide_format_bytes(f->unexplained_bytes, a, sizeof a));
        if (f->off_bytes > 0)
            printf("; the sample is %s below the sum of both", tide_format_bytes(f->off_bytes, a, sizeof a));
        printf("\n  free         %s\n", tide_format_bytes(f->free_bytes, a, sizeof a));
    }
    if (p->first_event > 0)
        printf("  note: events before #%" PRIu64 " are gone: segments that were taken then count as unexplained\n",
               p->first_event);
}

// ---- JSON ----

static void parts_json(tide_json_out *j, const char *key, const instant *p, tide_device_part_of of) {
    tide_json_open(j, key, '[');
    for (size_t i = 0; i < p->n_parts; i++) {
        if (p->parts[i].of != of) continue;
        tide_json_open_flat(j, NULL, '{');
        tide_json_text_or_null(j, "name", p->parts[i].name);
        tide_json_u64(j, "bytes", p->parts[i].bytes);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

static void device_json(tide_json_out *j, const instant *p, const cli_span *span) {
    const tide_device_figures *f = &p->figures;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "device", p->lane->device);
    tide_json_bool(j, "is_process", p->lane->is_process);
    tide_json_u64(j, "samples", p->lane->n_samples);
    tide_json_i64(j, "t_ns", p->at.t);
    tide_json_u64(j, "since_begin_ns", cli_since(span, (uint64_t)p->at.t));
    tide_json_u64_if(j, "event", p->at.event > 0, p->at.event);
    tide_json_bytes(j, "used_bytes", f->used_bytes);
    tide_json_bytes(j, "total_bytes", f->total_bytes);
    tide_json_u64(j, "allocators_bytes", f->allocators_bytes);
    tide_json_u64(j, "outside_bytes", f->outside_bytes);
    tide_json_bytes(j, "unexplained_bytes", f->unexplained_bytes);
    tide_json_u64(j, "off_bytes", f->off_bytes);
    tide_json_bool(j, "is_cut", p->first_event > 0);
    tide_json_bytes(j, "free_bytes", f->free_bytes);
    parts_json(j, "allocators", p, TIDE_DEVICE_ALLOCATOR);
    parts_json(j, "functions", p, TIDE_DEVICE_API);
    parts_json(j, "libraries", p, TIDE_DEVICE_LIBRARY);
    tide_json_close(j, '}');
}

tide_status cli_trace_devices(tide_trace *t, const cli_span *span, const cli_moment *at, tide_json_out *j,
                              tide_error *err) {
    tide_device_memory m;
    tide_status st = tide_device_memory_make(t, NULL, &m, err);
    if (j != NULL) tide_json_open(j, "devices", '[');
    for (size_t i = 0; st == TIDE_OK && i < m.n; i++) {
        instant p;
        st = find_instant(&m, i, span, at, &p, err);
        if (st == TIDE_OK && j != NULL) device_json(j, &p, span);
        if (st == TIDE_OK && j == NULL) print_device(&p, span);
        tide_host_free(p.parts);
    }
    if (j != NULL) tide_json_close(j, ']');
    tide_device_memory_deinit(&m);
    return st;
}
