// SPDX-License-Identifier: MIT
//
// The peak by call stack, and its picture: a tree of lines laid out from the top down, as wide as what is live below
// each. Stacks that begin with the same lines share them:
//
//     [ all                                        ]
//     [ main train.py:9              ][ step.py:84 ]
//     [ forward model.py:292         ][ aten::...  ]
//     [ :199       ][ :201 ][ aten:: ]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/html_text.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "reports/render.h"
#include "reports/svg_axis.h"

enum { ROW = 18, CHAR = 7, LEFT = 8, MAX_DEPTH = 130, SEPARATOR = 2 };
#define MIN_WIDTH 0.5 // user units: what is narrower is not drawn

bool tide_report_is_no_stack(const tide_group *g) { return strcmp(g->key, "(no stack)") == 0; }

static int by_key(const void *a, const void *b) {
    return strcmp(((const tide_group *)a)->key, ((const tide_group *)b)->key);
}

tide_status tide_report_find_stacks(tide_report_side *s, tide_error *err) {
    tide_trace *t = tide_subject_trace(s->subject);
    if (t == NULL || s->facts->peak.event == 0) return TIDE_OK;
    tide_live_set live = {0};
    TIDE_TRY(tide_trace_live_set_after(t, s->facts->peak.event, &live, err));
    tide_status st = tide_live_set_group(&live, TIDE_BY_STACK, &s->stacks, &s->n_stacks, err);
    const bool none = s->n_stacks == 1 && tide_report_is_no_stack(&s->stacks[0]); // no block of it tells one
    if (st == TIDE_OK && none)
        tide_report_stacks_deinit(s);
    else if (st == TIDE_OK)
        st = tide_live_set_group(&live, TIDE_BY_FUNCTION, &s->functions, &s->n_functions, err);
    tide_live_set_deinit(&live);
    return st;
}

void tide_report_stacks_deinit(tide_report_side *s) {
    tide_groups_free(s->stacks, s->n_stacks);
    tide_groups_free(s->functions, s->n_functions);
    s->stacks = s->functions = NULL;
    s->n_stacks = s->n_functions = 0;
}

// ---- the picture ----

/// Stacks in the order of their keys, so that those with common lines are neighbours.
typedef struct picture {
    const tide_group *groups;
    uint64_t all_bytes;
    double scale; ///< user units a byte
    int depth;    ///< of what is drawn
    tide_text *out;
} picture;

/// The line of a key at its byte `at`. *n its length.
static const char *line_at(const char *key, size_t at, size_t *n) {
    const char *line = key + at, *end = strstr(line, "; ");
    *n = end != NULL ? (size_t)(end - line) : strlen(line);
    return line;
}

static bool same_line(const tide_group *a, const tide_group *b, size_t at) {
    size_t n, m;
    const char *x = line_at(a->key, at, &n), *y = line_at(b->key, at, &m);
    return n == m && memcmp(x, y, n) == 0;
}

static void add_box(const picture *p, const char *line, size_t n, uint64_t bytes, double x, int depth) {
    char size[24];
    const double width = (double)bytes * p->scale;
    const int y = depth * ROW;
    tide_text name = {0};
    tide_text_add_n(&name, line, n);
    const bool is_line = strchr(tide_text_str(&name), ':') != NULL && strstr(tide_text_str(&name), "::") == NULL;
    tide_text_addf(p->out, "<g><title>");
    tide_html_add_line(p->out, tide_text_str(&name));
    tide_text_addf(p->out, ": %s, %.1f %%</title><rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
                   tide_format_bytes(bytes, size, sizeof size), 100.0 * (double)bytes / (double)p->all_bytes,
                   is_line ? "k0" : "region", x, y, width > 1.5 ? width - 1.0 : width, ROW - 1);
    const int chars = (int)(width / CHAR) - 1;
    if (chars >= 3) {
        tide_text_addf(p->out, "<text class=\"on\" x=\"%.1f\" y=\"%d\">", x + 3.0, y + ROW - 5);
        tide_html_add_cut(p->out, tide_text_str(&name), (size_t)chars);
        tide_text_add(p->out, "</text>");
    }
    tide_text_add(p->out, "</g>\n");
    p->out->failed = p->out->failed || name.failed;
    tide_text_deinit(&name);
}

/// The groups [first, last), whose keys are the same up to their byte `at`, side by side from `x` on.
static void add_level(picture *p, size_t first, size_t last, size_t at, double x, int depth) {
    if (depth >= MAX_DEPTH) return;
    for (size_t i = first, next; i < last; i = next) {
        uint64_t bytes = 0;
        size_t n;
        for (next = i; next < last && same_line(&p->groups[i], &p->groups[next], at); next++)
            bytes += p->groups[next].requested_bytes;
        TIDE_ASSERT(next > i && bytes <= p->all_bytes);
        const char *line = line_at(p->groups[i].key, at, &n);
        const double width = (double)bytes * p->scale;
        if (width >= MIN_WIDTH) {
            add_box(p, line, n, bytes, x, depth);
            if (depth > p->depth) p->depth = depth;
            // A key that ends here comes first among those that go on.
            size_t deeper = i;
            double at_x = x;
            for (; deeper < next && p->groups[deeper].key[at + n] == '\0'; deeper++)
                at_x += (double)p->groups[deeper].requested_bytes * p->scale;
            if (deeper < next) add_level(p, deeper, next, at + n + SEPARATOR, at_x, depth + 1);
        }
        x += width;
    }
}

int tide_report_svg_stacks(const tide_report *r, const tide_report_side *s, tide_text *out) {
    (void)r;
    picture p = {.out = out};
    size_t n = 0;
    for (size_t i = 0; i < s->n_stacks; i++)
        p.all_bytes += tide_report_is_no_stack(&s->stacks[i]) ? 0 : s->stacks[i].requested_bytes;
    if (p.all_bytes == 0) return 0;
    tide_group *sorted = tide_host_calloc(s->n_stacks, sizeof *sorted);
    if (sorted == NULL) {
        out->failed = true;
        return 0;
    }
    for (size_t i = 0; i < s->n_stacks; i++)
        if (!tide_report_is_no_stack(&s->stacks[i])) sorted[n++] = s->stacks[i]; // keys stay the side's
    qsort(sorted, n, sizeof *sorted, by_key);
    p.groups = sorted;
    p.scale = (double)(PLOT_WIDTH - 2 * LEFT) / (double)p.all_bytes;
    static const char all[] = "all that has a call stack";
    add_box(&p, all, sizeof all - 1, p.all_bytes, LEFT, 0);
    add_level(&p, 0, n, 0, LEFT, 1);
    tide_host_free(sorted);
    return (p.depth + 1) * ROW + 4;
}
