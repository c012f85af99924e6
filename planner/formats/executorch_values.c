// SPDX-License-Identifier: MIT
//
// What an ExecuTorch program says of its values: types, sizes, places. See executorch.h.
//
//     [root]["ET12"]["eh00"][its bytes][bytes of the flatbuffer][where segments begin][bytes of segments] … segments
//
// A memory of the plan is a number from 1 on with a size (non_const_buffer_sizes) and a device; tidemark has one buffer
// of kind Workspace for each device, so that two memories of one device are refused.
#include "planner/formats/executorch.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"

enum { PROGRAM_METHODS = 1, PROGRAM_CONSTANT_BUFFER, PROGRAM_SEGMENTS = 4, PROGRAM_CONSTANT_SEGMENT };
enum { METHOD_VALUES = 2, METHOD_SIZES = 8, METHOD_DEVICES = 9 };
enum { VALUE_TYPE = 0, VALUE };
enum { TENSOR = 5, TENSOR_LIST = 10, OPTIONAL_TENSOR_LIST = 11, LIST_ITEMS = 0 };
enum { TENSOR_TYPE = 0, TENSOR_SIZES = 2, TENSOR_DATA = 5, TENSOR_PLACE = 6, TENSOR_DYNAMISM = 8, TENSOR_EXTRA = 9 };
enum { PLACE_MEMORY = 0, PLACE_LOW, PLACE_HIGH };
enum { EXTRA_NAME = 1, EXTRA_LOCATION, EXTERNAL = 1, UNBOUND = 2 };
enum { DEVICE_BUFFER = 0, DEVICE_TYPE, DEVICE_INDEX, DEVICE_CPU = 0, DEVICE_CUDA };
enum { SEGMENT_OFFSET = 0, SEGMENT_SIZE, SUBSEGMENT_INDEX = 0, SUBSEGMENT_OFFSETS };

/// Bytes of an element by ScalarType (schema/scalar_type.fbs); 0: not in the schema.
static const uint8_t element_bytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 0, 0, 0, 1, 1, 1, 4,
                                        2, 1, 1, 0, 0, 0, 0, 2, 1, 1, 1, 1, 2, 4, 8};
enum { N_TYPES = sizeof element_bytes / sizeof element_bytes[0] };

tide_status tide__et_fault(const tide__et *r, tide_status st) {
    tide_error_where(r->err, "%s", r->list.path);
    return st;
}

void tide__et_deinit(tide__et *r) {
    tide_host_free(r->values);
    tide_host_free(r->own);
    tide__list_deinit(&r->list);
}

// ---- sets of values that are the same bytes ----

static uint32_t root_of(tide__et *r, uint32_t i) {
    while (r->values[i].united != i) {
        r->values[i].united = r->values[r->values[i].united].united;
        i = r->values[i].united;
    }
    return i;
}

tide_status tide__et_unite(tide__et *r, uint32_t a, uint32_t b) {
    r->values[root_of(r, a)].united = root_of(r, b);
    r->is_united = true;
    return TIDE_OK;
}

void tide__et_end_united(tide__et *r) {
    if (!r->is_united) return;
    for (uint32_t i = 0; i < r->n_values; i++) {
        tide__et_value *root = &r->values[root_of(r, i)];
        if (root->last < r->values[i].last) root->last = r->values[i].last;
        if (root->first < 0) root->first = r->values[i].first;
    }
    for (uint32_t i = 0; i < r->n_values; i++)
        if (r->values[i].first >= 0) r->values[i].last = r->values[root_of(r, i)].last;
}

// ---- head and segments ----

static uint64_t header_u64(const tide__et *r, size_t at) {
    uint64_t v = 0;
    for (size_t i = 0; i < 8; i++) v |= (uint64_t)r->fb.data[at + i] << (8 * i);
    return v;
}

/// The extended header: where the flatbuffer ends and segments begin. *begin 0: there is none.
static tide_status read_header(tide__et *r, uint64_t *begin) {
    *begin = 0;
    if (memcmp(r->fb.data + 4, "ET12", 4) != 0)
        return TIDE__ET_BAD(r, "the program is of format '%.4s'; ET12 is read", (const char *)r->fb.data + 4);
    if (r->fb.len < 32 || memcmp(r->fb.data + 8, "eh00", 4) != 0) return TIDE_OK;
    const uint64_t program_bytes = header_u64(r, 16);
    *begin = header_u64(r, 24);
    if (program_bytes < 32 || program_bytes > r->fb.len || *begin > r->fb.len)
        return TIDE__ET_BAD(r,
                            "the program has %" PRIu64 " bytes and its segments begin at %" PRIu64
                            ", of a file of %zu: it is cut or damaged",
                            program_bytes, *begin, r->fb.len);
    r->fb.len = (size_t)program_bytes;
    return TIDE_OK;
}

