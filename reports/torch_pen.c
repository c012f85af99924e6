// SPDX-License-Identifier: MIT
//
// Dicts of a memory snapshot of PyTorch. See torch_pen.h.
#include "reports/torch_pen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum {
    PIECE = 1 << 20,         // bytes that are written at once
    SMALL_SEGMENT = 2 << 20, // PyTorch's segments of small blocks have this size
};

void tide__torch_pen_begin(tide__torch_pen *pen, const tide_trace *t, tide_output *out, tide_error *err) {
    static const char *const words[TIDE__TORCH_N_WORDS] = {
        "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
        "segment_map", "segment_unmap",  "snapshot",       "oom",           "action",
        "addr",        "size",           "stream",         "time_us",       "frames",
        "device_free", "user_metadata"};
    *pen = (tide__torch_pen){.out = out, .err = err, .frames = TIDE__TORCH_FRAMES(t)};
    pen->pickle.out = &pen->text;
    for (size_t i = 0; i < TIDE__TORCH_N_WORDS; i++) pen->words[i].text = words[i];
    tide_pickle_begin(&pen->pickle);
}

tide_status tide__torch_pen_flush(tide__torch_pen *pen, bool all) {
    if (pen->text.failed) return TIDE_NO_MEMORY(pen->err, "for an event");
    if (pen->text.len < (all ? 1 : PIECE)) return TIDE_OK;
    TIDE_TRY(tide_output_put(pen->out, pen->text.data, pen->text.len, pen->err));
    pen->text.len = 0;
    return TIDE_OK;
}

void tide__torch_pen_deinit(tide__torch_pen *pen) {
    tide_text_deinit(&pen->text);
    tide_pickle_deinit(&pen->pickle);
    tide__torch_frames_deinit(&pen->frames);
}

// ---- keys and values ----

void tide__torch_pen_key(tide__torch_pen *pen, const char *key) { tide_pickle_text(&pen->pickle, key); }

static void put_u64(tide__torch_pen *pen, const char *key, uint64_t value) {
    tide__torch_pen_key(pen, key);
    tide_pickle_u64(&pen->pickle, value);
}

static void put_text(tide__torch_pen *pen, const char *key, const char *value) {
    tide__torch_pen_key(pen, key);
    tide_pickle_text(&pen->pickle, value);
}

static void put_bool(tide__torch_pen *pen, const char *key, bool value) {
    tide__torch_pen_key(pen, key);
    tide_pickle_bool(&pen->pickle, value);
}

static void put_word(tide__torch_pen *pen, int word) { tide_pickle_put_word(&pen->pickle, &pen->words[word]); }

static void put_number(tide__torch_pen *pen, int word, uint64_t value) {
    put_word(pen, word);
    tide_pickle_u64(&pen->pickle, value);
}

// ---- events ----

tide_status tide__torch_pen_event(tide__torch_pen *pen, const tide__torch_out_event *e) {
    tide_pickle_dict(&pen->pickle);
    put_word(pen, TIDE__TORCH_WORD_ACTION);
    put_word(pen, (int)e->action);
    put_number(pen, e->action == TIDE__TORCH_OUT_OOM ? TIDE__TORCH_WORD_DEVICE_FREE : TIDE__TORCH_WORD_ADDR, e->addr);
    put_number(pen, TIDE__TORCH_WORD_SIZE, e->size);
    put_number(pen, TIDE__TORCH_WORD_STREAM, e->stream);
    put_number(pen, TIDE__TORCH_WORD_TIME_US, e->t_ns / 1000);
    if (e->metadata != NULL) {
        put_word(pen, TIDE__TORCH_WORD_METADATA);
        tide_pickle_text(&pen->pickle, e->metadata);
    }
    put_word(pen, TIDE__TORCH_WORD_FRAMES);
    TIDE_TRY(tide__torch_frames_put(&pen->frames, &pen->pickle, e->scope, e->name, e->kind, pen->err));
    tide_pickle_close(&pen->pickle);
    return tide__torch_pen_flush(pen, false);
}

void tide__torch_pen_annotation(tide__torch_pen *pen, bool is_end, const char *name, uint32_t device, uint64_t t_ns) {
    tide_pickle_dict(&pen->pickle);
    put_text(pen, "stage", is_end ? "END" : "START");
    put_text(pen, "name", name);
    put_u64(pen, "device", device);
    put_u64(pen, "time_us", t_ns / 1000);
    tide_pickle_close(&pen->pickle);
}

