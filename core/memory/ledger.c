// SPDX-License-Identifier: MIT
//
// ledger: every live block by name, under one mutex. See ledger.h.
//
// Per event: a lock, a probe or two in a table of 64-byte entries, and for an alloc two or three texts that are looked
// up by hash. The blocks are sorted only when the largest ones are asked for.
#include "core/memory/ledger.h"

#include <assert.h>
#include <pthread.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"

// ---- texts ----

/// Number of a text: 0 is no text at all, 1 stands for one that found no memory.
typedef uint32_t text_id;

enum { NO_TEXT = 0, LOST_TEXT = 1, FIRST_TEXT = 2 };

/// Tags, operators and names of allocators, each kept once and never moved, so that a pointer to one is good as long as
/// the ledger. Runs repeat their tags: the table stays as small as the program that is watched.
typedef struct text_table {
    tide_strmap ids;
    const char **texts; // [n], owned by `ids`; the text with number i + FIRST_TEXT
    size_t n, cap;
} text_table;

/// The number of `text`, which is copied when it is new. Never fails: without memory it is LOST_TEXT.
static text_id put_text(text_table *t, const char *text) {
    if (text == NULL) return NO_TEXT;
    uint64_t known;
    if (tide_strmap_get(&t->ids, text, &known)) return (text_id)known;
    if (t->n >= UINT32_MAX - FIRST_TEXT || tide_host_grow(&t->texts, &t->cap, t->n + 1, sizeof *t->texts) != TIDE_OK ||
        tide_strmap_put(&t->ids, text, t->n + FIRST_TEXT) != TIDE_OK)
        return LOST_TEXT;
    t->texts[t->n] = tide_strmap_text(&t->ids, text);
    return (text_id)t->n++ + FIRST_TEXT;
}

static const char *text_of(const text_table *t, text_id id) {
    if (id == NO_TEXT) return NULL;
    return id == LOST_TEXT ? "(no memory for the name)" : t->texts[id - FIRST_TEXT];
}

// ---- the ledger ----

/// A live block: 64 bytes.
typedef struct entry {
    uint64_t id; // of the block
    uint64_t requested_bytes, reserved_bytes;
    uint64_t t_ns;
    uint64_t address;
    text_id tag, op, allocator;
    int32_t device_index;
    uint8_t device_type, kind;
    bool pending; // free requested, not completed
} entry;

struct tide_ledger {
    pthread_mutex_t lock; // guards all below
    tide_map blocks;      // of entry
    text_table texts;
    uint64_t last_id, n_lost;
    bool has_oom;
    tide_oom_report oom;
};

tide_status tide_ledger_create(tide_ledger **out, tide_error *err) {
    tide_ledger *l;
    TIDE_TRY(TIDE_NEW(&l, 1, err, "for a ledger of live blocks"));
    pthread_mutex_init(&l->lock, NULL);
    l->blocks = (tide_map)TIDE_MAP(entry);
    *out = l;
    return TIDE_OK;
}

void tide_ledger_destroy(tide_ledger *l) {
    if (l == NULL) return;
    tide_map_deinit(&l->blocks);
    tide_strmap_deinit(&l->texts.ids);
    tide_host_free(l->texts.texts);
    pthread_mutex_destroy(&l->lock);
    tide_host_free(l);
}

// ---- the largest blocks; the caller holds the lock ----

typedef struct filter {
    uint64_t after_id;
    const tide_device *device; // NULL: any
} filter;

static bool passes(const filter *f, const entry *e) {
    if (e->id <= f->after_id) return false;
    return f->device == NULL || ((int)e->device_type == (int)f->device->type && e->device_index == f->device->index);
}

static tide_live_block live_block(const tide_ledger *l, const entry *e) {
    return (tide_live_block){.block_id = e->id,
                             .device = {.type = (tide_device_type)e->device_type, .index = e->device_index},
                             .kind = (tide_memory_kind)e->kind,
                             .requested_bytes = e->requested_bytes,
                             .reserved_bytes = e->reserved_bytes,
                             .t_ns = e->t_ns,
                             .tag = text_of(&l->texts, e->tag),
                             .op = text_of(&l->texts, e->op),
                             .allocator = text_of(&l->texts, e->allocator),
                             .pending = e->pending};
}

