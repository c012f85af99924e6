// SPDX-License-Identifier: MIT
//
// Call stacks of a feed by address: its frames as scopes, the files that they lie in as facts of the trace.
//
//     MODULE 1 "c4f1 /usr/bin/sort"    -> meta  module.sort = "c4f1 /usr/bin/sort"
//     FRAME 12 {in 11, module 1, 5601} -> scope  kind frame, name "sort+0x5601", below that of frame 11, as soon as an
//                                         event has it; the outermost one below the scope that the program was in
//
// A file is called by its name without its folder; where another file has that name, #2, #3, ... is put behind it.
// Names of functions are found after the run (profiler/symbols/).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/collector.h"
#include "profiler/drain/drain_internal.h"

enum { MAX_LABELS = 4096, KEY_BYTES = 512, MAX_DEPTH = TIDE_MAX_STACK_DEPTH + 1 }; // and what stands for the rest
static const char prefix[] = "module.";

/// Its label, behind the prefix of a key of meta that has that value; *is_taken: another value has it.
static tide_status look_up(const tide__drain *d, const char *key, const char *value, bool *is_taken, bool *is_there,
                           tide_error *err) {
    const tide__sql *s = tide__store_sql(d->store);
    sqlite3_stmt *stmt;
    bool has_row;
    TIDE_TRY(tide__sql_prepare(s, "SELECT value FROM meta WHERE key = ?", &stmt, err));
    tide__sql_bind_text(stmt, 1, key);
    const tide_status st = tide__sql_step(s, stmt, &has_row, err);
    *is_taken = st == TIDE_OK && has_row;
    *is_there = *is_taken && strcmp(tide__sql_text(stmt, 0), value) == 0;
    sqlite3_finalize(stmt);
    return st;
}

/// The key that this module has, or gets now. Sees to its own transaction.
static tide_status find_key(tide__drain *d, const char *value, char key[KEY_BYTES], tide_error *err) {
    const char *path = strchr(value, ' '), *slash = strrchr(value, '/');
    const char *name = slash != NULL ? slash + 1 : path != NULL ? path + 1 : value;
    for (int i = 1; i <= MAX_LABELS; i++) {
        bool is_taken, is_there;
        if (i == 1)
            snprintf(key, KEY_BYTES, "%s%.300s", prefix, name);
        else
            snprintf(key, KEY_BYTES, "%s%.300s#%d", prefix, name, i);
        TIDE_TRY(look_up(d, key, value, &is_taken, &is_there, err));
        if (is_there) return TIDE_OK;
        if (is_taken) continue;
        TIDE_TRY(tide__store_begin(d->store, err));
        return tide__store_end(d->store, tide__store_put_meta(d->store, key, value, err), err);
    }
    return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "cannot record into '%s': more than %d files are called '%.100s'", d->path,
                     MAX_LABELS, name);
}

tide_status tide__drain_take_module(tide__drain *d, tide__drain_feed *f, const tide__log_record *r, const void *payload,
                                    bool *bad, tide_error *err) {
    *bad = r->id != f->n_modules + 1 || r->payload_bytes == 0;
    if (*bad) return TIDE_OK;
    char *value = tide_host_strndup(payload, strnlen(payload, r->payload_bytes)), key[KEY_BYTES];
    if (value == NULL) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    tide_status st = find_key(d, value, key, err);
    tide_host_free(value);
    TIDE_TRY(st);
    TIDE_TRY(TIDE_GROW(&f->modules, &f->cap_modules, f->n_modules + 1, err, "to record into '%s'", d->path));
    TIDE_TRY(TIDE_COPY_TEXT(&f->modules[f->n_modules], key + sizeof prefix - 1, err, "to record into '%s'", d->path));
    f->n_modules++;
    return TIDE_OK;
}

static const char *name_of(const tide__drain_feed *f, const tide__log_frame *frame, char *room, size_t bytes) {
    if (frame->module_id == 0) {
        return frame->address == TIDE__FRAME_DEEPER ? "[deeper]"
               : frame->address == TIDE__FRAME_CUT  ? "[cut]"
                                                    : "[unknown]";
    }
    snprintf(room, bytes, "%s+0x%" PRIx64, f->modules[frame->module_id - 1], frame->address);
    return room;
}