/// Every segment lies in the file.
static tide_status check_segments(tide__et *r, uint64_t begin, size_t file_bytes) {
    tide__fb_vector list;
    TIDE_TRY(tide__fb_list(&r->fb, &r->program, PROGRAM_SEGMENTS, 4, &list));
    for (size_t i = 0; i < list.n; i++) {
        tide__fb_table t;
        uint64_t offset, size, end;
        TIDE_TRY(tide__fb_table_at(&r->fb, &list, i, &t));
        TIDE_TRY(tide__fb_u64(&r->fb, &t, SEGMENT_OFFSET, 0, &offset));
        TIDE_TRY(tide__fb_u64(&r->fb, &t, SEGMENT_SIZE, 0, &size));
        if (size == 0) continue;
        if (!tide_add_u64(begin, offset, &end) || !tide_add_u64(end, size, &end) || end > file_bytes)
            return TIDE__ET_BAD(
                r, "segment %zu has %" PRIu64 " bytes at %" PRIu64 ", behind the end of the file: it is cut or damaged",
                i, size, begin + offset);
    }
    return TIDE_OK;
}

tide_status tide__et_open(tide__et *r, tide__fb_vector *methods) {
    const size_t file_bytes = r->fb.len;
    uint64_t begin;
    TIDE_TRY(read_header(r, &begin));
    TIDE_TRY(tide__fb_root(&r->fb, &r->program));
    TIDE_TRY(check_segments(r, begin, file_bytes));
    return tide__fb_list(&r->fb, &r->program, PROGRAM_METHODS, 4, methods);
}

// ---- memories ----

typedef struct memories {
    tide__fb_vector sizes;
    tide_device *devices; // [sizes.n] owned
    bool *used;           // [sizes.n] owned
} memories;

static void memories_deinit(memories *m) {
    tide_host_free(m->devices);
    tide_host_free(m->used);
}

static tide_status read_device(tide__et *r, const tide__fb_table *t, memories *m) {
    int32_t buffer;
    uint8_t type, index;
    TIDE_TRY(tide__fb_i32(&r->fb, t, DEVICE_BUFFER, 0, &buffer));
    TIDE_TRY(tide__fb_u8(&r->fb, t, DEVICE_TYPE, DEVICE_CPU, &type));
    TIDE_TRY(tide__fb_u8(&r->fb, t, DEVICE_INDEX, 0, &index));
    if (buffer < 0 || (size_t)buffer >= m->sizes.n)
        return TIDE__ET_BAD(r, "a device is given for memory %" PRId32 " of %zu", buffer, m->sizes.n);
    if (type > DEVICE_CUDA || index > 127)
        return TIDE__ET_BAD(r, "memory %" PRId32 " is on a device of type %u, which is not in the schema", buffer,
                            (unsigned)type);
    if (type == DEVICE_CUDA) m->devices[buffer] = (tide_device){TIDE_DEVICE_CUDA, index};
    return TIDE_OK;
}

static tide_status read_memories(tide__et *r, memories *m) {
    tide__fb_vector devices;
    tide__fb_table t;
    TIDE_TRY(tide__fb_list(&r->fb, &r->method, METHOD_SIZES, 8, &m->sizes));
    TIDE_TRY(tide__fb_list(&r->fb, &r->method, METHOD_DEVICES, 4, &devices));
    TIDE_TRY(TIDE_NEW(&m->devices, m->sizes.n + 1, r->err, "to read %s", r->list.path));
    TIDE_TRY(TIDE_NEW(&m->used, m->sizes.n + 1, r->err, "to read %s", r->list.path));
    for (size_t i = 0; i < m->sizes.n; i++) m->devices[i] = TIDE_CPU;
    for (size_t i = 0; i < devices.n; i++) {
        TIDE_TRY(tide__fb_table_at(&r->fb, &devices, i, &t));
        TIDE_TRY(read_device(r, &t, m));
    }
    return TIDE_OK;
}

