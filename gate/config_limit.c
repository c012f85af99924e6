// SPDX-License-Identifier: MIT
//
// Limits and budgets as people write them: "64KiB and 2 %". See config_internal.h.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "gate/config_internal.h"

enum {
    MAX_DIGITS = 15,       // of a decimal: a double holds them exactly
    MILLIONTHS_OF = 10000, // a percentage point in millionths of the whole
    MAX_PERCENT = 1000 * 1000,
};

bool tide__gate_parse_decimal(const char *text, size_t len, double *out) {
    uint64_t digits = 0;
    double scale = 1;
    size_t n = 0;
    bool has_point = false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.' && !has_point && n > 0 && i + 1 < len) {
            has_point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || ++n > MAX_DIGITS) return false;
        digits = digits * 10 + (uint64_t)(text[i] - '0');
        if (has_point) scale *= 10;
    }
    if (n == 0) return false;
    *out = (double)digits / scale;
    return true;
}

// ---- a text in parts ----

typedef struct part {
    const char *text;
    size_t len;
} part;

static part trimmed(const char *text, size_t len) {
    while (len > 0 && *text == ' ') text++, len--;
    while (len > 0 && text[len - 1] == ' ') len--;
    return (part){text, len};
}

/// The part in front of the last `suffix`, if it ends in it.
static bool without(part p, const char *suffix, part *out) {
    const size_t n = strlen(suffix);
    if (p.len < n || memcmp(p.text + p.len - n, suffix, n) != 0) return false;
    *out = trimmed(p.text, p.len - n);
    return true;
}

/// "A and B": both; else the whole. @return how many
static size_t split(const char *text, part out[2]) {
    static const char word[] = " and ";
    const char *at = strstr(text, word);
    out[0] = trimmed(text, at != NULL ? (size_t)(at - text) : strlen(text));
    if (at == NULL) return 1;
    const char *rest = at + sizeof word - 1;
    out[1] = trimmed(rest, strlen(rest));
    return 2;
}

// ---- amounts ----

static const char *unit_example(tide_gate_unit unit) {
    switch (unit) {
    case TIDE_GATE_BYTES:
        return "\"64KiB\", \"2 %\", \"64KiB and 2 %\", or \"0\" for any change";
    case TIDE_GATE_COUNT:
        return "\"3\", \"2 %\", \"3 and 2 %\", or \"0\" for any change";
    default:
        return "\"2 points\" (of a percentage), \"5 %\" (of the baseline), or \"0\" for any change";
    }
}

static bool parse_count(part p, uint64_t *out) {
    uint64_t n = 0;
    for (size_t i = 0; i < p.len; i++) {
        if (p.text[i] < '0' || p.text[i] > '9') return false;
        if (!tide_mul_u64(n, 10, &n) || !tide_add_u64(n, (uint64_t)(p.text[i] - '0'), &n)) return false;
    }
    *out = n;
    return p.len > 0;
}

static bool parse_bytes(part p, uint64_t *out) {
    char text[64];
    if (p.len == 0 || p.len >= sizeof text) return false;
    memcpy(text, p.text, p.len);
    text[p.len] = '\0';
    return tide_parse_bytes(text, out, NULL) == TIDE_OK;
}

/// "2 points" in millionths; "0" alone needs no unit.
static bool parse_points(part p, uint64_t *out) {
    part number;
    double points;
    if (p.len == 1 && p.text[0] == '0') {
        *out = 0;
        return true;
    }
    if (!without(p, "points", &number) && !without(p, "point", &number)) return false;
    if (!tide__gate_parse_decimal(number.text, number.len, &points) || points > MAX_PERCENT) return false;
    *out = (uint64_t)llround(points * MILLIONTHS_OF);
    return true;
}

static bool parse_amount(tide_gate_unit unit, part p, uint64_t *out) {
    switch (unit) {
    case TIDE_GATE_BYTES:
        return parse_bytes(p, out);
    case TIDE_GATE_SHARE:
        return parse_points(p, out);
    default:
        return parse_count(p, out);
    }
}

