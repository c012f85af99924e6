// SPDX-License-Identifier: MIT
//
// One figure compared with its rule. Differences are exact integers (of shares in millionths); only percentages are
// real numbers. See judge.h.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/judge.h"
#include "gate/measured_internal.h"

tide_gate_verdict tide__judge_worse(tide_gate_verdict a, tide_gate_verdict b) {
    static const int rank[] = {[TIDE_GATE_PASS_VERDICT] = 0,
                               [TIDE_GATE_WARN_VERDICT] = 1,
                               [TIDE_GATE_NOT_COMPARABLE_VERDICT] = 2,
                               [TIDE_GATE_FAIL_VERDICT] = 3};
    return rank[a] >= rank[b] ? a : b;
}

bool tide__judge_differs(tide_gate_metric m, tide_gate_value a, tide_gate_value b) {
    const tide_gate_unit unit = tide_gate_metric_get(m)->unit;
    return unit != TIDE_GATE_NS && a.known && b.known && !tide__case_same_value(unit, a, b);
}

// ---- limits ----

/// A value as it is compared, shares in millionths. Values have 64 bits, so their differences need one more.
typedef __int128 wide;
static wide number(tide_gate_unit unit, tide_gate_value v) {
    return unit == TIDE_GATE_SHARE ? (wide)tide__case_millionths(v.real) : (wide)v.u;
}

/// By how much `b` is worse than `a`; negative: better.
static wide worse_by(const tide_gate_metric_def *def, tide_gate_value a, tide_gate_value b) {
    const wide d = number(def->unit, b) - number(def->unit, a);
    return def->better == TIDE_GATE_LESS ? d : -d;
}

/// Whether a change by `d` exceeds the limit. A limit with an amount and a percentage is exceeded when both are:
/// this ignores large percentages of small figures and small amounts of large ones.
static bool exceeds(const tide_gate_limit *limit, wide d, wide baseline) {
    if (!limit->given || d <= 0) return false;
    if (limit->has_amount && d <= (wide)limit->amount) return false;
    if (baseline < 0) baseline = -baseline;
    return !limit->has_percent || (long double)d * 100 > (long double)limit->percent * (long double)baseline;
}

// ---- words ----

static void add_amount(tide_gate_unit unit, uint64_t amount, char *buf, size_t buf_bytes) {
    if (unit == TIDE_GATE_BYTES)
        tide_format_bytes(amount, buf, buf_bytes);
    else if (unit == TIDE_GATE_SHARE) // 10,000 millionths are a point of a percentage
        snprintf(buf, buf_bytes, "%.4g points", (double)amount / 1e4);
    else
        snprintf(buf, buf_bytes, "%" PRIu64, amount);
}

/// Appends " (tidemark.toml:12)". A long origin loses its beginning, because its end has the line.
static void add_origin(tide_gate_row *out, const char *origin) {
    const size_t used = strlen(out->limit), len = strlen(origin);
    const size_t room = sizeof out->limit - used;
    size_t skip = 0;
    if (len == 0 || room < 16) return;
    if (len + 4 > room) skip = len + 4 + strlen("…") - room;
    while (skip > 0 && ((unsigned char)origin[skip] & 0xC0) == 0x80) skip++; // not in the middle of a character
    char *at = out->limit + used;
    memcpy(at, " (", 2);
    at += 2;
    if (skip > 0) {
        memcpy(at, "…", strlen("…"));
        at += strlen("…");
    }
    memcpy(at, origin + skip, len - skip);
    memcpy(at + len - skip, ")", 2);
}

static void write_limit(tide_gate_unit unit, const tide_gate_limit *limit, const char *any, const char *origin,
                        tide_gate_row *out) {
    char amount[40] = "", percent[40] = "";
    if (limit->has_amount) add_amount(unit, limit->amount, amount, sizeof amount);
    if (limit->has_percent) snprintf(percent, sizeof percent, "%.6g %%", limit->percent);
    const bool both = limit->has_amount && limit->has_percent;
    snprintf(out->limit, sizeof out->limit, "%s%s%s%s", limit->has_amount || limit->has_percent ? "" : any, amount,
             both ? " and " : "", percent);
    add_origin(out, origin);
}