/// One memory for each device; what the file's own plan needs is the sum.
static tide_status sum_memories(tide__et *r, const memories *m) {
    enum { N_KNOWN = 129 };
    size_t of[N_KNOWN] = {0}; // memory of the CPU, then of each CUDA device; 0: none yet
    for (size_t i = 1; i < m->sizes.n; i++) {
        if (!m->used[i]) continue;
        const tide_device d = m->devices[i];
        const size_t k = d.type == TIDE_DEVICE_CPU ? 0 : 1 + (size_t)d.index;
        char name[16];
        if (of[k] != 0) {
            const tide_status st =
                TIDE__ET_BAD(r, "memories %zu and %zu are both planned on %s: a list has one buffer for each device",
                             of[k], i, tide_device_format(d, name, sizeof name));
            tide_error_hint(r->err, "a program whose tensors are planned into one memory of a device can be read");
            return st;
        }
        of[k] = i;
        if (!tide_add_u64(r->own_bytes, tide__fb_u64_at(&r->fb, &m->sizes, i), &r->own_bytes) ||
            r->own_bytes > INT64_MAX)
            return TIDE__ET_BAD(r, "the sizes of memories pass 2^63 - 1");
    }
    return TIDE_OK;
}

// ---- values ----

static tide_status read_place(tide__et *r, size_t i, const tide__fb_table *place, memories *m, tide__et_value *v) {
    uint32_t low, high;
    uint64_t end;
    TIDE_TRY(tide__fb_u32(&r->fb, place, PLACE_MEMORY, 0, &v->memory));
    TIDE_TRY(tide__fb_u32(&r->fb, place, PLACE_LOW, 0, &low));
    TIDE_TRY(tide__fb_u32(&r->fb, place, PLACE_HIGH, 0, &high));
    v->offset = (uint64_t)high << 32 | low;
    if (v->memory == 0 || v->memory >= m->sizes.n)
        return TIDE__ET_BAD(r, "value %zu is planned into memory %" PRIu32 ": there are 1 to %zu", i, v->memory,
                            m->sizes.n > 0 ? m->sizes.n - 1 : 0);
    if (!tide_add_u64(v->offset, v->bytes, &end) || end > tide__fb_u64_at(&r->fb, &m->sizes, v->memory))
        return TIDE__ET_BAD(r,
                            "value %zu has %" PRIu64 " bytes at %" PRIu64 " of memory %" PRIu32 ", which has %" PRIu64,
                            i, v->bytes, v->offset, v->memory, tide__fb_u64_at(&r->fb, &m->sizes, v->memory));
    v->is_planned = true;
    v->device = m->devices[v->memory];
    m->used[v->memory] = true;
    return TIDE_OK;
}

static tide_status read_size(tide__et *r, size_t i, const tide__fb_table *t, tide__et_value *v) {
    tide__fb_vector sizes;
    uint8_t type;
    TIDE_TRY(tide__fb_u8(&r->fb, t, TENSOR_TYPE, 0, &type));
    TIDE_TRY(tide__fb_list(&r->fb, t, TENSOR_SIZES, 4, &sizes));
    if (type >= N_TYPES || element_bytes[type] == 0)
        return TIDE__ET_BAD(r, "value %zu is of type %u, which is not in the schema", i, (unsigned)type);
    uint64_t bytes = element_bytes[type];
    bool is_empty = false, fits = true;
    for (size_t k = 0; k < sizes.n; k++) {
        const int32_t extent = tide__fb_i32_at(&r->fb, &sizes, k);
        if (extent < 0) return TIDE__ET_BAD(r, "value %zu has the extent %" PRId32, i, extent);
        is_empty = is_empty || extent == 0;
        fits = fits && tide_mul_u64(bytes, extent == 0 ? 1 : (uint64_t)extent, &bytes);
    }
    if (!is_empty && (!fits || bytes > INT64_MAX)) return TIDE__ET_BAD(r, "value %zu is too large to be planned", i);
    v->bytes = is_empty ? 0 : bytes;
    v->type = type;
    return TIDE_OK;
}

