// SPDX-License-Identifier: MIT
//
// What the records of memray's captures do, once they are read, and those that both kinds of file have. See memray.h.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/import/memray.h"

enum { MAX_DEPTH = 1 << 20 };

static tide_status no_memory(const tide__memray *m, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to read '%s'", m->bytes.path);
}

typedef struct thread_entry {
    uint64_t key; // tid + 1
    uint64_t at;
} thread_entry;

tide_status tide__memray_enter_thread(tide__memray *m, uint64_t tid, tide_error *err) {
    if (tid == UINT64_MAX) return tide__memray_bad(&m->bytes, err, "a thread whose number is none");
    if (m->thread_ids.entry_bytes == 0) m->thread_ids = (tide_map)TIDE_MAP(thread_entry);
    const thread_entry e = {.key = tid + 1, .at = m->n_threads};
    const thread_entry *known = tide_map_find(&m->thread_ids, e.key);
    m->tid = tid;
    m->thread = (size_t)(known != NULL ? known->at : e.at);
    if (known != NULL) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&m->threads, &m->cap_threads, m->n_threads + 1, err, "to read '%s'", m->bytes.path));
    tide__memray_thread *t = &m->threads[m->n_threads];
    *t = (tide__memray_thread){0};
    if (m->n_threads >= INT32_MAX || !tide_map_put(&m->thread_ids, &e)) return no_memory(m, err);
    m->n_threads++;
    const int64_t number = (int64_t)m->n_threads;
    if (tide__names_thread(m->stacks.names, 1, number, NULL, &t->id) != TIDE_OK) return no_memory(m, err);
    return TIDE_OK;
}

static tide_status name_thread(tide__memray *m, tide_error *err) {
    int64_t id;
    if (m->thread >= m->n_threads) return tide__memray_bad(&m->bytes, err, "a name of no thread");
    if (tide__names_thread(m->stacks.names, 1, (int64_t)m->thread + 1, m->bytes.text, &id) != TIDE_OK)
        return no_memory(m, err);
    return TIDE_OK;
}

tide_status tide__memray_take_code(tide__memray *m, uint64_t id, size_t file, size_t table, bool is_line,
                                   tide_error *err) {
    const tide__memray_bytes *b = &m->bytes;
    TIDE_ASSERT(file <= table && table <= b->n_text);
    const tide__memray_code code = {.text = b->text,
                                    .file = file,
                                    .table = table,
                                    .n_table = b->n_text - table,
                                    .first_line = (int64_t)m->last_line,
                                    .is_line = is_line};
    if (code.first_line < INT32_MIN || code.first_line > INT32_MAX)
        return tide__memray_bad(b, err, "a line whose number is none");
    const tide_status st = tide__memray_put_code(&m->stacks, id, &code, err);
    return st == TIDE_ERR_INVALID
               ? tide__memray_bad(b, err, "a function whose number is none, or more than 256 MiB of them")
               : st;
}

tide_status tide__memray_take_push(tide__memray *m, uint64_t code_id, int64_t offset, tide_error *err) {
    uint32_t frame, node = 0;
    if (m->thread >= m->n_threads) return tide__memray_bad(&m->bytes, err, "a frame of no thread");
    tide__memray_thread *t = &m->threads[m->thread];
    if (offset < INT32_MIN || offset > INT32_MAX || t->n >= MAX_DEPTH)
        return tide__memray_bad(&m->bytes, err, "a frame whose place is none, or more than 2^20 of a thread");
    tide_status st = tide__memray_frame_of(&m->stacks, code_id, (int32_t)offset, &frame, err);
    if (st == TIDE_ERR_NOT_FOUND) return tide__memray_bad(&m->bytes, err, "a frame whose function is not there");
    TIDE_TRY(st);
    TIDE_TRY(TIDE_GROW(&t->stack, &t->cap, t->n + 1, err, "to read '%s'", m->bytes.path));
    if (m->tid != m->head.main_thread || t->n >= m->head.n_skipped)
        st = tide__memray_push(&m->stacks, t->n > 0 ? t->stack[t->n - 1] : 0, frame, &node, err);
    if (st == TIDE_ERR_INVALID) return tide__memray_bad(&m->bytes, err, "more than 2^26 call stacks");
    TIDE_TRY(st);
    t->stack[t->n++] = node;
    return TIDE_OK;
}

tide_status tide__memray_take_pop(tide__memray *m, size_t n, tide_error *err) {
    if (m->thread >= m->n_threads || n > m->threads[m->thread].n)
        return tide__memray_bad(&m->bytes, err, "more frames are left than were entered");
    m->threads[m->thread].n -= n;
    return TIDE_OK;
}

