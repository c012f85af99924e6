// SPDX-License-Identifier: MIT
//
// Files of other tools that were changed at random: each is read or refused with a place, what was read holds together,
// and nothing of memory is touched that should not be (sanitizers look on). In make soak ten million pickles, and a
// hundred thousand files of each other format.
#include <stdio.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/import/import_internal.h"
#include "tests/tide_test.h"

enum { FEW = 5000, ALL = 10000000, TRACES_FEW = 30, MAX_CORPUS = 4, FILES_FEW = 30, FILES_ALL = 100000 };

// ---- a corpus: small snapshots, as picklers write them ----

typedef struct writer {
    tide_text out;
    bool is_old; // protocol 2: numbers of the memo are written
    uint32_t n_memo;
} writer;

static void put_byte(writer *w, int byte) {
    const char c = (char)byte;
    tide_text_add_n(&w->out, &c, 1);
}

static void put_number(writer *w, uint64_t v, size_t n) {
    for (size_t i = 0; i < n; i++) put_byte(w, i < 8 ? (int)(v >> 8 * i & 0xff) : 0);
}

static void memoize(writer *w) {
    if (!w->is_old) {
        put_byte(w, 0x94);
    } else {
        put_byte(w, 'r');
        put_number(w, w->n_memo, 4);
    }
    w->n_memo++;
}

static void put_text(writer *w, const char *text) {
    if (w->is_old) put_byte(w, 'X'), put_number(w, strlen(text), 4);
    if (!w->is_old) put_byte(w, 0x8c), put_number(w, strlen(text), 1);
    tide_text_add(&w->out, text);
    memoize(w);
}

static void put_int(writer *w, uint64_t v) {
    if (v < 256) {
        put_byte(w, 'K');
        put_number(w, v, 1);
    } else if (v < 65536) {
        put_byte(w, 'M');
        put_number(w, v, 2);
    } else {
        put_byte(w, 0x8a);
        put_number(w, 8, 1);
        put_number(w, v, 8);
    }
}

static void begin(writer *w, int container) {
    put_byte(w, container);
    memoize(w);
    put_byte(w, '(');
}

static void key(writer *w, const char *name, uint64_t v) {
    put_text(w, name);
    put_int(w, v);
}

static void frames(writer *w, unsigned n) {
    put_text(w, "frames");
    begin(w, ']');
    for (unsigned i = 0; i < n; i++) {
        begin(w, '}');
        put_text(w, "name");
        put_text(w, i % 2 == 0 ? "forward" : "at::_ops::bmm::call(at::Tensor)");
        put_text(w, "filename");
        put_text(w, i % 2 == 0 ? "/home/ann/model.py" : "??");
        key(w, "line", i);
        put_byte(w, 'u');
    }
    put_byte(w, 'e');
}

static void event(writer *w, const char *action, uint64_t addr, uint64_t size, uint64_t time_us) {
    begin(w, '}');
    put_text(w, "action");
    put_text(w, action);
    key(w, "addr", addr);
    key(w, "size", size);
    key(w, "stream", 0);
    key(w, "time_us", time_us);
    frames(w, (unsigned)(addr >> 20) % 5);
    put_byte(w, 'u');
}

static void segment(writer *w, uint64_t address) {
    static const char *const states[] = {"active_allocated", "inactive", "active_pending_free"};
    begin(w, '}');
    key(w, "device", 0);
    key(w, "address", address);
    key(w, "total_size", 20 << 20);
    key(w, "stream", 0);
    put_text(w, "is_expandable");
    put_byte(w, 0x89);
    put_text(w, "blocks");
    begin(w, ']');
    for (unsigned i = 0; i < 3; i++) {
        begin(w, '}');
        key(w, "address", address + (i << 20));
        key(w, "size", 1 << 20);
        key(w, "requested_size", 1000 * (i + 1));
        put_text(w, "state");
        put_text(w, states[i]);
        put_byte(w, 'u');
    }
    put_byte(w, 'e');
    put_byte(w, 'u');
}

