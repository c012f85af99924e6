// SPDX-License-Identifier: MIT
//
// The sink of a pickled snapshot: which dict is what is told by its keys. See torch_snapshot.h.
#include "profiler/import/torch_snapshot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/import/torch_stacks.h"

// ---- keys and words, in the order of their text numbers ----

#define KEYS(XX)                                                                                                       \
    XX(SEGMENTS, "segments")                                                                                           \
    XX(DEVICE_TRACES, "device_traces")                                                                                 \
    XX(SETTINGS, "allocator_settings")                                                                                 \
    XX(ANNOTATIONS, "external_annotations")                                                                            \
    XX(ACTION, "action")                                                                                               \
    XX(ADDR, "addr")                                                                                                   \
    XX(SIZE, "size")                                                                                                   \
    XX(STREAM, "stream")                                                                                               \
    XX(TIME_US, "time_us")                                                                                             \
    XX(FRAMES, "frames")                                                                                               \
    XX(DEVICE, "device")                                                                                               \
    XX(ADDRESS, "address")                                                                                             \
    XX(TOTAL_SIZE, "total_size")                                                                                       \
    XX(REQUESTED_SIZE, "requested_size")                                                                               \
    XX(SEGMENT_TYPE, "segment_type")                                                                                   \
    XX(POOL, "segment_pool_id")                                                                                        \
    XX(IS_EXPANDABLE, "is_expandable")                                                                                 \
    XX(BLOCKS, "blocks")                                                                                               \
    XX(STATE, "state")                                                                                                 \
    XX(NAME, "name")                                                                                                   \
    XX(FILENAME, "filename")                                                                                           \
    XX(LINE, "line")                                                                                                   \
    XX(STAGE, "stage")                                                                                                 \
    XX(USER_METADATA, "user_metadata")                                                                                 \
    XX(DEVICE_FREE, "device_free")                                                                                     \
    XX(CONF, "PYTORCH_CUDA_ALLOC_CONF")                                                                                \
    XX(MAX_SPLIT, "max_split_size")                                                                                    \
    XX(GC_THRESHOLD, "garbage_collection_threshold")                                                                   \
    XX(EXPANDABLE, "expandable_segments")                                                                              \
    XX(ROUNDUP, "roundup_power2_divisions")
#define WORDS(XX)                                                                                                      \
    XX(ALLOC, "alloc")                                                                                                 \
    XX(FREE_REQUESTED, "free_requested")                                                                               \
    XX(FREE_COMPLETED, "free_completed")                                                                               \
    XX(SEGMENT_ALLOC, "segment_alloc")                                                                                 \
    XX(SEGMENT_FREE, "segment_free")                                                                                   \
    XX(SEGMENT_MAP, "segment_map")                                                                                     \
    XX(SEGMENT_UNMAP, "segment_unmap")                                                                                 \
    XX(SNAPSHOT, "snapshot")                                                                                           \
    XX(OOM, "oom")                                                                                                     \
    XX(ACTIVE, "active_allocated")                                                                                     \
    XX(PENDING, "active_pending_free")                                                                                 \
    XX(AWAITING, "active_awaiting_free")                                                                               \
    XX(START, "START")                                                                                                 \
    XX(END, "END")                                                                                                     \
    XX(SMALL, "small")
enum {
    NO_TEXT,
#define XX(name, text) KEY_##name,
    KEYS(XX)
#undef XX
        FIRST_WORD,
    LAST_KEY = FIRST_WORD - 1, // words count on behind it
#define XX(name, text) WORD_##name,
    WORDS(XX)
#undef XX
        N_KNOWN
};
_Static_assert((int)WORD_ALLOC == (int)FIRST_WORD && WORD_OOM - WORD_ALLOC == TIDE__TORCH_OOM, "actions by words");
static const char *const known[N_KNOWN] = {"",
#define XX(name, text) text,
                                           KEYS(XX) WORDS(XX)
#undef XX
};

// ---- what containers have become ----

