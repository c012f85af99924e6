// SPDX-License-Identifier: MIT
//
// What TensorFlow Lite Micro's recording interpreter prints of its arena (RecordingMicroAllocator::PrintAllocations),
// as a trace. It is read out of a log: before each of its lines and between them may stand other text.
//
//     [RecordingMicroAllocator] Arena allocation total 9568 bytes
//     [RecordingMicroAllocator] Arena allocation head 7744 bytes
//     [RecordingMicroAllocator] Arena allocation tail 1824 bytes
//     [RecordingMicroAllocator] 'TfLiteEvalTensor data' used 360 bytes with alignment overhead (requested 360 bytes for
//     15 allocations)
//
// (The last one is one line; its words differ between versions.) The head holds what is planned and may share bytes,
// the tail what stays. A category is one block with its sum: sizes of single allocations are not told. What of the tail
// belongs to no category is one block more. Nothing has a time. What is printed later in the same log takes the
// place of what was there before.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/import/import_internal.h"

enum { MAX_CATEGORIES = 64, NS_BETWEEN_EVENTS = 1000 };
static const char mark[] = "[RecordingMicroAllocator] ", begin[] = "Arena allocation total ";

typedef struct importer {
    tide__lines lines;
    tide__new_trace *out;
    tide_import_report *report;
    int64_t allocator, device, thread;
    tide__event blocks[MAX_CATEGORIES + 2]; // [n_blocks] of the print before: to be freed
    size_t n_blocks;
    int64_t next_block;
    // of the print that is being read
    bool is_open, has_head, has_tail;
    uint64_t line; // where it begins
    int64_t total_bytes, head_bytes, tail_bytes, used_bytes;
    tide__event categories[MAX_CATEGORIES];
    size_t n_categories;
} importer;

static tide_status no_memory(const importer *m, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", m->lines.path);
}

/// The same for the print as a whole.
static tide_status bad_print(importer *m, tide_error *err, const char *what) {
    m->lines.number = m->line;
    return tide__lines_bad(&m->lines, err, what);
}

bool tide__import_is_tflm(const char *text) {
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        if (strncmp(at, begin, sizeof begin - 1) != 0) continue;
        const size_t digits = strspn(at + sizeof begin - 1, "0123456789");
        if (digits > 0 && strncmp(at + sizeof begin - 1 + digits, " bytes", 6) == 0) return true;
    }
    return false;
}

// ---- words ----

static bool eat(const char **at, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0) return false;
    *at += n;
    return true;
}

static bool take_number(const char **at, int64_t *out) {
    const char *from = *at;
    for (*out = 0; **at >= '0' && **at <= '9'; ++*at) {
        if (!tide_mul_i64(*out, 10, out) || !tide_add_i64(*out, **at - '0', out)) return false;
    }
    return *at > from && *out <= INT32_MAX; // printed as an int
}

/// Nothing follows but blanks, or the colours of a terminal.
static bool is_end(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\x1b') {
        if (*at++ != '\x1b') continue;
        at += strspn(at, "[0123456789;");
        if (*at++ != 'm') return false;
    }
    return *at == '\0';
}

// ---- a print ----

static tide_status put(importer *m, tide__event e, tide_memory_op op, tide_error *err) {
    e.op = (uint8_t)op;
    e.t_ns = (int64_t)m->report->n_events++ * NS_BETWEEN_EVENTS;
    m->report->n_without_time++;
    return tide__new_trace_event(m->out, &e, false, err);
}

static tide_status fill(importer *m, const char *name, tide_memory_kind kind, int64_t requested_bytes,
                        int64_t used_bytes, tide__event *out, tide_error *err) {
    int64_t tag;
    if (tide__names_text(&m->out->names, name, &tag) != TIDE_OK) return no_memory(m, err);
    *out = (tide__event){.requested_bytes = requested_bytes,
                         .reserved_bytes = used_bytes,
                         .tag_id = (int32_t)tag,
                         .thread = (int32_t)m->thread,
                         .device = (int16_t)m->device,
                         .allocator_id = (int32_t)m->allocator,
                         .kind = (uint8_t)kind};
    return TIDE_OK;
}

static tide_status add_block(importer *m, tide__event e, tide_error *err) {
    TIDE_ASSERT(m->n_blocks < MAX_CATEGORIES + 2);
    e.block_id = m->next_block++;
    m->blocks[m->n_blocks++] = e;
    m->report->n_blocks++;
    return put(m, e, TIDE_MEM_ALLOC, err);
}

static tide_status check_print(importer *m, tide_error *err) {
    if (!m->has_head || !m->has_tail) return bad_print(m, err, "what is printed of the arena has no head or no tail");
    if (m->head_bytes + m->tail_bytes != m->total_bytes)
        return bad_print(m, err, "head and tail of the arena are not its total");
    if (m->used_bytes > m->tail_bytes) return bad_print(m, err, "the categories are more than the arena's tail");
    return TIDE_OK;
}

