// SPDX-License-Identifier: MIT
//
// Which format a file has, and the trace that is made of it. See import.h.
#include "profiler/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "profiler/import/import_internal.h"

const char *tide_import_format_name(tide_import_format format) {
    static const char *const names[] = {[TIDE_IMPORT_UNKNOWN] = "no recording of a known tool",
                                        [TIDE_IMPORT_TORCH] = "a memory snapshot of PyTorch",
                                        [TIDE_IMPORT_TORCH_SQLITE] = "a memory snapshot of PyTorch (SQLite)",
                                        [TIDE_IMPORT_NSIGHT] = "an export of Nsight Systems",
                                        [TIDE_IMPORT_HEAPTRACK] = "a recording of heaptrack",
                                        [TIDE_IMPORT_RMM] = "a log of RMM",
                                        [TIDE_IMPORT_TFLM] = "a log of TensorFlow Lite Micro's arena",
                                        [TIDE_IMPORT_MEMRAY] = "a capture of memray"};
    return names[format];
}

bool tide_import_is_torch(const char *format_name) {
    return strcmp(format_name, tide_import_format_name(TIDE_IMPORT_TORCH)) == 0 ||
           strcmp(format_name, tide_import_format_name(TIDE_IMPORT_TORCH_SQLITE)) == 0;
}

// ---- which format ----

/// What stands in an SQLite file, by its tables.
static tide_import_format format_of_sqlite(const char *path) {
    if (tide__import_is_nsight(path)) return TIDE_IMPORT_NSIGHT;
    return tide__import_is_torch_sqlite(path) ? TIDE_IMPORT_TORCH_SQLITE : TIDE_IMPORT_UNKNOWN;
}

/// The first line of a log of RMM, whatever the order of its columns.
static bool is_rmm(const char *head) {
    static const char *const words[] = {"Thread", "Time", "Action", "Pointer", "Size"};
    const char *end = strchr(head, '\n');
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *at = strstr(head, words[i]);
        if (at == NULL || (end != NULL && at > end)) return false;
    }
    return true;
}

/// "v 10400 3" alone in the first line, then lines of one letter and a blank.
static bool is_heaptrack(const char *head) {
    const size_t digits = strspn(head + (head[0] == 'v' && head[1] == ' ' ? 2 : 0), "0123456789abcdef ");
    return head[0] == 'v' && head[1] == ' ' && digits >= 3 && head[2 + digits] == '\n';
}

/// The format by the first `n` bytes, of the file or of what is packed in it; a zero byte stands behind them.
static tide_import_format format_of(const char *path, bool is_packed, const char *head, size_t n) {
    if (n < 2) return TIDE_IMPORT_UNKNOWN;
    if ((unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) return TIDE_IMPORT_TORCH;
    if (n >= 100 && memcmp(head, "SQLite format 3", 16) == 0) // a trace says so itself, at byte 68
        return !is_packed && memcmp(head + 68, "tide", 4) != 0 ? format_of_sqlite(path) : TIDE_IMPORT_UNKNOWN;
    if (n >= 7 && memcmp(head, "memray", 7) == 0) return TIDE_IMPORT_MEMRAY;
    if (is_heaptrack(head)) return TIDE_IMPORT_HEAPTRACK;
    return is_rmm(head) ? TIDE_IMPORT_RMM : TIDE_IMPORT_UNKNOWN;
}

/// A text that may be any, and whose lines of ours come somewhere: JSON and lists of numbers are none.
static bool may_be_log(const char *head, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)head[i];
        if (c < ' ' && c != '\t' && c != '\r' && c != '\n' && c != '\x1b') return false;
    }
    return n > 0 && head[0] != '{';
}

