// SPDX-License-Identifier: MIT
//
// Reading a filter. See rows.h for what it can say.
//
//     text       = { condition }            blanks between
//     condition  = ["!"] ( word | key op value | flag )
//     word       = characters without blanks | '"' characters '"'
//
// What looks like a key with an operator must be one: a name that has such characters in it goes in quotes.
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "analysis/filter_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"

// ---- regular expressions over the names of sites ----
// regexec takes a microsecond where strstr takes twenty nanoseconds, so a text that every match must contain is looked
// for first:
//
//     conv[0-9]+_out      "conv", then regexec where it is found
//     conv1_out           the text is all of it: regexec is not called

/// Characters that stand for themselves and nothing else, in an extended expression.
static bool is_plain(char c) { return isalnum((unsigned char)c) || strchr("_-/:,;=@#%&~<> '\"", c) != NULL; }

/// The longest run of plain characters of which none may be absent; an alternative anywhere, or a group, which may be
/// optional, makes it unsafe to say.
static void find_literal(const char *text, char *out, bool *is_all) {
    size_t best = 0, best_len = 0, run = 0;
    *is_all = true;
    for (size_t i = 0;; i++) {
        const char c = text[i];
        const bool plain = c != '\0' && is_plain(c);
        // what is repeated or optional is not part of the run
        const bool ends = !plain || (text[i + 1] != '\0' && strchr("*?{", text[i + 1]) != NULL);
        if (c != '\0' && !plain) *is_all = false;
        if (!ends) continue;
        if (i - run > best_len) {
            best = run;
            best_len = i - run;
        }
        run = i + 1;
        if (c == '\0') break;
    }
    if (strpbrk(text, "|()\\[{") != NULL) best_len = 0;
    for (size_t i = 0; i < best_len; i++) out[i] = (char)tolower((unsigned char)text[best + i]);
    out[best_len] = '\0';
}

static void pattern_deinit(tide__pattern *p) {
    if (p->has_regex) regfree(&p->regex);
    tide_host_free(p->literal);
    *p = (tide__pattern){0};
}

