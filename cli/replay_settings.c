// SPDX-License-Identifier: MIT
//
// Settings of PyTorch's allocator, each replayed. See replay_settings.h.
//
//     (as recorded)              the same rules without settings: how far the simulation can be trusted
//     expandable_segments:True   …
//     (best placement)           what a plan needs that knows all blocks before
#include "cli/replay_settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/replay.h"
#include "core/base/assert.h"
#include "core/base/text.h"
#include "core/device/sim_device.h"
#include "profiler/import/import.h"

static const struct {
    const char *name;                                   // as PyTorch reads it
    const char *allocator;                              // ours
    enum { ALWAYS, WITH_CAPACITY, WITH_SETTINGS } when; // it looks at how full the device is; it had settings
} settings[] = {
    {"(as recorded)", "pytorch", ALWAYS},
    {"(no settings)", "pytorch:", WITH_SETTINGS},
    {"expandable_segments:True", "pytorch:expandable_segments", ALWAYS},
    {"max_split_size_mb:128", "pytorch:max_split_size=128MiB", ALWAYS},
    {"max_split_size_mb:512", "pytorch:max_split_size=512MiB", ALWAYS},
    {"roundup_power2_divisions:8", "pytorch:roundup_power2_divisions=8", ALWAYS},
    {"garbage_collection_threshold:0.8", "pytorch:garbage_collection_threshold=0.8", WITH_CAPACITY},
};
enum { N_SETTINGS = sizeof settings / sizeof settings[0] };
static_assert((int)N_SETTINGS < (int)TIDE_REPORT_MAX_SETTINGS, "with a placement they have room");

static bool is_snapshot(tide_trace *t) {
    char format[64] = "";
    return tide_trace_meta(t, "imported_format", format, sizeof format, NULL) == TIDE_OK &&
           tide_import_is_torch(format);
}

// ---- notes ----

static void note_failure(const cli_replay_failure *f, tide_report_setting *row) {
    char when[24], asked[24], held[24];
    snprintf(row->note, sizeof row->note, "at %s no memory for %s of '%.40s', with %s live",
             tide_format_ns(f->since_begin_ns, "us", when, sizeof when),
             tide_format_bytes(f->asked_bytes, asked, sizeof asked), f->name,
             tide_format_bytes(f->requested_bytes, held, sizeof held));
}

/// How far the simulation is from what was recorded, where it has the same settings.
static void note_likeness(const cli_replay_like *l, const char *its_settings, tide_report_setting *row) {
    const char *with = its_settings[0] != '\0' ? " with " : "";
    if (l->n_apart == 0) {
        snprintf(row->note, sizeof row->note, "simulated%s%.90s: the same at each of %" PRIu64 " moments", with,
                 its_settings, l->n_moments);
        return;
    }
    const uint64_t a = l->worst.recorded_bytes, b = l->worst.replayed_bytes;
    snprintf(row->note, sizeof row->note,
             "simulated%s%.60s: another figure at %" PRIu64 " of %" PRIu64 " moments, %.1f %% at most", with,
             its_settings, l->n_apart, l->n_moments, 100.0 * (double)(a > b ? a - b : b - a) / (double)(a > 0 ? a : 1));
}

// ---- replays ----

typedef struct trying {
    cli_replay_source source;
    cli_replay_options how;
    cli_replay_recorded recorded;
    tide_report_settings *out;
} trying;

static tide_report_setting *add_row(trying *t, int is, const char *name) {
    TIDE_ASSERT(t->out->n < sizeof t->out->rows / sizeof t->out->rows[0]);
    tide_report_setting *row = &t->out->rows[t->out->n++];
    *row = (tide_report_setting){.is = is, .recorded_bytes = t->recorded.reserved_peak_bytes};
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->device, sizeof row->device, "%s", t->source.of_device);
    return row;
}

