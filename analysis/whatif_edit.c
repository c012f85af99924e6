// SPDX-License-Identifier: MIT
//
// whatif, edits as text: "in-place relu1_out conv1_out". A name with blanks stands in quotes, in which a backslash
// takes the next character as it is. See whatif.h.
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/whatif_internal.h"
#include "core/base/checked.h"
#include "core/base/nearest.h"
#include "planner/passes.h"

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
