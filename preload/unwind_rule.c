// SPDX-License-Identifier: MIT
//
// Reads .eh_frame where the loader has it in memory: a search in the sorted table of .eh_frame_hdr, then the
// instructions of the one function. See unwind_rule.h; System V ABI for x86-64, section 3.7; DWARF 5, section 6.4.
//
//     .eh_frame_hdr   | function, description | function, description | ...     sorted by function
//     .eh_frame       | CIE: what several have in common | FDE: one function | FDE | ...
#include "preload/unwind_rule.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if TIDE_HAS_STACKS

// Numbers of DWARF for x86-64.
enum { REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_BACK = 16 };
// Forms of pointers.
enum { FORM_ABSOLUTE = 0x00, FORM_U4 = 0x03, FORM_S4 = 0x0b, FORM_S8 = 0x0c, FORM_FROM_HERE = 0x10, FORM_MASK = 0x0f };
enum { HEADER_FORM_TABLE = 0x3b, HEADER_FORM_HERE = 0x1b };

/// What is left to read.
typedef struct reader {
    const uint8_t *at, *end;
    bool is_bad;
} reader;

static uint64_t take(reader *r, size_t n) {
    uint64_t v = 0;
    if ((size_t)(r->end - r->at) < n) {
        r->is_bad = true;
        r->at = r->end;
        return 0;
    }
    memcpy(&v, r->at, n);
    r->at += n;
    return v;
}

static uint64_t take_uleb(reader *r) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = take(r, 1);
        v |= (byte & 0x7f) << shift;
        if (byte < 0x80) return v;
    }
    r->is_bad = true;
    return 0;
}

static int64_t take_sleb(reader *r) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = take(r, 1);
        v |= (byte & 0x7f) << shift;
        if (byte >= 0x80) continue;
        if ((byte & 0x40) != 0 && shift + 7 < 64) v |= ~UINT64_C(0) << (shift + 7);
        return (int64_t)v;
    }
    r->is_bad = true;
    return 0;
}

/// A block of bytes with its length before it.
static reader take_block(reader *r) {
    const uint64_t n = take_uleb(r);
    reader block = {.at = r->at, .end = r->at};
    if (n > (uint64_t)(r->end - r->at)) {
        r->is_bad = true;
        return block;
    }
    block.end = r->at += n;
    return block;
}

/// A pointer; `form` says how it is written. `is_length`: it is a size, whatever it would count from.
static uint64_t take_pointer(reader *r, uint8_t form, bool is_length) {
    const uint64_t here = (uintptr_t)r->at;
    uint64_t v = 0;
    switch (form & FORM_MASK) {
    case FORM_ABSOLUTE:
    case FORM_S8:
        v = take(r, 8);
        break;
    case FORM_U4:
        v = take(r, 4);
        break;
    case FORM_S4:
        v = (uint64_t)(int64_t)(int32_t)take(r, 4);
        break;
    default:
        r->is_bad = true;
    }
    if (is_length || (form & ~FORM_MASK) == 0) return v;
    if ((form & ~FORM_MASK) != FORM_FROM_HERE) r->is_bad = true;
    return v + here;
}

// ---- the description of a function ----

typedef struct function {
    uint64_t begin, end;
    uint64_t code_unit;
    int64_t data_unit;
    reader common, own; ///< instructions
    bool is_signal;
} function;

/// What comes behind "z" in the augmentation.
static uint8_t take_augmentation(reader *r, const char *letters, function *f) {
    uint8_t form = FORM_ABSOLUTE;
    reader data = take_block(r);
    for (; *letters != '\0' && !data.is_bad; letters++) {
        if (*letters == 'R') {
            form = (uint8_t)take(&data, 1);
        } else if (*letters == 'L') {
            take(&data, 1);
        } else if (*letters == 'P') {
            const uint8_t how = (uint8_t)take(&data, 1);
            take_pointer(&data, how, true);
        } else if (*letters == 'S') {
            f->is_signal = true;
        } else {
            break;
        }
    }
    return form;
}

