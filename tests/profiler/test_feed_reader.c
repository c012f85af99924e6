// SPDX-License-Identifier: MIT
//
// The reader of a feed: access rights, published events, and hostile files.
#include <fcntl.h>
#include <sys/wait.h>

#include "core/base/checked.h"
#include "feed_fixture.h"

enum { SLOTS = 64 };

// ---- which feeds there are ----

static void touch(const tmp_dir *d, const char *name) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", d->path, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fclose(f);
}

static void feeds_are_found_by_name(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char **paths;
    size_t n;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_list(d.file, &paths, &n, &err), &err);
    assert_int_equal(n, 0);
    static const char *const names[] = {"trace.db.feed-7-1",  "trace.db.feed-12-3", "trace.db.feed-7-1.new",
                                        "trace.db.feed-7",    "trace.db.feed--1",   "trace.db.feed-7-",
                                        "trace.db.feed-7-1x", "trace.db.feed-7a-1", "trace.db-feed-7-1",
                                        "other.db.feed-7-1",  "trace.db",           "trace.db.feed-7-1-1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) touch(&d, names[i]);
    assert_tide_ok(tide__feed_list(d.file, &paths, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_text_has(paths[0], "/trace.db.feed-12-3");
    assert_text_has(paths[1], "/trace.db.feed-7-1");
    assert_int_equal(access(paths[0], F_OK), 0); // with the folder
    for (size_t i = 0; i < n; i++) tide_host_free(paths[i]);
    tide_host_free(paths);
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    for (int64_t k = 0; k < 4; k++) {
        tide_host_fail_after(k);
        assert_tide_status(tide__feed_list(d.file, &paths, &n, &err), TIDE_ERR_NOMEM);
        tide_host_fail_after(-1);
        assert_null(paths);
        assert_int_equal(n, 0);
    }
    tide_host_get_stats(&after);
    assert_int_equal(after.n_live, before.n_live);
    assert_tide_status(tide__feed_list("/nonexistent folder/trace.db", &paths, &n, &err), TIDE_ERR_IO);
    tmp_dir_remove(&d);
}

// ---- who ----

static void one_drains_many_look(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    fx_alloc(fx, 5);
    const char *path = tide__feed_path(fx->feed);
    tide__feed_reader *other;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__feed_reader_open(path, false, &other, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "another process does");
    assert_tide_ok(tide__feed_reader_open(path, true, &other, &err), &err);
    assert_string_equal(tide__feed_reader_path(other), path);
    assert_int_equal(tide__feed_reader_end(other, 0, 0, false), 2);
    assert_int_equal(tide__feed_reader_slot(other, 0, 1)->block_id, 5);
    assert_true(tide__feed_reader_producer_lives(other));
    assert_true(tide__feed_is_in_use(path));
    tide__feed_reader_close(other, false);
    // The producer is in the same process here; both ends hold locks of their own.
    tide__feed_reader_close(fx->reader, false);
    assert_true(tide__feed_is_in_use(path));
    char kept[400];
    snprintf(kept, sizeof kept, "%s", path);
    tide__feed_end(fx->feed);
    tide__feed_destroy(fx->feed, false);
    fx->feed = NULL;
    assert_false(tide__feed_is_in_use(kept));
    assert_tide_ok(tide__feed_reader_open(kept, false, &fx->reader, &err), &err);
    assert_true(tide__feed_is_in_use(kept)); // by its drain
    assert_false(tide__feed_reader_producer_lives(fx->reader));
    fx_close(fx);
    assert_false(tide__feed_is_in_use(kept)); // not there
}

static void a_producer_lives_until_it_ends(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    tide__feed_header *h = tide__feed_head(fx->feed);
    assert_int_equal(h->pid, (uint32_t)getpid());
    assert_true(h->start_ticks != 0);
    assert_int_equal(strlen(h->boot_id), 36);
    assert_true(tide__feed_reader_producer_lives(fx->reader));
    // The lock is held, but by a child of a process that is gone: of that number there is none, or a later one.
    const uint64_t start = h->start_ticks;
    h->start_ticks = start - 1;
    assert_false(tide__feed_reader_producer_lives(fx->reader));
    h->start_ticks = start;
    h->pid = 0x7ffffff0; // beyond every pid_max
    assert_false(tide__feed_reader_producer_lives(fx->reader));
    const uint64_t world = h->pid_namespace;
    h->pid_namespace = world + 1; // its numbers mean nothing here: the lock must do
    assert_true(tide__feed_reader_producer_lives(fx->reader));
    h->pid_namespace = world;
    h->pid = (uint32_t)getpid();
    const char was = h->boot_id[0];
    h->boot_id[0] = 'x';
    assert_false(tide__feed_reader_producer_lives(fx->reader));
    h->boot_id[0] = was;
    assert_true(tide__feed_reader_producer_lives(fx->reader));
    tide__feed_end(fx->feed);
    assert_false(tide__feed_reader_producer_lives(fx->reader));
    assert_true(tide__feed_is_in_use(tide__feed_path(fx->feed))); // its maker still has it
    fx_close(fx);
}

// ---- what was published ----

static void heads_that_cannot_be(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    for (uint64_t i = 1; i <= 10; i++) fx_alloc(fx, i);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
    tide__ring_header *h = tide__feed_reader_ring(fx->reader, 0);
    assert_int_equal(tide__feed_reader_n_slots(fx->reader, 0), SLOTS);
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, 0, false), 11);
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, 11, false), 11);
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, 12, false), 12); // behind the tail: nothing
    h->head = 1000;                                                        // further than there are slots
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, 0, false), SLOTS);
    assert_non_null(tide__feed_reader_slot(fx->reader, 0, 10));
    assert_null(tide__feed_reader_slot(fx->reader, 0, 11));        // never written
    assert_null(tide__feed_reader_slot(fx->reader, 0, SLOTS + 3)); // written a round earlier
    h->head = UINT64_MAX;
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, 7, true), SLOTS + 7);
    h->head = 11;
    fx_close(fx);
}

