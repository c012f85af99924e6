// SPDX-License-Identifier: MIT
//
// The sentences about tensors. Names stand as the model has them: who prints them escapes them (outputs.h).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gate/causes_internal.h"

void tide__say_instead(tide_text *out, uint64_t b, uint64_t a) {
    const tide__bytes_text words_b = tide__words(b), words_a = tide__words(a);
    if (a != b && strcmp(words_b.text, words_a.text) == 0)
        tide_text_addf(out, "%" PRIu64 " B instead of %" PRIu64 " B", b, a);
    else
        tide_text_addf(out, "%s instead of %s", words_b.text, words_a.text);
}

void tide__say_tensor(tide_text *out, const tide_gate_tensor *t) {
    const char *name = tide__case_text(t->name), *owner = tide__case_text(t->owner);
    tide_text_add(out, name[0] != '\0' ? name : "a block without a name");
    if (owner[0] != '\0') tide_text_addf(out, " of %s", owner);
}

void tide__say_peak(tide_text *out, const tide__causing *g) {
    const char *a = tide__case_text(g->a->peak_step), *b = tide__case_text(g->b->peak_step);
    if (a[0] == '\0' || b[0] == '\0') return;
    if (strcmp(a, b) == 0)
        tide_text_addf(out, "; the peak is at %s on both sides", b);
    else
        tide_text_addf(out, "; the peak is at %s (before: at %s)", b, a);
}

const char *tide__kind_words(const tide_gate_tensor *t, char *buf, size_t buf_bytes) {
    const bool says = t->persistent && t->kind != TIDE_KIND_PERSISTENT;
    snprintf(buf, buf_bytes, "%s%s", tide_memory_kind_name(t->kind), says ? ", persistent" : "");
    return buf;
}

// ---- sums ----

typedef struct sums {
    uint64_t a_held, b_held, a_bytes, b_bytes;
} sums;

static sums sum_up(const tide__tensor_diff *d, size_t n) {
    sums s = {0};
    for (size_t i = 0; i < n; i++) {
        s.a_held += tide__held_by(d[i].a);
        s.b_held += tide__held_by(d[i].b);
        s.a_bytes += d[i].a != NULL ? d[i].a->bytes : 0;
        s.b_bytes += d[i].b != NULL ? d[i].b->bytes : 0;
    }
    return s;
}

/// "4.00 KiB at the peak", "4.00 KiB for the whole run", "4.00 KiB, not at the peak"
static void say_held(tide_text *out, bool persistent, uint64_t held, uint64_t bytes) {
    if (persistent)
        tide_text_addf(out, "%s for the whole run", tide__words(bytes).text);
    else if (held > 0)
        tide_text_addf(out, "%s at the peak", tide__words(held).text);
    else
        tide_text_addf(out, "%s, not at the peak", tide__words(bytes).text);
}

// ---- one sentence for each kind ----

static void say_count(tide_text *out, const tide__tensor_diff *d, size_t n) {
    const bool added = d->kind == TIDE_GATE_CAUSE_TENSOR_ADDED;
    const tide_gate_tensor *t = added ? d->b : d->a;
    const sums s = sum_up(d, n);
    tide_text_addf(out, "%zu tensor%s %s%s", n, n == 1 ? "" : "s", added ? "more" : "fewer", n == 1 ? ": " : ", ");
    if (n == 1) {
        tide__say_tensor(out, t);
        tide_text_add(out, ", ");
    }
    say_held(out, t->persistent, added ? s.b_held : s.a_held, added ? s.b_bytes : s.a_bytes);
    if (n == 1) return;
    tide_text_add(out, ", among them ");
    tide__say_tensor(out, t);
    tide_text_addf(out, " (%s)", tide__words(t->bytes).text);
}

/// "to 2.00 times their size", or the range where they differ.
static void say_shares(tide_text *out, const tide__tensor_diff *d, size_t n) {
    double lo = 0, hi = 0;
    for (size_t i = 0; i < n; i++) {
        if (d[i].a->bytes == 0) return; // from nothing: there is no share
        const double share = (double)d[i].b->bytes / (double)d[i].a->bytes;
        if (i == 0 || share < lo) lo = share;
        if (i == 0 || share > hi) hi = share;
    }
    if (d->sub >= 0)
        tide_text_addf(out, " to %.2f times their size", lo);
    else
        tide_text_addf(out, " to between %.2f and %.2f times their size", lo, hi);
}

static void say_resized(tide_text *out, const tide__causing *g, const tide__tensor_diff *d, size_t n) {
    const sums s = sum_up(d, n);
    const bool grew = d->b->bytes > d->a->bytes;
    if (n > 1) {
        tide_text_addf(out, "%zu of %zu tensors %s", n, g->b->n_tensors, grew ? "grew" : "shrank");
        say_shares(out, d, n);
        if (s.a_held != s.b_held)
            tide_text_addf(out, ", %s %s instead of %s", tide__words(s.b_held).text,
                           d->persistent ? "for the whole run" : "at the peak", tide__words(s.a_held).text);
        tide_text_add(out, ", among them ");
    }
    tide__say_tensor(out, d->b);
    tide_text_add(out, n > 1 ? " (" : " takes ");
    tide__say_instead(out, d->b->bytes, d->a->bytes);
    if (n > 1) tide_text_add(out, ")");
    if (n == 1 && s.a_held == 0 && s.b_held == 0) tide_text_add(out, ", not at the peak");
}

