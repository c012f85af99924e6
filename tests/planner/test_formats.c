// SPDX-License-Identifier: MIT
//
// planner/formats: a small writer of flatbuffers makes a model of TensorFlow Lite and a program of ExecuTorch; read
// back they are lists, and cut, damaged or without memory they are refused without a trace. What the figures must be is
// tested by tests/cli/lists.py.
#include "planner/formats/formats_internal.h"
#include "tests/planner/plan_test.h"

// ---- a writer of flatbuffers: parents before children, a vtable for each table ----

typedef struct table table;
typedef struct field {
    char type; // 0: absent; '1', '4', '8': a number of so many bytes; 's', 'i', 'q', 't', 'T': what `at` points to
    uint64_t number;
    const void *at;
    size_t n;
} field;
enum { N_FIELDS = 13 };
struct table {
    field f[N_FIELDS];
};

typedef struct writer {
    unsigned char data[8192];
    size_t len;
} writer;

static void put_number(writer *w, size_t at, uint64_t v, size_t n) {
    assert_true(at + n <= sizeof w->data);
    for (size_t i = 0; i < n; i++) w->data[at + i] = (unsigned char)(v >> (8 * i));
}

static size_t take(writer *w, size_t n) {
    const size_t at = w->len;
    w->len += n;
    assert_true(w->len <= sizeof w->data);
    return at;
}

static void point(writer *w, size_t at) { put_number(w, at, w->len - at, 4); }
static size_t width(char type) { return type == '1' ? 1 : type == '8' ? 8 : 4; }

static void write_table(writer *w, size_t at, const table *t);

static void write_child(writer *w, size_t at, const field *f) {
    if (f->type == 't') {
        write_table(w, at, f->at);
        return;
    }
    point(w, at);
    put_number(w, take(w, 4), f->n, 4);
    if (f->type == 's') {
        const size_t to = take(w, f->n + 1);
        for (size_t i = 0; i < f->n; i++) w->data[to + i] = ((const unsigned char *)f->at)[i];
    }
    for (size_t i = 0; f->type == 'i' && i < f->n; i++) put_number(w, take(w, 4), (uint64_t)((const int *)f->at)[i], 4);
    for (size_t i = 0; f->type == 'q' && i < f->n; i++) put_number(w, take(w, 8), ((const uint64_t *)f->at)[i], 8);
    if (f->type != 'T') return;
    const size_t first = take(w, 4 * f->n);
    for (size_t i = 0; i < f->n; i++) write_table(w, first + 4 * i, &((const table *)f->at)[i]);
}

static void write_table(writer *w, size_t at, const table *t) {
    const size_t vtable = take(w, 4 + 2 * N_FIELDS);
    const size_t begin = take(w, 4);
    put_number(w, at, begin - at, 4);
    put_number(w, begin, begin - vtable, 4);
    size_t places[N_FIELDS];
    for (size_t k = 0; k < N_FIELDS; k++) {
        if (t->f[k].type == 0) continue;
        places[k] = take(w, width(t->f[k].type));
        put_number(w, vtable + 4 + 2 * k, places[k] - begin, 2);
        if (t->f[k].at == NULL) put_number(w, places[k], t->f[k].number, width(t->f[k].type));
    }
    put_number(w, vtable, 4 + 2 * N_FIELDS, 2);
    put_number(w, vtable + 2, w->len - begin, 2);
    for (size_t k = 0; k < N_FIELDS; k++)
        if (t->f[k].type != 0 && t->f[k].at != NULL) write_child(w, places[k], &t->f[k]);
}

static void write_file(writer *w, const char *identifier, const table *root) {
    *w = (writer){.len = 8};
    for (size_t i = 0; i < 4; i++) w->data[4 + i] = (unsigned char)identifier[i];
    write_table(w, 0, root);
}

#define U8(v)                                                                                                          \
    { .type = '1', .number = (v) }
#define U32(v)                                                                                                         \
    { .type = '4', .number = (uint64_t)(v) }
#define TEXT(s)                                                                                                        \
    { .type = 's', .at = (s), .n = sizeof(s) - 1 }
#define INTS(...)                                                                                                      \
    { .type = 'i', .at = (const int[]){__VA_ARGS__}, .n = sizeof((const int[]){__VA_ARGS__}) / 4 }