typedef enum thing {
    THING_EMPTY, // nothing was put in
    THING_EVENT,
    THING_FRAME,
    THING_SEGMENT,
    THING_BLOCK,
    THING_ANNOTATION, // a dict; in a list: such dicts
    THING_ROOT,
    THING_SETTINGS,
    THING_LISTS,
    THING_STACK,
    THING_ROUNDUP,
    THING_OTHER,
} thing;

enum { THING_SHIFT = 56 };
static uint64_t thing_of(thing t, uint64_t i) { return (uint64_t)t << THING_SHIFT | i; }
static thing type_of(uint64_t v) { return (thing)(v >> THING_SHIFT); }
static uint64_t index_of(uint64_t v) { return v & ((UINT64_C(1) << THING_SHIFT) - 1); }

typedef struct range {
    uint64_t first, n;
} range;

typedef struct sink {
    tide__torch_snapshot *s;
    const char *path;
    tide_strmap by_text;
    size_t cap_texts, cap_segments, cap_blocks, cap_annotations, cap_tracks;
    size_t text_bytes;
    uint64_t *dicts; // [n_dicts] thing_of
    uint64_t *lists; // [n_lists] thing_of: of a stack its node, else a number of `ranges`
    range *ranges;   // [n_ranges]
    size_t n_dicts, cap_dicts, n_lists, cap_lists, n_ranges, cap_ranges;
    tide__torch_tree tree;
    // The list of frames that was put into last: innermost first, until it is used or another one comes.
    uint64_t open_list; // UINT64_MAX: none
    uint32_t *open;     // [n_open]
    size_t n_open, cap_open;
    uint64_t traces;                            // list; UINT64_MAX: none
    uint64_t n_listed[THING_OTHER];             // by kind: dicts up to here are in a list
    uint32_t roundup_of[TIDE_PYTORCH_ROUNDUPS]; // of the dict of numbers that was read last
    uint64_t roundup_dict;
} sink;

static tide_status bad(const sink *k, tide_error *err, const char *what) {
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", k->path, what);
}

static size_t held_bytes(void *ctx) {
    const sink *k = ctx;
    const tide__torch_snapshot *s = k->s;
    return k->cap_texts * sizeof *s->texts + k->text_bytes + tide__torch_tree_bytes(&k->tree) +
           k->cap_segments * sizeof *s->segments + k->cap_blocks * sizeof *s->blocks +
           k->cap_annotations * sizeof *s->annotations + k->cap_dicts * sizeof *k->dicts +
           k->cap_lists * sizeof *k->lists + k->cap_ranges * sizeof *k->ranges;
}

// ---- texts ----

static tide_status put_text(sink *k, const char *text, size_t n, uint64_t *id, tide_error *err) {
    tide__torch_snapshot *s = k->s;
    if (tide_strmap_get(&k->by_text, text, id)) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&s->texts, &k->cap_texts, s->n_texts + 1, err, "for the texts of '%s'", k->path));
    TIDE_TRY(TIDE_COPY_TEXT(&s->texts[s->n_texts], text, err, "for the texts of '%s'", k->path));
    *id = s->n_texts++;
    k->text_bytes += 3 * n + 64;
    if (tide_strmap_put(&k->by_text, text, *id) != TIDE_OK) return TIDE_NO_MEMORY(err, "for '%s'", k->path);
    return TIDE_OK;
}

static tide_status take_text(void *ctx, const char *bytes, size_t n, uint64_t *id, tide_error *err) {
    sink *k = ctx;
    if (k->s->n_texts >= UINT32_MAX) return bad(k, err, "it has more than 2^32 texts");
    return put_text(k, bytes, n, id, err); // a zero byte ends it: names have none
}

static tide_status put_known(sink *k, tide_error *err) {
    for (size_t i = 0; i < N_KNOWN; i++) {
        uint64_t id;
        TIDE_TRY(put_text(k, known[i], strlen(known[i]), &id, err));
    }
    return TIDE_OK;
}

// ---- containers ----

static tide_status new_list(void *ctx, uint64_t *id, tide_error *err) {
    sink *k = ctx;
    TIDE_TRY(TIDE_GROW(&k->lists, &k->cap_lists, k->n_lists + 1, err, "for the lists of '%s'", k->path));
    *id = k->n_lists;
    k->lists[k->n_lists++] = thing_of(THING_EMPTY, 0);
    return TIDE_OK;
}

