// SPDX-License-Identifier: MIT
//
// explain, in sentences. See explain.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/explain.h"
#include "analysis/subject_internal.h"
#include "core/base/text.h"

const char *tide_part_name(tide_part_kind part) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_PART_MAP(XX)
#undef XX
    };
    return (unsigned)part < TIDE_N_PARTS ? names[part] : "part ?";
}

typedef struct bytes_text {
    char text[24];
} bytes_text;

static bytes_text words(uint64_t bytes) {
    bytes_text b;
    tide_format_bytes(bytes, b.text, sizeof b.text);
    return b;
}

/// "step 5 (relu1)", "1.25 ms (conv1)": since the origin.
static void add_moment(tide_text *out, const tide_subject_facts *f, tide_moment at) {
    const char *step = tide_subject_step_words(f, at.t);
    if (f->is_trace) {
        char ns[32];
        tide_text_add(out, tide_subject_format_since(f, at.t, "us", ns, sizeof ns));
    } else {
        tide_text_addf(out, "step %" PRId64, at.t);
    }
    char body[256];
    tide_subject_body_at(f, at.t, body, sizeof body);
    if (step[0] != '\0') tide_text_addf(out, " (%s%s%s)", step, body[0] != '\0' ? ", " : "", body);
}

/// "24.50 KiB live, 512 B rounding, 1.00 KiB holes"
static void add_parts(tide_text *out, const tide_explanation *e) {
    const char *comma = "";
    for (int k = 0; k < TIDE_N_PARTS; k++) {
        if (e->parts[k] == 0) continue;
        tide_text_addf(out, "%s%s %s", comma, words(e->parts[k]).text, tide_part_name((tide_part_kind)k));
        comma = ", ";
    }
}

const char *tide_without_more(const tide_without *w, char *buf, size_t buf_bytes) {
    buf[0] = '\0';
    if (w->n_inside == 1) snprintf(buf, buf_bytes, " and the one that lies in it");
    if (w->n_inside > 1) snprintf(buf, buf_bytes, " and the %" PRIu64 " that lie in it", w->n_inside);
    return buf;
}

static const char *name_of(const tide_live_item *x) {
    return x->site.name[0] != '\0' ? x->site.name : x->site.owner[0] != '\0' ? x->site.owner : "a block without a name";
}

static double share(uint64_t part, uint64_t whole) { return whole > 0 ? 100.0 * (double)part / (double)whole : 0; }

static void print_held(const tide_explanation *e, const tide_subject_facts *f, tide_text *out) {
    tide_text_add(out, "At ");
    add_moment(out, f, e->at);
    tide_text_addf(out, " %s are held", words(e->held_bytes).text);
    if (e->held_bytes > 0) {
        tide_text_add(out, ": ");
        add_parts(out, e);
    }
    tide_text_add(out, ".\n");
}

static bool same_site(const tide_live_item *a, const tide_live_item *b) {
    return strcmp(a->site.name, b->site.name) == 0 && strcmp(a->site.owner, b->site.owner) == 0;
}

enum { MAX_HOLDERS = 32 };

/// The first item whose site none of these has; e->live.n: there is none.
static size_t next_holder(const tide_explanation *e, size_t i, const tide_live_item *const *said, size_t n_said) {
    for (; i < e->live.n; i++) {
        size_t k = 0;
        while (k < n_said && !same_site(said[k], &e->live.items[i])) k++;
        if (k == n_said) break;
    }
    return i;
}

/// From the largest on; all of one name and owner are one sentence.
static void print_holders(const tide_explanation *e, size_t n_rows, tide_text *out) {
    const tide_live_item *said[MAX_HOLDERS];
    uint64_t rest = 0;
    for (size_t i = 0; i < e->live.n; i++) rest += e->live.items[i].counts_bytes;
    size_t n_said = 0, n_items = 0;
    for (size_t i = 0; n_said < n_rows && n_said < MAX_HOLDERS; i++) {
        i = next_holder(e, i, said, n_said);
        if (i == e->live.n) break;
        const tide_live_item *x = said[n_said++] = &e->live.items[i];
        uint64_t bytes = 0;
        size_t n = 0;
        for (size_t k = i; k < e->live.n; k++) {
            if (!same_site(x, &e->live.items[k])) continue;
            bytes += e->live.items[k].counts_bytes;
            n++;
        }
        tide_text_addf(out, "%s holds %s", name_of(x), words(bytes).text);
        if (n > 1) tide_text_addf(out, " in %zu", n);
        tide_text_addf(out, " (%.1f %%)", share(bytes, e->live.bytes));
        if (x->site.owner[0] != '\0' && x->site.name[0] != '\0') tide_text_addf(out, ", made by %s", x->site.owner);
        if (x->shape.persistent) tide_text_add(out, ", for the whole run");
        tide_text_add(out, ".\n");
        rest -= bytes;
        n_items += n;
    }
    const size_t n = e->live.n - n_items;
    if (n > 0) tide_text_addf(out, "%zu more hold %s (%.1f %%).\n", n, words(rest).text, share(rest, e->live.bytes));
}