static reader entry_at(const uint8_t *at) {
    reader r = {.at = at, .end = at + 4};
    const uint64_t bytes = take(&r, 4);
    enum { LONG_FORM = 0xfffffff0u };
    r.is_bad = bytes == 0 || bytes >= LONG_FORM;
    r.end = r.is_bad ? r.at : r.at + bytes;
    return r;
}

/// The common part. *form: of the pointers in the functions.
static bool take_common(const uint8_t *at, function *f, uint8_t *form, bool *has_data) {
    reader r = entry_at(at);
    if (take(&r, 4) != 0) return false;
    const uint64_t version = take(&r, 1);
    const char *letters = (const char *)r.at;
    const size_t n = strnlen(letters, (size_t)(r.end - r.at));
    if ((version != 1 && version != 3) || n == (size_t)(r.end - r.at)) return false;
    r.at += n + 1;
    f->code_unit = take_uleb(&r);
    f->data_unit = take_sleb(&r);
    const uint64_t back = version == 1 ? take(&r, 1) : take_uleb(&r);
    *has_data = letters[0] == 'z';
    *form = *has_data ? take_augmentation(&r, letters + 1, f) : FORM_ABSOLUTE;
    f->common = r;
    return !r.is_bad && back == REGISTER_BACK && (*has_data || letters[0] == '\0');
}

static bool take_function(const uint8_t *at, function *f) {
    reader r = entry_at(at);
    const uint8_t *const place = r.at;
    const uint64_t back = take(&r, 4);
    uint8_t form;
    bool has_data;
    if (r.is_bad || back == 0 || !take_common(place - back, f, &form, &has_data)) return false;
    f->begin = take_pointer(&r, form, false);
    f->end = f->begin + take_pointer(&r, form, true);
    if (has_data) (void)take_block(&r);
    f->own = r;
    return !r.is_bad;
}

