// SPDX-License-Identifier: MIT
//
// The log of RMM's logging adaptor (rmm::mr::logging_resource_adaptor) as events of a trace, line by line:
//
//     Thread,Time,Action,Pointer,Size,Stream
//     4711,11:54:32.123456,allocate,0x7f0000000000,1024,0x2
//     4711,11:54:32.123460,free,0x7f0000000000,1024,0x2
//     4711,11:54:32.123470,allocate failure,(nil),1073741824,0x2
//
// Columns are found by the names in the first line. Times have no date: one that is half a day before the last belongs
// to the next day.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/import/import_internal.h"

enum { MAX_COLUMNS = 32 };
enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {"Thread", "Time", "Action", "Pointer", "Size", "Stream"};

/// By address + 1.
typedef struct live {
    uint64_t key;
    int64_t block_id, bytes, stream;
} live;

typedef struct importer {
    tide__lines lines;
    tide__new_trace *out;
    tide_import_report *report;
    tide_map live;
    char *cells[MAX_COLUMNS];
    size_t n_cells;
    size_t column[N_COLUMNS]; // which cell is it
    int64_t next_block, allocator, device;
    int64_t last_us, day_us;
} importer;

static tide_status no_memory(const importer *m, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", m->lines.path);
}

// ---- lines ----

/// The next line in its cells; *has false: there is none.
static tide_status next_line(importer *m, bool *has, tide_error *err) {
    TIDE_TRY(tide__lines_next(&m->lines, has, err));
    m->n_cells = 0;
    for (char *at = *has ? m->lines.text : NULL; at != NULL;) {
        if (m->n_cells == MAX_COLUMNS) return tide__lines_bad(&m->lines, err, "a line of more than 32 columns");
        m->cells[m->n_cells++] = at;
        at = strchr(at, ',');
        if (at != NULL) *at++ = '\0';
    }
    return TIDE_OK;
}

static tide_status take_head(importer *m, tide_error *err) {
    bool has;
    TIDE_TRY(next_line(m, &has, err));
    for (size_t c = 0; c < N_COLUMNS; c++) {
        char what[64];
        size_t i = 0;
        while (i < m->n_cells && strcmp(m->cells[i], column_names[c]) != 0) i++;
        snprintf(what, sizeof what, "it has no column '%s'", column_names[c]);
        if (!has || i == m->n_cells) return tide__lines_bad(&m->lines, err, what);
        m->column[c] = i;
    }
    return TIDE_OK;
}

static const char *cell(const importer *m, int c) { return m->column[c] < m->n_cells ? m->cells[m->column[c]] : ""; }

// ---- cells ----

/// Decimal, or hexadecimal with 0x; "(nil)" and "nil" are 0.
static bool number_of(const char *text, uint64_t *out) {
    char *end;
    if (strcmp(text, "(nil)") == 0 || strcmp(text, "nil") == 0) {
        *out = 0;
        return true;
    }
    if (*text < '0' || *text > '9') return false;
    const bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    *out = strtoull(text, &end, is_hex ? 16 : 10);
    return *end == '\0' && errno == 0;
}

/// "11:54:32.123456" in us of the day.
static bool time_of(const char *text, int64_t *us) {
    unsigned hour, minute, second;
    char point;
    int used = 0;
    if (sscanf(text, "%2u:%2u:%2u%c%n", &hour, &minute, &second, &point, &used) != 4) return false;
    if ((point != '.' && point != ':') || hour > 23 || minute > 59 || second > 60) return false;
    int64_t fraction = 0, unit = 1000000;
    for (text += used; *text >= '0' && *text <= '9' && unit > 1; text++, unit /= 10)
        fraction = fraction * 10 + (*text - '0');
    while (*text >= '0' && *text <= '9') text++;
    *us = ((int64_t)hour * 3600 + minute * 60 + second) * 1000000 + fraction * unit;
    return *text == '\0';
}

// ---- events ----

static tide_status put(importer *m, const live *b, tide_memory_op op, int64_t t_ns, int32_t thread, tide_error *err) {
    const tide__event e = {.t_ns = t_ns,
                           .block_id = b->block_id,
                           .requested_bytes = b->bytes,
                           .reserved_bytes = op == TIDE_MEM_OOM ? 0 : b->bytes,
                           .address = op == TIDE_MEM_OOM ? 0 : (int64_t)(b->key - 1),
                           .stream = b->stream,
                           .thread = thread,
                           .device = (int16_t)m->device,
                           .allocator_id = (int32_t)m->allocator,
                           .op = (uint8_t)op,
                           .kind = TIDE_KIND_DEFAULT};
    return tide__new_trace_event(m->out, &e, false, err);
}