static tide_status new_dict(void *ctx, uint64_t *id, tide_error *err) {
    sink *k = ctx;
    TIDE_TRY(TIDE_GROW(&k->dicts, &k->cap_dicts, k->n_dicts + 1, err, "for the dicts of '%s'", k->path));
    *id = k->n_dicts;
    k->dicts[k->n_dicts++] = thing_of(THING_EMPTY, 0);
    return TIDE_OK;
}

#define NO_POOL UINT64_MAX
/// Two numbers, as ids of pools are: both in one. Another tuple is nothing that is looked at.
static tide_status take_tuple(void *ctx, const tide__pickle_value *items, size_t n, uint64_t *id, tide_error *err) {
    (void)ctx, (void)err;
    const bool is_pool = n == 2 && items[0].type == TIDE__PICKLE_INT && items[1].type == TIDE__PICKLE_INT &&
                         items[0].v < UINT32_MAX && items[1].v < UINT32_MAX;
    *id = is_pool ? items[0].v << 32 | items[1].v : NO_POOL;
    return TIDE_OK;
}

// ---- values of keys ----

static bool is_int(tide__pickle_value v) { return v.type == TIDE__PICKLE_INT || v.type == TIDE__PICKLE_BOOL; }

/// All 64 bits: addresses and streams.
static bool bits_of(tide__pickle_value v, uint64_t *out) {
    *out = v.v;
    return is_int(v) || v.type == TIDE__PICKLE_UINT;
}
static bool bytes_of(tide__pickle_value v, uint64_t *out) {
    *out = v.v;
    return is_int(v) && v.v <= TIDE__TORCH_MAX_BYTES;
}
static bool i64_of(tide__pickle_value v, int64_t *out) {
    *out = (int64_t)v.v;
    return is_int(v);
}
static bool text_of(tide__pickle_value v, uint32_t *out) {
    *out = v.type == TIDE__PICKLE_TEXT ? (uint32_t)v.v : NO_TEXT;
    return v.type == TIDE__PICKLE_TEXT || v.type == TIDE__PICKLE_NONE;
}
static bool is_true(tide__pickle_value v) { return is_int(v) && v.v != 0; }

static tide_status bad_value(const sink *k, uint64_t key, const char *of, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': '%s' of %s is not what PyTorch writes", k->path,
                     k->s->texts[key], of);
}

// ---- stacks ----

/// The open list of frames is whole: it becomes a node.
static tide_status close_stack(sink *k, tide_error *err) {
    uint32_t node;
    if (k->open_list == UINT64_MAX) return TIDE_OK;
    TIDE_TRY(tide__torch_tree_stack(&k->tree, k->s, k->open, k->n_open, &node, err));
    k->lists[k->open_list] = thing_of(THING_STACK, node);
    k->open_list = UINT64_MAX;
    k->n_open = 0;
    return TIDE_OK;
}

static tide_status put_frames(sink *k, uint64_t list, const tide__pickle_value *items, size_t n, tide_error *err) {
    if (k->open_list != list) {
        TIDE_TRY(close_stack(k, err));
        if (type_of(k->lists[list]) != THING_EMPTY) return bad(k, err, "a list of frames grows after it was used");
        k->open_list = list;
        k->lists[list] = thing_of(THING_STACK, 0);
    }
    TIDE_TRY(TIDE_GROW(&k->open, &k->cap_open, k->n_open + n, err, "for the stacks of '%s'", k->path));
    for (size_t i = 0; i < n; i++) {
        const uint64_t dict = items[i].type == TIDE__PICKLE_DICT ? k->dicts[items[i].v] : 0;
        if (type_of(dict) != THING_FRAME) return bad(k, err, "a list of frames has something else in it");
        k->open[k->n_open++] = (uint32_t)index_of(dict);
    }
    return TIDE_OK;
}

