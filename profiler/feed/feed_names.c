// SPDX-License-Identifier: MIT
//
// The log of a feed, and the table through which producers find what is in it already. See feed_internal.h.
//
//     table   [ . ][ * ][ . ][ . ][ * ][ . ][ * ][ . ]        slots point into the log
//                    |              |         |
//     log     | TEXT 1 "conv1" | TEXT 2 "relu" | SCOPE 1 {text 1, ...} | ...
//
// A record is whole before a slot points to it, and neither moves: looking takes no lock. Adding does; so does making
// the table larger, which leaves the old one to threads that still read it (they miss, and look again with the lock).
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/feed/feed_internal.h"

enum { FIRST_CAP = 1024 };

static uint64_t load_u64(const char *bytes, size_t n) {
    uint64_t v = 0;
    memcpy(&v, bytes, n);
    return v;
}

static uint64_t hash_of(uint32_t type, const void *payload, size_t bytes) {
    const char *at = payload;
    uint64_t h = (uint64_t)type << 32 ^ bytes;
    for (; bytes >= 8; bytes -= 8, at += 8) h = (h ^ load_u64(at, 8)) * UINT64_C(0x9E3779B97F4A7C15), h ^= h >> 32;
    h = (h ^ load_u64(at, bytes)) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static bool is_record(const tide__log_record *r, uint32_t type, const void *payload, size_t bytes) {
    return r->type == type && r->payload_bytes == bytes && memcmp(r + 1, payload, bytes) == 0;
}

/// The slot that holds the record, or the free one where it belongs. The table is never full.
static _Atomic(const tide__log_record *) *slot_of(tide__name_table *t, uint32_t type, const void *payload, size_t bytes,
                                                  const tide__log_record **found) {
    for (size_t i = (size_t)hash_of(type, payload, bytes);; i++) {
        _Atomic(const tide__log_record *) *slot = &t->slots[i & (t->cap - 1)];
        *found = atomic_load_explicit(slot, memory_order_acquire);
        if (*found == NULL || is_record(*found, type, payload, bytes)) return slot;
    }
}

static tide__name_table *new_table(size_t cap) {
    tide__name_table *t = tide_host_calloc(1, sizeof *t + cap * sizeof t->slots[0]);
    if (t != NULL) t->cap = cap;
    return t;
}

tide_status tide__feed_names_init(tide__feed *f, tide_error *err) {
    tide__name_table *t = new_table(FIRST_CAP);
    if (t == NULL) return TIDE_NO_MEMORY(err, "for the names of a feed");
    atomic_init(&f->names, t);
    return TIDE_OK;
}

void tide__feed_names_deinit(tide__feed *f) {
    tide__name_table *t = atomic_load_explicit(&f->names, memory_order_relaxed);
    while (t != NULL) {
        tide__name_table *smaller = t->smaller;
        tide_host_free(t);
        t = smaller;
    }
}

/// A larger table that holds the same. False: no memory; the old one may fill up further, up to three quarters: a
/// fuller one is searched for long.
static bool make_larger(tide__feed *f, tide__name_table *old) {
    tide__name_table *t = new_table(2 * old->cap);
    if (t == NULL) return f->n_names < old->cap / 4 * 3;
    for (size_t i = 0; i < old->cap; i++) {
        const tide__log_record *r = atomic_load_explicit(&old->slots[i], memory_order_relaxed), *none;
        if (r == NULL) continue;
        atomic_store_explicit(slot_of(t, r->type, r + 1, r->payload_bytes, &none), r, memory_order_relaxed);
    }
    t->smaller = old;
    atomic_store_explicit(&f->names, t, memory_order_release);
    return true;
}

// ---- the log ----

/// A further chunk, large enough for a record of `bytes`.
static tide_status add_chunk(tide__feed *f, size_t bytes, tide_error *err) {
    uint64_t chunk_bytes = TIDE__FEED_LOG_BYTES;
    if (sizeof *f->log + bytes > chunk_bytes) chunk_bytes = (sizeof *f->log + bytes + 4095) / 4096 * 4096;
    uint64_t at;
    void *chunk;
    TIDE_TRY(tide__feed_file_reserve(f, chunk_bytes, &at, err));
    tide_status st = tide__feed_file_make(f, at, chunk_bytes, &chunk, err);
    const tide__chunk_entry entry = {.offset = at, .bytes = chunk_bytes, .kind = TIDE__CHUNK_LOG};
    if (st == TIDE_OK) st = tide__feed_file_add(f, &entry, chunk, err);
    if (st != TIDE_OK) {
        tide__feed_file_drop(f, at, chunk_bytes);
        return st;
    }
    f->log = chunk;
    f->log_bytes = chunk_bytes;
    f->log_used = 0;
    return TIDE_OK;
}

/// Texts are followed by a zero byte at least and never by the end of the chunk, so that they can be compared where
/// they lie, many bytes at a time.
static tide_status append(tide__feed *f, tide__log_type type, uint32_t id, const void *payload, size_t bytes,
                          const tide__log_record **out, tide_error *err) {
    const size_t record_bytes = (sizeof(tide__log_record) + bytes + 1 + 7) / 8 * 8;
    if (atomic_load_explicit(&f->file.is_cut, memory_order_relaxed))
        return TIDE_FAIL(err, TIDE_ERR_IO, "%s", f->cut_words);
    uint64_t used = f->log_used; // what others have made of the file decides about no address
    if (sizeof *f->log + used + record_bytes + TIDE__TEXT_SLACK > f->log_bytes) {
        TIDE_TRY(add_chunk(f, record_bytes + TIDE__TEXT_SLACK, err));
        used = 0;
    }
    tide__log_record *r = (tide__log_record *)((char *)(f->log + 1) + used);
    *r = (tide__log_record){
        .bytes = (uint32_t)record_bytes, .type = (uint32_t)type, .id = id, .payload_bytes = (uint32_t)bytes};
    memcpy(r + 1, payload, bytes);
    f->log_used = used + record_bytes;
    atomic_store_explicit(&f->log->used_bytes, f->log_used, memory_order_release);
    *out = r;
    return TIDE_OK;
}

tide_status tide__feed_names_begin(tide__feed *f, const char *command, tide_error *err) {
    const tide__log_record *r;
    TIDE_TRY(add_chunk(f, 0, err));
    return command != NULL ? append(f, TIDE__LOG_COMMAND, 1, command, strlen(command), &r, err) : TIDE_OK;
}

// ---- runs and facts ----

tide_status tide__feed_register(tide__feed *f, tide__log_type type, const void *payload, size_t bytes,
                                tide_error *err) {
    if (bytes > TIDE__FEED_MAX_RECORD)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "cannot record a run: with its plan it takes more than 1 GiB");
    const tide__log_record *r;
    pthread_mutex_lock(&f->lock);
    const tide_status st = append(f, type, f->n_of[type] + 1, payload, bytes, &r, err);
    if (st == TIDE_OK) f->n_of[type]++;
    pthread_mutex_unlock(&f->lock);
    return st;
}