tide_status tide__memray_take_allocation(tide__memray *m, uint64_t allocator, uint64_t address, uint64_t bytes,
                                         tide_error *err) {
    tide__memray_call c = {
        .allocator = (tide__memray_allocator)allocator, .address = address, .bytes = bytes, .t_ns = m->t_ns};
    TIDE_ASSERT(allocator > 0 && allocator < TIDE__MEMRAY_ALLOCATORS);
    if (m->thread >= m->n_threads) return tide__memray_bad(&m->bytes, err, "an allocation of no thread");
    if (address == UINT64_MAX) return tide__memray_bad(&m->bytes, err, "an address that is none");
    const bool gives = tide__memray_gives(allocator);
    if (gives && bytes > INT64_MAX) return tide__memray_bad(&m->bytes, err, "an allocation of more than 2^63 bytes");
    if (allocator == TIDE__MEMRAY_MMAP && (bytes == 0 || address > UINT64_MAX - bytes))
        return tide__memray_bad(&m->bytes, err, "a mapped range that is empty, or ends behind the last address");
    const tide__memray_thread *t = &m->threads[m->thread];
    c.thread = t->id;
    if (gives) TIDE_TRY(tide__memray_scope(&m->stacks, t->n > 0 ? t->stack[t->n - 1] : 0, &c.scope, &c.name, err));
    return tide__memray_take_call(&m->blocks, &c, err);
}

/// A clock that went back is told as a number of more than 2^63: the time before it stands.
tide_status tide__memray_take_time(tide__memray *m, uint64_t ms, tide_error *err) {
    if (ms > INT64_MAX) return TIDE_OK;
    if (ms > TIDE__MEMRAY_MAX_MS) return tide__memray_bad(&m->bytes, err, "a time that cannot be");
    const int64_t t_ns = (m->head.begin_ms + (int64_t)ms) * 1000000;
    if (t_ns > m->t_ns) m->t_ns = t_ns;
    return TIDE_OK;
}

/// A loaded file and its segments.
static bool skip_segments(tide__memray_bytes *b) {
    uint64_t n, number;
    if (!tide__memray_text(b, false) || !tide__memray_varint(b, &n) || !tide__memray_fixed(b, 8, &number)) return false;
    for (; n > 0; n--) {
        unsigned char token;
        if (!tide__memray_byte(b, &token)) return false;
        if (token != 8) b->fault = "a segment that is not there";
        if (token != 8 || !tide__memray_fixed(b, 8, &number) || !tide__memray_varint(b, &number)) return false;
    }
    return true;
}

tide_status tide__memray_take_common(tide__memray *m, unsigned char token, bool *known, tide_error *err) {
    enum { NATIVE_FRAME = 5, MAPS_BEGIN = 6, LOADED_FILE = 7, THREAD_NAME = 10, THREAD = 12 };
    uint64_t number = 0;
    *known = true;
    switch (token) {
    case NATIVE_FRAME: // below which other: 0 says that what is on the stack is not told
        TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &number), err);
        TIDE__MEMRAY_READ(&m->bytes, tide__memray_delta(&m->bytes, &m->last_native), err);
        m->blocks.report->n_native_frames++;
        return TIDE_OK;
    case MAPS_BEGIN:
        return TIDE_OK;
    case LOADED_FILE:
        TIDE__MEMRAY_READ(&m->bytes, skip_segments(&m->bytes), err);
        return TIDE_OK;
    case THREAD_NAME:
        TIDE__MEMRAY_READ(&m->bytes, tide__memray_text(&m->bytes, false), err);
        return name_thread(m, err);
    case THREAD:
        TIDE__MEMRAY_READ(&m->bytes, tide__memray_fixed(&m->bytes, 8, &number), err);
        return tide__memray_enter_thread(m, number, err);
    default:
        *known = false;
        return TIDE_OK;
    }
}

bool tide__memray_function(tide__memray *m, size_t *file, size_t *behind) {
    if (!tide__memray_text(&m->bytes, false)) return false;
    *file = m->bytes.n_text;
    if (!tide__memray_text(&m->bytes, true)) return false;
    *behind = m->bytes.n_text;
    return true;
}

static bool read_code(tide__memray *m, uint64_t *id, size_t *file, size_t *table) {
    uint64_t n;
    return tide__memray_varint(&m->bytes, id) && tide__memray_function(m, file, table) &&
           tide__memray_delta(&m->bytes, &m->last_line) && tide__memray_varint(&m->bytes, &n) &&
           tide__memray_data(&m->bytes, n);
}

tide_status tide__memray_take_code_record(tide__memray *m, tide_error *err) {
    uint64_t id = 0;
    size_t file = 0, table = 0;
    TIDE__MEMRAY_READ(&m->bytes, read_code(m, &id, &file, &table), err);
    return tide__memray_take_code(m, id, file, table, false, err);
}

tide_status tide__memray_take_end(tide__memray *m, tide_error *err) {
    unsigned char c;
    if (tide__memray_byte(&m->bytes, &c)) return tide__memray_bad(&m->bytes, err, "bytes stand behind its end");
    m->blocks.report->is_cut = m->bytes.in->is_cut;
    return tide__memray_stopped(&m->bytes, err);
}