static bool stack_of(sink *k, tide__pickle_value v, uint32_t *out, tide_status *st, tide_error *err) {
    *out = 0;
    if (v.type == TIDE__PICKLE_NONE) return true;
    if (v.type != TIDE__PICKLE_LIST) return false;
    if (v.v == k->open_list) *st = close_stack(k, err);
    if (type_of(k->lists[v.v]) == THING_STACK) *out = (uint32_t)index_of(k->lists[v.v]);
    return type_of(k->lists[v.v]) == THING_STACK || type_of(k->lists[v.v]) == THING_EMPTY;
}

// ---- dicts: one function for each ----
//
// A dict comes with all its pairs at once, as picklers write it: they break up those of more than 1,000 keys alone.

typedef struct pairs {
    const tide__pickle_value *at; // [2 n]
    size_t n;
} pairs;

static uint64_t key_of(const pairs *p, size_t i) { return p->at[2 * i].type == TIDE__PICKLE_TEXT ? p->at[2 * i].v : 0; }

static const tide__pickle_value *value_of(const pairs *p, uint64_t key) {
    for (size_t i = p->n; i-- > 0;) // the last one counts
        if (key_of(p, i) == key) return &p->at[2 * i + 1];
    return NULL;
}

static tide_status put_event(sink *k, uint64_t dict, const pairs *p, tide_error *err) {
    tide__torch_event e = {.time_us = TIDE__TORCH_NO_TIME, .action = TIDE__TORCH_OTHER};
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < p->n; i++) {
        const tide__pickle_value v = p->at[2 * i + 1];
        bool good = true;
        switch (key_of(p, i)) {
        case KEY_ACTION:
            good = v.type == TIDE__PICKLE_TEXT;
            if (v.v >= WORD_ALLOC && v.v <= WORD_OOM) e.action = (uint8_t)(v.v - WORD_ALLOC);
            break;
        case KEY_ADDR:
        case KEY_DEVICE_FREE:
            good = bits_of(v, &e.addr);
            break;
        case KEY_SIZE:
            good = bytes_of(v, &e.size);
            break;
        case KEY_STREAM:
            good = bits_of(v, &e.stream);
            break;
        case KEY_TIME_US:
            good = i64_of(v, &e.time_us) && e.time_us >= 0 && e.time_us < INT64_MAX / 1000;
            break;
        case KEY_FRAMES:
            good = stack_of(k, v, &e.stack, &st, err);
            break;
        case KEY_USER_METADATA:
            (void)text_of(v, &e.metadata);
            break;
        default:
            break;
        }
        if (st != TIDE_OK) return st;
        if (!good) return bad_value(k, key_of(p, i), "an event", err);
    }
    // With what it may be rounded up to.
    const bool has_place = e.action <= TIDE__TORCH_SEGMENT_UNMAP;
    if (has_place && !tide__torch_is_range(e.addr, 2 * e.size + 512)) return bad_value(k, KEY_ADDR, "an event", err);
    k->s->has_ranges = k->s->has_ranges || e.action == TIDE__TORCH_SEGMENT_MAP;
    k->s->n_unknown_actions += e.action == TIDE__TORCH_OTHER;
    k->s->n_without_time += e.time_us == TIDE__TORCH_NO_TIME;
    if (fwrite(&e, sizeof e, 1, k->s->spool) != 1)
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot keep the events of '%s': %s", k->path, strerror(errno));
    k->dicts[dict] = thing_of(THING_EVENT, k->s->n_events++);
    return TIDE_OK;
}

static tide_status put_frame(sink *k, uint64_t dict, const pairs *p, tide_error *err) {
    tide__torch_frame f = {0};
    const tide__pickle_value *name = value_of(p, KEY_NAME), *file = value_of(p, KEY_FILENAME),
                             *line = value_of(p, KEY_LINE);
    if (name != NULL && !text_of(*name, &f.function)) return bad_value(k, KEY_NAME, "a frame", err);
    if (!text_of(*file, &f.file)) return bad_value(k, KEY_FILENAME, "a frame", err);
    if (line != NULL && !i64_of(*line, &f.line)) return bad_value(k, KEY_LINE, "a frame", err);
    uint32_t at;
    TIDE_TRY(tide__torch_tree_frame(&k->tree, k->s, &f, &at, err));
    k->dicts[dict] = thing_of(THING_FRAME, at);
    return TIDE_OK;
}