uint64_t tide__feed_n_registered(const tide__feed *feed) {
    tide__feed *f = (tide__feed *)(uintptr_t)feed; // a lock is no change
    pthread_mutex_lock(&f->lock);
    const uint64_t n = (uint64_t)f->n_of[TIDE__LOG_RUN] + f->n_of[TIDE__LOG_FACT];
    pthread_mutex_unlock(&f->lock);
    return n;
}

// ---- names ----

static uint32_t most_of(tide__log_type type) {
    if (type == TIDE__LOG_DEVICE) return TIDE__FEED_MAX_DEVICES;
    if (type == TIDE__LOG_ALLOCATOR) return TIDE__FEED_MAX_ALLOCATORS;
    return UINT32_MAX;
}

/// With the lock held: found meanwhile, or new.
static tide_status find_or_add(tide__feed *f, tide__log_type type, const void *payload, size_t bytes,
                               const tide__log_record **out, tide_error *err) {
    tide__name_table *t = atomic_load_explicit(&f->names, memory_order_relaxed);
    slot_of(t, (uint32_t)type, payload, bytes, out);
    if (*out != NULL) return TIDE_OK;
    if (f->n_of[type] >= most_of(type))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%s",
                         type == TIDE__LOG_DEVICE ? "more than 32 devices" : "more than 255 allocators");
    if (bytes > TIDE__FEED_MAX_TEXT) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a name of it is longer than 16 MiB");
    if (2 * (f->n_names + 1) > t->cap && !make_larger(f, t)) return TIDE_NO_MEMORY(err, "for a new name");
    const tide__log_record *r;
    TIDE_TRY(append(f, type, f->n_of[type] + 1, payload, bytes, &r, err));
    f->n_of[type]++;
    f->n_names++;
    t = atomic_load_explicit(&f->names, memory_order_relaxed);
    atomic_store_explicit(slot_of(t, (uint32_t)type, payload, bytes, out), r, memory_order_release);
    *out = r;
    return TIDE_OK;
}

void tide__feed_refuse(tide__feed *f, tide_status st, const char *what) {
    if (atomic_fetch_add_explicit(&f->n_refused, 1, memory_order_relaxed) != 0) return;
    pthread_mutex_lock(&f->lock);
    const tide_status kept = TIDE_FAIL(&f->error, st, "cannot record an event: %s", what);
    (void)kept;
    pthread_mutex_unlock(&f->lock);
}

const tide__log_record *tide__feed_intern(tide__feed *f, tide__log_type type, const void *payload, size_t bytes) {
    const tide__log_record *r;
    slot_of(atomic_load_explicit(&f->names, memory_order_acquire), (uint32_t)type, payload, bytes, &r);
    if (r != NULL) return r;
    tide_error err = TIDE_ERROR_INIT;
    const tide__caller_state caller = tide__hold_caller();
    pthread_mutex_lock(&f->lock);
    const tide_status st = find_or_add(f, type, payload, bytes, &r, &err);
    pthread_mutex_unlock(&f->lock);
    if (st != TIDE_OK) tide__feed_refuse(f, st, err.msg);
    tide__release_caller(caller);
    return st == TIDE_OK ? r : NULL;
}