/// Killed between the sequence of a slot and the head of the ring: the slot is whole.
static void slots_past_the_head(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    for (uint64_t i = 1; i <= 10; i++) fx_alloc(fx, i);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
    tide__ring_header *h = tide__feed_reader_ring(fx->reader, 0);
    h->head = 9;
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, 0, false), 9);
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, 0, true), 11);
    assert_int_equal(tide__feed_reader_slot(fx->reader, 0, 10)->block_id, 10);
    h->head = 11;
    // Around the end: what the last round left there is not counted.
    for (uint64_t i = 11; i < SLOTS + 20; i++) {
        atomic_store(&h->tail, atomic_load(&h->head));
        fx_alloc(fx, i);
    }
    const uint64_t head = h->head;
    h->head = head - 2;
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, head - 10, true), head);
    assert_int_equal(tide__feed_reader_end(fx->reader, 0, head - 2, true), head);
    h->head = head;
    fx_close(fx);
}

/// A reader that has read the heads finds all names that a slot may use, also in newer log blocks.
static void names_in_new_log_blocks(void **state) {
    (void)state;
    enum { N = 3 };
    feed_fx *fx = fx_open(SLOTS, false);
    const size_t len = TIDE__FEED_LOG_BYTES / 2;
    char *tag = malloc(len + 1);
    assert_non_null(tag);
    for (int i = 0; i < N; i++) { // two do not fit into one log block
        memset(tag, 'a' + i, len);
        tag[len] = '\0';
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
        e.tag = tag;
        tide__feed_memory(fx->feed, &e);
        if (i > 0) continue;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
    }
    fx_read_names(fx);
    assert_int_equal(fx->n_of[TIDE__LOG_TEXT], N + 1); // and the allocator's
    assert_string_equal(fx_text(fx, fx->n_of[TIDE__LOG_TEXT]), tag);
    free(tag);
    fx_close(fx);
}

// ---- files that mean harm ----

enum { IMAGE_EVENTS = 100 };

/// A feed of a ring that has grown and some names, closed; its file.
static void make_image(const tmp_dir *d, char path[400]) {
    tide__feed *f = fx_create(d, SLOTS * TIDE__RING_GROWTH, false);
    for (uint64_t i = 1; i <= IMAGE_EVENTS; i++) {
        tide_scope s = {.name = "scope", .index = (int32_t)i};
        tide_memory_event e = fx_event(TIDE_MEM_ALLOC, i);
        e.scope = &s;
        tide__feed_memory(f, &e);
    }
    snprintf(path, 400, "%s", tide__feed_path(f));
    tide__feed_end(f);
    tide__feed_destroy(f, false);
}