static tide_status put_block(sink *k, uint64_t dict, const pairs *p, tide_error *err) {
    tide__torch_block b = {.requested = UINT64_MAX};
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < p->n; i++) {
        const tide__pickle_value v = p->at[2 * i + 1];
        const uint64_t key = key_of(p, i);
        bool good = true;
        if (key == KEY_ADDRESS || key == KEY_ADDR) good = b.has_address = bits_of(v, &b.address);
        if (key == KEY_SIZE) good = bytes_of(v, &b.size);
        if (key == KEY_REQUESTED_SIZE) good = bytes_of(v, &b.requested);
        if (key == KEY_FRAMES) good = stack_of(k, v, &b.stack, &st, err);
        if (key == KEY_STATE) {
            good = v.type == TIDE__PICKLE_TEXT;
            b.state = v.v == WORD_ACTIVE                            ? TIDE__TORCH_ACTIVE
                      : v.v == WORD_PENDING || v.v == WORD_AWAITING ? TIDE__TORCH_PENDING
                                                                    : TIDE__TORCH_INACTIVE;
        }
        if (st != TIDE_OK) return st;
        if (!good) return bad_value(k, key, "a block", err);
    }
    if (!tide__torch_is_range(b.address, b.size)) return bad_value(k, KEY_ADDRESS, "a block", err);
    if (b.requested == UINT64_MAX) b.requested = b.size;
    TIDE_TRY(TIDE_GROW(&k->s->blocks, &k->cap_blocks, k->s->n_blocks + 1, err, "for the blocks of '%s'", k->path));
    k->dicts[dict] = thing_of(THING_BLOCK, k->s->n_blocks);
    k->s->blocks[k->s->n_blocks++] = b;
    return TIDE_OK;
}

static tide_status put_segment(sink *k, uint64_t dict, const pairs *p, tide_error *err) {
    tide__torch_segment g = {0};
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < p->n; i++) {
        const tide__pickle_value v = p->at[2 * i + 1];
        const uint64_t key = key_of(p, i);
        bool good = true;
        if (key == KEY_ADDRESS) good = bits_of(v, &g.address);
        if (key == KEY_TOTAL_SIZE) good = bytes_of(v, &g.total);
        if (key == KEY_STREAM) good = bits_of(v, &g.stream);
        if (key == KEY_DEVICE) good = i64_of(v, &g.device);
        if (key == KEY_FRAMES) good = stack_of(k, v, &g.stack, &st, err);
        if (key == KEY_IS_EXPANDABLE) g.is_expandable = is_true(v);
        if (key == KEY_POOL && v.type == TIDE__PICKLE_TUPLE) good = (g.pool = v.v) != NO_POOL;
        if (key == KEY_SEGMENT_TYPE) g.is_small = v.type == TIDE__PICKLE_TEXT && v.v == WORD_SMALL;
        if (key == KEY_BLOCKS) {
            const uint64_t list = v.type == TIDE__PICKLE_LIST ? k->lists[v.v] : thing_of(THING_OTHER, 0);
            good = type_of(list) == THING_BLOCK || type_of(list) == THING_EMPTY;
            if (good && type_of(list) == THING_BLOCK) {
                g.first_block = k->ranges[index_of(list)].first;
                g.n_blocks = k->ranges[index_of(list)].n;
            }
        }
        if (st != TIDE_OK) return st;
        if (!good) return bad_value(k, key, "a segment", err);
    }
    if (!tide__torch_is_range(g.address, g.total)) return bad_value(k, KEY_ADDRESS, "a segment", err);
    uint64_t at = g.address;
    for (uint64_t i = g.first_block; i < g.first_block + g.n_blocks; i++) {
        tide__torch_block *b = &k->s->blocks[i];
        if (!b->has_address) b->address = at;
        if (!tide__torch_is_range(b->address, b->size)) return bad_value(k, KEY_ADDRESS, "a block", err);
        at = b->address + b->size;
    }
    TIDE_TRY(TIDE_GROW(&k->s->segments, &k->cap_segments, k->s->n_segments + 1, err, "for '%s'", k->path));
    k->s->has_ranges = k->s->has_ranges || g.is_expandable;
    k->dicts[dict] = thing_of(THING_SEGMENT, k->s->n_segments);
    k->s->segments[k->s->n_segments++] = g;
    return TIDE_OK;
}

