// SPDX-License-Identifier: MIT
//
// What XLA writes of a module's memory (--xla_dump_to, buffer_assignment.cc and hlo_live_range.cc of openxla/xla):
//
//     BufferAssignment:
//     allocation 0: size 4194304, parameter 0, shape |f32[1024,1024]| at ShapeIndex {}:
//      value: <35 a.1 @0> (size=4194304,offset=0): f32[1024,1024]{1,0}
//     allocation 1: size 5242880, preallocated-temp:
//      value: <36 dot{0} @0> (size=4194304,offset=0): f32[4,512,512]{2,1,0}
//     HloLiveRange (max 12):
//       InstructionSequence:
//         0:a.1
//       BufferLiveRange:
//         a.1{}:0-12
//       Live ranges at 5 (peak):
//
// The second part stands behind the first one (older versions) or in a file of its own, whose name ends in another way.
// Behind each part comes what is not needed here.
#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/formats/texts.h"

typedef enum section { NOWHERE, ASSIGNMENT, USED_VALUES, LIVE_RANGE, SEQUENCE, RANGES, PEAK } section;

typedef struct reader {
    tide__xla *x;
    tide__scan s;
    section in;
} reader;

static int shown(size_t len) { return (int)(len < 60 ? len : 60); }

static tide_status no_memory(const reader *r) { return TIDE_NO_MEMORY(r->s.err, "to read '%s'", r->s.path); }

/// A name without the "{}" at its end: the second text has it always, the first one of tuples alone.
static char *copy_name(const char *text, size_t len) {
    if (len > 2 && memcmp(text + len - 2, "{}", 2) == 0) len -= 2;
    return tide_host_strndup(text, len);
}

static bool is_plain(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7F) return false;
    }
    return len > 0;
}

// ---- allocations ----

/// "parameter 0, shape |f32[2,3]| at ShapeIndex {1}"; older ones have no bars.
static bool skip_parameter(tide__scan *s) {
    uint64_t number;
    const char *text;
    size_t len;
    return tide__scan_number(s, &number) && tide__scan_eat(s, ", shape ") &&
           tide__scan_until(s, " at ShapeIndex {", &text, &len) && tide__scan_until(s, "}", &text, &len);
}

/// "output shape is |(f32[2], f32[3])|": bars hold a shape with commas; an older one has none, and ends where a word
/// of what follows begins.
static bool skip_output(tide__scan *s) {
    static const char *const next[] = {", constant", ", thread-local", ", maybe-live-out", ", preallocated-temp"};
    const char *text;
    size_t len;
    if (tide__scan_eat(s, "|")) return tide__scan_until(s, "|", &text, &len);
    while (!tide__scan_is_done(s)) {
        for (size_t i = 0; i < sizeof next / sizeof next[0]; i++) {
            const char *at = s->at;
            if (!tide__scan_eat(s, next[i])) continue;
            s->at = at;
            return true;
        }
        s->at++;
    }
    return false;
}

static tide_status take_flag(reader *r, tide__xla_allocation *a) {
    tide__scan *s = &r->s;
    const char *begin = s->at;
    if (tide__scan_eat(s, "color ")) {
        if (tide__scan_number(s, &a->color)) return TIDE_OK;
    } else if (tide__scan_eat(s, "parameter ")) {
        a->is_parameter = true;
        if (skip_parameter(s)) return TIDE_OK;
    } else if (tide__scan_eat(s, "output shape is ")) {
        if (skip_output(s)) return TIDE_OK;
    } else if (tide__scan_eat(s, "constant")) {
        a->is_constant = true;
        return TIDE_OK;
    } else if (tide__scan_eat(s, "thread-local")) {
        a->is_thread_local = true;
        return TIDE_OK;
    } else if (tide__scan_eat(s, "maybe-live-out")) {
        a->is_live_out = true;
        return TIDE_OK;
    } else if (tide__scan_eat(s, "preallocated-temp")) {
        a->is_temp = true;
        return TIDE_OK;
    }
    const size_t left = (size_t)(s->stop - begin);
    return TIDE_SCAN_BAD(s, "what '%.*s' says of an allocation is not known", shown(left), begin);
}

