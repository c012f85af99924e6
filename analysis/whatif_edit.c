// SPDX-License-Identifier: MIT
//
// whatif, edits as text: "in-place relu1_out conv1_out". A name with blanks stands in quotes, in which a backslash
// takes the next character as it is. See whatif.h.
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/whatif.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "core/ops/ops.h"
#include "planner/passes.h"
#include "planner/without.h"

const char *tide_edit_name(tide_edit_kind kind) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_EDIT_MAP(XX)
#undef XX
    };
    return (unsigned)kind < TIDE_N_EDITS ? names[kind] : "edit ?";
}

const char *tide_edit_usage(tide_edit_kind kind) {
    switch (kind) {
    case TIDE_EDIT_FREE_EARLIER:
        return "free-earlier TENSOR [STEP]";
    case TIDE_EDIT_IN_PLACE:
        return "in-place TENSOR OTHER";
    case TIDE_EDIT_RECOMPUTE:
        return "recompute TENSOR";
    case TIDE_EDIT_ALIGN:
        return "align [TENSOR] BYTES";
    case TIDE_EDIT_PIN:
        return "pin TENSOR OFFSET";
    case TIDE_EDIT_UNPIN:
        return "unpin TENSOR";
    case TIDE_EDIT_HALF:
        return "half TENSOR";
    case TIDE_EDIT_GONE:
        return "gone TENSOR";
    case TIDE_EDIT_STRATEGY:
        return "strategy NAME";
    case TIDE_EDIT_PASS:
        return "pass [-]NAME";
    case TIDE_EDIT_EXTENT:
        return "extent INPUT=DIMS";
    case TIDE_EDIT_BATCH:
        return "batch N";
    default:
        return "";
    }
}

// ---- words ----

typedef struct reader {
    const char *text, *at;
    tide_error *err;
} reader;

enum { MAX_WORDS = 3, WORD_BYTES = 256 };

typedef struct word {
    const char *at; ///< where it begins in the text
    char text[WORD_BYTES];
} word;

static tide_status fail_at(const reader *r, const char *at, const char *what) {
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_INVALID, "cannot read the edit: %s", what);
    tide_error_where(r->err, "'%s', character %zu", r->text, (size_t)(at - r->text) + 1);
    return st;
}

static void skip_blanks(reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static tide_status read_word(reader *r, word *out) {
    const bool quoted = *r->at == '"';
    size_t n = 0;
    out->at = r->at;
    if (quoted) r->at++;
    while (*r->at != '\0' && (quoted ? *r->at != '"' : !isspace((unsigned char)*r->at))) {
        if (quoted && *r->at == '\\' && r->at[1] != '\0') r->at++;
        if (n + 1 == sizeof out->text) return fail_at(r, out->at, "the word is longer than 255 bytes");
        out->text[n++] = *r->at++;
    }
    out->text[n] = '\0';
    if (!quoted) return TIDE_OK;
    if (*r->at != '"') return fail_at(r, out->at, "the quote is not closed");
    r->at++;
    if (*r->at != '\0' && !isspace((unsigned char)*r->at)) return fail_at(r, r->at, "want a blank after the quote");
    return TIDE_OK;
}

/// The words behind the first, which is in `verb`.
static tide_status read_words(reader *r, word *verb, word *words, size_t *n) {
    *n = 0;
    skip_blanks(r);
    TIDE_TRY(read_word(r, verb));
    for (skip_blanks(r); *r->at != '\0'; skip_blanks(r)) {
        if (*n == MAX_WORDS) return fail_at(r, r->at, "there is more than any edit has");
        TIDE_TRY(read_word(r, &words[(*n)++]));
    }
    return TIDE_OK;
}

// ---- what the words say ----

static const char *kind_at(const void *ctx, size_t i) {
    (void)ctx;
    return tide_edit_name((tide_edit_kind)i);
}

static tide_status find_kind(const reader *r, const word *verb, tide_edit_kind *out) {
    for (int k = 0; k < TIDE_N_EDITS; k++) {
        if (strcmp(verb->text, tide_edit_name((tide_edit_kind)k)) != 0) continue;
        *out = (tide_edit_kind)k;
        return TIDE_OK;
    }
    tide_text all = {0};
    for (int k = 0; k < TIDE_N_EDITS; k++)
        tide_text_addf(&all, "%s%s", k == 0 ? "" : ", ", tide_edit_name((tide_edit_kind)k));
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_INVALID, "there is no edit '%s'", verb->text);
    tide_error_where(r->err, "'%s', character %zu", r->text, (size_t)(verb->at - r->text) + 1);
    tide_error_note(r->err, "edits are %s", tide_text_str(&all));
    const char *nearest = tide_nearest_word(verb->text, kind_at, NULL, TIDE_N_EDITS);
    if (nearest != NULL) tide_error_hint(r->err, "did you mean '%s'?", nearest);
    tide_text_deinit(&all);
    return st;
}