static tide_status take_alloc(importer *m, live *b, int64_t t_ns, int32_t thread, tide_error *err) {
    live *old = tide_map_find(&m->live, b->key);
    if (old != NULL) { // its free is not in the log
        TIDE_TRY(put(m, old, TIDE_MEM_FREE_COMPLETED, t_ns, thread, err));
        tide_map_take(&m->live, old);
        m->report->n_contradictions++;
    }
    b->block_id = m->next_block++;
    if (!tide_map_put(&m->live, b)) return no_memory(m, err);
    m->report->n_blocks++;
    return put(m, b, TIDE_MEM_ALLOC, t_ns, thread, err);
}

/// A free of what was allocated before the log began has no block that could be there from the begin: it is counted.
static tide_status take_free(importer *m, const live *b, int64_t t_ns, int32_t thread, tide_error *err) {
    live *known = tide_map_find(&m->live, b->key);
    if (known == NULL) {
        m->report->n_unknown_frees++;
        return TIDE_OK;
    }
    TIDE_TRY(put(m, known, TIDE_MEM_FREE_COMPLETED, t_ns, thread, err));
    tide_map_take(&m->live, known);
    return TIDE_OK;
}

static tide_status take_line(importer *m, tide_error *err) {
    uint64_t thread, pointer, size, stream;
    int64_t us, thread_id;
    if (m->n_cells == 1 && m->cells[0][0] == '\0') return TIDE_OK; // an empty line
    if (!number_of(cell(m, THREAD), &thread) || thread == 0 || thread > INT32_MAX)
        return tide__lines_bad(&m->lines, err, "'Thread' is no thread's number");
    if (!time_of(cell(m, TIME), &us))
        return tide__lines_bad(&m->lines, err, "'Time' is not of the form 11:54:32.123456");
    if (!number_of(cell(m, POINTER), &pointer) || pointer == UINT64_MAX)
        return tide__lines_bad(&m->lines, err, "'Pointer' is no address");
    if (!number_of(cell(m, SIZE), &size) || size > INT64_MAX)
        return tide__lines_bad(&m->lines, err, "'Size' is no number of bytes");
    if (!number_of(cell(m, STREAM), &stream)) return tide__lines_bad(&m->lines, err, "'Stream' is no stream");
    if (us + m->day_us < m->last_us - INT64_C(43200000000)) m->day_us += INT64_C(86400000000);
    us += m->day_us;
    if (us > m->last_us) m->last_us = us;
    if (tide__names_thread(&m->out->names, 1, (int64_t)thread, NULL, &thread_id) != TIDE_OK) return no_memory(m, err);
    live b = {.key = pointer + 1, .bytes = (int64_t)size, .stream = (int64_t)stream};
    const char *action = cell(m, ACTION);
    m->report->n_events++;
    if (strcmp(action, "allocate") == 0) return take_alloc(m, &b, us * 1000, (int32_t)thread_id, err);
    if (strcmp(action, "free") == 0 || strcmp(action, "deallocate") == 0)
        return take_free(m, &b, us * 1000, (int32_t)thread_id, err);
    if (strcmp(action, "allocate failure") == 0) return put(m, &b, TIDE_MEM_OOM, us * 1000, (int32_t)thread_id, err);
    m->report->n_unknown++;
    return TIDE_OK;
}

static tide_status take_lines(importer *m, tide_error *err) {
    const tide_device device = {.type = TIDE_DEVICE_CUDA};
    if (tide__names_device(&m->out->names, device, &m->device) != TIDE_OK ||
        tide__names_text(&m->out->names, "rmm", &m->allocator) != TIDE_OK)
        return no_memory(m, err);
    TIDE_TRY(take_head(m, err));
    for (;;) {
        bool has;
        TIDE_TRY(next_line(m, &has, err));
        if (!has) return TIDE_OK;
        TIDE_TRY(take_line(m, err));
    }
}

tide_status tide__import_rmm(const tide__unpack *in, const char *path, tide__new_trace *out, tide_import_report *report,
                             tide_error *err) {
    importer *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "to read '%s'", path));
    m->lines = (tide__lines){.in = in, .path = path};
    m->out = out;
    m->report = report;
    m->live = (tide_map)TIDE_MAP(live);
    m->next_block = 1;
    const tide_status st = take_lines(m, err);
    report->is_cut = m->lines.is_cut;
    tide__lines_deinit(&m->lines);
    tide_map_deinit(&m->live);
    tide_host_free(m);
    return st;
}
