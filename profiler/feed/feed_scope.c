// SPDX-License-Identifier: MIT
//
// Texts and scopes to numbers, when the quick look at a thread's cache found nothing. See feed_internal.h.
//
// A scope is one (name, parent, kind, step). It is entered again and again, each time as a struct on somebody's stack:
//
//     address, entry the same          the same entering: nothing to compare
//     address the same, entry another  compare its fields with those of last time
//     else                             by content, in the feed's table
#include <string.h>

#include "profiler/feed/feed_internal.h"

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