static tide_status put_annotation(sink *k, uint64_t dict, const pairs *p, tide_error *err) {
    tide__torch_annotation a = {.time_us = TIDE__TORCH_NO_TIME};
    const tide__pickle_value *stage = value_of(p, KEY_STAGE), *name = value_of(p, KEY_NAME),
                             *time = value_of(p, KEY_TIME_US), *device = value_of(p, KEY_DEVICE);
    a.is_end = stage->type == TIDE__PICKLE_TEXT && stage->v == WORD_END;
    if (name == NULL || !text_of(*name, &a.name)) return bad_value(k, KEY_NAME, "an annotation", err);
    if (time == NULL || !i64_of(*time, &a.time_us) || a.time_us < 0 || a.time_us >= INT64_MAX / 1000)
        return bad_value(k, KEY_TIME_US, "an annotation", err);
    if (device != NULL && !i64_of(*device, &a.device)) return bad_value(k, KEY_DEVICE, "an annotation", err);
    TIDE_TRY(TIDE_GROW(&k->s->annotations, &k->cap_annotations, k->s->n_annotations + 1, err, "for '%s'", k->path));
    a.number = k->s->n_annotations;
    k->dicts[dict] = thing_of(THING_ANNOTATION, k->s->n_annotations);
    k->s->annotations[k->s->n_annotations++] = a;
    return TIDE_OK;
}

/// {"1": 0, "2": 0, "4": 0, ...}: divisions by MiB.
static void put_roundup(sink *k, uint64_t dict, const pairs *p) {
    for (size_t i = 0; i < p->n; i++) {
        const char *mib = k->s->texts[key_of(p, i)];
        for (unsigned bit = 0; bit < TIDE_PYTORCH_ROUNDUPS; bit++) {
            char text[8];
            snprintf(text, sizeof text, "%u", 1u << bit);
            if (strcmp(text, mib) == 0 && is_int(p->at[2 * i + 1]) && tide_pytorch_takes_divisions(p->at[2 * i + 1].v))
                k->roundup_of[bit] = (uint32_t)p->at[2 * i + 1].v;
        }
    }
    k->roundup_dict = dict;
    k->dicts[dict] = thing_of(THING_ROUNDUP, 0);
}

enum { LEAST_SPLIT = 20 << 20 }; // PyTorch refuses max_split_size_mb up to 20; -1: no limit

static void put_settings(sink *k, uint64_t dict, const pairs *p) {
    tide_pytorch_options *o = &k->s->settings;
    for (size_t i = 0; i < p->n; i++) {
        const tide__pickle_value v = p->at[2 * i + 1];
        double real;
        memcpy(&real, &v.v, sizeof real);
        switch (key_of(p, i)) {
        case KEY_MAX_SPLIT:
            if (is_int(v) && v.v > LEAST_SPLIT && v.v <= INT64_MAX) o->max_split_bytes = v.v;
            break;
        case KEY_GC_THRESHOLD:
            if (v.type == TIDE__PICKLE_FLOAT && real > 0 && real < 1) o->gc_threshold = real;
            break;
        case KEY_EXPANDABLE:
            o->expandable_segments = is_true(v);
            break;
        case KEY_ROUNDUP:
            if (v.type == TIDE__PICKLE_DICT && v.v == k->roundup_dict)
                memcpy(o->roundup, k->roundup_of, sizeof o->roundup);
            break;
        default:
            break;
        }
    }
    k->s->has_settings = true;
    k->dicts[dict] = thing_of(THING_SETTINGS, 0);
}

static tide_status put_root(sink *k, uint64_t dict, const pairs *p, tide_error *err) {
    const tide__pickle_value *traces = value_of(p, KEY_DEVICE_TRACES), *segments = value_of(p, KEY_SEGMENTS);
    if (traces != NULL && traces->type != TIDE__PICKLE_LIST) return bad_value(k, KEY_DEVICE_TRACES, "the file", err);
    if (segments != NULL && segments->type != TIDE__PICKLE_LIST) return bad_value(k, KEY_SEGMENTS, "the file", err);
    if (traces != NULL) k->traces = traces->v;
    k->dicts[dict] = thing_of(THING_ROOT, 0);
    return TIDE_OK;
}

