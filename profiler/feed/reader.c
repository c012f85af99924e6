// SPDX-License-Identifier: MIT
//
// A feed file, checked and mapped; the feeds beside a trace, and who uses them. See reader.h.
//
// Every number in the file may be wrong: it was written by another program, or by this one before it was killed. What
// decides about addresses (offsets, sizes, slots of a ring) is read once, checked, and kept here.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/feed/mapped_file.h"
#include "profiler/feed/process_stat.h"
#include "profiler/feed/reader.h"

/// A chunk as it was when it was checked: the file's own table is not read again.
typedef struct reader_chunk {
    void *data; ///< mapped
    uint64_t offset, bytes;
    uint32_t kind;
} reader_chunk;

enum { MAX_ROOMS = 16 }; ///< of a ring: more than one that grows four times each time can have

/// A ring with what it has grown by.
typedef struct reader_ring {
    tide__ring_header *head;
    tide__ring_room rooms[MAX_ROOMS]; ///< [n_rooms], one behind the other
    size_t n_rooms;
    uint64_t n_slots; ///< of all of them
    uint64_t n_most;  ///< that it may have at a time
} reader_ring;

struct tide__feed_reader {
    char *path;
    tide__mapped_file file;
    bool look_only;
    tide__feed_header *head;
    reader_chunk *chunks; ///< [n_chunks], owned
    size_t n_chunks, cap_chunks;
    uint64_t ring_slots; ///< that a ring may grow to; 0: the header has no such number
    reader_ring *rings;  ///< [n_rings], owned
    size_t n_rings, cap_rings;
    size_t log_chunk;        ///< number of the chunk whose records are given next
    uint64_t log_used;       ///< of it, already given
    bool log_is_bad;         ///< nothing more of this chunk
    tide__log_record record; ///< the one that was given last, as it was when it was checked
};

/// Who holds a byte of the file.
typedef enum lock_state { LOCK_FREE, LOCK_HELD, LOCK_UNKNOWN } lock_state;
static lock_state lock_state_of(int fd, int byte) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &l) != 0) return LOCK_UNKNOWN;
    return l.l_type == F_UNLCK ? LOCK_FREE : LOCK_HELD;
}

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
    return TIDE_OK; // a file system without locks: the user must start one drain only
}

static tide_status open_file(tide__feed_reader *r, const char *path, tide_error *err) {
    TIDE_TRY(TIDE_COPY_TEXT(&r->path, path, err, "to read '%s'", path));
    // Without O_NONBLOCK a pipe of that name would be waited for.
    const int e = tide__mapped_file_open(&r->file, path, (r->look_only ? O_RDONLY : O_RDWR) | O_NONBLOCK, 0);
    if (e != 0) return io_error(r, e, err);
    TIDE_TRY(map_header(r, err));
    if (!r->look_only) TIDE_TRY(take_lock(r, err));
    return tide__feed_reader_refresh(r, err);
}

tide_status tide__feed_reader_open(const char *path, bool look_only, tide__feed_reader **out, tide_error *err) {
    tide__feed_reader *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to read '%s'", path));
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
        const reader_chunk *c = &r->chunks[i];
        if (e->offset < c->offset + c->bytes && c->offset < end) return bad(r, err, "two of its chunks overlap");
    }
    return TIDE_OK;
}

static tide__ring_room new_room(uint64_t begin, const void *slots, uint64_t n_slots) {
    return (tide__ring_room){.begin = begin, .n = UINT64_MAX - begin, .slots = slots, .mask = n_slots - 1};
}

static tide_status add_ring(tide__feed_reader *r, const reader_chunk *c, tide_error *err) {
    tide__ring_header *head = c->data;
    const uint64_t n = head->n_slots;
    if (!tide_is_pow2(n) || n < TIDE__FEED_MIN_SLOTS || n > TIDE__FEED_MAX_SLOTS ||
        n * sizeof(tide__slot) > c->bytes - TIDE__RING_HEADER_BYTES)
        return bad(r, err, "a ring has a number of slots that cannot be");
    reader_ring *ring = &r->rings[r->n_rings++];
    *ring = (reader_ring){.head = head, .n_rooms = 1, .n_slots = n, .n_most = n};
    ring->rooms[0] = new_room(0, (const char *)c->data + TIDE__RING_HEADER_BYTES, n);
    if (r->ring_slots > n) ring->n_most = r->ring_slots;
    return TIDE_OK;
}

