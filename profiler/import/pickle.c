// SPDX-License-Identifier: MIT
//
// The stack machine of pickles. See pickle.h; opcodes as in Python's Lib/pickletools.py.
#include "profiler/import/pickle.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum {
    BUFFER_BYTES = 1 << 18,
    MAX_MARKS = 1024,         // containers inside containers
    MAX_TEXT_BYTES = 1 << 24, // of one text
    MEMO_GAP = 1 << 16,       // memo numbers that may be left out together
};
#define FREE_BYTES (UINT64_C(64) << 20) // that may be held whatever the file's size

/// Opcodes by their byte.
enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINSTRING = 'T',
    OP_SHORT_BINSTRING = 'U',
    OP_BINUNICODE = 'X',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_APPEND = 'a',
    OP_DICT = 'd',
    OP_EMPTY_DICT = '}',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_LIST = 'l',
    OP_EMPTY_LIST = ']',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_EMPTY_TUPLE = ')',
    OP_SETITEMS = 'u',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
    OP_BYTEARRAY8 = 0x96,
};

typedef struct reader {
    FILE *in;
    const char *path;
    const tide__pickle_sink *sink;
    uint8_t *buffer; // [n_buffer] of BUFFER_BYTES
    size_t at, n_buffer;
    uint64_t base;  // bytes of the file before the buffer
    uint64_t op_at; // where the present opcode is
    char *text;     // [cap_text]
    size_t cap_text;
    tide__pickle_value *stack; // [n_stack]
    size_t n_stack, cap_stack;
    size_t marks[MAX_MARKS]; // [n_marks] heights of the stack
    size_t n_marks;
    uint64_t *memo; // [n_memo] see keep()
    size_t n_memo, cap_memo;
    tide__pickle_value *wide; // [n_wide] of the memo what is no text and no container
    size_t n_wide, cap_wide;
} reader;

// ---- bytes ----

static tide_status bad(reader *r, tide_error *err, const char *what) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", r->path, what);
    tide_error_where(err, "%s: byte %" PRIu64, r->path, r->op_at);
    return st;
}

static tide_status no_memory(reader *r, tide_error *err) { return TIDE_NO_MEMORY(err, "to read '%s'", r->path); }

static tide_status fill(reader *r, tide_error *err) {
    r->base += r->n_buffer;
    r->at = 0;
    r->n_buffer = fread(r->buffer, 1, BUFFER_BYTES, r->in);
    if (r->n_buffer > 0) return TIDE_OK;
    if (ferror(r->in)) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read '%s': %s", r->path, strerror(errno));
    return bad(r, err, "it ends in the middle");
}

static tide_status take_bytes(reader *r, void *out, size_t n, tide_error *err) {
    uint8_t *to = out;
    while (n > 0) {
        if (r->at == r->n_buffer) TIDE_TRY(fill(r, err));
        const size_t left = r->n_buffer - r->at, part = left < n ? left : n;
        memcpy(to, r->buffer + r->at, part);
        r->at += part;
        to += part;
        n -= part;
    }
    return TIDE_OK;
}

static tide_status skip_bytes(reader *r, uint64_t n, tide_error *err) {
    while (n > 0) {
        if (r->at == r->n_buffer) TIDE_TRY(fill(r, err));
        const size_t left = r->n_buffer - r->at, part = left < n ? left : (size_t)n;
        r->at += part;
        n -= part;
    }
    return TIDE_OK;
}

/// Little-endian, `n` of at most 8 bytes.
static tide_status take_number(reader *r, size_t n, uint64_t *out, tide_error *err) {
    uint8_t bytes[8] = {0};
    TIDE_TRY(take_bytes(r, bytes, n, err));
    *out = 0;
    for (size_t i = n; i-- > 0;) *out = *out << 8 | bytes[i];
    return TIDE_OK;
}

// ---- what is held ----

/// Before `more` bytes are taken.
static tide_status check_held(reader *r, uint64_t more, tide_error *err) {
    const uint64_t held = more + (uint64_t)r->cap_stack * sizeof *r->stack + (uint64_t)r->cap_memo * sizeof *r->memo +
                          (uint64_t)r->cap_wide * sizeof *r->wide + r->sink->held_bytes(r->sink->ctx);
    if (held <= FREE_BYTES + r->base + r->at) return TIDE_OK;
    return bad(r, err, "so far it needs more memory than 64 MiB and its own bytes");
}

