// SPDX-License-Identifier: MIT
//
// Leaks, failed allocations and properties of allocators as text and JSON. See memory_report.h.
#include "cli/memory_report.h"

#include <inttypes.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/memory/allocators/allocators.h"

/// A number of bytes; null for TIDE_UNKNOWN_BYTES and all beyond 2^63 - 1: there is no limit.
static void add_known_bytes(tide_json_out *j, const char *key, uint64_t bytes) {
    tide_json_u64_if(j, key, bytes <= INT64_MAX, bytes);
}

static void add_device(tide_json_out *j, tide_device device) {
    char name[32];
    tide_json_text(j, "device", tide_device_format(device, name, sizeof name));
}

static void add_kind(tide_json_out *j, tide_memory_kind kind) {
    tide_json_text(j, "kind", tide_memory_kind_name(kind));
}

/// @param found  NULL: the key is left out
static void add_block(tide_json_out *j, const tide_live_block *b, uint64_t now_ns, const char *found) {
    tide_json_open(j, NULL, '{');
    add_kind(j, b->kind);
    add_device(j, b->device);
    tide_json_u64(j, "bytes", b->requested_bytes);
    tide_json_text(j, "tag", b->tag);
    tide_json_text(j, "operator", b->op);
    tide_json_u64(j, "age_ns", now_ns > b->t_ns ? now_ns - b->t_ns : 0);
    tide_json_u64(j, "block_id", b->block_id);
    tide_json_text(j, "allocator", b->allocator);
    if (b->pending) tide_json_bool(j, "pending", true);
    if (found != NULL) tide_json_text(j, "found", found);
    tide_json_close(j, '}');
}

static void print_text(tide_text *t, FILE *to) {
    fputs(tide_text_str(t), to);
    if (t->failed) cli_cut(to);
    tide_text_deinit(t);
}

// ---- leaks ----

void cli_json_leaks(tide_json_out *j, const char *key, const cli_leaks *leaks) {
    tide_json_open(j, key, '[');
    for (size_t i = 0; i < leaks->n_at_end; i++) add_block(j, &leaks->at_end[i], leaks->now_ns, "session");
    for (size_t i = 0; i < leaks->n_late; i++) add_block(j, &leaks->late[i], leaks->now_ns, "run");
    tide_json_close(j, ']');
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

static void add_oom(tide_json_out *j, const char *key, const tide_oom_report *r) {
    tide_json_open(j, key, '{');
    tide_json_u64(j, "asked_bytes", r->asked_bytes);
    tide_json_u64(j, "align_bytes", r->align_bytes);
    add_device(j, r->device);
    add_kind(j, r->kind);
    tide_json_text(j, "allocator", r->allocator);
    tide_json_text(j, "tag", r->tag);
    tide_json_text(j, "operator", r->op);
    add_known_bytes(j, "would_fit_bytes", r->would_fit_bytes);
    cli_json_stats(j, &r->stats);
    tide_json_u64(j, "live_blocks", r->n_live);
    tide_json_u64(j, "live_bytes", r->live_bytes);
    tide_json_open(j, "blocks", '[');
    for (size_t i = 0; i < r->n_blocks; i++) add_block(j, &r->blocks[i], r->t_ns, NULL);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
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
        tide_text text = {0};
        tide_json_out j = cli_document_begin(json_command, &text);
        tide_json_text(&j, "error", err->msg);
        tide_json_u64_if(&j, "limit_bytes", limit_bytes > 0, limit_bytes);
        add_oom(&j, "oom", &report);
        cli_document_end(&j);
        cli_document_print(&text);
    }
    return CLI_EXIT_DOES_NOT_FIT;
}

// ---- allocators ----

void cli_json_props(tide_json_out *j, const tide_allocator_props *p) {
    tide_json_text(j, "what", p->what);
    tide_json_u64(j, "min_align_bytes", p->align_bytes);
    add_known_bytes(j, "max_align_bytes", p->max_align_bytes);
    add_known_bytes(j, "max_bytes", p->max_bytes);
    tide_json_bool(j, "keeps_freed", p->keeps_freed);
    tide_json_bool(j, "stream_aware", p->stream_aware);
    tide_json_bool(j, "page_locked", p->page_locked);
    tide_json_bool(j, "needs_reset", p->needs_reset);
}

void cli_json_stats(tide_json_out *j, const tide_allocator_stats *s) {
    tide_json_u64(j, "requested_bytes", s->requested_bytes);
    tide_json_u64(j, "active_bytes", s->active_bytes);
    tide_json_u64(j, "cached_bytes", s->cached_bytes);
    tide_json_u64(j, "reserved_bytes", s->reserved_bytes);
    tide_json_u64(j, "largest_free_bytes", s->largest_free_bytes);
    tide_json_u64(j, "pending_bytes", s->pending_bytes);
    tide_json_u64(j, "pending_frees", s->n_pending);
    add_known_bytes(j, "headroom_bytes", s->headroom_bytes);
    tide_json_u64(j, "peak_requested_bytes", s->peak_requested_bytes);
    tide_json_u64(j, "peak_active_bytes", s->peak_active_bytes);
    tide_json_u64(j, "peak_reserved_bytes", s->peak_reserved_bytes);
    tide_json_u64(j, "allocations", s->n_allocs);
    tide_json_u64(j, "frees", s->n_frees);
    tide_json_u64(j, "failed", s->n_failed);
    tide_json_u64(j, "system_calls", s->n_system);
    tide_json_u64(j, "cache_hits", s->n_hits);
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
