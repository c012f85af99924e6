// SPDX-License-Identifier: MIT
//
// Reader of flatbuffers. See flatbuffer.h.
#include "planner/formats/flatbuffer.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"

/// A table, vector or text may be read so often, on average.
enum { TIMES = 16, AT_LEAST = 4096 };

tide_status tide__fb_fault(tide__fb *fb, size_t at, tide_status st) {
    tide_error_where(fb->err, "%s: byte %zu", fb->path, at);
    return st;
}

// ---- numbers; the caller has checked that they lie in the file ----

static uint64_t number_at(const tide__fb *fb, size_t at, size_t n_bytes) {
    uint64_t v = 0;
    TIDE_ASSERT(n_bytes <= 8 && at <= fb->len && n_bytes <= fb->len - at);
    for (size_t i = 0; i < n_bytes; i++) v |= (uint64_t)fb->data[at + i] << (8 * i);
    return v;
}

static bool lies_inside(const tide__fb *fb, size_t at, uint64_t n_bytes) {
    return at <= fb->len && n_bytes <= fb->len - at;
}

static tide_status cut(tide__fb *fb, size_t at, const char *what) {
    return TIDE__FB_BAD(fb, at, "%s lies outside of the file, which has %zu bytes: it is cut or damaged", what,
                        fb->len);
}

tide_status tide__fb_spend(tide__fb *fb, size_t at, uint64_t n_bytes) {
    if (n_bytes > fb->left)
        return TIDE__FB_BAD(fb, at,
                            "the same bytes of the file are used again and again, more than %d times its size in "
                            "all: such a file is not read",
                            (int)TIMES);
    fb->left -= n_bytes;
    return TIDE_OK;
}

/// Where the offset at `at` leads.
static tide_status follow(tide__fb *fb, size_t at, size_t *out) {
    *out = 0;
    if (!lies_inside(fb, at, 4)) return cut(fb, at, "an offset");
    const uint64_t to = at + number_at(fb, at, 4);
    if (to >= fb->len) return cut(fb, at, "what an offset leads to");
    *out = (size_t)to;
    return TIDE_OK;
}

// ---- tables ----

static tide_status table_at(tide__fb *fb, size_t at, tide__fb_table *out) {
    if (!lies_inside(fb, at, 4)) return cut(fb, at, "a table");
    const int64_t vtable = (int64_t)at - (int32_t)(uint32_t)number_at(fb, at, 4);
    if (vtable < 0 || !lies_inside(fb, (size_t)vtable, 4)) return cut(fb, at, "the vtable of a table");
    *out = (tide__fb_table){
        .at = at, .vtable = (size_t)vtable, .vtable_bytes = (uint16_t)number_at(fb, (size_t)vtable, 2)};
    if (out->vtable_bytes < 4 || out->vtable_bytes % 2 != 0 || !lies_inside(fb, out->vtable, out->vtable_bytes))
        return TIDE__FB_BAD(fb, out->vtable, "a vtable of %u bytes: it is cut or damaged", (unsigned)out->vtable_bytes);
    return tide__fb_spend(fb, at, (uint64_t)out->vtable_bytes);
}

tide_status tide__fb_root(tide__fb *fb, tide__fb_table *out) {
    size_t at;
    fb->left = (uint64_t)fb->len * TIMES + AT_LEAST;
    TIDE_TRY(follow(fb, 0, &at));
    return table_at(fb, at, out);
}

/// Where a field of so many bytes lies; *out 0: it is absent. The size of the table, which stands in the vtable too, is
/// no limit: Python's builder shares vtables of tables of different sizes.
static tide_status field(tide__fb *fb, const tide__fb_table *t, unsigned slot, size_t n_bytes, size_t *out) {
    const size_t entry = 4 + 2 * (size_t)slot;
    *out = 0;
    if (t->at == 0 || entry + 2 > t->vtable_bytes) return TIDE_OK;
    const size_t offset = (size_t)number_at(fb, t->vtable + entry, 2);
    if (offset == 0) return TIDE_OK;
    if (offset < 4 || !lies_inside(fb, t->at + offset, n_bytes))
        return TIDE__FB_BAD(fb, t->vtable + entry, "field %u of a table lies at %zu: the file is cut or damaged", slot,
                            offset);
    *out = t->at + offset;
    return TIDE_OK;
}

static tide_status number(tide__fb *fb, const tide__fb_table *t, unsigned slot, size_t n_bytes, uint64_t otherwise,
                          uint64_t *out) {
    size_t at;
    TIDE_TRY(field(fb, t, slot, n_bytes, &at));
    *out = at == 0 ? otherwise : number_at(fb, at, n_bytes);
    return TIDE_OK;
}