static tide_status add_room(tide__feed_reader *r, const reader_chunk *c, const tide__chunk_entry *e, tide_error *err) {
    const uint64_t n = c->bytes / sizeof(tide__slot);
    if (e->ring >= r->n_rings) return bad(r, err, "there is room for a ring that it does not have");
    reader_ring *ring = &r->rings[e->ring];
    tide__ring_room *last = &ring->rooms[ring->n_rooms - 1];
    if (!tide_is_pow2(n) || n > TIDE__FEED_MAX_SLOTS || e->begin <= last->begin || ring->n_rooms == MAX_ROOMS)
        return bad(r, err, "a ring grows in a way that cannot be");
    last->n = e->begin - last->begin;
    ring->rooms[ring->n_rooms++] = new_room(e->begin, c->data, n);
    ring->n_slots += n;
    if (ring->n_most < n) ring->n_most = n;
    return TIDE_OK;
}

static tide_status add_chunk(tide__feed_reader *r, const tide__chunk_entry *e, uint64_t file_bytes, tide_error *err) {
    TIDE_TRY(check_entry(r, e, file_bytes, err));
    TIDE_TRY(TIDE_GROW(&r->chunks, &r->cap_chunks, r->n_chunks + 1, err, "to read '%s'", r->path));
    TIDE_TRY(TIDE_GROW(&r->rings, &r->cap_rings, r->n_rings + 1, err, "to read '%s'", r->path));
    reader_chunk c = {.offset = e->offset, .bytes = e->bytes, .kind = e->kind};
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
    const reader_ring *all = &r->rings[ring];
    const uint64_t n = atomic_load_explicit(&all->head->n_stuck, memory_order_relaxed);
    return n > 0 && n < all->n_most ? n : all->n_most;
}

