// SPDX-License-Identifier: MIT
//
// A feed file, checked and mapped for whoever reads it. See reader.h.
//
// Every number in the file may be wrong: it was written by another program, or by this one before it was killed. What
// decides about addresses (offsets, sizes, slots of a ring) is read once, checked, and kept here.
#include "profiler/feed/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/feed/reader_internal.h"

static tide_status bad(const tide__feed_reader *r, tide_error *err, const char *why) {
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", r->path, why);
}

static tide_status io_error(const tide__feed_reader *r, int e, tide_error *err) {
    return TIDE_FAIL(err, e == ENOMEM ? TIDE_ERR_NOMEM : TIDE_ERR_IO, "cannot read '%s': %s", r->path, strerror(e));
}

// ---- open ----

static tide_status file_size(const tide__feed_reader *r, uint64_t *bytes, tide_error *err) {
    struct stat st;
    if (fstat(r->file.fd, &st) != 0) return io_error(r, errno, err);
    if (!S_ISREG(st.st_mode)) return bad(r, err, "it is no plain file");
    *bytes = (uint64_t)st.st_size;
    return TIDE_OK;
}

static tide_status check_header(tide__feed_reader *r, tide_error *err) {
    const tide__feed_header *h = r->head;
    if (h->magic != TIDE__FEED_MAGIC) return bad(r, err, "it is no feed of this kind of machine");
    if (h->version != TIDE__FEED_VERSION) {
        const tide_status st = bad(r, err, "it is a feed of another version");
        tide_error_note(err, "version %" PRIu32 ", this program reads version %d", h->version, TIDE__FEED_VERSION);
        return st;
    }
    if (h->header_bytes != TIDE__FEED_HEADER_BYTES || h->slot_bytes != sizeof(tide__slot) ||
        h->max_chunks != TIDE__FEED_MAX_CHUNKS)
        return bad(r, err, "its header cannot be");
    const uint32_t slots = h->ring_slots;
    if (tide_is_pow2(slots) && slots >= TIDE__FEED_MIN_SLOTS && slots <= TIDE__FEED_MAX_SLOTS) r->ring_slots = slots;
    return TIDE_OK;
}

static tide_status map_header(tide__feed_reader *r, tide_error *err) {
    uint64_t bytes;
    TIDE_TRY(file_size(r, &bytes, err));
    if (bytes < TIDE__FEED_HEADER_BYTES) return bad(r, err, "it is too short for a feed");
    r->head = tide__mapped_file_map(&r->file, 0, TIDE__FEED_HEADER_BYTES);
    if (r->head == NULL) return io_error(r, errno, err);
    return check_header(r, err);
}

static tide_status take_lock(const tide__feed_reader *r, tide_error *err) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = TIDE__FEED_LOCK_DRAIN, .l_len = 1};
    if (fcntl(r->file.fd, F_OFD_SETLK, &l) == 0) return TIDE_OK;
    if (errno == EAGAIN || errno == EACCES)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot drain '%s': another process does", r->path);
    return TIDE_OK; // a file system without locks: whoever drains there must know that he is alone
}

