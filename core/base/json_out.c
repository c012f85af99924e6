// SPDX-License-Identifier: MIT
//
// See json_out.h. Escapes are those of RFC 8259, section 7.
#include "core/base/json_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/utf8.h"

static uint64_t bit_of(const tide_json_out *j) { return UINT64_C(1) << j->depth; }

/// Values of an object have a key, those of a list none; a document is one value.
static bool may_have(const tide_json_out *j, const char *key) {
    if (j->depth == 0) return key == NULL && !j->has_value;
    return ((j->objects & bit_of(j)) != 0) == (key != NULL);
}

static bool is_flat(const tide_json_out *j) { return !j->indent || (j->flat & bit_of(j)) != 0; }

static void new_line(tide_json_out *j) {
    tide_text_add(j->out, "\n");
    for (int i = 0; i < j->level; i++) tide_text_add(j->out, "  ");
}

static void add_string(tide_json_out *j, const char *text) {
    tide_text_add(j->out, "\"");
    tide_utf8_add_json(j->out, text);
    tide_text_add(j->out, "\"");
}

static void begin_value(tide_json_out *j, const char *key) {
    TIDE_ASSERT(may_have(j, key));
    if (j->has_value) tide_text_add(j->out, is_flat(j) && j->indent ? ", " : ",");
    if (!is_flat(j) && j->depth > 0) new_line(j);
    j->has_value = true;
    if (key == NULL) return;
    add_string(j, key);
    tide_text_add(j->out, j->indent ? ": " : ":");
}

static void open_bracket(tide_json_out *j, const char *key, char bracket, bool flat) {
    begin_value(j, key);
    tide_text_add_n(j->out, &bracket, 1);
    j->depth++;
    TIDE_ASSERT(j->depth <= TIDE_JSON_MAX_DEPTH);
    j->flat = flat ? j->flat | bit_of(j) : j->flat & ~bit_of(j);
    j->objects = bracket == '{' ? j->objects | bit_of(j) : j->objects & ~bit_of(j);
    j->level += !flat;
    j->has_value = false;
}

void tide_json_open(tide_json_out *j, const char *key, char bracket) { open_bracket(j, key, bracket, is_flat(j)); }

void tide_json_open_flat(tide_json_out *j, const char *key, char bracket) { open_bracket(j, key, bracket, true); }

void tide_json_open_lines(tide_json_out *j, const char *key, char bracket) { open_bracket(j, key, bracket, false); }

void tide_json_close(tide_json_out *j, char bracket) {
    const bool flat = is_flat(j);
    TIDE_ASSERT(j->depth > 0 && bracket == ((j->objects & bit_of(j)) != 0 ? '}' : ']'));
    TIDE_ASSERT(flat || j->level > 0 || !j->indent);
    if (!flat) j->level--;
    j->depth--;
    if (!flat && j->has_value) new_line(j);
    tide_text_add_n(j->out, &bracket, 1);
    j->has_value = true;
}

void tide_json_null(tide_json_out *j, const char *key) {
    begin_value(j, key);
    tide_text_add(j->out, "null");
}

void tide_json_text(tide_json_out *j, const char *key, const char *text) {
    if (text == NULL) {
        tide_json_null(j, key);
        return;
    }
    begin_value(j, key);
    add_string(j, text);
}

void tide_json_text_or_null(tide_json_out *j, const char *key, const char *text) {
    tide_json_text(j, key, text != NULL && text[0] != '\0' ? text : NULL);
}

void tide_json_u64(tide_json_out *j, const char *key, uint64_t value) {
    char digits[24];
    begin_value(j, key);
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, value);
    tide_text_add_n(j->out, digits, (size_t)n);
}

void tide_json_sum(tide_json_out *j, const char *key, uint64_t bytes) {
    tide_json_u64(j, key, bytes < INT64_MAX ? bytes : INT64_MAX);
}

void tide_json_u64_if(tide_json_out *j, const char *key, bool known, uint64_t value) {
    if (known)
        tide_json_u64(j, key, value);
    else
        tide_json_null(j, key);
}

void tide_json_bytes(tide_json_out *j, const char *key, uint64_t bytes) {
    tide_json_u64_if(j, key, bytes != UINT64_MAX, bytes);
}

void tide_json_i64(tide_json_out *j, const char *key, int64_t value) {
    char digits[24];
    begin_value(j, key);
    const int n = snprintf(digits, sizeof digits, "%" PRId64, value);
    tide_text_add_n(j->out, digits, (size_t)n);
}

/// The locale's decimal point, which may be a comma or several bytes, becomes JSON's.
static void use_point(char *number) {
    char *at = number + strspn(number, "+-0123456789");
    if (*at == '\0' || *at == 'e') return;
    const char *behind = at + strcspn(at, "0123456789");
    *at = '.';
    memmove(at + 1, behind, strlen(behind) + 1);
}

void tide_json_real(tide_json_out *j, const char *key, double value) {
    char number[352]; // the largest double has 309 digits before its point
    if (!isfinite(value)) {
        tide_json_null(j, key);
        return;
    }
    snprintf(number, sizeof number, "%.6f", value);
    use_point(number);
    begin_value(j, key);
    tide_text_add(j->out, number);
}

void tide_json_bool(tide_json_out *j, const char *key, bool value) {
    begin_value(j, key);
    tide_text_add(j->out, value ? "true" : "false");
}

/// The exponent as short as it can be: "1e+05" becomes "1e5".
static void shorten_exponent(char *number) {
    char *to = strchr(number, 'e');
    if (to == NULL) return;
    const char *from = ++to;
    if (*from == '-') to++;
    from++; // behind the sign, which "%g" always writes
    while (*from == '0') from++;
    memmove(to, from, strlen(from) + 1);
}

void tide_json_number(tide_json_out *j, const char *key, double value, int digits) {
    char number[32];
    TIDE_ASSERT(digits >= 1 && digits <= 17);
    if (!isfinite(value)) {
        tide_json_null(j, key);
        return;
    }
    snprintf(number, sizeof number, "%.*g", digits, value);
    use_point(number);
    shorten_exponent(number);
    begin_value(j, key);
    tide_text_add(j->out, number);
    if (strpbrk(number, ".e") == NULL) tide_text_add(j->out, ".0");
}

void tide_json_raw(tide_json_out *j, const char *key, const char *json) {
    begin_value(j, key);
    tide_text_add(j->out, json);
}
