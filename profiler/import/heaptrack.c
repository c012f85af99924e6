// SPDX-License-Identifier: MIT
//
// The text of heaptrack as events of a trace. All numbers are hexadecimal, lists count
// from 1, and 0 is none:
//
//     v 10400 3              versions of heaptrack and of the format, 1 to 3
//     s 4 main               a text, with its length in format 3
//     i 5619 1 2 3 1c        a place: address, module, function, file, line
//     t 4 3                  a frame: place, and the frame that called it
//     a 3e8 9                what may be allocated: bytes, frame
//     + 0                    it is allocated: number of the line `a`, from 0
//     - 0                    one of its blocks is freed; which one is not told: the last is taken
//     c 5                    ms since the begin
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/import/import_internal.h"

typedef struct place {
    int64_t name; // text of the trace: a frame's
    int64_t block_name;
} place;

typedef struct info {
    int64_t bytes;
    int32_t scope, name;
    uint32_t last; // its live block that came last, + 1; 0: none
} info;

typedef struct block {
    uint32_t before; // the live one of the same info before it, + 1
} block;

typedef struct importer {
    tide__lines lines;
    tide__new_trace *out;
    tide_import_report *report;
    uint64_t format;
    char **texts;         // [n_texts], owned
    place *places;        // [n_places]
    int32_t *frames;      // [n_frames] scopes
    int32_t *frame_names; // [n_frames] names of blocks
    info *infos;          // [n_infos]
    block *blocks;        // [n_blocks]; the number of a block is its place + 1
    size_t n_texts, cap_texts, n_places, cap_places, n_frames, cap_frames, cap_frame_names, n_infos, cap_infos,
        n_blocks, cap_blocks;
    int64_t t_ns, allocator, device, thread;
} importer;

static tide_status no_memory(const importer *m, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", m->lines.path);
}

/// The next hexadecimal number of a line, at most `max`; false: there is none, or it is larger.
static bool next_number(const char **at, uint64_t max, uint64_t *out) {
    while (**at == ' ') ++*at;
    char *end;
    if (**at == '-' || **at == '+') return false;
    errno = 0;
    *out = strtoull(*at, &end, 16);
    if (end == *at || errno != 0 || *out > max || (*end != ' ' && *end != '\0')) return false;
    *at = end;
    return true;
}

// ---- lines ----

static tide_status take_text(importer *m, const char *at, tide_error *err) {
    uint64_t n;
    if (m->format >= 3 && (!next_number(&at, UINT32_MAX, &n) || *at != ' '))
        return tide__lines_bad(&m->lines, err, "a text without its length");
    while (m->format < 3 && *at == ' ') at++;
    if (m->format >= 3) at++;
    TIDE_TRY(TIDE_GROW(&m->texts, &m->cap_texts, m->n_texts + 1, err, "to read '%s'", m->lines.path));
    TIDE_TRY(TIDE_COPY_TEXT(&m->texts[m->n_texts], at, err, "to read '%s'", m->lines.path));
    m->n_texts++;
    return TIDE_OK;
}

static const char *text_of(const importer *m, uint64_t i) { return i > 0 && i <= m->n_texts ? m->texts[i - 1] : ""; }

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static tide_status put_name(importer *m, tide_text *text, int64_t *id, tide_error *err) {
    const bool good = !text->failed && tide__names_text(&m->out->names, tide_text_str(text), id) == TIDE_OK;
    tide_text_deinit(text);
    return good ? TIDE_OK : no_memory(m, err);
}