static tide_status open_file(tide__feed_reader *r, const char *path, tide_error *err) {
    r->path = tide_host_strdup(path);
    if (r->path == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to read '%s'", path);
    // Without O_NONBLOCK a pipe of that name would be waited for.
    const int e = tide__mapped_file_open(&r->file, path, (r->look_only ? O_RDONLY : O_RDWR) | O_NONBLOCK, 0);
    if (e != 0) return io_error(r, e, err);
    TIDE_TRY(map_header(r, err));
    if (!r->look_only) TIDE_TRY(take_lock(r, err));
    return tide__feed_reader_refresh(r, err);
}

tide_status tide__feed_reader_open(const char *path, bool look_only, tide__feed_reader **out, tide_error *err) {
    tide__feed_reader *r = tide_host_calloc(1, sizeof *r);
    if (r == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to read '%s'", path);
    r->file.fd = -1;
    r->look_only = look_only;
    const tide_status st = open_file(r, path, err);
    if (st != TIDE_OK) {
        tide__feed_reader_close(r, false);
        return st;
    }
    *out = r;
    return TIDE_OK;
}

void tide__feed_reader_close(tide__feed_reader *r, bool remove) {
    if (r == NULL) return;
    // Before the lock goes: a name that stands for a feed is one whose events are still wanted.
    if (remove && !r->file.is_child) unlink(r->path);
    tide__mapped_file_close(&r->file);
    tide_host_free(r->chunks);
    tide_host_free(r->rings);
    tide_host_free(r->path);
    tide_host_free(r);
}

const char *tide__feed_reader_path(const tide__feed_reader *r) { return r->path; }
tide__feed_header *tide__feed_reader_head(tide__feed_reader *r) { return r->head; }

// ---- chunks ----

static uint64_t least_bytes(uint32_t kind) {
    if (kind == TIDE__CHUNK_LOG) return sizeof(tide__log_header);
    const uint64_t slots = TIDE__FEED_MIN_SLOTS * sizeof(tide__slot);
    return kind == TIDE__CHUNK_RING ? TIDE__RING_HEADER_BYTES + slots : slots;
}

static tide_status check_entry(const tide__feed_reader *r, const tide__chunk_entry *e, uint64_t file_bytes,
                               tide_error *err) {
    const uint64_t least = least_bytes(e->kind);
    uint64_t end;
    if (e->kind < TIDE__CHUNK_LOG || e->kind > TIDE__CHUNK_MORE) return bad(r, err, "a chunk is of no known kind");
    if (e->offset % 4096 != 0 || e->bytes % 4096 != 0 || e->bytes < least || !tide_add_u64(e->offset, e->bytes, &end) ||
        e->offset < TIDE__FEED_HEADER_BYTES)
        return bad(r, err, "place or size of a chunk cannot be");
    if (end > file_bytes) return bad(r, err, "it ends before its last chunk does");
    for (size_t i = 0; i < r->n_chunks; i++) {
        const tide__reader_chunk *c = &r->chunks[i];
        if (e->offset < c->offset + c->bytes && c->offset < end) return bad(r, err, "two of its chunks overlap");
    }
    return TIDE_OK;
}

static tide__ring_room new_room(uint64_t begin, const void *slots, uint64_t n_slots) {
    return (tide__ring_room){.begin = begin, .n = UINT64_MAX - begin, .slots = slots, .mask = n_slots - 1};
}

static tide_status add_ring(tide__feed_reader *r, const tide__reader_chunk *c, tide_error *err) {
    tide__ring_header *head = c->data;
    const uint64_t n = head->n_slots;
    if (!tide_is_pow2(n) || n < TIDE__FEED_MIN_SLOTS || n > TIDE__FEED_MAX_SLOTS ||
        n * sizeof(tide__slot) > c->bytes - TIDE__RING_HEADER_BYTES)
        return bad(r, err, "a ring has a number of slots that cannot be");
    tide__reader_ring *ring = &r->rings[r->n_rings++];
    *ring = (tide__reader_ring){.head = head, .n_rooms = 1, .n_slots = n, .n_most = n};
    ring->rooms[0] = new_room(0, (const char *)c->data + TIDE__RING_HEADER_BYTES, n);
    if (r->ring_slots > n) ring->n_most = r->ring_slots;
    return TIDE_OK;
}

static tide_status add_room(tide__feed_reader *r, const tide__reader_chunk *c, const tide__chunk_entry *e,
                            tide_error *err) {
    const uint64_t n = c->bytes / sizeof(tide__slot);
    if (e->ring >= r->n_rings) return bad(r, err, "there is room for a ring that it does not have");
    tide__reader_ring *ring = &r->rings[e->ring];
    tide__ring_room *last = &ring->rooms[ring->n_rooms - 1];
    if (!tide_is_pow2(n) || n > TIDE__FEED_MAX_SLOTS || e->begin <= last->begin ||
        ring->n_rooms == TIDE__READER_MAX_ROOMS)
        return bad(r, err, "a ring grows in a way that cannot be");
    last->n = e->begin - last->begin;
    ring->rooms[ring->n_rooms++] = new_room(e->begin, c->data, n);
    ring->n_slots += n;
    if (ring->n_most < n) ring->n_most = n;
    return TIDE_OK;
}

static tide_status add_chunk(tide__feed_reader *r, const tide__chunk_entry *e, uint64_t file_bytes, tide_error *err) {
    TIDE_TRY(check_entry(r, e, file_bytes, err));
    if (tide_host_grow(&r->chunks, &r->cap_chunks, r->n_chunks + 1, sizeof *r->chunks) != TIDE_OK ||
        tide_host_grow(&r->rings, &r->cap_rings, r->n_rings + 1, sizeof *r->rings) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to read '%s'", r->path);
    tide__reader_chunk c = {.offset = e->offset, .bytes = e->bytes, .kind = e->kind};
    c.data = tide__mapped_file_map(&r->file, e->offset, e->bytes);
    if (c.data == NULL) return io_error(r, errno, err);
    tide_status st = TIDE_OK;
    if (c.kind == TIDE__CHUNK_RING) st = add_ring(r, &c, err);
    if (c.kind == TIDE__CHUNK_MORE) st = add_room(r, &c, e, err);
    if (st != TIDE_OK) {
        tide__mapped_file_unmap(&r->file, c.data);
        return st;
    }
    r->chunks[r->n_chunks++] = c;
    return TIDE_OK;
}

tide_status tide__feed_reader_refresh(tide__feed_reader *r, tide_error *err) {
    const uint32_t n = atomic_load_explicit(&r->head->n_chunks, memory_order_acquire);
    if (atomic_load_explicit(&r->file.is_cut, memory_order_relaxed))
        return bad(r, err, "it was cut short by another program, or cannot be read");
    if (n == r->n_chunks) return TIDE_OK;
    if (n > TIDE__FEED_MAX_CHUNKS || n < r->n_chunks) return bad(r, err, "its number of chunks cannot be");
    uint64_t file_bytes;
    TIDE_TRY(file_size(r, &file_bytes, err));
    while (r->n_chunks < n) {
        const tide__chunk_entry e = r->head->chunks[r->n_chunks];
        TIDE_TRY(add_chunk(r, &e, file_bytes, err));
    }
    return TIDE_OK;
}

// ---- rings ----

size_t tide__feed_reader_n_rings(const tide__feed_reader *r) { return r->n_rings; }

tide__ring_header *tide__feed_reader_ring(tide__feed_reader *r, size_t ring) { return r->rings[ring].head; }

uint64_t tide__feed_reader_n_slots(const tide__feed_reader *r, size_t ring) { return r->rings[ring].n_most; }

uint64_t tide__feed_reader_n_full(const tide__feed_reader *r, size_t ring) {
    const tide__reader_ring *all = &r->rings[ring];
    const uint64_t n = atomic_load_explicit(&all->head->n_stuck, memory_order_relaxed);
    return n > 0 && n < all->n_most ? n : all->n_most;
}

tide__ring_room tide__feed_reader_room(const tide__feed_reader *r, size_t ring, uint64_t position) {
    const tide__reader_ring *all = &r->rings[ring];
    size_t i = all->n_rooms - 1;
    while (all->rooms[i].begin > position) i--; // the first one begins at 0
    return all->rooms[i];
}

const tide__slot *tide__feed_reader_slot(const tide__feed_reader *r, size_t ring, uint64_t position) {
    const tide__ring_room room = tide__feed_reader_room(r, ring, position);
    const tide__slot *s = &room.slots[position & room.mask];
    return atomic_load_explicit(&s->sequence, memory_order_acquire) == (uint32_t)(position + 1) ? s : NULL;
}

uint64_t tide__feed_reader_end(tide__feed_reader *r, size_t ring, uint64_t tail, bool all) {
    uint64_t end = atomic_load_explicit(&r->rings[ring].head->head, memory_order_acquire);
    // The ring may have grown before it came so far. What is wrong with a chunk, the next refresh says.
    if (atomic_load_explicit(&r->head->n_chunks, memory_order_acquire) != r->n_chunks)
        (void)!tide__feed_reader_refresh(r, NULL);
    const uint64_t n_slots = r->rings[ring].n_slots;
    if (end < tail) return tail;
    if (end - tail > n_slots) return tail + n_slots;
    while (all && end - tail < n_slots && tide__feed_reader_slot(r, ring, end) != NULL) end++;
    return end;
}
