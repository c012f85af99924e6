// SPDX-License-Identifier: MIT
//
// Who allocates in steady state: an observer that counts by tag and operator from the mark "warm" on. See session.h.
#include <string.h>

#include "cli/session_internal.h"
#include "core/base/host_alloc.h"

static cli_warm_site *site_of(warm_watch *w, const char *tag, const char *op) {
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(w->sites[i].tag, tag) == 0 && strcmp(w->sites[i].op, op) == 0) return &w->sites[i];
    }
    cli_warm_site site = {.tag = tide_host_strdup(tag), .op = tide_host_strdup(op)};
    if (site.tag == NULL || site.op == NULL ||
        tide_host_grow(&w->sites, &w->cap, w->n + 1, sizeof *w->sites) != TIDE_OK) {
        tide_host_free(site.tag);
        tide_host_free(site.op);
        return NULL; // the run's count has it all the same
    }
    w->sites[w->n] = site;
    return &w->sites[w->n++];
}

/// As the ledger says it: the innermost scope that is no run.
static const char *op_of(const tide_memory_event *e) {
    const tide_scope *s = e->scope;
    while (s != NULL && s->kind == TIDE_SCOPE_RUN) s = s->parent;
    return s != NULL ? s->name : "";
}

static void hear(void *self, const tide_memory_event *e) {
    warm_watch *w = self;
    if (e->op != TIDE_MEM_ALLOC || !atomic_load(&w->is_armed)) return;
    pthread_mutex_lock(&w->lock);
    cli_warm_site *site = site_of(w, e->tag != NULL ? e->tag : "", op_of(e));
    if (site != NULL) {
        site->kind = e->kind;
        site->n++;
        if (e->requested_bytes > site->largest_bytes) site->largest_bytes = e->requested_bytes;
    }
    pthread_mutex_unlock(&w->lock);
}

tide_observer cli__warm_watch_observer(warm_watch *w) {
    return (tide_observer){.self = w, .on_memory = hear, .no_time = true};
}

void cli__warm_watch_begin(warm_watch *w) {
    atomic_store(&w->is_armed, false);
    for (size_t i = 0; i < w->n; i++) {
        tide_host_free(w->sites[i].tag);
        tide_host_free(w->sites[i].op);
    }
    w->n = 0;
}

void cli__warm_watch_arm(warm_watch *w, bool is_armed) { atomic_store(&w->is_armed, is_armed); }

void cli__warm_watch_deinit(warm_watch *w) {
    cli__warm_watch_begin(w);
    tide_host_free(w->sites);
    pthread_mutex_destroy(&w->lock);
}