static void print_groups(const tide_explanation *e, size_t n_rows, tide_text *out) {
    if (e->n_by_owner < 2) return;
    tide_text_add(out, "By operator: ");
    uint64_t rest = 0;
    for (size_t i = 0; i < e->n_by_owner; i++) {
        if (i < n_rows)
            tide_text_addf(out, "%s%s %s", i > 0 ? ", " : "", e->by_owner[i].key, words(e->by_owner[i].bytes).text);
        else
            rest += e->by_owner[i].bytes;
    }
    if (rest > 0) tide_text_addf(out, ", others %s", words(rest).text);
    tide_text_add(out, ".\n");
}

/// "The plan of the rest takes 6.00 MiB, 12.5 % less."
static void add_plan(uint64_t bytes, uint64_t was_bytes, tide_text *out) {
    tide_text_addf(out, " The plan of the rest takes %s", words(bytes).text);
    if (bytes < was_bytes) tide_text_addf(out, ", %.1f %% less.", share(was_bytes - bytes, was_bytes));
    if (bytes >= was_bytes) tide_text_add(out, ", no less.");
}

void tide_way_print(const tide_way *way, tide_text *out) {
    tide_edit_print(&way->edit, out);
    if (way->n_again == 1) tide_text_add(out, " (1 operator runs twice)");
    if (way->n_again > 1) tide_text_addf(out, " (%zu operators run twice)", way->n_again);
}

/// "To get there: recompute r82 (1 operator runs twice): plan 6.12 MiB; batch 4: plan 3.50 MiB."
static void add_ways(const tide_explanation *e, size_t without, tide_text *out) {
    const tide_without *w = &e->without[without];
    const char *comma = " To get there: ";
    if (!w->is_asked) return;
    for (size_t i = 0; i < e->n_ways; i++) {
        if (e->ways[i].without != without) continue;
        tide_text_add(out, comma);
        tide_way_print(&e->ways[i], out);
        tide_text_addf(out, ": plan %s", words(e->ways[i].plan_bytes).text);
        comma = "; ";
    }
    if (w->has_way) tide_text_add(out, ".");
    if (!w->has_way) tide_text_addf(out, " No known way%s%s.", w->why_not[0] != '\0' ? ": " : "", w->why_not);
}

/// A block goes in every execution: how many that are, and how many of them are there now.
static void add_alike(const tide_without *w, const tide_live_item *x, tide_text *out) {
    if (w->n_alike <= 1) return;
    tide_text_addf(out, ", %" PRIu64 " now of %" PRIu64 " in the run", w->n_now, w->n_alike);
    if (x->site.owner[0] != '\0') tide_text_addf(out, " made by %s", x->site.owner);
    tide_text_add(out, ", which all go");
}

/// What the curve is without it, how far that is from where it was, and what a plan takes then.
static void print_one(const tide_explanation *e, const tide_subject_facts *f, size_t without, tide_text *out) {
    const tide_without *w = &e->without[without];
    const tide_live_item *x = &e->live.items[w->live];
    char more[64];
    tide_text_addf(out, "Without %s%s (%s", w->name[0] != '\0' ? w->name : name_of(x),
                   tide_without_more(w, more, sizeof more), words(w->bytes).text);
    if (strcmp(w->name, x->site.name) != 0) tide_text_addf(out, ", now %s", name_of(x));
    add_alike(w, x, out);
    tide_text_addf(out, ") the peak would be %s", words(w->peak_bytes).text);
    if (w->peak_bytes >= f->peak_bytes) {
        tide_text_add(out, ", no lower: as much is held at ");
        add_moment(out, f, w->at);
        tide_text_add(out, ".");
    } else {
        tide_text_addf(out, ", %.1f %% lower, at ", share(f->peak_bytes - w->peak_bytes, f->peak_bytes));
        add_moment(out, f, w->at);
        tide_text_add(out, ": the next constraint.");
    }
    if (w->has_plan) add_plan(w->plan_bytes, w->was_bytes, out);
    add_ways(e, without, out);
    tide_text_add(out, "\n");
}

void tide_explanation_print(const tide_explanation *e, tide_subject *s, size_t n_rows, tide_text *out) {
    const tide_subject_facts *f = tide_subject_get_facts(s);
    print_held(e, f, out);
    print_holders(e, n_rows, out);
    print_groups(e, n_rows, out);
    for (size_t i = 0; i < e->n_without && i < n_rows; i++) print_one(e, f, i, out);
    if (e->second_peak_bytes > 0) {
        tide_text_addf(out, "Without all that is alive and does not persist it would be %s, at ",
                       words(e->second_peak_bytes).text);
        add_moment(out, f, e->second_peak);
        tide_text_add(out, ".");
        if (e->has_second_plan) tide_text_addf(out, " Their plan takes %s.", words(e->second_plan_bytes).text);
        tide_text_add(out, "\n");
    }
    if (e->n_without > 0 && e->without[0].has_plan && !e->without[0].is_asked)
        tide_text_add(out, "No known way from here: only the model could tell.\n");
    if (!e->knows_ends) tide_text_add(out, "Events that would tell more of what could be without were dropped.\n");
}