tide_status tide__drain_take_frame(tide__drain *d, tide__drain_feed *f, const tide__log_record *r,
                                   const void *payload) {
    tide__log_frame frame;
    char room[KEY_BYTES + 32];
    if (r->payload_bytes != sizeof frame || r->id != f->n_frames + 1 || f->addresses == NULL) return TIDE_ERR_BAD_INPUT;
    memcpy(&frame, payload, sizeof frame);
    if (frame.module_id > f->n_modules || frame.parent_id > f->n_frames) return TIDE_ERR_BAD_INPUT;
    tide__drain_frame kept = {.parent_id = frame.parent_id,
                              .depth = frame.parent_id > 0 ? f->frames[frame.parent_id - 1].depth + 1 : 1};
    if (kept.depth > MAX_DEPTH) return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide__names_text(&d->names, name_of(f, &frame, room, sizeof room), &kept.name_id));
    TIDE_TRY(tide_host_grow(&f->frames, &f->cap_frames, f->n_frames + 1, sizeof *f->frames));
    f->frames[f->n_frames++] = kept;
    return TIDE_OK;
}

// ---- frames as scopes ----

/// What the file calls a frame below a scope.
typedef struct frame_scope {
    uint64_t key; ///< scope in the file << 32 | number of the frame in the feed
    int64_t id;
} frame_scope;

/// The frames that the file does not know below that scope are made, the outermost first. *id: in, the scope; out, that
/// of the frame below it.
static tide_status find_scope(tide__drain *d, tide__drain_feed *f, uint32_t frame, int64_t *id) {
    const uint64_t below = (uint64_t)*id << 32;
    uint32_t fresh[MAX_DEPTH];
    size_t n = 0;
    if (f->frame_scopes.entry_bytes == 0) f->frame_scopes = (tide_map)TIDE_MAP(frame_scope);
    for (; frame != 0; frame = f->frames[frame - 1].parent_id) {
        const frame_scope *known = tide_map_find(&f->frame_scopes, below | frame);
        if (known != NULL) {
            *id = known->id;
            break;
        }
        TIDE_ASSERT(n < MAX_DEPTH);
        fresh[n++] = frame;
    }
    while (n-- > 0) {
        const tide__scope_row row = {
            .parent_id = *id, .name_id = f->frames[fresh[n] - 1].name_id, .kind = TIDE_SCOPE_FRAME, .step = -1};
        frame_scope made = {.key = below | fresh[n]};
        TIDE_TRY(tide__names_scope_row(&d->names, &row, &made.id));
        if (!tide_map_put(&f->frame_scopes, &made)) return TIDE_ERR_NOMEM;
        *id = made.id;
    }
    return TIDE_OK;
}

tide_status tide__drain_find_caller(tide__drain *d, tide__drain_feed *f, tide__event *e, tide_error *err) {
    const uint64_t bits = (uint64_t)e->stream;
    const uint32_t frame = (uint32_t)(bits >> TIDE__FRAME_SHIFT);
    int64_t id = e->scope_id;
    e->stream = (int64_t)(bits & UINT32_MAX);
    if (frame == 0 || frame > f->n_frames) return TIDE_OK; // a number that the log does not define is none
    if (find_scope(d, f, frame, &id) != TIDE_OK) return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
    e->scope_id = (int32_t)id;
    return TIDE_OK;
}

tide_status tide__drain_write_stacks(tide__drain *d, const tide__drain_feed *f, tide_error *err) {
    const uint64_t n_lost = atomic_load_explicit(&f->head->n_stacks_lost, memory_order_relaxed),
                   n_cut = atomic_load_explicit(&f->head->n_stacks_cut, memory_order_relaxed);
    char key[64], text[96];
    if (f->n_modules == 0 && n_lost == 0) return TIDE_OK;
    snprintf(key, sizeof key, "stacks.%" PRId64, f->process_id);
    snprintf(text, sizeof text, "lost=%" PRIu64 " cut=%" PRIu64, n_lost, n_cut);
    return tide__store_put_meta(d->store, key, text, err);
}
