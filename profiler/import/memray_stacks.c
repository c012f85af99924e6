// SPDX-License-Identifier: MIT
//
// Stacks of memray's captures: functions, frames (an instruction of one), and a tree of frames. Names and scopes of the
// trace are made where something was allocated. See memray.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/import/memray.h"

// ---- lines of Python ----
//
// The line of an instruction of Python. Three forms of the table there are:
//
//     3.11 on     entries: a byte 1cccclll (code, units of two bytes less one), then what the code wants, in bytes
//     below
//                 128: the line by which it goes on (codes 13, 14: a number; 10 to 12: by code - 10; else by none)
//     3.10        pairs: bytes of code, lines by which they go on (-128: none)
//     before      pairs: bytes of code before which, lines by which it goes on
//
// Python describes them in Objects/locations.md and Objects/lnotab_notes.txt.

enum { V3_10 = 0x030A0000, V3_11 = 0x030B0000 };

/// Six bits a byte, the lowest first, the sign in the lowest bit; ends in front of the next entry at the latest.
static int64_t signed_number(const unsigned char *table, size_t n, size_t *at) {
    uint64_t v = 0;
    for (unsigned shift = 0; *at < n && table[*at] < 128 && shift < 30; shift += 6) {
        const unsigned char c = table[(*at)++];
        v |= (uint64_t)(c & 63) << shift;
        if ((c & 64) == 0) break;
    }
    return (v & 1) != 0 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

static int64_t line_3_11(const unsigned char *table, size_t n, int64_t line, int64_t unit) {
    enum { NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };
    int64_t end = 0;
    for (size_t at = 0; at < n && table[at] >= 128;) {
        const unsigned code = table[at] >> 3 & 15;
        end += (table[at++] & 7) + 1;
        if (code == NO_COLUMNS || code == LONG)
            line += signed_number(table, n, &at);
        else if (code >= 10 && code != NO_LINE)
            line += code - 10;
        if (unit < end) return code == NO_LINE ? 0 : line;
        while (at < n && table[at] < 128) at++;
    }
    return 0;
}

static int64_t line_3_10(const unsigned char *table, size_t n, int64_t line, int64_t byte) {
    int64_t end = 0;
    for (size_t at = 0; at + 1 < n; at += 2) {
        const signed char by = (signed char)table[at + 1];
        end += table[at];
        if (by != -128) line += by;
        if (byte < end) return by == -128 ? 0 : line;
    }
    return 0;
}

static int64_t line_before(const unsigned char *table, size_t n, int64_t line, int64_t byte) {
    int64_t begin = 0;
    for (size_t at = 0; at + 1 < n; at += 2) {
        begin += table[at];
        if (byte < begin) break;
        line += (signed char)table[at + 1];
    }
    return line;
}

/// The line of the instruction at `offset`, as Python's own table of a function has it. `version`: PY_VERSION_HEX.
/// @return 0: not told
static int64_t python_line(uint32_t version, const unsigned char *table, size_t n, int64_t first_line, int32_t offset) {
    if (n == 0 || offset < 0) return 0;
    const int64_t line = version >= V3_11   ? line_3_11(table, n, first_line, offset / 2)
                         : version >= V3_10 ? line_3_10(table, n, first_line, 2 * (int64_t)offset)
                                            : line_before(table, n, first_line, offset);
    return line > 0 && line <= INT32_MAX ? line : 0;
}

// ---- functions, frames, stacks ----

enum { MAX_NODES = 1 << 26, MAX_CODE_BYTES = 1 << 28 };

/// Of each of the maps.
typedef struct entry {
    uint64_t key;
    uint64_t at;
} entry;

static tide_status no_memory(const tide__memray_stacks *s, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", s->path);
}

static void make_maps(tide__memray_stacks *s) {
    if (s->code_ids.entry_bytes == 0) s->code_ids = s->frame_keys = s->node_keys = (tide_map)TIDE_MAP(entry);
}

tide_status tide__memray_put_code(tide__memray_stacks *s, uint64_t id, const tide__memray_code *code, tide_error *err) {
    const size_t bytes = code->table + code->n_table;
    make_maps(s);
    s->code_bytes += bytes;
    if (id == UINT64_MAX || s->code_bytes > MAX_CODE_BYTES || s->n_codes >= UINT32_MAX - 1) return TIDE_ERR_INVALID;
    TIDE_TRY(TIDE_GROW(&s->codes, &s->cap_codes, s->n_codes + 1, err, "to read '%s'", s->path));
    entry *known = tide_map_find(&s->code_ids, id + 1);
    const entry e = {.key = id + 1, .at = s->n_codes};
    if (known == NULL && !tide_map_put(&s->code_ids, &e)) return no_memory(s, err);
    if (known != NULL) known->at = s->n_codes; // told anew: frames of before keep what was told before
    tide__memray_code *c = &s->codes[s->n_codes++];
    *c = *code;
    TIDE_TRY(TIDE_NEW(&c->text, bytes, err, "to read '%s'", s->path));
    memcpy(c->text, code->text, bytes);
    return TIDE_OK;
}

tide_status tide__memray_frame_of(tide__memray_stacks *s, uint64_t code_id, int32_t offset, uint32_t *frame,
                                  tide_error *err) {
    make_maps(s);
    const entry *code = code_id < UINT64_MAX ? tide_map_find(&s->code_ids, code_id + 1) : NULL;
    if (code == NULL) return TIDE_ERR_NOT_FOUND;
    const entry e = {.key = (code->at + 1) << 32 | (uint32_t)offset, .at = s->n_frames};
    const entry *known = tide_map_find(&s->frame_keys, e.key);
    if (known == NULL) {
        if (s->n_frames >= UINT32_MAX - 1) return no_memory(s, err);
        TIDE_TRY(TIDE_GROW(&s->frames, &s->cap_frames, s->n_frames + 1, err, "to read '%s'", s->path));
        if (!tide_map_put(&s->frame_keys, &e)) return no_memory(s, err);
        s->frames[s->n_frames++] = (tide__memray_frame){.code = (uint32_t)code->at, .offset = offset};
    }
    *frame = (uint32_t)(known != NULL ? known->at : e.at);
    return TIDE_OK;
}

tide_status tide__memray_push(tide__memray_stacks *s, uint32_t parent, uint32_t frame, uint32_t *node,
                              tide_error *err) {
    TIDE_ASSERT(frame < s->n_frames && (parent == 0 || parent < s->n_nodes));
    make_maps(s);
    TIDE_TRY(TIDE_GROW(&s->nodes, &s->cap_nodes, s->n_nodes + 2, err, "to read '%s'", s->path));
    if (s->n_nodes == 0) s->nodes[s->n_nodes++] = (tide__memray_node){0};
    const entry e = {.key = ((uint64_t)parent + 1) << 32 | frame, .at = s->n_nodes};
    const entry *known = tide_map_find(&s->node_keys, e.key);
    if (known == NULL) {
        if (s->n_nodes >= MAX_NODES) return TIDE_ERR_INVALID;
        if (!tide_map_put(&s->node_keys, &e)) return no_memory(s, err);
        s->nodes[s->n_nodes++] = (tide__memray_node){.parent = parent, .frame = frame};
    }
    *node = (uint32_t)(known != NULL ? known->at : e.at);
    return TIDE_OK;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void add_place(tide_text *text, const tide__memray_code *c, const char *between, const char *file,
                      int64_t line) {
    tide_text_add(text, c->text);
    if (file[0] != '\0') tide_text_addf(text, "%s%s:%" PRId64, between, file, line);
}

static tide_status put_name(tide__memray_stacks *s, tide_text *text, int64_t *id, tide_error *err) {
    const bool good = !text->failed && tide__names_text(s->names, tide_text_str(text), id) == TIDE_OK;
    tide_text_deinit(text);
    return good ? TIDE_OK : no_memory(s, err);
}

static int64_t line_of(const tide__memray_stacks *s, const tide__memray_frame *f) {
    const tide__memray_code *c = &s->codes[f->code];
    return c->is_line ? c->first_line
                      : python_line(s->python_version, (const unsigned char *)c->text + c->table, c->n_table,
                                    c->first_line, f->offset);
}

static tide_status name_frame(tide__memray_stacks *s, tide__memray_frame *f, tide_error *err) {
    const tide__memray_code *c = &s->codes[f->code];
    if (f->name > 0) return TIDE_OK;
    const int64_t line = line_of(s, f);
    tide_text text = {0}, block = {0};
    add_place(&block, c, " ", base_of(c->text + c->file), line);
    TIDE_TRY(put_name(s, &block, &f->block_name, err));
    add_place(&text, c, " @ ", c->text + c->file, line);
    return put_name(s, &text, &f->name, err);
}

tide_status tide__memray_sum_name(tide__memray_stacks *s, uint32_t node, uint64_t n, int64_t *name, tide_error *err) {
    tide_text text = {0};
    if (node > 0) {
        const tide__memray_frame *f = &s->frames[s->nodes[node].frame];
        const tide__memray_code *c = &s->codes[f->code];
        add_place(&text, c, " ", base_of(c->text + c->file), line_of(s, f));
        tide_text_add(&text, ": ");
    }
    tide_text_addf(&text, "%" PRIu64 " allocation%s", n, n == 1 ? "" : "s");
    return put_name(s, &text, name, err);
}

tide_status tide__memray_scope(tide__memray_stacks *s, uint32_t node, int64_t *scope, int64_t *name, tide_error *err) {
    *scope = *name = 0;
    if (node == 0) return TIDE_OK;
    TIDE_ASSERT(node < s->n_nodes);
    size_t n = 0;
    for (uint32_t at = node; at != 0 && s->nodes[at].scope == 0; at = s->nodes[at].parent) {
        TIDE_ASSERT(s->nodes[at].parent < at);
        TIDE_TRY(TIDE_GROW(&s->way, &s->cap_way, n + 1, err, "to read '%s'", s->path));
        s->way[n++] = at;
    }
    while (n > 0) { // from the outermost on
        tide__memray_node *k = &s->nodes[s->way[--n]];
        tide__memray_frame *f = &s->frames[k->frame];
        TIDE_TRY(name_frame(s, f, err));
        const tide__scope_row row = {.name_id = f->name,
                                     .parent_id = k->parent > 0 ? s->nodes[k->parent].scope : 0,
                                     .kind = TIDE_SCOPE_FRAME,
                                     .step = -1};
        if (tide__names_scope_row(s->names, &row, &k->scope) != TIDE_OK) return no_memory(s, err);
    }
    *scope = s->nodes[node].scope;
    *name = s->frames[s->nodes[node].frame].block_name;
    return TIDE_OK;
}

void tide__memray_stacks_deinit(tide__memray_stacks *s) {
    for (size_t i = 0; i < s->n_codes; i++) tide_host_free(s->codes[i].text);
    tide_host_free(s->codes);
    tide_host_free(s->frames);
    tide_host_free(s->nodes);
    tide_host_free(s->way);
    tide_map_deinit(&s->code_ids);
    tide_map_deinit(&s->frame_keys);
    tide_map_deinit(&s->node_keys);
}