static tide_status take_pairs(void *ctx, uint64_t dict, const tide__pickle_value *at, size_t n, tide_error *err) {
    sink *k = ctx;
    const pairs p = {at, n};
    TIDE_ASSERT(dict < k->n_dicts && n > 0);
    const thing now = type_of(k->dicts[dict]);
    if (now == THING_ROOT) return put_root(k, dict, &p, err);
    if (now != THING_EMPTY && now != THING_OTHER) {
        if (now == THING_SETTINGS || now == THING_ROUNDUP) return TIDE_OK;
        return bad(k, err, "a dict grows after it was used");
    }
    if (value_of(&p, KEY_ACTION) != NULL) return put_event(k, dict, &p, err);
    if (value_of(&p, KEY_FILENAME) != NULL) return put_frame(k, dict, &p, err);
    if (value_of(&p, KEY_TOTAL_SIZE) != NULL) return put_segment(k, dict, &p, err);
    if (value_of(&p, KEY_STATE) != NULL) return put_block(k, dict, &p, err);
    if (value_of(&p, KEY_STAGE) != NULL) return put_annotation(k, dict, &p, err);
    if (value_of(&p, KEY_DEVICE_TRACES) != NULL || value_of(&p, KEY_SEGMENTS) != NULL)
        return put_root(k, dict, &p, err);
    k->dicts[dict] = thing_of(THING_OTHER, 0);
    if (value_of(&p, KEY_MAX_SPLIT) != NULL || value_of(&p, KEY_CONF) != NULL)
        put_settings(k, dict, &p);
    else if (n > 0 && strcmp(k->s->texts[key_of(&p, 0)], "1") == 0)
        put_roundup(k, dict, &p);
    return TIDE_OK;
}

// ---- lists ----

/// Dicts of one kind, whose numbers follow one another.
static tide_status put_dicts(sink *k, uint64_t list, thing what, const tide__pickle_value *items, size_t n,
                             tide_error *err) {
    if (type_of(k->lists[list]) == THING_EMPTY) {
        TIDE_TRY(TIDE_GROW(&k->ranges, &k->cap_ranges, k->n_ranges + 1, err, "for the lists of '%s'", k->path));
        k->ranges[k->n_ranges] = (range){.first = index_of(k->dicts[items[0].v])};
        k->lists[list] = thing_of(what, k->n_ranges++);
    }
    if (type_of(k->lists[list]) != what) return bad(k, err, "a list holds dicts of several kinds");
    TIDE_ASSERT(index_of(k->lists[list]) < k->n_ranges);
    range *r = &k->ranges[index_of(k->lists[list])];
    if (r->n == 0 && r->first < k->n_listed[what]) return bad(k, err, "one of its dicts is in two lists");
    for (size_t i = 0; i < n; i++) {
        const uint64_t dict = items[i].type == TIDE__PICKLE_DICT ? k->dicts[items[i].v] : 0;
        if (type_of(dict) != what) return bad(k, err, "a list holds dicts of several kinds");
        if (index_of(dict) != r->first + r->n)
            return bad(k, err, "the dicts of a list are not in their order, or one is in two lists");
        r->n++;
    }
    k->n_listed[what] = r->first + r->n;
    return TIDE_OK;
}

/// The lists of device_traces: their numbers follow one another in `ranges` too, but an empty one has none.
static tide_status put_lists(sink *k, uint64_t list, const tide__pickle_value *items, size_t n, tide_error *err) {
    tide__torch_snapshot *s = k->s;
    const uint64_t now = k->lists[list];
    if (type_of(now) != THING_EMPTY && type_of(now) != THING_LISTS) return bad(k, err, "a list of several kinds");
    uint64_t n_before = type_of(now) == THING_LISTS ? index_of(now) : 0;
    for (size_t i = 0; i < n; i++, n_before++) {
        const uint64_t inner = items[i].type == TIDE__PICKLE_LIST ? k->lists[items[i].v] : thing_of(THING_OTHER, 0);
        if (type_of(inner) != THING_EVENT) continue;
        TIDE_TRY(TIDE_GROW(&s->tracks, &k->cap_tracks, s->n_tracks + 1, err, "for the devices of '%s'", k->path));
        const range *r = &k->ranges[index_of(inner)];
        s->tracks[s->n_tracks++] = (tide__torch_track){.first = r->first, .n = r->n, .device = (int64_t)n_before};
    }
    k->lists[list] = thing_of(THING_LISTS, n_before);
    return TIDE_OK;
}

