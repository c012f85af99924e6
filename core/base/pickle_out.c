// SPDX-License-Identifier: MIT
//
// The pickle format, written. See pickle_out.h; opcodes are those of Python's Lib/pickletools.py.
#include "core/base/pickle_out.h"

#include <string.h>

#include "core/base/utf8.h"

enum {
    OP_PROTO = 0x80,
    OP_STOP = '.',
    OP_MARK = '(',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_DICT = '}',
    OP_APPENDS = 'e',
    OP_SETITEMS = 'u',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_LONG1 = 0x8a,
    OP_BINFLOAT = 'G',
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_TUPLE2 = 0x86,
    OP_BINUNICODE = 'X',
    OP_SHORT_BINUNICODE = 0x8c,
    OP_MEMOIZE = 0x94,
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',

    PROTOCOL = 4,
    AT_ONCE = 1000, // items of a list that are put together, as picklers do
};

// ---- bytes ----

static void put_op(tide_pickle_out *p, int op) {
    const char byte = (char)op;
    tide_text_add_n(p->out, &byte, 1);
}

/// An opcode with the lowest `n` bytes of `value`, the lowest first.
static void put_number(tide_pickle_out *p, int op, uint64_t value, size_t n) {
    char bytes[9] = {(char)op};
    TIDE_ASSERT(n <= 8);
    for (size_t i = 0; i < n; i++) bytes[1 + i] = (char)(value >> 8 * i & 0xff);
    tide_text_add_n(p->out, bytes, 1 + n);
}

/// A value comes: what it belongs to makes room.
static void count(tide_pickle_out *p) {
    struct tide_pickle_open *o = &p->open[p->depth];
    if (p->depth == 0) {
        TIDE_ASSERT(o->n == 0); // one value in all
    } else if (o->is_dict) {
        TIDE_ASSERT(o->n < 2 * AT_ONCE);
        if (o->n == 0) put_op(p, OP_MARK);
    } else if (o->n % AT_ONCE == 0) {
        if (o->n > 0) put_op(p, OP_APPENDS);
        put_op(p, OP_MARK);
    }
    o->n++;
}

// ---- the whole, lists, dicts ----

void tide_pickle_begin(tide_pickle_out *p) { put_number(p, OP_PROTO, PROTOCOL, 1); }

void tide_pickle_end(tide_pickle_out *p) {
    TIDE_ASSERT(p->depth == 0 && p->open[0].n == 1);
    put_op(p, OP_STOP);
}

void tide_pickle_deinit(tide_pickle_out *p) {
    tide_strmap_deinit(&p->texts);
    *p = (tide_pickle_out){0};
}

static void open(tide_pickle_out *p, bool is_dict) {
    count(p);
    put_op(p, is_dict ? OP_EMPTY_DICT : OP_EMPTY_LIST);
    TIDE_ASSERT(p->depth < TIDE_PICKLE_MAX_DEPTH);
    p->open[++p->depth] = (struct tide_pickle_open){.is_dict = is_dict};
}

void tide_pickle_list(tide_pickle_out *p) { open(p, false); }
void tide_pickle_dict(tide_pickle_out *p) { open(p, true); }

void tide_pickle_close(tide_pickle_out *p) {
    TIDE_ASSERT(p->depth > 0);
    const struct tide_pickle_open *o = &p->open[p->depth--];
    TIDE_ASSERT(!o->is_dict || o->n % 2 == 0); // every key has its value
    if (o->n > 0) put_op(p, o->is_dict ? OP_SETITEMS : OP_APPENDS);
}

// ---- numbers ----

static void put_long(tide_pickle_out *p, uint64_t value, bool is_negative) {
    size_t n = 8; // the fewest bytes of two's complement
    while (n > 1) {
        const uint8_t top = value >> 8 * (n - 1) & 0xff, next = value >> 8 * (n - 2) & 0xff;
        if (top != (is_negative ? 0xff : 0) || (next >= 0x80) != is_negative) break;
        n--;
    }
    const bool wants_sign = !is_negative && value >> 63 != 0;
    const char head[2] = {(char)OP_LONG1, (char)(n + wants_sign)};
    tide_text_add_n(p->out, head, 2);
    for (size_t i = 0; i < n; i++) put_op(p, (int)(value >> 8 * i & 0xff));
    if (wants_sign) put_op(p, 0);
}