/// All lines of it were read.
static tide_status end_print(importer *m, tide_error *err) {
    tide__event e = {0};
    if (!m->is_open) return TIDE_OK;
    TIDE_TRY(check_print(m, err));
    for (size_t i = 0; i < m->n_blocks; i++) TIDE_TRY(put(m, m->blocks[i], TIDE_MEM_FREE_COMPLETED, err));
    m->n_blocks = 0;
    if (m->head_bytes > 0) {
        TIDE_TRY(fill(m, "head (not persistent)", TIDE_KIND_WORKSPACE, m->head_bytes, m->head_bytes, &e, err));
        TIDE_TRY(add_block(m, e, err));
    }
    for (size_t i = 0; i < m->n_categories; i++) TIDE_TRY(add_block(m, m->categories[i], err));
    const int64_t rest = m->tail_bytes - m->used_bytes;
    if (rest > 0) {
        TIDE_TRY(fill(m, "tail, in no category", TIDE_KIND_PERSISTENT, rest, rest, &e, err));
        TIDE_TRY(add_block(m, e, err));
    }
    m->is_open = m->has_head = m->has_tail = false;
    m->n_categories = 0;
    m->used_bytes = 0;
    return TIDE_OK;
}

// ---- lines ----

/// Behind "Arena allocation ".
static tide_status take_arena(importer *m, const char *at, tide_error *err) {
    int64_t bytes;
    const bool is_total = eat(&at, "total "), is_head = !is_total && eat(&at, "head "),
               is_tail = !is_total && !is_head && eat(&at, "tail ");
    if (!(is_total || is_head || is_tail) || !take_number(&at, &bytes) || !eat(&at, " bytes") || !is_end(at))
        return tide__lines_bad(&m->lines, err, "want 'Arena allocation total|head|tail NUMBER bytes'");
    if (is_total) {
        TIDE_TRY(end_print(m, err));
        m->is_open = true;
        m->line = m->lines.number;
        m->total_bytes = bytes;
        return TIDE_OK;
    }
    if (!m->is_open) return tide__lines_bad(&m->lines, err, "a part of the arena stands before its total");
    if (is_head ? m->has_head : m->has_tail)
        return tide__lines_bad(&m->lines, err, "a part of the arena is there twice");
    if (is_head) {
        m->has_head = true;
        m->head_bytes = bytes;
    } else {
        m->has_tail = true;
        m->tail_bytes = bytes;
    }
    return TIDE_OK;
}

/// Behind the first "'": "NAME' used 12 bytes with alignment overhead (requested 8 bytes for 2 allocations)", or "…
/// used 12 bytes (requested 8 bytes 2 times)" of the first
/// versions.
static tide_status take_category(importer *m, const char *at, tide_error *err) {
    char name[160];
    int64_t used, requested, count;
    const char *stop = strstr(at, "' used ");
    const size_t len = stop != NULL ? (size_t)(stop - at) : 0;
    bool good = len > 0 && len < 100;
    if (good) at = stop + strlen("' used ");
    good = good && take_number(&at, &used) && eat(&at, " bytes ");
    if (good) (void)eat(&at, "with alignment overhead ");
    good = good && eat(&at, "(requested ") && take_number(&at, &requested) && eat(&at, " bytes ");
    if (good) (void)eat(&at, "for ");
    good = good && take_number(&at, &count) && eat(&at, " ");
    if (good) at += strcspn(at, ")");
    if (!good || !eat(&at, ")") || !is_end(at))
        return tide__lines_bad(&m->lines, err,
                               "want ''NAME' used NUMBER bytes with alignment overhead (requested NUMBER bytes for "
                               "NUMBER WORDS)'");
    if (!m->has_head || !m->has_tail)
        return tide__lines_bad(&m->lines, err, "a category stands before head and tail of its arena");
    if (requested > used) return tide__lines_bad(&m->lines, err, "a category uses less than was asked for");
    if (m->n_categories == MAX_CATEGORIES) return tide__lines_bad(&m->lines, err, "more than 64 categories");
    if (used == 0) return TIDE_OK;
    snprintf(name, sizeof name, "%.*s (%" PRId64 ")", (int)len, stop - len, count);
    TIDE_TRY(fill(m, name, TIDE_KIND_PERSISTENT, requested, used, &m->categories[m->n_categories], err));
    m->n_categories++;
    m->used_bytes += used;
    return TIDE_OK;
}

static tide_status take_line(importer *m, tide_error *err) {
    const char *at = strstr(m->lines.text, mark);
    if (at == NULL) return TIDE_OK;
    at += sizeof mark - 1;
    if (eat(&at, "Arena allocation ")) return take_arena(m, at, err);
    if (eat(&at, "'")) return take_category(m, at, err);
    return tide__lines_bad(&m->lines, err, "what the allocator prints here is not known");
}

static tide_status take_lines(importer *m, tide_error *err) {
    if (tide__names_device(&m->out->names, TIDE_CPU, &m->device) != TIDE_OK ||
        tide__names_text(&m->out->names, "tflm", &m->allocator) != TIDE_OK ||
        tide__names_thread(&m->out->names, 1, 1, NULL, &m->thread) != TIDE_OK)
        return no_memory(m, err);
    for (;;) {
        bool has;
        TIDE_TRY(tide__lines_next(&m->lines, &has, err));
        if (!has) return end_print(m, err);
        TIDE_TRY(take_line(m, err));
    }
}

tide_status tide__import_tflm(const tide__unpack *in, const char *path, tide__new_trace *out,
                              tide_import_report *report, tide_error *err) {
    importer *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "to read '%s'", path));
    m->lines = (tide__lines){.in = in, .path = path};
    m->out = out;
    m->report = report;
    m->next_block = 1;
    const tide_status st = take_lines(m, err);
    report->is_cut = m->lines.is_cut;
    tide__lines_deinit(&m->lines);
    tide_host_free(m);
    return st;
}