/// Largest first, equal ones by id.
static bool comes_before(const tide_live_block *a, const tide_live_block *b) {
    if (a->requested_bytes != b->requested_bytes) return a->requested_bytes > b->requested_bytes;
    return a->block_id < b->block_id;
}

static void swap(tide_live_block *a, tide_live_block *b) {
    const tide_live_block was = *a;
    *a = *b;
    *b = was;
}

/// out[0, n) is a heap whose root comes last of all, but for out[i], which may have to go down.
static void sift_down(tide_live_block *out, size_t n, size_t i) {
    for (;;) {
        size_t last = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
            if (comes_before(&out[last], &out[child])) last = child;
        }
        if (last == i) return;
        swap(&out[i], &out[last]);
        i = last;
    }
}

static void sift_up(tide_live_block *out, size_t i) {
    for (; i > 0 && comes_before(&out[(i - 1) / 2], &out[i]); i = (i - 1) / 2) swap(&out[(i - 1) / 2], &out[i]);
}

/// A heap of the best so far, then taken apart from its end: O(live log n_max).
/// @return how many pass; the first n_max of them are in `out`
static size_t select_largest(const tide_ledger *l, const filter *f, tide_live_block *out, size_t n_max,
                             uint64_t *sum_bytes) {
    size_t n_all = 0, n = 0;
    for (size_t i = 0; i < l->blocks.cap; i++) {
        const entry *e = tide_map_at(&l->blocks, i);
        if (e == NULL || !passes(f, e)) continue;
        n_all++;
        *sum_bytes += e->requested_bytes;
        if (n_max == 0) continue;
        const tide_live_block b = live_block(l, e);
        if (n < n_max) {
            out[n] = b;
            sift_up(out, n++);
        } else if (comes_before(&b, &out[0])) {
            out[0] = b;
            sift_down(out, n, 0);
        }
    }
    for (size_t rest = n; rest > 1; rest--) {
        swap(&out[0], &out[rest - 1]);
        sift_down(out, rest - 1, 0);
    }
    return n_all;
}

// ---- events ----

/// The innermost scope that is no run: a run is too large to say who it was.
static const char *op_of(const tide_memory_event *e) {
    const tide_scope *s = e->scope;
    while (s != NULL && s->kind == TIDE_SCOPE_RUN) s = s->parent;
    return s != NULL ? s->name : NULL;
}

static void enter_block(tide_ledger *l, const tide_memory_event *e) {
    static_assert((int)TIDE_N_KINDS <= 256 && (int)TIDE_MAX_DEVICE_TYPES <= 256, "both fit into a byte");
    if (e->block_id > l->last_id) l->last_id = e->block_id;
    const entry made = {.id = e->block_id,
                        .requested_bytes = e->requested_bytes,
                        .reserved_bytes = e->reserved_bytes,
                        .t_ns = e->t_ns,
                        .address = e->address,
                        .tag = put_text(&l->texts, e->tag),
                        .op = put_text(&l->texts, op_of(e)),
                        .allocator = put_text(&l->texts, e->allocator),
                        .device_index = e->device.index,
                        .device_type = (uint8_t)e->device.type,
                        .kind = (uint8_t)e->kind};
    // No number, or one that is out already: the table could not tell the two apart.
    const bool unknown = e->block_id != 0 && tide_map_find(&l->blocks, e->block_id) == NULL;
    if (!unknown || !tide_map_put(&l->blocks, &made)) l->n_lost++;
}

