// SPDX-License-Identifier: MIT
//
// memray's captures of sums (memray run --aggregate): for each call stack, thread and allocator how many blocks and
// bytes were alive at the peak, and how many at the end. What becomes of one:
//
//     at the begin   a block for each that has bytes at the peak: the state at the peak
//     at the end     those that have others at the end go, and come again with these
//
// The records are a list of functions, of frames, of call stacks (each by the one before it), and the sums.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/import/memray.h"

enum { MEMORY = 1, SUM = 2, STACK = 3, FRAME = 4, OBJECT = 13, CODE = 14, END = 15, MAX_SUMS = 1 << 24 };

/// A call stack of the file. Those of the main thread are told without memray's own frames.
typedef struct stack {
    uint32_t depth, node, main_node;
} stack;

typedef struct sum {
    int64_t thread, block;
    uint64_t n_peak, n_end, bytes_peak, bytes_end;
    uint32_t node;
    tide__memray_allocator allocator;
} sum;

typedef struct sums {
    uint32_t *frames; ///< [n_frames] of the stacks; from version 12 on by their number in the file
    stack *stacks;    ///< [n_stacks]; number 0 is none
    sum *rows;        ///< [n_rows]
    size_t n_frames, cap_frames, n_stacks, cap_stacks, n_rows, cap_rows;
} sums;

// ---- frames and stacks ----

static tide_status find_frame(tide__memray *m, uint64_t code, int64_t offset, uint32_t *frame, tide_error *err) {
    if (offset < INT32_MIN || offset > INT32_MAX)
        return tide__memray_bad(&m->bytes, err, "a frame whose place is none");
    const tide_status st = tide__memray_frame_of(&m->stacks, code, (int32_t)offset, frame, err);
    return st == TIDE_ERR_NOT_FOUND ? tide__memray_bad(&m->bytes, err, "a frame whose function is not there") : st;
}

static tide_status take_frame(tide__memray *m, sums *s, tide_error *err) {
    uint64_t number, code;
    int64_t offset;
    unsigned char is_entry;
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_varint(&m->bytes, &number), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_varint(&m->bytes, &code), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_signed(&m->bytes, &offset), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_byte(&m->bytes, &is_entry), err);
    if (number != s->n_frames) return tide__memray_bad(&m->bytes, err, "a frame whose number is not the next");
    TIDE_TRY(TIDE_GROW(&s->frames, &s->cap_frames, s->n_frames + 1, err, "to read '%s'", m->bytes.path));
    TIDE_TRY(find_frame(m, code, offset, &s->frames[s->n_frames], err));
    s->n_frames++;
    return TIDE_OK;
}

/// Of version 10 and 11: a function with its line.
static tide_status take_old_frame(tide__memray *m, tide_error *err) {
    uint64_t number, line;
    unsigned char is_entry;
    size_t file = 0, behind = 0;
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_fixed(&m->bytes, 8, &number), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_function(m, &file, &behind), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_fixed(&m->bytes, 4, &line), err);
    TIDE__MEMRAY_READ(&m->bytes, tide__memray_byte(&m->bytes, &is_entry), err);
    m->last_line = (uint64_t)(int64_t)(int32_t)line;
    return tide__memray_take_code(m, number, file, behind, true, err);
}

static bool read_stack(tide__memray *m, uint64_t *frame, uint64_t *below) {
    tide__memray_bytes *b = &m->bytes;
    if (m->head.version < 12) return tide__memray_fixed(b, 8, frame) && tide__memray_fixed(b, 4, below);
    return tide__memray_varint(b, frame) && tide__memray_varint(b, below);
}