static tide_status read_tensor(tide__et *r, size_t i, const tide__fb_table *t, memories *m) {
    tide__et_value *v = &r->values[i];
    tide__fb_table place, extra;
    uint32_t data;
    uint8_t dynamism, location;
    v->is_tensor = true;
    TIDE_TRY(read_size(r, i, t, v));
    TIDE_TRY(tide__fb_u32(&r->fb, t, TENSOR_DATA, 0, &data));
    TIDE_TRY(tide__fb_u8(&r->fb, t, TENSOR_DYNAMISM, 0, &dynamism));
    TIDE_TRY(tide__fb_child(&r->fb, t, TENSOR_PLACE, &place));
    TIDE_TRY(tide__fb_child(&r->fb, t, TENSOR_EXTRA, &extra));
    TIDE_TRY(tide__fb_string(&r->fb, &extra, EXTRA_NAME, &v->name));
    TIDE_TRY(tide__fb_u8(&r->fb, &extra, EXTRA_LOCATION, 0, &location));
    const bool has_data = data > 0 || location == EXTERNAL;
    v->is_unbound = dynamism == UNBOUND;
    v->is_constant = has_data && place.at == 0;
    v->is_state = place.at != 0 && (has_data || v->name.len > 0);
    v->data = location == EXTERNAL ? 0 : data;
    return place.at != 0 ? read_place(r, i, &place, m, v) : TIDE_OK;
}

static tide_status read_value(tide__et *r, size_t i, const tide__fb_vector *list, memories *m) {
    tide__fb_table t, value;
    uint8_t type;
    tide__et_value *v = &r->values[i];
    *v = (tide__et_value){.role = TIDE_ROLE_INTERMEDIATE,
                          .device = TIDE_CPU,
                          .view_of = TIDE__ET_NONE,
                          .united = (uint32_t)i,
                          .first = -1,
                          .last = -1};
    TIDE_TRY(tide__fb_table_at(&r->fb, list, i, &t));
    TIDE_TRY(tide__fb_u8(&r->fb, &t, VALUE_TYPE, 0, &type));
    TIDE_TRY(tide__fb_child(&r->fb, &t, VALUE, &value));
    if (type == TENSOR) return read_tensor(r, i, &value, m);
    if (type == TENSOR_LIST || type == OPTIONAL_TENSOR_LIST)
        return tide__fb_list(&r->fb, &value, LIST_ITEMS, 4, &v->members);
    return TIDE_OK;
}

/// Constants that are the same bytes of the file count once.
static tide_status check_constants(tide__et *r) {
    tide__fb_vector buffers, offsets;
    tide__fb_table segment;
    TIDE_TRY(tide__fb_list(&r->fb, &r->program, PROGRAM_CONSTANT_BUFFER, 4, &buffers));
    TIDE_TRY(tide__fb_child(&r->fb, &r->program, PROGRAM_CONSTANT_SEGMENT, &segment));
    TIDE_TRY(tide__fb_list(&r->fb, &segment, SUBSEGMENT_OFFSETS, 8, &offsets));
    const size_t n = buffers.n > offsets.n ? buffers.n : offsets.n;
    bool *seen;
    size_t n_shared = 0;
    TIDE_TRY(TIDE_NEW(&seen, n + 1, r->err, "to read %s", r->list.path));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < r->n_values && st == TIDE_OK; i++) {
        tide__et_value *v = &r->values[i];
        if (!v->is_constant || v->data == 0) continue;
        if (v->data >= n) {
            st = TIDE__ET_BAD(r, "value %zu is constant %" PRIu32 " of %zu", i, v->data, n);
            break;
        }
        if (seen[v->data]) v->bytes = 0;
        if (seen[v->data]) n_shared++;
        seen[v->data] = true;
    }
    tide_host_free(seen);
    if (st == TIDE_OK && n_shared > 0)
        tide_log(TIDE_LOG_INFO, "'%s': %zu weights have the bytes of another one and count as 0", r->list.path,
                 n_shared);
    return st;
}

tide_status tide__et_read_values(tide__et *r) {
    tide__fb_vector list;
    memories m = {0};
    TIDE_TRY(tide__fb_list(&r->fb, &r->method, METHOD_VALUES, 4, &list));
    TIDE_TRY(TIDE_NEW(&r->values, list.n + 1, r->err, "to read %s", r->list.path));
    r->n_values = list.n;
    tide_status st = read_memories(r, &m);
    for (size_t i = 0; i < list.n && st == TIDE_OK; i++) st = read_value(r, i, &list, &m);
    if (st == TIDE_OK) st = sum_memories(r, &m);
    if (st == TIDE_OK) st = check_constants(r);
    memories_deinit(&m);
    return st;
}