void tide__feed_log_thread(tide__feed *f, uint32_t number) {
    char name[32] = "";
    if (pthread_getname_np(pthread_self(), name, sizeof name) != 0) name[0] = '\0';
    const tide__log_record *r;
    pthread_mutex_lock(&f->lock);
    // A name is no event: a thread without one is recorded all the same.
    const tide_status st = append(f, TIDE__LOG_THREAD, number, name, strlen(name), &r, NULL);
    (void)st;
    pthread_mutex_unlock(&f->lock);
}

// ---- texts and scopes to numbers ----
//
// When a thread's cache has no entry. A scope is one (name, parent, kind, step). It is entered again and again, each
// time as a struct on the stack of the recorded program:
//
//     address, entry the same          the same entering: nothing to compare
//     address the same, entry another  compare its fields with those of last time
//     else                             by content, in the feed's table

const tide__text_match *tide__feed_text(tide__feed *f, tide__producer *p, const char *text) {
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_TEXT, text, strlen(text));
    if (r == NULL) return NULL;
    tide__text_match *set = p->texts[tide__address_hash(text, TIDE__TEXT_SET_BITS)];
    int i = 0; // where the address was, or where the oldest is
    while (i < TIDE__TEXT_WAYS - 1 && set[i].key != text) i++;
    for (; i > 0; i--) set[i] = set[i - 1];
    tide__text_match_set(&set[0], text, tide__record_text(r), r->id);
    return &set[0];
}

static tide__scope_entry *cached(tide__producer *p, const tide_scope *s) {
    return &p->scopes[tide__address_hash(s, TIDE__SCOPE_BITS)];
}

static bool is_same_entering(const tide__scope_entry *c, const tide_scope *s) {
    return c->key == s && s->entry != 0 && c->entry == s->entry;
}

/// Number of `s` under the parent with number `parent`; the cache knows it afterwards.
static bool resolve(tide__feed *f, tide__producer *p, const tide_scope *s, uint32_t parent, uint32_t *number) {
    tide__scope_entry *c = cached(p, s);
    const char *name = s->name != NULL ? s->name : "";
    const int32_t step = s->index < 0 ? -1 : s->index;
    if (c->key == s && c->parent == parent && c->kind == (int32_t)s->kind && c->step == step &&
        strcmp(c->name, name) == 0) {
        c->entry = s->entry;
        *number = c->number;
        return true;
    }
    const tide__text_match *text = tide__text_cached(p, name);
    if (text == NULL) text = tide__feed_text(f, p, name);
    if (text == NULL) return false;
    const tide__log_scope payload = {
        .text_id = text->number, .parent_id = parent, .kind = (int32_t)s->kind, .step = step};
    const tide__log_record *r = tide__feed_intern(f, TIDE__LOG_SCOPE, &payload, sizeof payload);
    if (r == NULL) return false;
    *c = (tide__scope_entry){.key = s,
                             .entry = s->entry,
                             .name = text->copy,
                             .parent = parent,
                             .number = r->id,
                             .kind = payload.kind,
                             .step = step};
    *number = r->id;
    return true;
}

/// From the innermost known scope, or from outside all, inwards. Scopes have no list of their children, so each level
/// is found by walking outwards again: chains are short, or known to the cache but for their last link.
bool tide__feed_scope_number(tide__feed *f, tide__producer *p, uint64_t thread, const tide_scope *scope,
                             uint32_t *number) {
    if (p->scopes_of != thread) {
        memset(p->scopes, 0, sizeof p->scopes);
        p->scopes_of = thread;
    }
    size_t depth = 0; // of scopes to resolve
    uint32_t parent = 0;
    for (const tide_scope *s = scope; s != NULL; s = s->parent, depth++) {
        if (is_same_entering(cached(p, s), s)) {
            parent = cached(p, s)->number;
            break;
        }
        if (depth == TIDE__MAX_SCOPE_DEPTH) {
            tide__feed_refuse(f, TIDE_ERR_INVALID, "its scopes are nested more than 1024 deep");
            return false;
        }
    }
    for (; depth > 0; depth--) {
        const tide_scope *s = scope;
        for (size_t i = 1; i < depth; i++) s = s->parent;
        if (!resolve(f, p, s, parent, &parent)) return false;
    }
    // The ring may still be another thread's: then the next event asks again.
    const bool is_known = thread == p->thread && scope->entry != 0;
    p->scope =
        is_known ? (tide__last_scope){.key = scope, .entry = scope->entry, .number = parent} : (tide__last_scope){0};
    *number = parent;
    return true;
}