/// Looks into the first MiB, of which `head` [n] was read, in pieces that overlap by more than a line that is looked
/// for.
static tide_import_format format_of_log(FILE *file, const char *head, size_t n) {
    enum { MOST = 1 << 20, OVERLAP = 256 };
    char text[16384 + 1];
    memcpy(text, head, n);
    for (size_t seen = n; seen < MOST;) {
        const size_t more = fread(text + n, 1, sizeof text - 1 - n, file);
        n += more;
        seen += more;
        text[n] = '\0';
        for (size_t i = 0; i < n; i++)
            if (text[i] == '\0') text[i] = ' ';
        if (tide__import_is_tflm(text)) return TIDE_IMPORT_TFLM;
        if (more == 0) break;
        const size_t kept = n < OVERLAP ? n : OVERLAP;
        memmove(text, text + n - kept, kept);
        n = kept;
    }
    return TIDE_IMPORT_UNKNOWN;
}

tide_import_format tide_import_look(const char *path) {
    char head[256];
    struct stat info;
    tide__unpack u;
    // Nothing but a plain file is opened: a pipe would lose its begin.
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || tide__unpack_open(path, &u, NULL) != TIDE_OK)
        return TIDE_IMPORT_UNKNOWN;
    const size_t n = fread(head, 1, sizeof head - 1, u.file);
    head[n] = '\0';
    tide_import_format format = format_of(path, u.packed != NULL, head, n);
    if (format == TIDE_IMPORT_UNKNOWN && may_be_log(head, n)) format = format_of_log(u.file, head, n);
    tide__unpack_close(&u);
    return format;
}

// ---- the trace ----

static tide_status put_facts(tide__new_trace *out, const char *path, const tide_import_report *r, tide_error *err) {
    TIDE_TRY(tide__new_trace_meta(out, "imported_from", path, err));
    TIDE_TRY(tide__new_trace_meta(out, "imported_format", tide_import_format_name(r->format), err));
    TIDE_TRY(tide__new_trace_meta_int(out, "imported_blocks_before", (int64_t)r->n_blocks_before, err));
    TIDE_TRY(tide__new_trace_meta_int(out, "imported_bytes_before", (int64_t)r->bytes_before, err));
    TIDE_TRY(tide__new_trace_meta_int(out, "imported_contradictions", (int64_t)r->n_contradictions, err));
    return tide__new_trace_meta_int(out, "imported_unlike_state", (int64_t)r->n_inexact, err);
}

/// Whether its times are ns since 1970.
static bool has_dates(tide_import_format format) {
    return format == TIDE_IMPORT_MEMRAY || tide_import_is_torch(tide_import_format_name(format));
}

static tide_status put_processes(tide__new_trace *out, const char *path, const tide_import_report *r, tide_error *err) {
    const tide__sql *s;
    TIDE_TRY(tide__new_trace_sql(out, &s, err));
    for (size_t i = 0; i == 0 || i < r->n_processes; i++) {
        int64_t id;
        const int64_t pid = i < r->n_processes ? r->pids[i] : 0;
        const tide__process_row row = {
            .pid = pid, .rank = -1, .command = path, .has_wall = has_dates(r->format), .begin_ns = out->first_ns};
        TIDE_TRY(tide__store_add_process(out->store, &row, &id, err));
        TIDE_TRY(tide__store_end_process(out->store, id, "closed", out->last_ns, err));
    }
    return TIDE_OK;
}

/// A file beside the new trace that has no name: it goes with its last reader, however that ends.
static tide_status open_spool(const tide__new_trace *out, FILE **spool, tide_error *err) {
    tide_text name = {0};
    tide_text_addf(&name, "%s.events", out->tmp_path);
    if (name.failed) return TIDE_NO_MEMORY(err, "to write '%s'", out->path);
    *spool = fopen(tide_text_str(&name), "w+xe");
    const int why = errno;
    if (*spool != NULL) unlink(tide_text_str(&name));
    tide_text_deinit(&name);
    return *spool != NULL ? TIDE_OK : tide_output_failed("the events for", out->path, why, err);
}

/// What the recorded program's allocator was set to, as the allocator pytorch of ours reads it.
static tide_status put_settings(tide__new_trace *out, const tide_pytorch_options *settings, tide_error *err) {
    tide_text text = {0};
    tide_pytorch_options_text(settings, &text);
    tide_status st = text.failed ? TIDE_NO_MEMORY(err, "for settings of the allocator") : TIDE_OK;
    if (st == TIDE_OK && text.len > 0) st = tide__new_trace_meta(out, "pytorch_settings", tide_text_str(&text), err);
    tide_text_deinit(&text);
    return st;
}