#define LONGS(...)                                                                                                     \
    { .type = 'q', .at = (const uint64_t[]){__VA_ARGS__}, .n = sizeof((const uint64_t[]){__VA_ARGS__}) / 8 }
#define TABLE(t)                                                                                                       \
    { .type = 't', .at = (t) }
#define TABLES(list)                                                                                                   \
    { .type = 'T', .at = (list), .n = sizeof(list) / sizeof(table) }

// ---- a model with an If, a weight and offsets of its own; a program with a view and a list ----

static void lite_file(writer *w) {
    const table codes[] = {{{U8(118), [3] = U32(118)}}, {{U8(32), TEXT("mine"), [3] = U32(32)}}};
    const table tensors[] = {{{INTS(4, 4), U8(0), U32(0), TEXT("x")}},
                             {{INTS(3), U8(9), U32(1), TEXT("w")}},
                             {{INTS(5), U8(17), U32(0), TEXT("y"), [7] = INTS(-1)}},
                             {{INTS(2), U8(5), U32(0), TEXT("text")}}};
    const table bodies = {{U32(1), U32(1)}};
    const table ops[] = {{{U32(1), INTS(0, 1, -1), INTS(2, 3), [8] = INTS(0)}},
                         {{U32(0), INTS(2), INTS(0), U8(92), TABLE(&bodies)}}};
    const table inner[] = {{{INTS(8), U8(3), U32(0), TEXT("x")}}};
    const table inner_ops[] = {{{U32(1), INTS(0), INTS(0)}}};
    const table graphs[] = {{{TABLES(tensors), INTS(0), INTS(0), TABLES(ops), TEXT("main")}},
                            {{TABLES(inner), INTS(0), INTS(0), TABLES(inner_ops), TEXT("body")}}};
    const table buffers[] = {
        {{{0}}},
        {{TEXT("abc")}},
        {{TEXT("\1\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\377\377\377\377\100\0\0\0\377\377\377\377\0\1\0\0")}}};
    const table metadata[] = {{{TEXT("OfflineMemoryAllocation"), U32(2)}}};
    const table model = {
        {U32(3), TABLES(codes), TABLES(graphs), TEXT("made"), TABLES(buffers), [6] = TABLES(metadata)}};
    write_file(w, "TFL3", &model);
}

static void torch_file(writer *w) {
    const table places[] = {{{U32(1), U32(0)}}, {{U32(1), U32(64)}}, {{U32(1), U32(64)}}};
    const table extra = {{[1] = TEXT("w")}};
    const table tensors[] = {{{U8(6), [2] = INTS(4, 4), [6] = TABLE(&places[0])}},
                             {{U8(6), [2] = INTS(16), [6] = TABLE(&places[1])}},
                             {{U8(6), [2] = INTS(2, 8), [6] = TABLE(&places[2])}},
                             {{U8(1), [2] = INTS(7), [5] = U32(1), [9] = TABLE(&extra)}},
                             {{INTS(1, -1)}}};
    const table values[] = {{{U8(5), TABLE(&tensors[0])}},
                            {{U8(5), TABLE(&tensors[1])}},
                            {{U8(5), TABLE(&tensors[2])}},
                            {{U8(5), TABLE(&tensors[3])}},
                            {{U8(11), TABLE(&tensors[4])}}};
    const table calls[] = {{{U32(0), INTS(0, 3, 1, 4)}}, {{U32(0), INTS(2, 0, 0)}}, {{U32(1), U32(1)}}};
    const table instructions[] = {
        {{U8(1), TABLE(&calls[0])}}, {{U8(2), TABLE(&calls[1])}}, {{U8(4), TABLE(&calls[2])}}};
    const table chains[] = {{{[2] = TABLES(instructions)}}};
    const table operators[] = {{{TEXT("aten::add"), TEXT("out")}}};
    const table delegates[] = {{{TEXT("Backend")}}};
    const table methods[] = {{{TEXT("forward"), [2] = TABLES(values), INTS(0), INTS(0), TABLES(chains),
                               TABLES(operators), TABLES(delegates), LONGS(0, 128)}}};
    const table constants = {{U32(0), LONGS(0, 0)}};
    const table program = {{U32(0), TABLES(methods), [5] = TABLE(&constants)}};
    write_file(w, "ET12", &program);
}