/// TIDE_ERR_INVALID with what regcomp says.
static tide_status pattern_make(const char *text, tide__pattern *out, tide_error *err) {
    *out = (tide__pattern){0};
    out->literal = tide_host_alloc(strlen(text) + 1);
    if (out->literal == NULL) return TIDE_NO_MEMORY(err, "for an expression");
    find_literal(text, out->literal, &out->is_plain);
    const int rc = regcomp(&out->regex, text, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (rc == 0) {
        out->has_regex = true;
        return TIDE_OK;
    }
    char words[128];
    regerror(rc, &out->regex, words, sizeof words);
    pattern_deinit(out);
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot read the expression '%s': %s", text, words);
}

bool tide__pattern_matches(const tide__pattern *p, const tide_item_site *site, const char *folded, bool name,
                           bool owner) {
    if (p->literal[0] != '\0') {
        const char *at = strstr(folded, p->literal);
        if (at == NULL) return false;
        if (p->is_plain && name && owner) return true;
    }
    return (name && regexec(&p->regex, site->name, 0, NULL, 0) == 0) ||
           (owner && regexec(&p->regex, site->owner, 0, NULL, 0) == 0);
}

// ---- searching ----

/// Names of items that were made by hand have no texts in lower case yet.
static tide_status folded_names(const tide_items *items, tide__site_names *own, const tide__site_names **out) {
    *out = tide__items_names(items);
    if (*out != NULL) return TIDE_OK;
    TIDE_TRY(tide__site_names_make(items, own));
    *out = own;
    return TIDE_OK;
}

tide_status tide_items_search(const tide_items *items, const char *regex, uint8_t **bits, size_t *n_items,
                              tide_error *err) {
    tide__pattern p;
    TIDE_TRY(pattern_make(regex, &p, err));
    tide__site_names own = {0};
    const tide__site_names *names;
    tide_status st = folded_names(items, &own, &names);
    uint8_t *found = tide_host_calloc(items->n_sites / 8 + 1, 1);
    if (found == NULL) st = TIDE_ERR_NOMEM;
    for (size_t i = 0; st == TIDE_OK && i < items->n_sites; i++) {
        if (tide__pattern_matches(&p, &items->sites[i], names->folded + names->folded_at[i], true, true))
            found[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    tide__site_names_deinit(&own);
    pattern_deinit(&p);
    if (st != TIDE_OK) {
        tide_host_free(found);
        return TIDE_FAIL(err, st, "no memory for a search");
    }
    const tide__items_inside *in = items->inside;
    *n_items = 0;
    for (size_t i = 0; in != NULL && i < items->n_sites; i++) *n_items += tide__bit(found, i) ? in->site_items[i] : 0;
    for (size_t i = 0; in == NULL && i < items->n; i++) *n_items += tide__bit(found, tide_items_site_of(items, i));
    *bits = found;
    return TIDE_OK;
}

static const char *const words[TIDE__N_FILTERS] = {
#define XX(name, text) text,
    TIDE__FILTER_MAP(XX)
#undef XX
};
static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">=", "~", "@"};

/// Short names of fills: those for people have commas in them.
static const char *const fills[TIDE_N_ITEM_FILLS] = {"intermediate", "scratch", "inout", "weight", "kvcache", "host"};
static const char *const moments[] = {"peak", "cursor"};

typedef struct parser {
    const char *text, *at; // `at`: what comes next
    tide_axis axis;
    tide_filter *f;
    tide_error *err;
} parser;

/// "cannot read the filter '…': <what>", with the place of `at`.
static tide_status refuse(const parser *p, const char *at, const char *what) {
    const tide_status st = TIDE_FAIL(p->err, TIDE_ERR_INVALID, "cannot read the filter '%s': %s", p->text, what);
    tide_error_where(p->err, "character %zu", (size_t)(at - p->text) + 1);
    return st;
}

/// An unknown word, with all that there are and the nearest one.
static tide_status unknown(const parser *p, const char *at, const char *what, const char *got, const char *const *known,
                           size_t n) {
    tide_text all = {0}, why = {0};
    for (size_t i = 0; i < n; i++) tide_text_addf(&all, "%s%s", i > 0 ? ", " : "", known[i]);
    tide_text_addf(&why, "there is no %s '%s'", what, got);
    const tide_status st = refuse(p, at, tide_text_str(&why));
    tide_error_note(p->err, "there are %s", tide_text_str(&all));
    const char *nearest = tide_nearest_of(got, known, n);
    if (nearest != NULL) tide_error_hint(p->err, "did you mean '%s'?", nearest);
    tide_text_deinit(&all);
    tide_text_deinit(&why);
    return st;
}

// ---- words of the text ----

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/// A value up to the next blank, or in quotes; owned, NULL on failure. `at` moves behind it.
static tide_status take_value(parser *p, char **out) {
    const char *begin = p->at;
    const bool quoted = *begin == '"';
    const char *end = quoted ? strchr(begin + 1, '"') : begin;
    if (quoted && end == NULL) return refuse(p, begin, "this quotation mark has no partner");
    while (!quoted && *end != '\0' && !is_blank(*end) && *end != '"') end++;
    if (!quoted && *end == '"') return refuse(p, end, "a quotation mark goes at the begin and the end of a value");
    *out = tide_host_strndup(begin + quoted, (size_t)(end - begin) - quoted);
    p->at = end + quoted;
    if (*out != NULL && quoted && *p->at != '\0' && !is_blank(*p->at)) {
        tide_host_free(*out);
        return refuse(p, p->at, "a blank is expected behind a quotation mark");
    }
    return *out != NULL ? TIDE_OK : TIDE_NO_MEMORY(p->err, "for a filter");
}

static void fold(char *text) {
    for (; *text != '\0'; text++)
        if (*text >= 'A' && *text <= 'Z') *text = (char)(*text - 'A' + 'a');
}

/// The operator behind the letters at `at`, which are a key then; its characters, 0: what begins there is a word.
static size_t find_op(const char *at, size_t *key_len, tide__filter_op *op) {
    size_t best = 0;
    *key_len = 0;
    while (isalpha((unsigned char)at[*key_len])) ++*key_len;
    for (int i = 0; *key_len > 0 && i <= TIDE__OP_AT; i++) {
        const size_t len = strlen(ops[i]);
        if (len <= best || strncmp(at + *key_len, ops[i], len) != 0) continue;
        best = len;
        *op = (tide__filter_op)i;
    }
    if (best == 0 || *op != TIDE__OP_AT) return best;
    // "@" is found in names; only behind what looks like "alive" it is an operator
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)(*key_len < 63 ? *key_len : 63), at);
    return tide_nearest_of(key, &words[TIDE__FILTER_ALIVE], 1) != NULL ? best : 0;
}

