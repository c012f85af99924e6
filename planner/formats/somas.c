// SPDX-License-Identifier: MIT
//
// The text of MindSpore's planner (somas_tensor_offset_N.ir and somas_allocate_info of SOMAS, somas.cc of
// mindspore-ai/mindspore; since it writes lists of what is side by side), fields by tabs:
//
//     All Parameters:                               what lies outside of the plan
//     index: size: source node name: node out index:
//     %0P  #4096S  fc.weight  0
//     All Tensors:
//     index: aligned_size: original_size: offset: type: lifelong: life_start: life_end: source node name:
//     %0T  #1024S  #400S  &0  Common  LifeLongNone  1  4  Conv2D-op3
//     All Nodes:                                    one a step
//     $0  Conv2D-op3  0  inputs[%0P, ]  outputs[%0T, ]  workspace[]  ctrl_inputs[]  ctrl_outputs[]  streamID[@0]
//     All Union Tensors Info:                       one place for several
//     union tensors: [%0T %1T ]
//     All Original Contiguous Tensors Info:         side by side, in this order
//     contiguous tensors: [%2T %3T ]
//     … All Processed Contiguous Tensors Info, All Stream Groups, All Merged Blocks: follow from the above
//     Total Memory Size after reused:2048
//
// Its planner takes two tensors for alive at once by what runs before what; with one stream that is their lifetimes.
// What it leaves free before the first of a contiguous list (512 bytes, for communication) is in that one's size.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "planner/formats/texts.h"

enum { MAX_ALIGN = 512 };

typedef enum section {
    NOWHERE,
    PARAMETERS,
    TENSORS,
    NODES,
    UNIONS,
    CONTIGUOUS,
    PROCESSED,
    STREAMS,
    BLOCKS,
    END
} section;
static const char *const headings[] = {[PARAMETERS] = "All Parameters:",
                                       [TENSORS] = "All Tensors:",
                                       [NODES] = "All Nodes:",
                                       [UNIONS] = "All Union Tensors Info:",
                                       [CONTIGUOUS] = "All Original Contiguous Tensors Info:",
                                       [PROCESSED] = "All Processed Contiguous Tensors Info:",
                                       [STREAMS] = "All Stream Groups:",
                                       [BLOCKS] = "All Merged Blocks:",
                                       [END] = "Total Memory Size after reused:"};

typedef struct tensor {
    char *name; // owned
    uint64_t bytes, offset;
    uint64_t begin, end; // the last step is one of its
    tide_role role;
    bool lives_from_first, lives_to_last;
    size_t line;
} tensor;

typedef struct parameter {
    char *name; // owned
    uint64_t bytes;
} parameter;

/// Tensors that the text lists together: ids[first, first + n).
typedef struct list {
    size_t first, n, line;
    bool is_union;
} list;

typedef struct reader {
    tide__scan s;
    section in;
    tensor *tensors;
    parameter *parameters;
    char **steps;
    list *lists;
    uint32_t *ids;
    size_t n_tensors, n_parameters, n_steps, n_lists, n_ids;
    size_t cap_tensors, cap_parameters, cap_steps, cap_lists, cap_ids;
    size_t n_control;
    uint64_t stream; // of the nodes
    uint64_t total_bytes, parameter_bytes, total_line;
    tide_lifetimes out;
} reader;