/// Behind "allocation ".
static tide_status take_allocation(reader *r) {
    tide__scan *s = &r->s;
    tide__xla *x = r->x;
    tide__xla_allocation a = {.first = x->n_values, .line = s->line};
    uint64_t number;
    const char *text;
    size_t len;
    if (!tide__scan_number(s, &number) || !tide__scan_eat(s, ": "))
        return TIDE_SCAN_BAD(s, "want 'allocation NUMBER: size BYTES'");
    if (number != x->n_allocations)
        return TIDE_SCAN_BAD(s, "allocation %" PRIu64 " follows on %zu others: lines are missing or there twice",
                             number, x->n_allocations);
    if (tide__scan_eat(s, "0x")) (void)tide__scan_until(s, ", ", &text, &len); // its address in the compiler, once
    if (!tide__scan_eat(s, "size ") || !tide__scan_number(s, &a.bytes))
        return TIDE_SCAN_BAD(s, "allocation %" PRIu64 " has no size", number);
    if (!tide_add_u64(x->total_bytes, a.bytes, &x->total_bytes) || x->total_bytes >> TIDE_LIST_MAX_SHIFT != 0)
        return TIDE_SCAN_BAD(s, "the allocations pass 2^%d bytes", TIDE_LIST_MAX_SHIFT);
    while (tide__scan_eat(s, ", ")) TIDE_TRY(take_flag(r, &a));
    if (!tide__scan_eat(s, ":") || !tide__scan_is_done(s))
        return TIDE_SCAN_BAD(s, "the line of allocation %" PRIu64 " does not end in ':'", number);
    const int kinds = (a.is_parameter || a.is_live_out) + a.is_constant + a.is_thread_local + a.is_temp;
    if (kinds != 1)
        return TIDE_SCAN_BAD(
            s, "allocation %" PRIu64 " is not one of parameter or result, constant, thread-local, temp", number);
    TIDE_TRY(TIDE_GROW(&x->allocations, &x->cap_allocations, x->n_allocations + 1, s->err, "to read '%s'", s->path));
    x->allocations[x->n_allocations++] = a;
    return TIDE_OK;
}

// ---- values ----

/// "dot{0} (phi) @0": the name, and what stands behind it.
static tide_status take_name(reader *r, const char *text, size_t len, tide__xla_value *v) {
    static const char phi[] = " (phi)";
    size_t n = len;
    while (n > 0 && text[n - 1] >= '0' && text[n - 1] <= '9') n--;
    if (n < len && n >= 2 && memcmp(text + n - 2, " @", 2) == 0) len = n - 2;
    v->is_phi = len > sizeof phi - 1 && memcmp(text + len - (sizeof phi - 1), phi, sizeof phi - 1) == 0;
    if (v->is_phi) len -= sizeof phi - 1;
    if (!is_plain(text, len)) return TIDE_SCAN_BAD(&r->s, "'%.*s' is no name of a value", shown(len), text);
    v->name = copy_name(text, len);
    return v->name != NULL ? TIDE_OK : no_memory(r);
}

static bool take_place(tide__scan *s, tide__xla_value *v) {
    return tide__scan_eat(s, " (size=") && tide__scan_number(s, &v->bytes) && tide__scan_eat(s, ",offset=") &&
           tide__scan_number(s, &v->offset) && tide__scan_eat(s, "): ") && !tide__scan_is_done(s);
}