/// Whether a word would be taken for something else without its quotation marks.
static bool needs_quotes(const char *word) {
    size_t key_len;
    tide__filter_op op = TIDE__OP_EQ;
    bool needs =
        word[0] == '\0' || word[0] == '!' || strpbrk(word, " \t\n") != NULL || find_op(word, &key_len, &op) > 0;
    for (int i = TIDE__FILTER_LEAKED; i < TIDE__N_FILTERS; i++) needs = needs || strcasecmp(word, words[i]) == 0;
    return needs;
}

static void print_condition(tide_text *t, const tide__condition *c, const char *value) {
    const bool is_word = c->of == TIDE__FILTER_WORD;
    const bool quotes = is_word ? needs_quotes(value) : value[0] == '\0' || strpbrk(value, " \t\n") != NULL;
    tide_text_addf(t, "%s%s%s%s", t->len > 0 ? " " : "", c->negate ? "!" : "", words[c->of],
                   is_word || c->of > TIDE__FILTER_TOP ? "" : ops[c->op]);
    if (c->of <= TIDE__FILTER_TOP) tide_text_addf(t, quotes ? "\"%s\"" : "%s", value);
}

// ---- values ----

typedef const char *(*name_fn)(int i);
static const char *kind_name(int i) { return tide_memory_kind_name((tide_memory_kind)i); }
static const char *role_name(int i) { return tide_role_name((tide_role)i); }
static const char *fill_name(int i) { return fills[i]; }

/// "a,b" as bits.
static tide_status take_set(const parser *p, const char *at, char *value, const char *what, name_fn name_of, int n,
                            uint64_t *set) {
    const char *known[64];
    for (int i = 0; i < n; i++) known[i] = name_of(i);
    for (char *word = value; word != NULL;) {
        char *comma = strchr(word, ',');
        if (comma != NULL) *comma = '\0';
        int i = 0;
        while (i < n && strcasecmp(word, known[i]) != 0) i++;
        if (i == n) return unknown(p, at + (word - value), what, word, known, (size_t)n);
        *set |= UINT64_C(1) << i;
        if (comma != NULL) *comma = ',';
        word = comma != NULL ? comma + 1 : NULL;
    }
    return TIDE_OK;
}

/// "a,b" as names, each with its end, an empty one last.
static tide_status take_names(const parser *p, const char *value, char **out) {
    const size_t len = strlen(value);
    *out = tide_host_calloc(len + 2, 1);
    if (*out == NULL) return TIDE_NO_MEMORY(p->err, "for a filter");
    for (size_t i = 0; i < len; i++) (*out)[i] = value[i] == ',' ? '\0' : value[i];
    return TIDE_OK;
}

/// Digits with or without a fraction, in every locale; *rest: what follows.
static bool take_decimal(const char *text, long double *out, const char **rest) {
    long double value = 0, unit = 1;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++) value = value * 10 + (*at - '0');
    bool any = at > text;
    if (*at == '.') {
        for (at++; isdigit((unsigned char)*at); at++, any = true) value += (unit /= 10) * (*at - '0');
    }
    *out = value;
    *rest = at;
    return any;
}

/// A length of time on the axis, or a moment behind its begin.
static tide_status take_time(const parser *p, const char *at, const char *value, uint64_t *out) {
    static const struct {
        const char *name;
        long double ns;
    } units[] = {{"ns", 1}, {"us", 1e3L}, {"\xc2\xb5s", 1e3L}, {"\xce\xbcs", 1e3L}, {"ms", 1e6L}, {"s", 1e9L}};
    long double number;
    const char *unit;
    const bool is_number = take_decimal(value, &number, &unit);
    if (p->axis == TIDE_AXIS_STEPS) {
        if (!is_number || *unit != '\0' || number > 9e18L) return refuse(p, at, "a number of steps is expected here");
        *out = (uint64_t)number;
        return TIDE_OK;
    }
    for (size_t i = 0; is_number && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].name) != 0 || number * units[i].ns > 9e18L) continue;
        *out = (uint64_t)(number * units[i].ns + 0.5L);
        return TIDE_OK;
    }
    *out = 0;
    if (is_number && *unit == '\0' && number == 0) return TIDE_OK;
    return refuse(p, at, "a time with its unit is expected here: 250ns, 10us, 1.5ms or 2s");
}

