// SPDX-License-Identifier: MIT
//
// Leaks, failed allocations and properties of allocators as text and JSON. See memory_report.h.
#include "cli/memory_report.h"

#include <inttypes.h>

#include "cli/cli.h"
#include "core/memory/allocators/allocators.h"

json_t *cli_json_known_bytes(uint64_t bytes) { return bytes > INT64_MAX ? json_null() : cli_json_bytes(bytes); }

static json_t *device_json(tide_device device) {
    char name[32];
    return json_string(tide_device_format(device, name, sizeof name));
}

static json_t *kind_json(tide_memory_kind kind) { return json_string(tide_memory_kind_name(kind)); }

static json_t *block_json(const tide_live_block *b, uint64_t now_ns) {
    json_t *row = json_object();
    json_object_set_new(row, "kind", kind_json(b->kind));
    json_object_set_new(row, "device", device_json(b->device));
    json_object_set_new(row, "bytes", cli_json_bytes(b->requested_bytes));
    json_object_set_new(row, "tag", cli_json_text(b->tag));
    json_object_set_new(row, "operator", cli_json_text(b->op));
    json_object_set_new(row, "age_ns", cli_json_bytes(now_ns > b->t_ns ? now_ns - b->t_ns : 0));
    json_object_set_new(row, "block_id", cli_json_bytes(b->block_id));
    json_object_set_new(row, "allocator", cli_json_text(b->allocator));
    if (b->pending) json_object_set_new(row, "pending", json_true());
    return row;
}

static void print_text(tide_text *t, FILE *to) {
    fputs(tide_text_str(t), to);
    if (t->failed) cli_cut(to);
    tide_text_deinit(t);
}

// ---- leaks ----

static void add_leaks(json_t *list, const tide_live_block *blocks, size_t n, uint64_t now_ns, const char *found) {
    for (size_t i = 0; i < n; i++) {
        json_t *row = block_json(&blocks[i], now_ns);
        json_object_set_new(row, "found", json_string(found));
        json_array_append_new(list, row);
    }
}

json_t *cli_leaks_json(const cli_leaks *leaks) {
    json_t *list = json_array();
    add_leaks(list, leaks->at_end, leaks->n_at_end, leaks->now_ns, "session");
    add_leaks(list, leaks->late, leaks->n_late, leaks->now_ns, "run");
    return list;
}

static void print_leaks(const char *when, const tide_live_block *blocks, size_t n, uint64_t now_ns, FILE *to) {
    if (n == 0) return;
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += blocks[i].requested_bytes;
    tide_text t = {0};
    tide_text_addf(&t, "leak: %zu block%s, %" PRIu64 " bytes, %s\n", n, n == 1 ? "" : "s", bytes, when);
    tide_live_blocks_text(blocks, n, now_ns, &t);
    print_text(&t, to);
}

void cli_leaks_print(const cli_leaks *leaks, FILE *to) {
    print_leaks("alive when the session ended", leaks->at_end, leaks->n_at_end, leaks->now_ns, to);
    print_leaks("alive after the run's contexts, given back later", leaks->late, leaks->n_late, leaks->now_ns, to);
    const uint64_t n_listed = leaks->n_at_end + leaks->n_late;
    if (leaks->n_blocks > n_listed)
        fprintf(to, "leak: %" PRIu64 " more, not listed for want of memory\n", leaks->n_blocks - n_listed);
}

// ---- out of memory ----

json_t *cli_oom_json(const tide_oom_report *r) {
    json_t *doc = json_object();
    json_object_set_new(doc, "asked_bytes", cli_json_bytes(r->asked_bytes));
    json_object_set_new(doc, "align_bytes", cli_json_bytes(r->align_bytes));
    json_object_set_new(doc, "device", device_json(r->device));
    json_object_set_new(doc, "kind", kind_json(r->kind));
    json_object_set_new(doc, "allocator", cli_json_text(r->allocator));
    json_object_set_new(doc, "tag", cli_json_text(r->tag));
    json_object_set_new(doc, "operator", cli_json_text(r->op));
    json_object_set_new(doc, "would_fit_bytes", cli_json_known_bytes(r->would_fit_bytes));
    cli_json_stats(doc, &r->stats);
    json_object_set_new(doc, "live_blocks", cli_json_bytes(r->n_live));
    json_object_set_new(doc, "live_bytes", cli_json_bytes(r->live_bytes));
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_blocks; i++) json_array_append_new(list, block_json(&r->blocks[i], r->t_ns));
    json_object_set_new(doc, "blocks", list);
    return doc;
}