void tide_pickle_u64(tide_pickle_out *p, uint64_t value) {
    count(p);
    if (value <= UINT8_MAX)
        put_number(p, OP_BININT1, value, 1);
    else if (value <= UINT16_MAX)
        put_number(p, OP_BININT2, value, 2);
    else if (value <= INT32_MAX)
        put_number(p, OP_BININT, value, 4);
    else
        put_long(p, value, false);
}

void tide_pickle_i64(tide_pickle_out *p, int64_t value) {
    if (value >= 0) {
        tide_pickle_u64(p, (uint64_t)value);
        return;
    }
    count(p);
    if (value >= INT32_MIN)
        put_number(p, OP_BININT, (uint64_t)value, 4);
    else
        put_long(p, (uint64_t)value, true);
}

void tide_pickle_real(tide_pickle_out *p, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    count(p);
    put_op(p, OP_BINFLOAT);
    for (int i = 7; i >= 0; i--) put_op(p, (int)(bits >> 8 * i & 0xff)); // the highest byte first
}

void tide_pickle_bool(tide_pickle_out *p, bool value) {
    count(p);
    put_op(p, value ? OP_NEWTRUE : OP_NEWFALSE);
}

void tide_pickle_pair(tide_pickle_out *p, uint32_t a, uint32_t b) {
    count(p);
    struct tide_pickle_open *o = &p->open[p->depth];
    const struct tide_pickle_open was = *o;
    o->is_dict = true; // two values that wait on the stack, without a mark of their own
    o->n = 1;
    tide_pickle_u64(p, a);
    tide_pickle_u64(p, b);
    *o = was;
    put_op(p, OP_TUPLE2);
}

// ---- what is kept ----

static uint32_t keep(tide_pickle_out *p) {
    TIDE_ASSERT(p->n_kept < UINT32_MAX);
    put_op(p, OP_MEMOIZE); // under the number of what was kept before
    return p->n_kept++;
}

uint32_t tide_pickle_keep(tide_pickle_out *p) {
    TIDE_ASSERT(p->open[p->depth].n > 0);
    return keep(p);
}

void tide_pickle_again(tide_pickle_out *p, uint32_t number) {
    TIDE_ASSERT(number < p->n_kept);
    count(p);
    if (number <= UINT8_MAX)
        put_number(p, OP_BINGET, number, 1);
    else
        put_number(p, OP_LONG_BINGET, number, 4);
}

// ---- texts ----

/// Bytes that are no UTF-8 become U+FFFD.
static void add_valid(tide_text *out, const char *text) {
    uint32_t cp;
    for (size_t n; (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
        if (cp == TIDE_UTF8_BAD)
            tide_text_add(out, TIDE_UTF8_REPLACEMENT);
        else
            tide_text_add_n(out, text, n);
    }
}

static uint32_t put_text(tide_pickle_out *p, const char *text) {
    tide_text valid = {0};
    add_valid(&valid, text);
    if (valid.failed || valid.len > UINT32_MAX) p->out->failed = true;
    count(p);
    if (valid.len <= UINT8_MAX)
        put_number(p, OP_SHORT_BINUNICODE, valid.len, 1);
    else
        put_number(p, OP_BINUNICODE, valid.len, 4);
    tide_text_add_n(p->out, tide_text_str(&valid), valid.len);
    tide_text_deinit(&valid);
    return keep(p);
}

void tide_pickle_text(tide_pickle_out *p, const char *text) {
    uint64_t number;
    if (tide_strmap_get(&p->texts, text, &number)) {
        tide_pickle_again(p, (uint32_t)number);
        return;
    }
    if (tide_strmap_put(&p->texts, text, put_text(p, text)) != TIDE_OK) p->out->failed = true;
}

void tide_pickle_put_word(tide_pickle_out *p, tide_pickle_word *word) {
    if (word->number > 0)
        tide_pickle_again(p, word->number - 1);
    else
        word->number = put_text(p, word->text) + 1;
}