static tide_status check_count(const reader *r, tide_edit_kind kind, size_t n, size_t least, size_t most) {
    if (n >= least && n <= most) return TIDE_OK;
    const tide_status st = fail_at(r, r->at, n < least ? "a word is missing" : "there is a word too many");
    tide_error_hint(r->err, "usage: %s", tide_edit_usage(kind));
    return st;
}

/// A whole number without a sign, up to 2^63 - 1.
static tide_status read_number(const reader *r, const word *w, uint64_t least, uint64_t *out) {
    uint64_t value = 0;
    if (w->text[0] == '\0') return fail_at(r, w->at, "want a number");
    for (const char *c = w->text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || !tide_mul_u64(value, 10, &value) ||
            !tide_add_u64(value, (uint64_t)(*c - '0'), &value) || value > INT64_MAX)
            return fail_at(r, w->at, "want a whole number");
    }
    if (value < least) return fail_at(r, w->at, "the number is too small");
    *out = value;
    return TIDE_OK;
}

static tide_status read_bytes(const reader *r, const word *w, bool is_align, uint64_t *out) {
    if (tide_parse_bytes(w->text, out, NULL) != TIDE_OK) return fail_at(r, w->at, "want bytes, like 4096 or 4KiB");
    if (is_align && !tide_is_pow2(*out)) return fail_at(r, w->at, "an alignment is a power of two");
    if (*out > INT64_MAX) return fail_at(r, w->at, "more than 2^63 - 1 bytes");
    return TIDE_OK;
}

static tide_status read_name(const reader *r, const word *w, char *out) {
    if (w->text[0] == '\0') return fail_at(r, w->at, "want the name of a tensor");
    memcpy(out, w->text, WORD_BYTES);
    return TIDE_OK;
}

/// The text of a strategy, a pass or an extent.
static tide_status read_text(const reader *r, const word *w, tide_edit *out) {
    if (strlen(w->text) >= sizeof out->text) return fail_at(r, w->at, "the word is longer than 127 bytes");
    memcpy(out->text, w->text, strlen(w->text) + 1);
    if (out->kind == TIDE_EDIT_EXTENT) {
        const char *equals = strrchr(out->text, '=');
        if (equals == NULL || equals == out->text || equals[1] == '\0')
            return fail_at(r, w->at, "want INPUT=DIMS, like x=8x3x224x224");
        return TIDE_OK;
    }
    const tide_strategy *strategy;
    tide_pass pass;
    const tide_status st = out->kind == TIDE_EDIT_STRATEGY
                               ? tide_strategy_find(out->text, &strategy, r->err)
                               : tide_pass_parse(out->text + (out->text[0] == '-'), &pass, r->err);
    if (st != TIDE_OK) tide_error_where(r->err, "'%s', character %zu", r->text, (size_t)(w->at - r->text) + 1);
    return st;
}

static tide_status read_free_earlier(const reader *r, const word *words, size_t n, tide_edit *out) {
    uint64_t step = 0;
    TIDE_TRY(check_count(r, out->kind, n, 1, 2));
    if (n == 2) TIDE_TRY(read_number(r, &words[1], 0, &step));
    out->step = (int64_t)step;
    return read_name(r, &words[0], out->item);
}

static tide_status read_align(const reader *r, const word *words, size_t n, tide_edit *out) {
    TIDE_TRY(check_count(r, out->kind, n, 1, 2));
    if (n == 2) TIDE_TRY(read_name(r, &words[0], out->item));
    return read_bytes(r, &words[n - 1], true, &out->bytes);
}