tide__ring_room tide__feed_reader_room(const tide__feed_reader *r, size_t ring, uint64_t position) {
    const reader_ring *all = &r->rings[ring];
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

// ---- the log, record by record ----

/// The next record of a chunk; NULL: it has no more at present, or (*bad) cannot be read on.
static const tide__log_record *next_in_chunk(tide__feed_reader *r, const reader_chunk *c, bool *bad) {
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
        // A chunk that is followed by another one is full; so the number of chunks is looked at before the chunk's end.
        if (tide__feed_reader_refresh(r, NULL) != TIDE_OK) {
            // What is known stays readable; the caller's own refresh says what is wrong.
        }
        if (r->log_chunk >= r->n_chunks) return NULL;
        const reader_chunk *c = &r->chunks[r->log_chunk];
        bool has_next = false;
        for (size_t i = r->log_chunk + 1; i < r->n_chunks; i++)
            has_next = has_next || r->chunks[i].kind == TIDE__CHUNK_LOG;
        if (c->kind == TIDE__CHUNK_LOG && !r->log_is_bad) {
            const tide__log_record *record = next_in_chunk(r, c, bad);
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

// ---- the feeds of a trace, by name ----

/// "<trace>.feed-<pid>-<n>", and nothing behind it.
static bool is_feed_name(const char *name, const char *trace_name) {
    const size_t n = strlen(trace_name);
    if (strncmp(name, trace_name, n) != 0) return false;
    name += n;
    if (strncmp(name, TIDE__FEED_INFIX, strlen(TIDE__FEED_INFIX)) != 0) return false;
    name += strlen(TIDE__FEED_INFIX);
    const size_t pid_digits = strspn(name, "0123456789");
    if (pid_digits == 0 || name[pid_digits] != '-') return false;
    name += pid_digits + 1;
    const size_t n_digits = strspn(name, "0123456789");
    return n_digits > 0 && name[n_digits] == '\0';
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static tide_status list_dir(DIR *dir, const char *trace_path, size_t dir_len, char ***paths, size_t *n) {
    size_t cap = 0;
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (!is_feed_name(d->d_name, trace_path + dir_len)) continue;
        TIDE_TRY(tide_host_grow(paths, &cap, *n + 1, sizeof **paths));
        tide_text path = {0};
        tide_text_add_n(&path, trace_path, dir_len);
        tide_text_add(&path, d->d_name);
        if (path.failed) {
            tide_text_deinit(&path);
            return TIDE_ERR_NOMEM;
        }
        (*paths)[(*n)++] = path.data;
    }
    return TIDE_OK;
}

tide_status tide__feed_list(const char *trace_path, char ***paths, size_t *n, tide_error *err) {
    *paths = NULL;
    *n = 0;
    const char *slash = strrchr(trace_path, '/');
    const size_t dir_len = slash != NULL ? (size_t)(slash - trace_path) + 1 : 0;
    char *dir_path = dir_len > 0 ? tide_host_strndup(trace_path, dir_len) : tide_host_strdup(".");
    if (dir_path == NULL) return TIDE_NO_MEMORY(err, "to look for feeds of '%s'", trace_path);
    DIR *dir = opendir(dir_path);
    const int e = errno;
    tide_host_free(dir_path);
    if (dir == NULL) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot look for feeds of '%s': %s", trace_path, strerror(e));
    const tide_status st = list_dir(dir, trace_path, dir_len, paths, n);
    closedir(dir);
    if (st == TIDE_OK) {
        if (*n > 1) qsort(*paths, *n, sizeof **paths, by_name);
        return TIDE_OK;
    }
    for (size_t i = 0; i < *n; i++) tide_host_free((*paths)[i]);
    tide_host_free(*paths);
    *paths = NULL;
    *n = 0;
    return TIDE_FAIL(err, st, "no memory to look for feeds of '%s'", trace_path);
}

// ---- who uses it ----

/// Whether this boot and this process's view of pids are those of the producer.
static bool is_same_world(const tide__feed_header *h) {
    struct stat st;
    if (h->pid_namespace == 0 || stat("/proc/self/ns/pid", &st) != 0) return false;
    return (uint64_t)st.st_ino == h->pid_namespace;
}

static bool is_other_boot(const tide__feed_header *h) {
    char mine[TIDE__BOOT_ID_BYTES];
    tide__clock_boot_id(mine);
    return mine[0] != '\0' && h->boot_id[0] != '\0' && strncmp(mine, h->boot_id, sizeof mine) != 0;
}

/// Whether a process of that pid runs that began when the producer did. Not known: true.
static bool is_running(const tide__feed_header *h) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", h->pid);
    uint64_t ticks;
    char state;
    if (access("/proc/self/stat", R_OK) != 0) return true;
    // Without memory or files of our own to look closer, one that is there is believed.
    if (!tide__process_stat(path, &state, &ticks)) return access(path, F_OK) == 0;
    return state != 'Z' && state != 'X' && (h->start_ticks == 0 || ticks == h->start_ticks);
}

static bool producer_is_there(const tide__feed_reader *r) {
    const lock_state lock = lock_state_of(r->file.fd, TIDE__FEED_LOCK_PRODUCER);
    if (r->head->by_address != 0 && lock_state_of(r->file.fd, TIDE__FEED_LOCK_CHILD) == LOCK_HELD) return true;
    if (lock == LOCK_FREE || is_other_boot(r->head)) return false;
    // A process that the producer forked may hold the lock for it.
    return !is_same_world(r->head) || is_running(r->head);
}

bool tide__feed_reader_producer_lives(const tide__feed_reader *r) {
    if (atomic_load_explicit(&r->head->state, memory_order_acquire) != TIDE__FEED_OPEN) return false;
    return producer_is_there(r);
}

int tide__feed_reader_open_process(const tide__feed_reader *r) {
    char path[32];
    if (is_other_boot(r->head) || !is_same_world(r->head)) return -1;
    snprintf(path, sizeof path, "/proc/%" PRIu32, r->head->pid);
    const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && is_running(r->head)) return folder; // looked at again: it may have been another one's
    if (folder >= 0) close(folder);
    return -1;
}

bool tide__feed_reader_producer_has_gone(const tide__feed_reader *r) {
    if (lock_state_of(r->file.fd, TIDE__FEED_LOCK_PRODUCER) == LOCK_FREE || is_other_boot(r->head)) return true;
    return is_same_world(r->head) && !is_running(r->head);
}

/// A process that dies gives up its memory first, then its files and with them its locks, and is a zombie after that:
/// for a moment it looks like a running one that has no locks.
static bool has_memory(const tide__feed_header *h) {
    char path[48], text[32] = "";
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/statm", h->pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_read = read(fd, text, sizeof text - 1) > 0;
    close(fd);
    return is_read && strtoull(text, NULL, 10) > 0; // pages of its address space
}

bool tide__feed_reader_process_lives_on(const tide__feed_reader *r) {
    return lock_state_of(r->file.fd, TIDE__FEED_LOCK_PRODUCER) == LOCK_FREE && !is_other_boot(r->head) &&
           is_same_world(r->head) && r->head->start_ticks != 0 && has_memory(r->head) && is_running(r->head);
}

bool tide__feed_is_in_use(const char *path) {
    tide__feed_reader *r;
    if (tide__feed_reader_open(path, true, &r, NULL) != TIDE_OK) return false;
    const bool is_drained = lock_state_of(r->file.fd, TIDE__FEED_LOCK_DRAIN) == LOCK_HELD;
    const bool is_used = is_drained || producer_is_there(r);
    tide__feed_reader_close(r, false);
    return is_used;
}
