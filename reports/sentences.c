// SPDX-License-Identifier: MIT
//
// What several formats say in words: title, facts, conclusions. See render.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reports/render.h"

const char *tide_report_title(const tide_report_side *s) {
    return s->facts->title[0] != '\0' ? s->facts->title : "untitled";
}

const char *tide_report_weights_name(const tide_report_weights *w, char *buf, size_t buf_bytes) {
    snprintf(buf, buf_bytes, "weights (%zu)", w->n);
    return buf;
}

typedef void (*take_fact)(void *ctx, const char *key, const char *value, const char *note);

static void fit_fact(const tide_report *r, const tide_report_side *s, take_fact take, void *ctx) {
    char value[64], note[128], a[24], b[24];
    if (r->opt.capacity_bytes == 0) return;
    const bool fits = s->needs_bytes <= r->opt.capacity_bytes;
    const uint64_t rest = fits ? r->opt.capacity_bytes - s->needs_bytes : s->needs_bytes - r->opt.capacity_bytes;
    const bool is_open = fits && s->facts->n_dynamic > 0;
    snprintf(value, sizeof value, "%s", is_open ? "not known" : fits ? "yes" : "no");
    snprintf(note, sizeof note, "%s %s of %s%s", tide_format_bytes(rest, a, sizeof a),
             is_open ? "are left for what is sized while running,"
             : fits  ? "are left"
                     : "too much for a limit",
             tide_format_bytes(r->opt.capacity_bytes, b, sizeof b),
             s->knows_process && s->needs_bytes > s->process.peak_bytes       ? ", the process, by what was recorded"
             : s->knows_process                                               ? ", the process that runs it"
             : s->knows_reserved && s->reserved_bytes >= s->facts->peak_bytes ? ", by what is reserved"
                                                                              : "");
    take(ctx, "Will it fit", value, note);
}

/// An allocator that may keep what it does not tell; NULL: there is none.
static const char *silent_allocator(const tide_report_side *s) {
    for (size_t i = 0; i < s->pools.n; i++)
        if (s->pools.items[i].reserved_bytes == TIDE_UNKNOWN_BYTES) return s->pools.items[i].name;
    return NULL;
}

static void unknown_reserved_fact(const tide_report_side *s, take_fact take, void *ctx) {
    char note[200], held[24];
    const char *name = silent_allocator(s);
    if (!s->facts->is_trace || name == NULL) return;
    snprintf(note, sizeof note, "%.64s does not record what it takes from the system; blocks held %s at most", name,
             tide_format_bytes(s->reserved_bytes, held, sizeof held));
    take(ctx, "Peak reserved", "not known", note);
}

/// What runs out first: what is taken from the system, which is more than what is live.
static void reserved_fact(const tide_report_side *s, take_fact take, void *ctx) {
    char value[64], note[160], when[48], more[24];
    if (!s->knows_reserved) {
        unknown_reserved_fact(s, take, ctx);
        return;
    }
    tide_report_format_time(s->facts, s->reserved_at.t, true, when, sizeof when);
    if (s->reserved_bytes > s->facts->peak_bytes)
        snprintf(note, sizeof note, "taken from the system, at %s: %s more than is live at the peak", when,
                 tide_format_bytes(s->reserved_bytes - s->facts->peak_bytes, more, sizeof more));
    else
        snprintf(note, sizeof note, "taken from the system, at %s", when);
    take(ctx, "Peak reserved", tide_format_bytes(s->reserved_bytes, value, sizeof value), note);
}

static uint64_t saved_by(const tide_report_setting *x) {
    return x->n_failed == 0 && x->reserved_bytes < x->recorded_bytes ? x->recorded_bytes - x->reserved_bytes : 0;
}

/// " on cuda:1", where there are several.
static const char *on_device(const tide_report_settings *all, const tide_report_setting *x, char *out, size_t size) {
    const bool is_one = strcmp(all->rows[0].device, all->rows[all->n - 1].device) == 0;
    snprintf(out, size, "%s%s", is_one ? "" : " on ", is_one ? "" : x->device);
    return out;
}