static tide_status take_stack(tide__memray *m, sums *s, tide_error *err) {
    uint64_t number = 0, below = 0;
    uint32_t frame;
    TIDE__MEMRAY_READ(&m->bytes, read_stack(m, &number, &below), err);
    TIDE_TRY(TIDE_GROW(&s->stacks, &s->cap_stacks, s->n_stacks + 2, err, "to read '%s'", m->bytes.path));
    if (s->n_stacks == 0) s->stacks[s->n_stacks++] = (stack){0};
    if (below >= s->n_stacks || (m->head.version >= 12 && number >= s->n_frames))
        return tide__memray_bad(&m->bytes, err, "a call stack whose frames are not there");
    if (m->head.version >= 12)
        frame = s->frames[number];
    else
        TIDE_TRY(find_frame(m, number, 0, &frame, err));
    const stack under = s->stacks[below];
    stack k = {.depth = under.depth + 1};
    tide_status st = tide__memray_push(&m->stacks, under.node, frame, &k.node, err);
    if (st == TIDE_OK && k.depth > m->head.n_skipped)
        st = tide__memray_push(&m->stacks, under.main_node, frame, &k.main_node, err);
    if (st == TIDE_ERR_INVALID) return tide__memray_bad(&m->bytes, err, "more than 2^26 call stacks");
    TIDE_TRY(st);
    s->stacks[s->n_stacks++] = k;
    return TIDE_OK;
}

// ---- sums ----

/// Nine numbers as they stood in memory.
static bool read_sum(tide__memray *m, uint64_t fields[9]) {
    for (size_t i = 0; i < 9; i++) {
        if (!tide__memray_fixed(&m->bytes, 8, &fields[i])) return false;
    }
    return true;
}

static tide_status take_sum(tide__memray *m, sums *s, tide_error *err) {
    enum { THREAD, ALLOCATOR, NATIVE, FRAMES, MAPS, N_PEAK, N_END, BYTES_PEAK, BYTES_END, N };
    uint64_t f[N] = {0};
    TIDE__MEMRAY_READ(&m->bytes, read_sum(m, f), err);
    f[ALLOCATOR] &= 0xff; // one byte; what stands beside it is nothing
    if (m->head.version < 12) f[ALLOCATOR] = (uint64_t)tide__memray_old_allocator(f[ALLOCATOR]);
    if (!tide__memray_gives(f[ALLOCATOR])) return tide__memray_bad(&m->bytes, err, "an allocator that is not known");
    if (f[FRAMES] > 0 && f[FRAMES] >= s->n_stacks)
        return tide__memray_bad(&m->bytes, err, "a call stack that is not there");
    if (f[BYTES_PEAK] > INT64_MAX || f[BYTES_END] > INT64_MAX)
        return tide__memray_bad(&m->bytes, err, "a sum of more than 2^63 bytes");
    if (s->n_rows >= MAX_SUMS) return tide__memray_bad(&m->bytes, err, "more than 2^24 sums");
    TIDE_TRY(tide__memray_enter_thread(m, f[THREAD], err));
    TIDE_TRY(TIDE_GROW(&s->rows, &s->cap_rows, s->n_rows + 1, err, "to read '%s'", m->bytes.path));
    const stack *k = f[FRAMES] > 0 ? &s->stacks[f[FRAMES]] : NULL;
    s->rows[s->n_rows++] = (sum){
        .thread = m->threads[m->thread].id,
        .n_peak = f[N_PEAK],
        .n_end = f[N_END],
        .bytes_peak = f[BYTES_PEAK],
        .bytes_end = f[BYTES_END],
        .node = k == NULL                          ? 0
                : f[THREAD] == m->head.main_thread ? k->main_node
                                                   : k->node,
        .allocator = (tide__memray_allocator)f[ALLOCATOR],
    };
    m->blocks.report->n_events++;
    return TIDE_OK;
}

static tide_status begin(tide__memray *m, sum *r, bool at_end, int64_t ms, tide_error *err) {
    int64_t name;
    tide__memray_call c = {.allocator = r->allocator,
                           .bytes = at_end ? r->bytes_end : r->bytes_peak,
                           .t_ns = ms * 1000000,
                           .thread = r->thread};
    TIDE_TRY(tide__memray_scope(&m->stacks, r->node, &c.scope, &name, err));
    TIDE_TRY(tide__memray_sum_name(&m->stacks, r->node, at_end ? r->n_end : r->n_peak, &c.name, err));
    return tide__memray_begin_sum(&m->blocks, &c, &r->block, err);
}