void cli_oom_print(const tide_oom_report *r, FILE *to) {
    tide_text t = {0};
    tide_oom_report_text(r, &t);
    print_text(&t, to);
}

int cli_fail_in_session(const cli_session *s, const char *json_command, uint64_t limit_bytes, const tide_error *err) {
    cli_print_error(err);
    // Other failures may come after an allocation that was tried in vain and done without.
    const bool memory = err->status == TIDE_ERR_NOMEM || err->status == TIDE_ERR_NO_SPACE;
    tide_oom_report report;
    if (!memory || s == NULL || !cli_session_oom(s, &report)) return cli_exit_code(err->status);
    cli_oom_print(&report, stderr);
    if (json_command != NULL) {
        json_t *doc = cli_json_document(json_command);
        json_object_set_new(doc, "error", cli_json_text(err->msg));
        json_object_set_new(doc, "limit_bytes", limit_bytes > 0 ? cli_json_bytes(limit_bytes) : json_null());
        json_object_set_new(doc, "oom", cli_oom_json(&report));
        cli_json_print(doc);
    }
    return CLI_EXIT_DOES_NOT_FIT;
}

// ---- allocators ----

void cli_json_props(json_t *row, const tide_allocator_props *p) {
    json_object_set_new(row, "what", cli_json_text(p->what));
    json_object_set_new(row, "min_align_bytes", cli_json_bytes(p->align_bytes));
    json_object_set_new(row, "max_align_bytes", cli_json_known_bytes(p->max_align_bytes));
    json_object_set_new(row, "max_bytes", cli_json_known_bytes(p->max_bytes));
    json_object_set_new(row, "keeps_freed", json_boolean(p->keeps_freed));
    json_object_set_new(row, "stream_aware", json_boolean(p->stream_aware));
    json_object_set_new(row, "page_locked", json_boolean(p->page_locked));
    json_object_set_new(row, "needs_reset", json_boolean(p->needs_reset));
}

void cli_json_stats(json_t *row, const tide_allocator_stats *s) {
    json_object_set_new(row, "requested_bytes", cli_json_bytes(s->requested_bytes));
    json_object_set_new(row, "active_bytes", cli_json_bytes(s->active_bytes));
    json_object_set_new(row, "cached_bytes", cli_json_bytes(s->cached_bytes));
    json_object_set_new(row, "reserved_bytes", cli_json_bytes(s->reserved_bytes));
    json_object_set_new(row, "largest_free_bytes", cli_json_bytes(s->largest_free_bytes));
    json_object_set_new(row, "pending_bytes", cli_json_bytes(s->pending_bytes));
    json_object_set_new(row, "pending_frees", cli_json_bytes(s->n_pending));
    json_object_set_new(row, "headroom_bytes", cli_json_known_bytes(s->headroom_bytes));
    json_object_set_new(row, "peak_requested_bytes", cli_json_bytes(s->peak_requested_bytes));
    json_object_set_new(row, "peak_active_bytes", cli_json_bytes(s->peak_active_bytes));
    json_object_set_new(row, "peak_reserved_bytes", cli_json_bytes(s->peak_reserved_bytes));
    json_object_set_new(row, "allocations", cli_json_bytes(s->n_allocs));
    json_object_set_new(row, "frees", cli_json_bytes(s->n_frees));
    json_object_set_new(row, "failed", cli_json_bytes(s->n_failed));
    json_object_set_new(row, "system_calls", cli_json_bytes(s->n_system));
    json_object_set_new(row, "cache_hits", cli_json_bytes(s->n_hits));
}

bool cli_parse_allocator(const cli_command *cmd, const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    if (tide_allocator_create_by_name(name, &a, &err) != TIDE_OK) {
        char clean[512];
        cli_usage(cmd, "--allocator: %s%s%s", cli_clean(err.msg, clean, sizeof clean), err.hint[0] != '\0' ? "; " : "",
                  err.hint);
        return false;
    }
    tide_allocator_unref(a);
    return true;
}

bool cli_parse_limit(const cli_command *cmd, const char *text, uint64_t *out) {
    if (!cli_parse_size(cmd, "--limit", text, out)) return false;
    if (*out > 0) return true;
    cli_usage(cmd, "--limit: at least 1 byte is needed");
    return false;
}
