// SPDX-License-Identifier: MIT
//
// The table of figures, their names and how they are printed. See metric.h.
#include "gate/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/nearest.h"

const char *tide_gate_level_name(tide_gate_level level) {
    static const char *const names[] = {"report", "warn", "fail"};
    return (size_t)level < sizeof names / sizeof names[0] ? names[level] : "level ?";
}

// ---- the table ----

static const tide_gate_metric_def defs[TIDE_GATE_N_METRICS] = {
#define XX(name, text, unit_of, better_of, level_of, kinds, run, what_it_is)                                           \
    [TIDE_GATE_##name] = {.id = (text),                                                                                \
                          .unit = TIDE_GATE_##unit_of,                                                                 \
                          .better = TIDE_GATE_##better_of,                                                             \
                          .level = TIDE_GATE_##level_of,                                                               \
                          .per_kind = (kinds),                                                                         \
                          .needs_run = (run),                                                                          \
                          .what = (what_it_is)},
    TIDE_GATE_METRIC_MAP(XX)
#undef XX
};

const tide_gate_metric_def *tide_gate_metric_get(tide_gate_metric m) {
    return (size_t)m < TIDE_GATE_N_METRICS ? &defs[m] : NULL;
}

bool tide_gate_metric_is_of_machine(tide_gate_metric m, int kind) {
    switch (m) {
    case TIDE_GATE_PROCESS:
    case TIDE_GATE_FULL_PLANNED:
    case TIDE_GATE_FULL_TOTAL:
    case TIDE_GATE_FULL_BOUND:
    case TIDE_GATE_SCRATCH:
    case TIDE_GATE_PEAK:
    case TIDE_GATE_RESERVED:
    case TIDE_GATE_ALLOCATIONS: // no block where there is no scratch and nothing else to plan
        return true;
    case TIDE_GATE_PREDICTED:
    case TIDE_GATE_KIND_PEAK:
        return kind == TIDE_KIND_WORKSPACE;
    default:
        return false;
    }
}

// ---- names ----

static const char *id_at(const void *ctx, size_t i) {
    (void)ctx;
    return defs[i].id;
}

static const char *kind_at(const void *ctx, size_t i) {
    (void)ctx;
    return tide_memory_kind_name((tide_memory_kind)i);
}

static tide_status unknown_metric(const char *text, size_t id_len, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no metric '%.64s'", text);
    char id[64];
    snprintf(id, sizeof id, "%.*s", (int)(id_len < sizeof id ? id_len : sizeof id - 1), text);
    const char *near = tide_nearest_word(id, id_at, NULL, TIDE_GATE_N_METRICS);
    if (near != NULL)
        tide_error_hint(err, "did you mean '%s'?", near);
    else
        tide_error_hint(err, "metrics are planned_bytes, total_bytes, peak_bytes, … (docs/gate.md has them all)");
    return st;
}

static tide_status parse_kind(const tide_gate_metric_def *def, const char *text, int *kind, tide_error *err) {
    if (!def->per_kind) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' is one figure, there is none for each kind", def->id);
        tide_error_hint(err, "leave '.%.64s' out", text);
        return st;
    }
    tide_memory_kind found;
    if (tide_memory_kind_parse(text, &found, NULL) == TIDE_OK) {
        *kind = (int)found;
        return TIDE_OK;
    }
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no memory kind '%.64s'", text);
    const char *near = tide_nearest_word(text, kind_at, NULL, TIDE_N_KINDS);
    if (near != NULL)
        tide_error_hint(err, "did you mean '%s.%s'?", def->id, near);
    else
        tide_error_hint(err, "kinds are Default, Persistent, Workspace, KVCache, HostPinned, HostPageable");
    return st;
}

