// SPDX-License-Identifier: MIT
//
// ledger: every live block by name, under one mutex. See ledger.h.
//
// Per event: a lock, a probe or two in a table of 64-byte entries, and for an alloc two or three texts that are looked
// up by hash. The blocks are sorted only when the largest ones are asked for.
#include "core/memory/ledger.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/utf8.h"

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
    TIDE_ASSERT(t->texts[t->n] != NULL && t->texts[t->n] != text);
    return (text_id)t->n++ + FIRST_TEXT;
}

static const char *text_of(const text_table *t, text_id id) {
    TIDE_ASSERT(id < t->n + FIRST_TEXT);
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

/// The innermost scope that is no run: a run is too large to be of help.
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
    case TIDE_MEM_DEVICE_USAGE:
    case TIDE_MEM_SIZED:
        return; // memory of the allocator, a moment, a device: no block; or one that stays as it is
    }
}

static void on_memory(void *self, const tide_memory_event *event) {
    tide_ledger *l = self;
    pthread_mutex_lock(&l->lock);
    take_event(l, event);
    pthread_mutex_unlock(&l->lock);
}

tide_observer tide_ledger_observer(tide_ledger *l) { return (tide_observer){.self = l, .on_memory = on_memory}; }

// ---- look-ups ----

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

// ---- reports as text ----
//
// Why an allocation failed, and which blocks are still alive. Names may come from files: control characters in them are
// shown as '?', so that a report cannot steer a terminal.

/// Two sources can meet a request: a free block that the allocator keeps, or fresh memory up to what it may still take.
///
///     headroom known        max(largest free, headroom): arenas and pages cannot take more, theirs is 0; a limit's is
///                           what is left of its budget
///     headroom unknown      the system decides, and it has just refused: how much less it would have given is
///                           not known
///
/// Rounded down to the requested alignment, because every block is rounded up at least to that. An allocator that
/// rounds up further (cpu_caching under a limit) gives less; how much less is not known here. When the answer would be
/// at least what was asked, an allocator below refused for another reason: not known either.
uint64_t tide_oom_would_fit(const tide_allocator_stats *s, uint64_t asked_bytes, uint64_t align_bytes) {
    if (s->headroom_bytes == TIDE_UNKNOWN_BYTES) return TIDE_UNKNOWN_BYTES;
    uint64_t most = s->largest_free_bytes > s->headroom_bytes ? s->largest_free_bytes : s->headroom_bytes;
    if (align_bytes > 1) most -= most % align_bytes;
    return most < asked_bytes ? most : TIDE_UNKNOWN_BYTES;
}

/// `name`, made safe, padded with spaces to `width` characters.
static void add_name(tide_text *out, const char *name, size_t width) {
    size_t n_chars = 0;
    uint32_t cp;
    for (size_t step; (step = tide_utf8_decode(name, &cp)) > 0; name += step, n_chars++) {
        char bytes[4];
        const bool bad = tide_utf8_is_unsafe(cp);
        tide_text_add_n(out, bytes, tide_utf8_encode(bad ? '?' : cp, bytes));
    }
    for (; n_chars < width; n_chars++) tide_text_add_n(out, " ", 1);
}

static void add_bytes(tide_text *out, uint64_t bytes) {
    char text[24];
    if (bytes == TIDE_UNKNOWN_BYTES)
        tide_text_add(out, "unknown");
    else
        tide_text_add(out, tide_format_bytes(bytes, text, sizeof text));
}

static void add_fact(tide_text *out, const char *what, uint64_t bytes) {
    tide_text_add(out, what);
    add_bytes(out, bytes);
}

// ---- live blocks ----

static const char no_name[] = "-";

/// @param with_age  a last column
static void add_head(tide_text *out, bool with_age) {
    tide_text_addf(out, "  %14s  %-12s  %-24s  ", "bytes", "kind", "tag");
    tide_text_addf(out, with_age ? "%-24s  age\n" : "%s\n", "operator");
}

/// @param age  NULL: not shown
static void add_block(tide_text *out, const tide_live_block *b, const char *age) {
    tide_text_addf(out, "  %14" PRIu64 "  %-12s  ", b->requested_bytes, tide_memory_kind_name(b->kind));
    add_name(out, b->tag != NULL ? b->tag : no_name, 24);
    tide_text_add(out, "  ");
    add_name(out, b->op != NULL ? b->op : no_name, age != NULL ? 24 : 0);
    if (age != NULL) tide_text_addf(out, "  %s", age);
    if (b->pending) tide_text_add(out, "  (released, but a stream may still use it)");
    tide_text_add(out, "\n");
}