static tide_status read_arguments(const reader *r, const word *words, size_t n, tide_edit *out) {
    switch (out->kind) {
    case TIDE_EDIT_FREE_EARLIER:
        return read_free_earlier(r, words, n, out);
    case TIDE_EDIT_IN_PLACE:
        TIDE_TRY(check_count(r, out->kind, n, 2, 2));
        TIDE_TRY(read_name(r, &words[0], out->item));
        return read_name(r, &words[1], out->other);
    case TIDE_EDIT_ALIGN:
        return read_align(r, words, n, out);
    case TIDE_EDIT_PIN:
        TIDE_TRY(check_count(r, out->kind, n, 2, 2));
        TIDE_TRY(read_name(r, &words[0], out->item));
        return read_bytes(r, &words[1], false, &out->bytes);
    case TIDE_EDIT_STRATEGY:
    case TIDE_EDIT_PASS:
    case TIDE_EDIT_EXTENT:
        TIDE_TRY(check_count(r, out->kind, n, 1, 1));
        return read_text(r, &words[0], out);
    case TIDE_EDIT_BATCH:
        TIDE_TRY(check_count(r, out->kind, n, 1, 1));
        return read_number(r, &words[0], 1, &out->bytes);
    default:
        TIDE_TRY(check_count(r, out->kind, n, 1, 1));
        return read_name(r, &words[0], out->item);
    }
}

tide_status tide_edit_parse(const char *text, tide_edit *out, tide_error *err) {
    reader r = {.text = text, .at = text, .err = err};
    word verb, words[MAX_WORDS];
    size_t n;
    TIDE_TRY(read_words(&r, &verb, words, &n));
    tide_edit edit = {0};
    TIDE_TRY(find_kind(&r, &verb, &edit.kind));
    TIDE_TRY(read_arguments(&r, words, n, &edit));
    *out = edit;
    return TIDE_OK;
}

// ---- back to text ----

static void add_word(tide_text *out, const char *text) {
    bool plain = text[0] != '\0' && text[0] != '"';
    for (const char *c = text; *c != '\0'; c++) plain = plain && !isspace((unsigned char)*c);
    tide_text_add(out, plain ? " " : " \"");
    for (const char *c = text; *c != '\0'; c++) {
        if (!plain && (*c == '"' || *c == '\\')) tide_text_add(out, "\\");
        tide_text_add_n(out, c, 1);
    }
    if (!plain) tide_text_add(out, "\"");
}

void tide_edit_print(const tide_edit *edit, tide_text *out) {
    tide_text_add(out, tide_edit_name(edit->kind));
    if (edit->item[0] != '\0') add_word(out, edit->item);
    switch (edit->kind) {
    case TIDE_EDIT_FREE_EARLIER:
        if (edit->step > 0) tide_text_addf(out, " %" PRId64, edit->step);
        break;
    case TIDE_EDIT_IN_PLACE:
        add_word(out, edit->other);
        break;
    case TIDE_EDIT_ALIGN:
    case TIDE_EDIT_PIN:
    case TIDE_EDIT_BATCH:
        tide_text_addf(out, " %" PRIu64, edit->bytes);
        break;
    case TIDE_EDIT_STRATEGY:
    case TIDE_EDIT_PASS:
    case TIDE_EDIT_EXTENT:
        add_word(out, edit->text);
        break;
    default:
        break;
    }
}

// ---- edits on a table of lifetimes ----
// Each checks first and changes only what then holds together.

static const char *name_at(const void *ctx, size_t i) { return ((const tide_lifetimes *)ctx)->items[i].name; }

tide_status tide__whatif_find(const tide_lifetimes *lt, const char *name, uint32_t *out, tide_error *err) {
    for (uint32_t i = 0; i < lt->n; i++) {
        if (strcmp(lt->items[i].name, name) != 0) continue;
        *out = i;
        return TIDE_OK;
    }
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no tensor '%s'", name);
    const char *nearest = tide_nearest_word(name, name_at, lt, lt->n);
    if (nearest != NULL) tide_error_hint(err, "did you mean '%s'?", nearest);
    return st;
}

/// The edit makes no sense for the tensor, and why.
#define REFUSE(err, edit, ...) refuse((err), (edit), TIDE_FAIL((err), TIDE_ERR_INVALID, __VA_ARGS__))
static tide_status refuse(tide_error *err, const tide_edit *edit, tide_status st) {
    tide_error_prefix(err, "cannot %s '%s'", tide_edit_name(edit->kind), edit->item);
    return st;
}

/// Whether item `i` is `of` or lies in it.
static bool is_inside(const tide_lifetimes *lt, uint32_t i, uint32_t of) {
    while (i != of && lt->items[i].alias != TIDE_ALIAS_NONE) i = lt->items[i].alias_of;
    return i == of;
}