static tide_status take_count(const parser *p, const char *at, const char *value, int least, uint64_t *out) {
    long double number;
    const char *rest;
    if (!take_decimal(value, &number, &rest) || *rest != '\0' || number < least || number > 4e9L ||
        strchr(value, '.') != NULL)
        return refuse(p, at, least > 0 ? "a number from 1 on is expected here" : "a number from 0 on is expected here");
    *out = (uint64_t)number;
    return TIDE_OK;
}

static tide_status take_moment(const parser *p, const char *at, const char *value, tide__condition *c) {
    c->moment = TIDE__AT_TIME;
    if (strcasecmp(value, moments[0]) == 0) c->moment = TIDE__AT_PEAK;
    if (strcasecmp(value, moments[1]) == 0) c->moment = TIDE__AT_CURSOR;
    if (c->moment != TIDE__AT_TIME) return TIDE_OK;
    if (isalpha((unsigned char)value[0])) return unknown(p, at, "moment", value, moments, 2);
    return take_time(p, at, value, &c->value);
}

static tide_status read_value(const parser *p, const char *at, char *value, tide__condition *c) {
    switch (c->of) {
    case TIDE__FILTER_NAME:
    case TIDE__FILTER_OWNER: {
        const tide_status st = pattern_make(value, &c->pattern, p->err);
        if (st == TIDE_ERR_INVALID) tide_error_where(p->err, "character %zu", (size_t)(at - p->text) + 1);
        return st;
    }
    case TIDE__FILTER_KIND:
        return take_set(p, at, value, "kind", kind_name, TIDE_N_KINDS, &c->set);
    case TIDE__FILTER_ROLE:
        return take_set(p, at, value, "role", role_name, TIDE_ROLE_WEIGHT + 1, &c->set);
    case TIDE__FILTER_FILL:
        return take_set(p, at, value, "fill", fill_name, TIDE_N_ITEM_FILLS, &c->set);
    case TIDE__FILTER_DEVICE:
    case TIDE__FILTER_ALLOCATOR:
        return take_names(p, value, &c->text);
    case TIDE__FILTER_SIZE:
        return tide_parse_bytes(value, &c->value, NULL) == TIDE_OK
                   ? TIDE_OK
                   : refuse(p, at, "a size is expected here: 4096, 64KiB, 1.5GiB");
    case TIDE__FILTER_LIFE:
    case TIDE__FILTER_BEGIN:
    case TIDE__FILTER_END:
        return take_time(p, at, value, &c->value);
    case TIDE__FILTER_ALIVE:
        return take_moment(p, at, value, c);
    case TIDE__FILTER_EXEC:
        return take_count(p, at, value, 0, &c->value);
    default:
        return take_count(p, at, value, 1, &c->value);
    }
}

// ---- conditions ----

/// Which operators a key takes, as letters of `ops`: "=" and "!=", comparisons, "~", "@".
static bool takes(tide__filter_of of, tide__filter_op op) {
    switch (of) {
    case TIDE__FILTER_NAME:
    case TIDE__FILTER_OWNER:
        return op == TIDE__OP_LIKE;
    case TIDE__FILTER_ALIVE:
        return op == TIDE__OP_AT;
    case TIDE__FILTER_TOP:
    case TIDE__FILTER_EXEC:
        return op == TIDE__OP_EQ;
    case TIDE__FILTER_SIZE:
    case TIDE__FILTER_LIFE:
    case TIDE__FILTER_BEGIN:
    case TIDE__FILTER_END:
        return op <= TIDE__OP_GE;
    default:
        return op <= TIDE__OP_NE;
    }
}

static tide_status wrong_operator(const parser *p, const char *at, tide__filter_of of) {
    tide_text why = {0};
    tide_text_addf(&why, "behind '%s' goes", words[of]);
    for (int i = 0, n = 0; i <= TIDE__OP_AT; i++)
        if (takes(of, (tide__filter_op)i)) tide_text_addf(&why, "%s %s", n++ > 0 ? " or" : "", ops[i]);
    const tide_status st = refuse(p, at, tide_text_str(&why));
    tide_text_deinit(&why);
    return st;
}

static tide_status finish_condition(parser *p, tide__condition *c, const char *value) {
    tide_filter *f = p->f;
    TIDE_TRY(TIDE_GROW(&f->conditions, &f->cap, f->n + 1, p->err, "for a filter"));
    f->conditions[f->n++] = *c;
    *c = (tide__condition){0};
    print_condition(&f->text, &f->conditions[f->n - 1], value);
    return f->text.failed ? TIDE_NO_MEMORY(p->err, "for a filter") : TIDE_OK;
}

