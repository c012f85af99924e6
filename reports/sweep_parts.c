// SPDX-License-Identifier: MIT
//
// What the writers of a sweep share: names of series, and what the picture of a model spans. See sweep_internal.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reports/sweep_internal.h"

// ---- names ----

const char *tide__sweep_bytes(uint64_t bytes, char *buf, size_t buf_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint64_t whole = bytes;
    int u = 0;
    while (whole >= 1024 && whole % 1024 == 0 && u < 6) {
        whole /= 1024;
        u++;
    }
    if (whole >= 1024) return tide_format_bytes(bytes, buf, buf_bytes);
    snprintf(buf, buf_bytes, "%" PRIu64 " %s", whole, units[u]);
    return buf;
}

static void part(tide_text *out, const char *word, const char *text) {
    tide_text_addf(out, "%s%s%s", out->len > 0 ? ", " : "", word, text);
}

void tide__sweep_label(const tide_sweep *s, size_t series, tide_text *out) {
    const tide_sweep_series *of = &s->series[series];
    bool sizes = false, strategies = false, aligns = false;
    for (size_t i = 0; i < s->n_series; i++) {
        const tide_sweep_series *other = &s->series[i];
        if (strcmp(other->model, of->model) != 0) continue;
        sizes |= strcmp(other->sizes, of->sizes) != 0;
        strategies |= strcmp(other->strategy, of->strategy) != 0;
        aligns |= other->align_bytes != of->align_bytes;
    }
    tide_text label = {0};
    if (sizes || of->sizes[0] != '\0') part(&label, "", of->sizes[0] != '\0' ? of->sizes : "as it is");
    if (strategies || (!sizes && !aligns)) part(&label, "", of->strategy);
    if (aligns) {
        char align[24];
        snprintf(align, sizeof align, "%" PRIu64, of->align_bytes);
        part(&label, "align ", align);
    }
    tide_text_add(out, tide_text_str(&label));
    if (label.failed) out->failed = true;
    tide_text_deinit(&label);
}

// ---- what a picture spans ----

bool tide__sweep_shows(const tide__sweep_group *g, uint64_t budget_bytes) { return budget_bytes / 4 <= g->y_top; }

uint64_t tide__sweep_height(const tide_sweep *s, const tide_sweep_point *p) {
    return s->n_answers > 0 ? tide_sweep_needs(p) : p->total_bytes;
}

uint64_t tide__sweep_bound(const tide_sweep *s, const tide_sweep_point *p) {
    return tide__sweep_height(s, p) - p->planned_bytes + p->lower_bound_bytes; // a part of planned_bytes
}

uint64_t tide__sweep_measured(const tide_sweep *s, const tide_sweep_point *p) {
    return tide__sweep_height(s, p) - p->total_bytes + p->measured_peak_bytes;
}

const char *tide__sweep_what(const tide_sweep *s) {
    for (size_t i = 0; s->n_answers > 0 && i < s->n; i++)
        if (s->points[i].process_bytes > 0) return "bytes of the process";
    return "total bytes";
}

uint64_t tide__sweep_step(uint64_t span, unsigned n) {
    uint64_t each = 1;
    for (int i = 0; span / each > n && each < UINT64_MAX / 10; i++) each = i % 3 == 1 ? each / 2 * 5 : each * 2;
    return each;
}

uint64_t tide__sweep_step_bytes(uint64_t top, unsigned n) {
    uint64_t each = 1;
    while (top / each > n) each *= 2;
    return each;
}

static void widen(const tide_sweep *s, tide__sweep_group *g) {
    uint64_t least = UINT64_MAX, largest = 0;
    for (size_t i = g->from; i < g->from + g->n; i++) {
        for (size_t k = s->series[i].from; k < s->series[i].from + s->series[i].n; k++) {
            const tide_sweep_point *p = &s->points[k];
            least = p->value < least ? p->value : least;
            largest = p->value > largest ? p->value : largest;
            g->has_errors |= p->error != NULL;
            g->has_runs |= p->measured;
            if (p->error != NULL) continue;
            g->n_figures++;
            const uint64_t height = tide__sweep_height(s, p), measured = p->measured ? tide__sweep_measured(s, p) : 0;
            g->y_top = height > g->y_top ? height : g->y_top;
            if (measured > g->y_top) g->y_top = measured;
        }
    }
    g->x_lo = least > largest / 4 && least < largest ? least : 0;
    g->x_hi = largest > g->x_lo ? largest : g->x_lo + 1;
    if (g->y_top == 0) g->y_top = 1;
    for (size_t i = 0; i < s->n_answers; i++) {
        const tide_sweep_answer *a = &s->answers[i];
        const bool mine = a->series >= g->from && a->series < g->from + g->n;
        if (mine && tide__sweep_shows(g, a->budget_bytes) && a->budget_bytes > g->y_top) g->y_top = a->budget_bytes;
    }
}

void tide__sweep_groups(const tide_sweep *s, void (*take)(void *ctx, const tide__sweep_group *g), void *ctx) {
    for (size_t i = 0; i < s->n_series;) {
        tide__sweep_group g = {.from = i};
        while (i < s->n_series && strcmp(s->series[i].model, s->series[g.from].model) == 0) i++;
        g.n = i - g.from;
        widen(s, &g);
        take(ctx, &g);
    }
}