static tide_status push(reader *r, tide__pickle_type type, uint64_t v, tide_error *err) {
    if (r->n_stack == r->cap_stack) {
        TIDE_TRY(check_held(r, (uint64_t)r->cap_stack * sizeof *r->stack, err));
        TIDE_TRY(TIDE_GROW(&r->stack, &r->cap_stack, r->n_stack + 1, err, "to read '%s'", r->path));
    }
    r->stack[r->n_stack++] = (tide__pickle_value){.type = (uint8_t)type, .v = v};
    return TIDE_OK;
}

/// Of values above the last mark `n` at least.
static tide_status need(reader *r, size_t n, tide_error *err) {
    const size_t floor = r->n_marks > 0 ? r->marks[r->n_marks - 1] : 0;
    return r->n_stack - floor >= n ? TIDE_OK : bad(r, err, "an opcode misses its operands");
}

static tide_status take_mark(reader *r, size_t *first, tide_error *err) {
    if (r->n_marks == 0) return bad(r, err, "an opcode misses its MARK");
    *first = r->marks[--r->n_marks];
    TIDE_ASSERT(*first <= r->n_stack); // nothing is taken from below a mark
    return TIDE_OK;
}

// ---- memo: eight bytes an entry ----
//
// The type in the upper eight bits, 0: nothing; the number of a text or container below. Anything else lies in `wide`.

enum { TYPE_SHIFT = 56, WIDE = 0x80 };

static tide_status keep(reader *r, uint64_t number, tide_error *err) {
    TIDE_TRY(need(r, 1, err));
    if (number > r->n_memo + MEMO_GAP) return bad(r, err, "a memo number that the file cannot have come to");
    if (number >= r->cap_memo) {
        TIDE_TRY(check_held(r, (uint64_t)r->cap_memo * sizeof *r->memo, err));
        TIDE_TRY(TIDE_GROW(&r->memo, &r->cap_memo, (size_t)number + 1, err, "to read '%s'", r->path));
    }
    while (r->n_memo <= number) r->memo[r->n_memo++] = 0;
    const tide__pickle_value v = r->stack[r->n_stack - 1];
    const bool is_number = v.type == TIDE__PICKLE_TEXT || v.type == TIDE__PICKLE_LIST || v.type == TIDE__PICKLE_DICT ||
                           v.type == TIDE__PICKLE_TUPLE;
    if (is_number && v.v >> TYPE_SHIFT == 0) {
        r->memo[number] = (uint64_t)v.type << TYPE_SHIFT | v.v;
        return TIDE_OK;
    }
    if (r->n_wide == r->cap_wide) TIDE_TRY(check_held(r, (uint64_t)r->cap_wide * sizeof *r->wide, err));
    TIDE_TRY(TIDE_GROW(&r->wide, &r->cap_wide, r->n_wide + 1, err, "to read '%s'", r->path));
    r->memo[number] = (uint64_t)WIDE << TYPE_SHIFT | r->n_wide;
    r->wide[r->n_wide++] = v;
    return TIDE_OK;
}

static tide_status recall(reader *r, uint64_t number, tide_error *err) {
    if (number >= r->n_memo || r->memo[number] == 0) return bad(r, err, "it refers to a memo that was never put");
    const uint64_t kept = r->memo[number], type = kept >> TYPE_SHIFT, v = kept & ((UINT64_C(1) << TYPE_SHIFT) - 1);
    TIDE_ASSERT(type != WIDE || v < r->n_wide);
    if (type == WIDE) return push(r, (tide__pickle_type)r->wide[v].type, r->wide[v].v, err);
    return push(r, (tide__pickle_type)type, v, err);
}

// ---- values ----

static tide_status take_text(reader *r, uint64_t n, tide_error *err) {
    uint64_t id;
    if (n > MAX_TEXT_BYTES) return bad(r, err, "a text of more than 16 MiB");
    TIDE_TRY(TIDE_GROW(&r->text, &r->cap_text, (size_t)n + 1, err, "to read '%s'", r->path));
    TIDE_TRY(take_bytes(r, r->text, (size_t)n, err));
    r->text[n] = '\0';
    TIDE_TRY(r->sink->text(r->sink->ctx, r->text, (size_t)n, &id, err));
    return push(r, TIDE__PICKLE_TEXT, id, err);
}