static tide_status no_persistent(const tide_lifetime *item, const tide_edit *edit, tide_error *err) {
    if (!item->persistent) return TIDE_OK;
    return REFUSE(err, edit, "a graph input, an output or a weight has memory of its own and lives for all steps");
}

static tide_status no_alias(const tide_lifetimes *lt, uint32_t i, const tide_edit *edit, tide_error *err) {
    if (lt->items[i].alias == TIDE_ALIAS_NONE) return TIDE_OK;
    return REFUSE(err, edit, "it lies inside '%s', whose place is its own", lt->items[lt->items[i].alias_of].name);
}

// ---- lifetimes ----

/// Steps at which an item is needed in any way if it ended at `end`.
static int64_t steps_needed(const tide_lifetime *item, int64_t end) {
    int64_t n = end - item->begin_step;
    for (uint32_t g = 0; g < item->n_gaps; g++) {
        const tide_gap *gap = &item->gaps[g];
        if (gap->lo_bytes < gap->hi_bytes || gap->begin_step >= end) continue;
        n -= (gap->end_step < end ? gap->end_step : end) - gap->begin_step;
    }
    return n;
}

static tide_status free_earlier(tide_lifetimes *lt, uint32_t i, const tide_edit *edit, tide_error *err) {
    tide_lifetime *item = &lt->items[i];
    const int64_t step = edit->step != 0 ? edit->step : item->begin_step + 1;
    TIDE_TRY(no_persistent(item, edit, err));
    if (step >= item->end_step)
        return REFUSE(err, edit, "it dies at step %" PRId64 ", which is no later than %" PRId64, item->end_step, step);
    if (step <= item->begin_step)
        return REFUSE(err, edit, "it is made at step %" PRId64 ", which is no earlier than %" PRId64, item->begin_step,
                      step);
    if (steps_needed(item, step) == 0)
        return REFUSE(err, edit, "its gaps leave no step before %" PRId64 " at which it is needed", step);
    item->end_step = step;
    while (item->n_gaps > 0 && item->gaps[item->n_gaps - 1].begin_step >= step) item->n_gaps--;
    if (item->n_gaps > 0 && item->gaps[item->n_gaps - 1].end_step > step) item->gaps[item->n_gaps - 1].end_step = step;
    return TIDE_OK;
}

/// One gap from the step after its birth to its last use: in between the table knows of no use.
static tide_status recompute(tide_lifetimes *lt, uint32_t i, const tide_edit *edit, tide_error *err) {
    tide_lifetime *item = &lt->items[i];
    if (tide__is_recomputed(lt, i)) return TIDE_OK;
    TIDE_TRY(no_persistent(item, edit, err));
    TIDE_TRY(no_alias(lt, i, edit, err));
    if (item->end_step - item->begin_step < 3)
        return REFUSE(err, edit, "it is read for the last time at step %" PRId64 ", right after it was made",
                      item->end_step - 1);
    tide_gap *gap = tide_host_alloc(sizeof *gap);
    if (gap == NULL) return TIDE_NO_MEMORY(err, "for a gap of '%s'", item->name);
    *gap = (tide_gap){.begin_step = item->begin_step + 1, .end_step = item->end_step - 1};
    tide_host_free(item->gaps);
    item->gaps = gap;
    item->n_gaps = 1;
    return TIDE_OK;
}

bool tide__is_recomputed(const tide_lifetimes *lt, uint32_t item) {
    const int64_t step = lt->items[item].begin_step;
    if (lt->items[item].persistent || (uint64_t)step >= lt->n_step_names) return false;
    for (size_t k = 0; k < lt->n_recomputed; k++) {
        if (strcmp(lt->recomputed[k], lt->step_names[step]) == 0) return true;
    }
    return false;
}

// ---- in place ----

/// A third tensor that needs bytes of `other` after they were overwritten: another view of them, or a part of the whole
/// that is made while they are in use. TIDE_NO_INDEX: none.
static uint32_t who_needs_them(const tide_lifetimes *lt, uint32_t i, uint32_t other) {
    const tide_lifetime *item = &lt->items[i];
    int64_t end = item->end_step;
    uint64_t lo;
    const uint32_t root = tide_lifetimes_root(lt, other, &lo);
    const uint64_t hi = lo + item->size_bytes;
    for (uint32_t k = 0; k < lt->n; k++) {
        if (lt->items[k].end_step > end && is_inside(lt, k, i)) end = lt->items[k].end_step;
    }
    for (uint32_t k = 0; k < lt->n; k++) {
        const tide_lifetime *third = &lt->items[k];
        uint64_t at;
        if (k == other || tide_lifetimes_root(lt, k, &at) != root) continue;
        const bool shares = at < hi && lo < at + third->size_bytes;
        if (shares && third->begin_step < end && third->end_step > item->begin_step + 1) return k;
    }
    return TIDE_NO_INDEX;
}