static void snapshot(writer *w, unsigned n_devices) {
    static const char *const actions[] = {"segment_alloc",  "alloc",         "alloc",         "free_requested",
                                          "free_completed", "alloc",         "oom",           "snapshot",
                                          "segment_map",    "segment_unmap", "free_completed"};
    const uint64_t base = UINT64_C(0x7f0000000000);
    put_byte(w, 0x80);
    put_byte(w, w->is_old ? 2 : 4);
    begin(w, '}');
    put_text(w, "segments");
    begin(w, ']');
    for (unsigned i = 0; i < 2; i++) segment(w, base + ((uint64_t)i << 30));
    put_byte(w, 'e');
    put_text(w, "device_traces");
    begin(w, ']');
    for (unsigned d = 0; d < n_devices; d++) {
        begin(w, ']');
        for (unsigned i = 0; i < sizeof actions / sizeof actions[0]; i++)
            event(w, actions[i], base + (i % 3 << 20), 1000 * i, 1000000 + 10 * i + d);
        put_byte(w, 'e');
    }
    put_byte(w, 'e');
    put_text(w, "external_annotations");
    begin(w, ']');
    begin(w, '}');
    put_text(w, "stage");
    put_text(w, "START");
    put_text(w, "name");
    put_text(w, "step 10");
    key(w, "device", 0);
    key(w, "time_us", 1000020);
    put_byte(w, 'u');
    put_byte(w, 'e');
    put_byte(w, 'u');
    put_byte(w, '.');
}

// ---- one of them ----

static void assert_whole(const tide__torch_snapshot *s) {
    for (size_t i = 1; i < s->n_nodes; i++) {
        assert_true(s->nodes[i].parent < i);
        assert_true(s->nodes[i].frame < s->n_frames);
    }
    for (size_t i = 0; i < s->n_frames; i++)
        assert_true(s->frames[i].function < s->n_texts && s->frames[i].file < s->n_texts);
    for (size_t i = 0; i < s->n_segments; i++)
        assert_true(s->segments[i].n_blocks <= s->n_blocks &&
                    s->segments[i].first_block <= s->n_blocks - s->segments[i].n_blocks);
    for (size_t i = 0; i < s->n_tracks; i++)
        assert_true(s->tracks[i].n <= s->n_events && s->tracks[i].first <= s->n_events - s->tracks[i].n);
    for (size_t i = 0; i < s->n_blocks; i++) assert_true(s->blocks[i].stack < s->n_nodes);
}

/// @return whether it could be read
static bool read_one(char *bytes, size_t n, FILE *spool, tide__torch_snapshot *s) {
    tide_error err = TIDE_ERROR_INIT;
    FILE *in = fmemopen(bytes, n, "r");
    assert_non_null(in);
    rewind(spool);
    const tide_status st = tide__torch_snapshot_read(in, "fuzzed", spool, s, &err);
    fclose(in);
    if (st == TIDE_OK) {
        assert_whole(s);
        return true;
    }
    assert_int_equal(st, TIDE_ERR_BAD_INPUT);
    assert_true(err.msg[0] != '\0' && err.where[0] != '\0');
    return false;
}

static void change(tide_rng *rng, char *bytes, size_t *n, const writer *other) {
    for (uint64_t k = 1 + tide_rng_below(rng, 4); k > 0; k--) {
        const size_t at = 2 + (size_t)tide_rng_below(rng, *n - 2);
        const size_t part = 1 + (size_t)tide_rng_below(rng, 12);
        switch (tide_rng_below(rng, 6)) {
        case 0:
            bytes[at] = (char)tide_rng_u64(rng);
            break;
        case 1:
            bytes[at] ^= (char)(1 << tide_rng_below(rng, 8));
            break;
        case 2: // an opcode
            bytes[at] = "()]}aeuust.0\x85\x94\x8a\x89hjKMNr"[tide_rng_below(rng, 22)];
            break;
        case 3: // a part of another file
            if (at + part < *n && at + part < other->out.len) memcpy(bytes + at, other->out.data + at, part);
            break;
        case 4: // left out
            if (at + part < *n) {
                memmove(bytes + at, bytes + at + part, *n - at - part);
                *n -= part;
            }
            break;
        default: // cut
            if (tide_rng_below(rng, 8) == 0) *n = at + 1;
        }
        if (*n < 8) return;
    }
}

/// A list that holds something else gets the dict of an event: refused, and no range of dicts is looked for. `first`:
/// opcodes of what it holds.
static void grow_list_of(const char *first) {
    writer w = {0};
    FILE *spool = tmpfile();
    tide__torch_snapshot s = {0};
    assert_non_null(spool);
    put_byte(&w, 0x80);
    put_byte(&w, 4);
    tide_text_add(&w.out, "](");
    tide_text_add(&w.out, first);
    tide_text_add(&w.out, "e(");
    event(&w, "alloc", 1 << 20, 512, 1000);
    tide_text_add(&w.out, "e.");
    assert_false(w.out.failed);
    assert_false(read_one(w.out.data, w.out.len, spool, &s));
    tide__torch_snapshot_deinit(&s);
    tide_text_deinit(&w.out);
    fclose(spool);
}

static void test_lists_of_two_kinds(void **state) {
    (void)state;
    grow_list_of("]]]]");      // lists
    grow_list_of("K\1");       // a number
    grow_list_of("}(K\1K\1u"); // a dict of none of the known kinds
}

