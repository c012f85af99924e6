// SPDX-License-Identifier: MIT
//
// compare, in sentences. See compare.h.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/compare.h"
#include "core/base/text.h"

// ---- the words for changes, once ----

const char *tide_diff_change_name(unsigned index) {
    static const char *const names[TIDE_DIFF_N_CHANGES] = {"added", "removed", "resized", "moved", "retimed"};
    return names[index];
}

const char *tide_diff_changes(unsigned what, const char *comma, const char *none, char *buf, size_t buf_bytes) {
    size_t len = 0;
    snprintf(buf, buf_bytes, "%s", what == 0 ? none : "");
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES && len < buf_bytes; i++)
        if ((what & 1u << i) != 0)
            len += (size_t)snprintf(buf + len, buf_bytes - len, "%s%s", len > 0 ? comma : "", tide_diff_change_name(i));
    return buf;
}

size_t tide_diff_n_changed(const tide_diff *d, unsigned index) {
    const size_t counts[TIDE_DIFF_N_CHANGES] = {d->n_added, d->n_removed, d->n_resized, d->n_moved, d->n_retimed};
    return counts[index];
}

const char *tide_diff_counts(const tide_diff *d, char *buf, size_t buf_bytes) {
    size_t len = 0;
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES && len < buf_bytes; i++)
        len += (size_t)snprintf(buf + len, buf_bytes - len, "%zu %s, ", tide_diff_n_changed(d, i),
                                tide_diff_change_name(i));
    if (len < buf_bytes) snprintf(buf + len, buf_bytes - len, "%zu unchanged", d->n_unchanged);
    return buf;
}

// ---- sentences ----

typedef struct bytes_text {
    char text[32];
} bytes_text;

static bytes_text words(uint64_t bytes) {
    bytes_text b;
    tide_format_bytes(bytes, b.text, sizeof b.text);
    return b;
}

/// "+12.00 KiB", "-512 B", "no change"
static bytes_text change(uint64_t a, uint64_t b) {
    bytes_text t;
    char bytes[24];
    if (a == b)
        snprintf(t.text, sizeof t.text, "no change");
    else
        snprintf(t.text, sizeof t.text, "%c%s", b > a ? '+' : '-',
                 tide_format_bytes(b > a ? b - a : a - b, bytes, sizeof bytes));
    return t;
}

static void print_sum(const tide_diff *d, const tide_subject *a, const tide_subject *b, tide_text *out) {
    const tide_subject_facts *x = tide_subject_get_facts(a), *y = tide_subject_get_facts(b);
    const bool at_peaks = d->a_at.t == x->peak.t && d->b_at.t == y->peak.t;
    const char *where = at_peaks ? "at its peak" : "at its moment";
    if (d->a_bytes == d->b_bytes)
        tide_text_addf(out, "B holds as much %s as A (%s)", where, words(d->a_bytes).text);
    else
        tide_text_addf(out, "B holds %s %s %s (%s, A %s)",
                       words(d->b_bytes > d->a_bytes ? d->b_bytes - d->a_bytes : d->a_bytes - d->b_bytes).text,
                       d->b_bytes > d->a_bytes ? "more" : "less", where, words(d->b_bytes).text,
                       words(d->a_bytes).text);
}

/// "conv2 +14.00 KiB, rounding -2.00 KiB, others +512 B"
static void print_steps(const tide_diff_step *list, size_t n, size_t n_rows, tide_text *out) {
    const char *comma = "";
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        if (list[i].a_bytes == list[i].b_bytes) continue;
        if (i >= n_rows) {
            a += list[i].a_bytes;
            b += list[i].b_bytes;
            continue;
        }
        tide_text_addf(out, "%s%s %s", comma, list[i].key, change(list[i].a_bytes, list[i].b_bytes).text);
        comma = ", ";
    }
    if (a != b) tide_text_addf(out, "%sothers %s", comma, change(a, b).text);
}

static bool has_change(const tide_diff_step *list, size_t n) { return n > 0 && list[0].a_bytes != list[0].b_bytes; }

static void print_figures(const tide_diff *d, tide_text *out) {
    if (d->a_peak_bytes != d->b_peak_bytes)
        tide_text_addf(out, "Peak: A %s, B %s (%s).\n", words(d->a_peak_bytes).text, words(d->b_peak_bytes).text,
                       change(d->a_peak_bytes, d->b_peak_bytes).text);
    if (d->a_plan_bytes != TIDE_UNKNOWN_BYTES && d->b_plan_bytes != TIDE_UNKNOWN_BYTES)
        tide_text_addf(out, "Planned buffers: A %s, B %s (%s).\n", words(d->a_plan_bytes).text,
                       words(d->b_plan_bytes).text, change(d->a_plan_bytes, d->b_plan_bytes).text);
}

static void print_row(const tide_diff_row *r, tide_text *out) {
    tide_text_addf(out, "%s", r->name[0] != '\0' ? r->name : r->owner[0] != '\0' ? r->owner : "(no name)");
    if ((r->what & TIDE_DIFF_ADDED) != 0) tide_text_addf(out, ": only in B, %s", words(r->b_bytes).text);
    if ((r->what & TIDE_DIFF_REMOVED) != 0) tide_text_addf(out, ": only in A, %s", words(r->a_bytes).text);
    if ((r->what & TIDE_DIFF_RESIZED) != 0)
        tide_text_addf(out, ": %s, was %s", words(r->b_bytes).text, words(r->a_bytes).text);
    if ((r->what & TIDE_DIFF_MOVED) != 0) tide_text_add(out, ", lies elsewhere");
    if ((r->what & TIDE_DIFF_RETIMED) != 0) tide_text_add(out, ", retimed");
    if (r->a_at_bytes != r->b_at_bytes) tide_text_addf(out, " (%s here)", change(r->a_at_bytes, r->b_at_bytes).text);
    tide_text_add(out, "\n");
}

void tide_diff_print(const tide_diff *d, const tide_subject *a, const tide_subject *b, size_t n_rows, tide_text *out) {
    char counts[192];
    print_sum(d, a, b, out);
    if (has_change(d->by_owner, d->n_by_owner)) {
        tide_text_add(out, ": ");
        print_steps(d->by_owner, d->n_by_owner, n_rows, out);
    }
    tide_text_add(out, ".\n");
    if (has_change(d->by_kind, d->n_by_kind)) {
        tide_text_add(out, "By kind: ");
        print_steps(d->by_kind, d->n_by_kind, n_rows, out);
        tide_text_add(out, ".\n");
    }
    print_figures(d, out);
    tide_text_addf(out, "%s.\n", tide_diff_counts(d, counts, sizeof counts));
    for (size_t i = 0, n = 0; i < d->n && n < n_rows; i++) {
        if (d->rows[i].what == 0 && d->rows[i].a_at_bytes == d->rows[i].b_at_bytes) continue;
        print_row(&d->rows[i], out);
        n++;
    }
}