/// What lies in the tensor and is made before it: a part of a Concat, say. TIDE_NO_INDEX: nothing.
static uint32_t who_is_earlier(const tide_lifetimes *lt, uint32_t i) {
    for (uint32_t k = 0; k < lt->n; k++) {
        if (lt->items[k].begin_step < lt->items[i].begin_step && is_inside(lt, k, i)) return k;
    }
    return TIDE_NO_INDEX;
}

static tide_status in_place(tide_lifetimes *lt, uint32_t i, const tide_edit *edit, tide_error *err) {
    uint32_t other;
    TIDE_TRY(tide__whatif_find(lt, edit->other, &other, err));
    const tide_lifetime *a = &lt->items[i], *b = &lt->items[other];
    TIDE_TRY(no_persistent(a, edit, err));
    TIDE_TRY(no_alias(lt, i, edit, err));
    if (i == other) return REFUSE(err, edit, "it cannot overwrite itself");
    if (b->begin_step >= a->begin_step || b->end_step <= a->begin_step)
        return REFUSE(err, edit,
                      "'%s' lives from step %" PRId64 " to %" PRId64 ": it is not there to be read at step "
                      "%" PRId64 ", where the other is made",
                      b->name, b->begin_step, b->end_step, a->begin_step);
    if (b->end_step > a->begin_step + 1)
        return REFUSE(err, edit, "'%s' is read until step %" PRId64 ", and would be overwritten at step %" PRId64,
                      b->name, b->end_step - 1, a->begin_step);
    const uint32_t earlier = who_is_earlier(lt, i), third = who_needs_them(lt, i, other);
    if (earlier != TIDE_NO_INDEX)
        return REFUSE(err, edit, "'%s' lies in it and is made at step %" PRId64 " already", lt->items[earlier].name,
                      lt->items[earlier].begin_step);
    if (third != TIDE_NO_INDEX)
        return REFUSE(err, edit, "'%s' shares bytes with '%s' and is in use until step %" PRId64, lt->items[third].name,
                      b->name, lt->items[third].end_step - 1);
    return tide_lifetimes_alias(lt, i, TIDE_ALIAS_IN_PLACE, other, 0, err);
}

// ---- places ----

static tide_status align_one(tide_lifetime *item, uint64_t align, tide_error *err) {
    uint64_t rounded, end;
    if (!tide_align_up(item->size_bytes, align, &rounded) || rounded > INT64_MAX)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' of %" PRIu64 " bytes, aligned to %" PRIu64 ", passes 2^63 - 1",
                         item->name, item->size_bytes, align);
    if (item->fixed && (item->fixed_offset_bytes % align != 0 ||
                        !tide_add_u64(item->fixed_offset_bytes, rounded, &end) || end > INT64_MAX))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is fixed at %" PRIu64 ", which is no multiple of %" PRIu64,
                         item->name, item->fixed_offset_bytes, align);
    item->align_bytes = align;
    return TIDE_OK;
}

/// Scratch keeps what kernels count on.
static uint64_t align_for(const tide_lifetime *item, uint64_t align) {
    return item->role == TIDE_ROLE_SCRATCH && align < TIDE_WORKSPACE_ALIGN ? TIDE_WORKSPACE_ALIGN : align;
}

static tide_status align_all(tide_lifetimes *lt, const tide_edit *edit, tide_error *err) {
    for (size_t i = 0; i < lt->n; i++) {
        tide_lifetime trial = lt->items[i];
        TIDE_TRY(align_one(&trial, align_for(&trial, edit->bytes), err));
    }
    for (size_t i = 0; i < lt->n; i++) lt->items[i].align_bytes = align_for(&lt->items[i], edit->bytes);
    return TIDE_OK;
}