static void (*const files[])(writer *w) = {lite_file, torch_file};
enum { N_FILES = sizeof files / sizeof files[0] };

static tide_status read_file(const unsigned char *data, size_t len, tide_lifetimes *out, tide_error *err) {
    // In memory of its own, so that a byte behind it is a fault.
    char *copy = malloc(len + (len == 0));
    assert_non_null(copy);
    for (size_t i = 0; i < len; i++) copy[i] = (char)data[i];
    const tide_list_format format = tide_list_look(copy, len);
    const tide_status st = tide_lifetimes_from_format(format, copy, len, "file", out, err);
    free(copy);
    return st;
}

static void whole_files(void **state) {
    (void)state;
    writer w;
    tide_lifetimes lt;
    tide_error err = TIDE_ERROR_INIT;
    lite_file(&w);
    assert_tide_ok(read_file(w.data, w.len, &lt, &err), &err);
    assert_int_equal(lt.n, 4); // three tensors of the main graph without the text, one of the body
    assert_int_equal(lt.n_steps, 4);
    assert_string_equal(lt.step_names[2], "body/mine.0");
    assert_int_equal(lt.n_regions, 2);
    assert_int_equal(lt.n_dynamic, 1);
    assert_int_equal(lt.given_plan_bytes, 256 + 16);
    tide_lifetimes_deinit(&lt);
    torch_file(&w);
    assert_tide_ok(read_file(w.data, w.len, &lt, &err), &err);
    assert_int_equal(lt.n, 4);
    assert_int_equal(lt.n_steps, 3);
    assert_int_equal(lt.given_plan_bytes, 128);
    assert_int_equal(lt.items[2].alias, TIDE_ALIAS_GIVEN); // the view
    tide_lifetimes_deinit(&lt);
}

static void no_format(void **state) {
    (void)state;
    tide_lifetimes lt;
    assert_int_equal(tide_list_look("", 0), TIDE_LIST_UNKNOWN);
    assert_int_equal(tide_list_look("\10\0\0\0TFL3\0\0\0", 11), TIDE_LIST_UNKNOWN);
    assert_int_equal(tide_list_look("\10\0\0\0TFL3\0\0\0\0", 12), TIDE_LIST_TFLITE);
    assert_int_equal(tide_list_look("\11\0\0\0TFL3\0\0\0\0", 12), TIDE_LIST_UNKNOWN); // the root lies outside
    assert_int_equal(tide_list_look("\10\0\0\0ET12\0\0\0\0", 12), TIDE_LIST_EXECUTORCH);
    assert_int_equal(tide_list_look("\10\0\0\0ETxx\0\0\0\0", 12), TIDE_LIST_UNKNOWN);
    assert_tide_status(tide_lifetimes_from_format(TIDE_LIST_UNKNOWN, "x", 1, "f", &lt, NULL), TIDE_ERR_BAD_INPUT);
}

static void cut_at_every_byte(void **state) {
    (void)state;
    writer w;
    for (size_t k = 0; k < N_FILES; k++) {
        files[k](&w);
        for (size_t len = 0; len < w.len; len++) {
            tide_lifetimes lt = {0};
            tide_error err = TIDE_ERROR_INIT;
            if (read_file(w.data, len, &lt, &err) == TIDE_OK) {
                tide_lifetimes_deinit(&lt); // what is missing was a table of defaults, or the end of a text
                continue;
            }
            assert_tide_status(err.status, TIDE_ERR_BAD_INPUT);
            assert_string_not_equal(err.msg, "");
            assert_null(lt.items);
        }
    }
}