/// Behind " value: <".
static tide_status take_value(reader *r) {
    tide__scan *s = &r->s;
    tide__xla *x = r->x;
    tide__xla_value v = {.begin = -1, .end = -1, .line = s->line};
    uint64_t id;
    const char *text;
    size_t len;
    if (x->n_allocations == 0) return TIDE_SCAN_BAD(s, "a value stands before the first allocation");
    tide__xla_allocation *a = &x->allocations[x->n_allocations - 1];
    if (!tide__scan_number(s, &id) || !tide__scan_eat(s, " ") || !tide__scan_until(s, ">", &text, &len))
        return TIDE_SCAN_BAD(s, "want 'value: <NUMBER NAME> (size=BYTES,offset=BYTES): SHAPE'");
    if (!take_place(s, &v)) return TIDE_SCAN_BAD(s, "value '%.*s' has no (size=BYTES,offset=BYTES)", shown(len), text);
    if (v.bytes > a->bytes || v.offset > a->bytes - v.bytes)
        return TIDE_SCAN_BAD(s, "value '%.*s' ends outside of its allocation of %" PRIu64 " bytes", shown(len), text,
                             a->bytes);
    v.allocation = (uint32_t)(x->n_allocations - 1);
    TIDE_TRY(TIDE_GROW(&x->values, &x->cap_values, x->n_values + 1, s->err, "to read '%s'", s->path));
    TIDE_TRY(take_name(r, text, len, &v));
    x->values[x->n_values++] = v; // its name is freed with it from here on
    if (x->n_values >= TIDE_NO_INDEX) return TIDE_SCAN_BAD(s, "more than 2^32 values");
    if (tide_strmap_get(&x->names, v.name, NULL)) return TIDE_SCAN_BAD(s, "value '%s' is there twice", v.name);
    if (tide_strmap_put(&x->names, v.name, x->n_values - 1) != TIDE_OK) return no_memory(r);
    a->n++;
    return TIDE_OK;
}

/// Behind "Total bytes used: ".
static tide_status check_total(reader *r) {
    uint64_t said;
    if (!tide__scan_number(&r->s, &said)) return TIDE_SCAN_BAD(&r->s, "the total is no number");
    if (said != r->x->total_bytes)
        return TIDE_SCAN_BAD(&r->s, "the allocations are %" PRIu64 " bytes together, and the total says %" PRIu64,
                             r->x->total_bytes, said);
    r->in = USED_VALUES;
    return TIDE_OK;
}

static tide_status take_assignment(reader *r) {
    if (tide__scan_is_done(&r->s)) return TIDE_OK;
    if (tide__scan_eat(&r->s, "allocation ")) return take_allocation(r);
    if (tide__scan_eat(&r->s, " value: <")) return take_value(r);
    if (tide__scan_eat(&r->s, "Total bytes used: ")) return check_total(r);
    return TIDE_SCAN_BAD(&r->s, "this is no line of a buffer assignment");
}

// ---- live ranges ----

static tide_status take_step(reader *r) {
    tide__scan *s = &r->s;
    tide__xla *x = r->x;
    uint64_t number;
    if (!tide__scan_eat(s, "    ") || !tide__scan_number(s, &number) || !tide__scan_eat(s, ":"))
        return TIDE_SCAN_BAD(s, "want '    NUMBER:NAME' in the sequence of instructions");
    if (number != x->n_steps)
        return TIDE_SCAN_BAD(s, "step %" PRIu64 " follows on %zu others: lines are missing or there twice", number,
                             x->n_steps);
    TIDE_TRY(TIDE_GROW(&x->steps, &x->cap_steps, x->n_steps + 2, s->err, "to read '%s'", s->path));
    x->steps[x->n_steps] = tide_host_strndup(s->at, (size_t)(s->stop - s->at));
    if (x->steps[x->n_steps] == NULL) return no_memory(r);
    x->n_steps++;
    return TIDE_OK;
}

/// What stands before the last ':' is the name: it may hold one itself.
static bool split_range(tide__scan *s, const char **name, size_t *len, uint64_t *begin, uint64_t *end) {
    const char *colon = s->stop;
    while (colon > s->at && *colon != ':') colon--;
    *name = s->at;
    *len = (size_t)(colon - s->at);
    if (*len == 0) return false;
    s->at = colon + 1;
    return tide__scan_number(s, begin) && tide__scan_eat(s, "-") && tide__scan_number(s, end) && tide__scan_is_done(s);
}