/// What was inlined there stands behind the function and is not looked at.
static tide_status take_place(importer *m, const char *at, tide_error *err) {
    uint64_t address, module, function = 0, file = 0, line = 0;
    place p = {0};
    if (!next_number(&at, UINT64_MAX, &address) || !next_number(&at, m->n_texts, &module))
        return tide__lines_bad(&m->lines, err, "a place without its module");
    if (next_number(&at, m->n_texts, &function) && next_number(&at, m->n_texts, &file) &&
        !next_number(&at, INT32_MAX, &line))
        return tide__lines_bad(&m->lines, err, "a place without its line");
    tide_text frame = {0}, name = {0};
    if (function > 0)
        tide_text_add(&frame, text_of(m, function));
    else
        tide_text_addf(&frame, "0x%" PRIx64 " in %s", address, base_of(text_of(m, module)));
    tide_text_add(&name, tide_text_str(&frame));
    if (file > 0) tide_text_addf(&frame, " @ %s:%" PRIu64, text_of(m, file), line);
    if (file > 0) tide_text_addf(&name, " %s:%" PRIu64, base_of(text_of(m, file)), line);
    tide_status st = put_name(m, &frame, &p.name, err);
    const tide_status second = put_name(m, &name, &p.block_name, st == TIDE_OK ? err : NULL);
    if (st == TIDE_OK) st = second;
    if (st == TIDE_OK) st = TIDE_GROW(&m->places, &m->cap_places, m->n_places + 1, err, "to read '%s'", m->lines.path);
    if (st == TIDE_OK) m->places[m->n_places++] = p;
    return st;
}

static tide_status take_frame(importer *m, const char *at, tide_error *err) {
    uint64_t where, caller;
    int64_t scope;
    if (!next_number(&at, m->n_places, &where) || where == 0 || !next_number(&at, m->n_frames, &caller))
        return tide__lines_bad(&m->lines, err, "a frame whose place or caller is not there");
    const tide__scope_row row = {.name_id = m->places[where - 1].name,
                                 .parent_id = caller > 0 ? m->frames[caller - 1] : 0,
                                 .kind = TIDE_SCOPE_FRAME,
                                 .step = -1};
    if (tide__names_scope_row(&m->out->names, &row, &scope) != TIDE_OK) return no_memory(m, err);
    TIDE_TRY(TIDE_GROW(&m->frames, &m->cap_frames, m->n_frames + 1, err, "to read '%s'", m->lines.path));
    TIDE_TRY(TIDE_GROW(&m->frame_names, &m->cap_frame_names, m->n_frames + 1, err, "to read '%s'", m->lines.path));
    m->frames[m->n_frames] = (int32_t)scope;
    m->frame_names[m->n_frames++] = (int32_t)m->places[where - 1].block_name;
    return TIDE_OK;
}

static tide_status take_info(importer *m, const char *at, tide_error *err) {
    uint64_t bytes, frame;
    if (!next_number(&at, INT64_MAX, &bytes) || !next_number(&at, m->n_frames, &frame))
        return tide__lines_bad(&m->lines, err, "an allocation whose size or frame is not there");
    TIDE_TRY(TIDE_GROW(&m->infos, &m->cap_infos, m->n_infos + 1, err, "to read '%s'", m->lines.path));
    m->infos[m->n_infos++] = (info){.bytes = (int64_t)bytes,
                                    .scope = frame > 0 ? m->frames[frame - 1] : 0,
                                    .name = frame > 0 ? m->frame_names[frame - 1] : 0};
    return TIDE_OK;
}

static tide_status put_event(importer *m, const info *a, uint32_t number, tide_memory_op op, tide_error *err) {
    const tide__event e = {.t_ns = m->t_ns,
                           .block_id = number,
                           .requested_bytes = a->bytes,
                           .reserved_bytes = a->bytes,
                           .thread = (int32_t)m->thread,
                           .scope_id = op == TIDE_MEM_ALLOC ? a->scope : 0,
                           .tag_id = a->name,
                           .allocator_id = (int32_t)m->allocator,
                           .device = (int16_t)m->device,
                           .op = (uint8_t)op,
                           .kind = TIDE_KIND_DEFAULT};
    m->report->n_events++;
    return tide__new_trace_event(m->out, &e, false, err);
}