static tide_status take_items(void *ctx, uint64_t list, const tide__pickle_value *items, size_t n, tide_error *err) {
    sink *k = ctx;
    TIDE_ASSERT(list < k->n_lists && n > 0);
    if (items[0].type == TIDE__PICKLE_LIST) return put_lists(k, list, items, n, err);
    const thing what = items[0].type == TIDE__PICKLE_DICT ? type_of(k->dicts[items[0].v]) : THING_OTHER;
    if (what == THING_FRAME) return put_frames(k, list, items, n, err);
    if (what == THING_EVENT || what == THING_SEGMENT || what == THING_BLOCK || what == THING_ANNOTATION)
        return put_dicts(k, list, what, items, n, err);
    if (type_of(k->lists[list]) == THING_EMPTY) k->lists[list] = thing_of(THING_OTHER, 0);
    return TIDE_OK;
}

// ---- the whole ----

static tide_status check_root(sink *k, tide__pickle_value root, tide_error *err) {
    const bool is_snapshot = root.type == TIDE__PICKLE_DICT && type_of(k->dicts[root.v]) == THING_ROOT;
    if (!is_snapshot) {
        const tide_status st = bad(k, err, "it is a pickle, and no memory snapshot of PyTorch");
        tide_error_note(err, "a dict with 'segments' and 'device_traces' was looked for");
        tide_error_hint(err, "torch.cuda.memory._dump_snapshot writes one");
        return st;
    }
    // Lists of events elsewhere in the file are none of the snapshot's.
    if (k->traces == UINT64_MAX)
        k->s->n_tracks = 0;
    else if (type_of(k->lists[k->traces]) == THING_EVENT)
        return bad(k, err, "'device_traces' is no list of lists");
    if (fflush(k->s->spool) != 0)
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot keep the events of '%s': %s", k->path, strerror(errno));
    return TIDE_OK;
}

tide_status tide__torch_snapshot_read(FILE *in, const char *path, FILE *spool, tide__torch_snapshot *out,
                                      tide_error *err) {
    *out = (tide__torch_snapshot){.spool = spool};
    sink k = {.s = out, .path = path, .open_list = UINT64_MAX, .traces = UINT64_MAX, .roundup_dict = UINT64_MAX};
    const tide__pickle_sink to = {&k, take_text, new_list, new_dict, take_items, take_pairs, take_tuple, held_bytes};
    tide__pickle_value root = {0};
    tide_status st = put_known(&k, err);
    if (st == TIDE_OK) st = tide__torch_tree_init(&k.tree, out, path, err);
    if (st == TIDE_OK) st = tide__pickle_read(in, path, &to, &root, err);
    if (st == TIDE_OK) st = check_root(&k, root, err);
    if (st != TIDE_OK && err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", path);
    tide_strmap_deinit(&k.by_text);
    tide__torch_tree_deinit(&k.tree);
    tide_host_free(k.dicts);
    tide_host_free(k.lists);
    tide_host_free(k.ranges);
    tide_host_free(k.open);
    return st;
}

void tide__torch_snapshot_deinit(tide__torch_snapshot *s) {
    for (size_t i = 0; i < s->n_texts; i++) tide_host_free(s->texts[i]);
    tide_host_free(s->texts);
    tide_host_free(s->frames);
    tide_host_free(s->nodes);
    tide_host_free(s->segments);
    tide_host_free(s->blocks);
    tide_host_free(s->annotations);
    tide_host_free(s->tracks);
    *s = (tide__torch_snapshot){0};
}