static void test_changed_pickles(void **state) {
    writer corpus[MAX_CORPUS] = {{.is_old = true}, {.is_old = false}, {.is_old = true}, {.is_old = false}};
    tide_rng rng = {.state = 20261127};
    FILE *spool = tmpfile();
    size_t n_read = 0, n_traces = 0, n_rounds = (size_t)tide_test_rounds(FEW, ALL), longest = 0;
    (void)state;
    assert_non_null(spool);
    for (unsigned i = 0; i < MAX_CORPUS; i++) {
        snapshot(&corpus[i], i < 2 ? 1 : 3);
        assert_false(corpus[i].out.failed);
        if (corpus[i].out.len > longest) longest = corpus[i].out.len;
    }
    char *bytes = tide_host_alloc(longest);
    assert_non_null(bytes);
    for (size_t i = 0; i < n_rounds; i++) {
        const writer *from = &corpus[tide_rng_below(&rng, MAX_CORPUS)];
        size_t n = from->out.len;
        memcpy(bytes, from->out.data, n);
        if (i >= MAX_CORPUS) change(&rng, bytes, &n, &corpus[tide_rng_below(&rng, MAX_CORPUS)]);
        tide__torch_snapshot s = {0};
        const bool is_read = read_one(bytes, n, spool, &s);
        if (i < MAX_CORPUS) assert_true(is_read || from != &corpus[0]);
        n_read += is_read;
        if (is_read && n_traces < TRACES_FEW && i % 7 == 0) { // and what a trace is made of it
            tide_error err = TIDE_ERROR_INIT;
            tide__new_trace out;
            tide_import_report report = {0};
            char path[64];
            snprintf(path, sizeof path, "/tmp/tidemark-fuzz-%d.db", (int)getpid());
            assert_tide_ok(tide__new_trace_create(&out, path, &err), &err);
            const tide_status st = tide__torch_trace(&s, "fuzzed", &out, &report, &err);
            assert_true(st == TIDE_OK || st == TIDE_ERR_BAD_INPUT);
            tide__new_trace_deinit(&out);
            n_traces++;
        }
        tide__torch_snapshot_deinit(&s);
    }
    print_message("%zu of %zu were read, %zu became traces\n", n_read, n_rounds, n_traces);
    assert_true(n_read > n_rounds / 100 && n_read < n_rounds && n_traces > 10);
    for (unsigned i = 0; i < MAX_CORPUS; i++) tide_text_deinit(&corpus[i].out);
    tide_host_free(bytes);
    fclose(spool);
}

// ---- files that become traces as they are read ----

/// Bytes of a capture of memray; those with sums of versions 12 and 13.
static void capture(writer *w, unsigned version, bool has_sums) {
    static const unsigned char new_records[] = {
        2,    5,    1,    12, 1,    0,    0,    0,    0,    0,    0,    0,    14,   7,       'f',  0,    'a', 0,
        20,   4,    0xe8, 2,  0xd7, 1,    0x41, 7,    4,    0xfe, 0x80, 2,    5,    0xf8,    0x80, 4,    14,  0x80,
        0x20, 0xf8, 0x80, 6,  14,   0x80, 0x40, 0xf8, 0x7f, 15,   0x80, 0x10, 0xed, 32 | 29, 33,   0xf9, 9,   0x10,
        10,   'T',  0,    2,  7,    9,    0xfa, 2,    0,    7,    'l',  0,    1,    1,       2,    3,    4,   5,
        6,    7,    8,    8,  1,    2,    3,    4,    5,    6,    7,    8,    9,    1};
    static const unsigned char old_records[] = {
        11,   5,    1,    12,   1,    0, 0,  0,    0,    0,  0,    0,    0x13, 14,   'f', 0,    'a',  0,
        20,   4,    0,    0x11, 0x80, 2, 5,  0xa1, 0x80, 4,  0x80, 0x20, 0xa1, 0x80, 6,   0x80, 0x40, 0xb1,
        0x7f, 0x80, 0x10, 0x21, 0x7f, 9, 10, 'T',  0,    11, 7,    9,    0xc1, 2,    0,   0x10};
    static const unsigned char sums_begin[] = {1,  1, 2,    3, 4,    5,  6, 7, 8, 1, 2, 3, 4, 5, 6,  7, 8,   1,  2,   3,
                                               4,  5, 6,    7, 8,    12, 1, 0, 0, 0, 0, 0, 0, 0, 14, 7, 'f', 0,  'a', 0,
                                               20, 4, 0xe8, 2, 0xd7, 1,  4, 0, 7, 2, 1, 3, 0, 0, 3,  0, 1,   13, 5};
    tide_text_add_n(&w->out, "memray", 7);
    put_number(w, version, 4);
    if (version >= 12) put_number(w, 0x030b07f0, 4);
    put_byte(w, 0);
    put_byte(w, has_sums);
    put_number(w, 0, 16);
    for (int i = 0; i < 2; i++) put_number(w, UINT64_C(1700000000000) + (uint64_t)i, 8);
    tide_text_add_n(&w->out, "prog", 5);
    put_number(w, 4711, 4);
    put_number(w, 1, 16);
    put_byte(w, 1);
    put_number(w, 0, (version >= 11) + (version >= 12) + (version >= 13) * 3u);
    if (!has_sums && version >= 12) tide_text_add_n(&w->out, (const char *)new_records, sizeof new_records);
    if (!has_sums && version < 12) tide_text_add_n(&w->out, (const char *)old_records, sizeof old_records);
    if (!has_sums) return;
    tide_text_add_n(&w->out, (const char *)sums_begin, sizeof sums_begin);
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t fields[] = {1, i == 0 ? 14 : 6, 0, i, 0, i, 1, 1000 * i, 500};
        put_byte(w, 2);
        for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) put_number(w, fields[k], 8);
    }
    put_byte(w, 15);
}