static tide_status take_alloc(importer *m, const char *at, bool begins, tide_error *err) {
    uint64_t i;
    if (m->n_infos == 0 || !next_number(&at, m->n_infos - 1, &i))
        return tide__lines_bad(&m->lines, err, "an event of an allocation that is not there");
    info *a = &m->infos[i];
    if (!begins) {
        const uint32_t number = a->last;
        if (number == 0) {
            m->report->n_unknown_frees++;
            return TIDE_OK;
        }
        TIDE_ASSERT(number <= m->n_blocks && m->blocks[number - 1].before < number);
        a->last = m->blocks[number - 1].before;
        return put_event(m, a, number, TIDE_MEM_FREE_COMPLETED, err);
    }
    if (m->n_blocks >= UINT32_MAX - 1) return tide__lines_bad(&m->lines, err, "it has more than 2^32 blocks");
    TIDE_TRY(TIDE_GROW(&m->blocks, &m->cap_blocks, m->n_blocks + 1, err, "to read '%s'", m->lines.path));
    m->blocks[m->n_blocks++] = (block){.before = a->last};
    a->last = (uint32_t)m->n_blocks;
    m->report->n_blocks++;
    return put_event(m, a, a->last, TIDE_MEM_ALLOC, err);
}

static tide_status take_time(importer *m, const char *at, tide_error *err) {
    uint64_t ms;
    if (!next_number(&at, INT64_MAX / 2000000, &ms)) return tide__lines_bad(&m->lines, err, "a time that is no number");
    if ((int64_t)ms * 1000000 > m->t_ns) m->t_ns = (int64_t)ms * 1000000;
    return TIDE_OK;
}

static tide_status take_version(importer *m, const char *at, tide_error *err) {
    uint64_t program;
    if (!next_number(&at, UINT64_MAX, &program) || !next_number(&at, UINT64_MAX, &m->format) || m->format < 1 ||
        m->format > 3)
        return tide__lines_bad(&m->lines, err, "its format is another than 1 to 3");
    return TIDE_OK;
}

static tide_status take_line(importer *m, tide_error *err) {
    const char *at = m->lines.text + (m->lines.text[0] != '\0');
    if (m->lines.text[0] != 'v' && m->format == 0)
        return tide__lines_bad(&m->lines, err, "it does not begin with the versions of heaptrack and its format");
    switch (m->lines.text[0]) {
    case 'v':
        return take_version(m, at, err);
    case 's':
        return take_text(m, at, err);
    case 'i':
        return take_place(m, at, err);
    case 't':
        return take_frame(m, at, err);
    case 'a':
        return take_info(m, at, err);
    case '+':
    case '-':
        return take_alloc(m, at, m->lines.text[0] == '+', err);
    case 'c':
        return take_time(m, at, err);
    default: // the command, the machine, resident memory, remarks
        return TIDE_OK;
    }
}

static tide_status take_lines(importer *m, tide_error *err) {
    if (tide__names_device(&m->out->names, TIDE_CPU, &m->device) != TIDE_OK ||
        tide__names_thread(&m->out->names, 1, 1, NULL, &m->thread) != TIDE_OK ||
        tide__names_text(&m->out->names, "malloc", &m->allocator) != TIDE_OK)
        return no_memory(m, err);
    bool has = true;
    while (has) {
        TIDE_TRY(tide__lines_next(&m->lines, &has, err));
        if (has) TIDE_TRY(take_line(m, err));
    }
    return TIDE_OK;
}

tide_status tide__import_heaptrack(const tide__unpack *in, const char *path, tide__new_trace *out,
                                   tide_import_report *report, tide_error *err) {
    importer m = {.lines = {.in = in, .path = path, .all_end = true}, .out = out, .report = report};
    const tide_status st = take_lines(&m, err);
    report->is_cut = m.lines.is_cut;
    for (size_t i = 0; i < m.n_texts; i++) tide_host_free(m.texts[i]);
    tide_host_free(m.texts);
    tide_host_free(m.places);
    tide_host_free(m.frames);
    tide_host_free(m.frame_names);
    tide_host_free(m.infos);
    tide_host_free(m.blocks);
    tide__lines_deinit(&m.lines);
    return st;
}