static tide_status end(tide__memray *m, const sum *r, int64_t ms, tide_error *err) {
    tide__memray_call c = {
        .allocator = r->allocator, .bytes = r->bytes_peak, .t_ns = ms * 1000000, .thread = r->thread};
    TIDE_TRY(tide__memray_sum_name(&m->stacks, r->node, r->n_peak, &c.name, err));
    return tide__memray_end_sum(&m->blocks, r->block, &c, err);
}

static bool stays(const sum *r) { return r->n_peak == r->n_end && r->bytes_peak == r->bytes_end; }

/// All of them as blocks. What goes does so before anything comes, so that nothing is higher than the peak.
static tide_status put_blocks(tide__memray *m, sums *s, tide_error *err) {
    const int64_t begin_ms = m->head.begin_ms, end_ms = m->head.end_ms;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (s->rows[i].n_peak > 0 || s->rows[i].bytes_peak > 0) TIDE_TRY(begin(m, &s->rows[i], false, begin_ms, err));
    }
    for (size_t i = 0; i < s->n_rows; i++) {
        if (s->rows[i].block > 0 && !stays(&s->rows[i])) TIDE_TRY(end(m, &s->rows[i], end_ms, err));
    }
    for (size_t i = 0; i < s->n_rows; i++) {
        const sum *r = &s->rows[i];
        if (!stays(r) && (r->n_end > 0 || r->bytes_end > 0)) TIDE_TRY(begin(m, &s->rows[i], true, end_ms, err));
    }
    return TIDE_OK;
}

// ---- records ----

/// What has no place in a trace.
static bool skip_numbers(tide__memray *m, size_t n) {
    for (uint64_t number; n > 0; n--) {
        if (!tide__memray_fixed(&m->bytes, 8, &number)) return false;
    }
    return true;
}

static bool skip_object(tide__memray *m) {
    uint64_t number;
    return tide__memray_varint(&m->bytes, &number) && (!m->head.has_native || tide__memray_varint(&m->bytes, &number));
}

static tide_status take_record(tide__memray *m, sums *s, unsigned char token, tide_error *err) {
    const bool is_old = m->head.version < 12;
    bool known = true;
    switch (token) {
    case MEMORY: // time, resident bytes, and the allocators' bytes
        TIDE__MEMRAY_READ(&m->bytes, skip_numbers(m, 3), err);
        return TIDE_OK;
    case SUM:
        return take_sum(m, s, err);
    case STACK:
        return take_stack(m, s, err);
    case FRAME:
        return is_old ? take_old_frame(m, err) : take_frame(m, s, err);
    default:
        break;
    }
    if (token == OBJECT && !is_old) {
        TIDE__MEMRAY_READ(&m->bytes, skip_object(m), err);
        m->blocks.report->n_objects++;
        return TIDE_OK;
    }
    if (token == CODE && !is_old) return tide__memray_take_code_record(m, err);
    TIDE_TRY(tide__memray_take_common(m, token, &known, err));
    return known ? TIDE_OK : tide__memray_bad(&m->bytes, err, "a record that is not known");
}

static tide_status take_records(tide__memray *m, sums *s, tide_error *err) {
    for (unsigned char token; tide__memray_byte(&m->bytes, &token);) {
        if (token == END) return tide__memray_take_end(m, err);
        TIDE_TRY(take_record(m, s, token, err));
        if (m->bytes.has_ended) break;
    }
    m->blocks.report->is_cut = true;
    return tide__memray_stopped(&m->bytes, err);
}

tide_status tide__memray_take_sums(tide__memray *m, tide_error *err) {
    sums s = {0};
    tide_status st = take_records(m, &s, err);
    if (st == TIDE_OK) st = put_blocks(m, &s, err);
    tide_host_free(s.frames);
    tide_host_free(s.stacks);
    tide_host_free(s.rows);
    return st;
}
