// SPDX-License-Identifier: MIT
//
// The log of a feed, record by record. See reader.h.
#include "profiler/feed/reader_internal.h"

/// The next record of a piece; NULL: it has no more at present, or (*bad) cannot be read on.
static const tide__log_record *next_in_piece(tide__feed_reader *r, const tide__reader_chunk *c, bool *bad) {
    const tide__log_header *h = c->data;
    const uint64_t room = c->bytes - sizeof *h;
    const uint64_t used = atomic_load_explicit(&h->used_bytes, memory_order_acquire);
    if (used == r->log_used) return NULL;
    if (used < r->log_used || used > room || used - r->log_used < sizeof(tide__log_record)) {
        *bad = true;
        return NULL;
    }
    const tide__log_record *record = (const tide__log_record *)((const char *)(h + 1) + r->log_used);
    const volatile tide__log_record *once = record;
    const tide__log_record head = {
        .bytes = once->bytes, .type = once->type, .id = once->id, .payload_bytes = once->payload_bytes};
    if (head.bytes % 8 != 0 || head.bytes < sizeof head || head.bytes > used - r->log_used ||
        head.payload_bytes > head.bytes - sizeof head) {
        *bad = true;
        return NULL;
    }
    r->log_used += head.bytes;
    r->record = head;
    return record;
}

const tide__log_record *tide__feed_reader_record(const tide__feed_reader *r) { return &r->record; }

const tide__log_record *tide__feed_reader_next_record(tide__feed_reader *r, bool *bad) {
    *bad = false;
    for (;;) {
        // A piece that is followed by another one is full; so the number of pieces is looked at before the piece's end.
        if (tide__feed_reader_refresh(r, NULL) != TIDE_OK) {
            // What is known stays readable; the caller's own refresh says what is wrong.
        }
        if (r->log_chunk >= r->n_chunks) return NULL;
        const tide__reader_chunk *c = &r->chunks[r->log_chunk];
        bool has_next = false;
        for (size_t i = r->log_chunk + 1; i < r->n_chunks; i++)
            has_next = has_next || r->chunks[i].kind == TIDE__CHUNK_LOG;
        if (c->kind == TIDE__CHUNK_LOG && !r->log_is_bad) {
            const tide__log_record *record = next_in_piece(r, c, bad);
            if (record != NULL) return record;
            if (*bad) {
                r->log_is_bad = true;
                return NULL;
            }
        }
        if (!has_next) return NULL;
        r->log_chunk++;
        r->log_used = 0;
        r->log_is_bad = false;
    }
}
