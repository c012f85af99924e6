// SPDX-License-Identifier: MIT
//
// Times, columns and words for both. See axis.h.
#include "tui/state/axis.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/checked.h"
#include "core/base/text.h"

uint64_t tide_tui_window_span(tide_tui_window w) { return w.end > w.begin ? (uint64_t)w.end - (uint64_t)w.begin : 1; }

/// First column of `at` < span. With fewer columns than units, column i holds `at` when i * span / n < at + 1, so the
/// last such i; with more, several columns hold the one unit `at`, and the first of them has i * span / n >= at. Both
/// are floor((at * n + min(n, span) - 1) / span). Where that does not fit, all is halved: with at least 50 bits left
/// the result is off by no more than one column.
static int first_column(uint64_t at, int n, uint64_t span) {
    uint64_t product;
    while (!tide_mul_u64(at, (uint64_t)n, &product) || !tide_add_u64(product, (uint64_t)n, &product)) {
        at >>= 1;
        span >>= 1;
    }
    const uint64_t column = (at * (uint64_t)n + ((uint64_t)n < span ? (uint64_t)n : span) - 1) / span;
    return column < (uint64_t)n ? (int)column : n - 1;
}

int tide_tui_column_of(tide_tui_window w, int n, int64_t t) {
    if (t < w.begin) return -1;
    const uint64_t span = tide_tui_window_span(w), at = (uint64_t)t - (uint64_t)w.begin;
    return at >= span ? n : first_column(at, n, span);
}

int tide_tui_columns_of(tide_tui_window w, int n, int64_t begin, int64_t end, int *from, int *to) {
    if (end <= begin) end = begin < INT64_MAX ? begin + 1 : begin;
    if (end <= w.begin) return -1;
    if (begin >= w.end) return 1;
    const int a = tide_tui_column_of(w, n, begin), b = tide_tui_column_of(w, n, end);
    *from = a < 0 ? 0 : a >= n ? n - 1 : a;
    *to = b > *from ? b : *from + 1;
    return 0;
}

int64_t tide_tui_column_time(tide_tui_window w, int n) {
    const uint64_t each = tide_tui_window_span(w) / (uint64_t)(n > 0 ? n : 1);
    return each < 1 ? 1 : each > INT64_MAX ? INT64_MAX : (int64_t)each;
}

tide_tui_window tide_tui_whole(const tide_subject_facts *f) {
    tide_tui_window w = {f->begin, f->end};
    if (w.end <= w.begin) {
        if (w.begin == INT64_MAX) w.begin--;
        w.end = w.begin + 1;
    }
    return w;
}

int64_t tide_tui_move_time(int64_t t, int64_t by, int64_t lo, int64_t hi) {
    int64_t moved;
    if (!tide_add_i64(t, by, &moved)) moved = by < 0 ? lo : hi;
    return moved < lo ? lo : moved > hi ? hi : moved;
}

int64_t tide_tui_tick_time(tide_tui_window w, int n_ticks) {
    const uint64_t span = tide_tui_window_span(w), n = n_ticks > 0 ? (uint64_t)n_ticks : 1;
    int64_t each = 1;
    for (int i = 0; span / (uint64_t)each >= n; i++) {
        if (each > INT64_MAX / 5) break;
        each = i % 3 == 1 ? each / 2 * 5 : each * 2; // 1 2 5 10 20 50 …
    }
    return each;
}

// ---- words ----

char *tide_tui_format_time(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes) {
    if (f->axis == TIDE_AXIS_NS) {
        return tide_subject_format_since(f, t, "us", buf, buf_bytes);
    }
    snprintf(buf, buf_bytes, "%" PRId64, t);
    return buf;
}

char *tide_tui_format_span(const tide_subject_facts *f, int64_t begin, int64_t end, char *buf, size_t buf_bytes) {
    const uint64_t span = end > begin ? (uint64_t)end - (uint64_t)begin : 0;
    if (f->axis == TIDE_AXIS_NS) return tide_format_ns(span, "us", buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRIu64 " step%s", span, span == 1 ? "" : "s");
    return buf;
}

char *tide_tui_format_short(uint64_t bytes, char *buf, size_t buf_bytes) {
    static const char units[] = "KMGTPE";
    if (bytes < 1000) {
        snprintf(buf, buf_bytes, "%" PRIu64, bytes);
        return buf;
    }
    double value = (double)bytes / 1024.0;
    size_t unit_i = 0;
    while (value >= 999.5 && unit_i + 2 < sizeof units) {
        value /= 1024.0;
        unit_i++;
    }
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(buf, buf_bytes, "%.*f%c", decimals, value, units[unit_i]);
    return buf;
}

int64_t tide_tui_zero(const tide_subject_facts *f) { return f->axis == TIDE_AXIS_NS ? f->origin : 0; }