tide_status tide_gate_metric_parse(const char *text, tide_gate_metric *m, int *kind, tide_error *err) {
    const char *dot = strchr(text, '.');
    const size_t n = dot != NULL ? (size_t)(dot - text) : strlen(text);
    for (size_t i = 0; i < TIDE_GATE_N_METRICS; i++) {
        if (strlen(defs[i].id) != n || memcmp(defs[i].id, text, n) != 0) continue;
        *m = (tide_gate_metric)i;
        *kind = -1;
        return dot != NULL ? parse_kind(&defs[i], dot + 1, kind, err) : TIDE_OK;
    }
    return unknown_metric(text, n, err);
}

const char *tide_gate_metric_text(tide_gate_metric m, int kind, char *buf, size_t buf_bytes) {
    const tide_gate_metric_def *def = tide_gate_metric_get(m);
    if (def == NULL)
        snprintf(buf, buf_bytes, "metric ?");
    else if (kind < 0)
        snprintf(buf, buf_bytes, "%s", def->id);
    else
        snprintf(buf, buf_bytes, "%s.%s", def->id, tide_memory_kind_name((tide_memory_kind)kind));
    return buf;
}

// ---- figures ----

/// A percentage with enough digits to differ from zero: "25.0", "0.04", "0.0003".
static const char *percent_text(double percent, char *buf, size_t buf_bytes) {
    const double size = fabs(percent);
    if (size == 0 || size >= 0.995)
        snprintf(buf, buf_bytes, "%.1f", percent);
    else
        snprintf(buf, buf_bytes, size >= 0.005 ? "%.2f" : "%.2g", percent);
    return buf;
}

/// An amount without its sign.
static const char *amount_text(tide_gate_unit unit, uint64_t amount, char *buf, size_t buf_bytes) {
    if (unit == TIDE_GATE_BYTES) return tide_format_bytes(amount, buf, buf_bytes);
    if (unit == TIDE_GATE_NS) return tide_format_ns(amount, "us", buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRIu64, amount);
    return buf;
}

const char *tide_gate_value_text(tide_gate_unit unit, tide_gate_value v, char *buf, size_t buf_bytes) {
    char text[32];
    if (!v.known)
        snprintf(buf, buf_bytes, "-");
    else if (unit == TIDE_GATE_SHARE)
        snprintf(buf, buf_bytes, "%s %%", percent_text(v.real * 100, text, sizeof text));
    else if (unit == TIDE_GATE_BYTES && v.u >= 1024)
        snprintf(buf, buf_bytes, "%s (%" PRIu64 ")", tide_format_bytes(v.u, text, sizeof text), v.u);
    else
        amount_text(unit, v.u, buf, buf_bytes);
    return buf;
}

static const char *share_change_text(double change, char *buf, size_t buf_bytes) {
    char text[32];
    snprintf(buf, buf_bytes, "%s%s points", change > 0 ? "+" : "", percent_text(change * 100, text, sizeof text));
    return buf;
}

const char *tide_gate_change_text(tide_gate_unit unit, tide_gate_value a, tide_gate_value b, char *buf,
                                  size_t buf_bytes) {
    const bool is_same = unit == TIDE_GATE_SHARE ? a.real == b.real : a.u == b.u;
    if (!a.known || !b.known) {
        snprintf(buf, buf_bytes, "-");
        return buf;
    }
    if (is_same) {
        snprintf(buf, buf_bytes, "no change");
        return buf;
    }
    if (unit == TIDE_GATE_SHARE) return share_change_text(b.real - a.real, buf, buf_bytes);
    const char sign = b.u > a.u ? '+' : '-';
    const uint64_t amount = b.u > a.u ? b.u - a.u : a.u - b.u;
    char text[32], percent[32];
    amount_text(unit, amount, text, sizeof text);
    if (a.u == 0)
        snprintf(buf, buf_bytes, "%c%s", sign, text);
    else
        snprintf(buf, buf_bytes, "%c%s (%c%s %%)", sign, text, sign,
                 percent_text(100.0 * (double)amount / (double)a.u, percent, sizeof percent));
    return buf;
}
