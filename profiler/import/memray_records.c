// SPDX-License-Identifier: MIT
//
// The records of memray's captures of all allocations. From version 12 on the first byte is one of
//
//     1ppppaaa  a call of an allocator: its number, 0: in the next byte; p: which of the last 15 addresses, 15: another
//     01.....e  a frame is entered
//     001ppppc  an object of Python begins or ends
//     0001nnnn  n + 1 frames are left
//     0000tttt  another record
//
// and before it has the kind in its four low bits, and what that wants in the others.
#include "profiler/import/memray.h"

/// Records of version 12 and 13 without flags, beside those that all files have.
enum { END = 1, MEMORY = 2, CODE = 14 };
/// Those of version 10 and 11.
enum { OLD_END = 0, OLD_CALL = 1, OLD_NATIVE_CALL = 2, OLD_FRAME = 3, OLD_PUSH = 4, OLD_POP = 9, OLD_MEMORY = 11 };

/// Resident bytes, which have no place in a trace, and the time.
static tide_status take_memory(tide__memray *m, tide_error *err) {
    uint64_t resident, ms;
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_varint(&m->bytes, &resident), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_varint(&m->bytes, &ms), err);
    return tide__memray_take_time(m, ms, err);
}

// ---- versions 12 and 13 ----

/// Address number `which` of those that came last; 15: one that comes now.
static bool read_address(tide__memray *m, unsigned which, uint64_t *address) {
    enum { N_RECENT = sizeof m->recent / sizeof m->recent[0] };
    if (which == N_RECENT) {
        if (!tide__memray_delta(&m->bytes, &m->last_address)) return false;
        for (size_t i = N_RECENT - 1; i > 0; i--) m->recent[i] = m->recent[i - 1];
        m->recent[which = 0] = m->last_address << 3;
    }
    *address = m->recent[which];
    return true;
}

static tide_status take_call(tide__memray *m, unsigned char token, tide_error *err) {
    uint64_t address, bytes = 0;
    unsigned char allocator = token & 7;
    TIDE__MEMRAY_READ(&m->bytes, read_address(m, token >> 3 & 15, &address), err);
    if (allocator == 0) TIDE__MEMRAY_READ(&m->bytes, tide__memray_byte(&m->bytes, &allocator), err);
    if (allocator == 0 || allocator >= TIDE__MEMRAY_ALLOCATORS)
        return tide__memray_bad(&m->bytes, err, "an allocator that is not known");
    if (!tide__memray_frees(allocator)) {
        if (m->head.has_native) TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_native), err);
        TIDE__MEMRAY_READ(&m->bytes, tide__memray_varint(&m->bytes, &bytes), err);
    }
    return tide__memray_take_allocation(m, allocator, address, bytes, err);
}

static tide_status take_object(tide__memray *m, unsigned char token, tide_error *err) {
    uint64_t address;
    TIDE__MEMRAY_READ(&m->bytes, read_address(m, token >> 1 & 15, &address), err);
    if (m->head.has_native && (token & 1) != 0)
        TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_native), err);
    m->blocks.report->n_objects++;
    return TIDE_OK;
}

static tide_status take_push(tide__memray *m, unsigned char token, tide_error *err) {
    uint64_t code;
    int64_t offset;
    if ((token & 62) != 0) return tide__memray_bad(&m->bytes, err, "a record that is not known");
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_varint(&m->bytes, &code), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_signed(&m->bytes, &offset), err);
    return tide__memray_take_push(m, code, offset, err);
}

static tide_status take_record(tide__memray *m, unsigned char token, bool *end, tide_error *err) {
    bool known;
    if (token >= 128) return take_call(m, token, err);
    if (token >= 64) return take_push(m, token, err);
    if (token >= 32) return take_object(m, token, err);
    if (token >= 16) return tide__memray_take_pop(m, (token & 15u) + 1, err);
    *end = token == END;
    if (token == END) return tide__memray_take_end(m, err);
    if (token == MEMORY) return take_memory(m, err);
    if (token == CODE) return tide__memray_take_code_record(m, err);
    TIDE_TRY(tide__memray_take_common(m, token, &known, err));
    return known ? TIDE_OK : tide__memray_bad(&m->bytes, err, "a record that is not known");
}

