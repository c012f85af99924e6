// SPDX-License-Identifier: MIT
//
// What the system counts of each recorded process, beside what the process says of its blocks: resident bytes and page
// faults from /proc/PID/status and stat, its share of shared pages (PSS) from smaps_rollup. See drain_internal.h.
//
//     every sample_ms      status, stat       30 us a process
//     as it is cheap       smaps_rollup       the kernel walks all pages: milliseconds in a large process
//
// Either costs at most a hundredth of the collector's time: many processes, or large ones, are asked less often.
// A process is known by the open folder /proc/PID: another one that has its number later is not in there.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/drain/drain_internal.h"
#include "profiler/feed/process_stat.h"

enum { SHARE = 100, WAITING = 64, NS_PER_MS = 1000000 };

struct tide__drain_probe {
    int folder; ///< /proc/PID; -1: it has no entry here, or has gone
    uint64_t share_due_ns;
    tide__process_memory last; ///< that was noted
};

/// The text of a file of the folder, at most `bytes` - 1 of it. False: it has gone, or may not be read.
static bool read_text(int folder, const char *name, char *text, size_t bytes) {
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t n = 0;
    ssize_t got;
    while (n < bytes - 1 && (got = read(fd, text + n, bytes - 1 - n)) > 0) n += (size_t)got;
    close(fd);
    text[n] = '\0';
    return n > 0;
}

/// "VmRSS:      1234 kB" in bytes. False: there is no such line.
static bool kilobytes(const char *text, const char *key, int64_t *out) {
    const char *line = strstr(text, key);
    if (line == NULL) return false;
    char *end;
    const long long n = strtoll(line + strlen(key), &end, 10);
    if (n < 0 || n > INT64_MAX / 1024 || strncmp(end, " kB", 3) != 0) return false;
    *out = n * 1024;
    return true;
}

/// Of a kernel thread, or a process that has ended and is not yet waited for, there are no such lines.
static bool read_status(int folder, tide__process_memory *m) {
    char text[4096];
    return read_text(folder, "status", text, sizeof text) && kilobytes(text, "\nVmRSS:", &m->resident_bytes) &&
           kilobytes(text, "\nVmHWM:", &m->peak_bytes) && kilobytes(text, "\nVmSwap:", &m->swapped_bytes);
}

static bool read_faults(int folder, tide__process_memory *m) {
    char text[2048];
    return read_text(folder, "stat", text, sizeof text) &&
           tide__process_faults(text, &m->minor_faults, &m->major_faults);
}

/// Time that this thread had a processor for: a busy machine makes no look dearer.
static uint64_t cost_ns(void) {
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return tide_now_ns();
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/// @return what it cost, in ns
static uint64_t read_share(tide__drain_probe *p, tide__process_memory *m) {
    char text[4096];
    m->share_bytes = -1;
    if (tide_now_ns() < p->share_due_ns) return 0;
    const uint64_t before = cost_ns();
    if (!read_text(p->folder, "smaps_rollup", text, sizeof text) || !kilobytes(text, "\nPss:", &m->share_bytes))
        m->share_bytes = -1;
    const uint64_t cost = cost_ns() - before;
    p->share_due_ns = tide_now_ns() + cost * SHARE;
    return cost;
}

static bool has_changed(const tide__process_memory *a, const tide__process_memory *b) {
    return a->resident_bytes != b->resident_bytes || a->peak_bytes != b->peak_bytes ||
           a->swapped_bytes != b->swapped_bytes || a->major_faults != b->major_faults ||
           b->minor_faults - a->minor_faults > 16;
}

/// *apart: what of its cost has a budget of its own, added
static tide_status look_at(tide__drain *d, const tide__drain_feed *f, uint64_t *apart, tide_error *err) {
    tide__drain_probe *p = f->probe;
    tide__process_memory m = {.process_id = f->process_id, .t_ns = (int64_t)tide_now_ns()};
    if (p->folder < 0) return TIDE_OK;
    if (!read_status(p->folder, &m) || !read_faults(p->folder, &m)) {
        close(p->folder);
        p->folder = -1;
        return TIDE_OK;
    }
    *apart += read_share(p, &m);
    if (m.share_bytes < 0 && !has_changed(&p->last, &m)) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&d->samples, &d->cap_samples, d->n_samples + 1, err, "to record into '%s'", d->path));
    d->samples[d->n_samples++] = m;
    p->last = m;
    return TIDE_OK;
}

tide_status tide__drain_probe_open(const tide__drain *d, tide__drain_feed *f, tide_error *err) {
    if (d->opt.sample_ms == 0 || f->probe != NULL) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&f->probe, 1, err, "to record into '%s'", d->path));
    f->probe->folder = tide__feed_reader_open_process(f->reader);
    return TIDE_OK;
}

void tide__drain_probe_close(tide__drain_probe *p) {
    if (p != NULL && p->folder >= 0) close(p->folder);
    tide_host_free(p);
}

tide_status tide__drain_sample(tide__drain *d, tide_error *err) {
    const uint64_t began = tide_now_ns();
    uint64_t apart = 0;
    if (d->opt.sample_ms == 0 || began < d->sample_due_ns) return TIDE_OK;
    const uint64_t before = cost_ns();
    for (size_t i = 0; i < d->n_feeds; i++)
        if (!d->feeds[i]->is_ended && d->feeds[i]->probe != NULL) TIDE_TRY(look_at(d, d->feeds[i], &apart, err));
    const uint64_t cost = cost_ns() - before - apart, usual = (uint64_t)d->opt.sample_ms * NS_PER_MS;
    d->sample_due_ns = began + (cost * SHARE > usual ? cost * SHARE : usual);
    return TIDE_OK;
}

bool tide__drain_samples_wait(const tide__drain *d) { return d->n_samples >= WAITING; }

tide_status tide__drain_write_samples(const tide__drain *d, tide_error *err) {
    TIDE_ASSERT(d->n_samples <= d->cap_samples && (d->n_samples == 0 || d->opt.sample_ms > 0));
    for (size_t i = 0; i < d->n_samples; i++) TIDE_TRY(tide__store_write_process_memory(d->store, &d->samples[i], err));
    return TIDE_OK;
}