/// Read all that there is, each byte of it.
static uint64_t walk(tide__feed_reader *r) {
    uint64_t sum = 0;
    bool bad = false;
    for (const tide__log_record *rec; (rec = tide__feed_reader_next_record(r, &bad)) != NULL || bad;) {
        if (rec == NULL) continue; // nothing more of this piece
        const unsigned char *bytes = (const unsigned char *)(rec + 1);
        for (uint32_t i = 0; i < rec->payload_bytes; i++) sum += bytes[i];
    }
    for (size_t k = 0; k < tide__feed_reader_n_rings(r); k++) {
        const tide__ring_header *h = tide__feed_reader_ring(r, k);
        const uint64_t tail = h->tail, n_slots = tide__feed_reader_n_slots(r, k);
        const uint64_t end = tide__feed_reader_end(r, k, tail, true);
        assert_true(end - tail <= 2 * n_slots); // with what it was before it grew
        for (uint64_t at = tail; at != end; at++) {
            const tide__slot *s = tide__feed_reader_slot(r, k, at);
            if (s != NULL) sum += s->block_id + s->op;
        }
        for (uint64_t at = 0; at < n_slots; at++) {
            const tide__slot *s = tide__feed_reader_slot(r, k, at);
            if (s != NULL) sum += s->address;
        }
        for (int d = 0; d < TIDE__FEED_MAX_DEVICES; d++) sum += h->totals[d][TIDE__FEED_MAX_KINDS - 1].n_allocs;
    }
    return sum + tide__feed_reader_producer_lives(r);
}

/// Opens it and walks, or says why not.
static tide_status try_to_read(const char *path, bool look_only, tide_error *err) {
    tide__feed_reader *r;
    const tide_status st = tide__feed_reader_open(path, look_only, &r, err);
    if (st != TIDE_OK) {
        assert_true(st == TIDE_ERR_BAD_INPUT || st == TIDE_ERR_IO);
        assert_text_has(err->msg, "cannot read '");
        return st;
    }
    walk(r);
    tide__feed_reader_close(r, false);
    return TIDE_OK;
}

static void put_u64(int fd, size_t at, uint64_t v, size_t bytes) {
    assert_int_equal(pwrite(fd, &v, bytes, (off_t)at), (ssize_t)bytes);
}