static void condition_deinit(tide__condition *c) {
    tide_host_free(c->text);
    pattern_deinit(&c->pattern);
}

static tide_status take_keyed(parser *p, const char *key_at, size_t key_len, tide__condition *c, size_t op_len) {
    char key[64], *value;
    snprintf(key, sizeof key, "%.*s", (int)(key_len < 63 ? key_len : 63), key_at);
    c->of = TIDE__FILTER_NAME;
    while (c->of <= TIDE__FILTER_TOP && strcasecmp(key, words[c->of]) != 0) c->of++;
    if (c->of > TIDE__FILTER_TOP) {
        const tide_status st = unknown(p, key_at, "condition", key, words + 1, TIDE__FILTER_TOP);
        if (tide_nearest_of(key, words + 1, TIDE__FILTER_TOP) == NULL)
            tide_error_hint(p->err, "to look for a name with such a sign, put it in quotes");
        return st;
    }
    if (!takes(c->of, c->op)) return wrong_operator(p, key_at + key_len, c->of);
    if (c->of == TIDE__FILTER_TOP && c->negate) return refuse(p, key_at, "top cannot be turned round");
    p->at = key_at + key_len + op_len;
    const char *value_at = p->at;
    if (*value_at == '\0' || is_blank(*value_at)) return refuse(p, value_at, "a value is missing here");
    TIDE_TRY(take_value(p, &value));
    tide_status st = read_value(p, value_at, value, c);
    if (st == TIDE_OK) st = finish_condition(p, c, value);
    tide_host_free(value);
    return st;
}

static tide_status take_word(parser *p, tide__condition *c) {
    const bool quoted = *p->at == '"';
    const char *at = p->at;
    char *value;
    TIDE_TRY(take_value(p, &value));
    c->of = TIDE__FILTER_WORD;
    for (int i = TIDE__FILTER_LEAKED; !quoted && i < TIDE__N_FILTERS; i++)
        if (strcasecmp(value, words[i]) == 0) c->of = (tide__filter_of)i;
    tide_status st = value[0] != '\0' ? TIDE_OK : refuse(p, at, "a word is expected here");
    if (st == TIDE_OK && c->of == TIDE__FILTER_WORD) {
        c->text = tide_host_strdup(value);
        if (c->text == NULL) st = TIDE_NO_MEMORY(p->err, "for a filter");
        if (st == TIDE_OK) fold(c->text);
    }
    if (st == TIDE_OK) st = finish_condition(p, c, value);
    tide_host_free(value);
    return st;
}

static tide_status take_condition(parser *p) {
    tide__condition c = {0};
    if (*p->at == '!') {
        c.negate = true;
        p->at++;
    }
    size_t key_len;
    const size_t op_len = find_op(p->at, &key_len, &c.op);
    const tide_status st = op_len > 0 ? take_keyed(p, p->at, key_len, &c, op_len) : take_word(p, &c);
    condition_deinit(&c);
    return st;
}

tide_status tide_filter_parse(const char *text, tide_axis axis, tide_filter **out, tide_error *err) {
    tide_filter *f;
    TIDE_TRY(TIDE_NEW(&f, 1, err, "for a filter"));
    parser p = {.text = text, .at = text, .axis = axis, .f = f, .err = err};
    tide_status st = TIDE_OK;
    for (;;) {
        while (is_blank(*p.at)) p.at++;
        if (*p.at == '\0' || st != TIDE_OK) break;
        st = take_condition(&p);
    }
    if (st != TIDE_OK) {
        tide_filter_destroy(f);
        return st;
    }
    *out = f;
    return TIDE_OK;
}

void tide_filter_destroy(tide_filter *f) {
    if (f == NULL) return;
    for (size_t i = 0; i < f->n; i++) condition_deinit(&f->conditions[i]);
    tide_host_free(f->conditions);
    tide_text_deinit(&f->text);
    tide_host_free(f);
}

const char *tide_filter_text(const tide_filter *f) { return tide_text_str(&f->text); }

bool tide_filter_follows_cursor(const tide_filter *f) {
    for (size_t i = 0; i < f->n; i++)
        if (f->conditions[i].of == TIDE__FILTER_ALIVE && f->conditions[i].moment == TIDE__AT_CURSOR) return true;
    return false;
}