static tide_status import_torch(FILE *in, const char *path, tide__new_trace *out, tide_import_report *r,
                                tide_error *err) {
    tide__torch_snapshot s = {0};
    FILE *spool;
    TIDE_TRY(open_spool(out, &spool, err));
    tide_status st = r->format == TIDE_IMPORT_TORCH_SQLITE ? tide__torch_sqlite_read(path, spool, &s, err)
                                                           : tide__torch_snapshot_read(in, path, spool, &s, err);
    if (st == TIDE_OK) {
        r->n_events = s.n_events;
        r->n_unknown = s.n_unknown_actions;
        r->n_without_time = s.n_without_time;
        if (!s.has_settings) s.settings.expandable_segments = s.has_ranges; // nothing else makes them
        st = tide__torch_trace(&s, path, out, r, err);
        if (st == TIDE_OK) st = put_settings(out, &s.settings, err);
    }
    tide__torch_snapshot_deinit(&s);
    fclose(spool);
    return st;
}

static tide_status import_into(const tide__unpack *in, const char *path, tide__new_trace *out, tide_import_report *r,
                               tide_error *err) {
    switch (r->format) {
    case TIDE_IMPORT_RMM:
        TIDE_TRY(tide__import_rmm(in, path, out, r, err));
        break;
    case TIDE_IMPORT_HEAPTRACK:
        TIDE_TRY(tide__import_heaptrack(in, path, out, r, err));
        break;
    case TIDE_IMPORT_TFLM:
        TIDE_TRY(tide__import_tflm(in, path, out, r, err));
        break;
    case TIDE_IMPORT_MEMRAY:
        TIDE_TRY(tide__import_memray(in, path, out, r, err));
        break;
    case TIDE_IMPORT_NSIGHT:
        TIDE_TRY(tide__import_nsight(in->file, path, out, r, err));
        break;
    default:
        TIDE_TRY(import_torch(in->file, path, out, r, err));
        break;
    }
    if (r->is_cut && r->n_events == 0)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': it ends before its first event", path);
    TIDE_TRY(put_processes(out, path, r, err));
    TIDE_TRY(put_facts(out, path, r, err));
    return tide__new_trace_finish(out, NULL, err);
}

/// Why nothing can be made of a file.
static tide_status unknown(const char *path, const tide__unpack *in, tide_error *err) {
    char head[256];
    const size_t n = fread(head, 1, sizeof head, in->file);
    tide_status st = TIDE_ERR_BAD_INPUT;
    if (n == 0 && in->is_cut)
        return TIDE_FAIL(err, st, "cannot import '%s': what is packed in it ends before its first byte", path);
    st = TIDE_FAIL(err, st, "cannot import '%s': it is no recording of a known tool", path);
    tide_error_hint(
        err, "memory snapshots of PyTorch, exports of Nsight Systems, recordings of heaptrack, captures of memray, "
             "logs of RMM and of TensorFlow Lite Micro are read, packed (zstd, gzip, lz4) too but for SQLite");
    return n == 0 ? tide__unpack_fault(in, st, err) : st;
}

tide_status tide_import_file(const char *path, const char *out_path, tide_import_report *report, tide_error *err) {
    tide_import_report own = {.format = tide_import_look(path)};
    tide__new_trace out;
    tide__unpack in;
    TIDE_TRY(tide__unpack_open(path, &in, err));
    tide_status st = TIDE_OK;
    if (own.format == TIDE_IMPORT_UNKNOWN) st = unknown(path, &in, err);
    if (st == TIDE_OK) st = tide__new_trace_create(&out, out_path, err);
    if (st == TIDE_OK) {
        st = tide__unpack_fault(&in, import_into(&in, path, &out, &own, err), err);
        tide__new_trace_deinit(&out);
    }
    tide__unpack_close(&in);
    if (st == TIDE_OK && report != NULL) *report = own;
    return st;
}