/// The description of the last function that begins at or before the address; NULL: none.
static const uint8_t *search(const uint8_t *header, uint64_t address) {
    enum { VERSION = 1, HEAD = 12, ENTRY = 8 };
    if (header == NULL || header[0] != VERSION || header[1] != HEADER_FORM_HERE || header[2] != FORM_U4 ||
        header[3] != HEADER_FORM_TABLE)
        return NULL;
    uint32_t n;
    memcpy(&n, header + 8, sizeof n);
    const uint8_t *table = header + HEAD;
    uint32_t low = 0, high = n; // the first that begins behind it
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        int32_t begin;
        memcpy(&begin, table + (size_t)middle * ENTRY, sizeof begin);
        if ((uintptr_t)header + (uint64_t)(int64_t)begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return NULL;
    int32_t entry;
    memcpy(&entry, table + (size_t)(low - 1) * ENTRY + 4, sizeof entry);
    return header + entry;
}

// ---- its instructions ----

typedef enum where { WHERE_SAME, WHERE_BELOW, WHERE_EXPRESSION, WHERE_NOWHERE, WHERE_OTHER } where;

typedef struct state {
    uint64_t base;     ///< register that the frame is counted from
    int64_t offset;    ///< of the frame's begin
    reader expression; ///< in place of both, if it has bytes
    where fp, back;    ///< where the caller's are
    int64_t fp_offset; ///< from the frame's begin
    int64_t back_offset;
    reader fp_expression;
} state;

enum { MAX_REMEMBERED = 4 };
typedef struct machine {
    const function *f;
    state now, first; ///< `first`: behind the common instructions
    state remembered[MAX_REMEMBERED];
    int n_remembered;
    uint64_t at; ///< of the code
} machine;

static void set_where(machine *m, uint64_t number, where how, int64_t offset, reader expression) {
    if (number == REGISTER_FP) {
        m->now.fp = how;
        m->now.fp_offset = offset;
        m->now.fp_expression = expression;
    } else if (number == REGISTER_BACK) {
        m->now.back = how;
        m->now.back_offset = offset;
    }
}

static void restore(machine *m, uint64_t number) {
    if (number == REGISTER_FP) {
        m->now.fp = m->first.fp;
        m->now.fp_offset = m->first.fp_offset;
        m->now.fp_expression = m->first.fp_expression;
    } else if (number == REGISTER_BACK) {
        m->now.back = m->first.back;
        m->now.back_offset = m->first.back_offset;
    }
}

static void set_frame(machine *m, uint64_t base, int64_t offset) {
    m->now.base = base;
    m->now.offset = offset;
    m->now.expression = (reader){0};
}

static void remember(machine *m, reader *r) {
    if (m->n_remembered == MAX_REMEMBERED)
        r->is_bad = true;
    else
        m->remembered[m->n_remembered++] = m->now;
}

static void recall(machine *m, reader *r) {
    if (m->n_remembered == 0)
        r->is_bad = true;
    else
        m->now = m->remembered[--m->n_remembered];
}

/// Where a register of the caller's is (DW_CFA_... in comments). False: the instruction is another one.
static bool do_register(machine *m, reader *r, uint8_t code) {
    const int64_t unit = m->f->data_unit;
    const reader none = {0};
    uint64_t number;
    switch (code) {
    case 0x05: // offset_extended
        number = take_uleb(r);
        set_where(m, number, WHERE_BELOW, (int64_t)take_uleb(r) * unit, none);
        return true;
    case 0x11: // offset_extended_sf
        number = take_uleb(r);
        set_where(m, number, WHERE_BELOW, take_sleb(r) * unit, none);
        return true;
    case 0x06: // restore_extended
        restore(m, take_uleb(r));
        return true;
    case 0x07: // undefined
        set_where(m, take_uleb(r), WHERE_NOWHERE, 0, none);
        return true;
    case 0x08: // same_value
        set_where(m, take_uleb(r), WHERE_SAME, 0, none);
        return true;
    case 0x09: // register
    case 0x14: // val_offset
    case 0x15: // val_offset_sf: no matter what the second one is
        set_where(m, take_uleb(r), WHERE_OTHER, 0, none);
        (void)take_uleb(r);
        return true;
    case 0x10: // expression
        number = take_uleb(r);
        set_where(m, number, WHERE_EXPRESSION, 0, take_block(r));
        return true;
    case 0x16: // val_expression
        set_where(m, take_uleb(r), WHERE_OTHER, 0, none);
        (void)take_block(r);
        return true;
    default:
        return false;
    }
}

/// Where the frame begins; what concerns neither.
static void do_frame(machine *m, reader *r, uint8_t code) {
    const int64_t unit = m->f->data_unit;
    uint64_t number;
    switch (code) {
    case 0x00: // nop
        break;
    case 0x02: // advance_loc1, 2, 4
    case 0x03:
    case 0x04:
        m->at += take(r, (size_t)1 << (code - 2)) * m->f->code_unit;
        break;
    case 0x0a: // remember_state
        remember(m, r);
        break;
    case 0x0b: // restore_state
        recall(m, r);
        break;
    case 0x0c: // def_cfa
        number = take_uleb(r);
        set_frame(m, number, (int64_t)take_uleb(r));
        break;
    case 0x0d: // def_cfa_register
        set_frame(m, take_uleb(r), m->now.offset);
        break;
    case 0x0e: // def_cfa_offset
        set_frame(m, m->now.base, (int64_t)take_uleb(r));
        break;
    case 0x0f: // def_cfa_expression
        m->now.expression = take_block(r);
        break;
    case 0x12: // def_cfa_sf
        number = take_uleb(r);
        set_frame(m, number, take_sleb(r) * unit);
        break;
    case 0x13: // def_cfa_offset_sf
        set_frame(m, m->now.base, take_sleb(r) * unit);
        break;
    case 0x2e: // GNU_args_size
        (void)take_uleb(r);
        break;
    default:
        r->is_bad = true;
    }
}

/// Up to the address. False: they say what is not known here.
static bool execute(machine *m, reader r, uint64_t address) {
    while (r.at < r.end && !r.is_bad && m->at <= address) {
        const uint8_t code = (uint8_t)take(&r, 1), low = code & 0x3f;
        if (code >> 6 == 1) // advance_loc
            m->at += low * m->f->code_unit;
        else if (code >> 6 == 2) // offset
            set_where(m, low, WHERE_BELOW, (int64_t)take_uleb(&r) * m->f->data_unit, (reader){0});
        else if (code >> 6 == 3) // restore
            restore(m, low);
        else if (!do_register(m, &r, code))
            do_frame(m, &r, code);
    }
    return !r.is_bad;
}

// ---- what that comes to ----

/// "The register of this number, plus": with `is_read`, and what lies there. False: it is something else.
static bool is_from_fp(reader r, bool is_read, int64_t *offset) {
    enum { PLUS_REGISTER_0 = 0x70, READ = 0x06 };
    if (take(&r, 1) != PLUS_REGISTER_0 + REGISTER_FP) return false;
    *offset = take_sleb(&r);
    if (is_read && take(&r, 1) != READ) return false;
    return !r.is_bad && r.at == r.end;
}

static bool set_fp(const state *s, preload_rule *rule) {
    enum { WORD = 8 };
    int64_t offset = 0;
    if (s->fp == WHERE_BELOW) {
        rule->fp_kind = PRELOAD_FP_BELOW;
        offset = s->fp_offset;
    } else if (s->fp == WHERE_EXPRESSION) {
        rule->fp_kind = PRELOAD_FP_AT_FP;
        if (!is_from_fp(s->fp_expression, false, &offset)) return false;
    } else if (s->fp == WHERE_OTHER) {
        return false;
    }
    rule->fp_words = (int16_t)(offset / WORD);
    return offset % WORD == 0 && (int64_t)rule->fp_words * WORD == offset;
}

static preload_rule rule_of(const state *s) {
    const preload_rule none = {.kind = PRELOAD_RULE_NONE};
    preload_rule rule = none;
    int64_t offset = s->offset;
    if (s->back == WHERE_NOWHERE) return (preload_rule){.kind = PRELOAD_RULE_END};
    if (s->back != WHERE_BELOW || s->back_offset != -8 || !set_fp(s, &rule)) return none;
    if (s->expression.at != NULL) {
        if (!is_from_fp(s->expression, true, &offset)) return none;
        rule.kind = PRELOAD_RULE_AT_FP;
    } else if (s->base == REGISTER_SP || s->base == REGISTER_FP) {
        rule.kind = s->base == REGISTER_SP ? PRELOAD_RULE_SP : PRELOAD_RULE_FP;
    }
    rule.offset = (int32_t)offset;
    return rule.offset == offset ? rule : none;
}

static bool describe(const uint8_t *header, uint64_t address, function *f) {
    const uint8_t *entry = search(header, address);
    *f = (function){0};
    return entry != NULL && take_function(entry, f) && address >= f->begin && address < f->end;
}

preload_rule preload_find_rule(uint64_t address) {
    struct dl_find_object found;
    function f;
    if (_dl_find_object((void *)address, &found) != 0) // NOLINT(performance-no-int-to-ptr)
        return (preload_rule){.kind = PRELOAD_RULE_CHAIN};
    // Some functions are returned to, but never called: no instruction of theirs is before the address.
    if (!describe(found.dlfo_eh_frame, address, &f) && !describe(found.dlfo_eh_frame, ++address, &f))
        return (preload_rule){.kind = PRELOAD_RULE_CHAIN};
    if (f.is_signal) return (preload_rule){.kind = PRELOAD_RULE_SIGNAL};
    machine m = {.f = &f, .at = f.begin};
    if (!execute(&m, f.common, UINT64_MAX)) return (preload_rule){.kind = PRELOAD_RULE_NONE};
    m.first = m.now;
    if (!execute(&m, f.own, address)) return (preload_rule){.kind = PRELOAD_RULE_NONE};
    return rule_of(&m.now);
}

#endif