// ---- the state at the end ----

/// Live blocks and segments by address.
typedef struct state {
    const tide__torch_item **blocks; // [n_blocks]
    tide_block_span *segments;       // [n_segments]
    size_t n_blocks, n_segments;
} state;

static int by_address(const void *a, const void *b) {
    const tide__torch_item *x = *(const tide__torch_item *const *)a, *y = *(const tide__torch_item *const *)b;
    return (x->address > y->address) - (x->address < y->address);
}

static tide_status collect(const tide__torch_pen *pen, const tide__torch_space *s, state *out) {
    size_t n_segments = 0;
    tide_block_span next;
    for (uint64_t at = 0; tide_block_tree_at_least(&s->segments, (tide_block_span){.begin = at}, &next);
         at = next.begin + 1)
        n_segments++;
    TIDE_TRY(TIDE_NEW(&out->blocks, s->by_id.n, pen->err, "for the live blocks of a trace"));
    TIDE_TRY(TIDE_NEW(&out->segments, n_segments, pen->err, "for the segments of a trace"));
    for (size_t i = 0; i < s->n_items; i++)
        if (s->items[i].block_id != 0) out->blocks[out->n_blocks++] = &s->items[i];
    TIDE_ASSERT(out->n_blocks == s->by_id.n);
    if (out->n_blocks > 0) qsort(out->blocks, out->n_blocks, sizeof *out->blocks, by_address);
    for (uint64_t at = 0; tide_block_tree_at_least(&s->segments, (tide_block_span){.begin = at}, &next);
         at = next.begin + 1) {
        tide_block_span *last = out->n_segments > 0 ? &out->segments[out->n_segments - 1] : NULL;
        // The viewer joins those that touch while it goes back; what it begins with must be joined too.
        if (s->is_mapped && last != NULL && last->begin + last->bytes == next.begin &&
            s->infos[last->id].stream == s->infos[next.id].stream)
            last->bytes += next.bytes;
        else
            out->segments[out->n_segments++] = next;
    }
    return TIDE_OK;
}

static tide_status put_block(tide__torch_pen *pen, uint64_t address, uint64_t bytes, const tide__torch_item *b,
                             bool named) {
    tide_pickle_dict(&pen->pickle);
    put_u64(pen, "address", address);
    put_u64(pen, "size", bytes);
    put_u64(pen, "requested_size", b != NULL ? b->requested : 0);
    put_text(pen, "state", b == NULL ? "inactive" : b->is_pending ? "active_pending_free" : "active_allocated");
    put_word(pen, TIDE__TORCH_WORD_FRAMES);
    TIDE_TRY(tide__torch_frames_put(&pen->frames, &pen->pickle, b != NULL ? b->scope : 0,
                                    b != NULL && named ? b->name : NULL, b != NULL ? b->kind : NULL, pen->err));
    tide_pickle_close(&pen->pickle);
    return tide__torch_pen_flush(pen, false);
}

/// The blocks of a segment from state->blocks[*at] on, free ones between them.
static tide_status put_blocks(tide__torch_pen *pen, const state *st, size_t *at, uint64_t begin, uint64_t end,
                              bool named) {
    tide__torch_pen_key(pen, "blocks");
    tide_pickle_list(&pen->pickle);
    for (; *at < st->n_blocks && st->blocks[*at]->address < end; ++*at) {
        const tide__torch_item *b = st->blocks[*at];
        TIDE_ASSERT(b->address >= begin && b->bytes <= end - b->address);
        if (b->address > begin) TIDE_TRY(put_block(pen, begin, b->address - begin, NULL, named));
        TIDE_TRY(put_block(pen, b->address, b->bytes, b, named));
        begin = b->address + b->bytes;
    }
    if (begin < end) TIDE_TRY(put_block(pen, begin, end - begin, NULL, named));
    tide_pickle_close(&pen->pickle);
    return TIDE_OK;
}