/// What is read of a damaged file is a list that can be planned.
static void damage_by_chance(void **state) {
    (void)state;
    writer w;
    size_t n_read = 0;
    for (uint64_t seed = 0; seed < (uint64_t)tide_test_rounds(20000, 400000); seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        files[seed % N_FILES](&w);
        for (uint64_t n = 1 + tide_rng_below(&rng, 4); n > 0; n--) {
            static const unsigned char edges[] = {0, 1, 4, 127, 128, 255};
            const size_t at = tide_rng_below(&rng, 3) == 0 ? tide_rng_below(&rng, 64) : tide_rng_below(&rng, w.len);
            w.data[at] = tide_rng_below(&rng, 2) == 0 ? edges[tide_rng_below(&rng, sizeof edges)]
                                                      : (unsigned char)tide_rng_u64(&rng);
        }
        if (read_file(w.data, w.len, &lt, &err) != TIDE_OK) {
            assert_tide_status(err.status, TIDE_ERR_BAD_INPUT);
            continue;
        }
        n_read++;
        uint64_t bytes;
        const tide_status st = tide_lower_bound(&lt, &bytes, NULL, &err);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_OVERFLOW);
        for (size_t i = 0; i < lt.n; i++)
            assert_true(lt.items[i].begin_step >= 0 && lt.items[i].end_step <= lt.n_steps);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_read > 1000); // most of the damage is to names and numbers
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    writer w;
    for (size_t k = 0; k < N_FILES; k++) {
        tide_status st = TIDE_ERR_NOMEM;
        int64_t n = 0;
        files[k](&w);
        for (; st != TIDE_OK; n++) {
            tide_host_stats before, after;
            tide_lifetimes lt = {0};
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            st = read_file(w.data, w.len, &lt, NULL);
            tide_host_fail_after(-1);
            tide_lifetimes_deinit(&lt);
            tide_host_get_stats(&after);
            assert_int_equal(before.n_live, after.n_live);
            if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
        }
        assert_true(n > 20);
    }
}

// ---- tensors in each other ----

typedef struct rectangle {
    int64_t begin, end;
    uint64_t lo, hi;
} rectangle;

static bool meet(const rectangle *a, const rectangle *b) {
    return a->begin < b->end && b->begin < a->end && a->lo < b->hi && b->lo < a->hi;
}

static bool never_shared(const rectangle *r, const tide__own_place *places, size_t n, size_t i) {
    for (size_t k = 0; k < n; k++)
        if (k != i && places[k].memory == places[i].memory && r[k].lo < r[i].hi && r[i].lo < r[k].hi) return false;
    return true;
}

/// Places that hold each other or do not touch: halves, quarters, … of 64 bytes. Whatever meets lies in one root, where
/// the file has it; what lies where nothing ever is has a place of its own.
static void shared_bytes(void **state) {
    (void)state;
    enum { N = 24, MEMORIES = 2 };
    for (uint64_t seed = 0; seed < 3000; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        rectangle r[N];
        tide__own_place places[N];
        const size_t n = tide_rng_below(&rng, N + 1);
        const int64_t steps = 2 + (int64_t)tide_rng_below(&rng, 30);
        for (size_t i = 0; i < n; i++) {
            const uint64_t size = (uint64_t)1 << tide_rng_below(&rng, 7);
            const uint64_t lo = size * tide_rng_below(&rng, 64 / size);
            const int64_t begin = (int64_t)tide_rng_below(&rng, (uint64_t)steps);
            r[i] =
                (rectangle){begin, begin + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(steps - begin)), lo, lo + size};
            char name[32];
            snprintf(name, sizeof name, "t%zu", i);
            const tide_lifetime item = tide_lifetime_make(name, size, 1, r[i].begin, r[i].end);
            assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
            places[i] = (tide__own_place){(uint32_t)i, (uint32_t)tide_rng_below(&rng, MEMORIES), lo, size};
        }
        size_t n_apart;
        assert_tide_ok(tide__own_places_alias(&lt, places, n, &n_apart, &err), &err);
        assert_int_equal(n_apart, 0);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t in_i, in_k;
            const uint32_t root = tide_lifetimes_root(&lt, i, &in_i);
            for (uint32_t k = 0; k < n; k++) {
                if (k == i || places[k].memory != places[i].memory || !meet(&r[i], &r[k])) continue;
                assert_int_equal(root, tide_lifetimes_root(&lt, k, &in_k));
            }
            assert_int_equal(r[root].lo + in_i, r[i].lo);
            assert_int_equal(places[root].memory, places[i].memory);
            if (never_shared(r, places, n, i)) assert_int_equal(root, i);
        }
        tide_lifetimes_deinit(&lt);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(whole_files),
        tide_unit_test(no_format),
        tide_unit_test(cut_at_every_byte),
        tide_unit_test(damage_by_chance),
        tide_unit_test(no_memory_leaves_nothing),
        tide_unit_test(shared_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