tide_status tide__fb_u8(tide__fb *fb, const tide__fb_table *t, unsigned slot, uint8_t otherwise, uint8_t *out) {
    uint64_t v;
    TIDE_TRY(number(fb, t, slot, 1, otherwise, &v));
    *out = (uint8_t)v;
    return TIDE_OK;
}

tide_status tide__fb_u32(tide__fb *fb, const tide__fb_table *t, unsigned slot, uint32_t otherwise, uint32_t *out) {
    uint64_t v;
    TIDE_TRY(number(fb, t, slot, 4, otherwise, &v));
    *out = (uint32_t)v;
    return TIDE_OK;
}

tide_status tide__fb_i32(tide__fb *fb, const tide__fb_table *t, unsigned slot, int32_t otherwise, int32_t *out) {
    uint32_t v;
    TIDE_TRY(tide__fb_u32(fb, t, slot, (uint32_t)otherwise, &v));
    *out = (int32_t)v;
    return TIDE_OK;
}

tide_status tide__fb_u64(tide__fb *fb, const tide__fb_table *t, unsigned slot, uint64_t otherwise, uint64_t *out) {
    return number(fb, t, slot, 8, otherwise, out);
}

tide_status tide__fb_child(tide__fb *fb, const tide__fb_table *t, unsigned slot, tide__fb_table *out) {
    size_t at, to;
    *out = (tide__fb_table){0};
    TIDE_TRY(field(fb, t, slot, 4, &at));
    if (at == 0) return TIDE_OK;
    TIDE_TRY(follow(fb, at, &to));
    return table_at(fb, to, out);
}

// ---- vectors ----

/// The vector of a field, all of which lies in the file.
static tide_status vector(tide__fb *fb, const tide__fb_table *t, unsigned slot, size_t elem_bytes,
                          tide__fb_vector *out) {
    size_t at, to;
    *out = (tide__fb_vector){0};
    TIDE_TRY(field(fb, t, slot, 4, &at));
    if (at == 0) return TIDE_OK;
    TIDE_TRY(follow(fb, at, &to));
    if (!lies_inside(fb, to, 4)) return cut(fb, to, "the length of a vector");
    const uint64_t n = number_at(fb, to, 4);
    if (!lies_inside(fb, to + 4, n * elem_bytes)) // at most 2^35
        return TIDE__FB_BAD(fb, to, "a vector of %" PRIu64 " elements passes the end of the file: it is cut or damaged",
                            n);
    *out = (tide__fb_vector){to + 4, (size_t)n};
    return TIDE_OK;
}

tide_status tide__fb_list(tide__fb *fb, const tide__fb_table *t, unsigned slot, size_t elem_bytes,
                          tide__fb_vector *out) {
    TIDE_TRY(vector(fb, t, slot, elem_bytes, out));
    return tide__fb_spend(fb, out->at, (uint64_t)out->n * elem_bytes);
}

tide_status tide__fb_blob(tide__fb *fb, const tide__fb_table *t, unsigned slot, tide__fb_vector *out) {
    return vector(fb, t, slot, 1, out);
}

tide_status tide__fb_string(tide__fb *fb, const tide__fb_table *t, unsigned slot, tide__fb_text *out) {
    tide__fb_vector v;
    *out = (tide__fb_text){0};
    TIDE_TRY(tide__fb_list(fb, t, slot, 1, &v));
    if (v.at == 0) return TIDE_OK;
    out->data = (const char *)fb->data + v.at;
    const char *nul = memchr(out->data, '\0', v.n);
    out->len = nul != NULL ? (size_t)(nul - out->data) : v.n;
    return TIDE_OK;
}

tide_status tide__fb_table_at(tide__fb *fb, const tide__fb_vector *v, size_t i, tide__fb_table *out) {
    size_t to;
    TIDE_ASSERT(i < v->n);
    TIDE_TRY(follow(fb, v->at + 4 * i, &to));
    return table_at(fb, to, out);
}

int32_t tide__fb_i32_at(const tide__fb *fb, const tide__fb_vector *v, size_t i) {
    TIDE_ASSERT(i < v->n);
    return (int32_t)(uint32_t)number_at(fb, v->at + 4 * i, 4);
}

uint64_t tide__fb_u64_at(const tide__fb *fb, const tide__fb_vector *v, size_t i) {
    TIDE_ASSERT(i < v->n);
    return number_at(fb, v->at + 8 * i, 8);
}