static tide_status put_segment(tide__torch_pen *pen, const tide__torch_space *s, const state *st, size_t i, size_t *at,
                               uint32_t device, bool named) {
    const tide_block_span segment = st->segments[i];
    const uint64_t end = segment.begin + segment.bytes;
    uint64_t allocated = 0, active = 0, requested = 0;
    for (size_t k = *at; k < st->n_blocks && st->blocks[k]->address < end; k++) {
        active += st->blocks[k]->bytes;
        if (st->blocks[k]->is_pending) continue;
        allocated += st->blocks[k]->bytes;
        requested += st->blocks[k]->requested;
    }
    tide_pickle_dict(&pen->pickle);
    put_u64(pen, "device", device);
    put_u64(pen, "address", segment.begin);
    put_u64(pen, "total_size", segment.bytes);
    put_u64(pen, "allocated_size", allocated);
    put_u64(pen, "active_size", active);
    put_u64(pen, "requested_size", requested);
    put_u64(pen, "stream", s->infos[segment.id].stream);
    put_text(pen, "segment_type", segment.bytes <= SMALL_SEGMENT ? "small" : "large");
    tide__torch_pen_key(pen, "segment_pool_id");
    tide_pickle_pair(&pen->pickle, 0, 0);
    put_bool(pen, "is_expandable", s->is_mapped);
    put_word(pen, TIDE__TORCH_WORD_FRAMES);
    TIDE_TRY(tide__torch_frames_put(&pen->frames, &pen->pickle, 0, NULL, NULL, pen->err));
    TIDE_TRY(put_blocks(pen, st, at, segment.begin, end, named));
    tide_pickle_close(&pen->pickle);
    return tide__torch_pen_flush(pen, false);
}

tide_status tide__torch_pen_state(tide__torch_pen *pen, const tide__torch_space *s, uint32_t device, bool named) {
    state st = {0};
    size_t at = 0;
    tide_status status = collect(pen, s, &st);
    for (size_t i = 0; i < st.n_segments && status == TIDE_OK; i++)
        status = put_segment(pen, s, &st, i, &at, device, named);
    TIDE_ASSERT(status != TIDE_OK || at == st.n_blocks); // each block lies in a segment
    tide_host_free(st.blocks);
    tide_host_free(st.segments);
    return status;
}

// ---- settings ----

/// The text of PYTORCH_CUDA_ALLOC_CONF.
static void add_conf(const tide_pytorch_options *o, tide_text *out) {
    const char *comma = "";
    if (o->expandable_segments) {
        tide_text_add(out, "expandable_segments:True");
        comma = ",";
    }
    if (o->max_split_bytes > 0) {
        tide_text_addf(out, "%smax_split_size_mb:%" PRIu64, comma, o->max_split_bytes >> 20);
        comma = ",";
    }
    if (o->gc_threshold > 0) tide_text_addf(out, "%sgarbage_collection_threshold:%.17g", comma, o->gc_threshold);
}

tide_status tide__torch_pen_settings(tide__torch_pen *pen, const tide_pytorch_options *o) {
    tide_text conf = {0};
    add_conf(o, &conf);
    if (conf.failed) pen->text.failed = true;
    tide_pickle_dict(&pen->pickle);
    put_text(pen, "PYTORCH_CUDA_ALLOC_CONF", tide_text_str(&conf));
    tide__torch_pen_key(pen, "max_split_size");
    tide_pickle_i64(&pen->pickle, o->max_split_bytes > 0 ? (int64_t)o->max_split_bytes : -1);
    tide__torch_pen_key(pen, "garbage_collection_threshold");
    tide_pickle_real(&pen->pickle, o->gc_threshold);
    put_bool(pen, "expandable_segments", o->expandable_segments);
    put_u64(pen, "pinned_num_register_threads", 1);
    put_bool(pen, "release_lock_on_cudamalloc", false);
    put_bool(pen, "pinned_use_cuda_host_register", false);
    tide__torch_pen_key(pen, "roundup_power2_divisions");
    tide_pickle_dict(&pen->pickle);
    for (unsigned i = 0; i < TIDE_PYTORCH_ROUNDUPS; i++) {
        char mib[8];
        snprintf(mib, sizeof mib, "%u", 1u << i);
        put_u64(pen, mib, o->roundup[i]);
    }
    tide_pickle_close(&pen->pickle);
    tide_pickle_close(&pen->pickle);
    tide_text_deinit(&conf);
    return tide__torch_pen_flush(pen, false);
}