// ---- versions 10 and 11 ----

tide__memray_allocator tide__memray_old_allocator(uint64_t number) {
    static const tide__memray_allocator allocators[] = {TIDE__MEMRAY_NONE,
                                                        TIDE__MEMRAY_MALLOC,
                                                        TIDE__MEMRAY_FREE,
                                                        TIDE__MEMRAY_CALLOC,
                                                        TIDE__MEMRAY_REALLOC,
                                                        TIDE__MEMRAY_POSIX_MEMALIGN,
                                                        TIDE__MEMRAY_ALIGNED_ALLOC,
                                                        TIDE__MEMRAY_MEMALIGN,
                                                        TIDE__MEMRAY_VALLOC,
                                                        TIDE__MEMRAY_PVALLOC,
                                                        TIDE__MEMRAY_MMAP,
                                                        TIDE__MEMRAY_MUNMAP,
                                                        TIDE__MEMRAY_PYMALLOC_MALLOC,
                                                        TIDE__MEMRAY_PYMALLOC_CALLOC,
                                                        TIDE__MEMRAY_PYMALLOC_REALLOC,
                                                        TIDE__MEMRAY_PYMALLOC_FREE};
    return number < sizeof allocators / sizeof allocators[0] ? allocators[number] : TIDE__MEMRAY_NONE;
}

static tide_status take_old_call(tide__memray *m, unsigned number, bool has_native, tide_error *err) {
    uint64_t bytes = 0;
    const tide__memray_allocator a = tide__memray_old_allocator(number);
    if (a == TIDE__MEMRAY_NONE) return tide__memray_bad(&m->bytes, err, "an allocator that is not known");
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_address), err);
    if (has_native || !tide__memray_frees(a)) TIDE__MEMRAY_READ(&m->bytes, tide__memray_varint(&m->bytes, &bytes), err);
    if (has_native) TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_native), err);
    return tide__memray_take_allocation(m, a, m->last_address, bytes, err);
}

/// A line of a function has a number of its own.
static tide_status take_old_frame(tide__memray *m, tide_error *err) {
    size_t file = 0, behind = 0;
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_frame), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_function(m, &file, &behind), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_line), err);
    return tide__memray_take_code(m, m->last_frame, file, behind, true, err);
}

static tide_status take_old_record(tide__memray *m, unsigned char token, bool *end, tide_error *err) {
    const unsigned more = token >> 4;
    bool known = more == 0;
    switch (token & 15) {
    case OLD_END:
        *end = more == 1;
        return *end ? tide__memray_take_end(m, err) : tide__memray_bad(&m->bytes, err, "a record that is not known");
    case OLD_CALL:
    case OLD_NATIVE_CALL:
        return take_old_call(m, more, (token & 15) == OLD_NATIVE_CALL, err);
    case OLD_FRAME:
        return take_old_frame(m, err);
    case OLD_PUSH:
        TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_frame), err);
        return tide__memray_take_push(m, m->last_frame, 0, err);
    case OLD_POP:
        return tide__memray_take_pop(m, more + 1, err);
    case OLD_MEMORY:
        return take_memory(m, err);
    default:
        if (known) TIDE_TRY(tide__memray_take_common(m, token, &known, err));
        return known ? TIDE_OK : tide__memray_bad(&m->bytes, err, "a record that is not known");
    }
}

tide_status tide__memray_take_records(tide__memray *m, tide_error *err) {
    for (bool end = false; !end;) {
        unsigned char token;
        if (!tide__memray_byte(&m->bytes, &token)) {
            TIDE_TRY(tide__memray_stopped(&m->bytes, err));
        } else if (m->head.version >= 12) {
            TIDE_TRY(take_record(m, token, &end, err));
        } else {
            TIDE_TRY(take_old_record(m, token, &end, err));
        }
        if (m->bytes.has_ended && !end) { // before its own end
            m->blocks.report->is_cut = true;
            return TIDE_OK;
        }
    }
    return TIDE_OK;
}