/// @return whether it became a trace
static bool import_one(const char *folder, const char *bytes, size_t n) {
    char path[128], out[128];
    tide_error err = TIDE_ERROR_INIT;
    tide_import_report report;
    snprintf(path, sizeof path, "%s/in", folder);
    snprintf(out, sizeof out, "%s/out.db", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    const tide_status st = tide_import_file(path, out, &report, &err);
    assert_true(st == TIDE_OK || st == TIDE_ERR_BAD_INPUT);
    assert_int_equal(access(out, F_OK), st == TIDE_OK ? 0 : -1);
    if (st != TIDE_OK) assert_true(err.msg[0] != '\0');
    unlink(out);
    unlink(path);
    return st == TIDE_OK;
}

/// `rounds` files, each a changed one of the corpus; the files themselves first.
static void import_changed(writer *corpus, size_t n_corpus, size_t rounds) {
    tide_rng rng = {.state = 20261128};
    char folder[] = "/tmp/tidemark-fuzz-XXXXXX";
    size_t n_read = 0;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < rounds; i++) {
        const writer *from = &corpus[i < n_corpus ? i : tide_rng_below(&rng, n_corpus)];
        size_t n = from->out.len;
        char *bytes = tide_host_alloc(n); // of its own size: what is read behind it is found
        assert_true(!from->out.failed && bytes != NULL);
        memcpy(bytes, from->out.data, n);
        if (i >= n_corpus) change(&rng, bytes, &n, &corpus[tide_rng_below(&rng, n_corpus)]);
        const bool is_read = import_one(folder, bytes, n);
        if (i < n_corpus) assert_true(is_read);
        n_read += is_read;
        tide_host_free(bytes);
    }
    print_message("%zu of %zu became traces\n", n_read, rounds);
    assert_true(n_read > rounds / 100 && n_read < rounds);
    rmdir(folder);
    for (size_t i = 0; i < n_corpus; i++) tide_text_deinit(&corpus[i].out);
}

static void test_changed_captures_of_memray(void **state) {
    static const unsigned versions[] = {10, 12, 11, 13, 13, 12};
    writer corpus[6] = {0};
    (void)state;
    for (unsigned i = 0; i < 6; i++) capture(&corpus[i], versions[i], i % 2 == 1);
    import_changed(corpus, 6, (size_t)tide_test_rounds(FILES_FEW, FILES_ALL));
}

static void test_changed_logs_of_rmm(void **state) {
    writer corpus[2] = {0};
    (void)state;
    tide_text_add(&corpus[0].out,
                  "Thread,Time,Action,Pointer,Size,Stream\n"
                  "47,11:54:32.123456,allocate,0x7f00,1024,0x2\n47,11:54:32.123460,free,0x7f00,1024,0x2\n"
                  "9,11:54:33.000001,allocate failure,(nil),1073741824,0x2\n");
    tide_text_add(&corpus[1].out,
                  "Size,Time,Action,Pointer,Thread,Stream,More\n512,23:59:59:999999,allocate,0x10,1,0,x\n"
                  "512,00:00:00:000001,allocate,0x10,1,0,x\n8,00:00:01:5,free,0x20,1,0,x\n");
    import_changed(corpus, 2, (size_t)tide_test_rounds(FILES_FEW, FILES_ALL));
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(test_lists_of_two_kinds), tide_unit_test(test_changed_pickles),
                                       tide_unit_test(test_changed_captures_of_memray),
                                       tide_unit_test(test_changed_logs_of_rmm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