/// Which setting of the allocator would have taken the least, on the device where that gains most.
static void setting_fact(const tide_report_side *s, take_fact take, void *ctx) {
    const tide_report_setting *best = NULL, *bound = NULL;
    char note[384], held[24], less[24], on[32], fit[256] = "";
    for (size_t i = 0; s->settings != NULL && i < s->settings->n; i++) {
        const tide_report_setting *x = &s->settings->rows[i];
        if (x->is == TIDE_SETTING_OTHER && saved_by(x) > 0 && (best == NULL || saved_by(x) > saved_by(best))) best = x;
    }
    for (size_t i = 0; s->settings != NULL && i < s->settings->n; i++) {
        const tide_report_setting *x = &s->settings->rows[i];
        if (x->is != TIDE_SETTING_PLACEMENT || (best != NULL && strcmp(best->device, x->device) != 0)) continue;
        if (bound == NULL || saved_by(x) > saved_by(bound)) bound = x;
    }
    if (s->settings == NULL || s->settings->n == 0) return;
    if (bound != NULL && saved_by(bound) > 0)
        snprintf(fit, sizeof fit, "; the best placement%s needs %s (%s)",
                 best == NULL ? on_device(s->settings, bound, on, sizeof on) : "",
                 tide_format_bytes(bound->reserved_bytes, held, sizeof held), bound->note);
    if (best == NULL) {
        take(ctx, "With other settings", "no less", fit[0] != '\0' ? fit + 2 : "");
        return;
    }
    const uint64_t fewer = saved_by(best);
    snprintf(note, sizeof note, "reserved at most with %s%s (simulated), %s (%.1f %%) less%s", best->name,
             on_device(s->settings, best, on, sizeof on), tide_format_bytes(fewer, less, sizeof less),
             100.0 * (double)fewer / (double)best->recorded_bytes, fit);
    take(ctx, "With other settings", tide_format_bytes(best->reserved_bytes, held, sizeof held), note);
}

/// Which process differs from the others.
static void lane_fact(const tide_report_side *s, take_fact take, void *ctx) {
    char value[24];
    tide_text say = {0};
    if (s->lanes.trace.n < 2) return;
    snprintf(value, sizeof value, "%zu", s->lanes.trace.n);
    tide_lanes_say(&s->lanes, &say);
    take(ctx, "Processes", value, say.len > 0 ? tide_text_str(&say) : "none differs from the others");
    tide_text_deinit(&say);
}

static void process_fact(const tide_report_side *s, take_fact take, void *ctx) {
    char value[64];
    tide_text parts = {0};
    if (!s->knows_process) return;
    tide_process_need_parts(&s->process, &parts);
    take(ctx, "Process", tide_format_bytes(s->process.peak_bytes, value, sizeof value), tide_text_str(&parts));
    tide_text_deinit(&parts);
}

/// Of the kinds that the plan has; what else was allocated, as the pages of a cache, stands beside it.
static void prediction_fact(const tide_subject_facts *f, take_fact take, void *ctx) {
    char value[64], note[160], size[24];
    uint64_t predicted = 0, measured = 0;
    if (!f->is_trace) return;
    for (size_t i = 0; i < f->n_kinds; i++) {
        const tide_trace_kind *k = &f->kinds[i];
        if (k->predicted_bytes == TIDE_UNKNOWN_BYTES) return;
        predicted += k->predicted_bytes;
        measured += k->predicted_bytes > 0 ? k->peak_bytes : 0;
    }
    const int64_t d = (int64_t)(predicted - measured);
    int n = snprintf(note, sizeof note, "predicted %s; sum of the kinds' peaks",
                     tide_format_bytes(predicted, size, sizeof size));
    const char *before = "; not in the plan: ";
    for (size_t i = 0; i < f->n_kinds; i++) {
        const tide_trace_kind *k = &f->kinds[i];
        if (k->predicted_bytes > 0 || k->peak_bytes == 0 || n < 0 || (size_t)n >= sizeof note) continue;
        n += snprintf(note + n, sizeof note - (size_t)n, "%s%s %s", before, tide_memory_kind_name(k->kind),
                      tide_format_bytes(k->peak_bytes, size, sizeof size));
        before = ", ";
    }
    snprintf(value, sizeof value, "%s%s",
             d < 0   ? "-"
             : d > 0 ? "+"
                     : "",
             tide_format_bytes(d < 0 ? 0 - (uint64_t)d : (uint64_t)d, size, sizeof size));
    take(ctx, "Predicted - measured", value, note);
}

static void plan_facts(const tide_report_side *s, take_fact take, void *ctx) {
    const tide_subject_facts *f = s->facts;
    char value[64], note[160], size[24];
    double share;
    if (!f->has_plan) return;
    note[0] = '\0';
    if (tide_report_saving(f, &share))
        snprintf(note, sizeof note, "%.1f %% saved of %s without sharing", 100.0 * share,
                 tide_format_bytes(f->naive_bytes, size, sizeof size));
    take(ctx, "Plan", tide_format_bytes(f->plan_bytes, value, sizeof value), note);
    note[0] = '\0';
    if (f->proven)
        snprintf(note, sizeof note, "no plan is smaller: proven");
    else if (tide_report_gap(f, &share))
        snprintf(note, sizeof note, "the plan is %.2f %% above it", 100.0 * share);
    take(ctx, "Lower bound", tide_format_bytes(f->lower_bound_bytes, value, sizeof value), note);
    prediction_fact(f, take, ctx);
}