static tide_status align(tide_lifetimes *lt, const tide_edit *edit, tide_error *err) {
    uint32_t i;
    if (!tide_is_pow2(edit->bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot align to %" PRIu64 " bytes: want a power of two", edit->bytes);
    if (edit->item[0] == '\0') return align_all(lt, edit, err);
    TIDE_TRY(tide__whatif_find(lt, edit->item, &i, err));
    TIDE_TRY(no_alias(lt, i, edit, err));
    return align_one(&lt->items[i], edit->bytes, err);
}

static tide_status pin(tide_lifetimes *lt, uint32_t i, const tide_edit *edit, tide_error *err) {
    tide_lifetime *item = &lt->items[i];
    uint64_t end;
    TIDE_TRY(no_persistent(item, edit, err));
    TIDE_TRY(no_alias(lt, i, edit, err));
    if (edit->bytes % item->align_bytes != 0)
        return REFUSE(err, edit, "offset %" PRIu64 " is no multiple of its alignment, %" PRIu64, edit->bytes,
                      item->align_bytes);
    if (!tide_add_u64(edit->bytes, tide_lifetime_aligned_bytes(item), &end) || end > INT64_MAX)
        return REFUSE(err, edit, "at %" PRIu64 " it ends past 2^63 - 1", edit->bytes);
    item->fixed = true;
    item->fixed_offset_bytes = edit->bytes;
    return TIDE_OK;
}

static tide_status unpin(tide_lifetimes *lt, uint32_t i, const tide_edit *edit, tide_error *err) {
    if (!lt->items[i].fixed) return REFUSE(err, edit, "no offset is given for it");
    lt->items[i].fixed = false;
    lt->items[i].fixed_offset_bytes = 0;
    return TIDE_OK;
}

// ---- sizes ----

/// The tensor and all that lies in it. Half of a whole holds the halves of its parts, as these are rounded down.
static void halve(tide_lifetimes *lt, uint32_t of) {
    for (uint32_t i = 0; i < lt->n; i++) {
        tide_lifetime *item = &lt->items[i];
        const uint64_t up = i == of;
        if (!is_inside(lt, i, of)) continue;
        item->size_bytes = (item->size_bytes + (item->size_bytes & up)) / 2;
        for (size_t k = 0; item->point_bytes != NULL && k < lt->n_points; k++)
            item->point_bytes[k] = (item->point_bytes[k] + (item->point_bytes[k] & up)) / 2;
        if (!up) item->alias_offset_bytes /= 2;
        for (uint32_t g = 0; g < item->n_gaps; g++) {
            item->gaps[g].lo_bytes /= 2;
            item->gaps[g].hi_bytes /= 2;
        }
    }
}

void tide__whatif_inside(const tide_lifetimes *lt, uint32_t of, bool *inside) {
    for (uint32_t i = 0; i < lt->n; i++) inside[i] = is_inside(lt, i, of);
}

/// Take the tensor and all that lies in it out of the table.
static tide_status take_out(tide_lifetimes *lt, uint32_t of, tide_error *err) {
    bool *gone;
    TIDE_TRY(TIDE_NEW(&gone, lt->n, err, "to take '%s' out", lt->items[of].name));
    tide__whatif_inside(lt, of, gone);
    const tide_status st = tide_lifetimes_take_out(lt, gone, err);
    tide_host_free(gone);
    return st;
}

// ---- the whole ----

bool tide__edit_needs_model(tide_edit_kind kind) {
    return kind == TIDE_EDIT_PASS || kind == TIDE_EDIT_EXTENT || kind == TIDE_EDIT_BATCH;
}

tide_status tide__edit_apply(tide_lifetimes *lt, const tide_edit *edit, tide_error *err) {
    uint32_t i;
    if (edit->kind == TIDE_EDIT_STRATEGY || tide__edit_needs_model(edit->kind)) return TIDE_OK;
    if (edit->kind == TIDE_EDIT_ALIGN) return align(lt, edit, err);
    TIDE_TRY(tide__whatif_find(lt, edit->item, &i, err));
    switch (edit->kind) {
    case TIDE_EDIT_FREE_EARLIER:
        return free_earlier(lt, i, edit, err);
    case TIDE_EDIT_IN_PLACE:
        return in_place(lt, i, edit, err);
    case TIDE_EDIT_RECOMPUTE:
        return recompute(lt, i, edit, err);
    case TIDE_EDIT_PIN:
        return pin(lt, i, edit, err);
    case TIDE_EDIT_UNPIN:
        return unpin(lt, i, edit, err);
    case TIDE_EDIT_HALF:
        halve(lt, i);
        return TIDE_OK;
    case TIDE_EDIT_GONE:
        return take_out(lt, i, err);
    default:
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no edit of kind %d", (int)edit->kind);
    }
}