static void write_budget(const char *head, const tide_gate_metric_def *def, tide_gate_value max, const char *origin,
                         tide_gate_row *out) {
    char text[64];
    snprintf(out->limit, sizeof out->limit, "%sat %s %s", head, def->better == TIDE_GATE_LESS ? "most" : "least",
             tide_gate_value_text(def->unit, max, text, sizeof text));
    add_origin(out, origin);
}

// ---- one figure ----

static bool is_over(const tide_gate_metric_def *def, tide_gate_value max, tide_gate_value b) {
    return worse_by(def, max, b) > 0;
}

/// A budget is exceeded, too, when its figure was not measured.
static void judge_budget(const tide_gate_rule *rule, const tide_gate_metric_def *def, tide_gate_row *row) {
    const bool over = rule->has_max && (!row->current.known || is_over(def, rule->max, row->current));
    const bool over_warn = rule->has_warn_max && (!row->current.known || is_over(def, rule->warn_max, row->current));
    if (!over && !over_warn) return;
    row->over_budget = true;
    row->verdict = over ? TIDE_GATE_FAIL_VERDICT : TIDE_GATE_WARN_VERDICT;
    write_budget(row->current.known ? "" : "not measured, and may be ", def, over ? rule->max : rule->warn_max,
                 over ? rule->max_origin : rule->warn_max_origin, row);
}

/// The figure is in the baseline but was not measured this time.
static void judge_missing(const tide_gate_rule *rule, tide_gate_row *row) {
    if (!rule->fail.given && !rule->warn.given) return;
    row->verdict = rule->fail.given ? TIDE_GATE_FAIL_VERDICT : TIDE_GATE_WARN_VERDICT;
    snprintf(row->limit, sizeof row->limit, "not measured, but in the baseline");
    add_origin(row, rule->fail.given ? rule->fail_origin : rule->warn_origin);
}

static void judge_change(const tide_gate_rule *rule, const tide_gate_metric_def *def, tide_gate_row *row) {
    const wide worse = worse_by(def, row->baseline, row->current), baseline = number(def->unit, row->baseline);
    const struct {
        const tide_gate_limit *limit;
        const char *origin;
        tide_gate_verdict verdict;
        bool is_gain;
    } levels[] = {{&rule->fail, rule->fail_origin, TIDE_GATE_FAIL_VERDICT, false},
                  {&rule->warn, rule->warn_origin, TIDE_GATE_WARN_VERDICT, false},
                  {&rule->gain_fail, rule->gain_fail_origin, TIDE_GATE_FAIL_VERDICT, true},
                  {&rule->gain_warn, rule->gain_warn_origin, TIDE_GATE_WARN_VERDICT, true}};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (!exceeds(levels[i].limit, levels[i].is_gain ? -worse : worse, baseline)) continue;
        row->verdict = levels[i].verdict;
        row->is_gain = levels[i].is_gain;
        const char *any = row->is_gain ? "any gain" : def->better == TIDE_GATE_LESS ? "any growth" : "any loss";
        write_limit(def->unit, levels[i].limit, any, levels[i].origin, row);
        return;
    }
}

bool tide__judge_row(const tide_gate_rule *rule, tide_gate_metric m, int kind, bool has_baseline, tide_gate_value a,
                     tide_gate_value b, tide_gate_row *out) {
    const tide_gate_metric_def *def = tide_gate_metric_get(m);
    if (rule->off) return false;
    tide_gate_row row = {.metric = m, .kind = kind, .baseline = a, .current = b};
    const bool is_timed = def->unit == TIDE_GATE_NS, has_budget = rule->has_max || rule->has_warn_max;
    if (!is_timed && has_budget) judge_budget(rule, def, &row);
    const bool is_lost = a.known && !b.known;
    const bool is_unused = def->per_kind && a.u == 0 && b.u == 0 && !is_lost; // neither side uses this kind of memory
    if (row.verdict == TIDE_GATE_PASS_VERDICT && ((!a.known && !b.known) || is_unused)) return false;
    tide_gate_row change = row;
    change.verdict = TIDE_GATE_PASS_VERDICT;
    if (!is_timed && has_baseline && a.known) {
        if (b.known)
            judge_change(rule, def, &change);
        else
            judge_missing(rule, &change);
    }
    if (tide__judge_worse(row.verdict, change.verdict) != row.verdict) {
        change.over_budget = false;
        row = change;
    }
    *out = row;
    return true;
}