/// Tensors that are sized while running, and how much of the room that they have the fullest of them used.
static void sized_fact(const tide_report_side *s, take_fact take, void *ctx) {
    const tide_sizes *z = &s->items->sizes;
    char value[64], note[224] = "room for the most that they can be";
    uint64_t n_made = 0, most_bytes = 0;
    const char *name = "";
    if (s->facts->n_bounded == 0) return;
    for (size_t i = 0; i < z->n; i++) {
        n_made += z->items[i].n;
        if (z->items[i].n == 0 || z->items[i].most_bytes < most_bytes) continue;
        const uint32_t item = tide_items_find(s->items, z->items[i].id);
        most_bytes = z->items[i].most_bytes;
        name = item != TIDE_NO_ITEM ? tide_items_site(s->items, item)->name : "";
    }
    char size[24];
    if (n_made > 0)
        snprintf(note, sizeof note,
                 "room for the most that they can be; made %" PRIu64 " times, the largest %.60s with %s", n_made, name,
                 tide_format_bytes(most_bytes, size, sizeof size));
    snprintf(value, sizeof value, "%zu tensor%s", s->facts->n_bounded, s->facts->n_bounded == 1 ? "" : "s");
    take(ctx, "Sized while running", value, note);
}

void tide_report_facts(const tide_report *r, const tide_report_side *s, take_fact take, void *ctx) {
    const tide_subject_facts *f = s->facts;
    char value[64], note[224], when[48], body[64];
    const char *step = tide_subject_step_name_at(f, f->peak.t);
    tide_subject_body_at(f, f->peak.t, body, sizeof body);
    fit_fact(r, s, take, ctx);
    reserved_fact(s, take, ctx);
    snprintf(note, sizeof note, "live, at %s%s%.60s%s%s%s",
             tide_report_format_time(f, f->peak.t, true, when, sizeof when), step[0] != '\0' ? " (" : "", step,
             step[0] != '\0' && body[0] != '\0' ? ", " : "", step[0] != '\0' ? body : "", step[0] != '\0' ? ")" : "");
    take(ctx, "Peak", tide_format_bytes(f->peak_bytes, value, sizeof value), note);
    setting_fact(s, take, ctx);
    lane_fact(s, take, ctx);
    process_fact(s, take, ctx);
    if (!s->knows_process && !f->is_trace && s->needs_bytes != f->plan_bytes)
        take(ctx, "Needs", tide_format_bytes(s->needs_bytes, value, sizeof value),
             "buffers, weights, inputs and outputs");
    plan_facts(s, take, ctx);
    snprintf(value, sizeof value, "%" PRIu64, f->n_items);
    snprintf(note, sizeof note, "%zu alive at the peak", s->why.live.n);
    take(ctx, f->is_trace ? "Blocks and tensors" : "Tensors", value, note);
    sized_fact(s, take, ctx);
    if (f->is_trace) {
        char size[24];
        snprintf(value, sizeof value, "%s",
                 s->leaks.n == 0 ? "none" : tide_format_bytes(s->leaks.bytes, size, sizeof size));
        size_t grow = 0;
        for (size_t i = 0; i < s->leaks.n; i++) grow += s->leaks.items[i].grows;
        snprintf(note, sizeof note, "%zu kind%s of block%s%s", s->leaks.n, s->leaks.n == 1 ? "" : "s",
                 grow > 0 ? ", some of them more and more" : "",
                 s->leaks.n_lost > 0 ? "; events were lost: some may have been freed" : "");
        take(ctx, "Never freed", value, s->leaks.n == 0 ? "" : note);
        if (s->pools.cached_bytes > 0 && s->pools.cached_bytes != TIDE_UNKNOWN_BYTES)
            take(ctx, "Cached at the peak", tide_format_bytes(s->pools.cached_bytes, value, sizeof value),
                 "reserved, but held by no block: holes and idle segments");
    }
    if (f->trouble[0] != '\0') take(ctx, "Note", f->trouble, "");
}

void tide_report_conclusions(const tide_report_side *s, tide_text *out) {
    tide_explanation_print(&s->why, s->subject, 5, out);
}