#define GROW(r, what)                                                                                                  \
    TIDE_GROW(&(r)->what, &(r)->cap_##what, (r)->n_##what + 1, (r)->s.err, "to read '%s'", (r)->s.path)

static tide_status no_memory(const reader *r) { return TIDE_NO_MEMORY(r->s.err, "to read '%s'", r->s.path); }
static int shown(size_t len) { return (int)(len < 60 ? len : 60); }

// ---- fields ----

/// "#1024S"
static bool take_size(tide__scan *s, uint64_t *out) {
    return tide__scan_eat(s, "#") && tide__scan_number(s, out) && tide__scan_eat(s, "S") &&
           *out >> TIDE_LIST_MAX_SHIFT == 0;
}

/// "%3T Conv2D-op3": a node's name alone may be there for several. *out is the caller's.
static tide_status make_name(reader *r, uint64_t id, char letter, const char *text, size_t len, char **out) {
    char head[32];
    const int n = snprintf(head, sizeof head, "%%%" PRIu64 "%c ", id, letter);
    *out = tide_host_alloc((size_t)n + len + 1);
    if (*out == NULL) return no_memory(r);
    memcpy(*out, head, (size_t)n);
    memcpy(*out + n, text, len);
    (*out)[(size_t)n + len] = '\0';
    return TIDE_OK;
}

// ---- parameters ----

static tide_status take_parameter(reader *r) {
    tide__scan *s = &r->s;
    parameter p = {0};
    uint64_t id;
    const char *text;
    size_t len;
    if (!tide__scan_eat(s, "%") || !tide__scan_number(s, &id) || !tide__scan_eat(s, "P\t") || !take_size(s, &p.bytes) ||
        !tide__scan_eat(s, "\t") || !tide__scan_until(s, "\t", &text, &len))
        return TIDE_SCAN_BAD(s, "want '%%NUMBERP  #BYTESS  NAME  INDEX' of a parameter");
    if (id != r->n_parameters)
        return TIDE_SCAN_BAD(s, "parameter %" PRIu64 " follows on %zu others", id, r->n_parameters);
    if (!tide_add_u64(r->parameter_bytes, p.bytes, &r->parameter_bytes) ||
        r->parameter_bytes >> TIDE_LIST_MAX_SHIFT != 0)
        return TIDE_SCAN_BAD(s, "the parameters pass 2^%d bytes", TIDE_LIST_MAX_SHIFT);
    TIDE_TRY(GROW(r, parameters));
    TIDE_TRY(make_name(r, id, 'P', text, len, &p.name));
    r->parameters[r->n_parameters++] = p;
    return TIDE_OK;
}

// ---- tensors ----

static bool is_word(const char *text, size_t len, const char *word) {
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

static tide_role role_of(const char *type, size_t len) {
    if (is_word(type, len, "Workspace")) return TIDE_ROLE_SCRATCH;
    if (is_word(type, len, "GraphOutput")) return TIDE_ROLE_OUTPUT;
    if (is_word(type, len, "GraphInput")) return TIDE_ROLE_INPUT;
    return TIDE_ROLE_INTERMEDIATE;
}

/// "LifeLongGraphStart": needed from the graph's start.
static tide_status take_lifelong(reader *r, tensor *t) {
    const char *text;
    size_t len;
    if (!tide__scan_until(&r->s, "\t", &text, &len)) return TIDE_SCAN_BAD(&r->s, "a tensor has no 'lifelong'");
    const bool is_all = is_word(text, len, "LifeLongGraphAll");
    t->lives_from_first = is_all || is_word(text, len, "LifeLongGraphStart");
    t->lives_to_last = is_all || is_word(text, len, "LifeLongGraphEnd");
    if (t->lives_from_first || t->lives_to_last || is_word(text, len, "LifeLongNone")) return TIDE_OK;
    return TIDE_SCAN_BAD(&r->s, "'lifelong' is '%.*s': want LifeLongNone, …GraphAll, …GraphStart or …GraphEnd",
                         shown(len), text);
}

/// Behind the number and its letter. Control tensors order nodes and hold nothing.
static tide_status take_tensor_fields(reader *r, tensor *t, bool *is_control) {
    tide__scan *s = &r->s;
    uint64_t asked;
    const char *type;
    size_t len;
    if (!take_size(s, &t->bytes) || !tide__scan_eat(s, "\t") || !take_size(s, &asked) || !tide__scan_eat(s, "\t&") ||
        !tide__scan_number(s, &t->offset) || t->offset >> TIDE_LIST_MAX_SHIFT != 0 || !tide__scan_eat(s, "\t") ||
        !tide__scan_until(s, "\t", &type, &len))
        return TIDE_SCAN_BAD(s,
                             "want '%%NUMBERT  #BYTESS  #BYTESS  &OFFSET  TYPE  LIFELONG  START  END  NAME' of a "
                             "tensor, sizes and places below 2^%d",
                             TIDE_LIST_MAX_SHIFT);
    *is_control = *is_control || is_word(type, len, "Control");
    t->role = role_of(type, len);
    TIDE_TRY(take_lifelong(r, t));
    if (!tide__scan_number(s, &t->begin) || !tide__scan_eat(s, "\t") || !tide__scan_number(s, &t->end) ||
        !tide__scan_eat(s, "\t"))
        return TIDE_SCAN_BAD(s, "a tensor has no 'life_start' and 'life_end'");
    if (t->begin > t->end) return TIDE_SCAN_BAD(s, "a tensor lives from %" PRIu64 " to %" PRIu64, t->begin, t->end);
    if (*is_control && t->bytes > 0) return TIDE_SCAN_BAD(s, "a control tensor of %" PRIu64 " bytes", t->bytes);
    return TIDE_OK;
}

static tide_status take_tensor(reader *r) {
    tide__scan *s = &r->s;
    tensor t = {.line = s->line};
    uint64_t id;
    if (!tide__scan_eat(s, "%") || !tide__scan_number(s, &id)) return TIDE_SCAN_BAD(s, "want '%%NUMBERT' of a tensor");
    bool is_control = tide__scan_eat(s, "C");
    if (!tide__scan_eat(s, "T\t")) return TIDE_SCAN_BAD(s, "want '%%NUMBERT' of a tensor");
    TIDE_TRY(take_tensor_fields(r, &t, &is_control));
    if (is_control) {
        r->n_control++;
        return TIDE_OK;
    }
    if (id != r->n_tensors) return TIDE_SCAN_BAD(s, "tensor %" PRIu64 " follows on %zu others", id, r->n_tensors);
    if (id >= TIDE_NO_INDEX) return TIDE_SCAN_BAD(s, "more than 2^32 tensors");
    TIDE_TRY(GROW(r, tensors));
    TIDE_TRY(make_name(r, id, 'T', s->at, (size_t)(s->stop - s->at), &t.name));
    r->tensors[r->n_tensors++] = t;
    return TIDE_OK;
}

// ---- nodes ----

static tide_status take_node(reader *r) {
    tide__scan *s = &r->s;
    uint64_t id, stream;
    const char *name, *text;
    size_t len, skipped;
    if (!tide__scan_eat(s, "$") || !tide__scan_number(s, &id) || !tide__scan_eat(s, "\t") ||
        !tide__scan_until(s, "\t", &name, &len) || !tide__scan_until(s, "\tstreamID[@", &text, &skipped) ||
        !tide__scan_number(s, &stream) || !tide__scan_eat(s, "]"))
        return TIDE_SCAN_BAD(s, "want '$NUMBER  NAME  … streamID[@NUMBER]' of a node");
    if (id != r->n_steps) return TIDE_SCAN_BAD(s, "node %" PRIu64 " follows on %zu others", id, r->n_steps);
    if (r->n_steps == 0) r->stream = stream;
    if (stream != r->stream) {
        const tide_status st = TIDE_SCAN_BAD(s, "the nodes run on streams %" PRIu64 " and %" PRIu64, r->stream, stream);
        tide_error_note(s->err,
                        "which tensors may share bytes then follows from what waits for what, and not from when "
                        "they live: a list of lifetimes cannot say it");
        return st;
    }
    TIDE_TRY(GROW(r, steps));
    r->steps[r->n_steps] = tide_host_strndup(name, len);
    if (r->steps[r->n_steps] == NULL) return no_memory(r);
    r->n_steps++;
    return TIDE_OK;
}

// ---- lists ----

/// "contiguous tensors: [%2T %3T ]"
static tide_status take_list(reader *r, const char *head, bool is_union) {
    tide__scan *s = &r->s;
    list l = {.first = r->n_ids, .line = s->line, .is_union = is_union};
    if (!tide__scan_eat(s, head)) return TIDE_SCAN_BAD(s, "want '%s%%NUMBERT … ]'", head);
    while (tide__scan_eat(s, "%")) {
        uint64_t id;
        if (!tide__scan_number(s, &id) || !tide__scan_eat(s, "T ")) return TIDE_SCAN_BAD(s, "want '%%NUMBERT '");
        if (id >= r->n_tensors) return TIDE_SCAN_BAD(s, "tensor %" PRIu64 " is not listed", id);
        TIDE_TRY(GROW(r, ids));
        r->ids[r->n_ids++] = (uint32_t)id;
        l.n++;
    }
    if (!tide__scan_eat(s, "]") || !tide__scan_is_done(s)) return TIDE_SCAN_BAD(s, "the list does not end in ']'");
    TIDE_TRY(GROW(r, lists));
    r->lists[r->n_lists++] = l;
    return TIDE_OK;
}

// ---- the text ----

static tide_status take_heading(reader *r, section to) {
    tide__scan *s = &r->s;
    if (to != r->in + 1) {
        const tide_status st = TIDE_SCAN_BAD(s, "'%s' comes where '%s' should", headings[to],
                                             r->in < END ? headings[r->in + 1] : "the end");
        if (r->in == NODES) tide_error_note(s->err, "older versions do not write which tensors must lie side by side");
        return st;
    }
    r->in = to;
    if (to == END && (!tide__scan_number(s, &r->total_bytes) || r->total_bytes >> TIDE_LIST_MAX_SHIFT != 0))
        return TIDE_SCAN_BAD(s, "the total is no number below 2^%d", TIDE_LIST_MAX_SHIFT);
    if (!tide__scan_is_done(s)) return TIDE_SCAN_BAD(s, "there is more behind '%s'", headings[to]);
    r->total_line = s->line;
    return TIDE_OK;
}

/// Columns of another version would be read for others.
static tide_status check_columns(reader *r, const char *want) {
    tide__scan *s = &r->s;
    if (tide__scan_eat(s, want) && tide__scan_is_done(s)) return TIDE_OK;
    const tide_status st = TIDE_SCAN_BAD(s, "these columns are not known");
    tide_error_note(s->err, "older versions do not write which tensors must lie side by side");
    return st;
}

static tide_status take_line(reader *r) {
    tide__scan *s = &r->s;
    if (tide__scan_is_done(s)) return TIDE_OK;
    if (memchr(s->at, '\0', (size_t)(s->stop - s->at)) != NULL) return TIDE_SCAN_BAD(s, "a zero byte");
    for (section to = PARAMETERS; to <= END; to++) {
        if (tide__scan_eat(s, headings[to])) return take_heading(r, to);
    }
    const bool is_head = s->stop - s->at > 6 && memcmp(s->at, "index:", 6) == 0;
    switch (r->in) {
    case PARAMETERS:
        if (is_head) return check_columns(r, "index:\tsize:\tsource node name:\tnode out index:");
        return take_parameter(r);
    case TENSORS:
        if (is_head)
            return check_columns(r, "index:\taligned_size:\toriginal_size:\toffset:\ttype:\tlifelong:\tlife_start:\t"
                                    "life_end:\tsource node name:");
        return take_tensor(r);
    case NODES:
        return take_node(r);
    case UNIONS:
        return take_list(r, "union tensors: [", true);
    case CONTIGUOUS:
        return take_list(r, "contiguous tensors: [", false);
    case END:
        return TIDE_SCAN_BAD(s, "there is more behind the total");
    default:
        return TIDE_OK;
    }
}

static tide_status read_text(reader *r) {
    while (tide__scan_line(&r->s)) TIDE_TRY(take_line(r));
    if (r->in == END) return TIDE_OK;
    return TIDE_SCAN_BAD(&r->s, "the text ends before '%s'", headings[r->in + 1]);
}

// ---- what lies together ----

static tide_status bad_list(const reader *r, const list *l, uint32_t a, uint32_t b, const char *what) {
    const tide_status st =
        TIDE_FAIL(r->s.err, TIDE_ERR_BAD_INPUT, "tensors %%%" PRIu32 "T and %%%" PRIu32 "T %s", a, b, what);
    return tide__scan_fault(&r->s, l->line, st);
}

static tide_status bind_union(reader *r, const list *l, tide__together *t) {
    for (size_t k = 1; k < l->n; k++) {
        const uint32_t a = r->ids[l->first], b = r->ids[l->first + k];
        if (r->tensors[a].offset != r->tensors[b].offset) return bad_list(r, l, a, b, "are one, and lie apart");
        tide__together_bind(t, a, b);
    }
    return TIDE_OK;
}

/// The first one's offset is behind what is left free before it; its size has that in it.
static tide_status bind_contiguous(reader *r, const list *l, tide__together *t) {
    for (size_t k = 1; k < l->n; k++) {
        const uint32_t a = r->ids[l->first + k - 1], b = r->ids[l->first + k];
        const uint64_t stop = r->tensors[a].offset + r->tensors[a].bytes, next = r->tensors[b].offset;
        const bool overlaps = k == 1 && stop >= next && stop - next <= r->tensors[a].bytes;
        if (overlaps && stop - next > r->tensors[a].offset) return bad_list(r, l, a, b, "begin before the plan");
        if (overlaps) t->place[a] = r->tensors[a].offset - (stop - next);
        if (!overlaps && stop != next) return bad_list(r, l, a, b, "do not lie side by side");
        tide__together_bind(t, a, b);
    }
    return TIDE_OK;
}

static tide_status bind_lists(reader *r, tide__together *t) {
    for (size_t i = 0; i < r->n_tensors; i++) t->place[i] = r->tensors[i].offset;
    for (size_t i = 0; i < r->n_lists; i++) {
        const list *l = &r->lists[i];
        TIDE_TRY(l->is_union ? bind_union(r, l, t) : bind_contiguous(r, l, t));
    }
    for (size_t i = 0; i < r->n_tensors; i++) {
        if (t->place[i] + r->tensors[i].bytes <= r->total_bytes) continue;
        const tide_status st =
            TIDE_FAIL(r->s.err, TIDE_ERR_BAD_INPUT, "tensor '%s' ends behind the %" PRIu64 " bytes of the plan",
                      r->tensors[i].name, r->total_bytes);
        tide_error_note(r->s.err, "or the text was written before memory was planned: somas_tensor_offset has places");
        return tide__scan_fault(&r->s, r->tensors[i].line, st);
    }
    return TIDE_OK;
}

// ---- the table ----

static tide_status add_tensor(reader *r, const tensor *t, uint64_t align_bytes) {
    if (t->end >= r->n_steps) {
        const tide_status st = TIDE_FAIL(r->s.err, TIDE_ERR_BAD_INPUT, "tensor '%s' lives to node %" PRIu64 " of %zu",
                                         t->name, t->end, r->n_steps);
        return tide__scan_fault(&r->s, t->line, st);
    }
    tide_lifetime item = tide_lifetime_make(t->name, t->bytes, align_bytes, t->lives_from_first ? 0 : (int64_t)t->begin,
                                            t->lives_to_last ? (int64_t)r->n_steps : (int64_t)t->end + 1);
    item.unrounded = true;
    item.role = t->role;
    return tide_lifetimes_add(&r->out, &item, r->s.err);
}

static tide_status add_parameters(reader *r) {
    for (size_t i = 0; i < r->n_parameters; i++) {
        tide_lifetime item = tide_lifetime_make(r->parameters[i].name, r->parameters[i].bytes, 1, 0, r->out.n_steps);
        item.persistent = true;
        item.unrounded = true;
        item.kind = TIDE_KIND_PERSISTENT;
        item.role = TIDE_ROLE_WEIGHT;
        TIDE_TRY(tide_lifetimes_add(&r->out, &item, r->s.err));
    }
    return TIDE_OK;
}

static tide_status fill_table(reader *r, tide__together *t) {
    TIDE_TRY(bind_lists(r, t));
    const uint64_t align_bytes = tide__together_alignment(t->place, t->n, MAX_ALIGN);
    for (size_t i = 0; i < r->n_tensors; i++) TIDE_TRY(add_tensor(r, &r->tensors[i], align_bytes));
    TIDE_TRY(tide__together_apply(t, &r->out, r->s.err));
    r->out.n_steps = r->n_steps > 0 ? (int64_t)r->n_steps : 1;
    TIDE_TRY(add_parameters(r));
    r->out.step_names = r->steps; // the table's from here on
    r->out.n_step_names = r->n_steps;
    r->steps = NULL;
    r->n_steps = 0;
    r->out.given_plan_bytes = r->total_bytes;
    return TIDE_OK;
}

static tide_status make(reader *r) {
    tide__together t;
    TIDE_TRY(read_text(r));
    TIDE_TRY(tide__together_init(&t, r->n_tensors, r->s.err));
    const tide_status st = fill_table(r, &t);
    tide__together_deinit(&t);
    return st;
}

static void deinit(reader *r) {
    for (size_t i = 0; i < r->n_tensors; i++) tide_host_free(r->tensors[i].name);
    for (size_t i = 0; i < r->n_parameters; i++) tide_host_free(r->parameters[i].name);
    for (size_t i = 0; i < r->n_steps; i++) tide_host_free(r->steps[i]);
    tide_host_free(r->tensors);
    tide_host_free(r->parameters);
    tide_host_free(r->steps);
    tide_host_free(r->lists);
    tide_host_free(r->ids);
}

bool tide__list_is_somas(const char *data, size_t len) {
    return tide__scan_begins(data, len, "All Parameters:\n\nindex:\t") ||
           tide__scan_begins(data, len, "All Parameters:\r\n\r\nindex:\t");
}

tide_status tide__list_somas(const char *data, size_t len, const char *path, tide_lifetimes *out, tide_error *err) {
    reader *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to read '%s'", path));
    r->s = (tide__scan){.path = path, .next = data, .end = data + len, .err = err};
    tide_status st = make(r);
    if (st == TIDE_OK)
        *out = r->out;
    else
        tide_lifetimes_deinit(&r->out);
    deinit(r);
    tide_host_free(r);
    return st;
}