static tide_status try_setting(trying *t, size_t i, tide_error *err) {
    cli_replay_result r = {0};
    TIDE_TRY(cli_replay_with(&t->source, &t->how, settings[i].allocator, &r, err));
    const bool is_other = i > 0;
    tide_report_setting *row = add_row(t, is_other ? TIDE_SETTING_OTHER : TIDE_SETTING_RECORDED, settings[i].name);
    row->reserved_bytes = r.n_failed > 0 ? TIDE_UNKNOWN_BYTES : is_other ? r.reserved_peak_bytes : row->recorded_bytes;
    row->n_failed = r.n_failed;
    if (r.n_failed > 0)
        note_failure(&r.failure, row);
    else if (!is_other)
        note_likeness(&r.like, t->source.settings, row);
    return TIDE_OK;
}

static tide_status try_placement(trying *t, tide_error *err) {
    const tide_strategy *search;
    cli_replay_plan plan;
    if (t->recorded.n_allocs > CLI_SETTINGS_MAX_BLOCKS) return TIDE_OK;
    TIDE_TRY(tide_strategy_find("search", &search, err));
    TIDE_TRY(cli_replay_plan_make(&t->source, search, &plan, err));
    tide_report_setting *row = add_row(t, TIDE_SETTING_PLACEMENT, "(best placement)");
    row->reserved_bytes = plan.bytes;
    snprintf(row->note, sizeof row->note, "%s", plan.proven ? "proven: none is smaller" : "a smaller one may be there");
    return TIDE_OK;
}

static tide_status try_device(trying *t, const char *device, tide_error *err) {
    t->source.of_device = device;
    TIDE_TRY(cli_replay_source_open(&t->source, err));
    TIDE_TRY(cli_replay_count(&t->source, &t->recorded, err));
    if (t->recorded.n_segments == 0 || t->recorded.reserved_peak_bytes == TIDE_UNKNOWN_BYTES) return TIDE_OK;
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (settings[i].when == ALWAYS || (settings[i].when == WITH_CAPACITY && t->how.limit_bytes > 0) ||
            (settings[i].when == WITH_SETTINGS && t->source.settings[0] != '\0'))
            TIDE_TRY(try_setting(t, i, err));
    return try_placement(t, err);
}

static bool is_new(const tide_trace_kind *kinds, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (strcmp(kinds[k].device, kinds[i].device) == 0) return false;
    return true;
}

/// Each device has an allocator of its own, and its own memory.
static tide_status try_all(trying *t, tide_error *err) {
    tide_trace_kind *kinds = NULL;
    size_t n = 0, n_devices = 0;
    TIDE_TRY(tide_trace_kinds(t->source.trace, 0, &kinds, &n, err));
    for (size_t i = 0; i < n; i++) n_devices += is_new(kinds, i);
    tide_status st = TIDE_OK;
    if (n_devices > TIDE_REPORT_MAX_SETTING_DEVICES)
        snprintf(t->out->why_not, sizeof t->out->why_not,
                 "Not tried for more than %d devices: tidemark replay --of cuda:0 --allocator pytorch:… does it.",
                 TIDE_REPORT_MAX_SETTING_DEVICES);
    for (size_t i = 0; i < n && st == TIDE_OK && t->out->why_not[0] == '\0'; i++)
        if (is_new(kinds, i)) st = try_device(t, kinds[i].device, err);
    tide_trace_kinds_free(kinds);
    return st;
}

tide_status cli_replay_settings_try(tide_trace *trace, const char *path, uint64_t capacity_bytes,
                                    tide_report_settings *out, tide_error *err) {
    *out = (tide_report_settings){0};
    if (!is_snapshot(trace)) return TIDE_OK;
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(trace, &info, err));
    if (info.n_events > CLI_SETTINGS_MAX_EVENTS) {
        snprintf(out->why_not, sizeof out->why_not,
                 "Not tried for more than %d events: tidemark replay does it (--allocator pytorch:…).",
                 CLI_SETTINGS_MAX_EVENTS);
        return TIDE_OK;
    }
    trying t = {.source = {.trace = trace, .path = path}, .how = {.limit_bytes = capacity_bytes}, .out = out};
    TIDE_TRY(tide_sim_device_open(&t.how.device, err));
    tide_sim_device_set_bytes(capacity_bytes);
    return try_all(&t, err);
}