static void say_kind(tide_text *out, const tide__tensor_diff *d, size_t n) {
    char a[64], b[64];
    const sums s = sum_up(d, n);
    const tide_gate_tensor *t = tide__case_text(d->b->owner)[0] != '\0' ? d->b : d->a; // what persists has no owner
    if (n > 1)
        tide_text_addf(out, "%zu tensors", n);
    else
        tide__say_tensor(out, t);
    tide_text_addf(out, " (%s) %s %s instead of %s", tide__words(s.b_bytes).text, n > 1 ? "are" : "is",
                   tide__kind_words(d->b, b, sizeof b), tide__kind_words(d->a, a, sizeof a));
    if (d->b->persistent != d->a->persistent)
        tide_text_add(out, d->b->persistent ? ", held for the whole run" : ", planned with the others");
    if (n == 1) return;
    tide_text_add(out, ", among them ");
    tide__say_tensor(out, t);
}

/// "conv1_out (in-place)"
static void say_inside(tide_text *out, const tide_gate_tensor *t, bool with_name) {
    const char *alias = tide__case_text(t->alias);
    tide_text_add(out, with_name ? t->inside : "others");
    if (alias[0] != '\0') tide_text_addf(out, " (%s)", alias);
}

/// "4.00 KiB of its own at the peak"
static void say_own(tide_text *out, size_t n, uint64_t held, uint64_t bytes) {
    tide_text_addf(out, "%s of %s own%s", tide__words(held > 0 ? held : bytes).text, n > 1 ? "their" : "its",
                   held > 0 ? " at the peak" : ", not at the peak");
}

static void say_place(tide_text *out, const tide__tensor_diff *d, size_t n) {
    const sums s = sum_up(d, n);
    if (n > 1)
        tide_text_addf(out, "%zu tensors", n);
    else
        tide__say_tensor(out, d->b);
    if (d->kind == TIDE_GATE_CAUSE_PLACE_LOST) {
        tide_text_add(out, n > 1 ? " take " : " takes ");
        say_own(out, n, s.b_held, s.b_bytes);
        tide_text_addf(out, "; before %s lay in ", n > 1 ? "they" : "it");
        say_inside(out, d->a, n == 1);
    } else {
        tide_text_add(out, n > 1 ? " lie in " : " lies in ");
        say_inside(out, d->b, n == 1);
        tide_text_addf(out, "; before %s took ", n > 1 ? "they" : "it");
        say_own(out, n, s.a_held, s.a_bytes);
    }
    if (n == 1) return;
    tide_text_add(out, ", among them ");
    tide__say_tensor(out, d->b);
}

static void say_alive(tide_text *out, const tide__causing *g, const tide__tensor_diff *d, size_t n) {
    const bool comes = d->kind == TIDE_GATE_CAUSE_ALIVE;
    const sums s = sum_up(d, n);
    if (n > 1) {
        tide_text_addf(out, "%zu tensors of the same size hold at the peak ", n);
        tide__say_instead(out, s.b_held, s.a_held);
        tide_text_add(out, ", among them ");
        tide__say_tensor(out, d->b);
    } else if (s.a_held == 0 || s.b_held == 0) {
        tide__say_tensor(out, d->b);
        tide_text_addf(out, " (%s) is %s at the peak, before it was%s", tide__words(comes ? s.b_held : s.a_held).text,
                       comes ? "alive" : "not alive", comes ? " not" : "");
    } else {
        tide__say_tensor(out, d->b);
        tide_text_add(out, " holds at the peak ");
        tide__say_instead(out, s.b_held, s.a_held);
    }
    if (strcmp(tide__case_text(g->a->peak_step), tide__case_text(g->b->peak_step)) != 0) tide__say_peak(out, g);
}

static void say_leak(tide_text *out, const tide__tensor_diff *d, size_t n) {
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        a += d[i].a != NULL ? d[i].a->leaked_bytes : 0;
        b += d[i].b != NULL ? d[i].b->leaked_bytes : 0;
    }
    if (n > 1) tide_text_addf(out, "%zu tensors, among them ", n);
    tide__say_tensor(out, d->b != NULL ? d->b : d->a);
    if (b > 0)
        tide_text_addf(out, ": %s never given back (before: %s)", tide__words(b).text, tide__words(a).text);
    else
        tide_text_addf(out, ": all given back (before: %s never)", tide__words(a).text);
}

static void say_steady(tide_text *out, const tide__tensor_diff *d, size_t n) {
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        a += d[i].a != NULL ? d[i].a->warm_allocations : 0;
        b += d[i].b != NULL ? d[i].b->warm_allocations : 0;
    }
    if (n > 1) tide_text_addf(out, "%zu tensors, among them ", n);
    tide__say_tensor(out, d->b != NULL ? d->b : d->a);
    const tide_gate_tensor *t = d->b != NULL ? d->b : d->a;
    tide_text_addf(out, " (%s): %" PRIu64 " allocation%s in steady state (before: %" PRIu64 ")",
                   tide__words(t->bytes).text, b, b == 1 ? "" : "s", a);
}

void tide__say_diffs(tide_text *out, const tide__causing *g, const tide__tensor_diff *d, size_t n) {
    switch (d->kind) {
    case TIDE_GATE_CAUSE_TENSOR_ADDED:
    case TIDE_GATE_CAUSE_TENSOR_REMOVED:
        say_count(out, d, n);
        break;
    case TIDE_GATE_CAUSE_TENSOR_RESIZED:
        say_resized(out, g, d, n);
        break;
    case TIDE_GATE_CAUSE_KIND:
        say_kind(out, d, n);
        break;
    case TIDE_GATE_CAUSE_PLACE_LOST:
    case TIDE_GATE_CAUSE_PLACE_SHARED:
        say_place(out, d, n);
        break;
    case TIDE_GATE_CAUSE_LEAK:
        say_leak(out, d, n);
        break;
    case TIDE_GATE_CAUSE_STEADY:
        say_steady(out, d, n);
        break;
    default:
        say_alive(out, g, d, n);
        break;
    }
}