/// What is wrong with an amount: most often that it is one of another unit.
static tide_status bad_amount(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                              const char *text, const char *example) {
    const part whole = trimmed(text, strlen(text));
    uint64_t ignored;
    const char *is = NULL;
    if (def->unit != TIDE_GATE_BYTES && parse_bytes(whole, &ignored) && !parse_count(whole, &ignored)) is = "a size";
    if (def->unit != TIDE_GATE_SHARE && parse_points(whole, &ignored)) is = "an amount of a share";
    static const char *const units[] = {"bytes", "a count", "a share", "a time"};
    tide_status st;
    if (is != NULL)
        st = tide__gate_bad(r, n, "'%.64s' is %s, and %s is %s", text, is, def->id, units[def->unit]);
    else
        st = tide__gate_bad(r, n, "key '%.32s': '%.64s' is no limit of %s", n->key != NULL ? n->key : "?", text,
                            def->id);
    tide_error_hint(r->err, "write %s", example);
    return st;
}

// ---- limits ----

/// One part of a limit; false: it is none.
static bool take_part(tide_gate_unit unit, part p, tide_gate_limit *out) {
    part number;
    if (without(p, "%", &number)) {
        if (out->has_percent || !tide__gate_parse_decimal(number.text, number.len, &out->percent)) return false;
        out->has_percent = true;
        return out->percent <= MAX_PERCENT;
    }
    if (out->has_amount || !parse_amount(unit, p, &out->amount)) return false;
    out->has_amount = true;
    return true;
}

tide_status tide__gate_limit(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                             tide_gate_limit *out) {
    tide_gate_limit limit = {.given = true};
    if (n->type == TIDE_GATE_NODE_INTEGER) {
        TIDE_TRY(tide__gate_count(r, n, 0, INT64_MAX, &limit.amount));
        limit.has_amount = true;
        if (def->unit == TIDE_GATE_SHARE && limit.amount > 0) {
            const tide_status st = tide__gate_bad(r, n, "%s is a share: an amount of it needs its unit", def->id);
            tide_error_hint(r->err, "write %s", unit_example(def->unit));
            return st;
        }
    } else {
        const char *text;
        part parts[2];
        TIDE_TRY(tide__gate_text(r, n, &text));
        const size_t n_parts = split(text, parts);
        bool is_good = true;
        for (size_t i = 0; i < n_parts; i++) is_good = is_good && take_part(def->unit, parts[i], &limit);
        if (!is_good) return bad_amount(r, n, def, text, unit_example(def->unit));
    }
    if (limit.has_amount && limit.amount == 0) limit.has_amount = false; // passed by any change, as no amount is
    if (limit.has_percent && limit.percent == 0) limit.has_percent = false;
    *out = limit;
    return TIDE_OK;
}

static tide_status share_budget(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                                tide_gate_value *out) {
    const char *text;
    part number;
    double percent;
    TIDE_TRY(tide__gate_text(r, n, &text));
    if (!without(trimmed(text, strlen(text)), "%", &number) ||
        !tide__gate_parse_decimal(number.text, number.len, &percent) || percent > MAX_PERCENT)
        return bad_amount(r, n, def, text, "a percentage: \"30 %\"");
    if (def->better == TIDE_GATE_MORE && percent > 100)
        return tide__gate_bad(r, n, "key '%s': %s is never above 100 %%", n->key, def->id);
    *out = (tide_gate_value){.known = true, .real = percent / 100};
    return TIDE_OK;
}

tide_status tide__gate_budget(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                              tide_gate_value *out) {
    if (def->unit == TIDE_GATE_SHARE) return share_budget(r, n, def, out);
    *out = (tide_gate_value){.known = true};
    if (n->type == TIDE_GATE_NODE_INTEGER) return tide__gate_count(r, n, 0, INT64_MAX, &out->u);
    const char *text;
    TIDE_TRY(tide__gate_text(r, n, &text));
    if (strchr(text, '%') != NULL) {
        const tide_status st =
            tide__gate_bad(r, n, "key '%s': a budget of %s is an amount, not a share of a baseline", n->key, def->id);
        tide_error_hint(r->err, "a share of the baseline is what `fail` takes: fail = \"%.64s\"", text);
        return st;
    }
    if (parse_amount(def->unit, trimmed(text, strlen(text)), &out->u)) return TIDE_OK;
    return bad_amount(r, n, def, text, def->unit == TIDE_GATE_BYTES ? "\"64MiB\" or 65536" : "a number: 3");
}