static void each_field_that_counts_is_checked(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char path[400];
    make_image(&d, path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    static tide__feed_header h;
    assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
    assert_int_equal(h.n_chunks, 3);
    const size_t log_chunk = offsetof(tide__feed_header, chunks), ring_chunk = log_chunk + sizeof(tide__chunk_entry);
    const size_t more_chunk = ring_chunk + sizeof(tide__chunk_entry);
    const size_t n_slots_at = h.chunks[1].offset + offsetof(tide__ring_header, n_slots);
    const struct {
        size_t at;
        uint64_t value;
        size_t bytes;
        const char *why;
    } bad[] = {
        {offsetof(tide__feed_header, magic), 0x7469646566656564, 8, "no feed of this kind of machine"},
        {offsetof(tide__feed_header, version), TIDE__FEED_VERSION + 1, 4, "another version"},
        {offsetof(tide__feed_header, header_bytes), 4096, 4, "header cannot be"},
        {offsetof(tide__feed_header, slot_bytes), 32, 4, "header cannot be"},
        {offsetof(tide__feed_header, max_chunks), 1 << 30, 4, "header cannot be"},
        {offsetof(tide__feed_header, n_chunks), TIDE__FEED_MAX_CHUNKS + 1, 4, "number of chunks"},
        {offsetof(tide__feed_header, n_chunks), 4, 4, "no known kind"}, // an empty entry
        {log_chunk, 0, 8, "place or size"},                             // over the header
        {log_chunk, h.chunks[0].offset + 8, 8, "place or size"},
        {log_chunk, UINT64_MAX - 4095, 8, "place or size"}, // wraps
        {log_chunk + 8, 0, 8, "place or size"},
        {log_chunk + 8, h.chunks[0].bytes + 64, 8, "place or size"},
        {log_chunk + 8, h.chunks[0].bytes + 4096, 8, "overlap"},
        {log_chunk + 16, 4, 4, "no known kind"},
        {log_chunk + 16, TIDE__CHUNK_MORE, 4, "room for a ring that it does not have"}, // before there is one
        {ring_chunk, h.chunks[0].offset, 8, "overlap"},
        {more_chunk, h.chunks[1].offset, 8, "overlap"},
        {more_chunk, h.chunks[2].offset + 4096, 8, "ends before its last chunk"},
        {more_chunk + 8, 3 * 4096, 8, "in a way that cannot be"},
        {more_chunk + 20, 1, 4, "room for a ring that it does not have"},
        {more_chunk + 24, 0, 8, "in a way that cannot be"}, // at the beginning of the ring
        {ring_chunk + 8, 4096, 8, "place or size"},         // no room for a ring
        {ring_chunk + 8, UINT64_C(1) << 40, 8, "ends before its last chunk"},
        {n_slots_at, 0, 8, "number of slots"},
        {n_slots_at, 63, 8, "number of slots"},
        {n_slots_at, 32, 8, "number of slots"},
        {n_slots_at, 128, 8, "number of slots"}, // more than the chunk holds
        {n_slots_at, UINT64_C(1) << 58, 8, "number of slots"},
        {n_slots_at, UINT64_C(1) << 63, 8, "number of slots"},
    };
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(try_to_read(path, false, &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t was = 0;
        assert_int_equal(pread(fd, &was, bad[i].bytes, (off_t)bad[i].at), (ssize_t)bad[i].bytes);
        put_u64(fd, bad[i].at, bad[i].value, bad[i].bytes);
        assert_tide_status(try_to_read(path, i % 2 == 0, &err), TIDE_ERR_BAD_INPUT);
        assert_text_has(err.msg, bad[i].why);
        put_u64(fd, bad[i].at, was, bad[i].bytes);
    }
    assert_tide_ok(try_to_read(path, false, &err), &err);
    static const size_t lengths[] = {0, 1, TIDE__FEED_HEADER_BYTES - 1, TIDE__FEED_HEADER_BYTES, 1000000};
    for (size_t i = sizeof lengths / sizeof lengths[0]; i-- > 0;) {
        assert_int_equal(ftruncate(fd, (off_t)lengths[i]), 0);
        assert_tide_status(try_to_read(path, false, &err), TIDE_ERR_BAD_INPUT);
    }
    close(fd);
    tmp_dir_remove(&d);
}

/// Numbers of the log's header and of each record: nothing of this piece follows, and that is said once.
static void a_damaged_log(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char path[400];
    make_image(&d, path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    static tide__feed_header h;
    assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
    const size_t log = h.chunks[0].offset, first = log + sizeof(tide__log_header);
    tide__log_record r;
    assert_int_equal(pread(fd, &r, sizeof r, (off_t)first), sizeof r);
    const struct {
        size_t at;
        uint64_t value;
        size_t bytes;
        int n_good; ///< records before it
    } bad[] = {
        {log, UINT64_MAX, 8, 0},
        {log, TIDE__FEED_LOG_BYTES, 8, 0},
        {log, 8, 8, 0},
        {first, 0, 4, 0},
        {first, 8, 4, 0},
        {first, 20, 4, 0},
        {first, UINT32_MAX - 7, 4, 0},
        {first + 12, UINT32_MAX, 4, 0},
        {first + 12, r.bytes - 15, 4, 0},
        {first + r.bytes, 12, 4, 1},
        {log, r.bytes + 8, 8, 1},
    };
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t was = 0;
        assert_int_equal(pread(fd, &was, bad[i].bytes, (off_t)bad[i].at), (ssize_t)bad[i].bytes);
        put_u64(fd, bad[i].at, bad[i].value, bad[i].bytes);
        tide__feed_reader *reader;
        assert_tide_ok(tide__feed_reader_open(path, true, &reader, &err), &err);
        bool is_bad = true;
        for (int k = 0; k < bad[i].n_good; k++) {
            assert_non_null(tide__feed_reader_next_record(reader, &is_bad));
            assert_false(is_bad);
        }
        assert_null(tide__feed_reader_next_record(reader, &is_bad));
        assert_true(is_bad);
        assert_null(tide__feed_reader_next_record(reader, &is_bad));
        assert_false(is_bad); // said
        tide__feed_reader_close(reader, false);
        put_u64(fd, bad[i].at, was, bad[i].bytes);
    }
    // A record that is made longer once it was checked: what is told of it stays what was checked.
    tide__feed_reader *reader;
    bool is_bad;
    assert_tide_ok(tide__feed_reader_open(path, true, &reader, &err), &err);
    const tide__log_record *mapped = tide__feed_reader_next_record(reader, &is_bad);
    assert_non_null(mapped);
    put_u64(fd, first + 12, UINT32_MAX, 4);
    assert_int_equal(mapped->payload_bytes, UINT32_MAX);
    assert_memory_equal(tide__feed_reader_record(reader), &r, sizeof r);
    tide__feed_reader_close(reader, false);
    close(fd);
    tmp_dir_remove(&d);
}

/// What can be wrong is wrong: bytes at random where they count, and lengths.
static void random_damage_is_survived(void **state) {
    (void)state;
    enum { N_ROUNDS = 6000, MAX_CHANGES = 6 };
    tmp_dir d;
    tmp_dir_make(&d);
    char path[400];
    make_image(&d, path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    static tide__feed_header h;
    assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
    const struct {
        size_t at, bytes;
    } places[] = {{0, offsetof(tide__feed_header, error)},
                  {offsetof(tide__feed_header, chunks), 4 * sizeof(tide__chunk_entry)},
                  {h.chunks[0].offset, 4096},
                  {h.chunks[1].offset, 256},
                  {h.chunks[1].offset + TIDE__RING_HEADER_BYTES, SLOTS * sizeof(tide__slot)},
                  {h.chunks[2].offset, IMAGE_EVENTS * sizeof(tide__slot)}};
    tide_rng rng = {.state = 2024};
    tide_error err = TIDE_ERROR_INIT;
    int n_read = 0;
    for (int round = 0; round < N_ROUNDS; round++) {
        struct {
            size_t at;
            uint64_t was;
        } changes[MAX_CHANGES];
        const int n = 1 + (int)tide_rng_below(&rng, MAX_CHANGES);
        for (int i = 0; i < n; i++) {
            const size_t place = tide_rng_below(&rng, sizeof places / sizeof places[0]);
            changes[i].at = places[place].at + tide_rng_below(&rng, places[place].bytes / 8) * 8;
            assert_int_equal(pread(fd, &changes[i].was, 8, (off_t)changes[i].at), 8);
            static const uint64_t edges[] = {0, 1, UINT64_MAX, 4096, UINT64_C(1) << 31, UINT64_C(1) << 32, 63, 64, 128};
            uint64_t v = tide_rng_u64(&rng) >> tide_rng_below(&rng, 64);
            if (tide_rng_below(&rng, 2) == 0) v = edges[tide_rng_below(&rng, 9)];
            if (tide_rng_below(&rng, 3) == 0) v = changes[i].was + (v & 15) * 8;
            if (tide_rng_below(&rng, 3) == 0) v = changes[i].was ^ UINT64_C(1) << (v & 63);
            put_u64(fd, changes[i].at, v, 8);
        }
        n_read += try_to_read(path, round % 2 == 0, &err) == TIDE_OK;
        for (int i = n; i-- > 0;) put_u64(fd, changes[i].at, changes[i].was, 8);
    }
    assert_true(n_read > N_ROUNDS / 10 && n_read < N_ROUNDS * 9 / 10); // the walk was tested, and the checks
    assert_tide_ok(try_to_read(path, false, &err), &err);
    close(fd);
    tmp_dir_remove(&d);
}

static void what_is_no_file(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_error err = TIDE_ERROR_INIT;
    tide__feed_reader *r;
    assert_tide_status(tide__feed_reader_open(d.file, false, &r, &err), TIDE_ERR_IO);
    assert_tide_status(tide__feed_reader_open(d.path, false, &r, &err), TIDE_ERR_IO);
    assert_tide_status(tide__feed_reader_open(d.path, true, &r, &err), TIDE_ERR_BAD_INPUT);
    assert_int_equal(mkfifo(d.file, 0600), 0); // is not waited for
    assert_tide_status(tide__feed_reader_open(d.file, false, &r, &err), TIDE_ERR_BAD_INPUT);
    assert_tide_status(tide__feed_reader_open(d.file, true, &r, &err), TIDE_ERR_BAD_INPUT);
    assert_false(tide__feed_is_in_use(d.file));
    tide__feed_reader_close(NULL, true);
    tmp_dir_remove(&d);
}

static void no_memory_to_read(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    fx_alloc(fx, 1);
    tide_error err = TIDE_ERROR_INIT;
    tide__feed_reader *r = NULL;
    int64_t n = 0;
    for (;; n++) {
        tide_host_fail_after(n);
        const tide_status st = tide__feed_reader_open(tide__feed_path(fx->feed), true, &r, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
    }
    assert_int_equal(n, 5); // the reader, its path, its maps, its chunks, its rings
    tide__feed_reader_close(r, false);
    fx_close(fx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(feeds_are_found_by_name),
        tide_unit_test(one_drains_many_look),
        tide_unit_test(a_producer_lives_until_it_ends),
        tide_unit_test(heads_that_cannot_be),
        tide_unit_test(slots_past_the_head),
        tide_unit_test(names_in_new_log_blocks),
        tide_unit_test(each_field_that_counts_is_checked),
        tide_unit_test(a_damaged_log),
        tide_unit_test(random_damage_is_survived),
        tide_unit_test(what_is_no_file),
        tide_unit_test(no_memory_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