static void note_oom(tide_ledger *l, const tide_memory_event *e) {
    if (l->has_oom) return;
    l->has_oom = true;
    tide_oom_report *r = &l->oom;
    *r = (tide_oom_report){.t_ns = e->t_ns,
                           .asked_bytes = e->requested_bytes,
                           .align_bytes = e->align_bytes,
                           .device = e->device,
                           .kind = e->kind,
                           .allocator = text_of(&l->texts, put_text(&l->texts, e->allocator)),
                           .tag = text_of(&l->texts, put_text(&l->texts, e->tag)),
                           .op = text_of(&l->texts, put_text(&l->texts, op_of(e))),
                           .would_fit_bytes = TIDE_UNKNOWN_BYTES};
    if (e->stats != NULL) {
        r->stats = *e->stats;
        r->would_fit_bytes = tide_oom_would_fit(e->stats, e->requested_bytes, e->align_bytes);
    }
    const filter f = {.device = &e->device};
    r->n_live = select_largest(l, &f, r->blocks, TIDE_OOM_N_BLOCKS, &r->live_bytes);
    r->n_blocks = r->n_live < TIDE_OOM_N_BLOCKS ? r->n_live : TIDE_OOM_N_BLOCKS;
}

/// Blocks that lie in a pool go with it. Taking one out moves others towards its slot: the slot is looked at again.
static void forget_pool(tide_ledger *l, const tide_memory_event *e) {
    const filter f = {.device = &e->device};
    for (size_t i = 0; i < l->blocks.cap;) {
        entry *found = tide_map_at(&l->blocks, i);
        if (found != NULL && passes(&f, found) && found->address >= e->address &&
            found->address - e->address < e->reserved_bytes) {
            tide_map_take(&l->blocks, found);
        } else {
            i++;
        }
    }
}

static void take_event(tide_ledger *l, const tide_memory_event *e) {
    entry *found;
    switch (e->op) {
    case TIDE_MEM_ALLOC:
        enter_block(l, e);
        return;
    case TIDE_MEM_FREE_REQUESTED:
        found = tide_map_find(&l->blocks, e->block_id);
        if (found != NULL) found->pending = true;
        return;
    case TIDE_MEM_FREE_COMPLETED:
        // A block that is not there was lost, or allocated before the ledger began to listen.
        found = tide_map_find(&l->blocks, e->block_id);
        if (found != NULL) tide_map_take(&l->blocks, found);
        return;
    case TIDE_MEM_OOM:
        note_oom(l, e);
        return;
    case TIDE_MEM_POOL_DISCARD:
        forget_pool(l, e);
        return;
    case TIDE_MEM_SEGMENT_ALLOC:
    case TIDE_MEM_SEGMENT_FREE:
    case TIDE_MEM_SNAPSHOT:
        return; // memory of the allocator, a moment: no block
    }
}

static void on_memory(void *self, const tide_memory_event *event) {
    tide_ledger *l = self;
    pthread_mutex_lock(&l->lock);
    take_event(l, event);
    pthread_mutex_unlock(&l->lock);
}

tide_observer tide_ledger_observer(tide_ledger *l) { return (tide_observer){.self = l, .on_memory = on_memory}; }

// ---- questions ----

size_t tide_ledger_largest(tide_ledger *l, uint64_t after_id, tide_live_block *out, size_t n_max) {
    const filter f = {.after_id = after_id};
    uint64_t sum_bytes = 0;
    pthread_mutex_lock(&l->lock);
    const size_t n = select_largest(l, &f, out, n_max, &sum_bytes);
    pthread_mutex_unlock(&l->lock);
    return n;
}

uint64_t tide_ledger_last_id(tide_ledger *l) {
    pthread_mutex_lock(&l->lock);
    const uint64_t id = l->last_id;
    pthread_mutex_unlock(&l->lock);
    return id;
}

uint64_t tide_ledger_n_lost(tide_ledger *l) {
    pthread_mutex_lock(&l->lock);
    const uint64_t n = l->n_lost;
    pthread_mutex_unlock(&l->lock);
    return n;
}

bool tide_ledger_oom(tide_ledger *l, tide_oom_report *out) {
    pthread_mutex_lock(&l->lock);
    const bool there = l->has_oom;
    if (there) *out = l->oom;
    pthread_mutex_unlock(&l->lock);
    return there;
}

void tide_ledger_clear_oom(tide_ledger *l) {
    pthread_mutex_lock(&l->lock);
    l->has_oom = false;
    pthread_mutex_unlock(&l->lock);
}
