// SPDX-License-Identifier: MIT
//
// Captures of memray (github.com/bloomberg/memray) as events of a trace. A file is a head and records, all of it packed
// by lz4 unless memray was told otherwise:
//
//     head     "memray", a zero byte, version (10 to 13), what was recorded, times, command, threads
//     records  a byte that says what it is, and what that wants (memray_records.c, memray_sums.c)
//     end      a record of its own; behind it zeros, for the file grows in steps
//
// Numbers have the size and order of the recorded machine: of 64 bits, the lowest byte first, are read. No event has a
// time: a record every 10 ms or so has one.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "profiler/import/memray.h"

enum { OLDEST = 10, NEWEST = 13 };

// ---- head ----

static bool read_flag(tide__memray_bytes *b, bool *flag) {
    unsigned char c;
    if (!tide__memray_byte(b, &c)) return false;
    if (c > 1) b->fault = "a yes or no that is neither";
    *flag = c == 1;
    return c <= 1;
}

/// Texts up to an empty one.
static bool skip_texts(tide__memray_bytes *b) {
    do {
        if (!tide__memray_text(b, false)) return false;
    } while (b->n_text > 1);
    return true;
}

/// The magic and the version.
static tide_status take_version(tide__memray *m, tide_error *err) {
    uint64_t magic, version;
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_fixed(&m->bytes, 7, &magic), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_fixed(&m->bytes, 4, &version), err);
    m->head.version = (uint32_t)version;
    if (version >= OLDEST && version <= NEWEST) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                                     "cannot read '%s': its format is version %" PRIu64 " of memray's, "
                                     "and versions 10 to 13 are read",
                                     m->bytes.path, version);
    tide_error_where(err, "%s: byte 7", m->bytes.path);
    tide_error_hint(err, "memray 1.7 to 1.20 write them");
    return st;
}

/// What stands before the command's text. False: the file ends, or is wrong.
static bool read_begin(tide__memray *m) {
    tide__memray_bytes *b = &m->bytes;
    uint64_t python = 0, n_frames, begin_ms, end_ms;
    if (m->head.version >= 12 && !tide__memray_fixed(b, 4, &python)) return false;
    m->head.python_version = (uint32_t)python;
    if (!read_flag(b, &m->head.has_native) || !read_flag(b, &m->head.has_sums) ||
        !tide__memray_fixed(b, 8, &m->head.n_calls) || !tide__memray_fixed(b, 8, &n_frames) ||
        !tide__memray_fixed(b, 8, &begin_ms) || !tide__memray_fixed(b, 8, &end_ms))
        return false;
    if (begin_ms > TIDE__MEMRAY_MAX_MS || end_ms > TIDE__MEMRAY_MAX_MS)
        b->fault = "a time that cannot be, or a file of a 32-bit machine";
    m->head.begin_ms = (int64_t)begin_ms;
    m->head.end_ms = (int64_t)end_ms;
    return b->fault == NULL;
}

/// The command's text, and what stands behind it.
static bool read_rest(tide__memray *m, uint64_t *pid) {
    tide__memray_bytes *b = &m->bytes;
    unsigned char python_allocator;
    bool flag;
    if (!tide__memray_text(b, false) || !tide__memray_fixed(b, 4, pid) ||
        !tide__memray_fixed(b, 8, &m->head.main_thread) || !tide__memray_fixed(b, 8, &m->head.n_skipped) ||
        !tide__memray_byte(b, &python_allocator))
        return false;
    if (m->head.version >= 11 && !read_flag(b, &flag)) return false; // Python's own allocators are recorded
    if (m->head.version >= 12 && !read_flag(b, &flag)) return false; // the lives of objects are
    if (m->head.version < 13) return true;
    return tide__memray_text(b, false) && skip_texts(b) && skip_texts(b); // where Python finds modules
}

static tide_status take_head(tide__memray *m, tide_error *err) {
    uint64_t pid = 0;
    TIDE_TRY(take_version(m, err));
    if (m->bytes.has_ended) return TIDE_OK;
    TIDE__MEMRAY_READ(&m->bytes, read_begin(m), err);
    TIDE__MEMRAY_READ(&m->bytes, read_rest(m, &pid), err);
    m->stacks.python_version = m->head.python_version;
    m->t_ns = m->head.begin_ms * 1000000;
    if (pid > 0 && pid <= INT32_MAX) m->blocks.report->pids[m->blocks.report->n_processes++] = (int64_t)pid;
    return TIDE_OK;
}

// ---- the file ----

static tide_status take_file(tide__memray *m, tide_error *err) {
    TIDE_TRY(tide__memray_blocks_begin(&m->blocks, err));
    TIDE_TRY(take_head(m, err));
    m->blocks.report->is_cut = m->bytes.has_ended;
    if (m->bytes.has_ended) return TIDE_OK;
    m->blocks.report->has_sums = m->head.has_sums;
    if (m->head.has_sums) return tide__memray_take_sums(m, err);
    TIDE_TRY(tide__memray_take_records(m, err));
    const tide_import_report *r = m->blocks.report;
    if (!r->is_cut && m->head.n_calls > 0 && m->head.n_calls != r->n_events) m->blocks.report->n_contradictions++;
    return TIDE_OK;
}

tide_status tide__import_memray(const tide__unpack *in, const char *path, tide__new_trace *out,
                                tide_import_report *report, tide_error *err) {
    tide__memray *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "to read '%s'", path));
    m->bytes.in = in;
    m->bytes.path = m->stacks.path = m->blocks.path = path;
    m->stacks.names = &out->names;
    m->blocks.out = out;
    m->blocks.report = report;
    const tide_status st = take_file(m, err);
    for (size_t i = 0; i < m->n_threads; i++) tide_host_free(m->threads[i].stack);
    tide_host_free(m->threads);
    tide_map_deinit(&m->thread_ids);
    tide__memray_blocks_deinit(&m->blocks);
    tide__memray_stacks_deinit(&m->stacks);
    tide__memray_bytes_deinit(&m->bytes);
    tide_host_free(m);
    return st;
}