/// Two's complement, little-endian, as short as it can be.
static tide_status take_long(reader *r, uint64_t n, tide_error *err) {
    uint64_t v = 0;
    if (n > 9) {
        TIDE_TRY(skip_bytes(r, n, err));
        return push(r, TIDE__PICKLE_OTHER, 0, err);
    }
    TIDE_TRY(take_number(r, n < 8 ? (size_t)n : 8, &v, err));
    if (n == 9) {
        uint64_t top;
        TIDE_TRY(take_number(r, 1, &top, err));
        const bool is_large = top == 0 && v > INT64_MAX, is_plain = top == (v > INT64_MAX ? 0xff : 0);
        return push(r, is_large ? TIDE__PICKLE_UINT : is_plain ? TIDE__PICKLE_INT : TIDE__PICKLE_OTHER, v, err);
    }
    if (n > 0 && n < 8 && v >> (8 * n - 1) != 0) v |= UINT64_MAX << (8 * n);
    return push(r, TIDE__PICKLE_INT, v, err);
}

static tide_status take_float(reader *r, tide_error *err) {
    uint8_t bytes[8];
    uint64_t v = 0;
    TIDE_TRY(take_bytes(r, bytes, sizeof bytes, err));
    for (size_t i = 0; i < sizeof bytes; i++) v = v << 8 | bytes[i]; // big-endian, alone in the format
    return push(r, TIDE__PICKLE_FLOAT, v, err);
}

static tide_status take_other(reader *r, uint64_t n, tide_error *err) {
    TIDE_TRY(skip_bytes(r, n, err));
    return push(r, TIDE__PICKLE_OTHER, 0, err);
}

/// A value that is its own opcode's length, then bytes.
static tide_status take_sized(reader *r, uint8_t op, size_t length_bytes, tide_error *err) {
    uint64_t n;
    TIDE_TRY(take_number(r, length_bytes, &n, err));
    switch (op) {
    case OP_BINUNICODE:
    case OP_SHORT_BINUNICODE:
    case OP_BINUNICODE8:
    case OP_BINSTRING:
    case OP_SHORT_BINSTRING:
        return take_text(r, n, err);
    case OP_LONG1:
    case OP_LONG4:
        return n <= INT32_MAX ? take_long(r, n, err) : bad(r, err, "an integer of a negative length");
    default:
        return take_other(r, n, err);
    }
}

// ---- containers ----

static tide_status new_container(reader *r, tide__pickle_type type, tide_error *err) {
    uint64_t id;
    TIDE_TRY((type == TIDE__PICKLE_LIST ? r->sink->new_list : r->sink->new_dict)(r->sink->ctx, &id, err));
    return push(r, type, id, err);
}

/// What lies from `first` on goes into the container below it.
static tide_status put_in(reader *r, size_t first, tide__pickle_type type, tide_error *err) {
    const size_t floor = r->n_marks > 0 ? r->marks[r->n_marks - 1] : 0, n = r->n_stack - first;
    if (first <= floor) return bad(r, err, "items without a container");
    const tide__pickle_value to = r->stack[first - 1];
    if (to.type != type)
        return bad(r, err, type == TIDE__PICKLE_LIST ? "items for what is no list" : "pairs for what is no dict");
    if (type == TIDE__PICKLE_DICT && n % 2 != 0) return bad(r, err, "a key without a value");
    r->n_stack = first;
    if (n == 0) return TIDE_OK;
    const tide__pickle_value *items = &r->stack[first]; // they stay where they are until the next push
    return type == TIDE__PICKLE_LIST ? r->sink->items(r->sink->ctx, to.v, items, n, err)
                                     : r->sink->pairs(r->sink->ctx, to.v, items, n / 2, err);
}

static tide_status put_marked(reader *r, tide__pickle_type type, tide_error *err) {
    size_t first = 0;
    TIDE_TRY(take_mark(r, &first, err));
    return put_in(r, first, type, err);
}

/// LIST, DICT: the container is made behind its items.
static tide_status make_marked(reader *r, tide__pickle_type type, tide_error *err) {
    size_t first = 0;
    TIDE_TRY(take_mark(r, &first, err));
    const size_t n = r->n_stack - first;
    TIDE_TRY(new_container(r, type, err));
    const tide__pickle_value made = r->stack[r->n_stack - 1];
    memmove(&r->stack[first + 1], &r->stack[first], n * sizeof *r->stack);
    r->stack[first] = made;
    return put_in(r, first + 1, type, err);
}