/// What is not listed, in the column of bytes, so that the column adds up to what is live.
static void add_rest(tide_text *out, const tide_live_block *blocks, size_t n, size_t n_all, uint64_t live_bytes) {
    for (size_t i = 0; i < n; i++) live_bytes -= blocks[i].requested_bytes;
    TIDE_ASSERT(n <= n_all && (n < n_all || live_bytes == 0));
    if (n_all > n) tide_text_addf(out, "  %14" PRIu64 "  in %zu more\n", live_bytes, n_all - n);
}

void tide_live_blocks_text(const tide_live_block *blocks, size_t n, uint64_t now_ns, tide_text *out) {
    if (n > 0) add_head(out, true);
    for (size_t i = 0; i < n; i++) {
        char age[24];
        const uint64_t born = blocks[i].t_ns;
        add_block(out, &blocks[i], tide_format_ns(now_ns > born ? now_ns - born : 0, "us", age, sizeof age));
    }
}

// ---- out of memory ----

static void add_asked(const tide_oom_report *r, tide_text *out) {
    char device[32], bytes[24];
    tide_text_addf(out, "out of memory on %s: asked %s (%" PRIu64 " bytes",
                   tide_device_format(r->device, device, sizeof device),
                   tide_format_bytes(r->asked_bytes, bytes, sizeof bytes), r->asked_bytes);
    if (r->align_bytes > 0) tide_text_addf(out, ", alignment %" PRIu64, r->align_bytes);
    tide_text_addf(out, ") of kind %s\n  for             ", tide_memory_kind_name(r->kind));
    add_name(out, r->tag != NULL ? r->tag : "(not named)", 0);
    if (r->op != NULL) {
        tide_text_add(out, ", operator ");
        add_name(out, r->op, 0);
    }
    tide_text_add(out, "\n  allocator       ");
    add_name(out, r->allocator != NULL ? r->allocator : "(not named)", 0);
    tide_text_add(out, "\n");
}

static void add_numbers(const tide_oom_report *r, tide_text *out) {
    const tide_allocator_stats *s = &r->stats;
    if (r->would_fit_bytes == 0)
        tide_text_add(out, "  would have fit  nothing");
    else if (r->would_fit_bytes != TIDE_UNKNOWN_BYTES)
        add_fact(out, "  would have fit  at most ", r->would_fit_bytes);
    else if (s->headroom_bytes == TIDE_UNKNOWN_BYTES)
        add_fact(out, "  would have fit  not known: the system decides; without it ", s->largest_free_bytes);
    else // enough for what was asked
        tide_text_add(out, "  would have fit  not known: there is room, but rounding or the system refused");
    add_fact(out, "\n  its numbers     requested ", s->requested_bytes);
    add_fact(out, ", active ", s->active_bytes);
    add_fact(out, ", cached ", s->cached_bytes);
    add_fact(out, ", reserved ", s->reserved_bytes);
    add_fact(out, "\n                  largest free block ", s->largest_free_bytes);
    add_fact(out, ", may still take ", s->headroom_bytes);
    tide_text_addf(out, ", pending frees %" PRIu64, s->n_pending);
    add_fact(out, " (", s->pending_bytes);
    tide_text_add(out, ")\n");
}

void tide_oom_report_text(const tide_oom_report *r, tide_text *out) {
    char device[32], bytes[24];
    add_asked(r, out);
    add_numbers(r, out);
    tide_text_addf(out, "  live on %s: %zu block%s, %s requested", tide_device_format(r->device, device, sizeof device),
                   r->n_live, r->n_live == 1 ? "" : "s", tide_format_bytes(r->live_bytes, bytes, sizeof bytes));
    if (r->n_blocks < r->n_live) tide_text_addf(out, "; the %zu largest:", r->n_blocks);
    tide_text_add(out, "\n");
    if (r->n_blocks > 0) add_head(out, false);
    for (size_t i = 0; i < r->n_blocks; i++) add_block(out, &r->blocks[i], NULL);
    add_rest(out, r->blocks, r->n_blocks, r->n_live, r->live_bytes);
}