static tide_status take_range(reader *r) {
    tide__scan *s = &r->s;
    const char *text;
    size_t len;
    uint64_t begin, end;
    if (!tide__scan_eat(s, "    ") || !split_range(s, &text, &len, &begin, &end) || !is_plain(text, len))
        return TIDE_SCAN_BAD(s, "want '    NAME{INDEX}:FIRST-LAST' in the live ranges");
    if (begin > end || end > r->x->max_step)
        return TIDE_SCAN_BAD(s, "steps %" PRIu64 " to %" PRIu64 " do not lie in 0 to %" PRIu64, begin, end,
                             r->x->max_step);
    char *name = copy_name(text, len);
    if (name == NULL) return no_memory(r);
    uint64_t i;
    const bool is_there = tide_strmap_get(&r->x->names, name, &i);
    tide_host_free(name);
    if (!is_there) {
        const tide_status st = TIDE_SCAN_BAD(s, "'%.*s' has a live range and no allocation", shown(len), text);
        tide_error_note(s->err, "the two parts are not of one module, or lines of the first are missing");
        return st;
    }
    tide__xla_value *v = &r->x->values[i];
    if (v->begin >= 0) return TIDE_SCAN_BAD(s, "the live range of '%s' is there twice", v->name);
    v->begin = (int64_t)begin;
    v->end = (int64_t)end;
    return TIDE_OK;
}

/// Behind "HloLiveRange (max ".
static tide_status begin_live_range(reader *r) {
    tide__scan *s = &r->s;
    if (r->x->n_steps > 0 || r->x->has_ranges) return TIDE_SCAN_BAD(s, "the live ranges of a second module");
    if (!tide__scan_number(s, &r->x->max_step) || !tide__scan_eat(s, "):") || !tide__scan_is_done(s))
        return TIDE_SCAN_BAD(s, "want 'HloLiveRange (max NUMBER):'");
    r->in = LIVE_RANGE;
    return TIDE_OK;
}

static tide_status take_live_range(reader *r) {
    tide__scan *s = &r->s;
    if (r->in == LIVE_RANGE) {
        if (!tide__scan_eat(s, "  InstructionSequence:")) return TIDE_SCAN_BAD(s, "want '  InstructionSequence:'");
        r->in = SEQUENCE;
    } else if (r->in == SEQUENCE && tide__scan_eat(s, "  BufferLiveRange:")) {
        if (r->x->n_steps != r->x->max_step)
            return TIDE_SCAN_BAD(s, "the sequence has %zu instructions of %" PRIu64, r->x->n_steps, r->x->max_step);
        r->in = RANGES;
    } else if (r->in == SEQUENCE) {
        return take_step(r);
    } else if (tide__scan_eat(s, "  Live ranges at ") || tide__scan_eat(s, "  Peak memory ")) {
        r->x->has_ranges = true; // all of them: this always follows
        r->in = PEAK;
    } else {
        return take_range(r);
    }
    return TIDE_OK;
}

// ---- texts ----

static tide_status take_line(reader *r) {
    if (memchr(r->s.at, '\0', (size_t)(r->s.stop - r->s.at)) != NULL) return TIDE_SCAN_BAD(&r->s, "a zero byte");
    if (tide__scan_eat(&r->s, "BufferAssignment:") && tide__scan_is_done(&r->s)) {
        if (r->x->has_assignment) return TIDE_SCAN_BAD(&r->s, "the buffer assignment of a second module");
        r->x->has_assignment = true;
        r->in = ASSIGNMENT;
        return TIDE_OK;
    }
    if (tide__scan_eat(&r->s, "HloLiveRange (max ")) return begin_live_range(r);
    switch (r->in) {
    case ASSIGNMENT:
        return take_assignment(r);
    case LIVE_RANGE:
    case SEQUENCE:
    case RANGES:
        return take_live_range(r);
    default:
        return TIDE_OK; // of used values, of the peak
    }
}