static tide_status make_tuple(reader *r, size_t first, tide_error *err) {
    uint64_t id;
    TIDE_ASSERT(first <= r->n_stack);
    TIDE_TRY(r->sink->tuple(r->sink->ctx, &r->stack[first], r->n_stack - first, &id, err));
    r->n_stack = first;
    return push(r, TIDE__PICKLE_TUPLE, id, err);
}

static tide_status make_marked_tuple(reader *r, tide_error *err) {
    size_t first = 0;
    TIDE_TRY(take_mark(r, &first, err));
    return make_tuple(r, first, err);
}

static tide_status make_short_tuple(reader *r, size_t n, tide_error *err) {
    TIDE_TRY(need(r, n, err));
    return make_tuple(r, r->n_stack - n, err);
}

// ---- opcodes ----

/// Those that would make Python import a name or call something, and those of protocol 0, for the message.
static const struct {
    uint8_t op;
    const char *name;
} refused[] = {
    {'c', "GLOBAL"},     {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},        {'i', "INST"},
    {'o', "OBJ"},        {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'P', "PERSID"},       {'Q', "BINPERSID"},
    {0x82, "EXT1"},      {0x83, "EXT2"},         {0x84, "EXT4"},      {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    {0x8f, "EMPTY_SET"}, {0x90, "ADDITEMS"},     {0x91, "FROZENSET"}, {'2', "DUP"},          {'F', "FLOAT"},
    {'I', "INT"},        {'L', "LONG"},          {'S', "STRING"},     {'V', "UNICODE"},      {'p', "PUT"},
    {'g', "GET"}};

static tide_status refuse(reader *r, uint8_t op, tide_error *err) {
    char what[96];
    snprintf(what, sizeof what, "0x%02x is no opcode of a pickle", op);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (refused[i].op == op)
            snprintf(what, sizeof what, "the opcode %s is not plain data of protocols 2 to 5", refused[i].name);
    const tide_status st = bad(r, err, what);
    tide_error_note(err, "dicts, lists, tuples, numbers and texts are read; nothing is imported, built or called");
    return st;
}

static tide_status take_mark_op(reader *r, tide_error *err) {
    if (r->n_marks == MAX_MARKS) return bad(r, err, "it is nested deeper than 1024 containers");
    r->marks[r->n_marks++] = r->n_stack;
    return TIDE_OK;
}

static tide_status pop(reader *r, tide_error *err) {
    const size_t floor = r->n_marks > 0 ? r->marks[r->n_marks - 1] : 0;
    if (r->n_stack > floor) {
        r->n_stack--;
        return TIDE_OK;
    }
    return take_mark(r, &r->n_stack, err);
}

static tide_status take_int(reader *r, size_t n, tide_error *err) {
    uint64_t v;
    TIDE_TRY(take_number(r, n, &v, err));
    if (n == 4) v = (uint64_t)(int64_t)(int32_t)(uint32_t)v;
    return push(r, TIDE__PICKLE_INT, v, err);
}

static tide_status take_get(reader *r, size_t n, tide_error *err) {
    uint64_t number;
    TIDE_TRY(take_number(r, n, &number, err));
    return recall(r, number, err);
}

static tide_status take_put(reader *r, size_t n, tide_error *err) {
    uint64_t number;
    TIDE_TRY(take_number(r, n, &number, err));
    return keep(r, number, err);
}

static tide_status take_protocol(reader *r, tide_error *err) {
    uint64_t protocol;
    TIDE_TRY(take_number(r, 1, &protocol, err));
    if (protocol >= 2 && protocol <= 5) return TIDE_OK;
    return bad(r, err, "it is of another pickle protocol than 2 to 5");
}

static tide_status take_frame(reader *r, tide_error *err) {
    uint64_t n;
    return take_number(r, 8, &n, err); // frames are a help for reading ahead, and say nothing else
}

static tide_status step_container(reader *r, uint8_t op, tide_error *err) {
    switch (op) {
    case OP_EMPTY_LIST:
        return new_container(r, TIDE__PICKLE_LIST, err);
    case OP_EMPTY_DICT:
        return new_container(r, TIDE__PICKLE_DICT, err);
    case OP_LIST:
        return make_marked(r, TIDE__PICKLE_LIST, err);
    case OP_DICT:
        return make_marked(r, TIDE__PICKLE_DICT, err);
    case OP_APPEND:
        TIDE_TRY(need(r, 2, err));
        return put_in(r, r->n_stack - 1, TIDE__PICKLE_LIST, err);
    case OP_SETITEM:
        TIDE_TRY(need(r, 3, err));
        return put_in(r, r->n_stack - 2, TIDE__PICKLE_DICT, err);
    case OP_APPENDS:
        return put_marked(r, TIDE__PICKLE_LIST, err);
    case OP_SETITEMS:
        return put_marked(r, TIDE__PICKLE_DICT, err);
    case OP_TUPLE:
        return make_marked_tuple(r, err);
    case OP_EMPTY_TUPLE:
        return make_tuple(r, r->n_stack, err);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return make_short_tuple(r, op - OP_TUPLE1 + 1u, err);
    default:
        return refuse(r, op, err);
    }
}

static tide_status step_value(reader *r, uint8_t op, tide_error *err) {
    switch (op) {
    case OP_NONE:
        return push(r, TIDE__PICKLE_NONE, 0, err);
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push(r, TIDE__PICKLE_BOOL, op == OP_NEWTRUE, err);
    case OP_BINFLOAT:
        return take_float(r, err);
    case OP_LONG1:
    case OP_SHORT_BINUNICODE:
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINBYTES:
        return take_sized(r, op, 1, err);
    case OP_LONG4:
    case OP_BINUNICODE:
    case OP_BINSTRING:
    case OP_BINBYTES:
        return take_sized(r, op, 4, err);
    case OP_BINUNICODE8:
    case OP_BINBYTES8:
    case OP_BYTEARRAY8:
        return take_sized(r, op, 8, err);
    case OP_PROTO:
        return take_protocol(r, err);
    case OP_FRAME:
        return take_frame(r, err);
    case OP_POP:
        return pop(r, err);
    case OP_POP_MARK:
        return take_mark(r, &r->n_stack, err);
    default:
        return step_container(r, op, err);
    }
}

/// The opcodes that most of a file consists of.
static tide_status step(reader *r, uint8_t op, tide_error *err) {
    switch (op) {
    case OP_LONG_BINGET:
        return take_get(r, 4, err);
    case OP_BINGET:
        return take_get(r, 1, err);
    case OP_MEMOIZE:
        return keep(r, r->n_memo, err);
    case OP_BINPUT:
        return take_put(r, 1, err);
    case OP_LONG_BINPUT:
        return take_put(r, 4, err);
    case OP_BININT1:
        return take_int(r, 1, err);
    case OP_BININT2:
        return take_int(r, 2, err);
    case OP_BININT:
        return take_int(r, 4, err);
    case OP_MARK:
        return take_mark_op(r, err);
    default:
        return step_value(r, op, err);
    }
}

static tide_status read_all(reader *r, tide__pickle_value *root, tide_error *err) {
    uint8_t op;
    TIDE_TRY(take_bytes(r, &op, 1, err));
    if (op != OP_PROTO) return bad(r, err, "it is no pickle of protocol 2 or later");
    for (;; r->op_at = r->base + r->at, op = r->buffer[r->at++]) {
        if (op == OP_STOP) break;
        TIDE_TRY(step(r, op, err));
        if (r->at == r->n_buffer) TIDE_TRY(fill(r, err));
    }
    if (r->n_stack != 1 || r->n_marks != 0) return bad(r, err, "it ends with more or less than one value");
    *root = r->stack[0];
    return TIDE_OK;
}

tide_status tide__pickle_read(FILE *in, const char *path, const tide__pickle_sink *sink, tide__pickle_value *root,
                              tide_error *err) {
    reader *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to read '%s'", path));
    r->in = in;
    r->path = path;
    r->sink = sink;
    r->buffer = tide_host_alloc(BUFFER_BYTES);
    const tide_status st = r->buffer != NULL ? read_all(r, root, err) : no_memory(r, err);
    if (st != TIDE_OK && err != NULL && err->where[0] == '\0')
        tide_error_where(err, "%s: byte %" PRIu64, path, r->op_at);
    tide_host_free(r->buffer);
    tide_host_free(r->text);
    tide_host_free(r->stack);
    tide_host_free(r->memo);
    tide_host_free(r->wide);
    tide_host_free(r);
    return st;
}