static tide_status read_text(tide__xla *x, const char *data, size_t len, const char *path, tide_error *err) {
    reader r = {.x = x, .s = {.path = path, .next = data, .end = data + len, .err = err}};
    while (tide__scan_line(&r.s)) TIDE_TRY(take_line(&r));
    if (r.in == LIVE_RANGE || r.in == SEQUENCE || r.in == RANGES)
        return TIDE_SCAN_BAD(&r.s, "the text ends within the live ranges");
    return TIDE_OK;
}

// ---- the other file ----

static const char of_places[] = "-buffer-assignment.txt", of_ranges[] = "-live-range.txt";

/// The name of the file that has the other part; NULL: the name of this one does not say.
static char *other_name(const char *path, const char *mine, const char *other) {
    const size_t n = strlen(path), end = strlen(mine);
    tide_text name = {0};
    if (n <= end || strcmp(path + n - end, mine) != 0) return NULL;
    tide_text_add_n(&name, path, n - end);
    tide_text_add(&name, other);
    if (name.failed) tide_text_deinit(&name);
    return name.data;
}

/// Where the part that is missing may stand.
static tide_status missing(const char *path, bool no_ranges, tide_error *err) {
    const tide_status st =
        no_ranges ? TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' does not say when its buffers are needed", path)
                  : TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' does not say how large its buffers are", path);
    tide_error_where(err, "%s", path);
    tide_error_note(err,
                    "want 'BufferAssignment:' and behind it 'HloLiveRange', in one file or in two beside each "
                    "other whose names end in %s and %s",
                    of_places, of_ranges);
    tide_error_hint(err, "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_buffer_assignment_analysis' writes both where there "
                         "is such a flag, without it where there is none");
    return st;
}

/// The part that `path` has not, from the file beside it.
static tide_status read_other(tide__xla *x, const char *path, char **text, size_t *len, tide_error *err) {
    const bool no_ranges = x->has_assignment;
    const char *mine = no_ranges ? of_places : of_ranges, *other = no_ranges ? of_ranges : of_places;
    x->other_path = other_name(path, mine, other);
    const tide_status st = x->other_path != NULL ? tide_read_file(x->other_path, 0, text, len, err) : TIDE_ERR_IO;
    return st == TIDE_OK || st == TIDE_ERR_NOMEM ? st : missing(path, no_ranges, err);
}

static tide_status read_both(tide__xla *x, const char *data, size_t len, const char *path, char **other,
                             tide_error *err) {
    size_t n = 0;
    x->of_values.path = path;
    if (tide__scan_begins(data, len, "BufferAssignment:")) {
        TIDE_TRY(read_text(x, data, len, path, err));
        if (x->has_ranges) return TIDE_OK;
        TIDE_TRY(read_other(x, path, other, &n, err));
        TIDE_TRY(read_text(x, *other, n, x->other_path, err));
        return x->has_ranges ? TIDE_OK : missing(x->other_path, true, err);
    }
    TIDE_TRY(read_other(x, path, other, &n, err)); // values first: ranges are put to them
    x->of_values.path = x->other_path;
    TIDE_TRY(read_text(x, *other, n, x->other_path, err));
    if (!x->has_assignment) return missing(x->other_path, false, err);
    if (x->has_ranges) return TIDE_OK; // it had all
    TIDE_TRY(read_text(x, data, len, path, err));
    return x->has_ranges ? TIDE_OK : missing(path, true, err);
}

tide_status tide__xla_read(tide__xla *x, const char *data, size_t len, const char *path, tide_error *err) {
    char *other = NULL;
    x->of_values.err = err;
    const tide_status st = read_both(x, data, len, path, &other, err);
    tide_host_free(other);
    return st;
}

void tide__xla_deinit(tide__xla *x) {
    for (size_t i = 0; i < x->n_values; i++) tide_host_free(x->values[i].name);
    for (size_t i = 0; i < x->n_steps; i++) tide_host_free(x->steps[i]);
    tide_host_free(x->steps);
    tide_host_free(x->values);
    tide_host_free(x->allocations);
    tide_host_free(x->other_path);
    tide_strmap_deinit(&x->names);
    *x = (tide__xla){0};
}
