// SPDX-License-Identifier: MIT
//
// core/base/text: growing strings, the name map against a plain list, sizes as people write them, whole files.
#include "core/base/text.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/map.h"
#include "core/base/output.h"
#include "tests/tide_test.h"

// ---- growing string ----

static void text_grows_and_stays_terminated(void **state) {
    (void)state;
    tide_text t = {0};
    assert_string_equal(tide_text_str(&t), "");
    tide_text_add(&t, "a");
    tide_text_addf(&t, "%d-%s", 12, "bc");
    tide_text_add_n(&t, "xyz", 2);
    assert_string_equal(tide_text_str(&t), "a12-bcxy");
    assert_int_equal(t.len, 8);
    for (int i = 0; i < 1000; i++) tide_text_addf(&t, "%04d", i);
    assert_int_equal(t.len, 8 + 4000);
    assert_int_equal(strlen(t.data), t.len);
    assert_memory_equal(t.data + 8 + 4 * 999, "0999", 4);
    tide_text_deinit(&t);
    assert_null(t.data);
}

static void text_failure_is_remembered(void **state) {
    (void)state;
    tide_text t = {0};
    tide_text_add(&t, "kept");
    tide_host_fail_after(0);
    for (int i = 0; i < 100; i++) tide_text_add(&t, "0123456789");
    tide_host_fail_after(-1);
    assert_true(t.failed);
    assert_memory_equal(tide_text_str(&t), "kept", 4);
    const size_t len = t.len;
    tide_text_add(&t, "more");
    tide_text_addf(&t, "%d", 1);
    assert_int_equal(t.len, len);
    tide_text_deinit(&t);
}

// ---- name map ----

enum { N_KEYS = 400 };

typedef struct plain_map {
    char keys[N_KEYS][24];
    uint64_t values[N_KEYS];
    size_t n;
} plain_map;

static size_t plain_find(const plain_map *m, const char *key) {
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->keys[i], key) == 0) return i;
    }
    return m->n;
}

static void map_against_a_plain_list(void **state) {
    (void)state;
    tide_rng rng = {99};
    tide_strmap map = {0};
    static plain_map plain;
    plain.n = 0;
    for (int step = 0; step < 4000; step++) {
        char key[24];
        snprintf(key, sizeof key, "layer%d.out", (int)tide_rng_below(&rng, N_KEYS));
        const size_t at = plain_find(&plain, key);
        uint64_t got = 7777;
        assert_int_equal(tide_strmap_get(&map, key, &got), at < plain.n);
        if (at < plain.n) {
            assert_true(got == plain.values[at]);
        } else {
            assert_int_equal(got, 7777); // untouched
        }
        if (tide_rng_below(&rng, 2) == 0) continue;
        const uint64_t value = tide_rng_u64(&rng);
        assert_tide_status(tide_strmap_put(&map, key, value), TIDE_OK);
        if (at == plain.n) snprintf(plain.keys[plain.n++], sizeof plain.keys[0], "%s", key);
        plain.values[at] = value;
        assert_int_equal(map.map.n, plain.n);
    }
    assert_true(tide_strmap_get(&map, plain.keys[0], NULL));
    tide_strmap_deinit(&map);
    assert_false(tide_strmap_get(&map, "layer1.out", NULL));
}

static void map_is_unchanged_when_memory_ends(void **state) {
    (void)state;
    tide_strmap map = {0};
    char key[24];
    uint64_t got = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%d", i);
        // Fails once in the slots or in the key, then goes through.
        tide_host_fail_after(0);
        assert_tide_status(tide_strmap_put(&map, key, (uint64_t)i), TIDE_ERR_NOMEM);
        assert_false(tide_strmap_get(&map, key, &got));
        assert_int_equal(map.map.n, i);
        assert_tide_status(tide_strmap_put(&map, key, (uint64_t)i), TIDE_OK);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_true(tide_strmap_get(&map, key, &got));
        assert_int_equal(got, i);
    }
    tide_strmap_deinit(&map);
}

// ---- byte counts ----

static void sizes_as_people_write_them(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t want;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"7 b", 7},
        {"64KiB", 65536},
        {"64K", 65536},
        {"64k", 65536},
        {"10MB", 10000000},
        {"10 MiB", 10485760},
        {"1.5GiB", 1610612736},
        {"1.5 GiB", 1610612736},
        {"0.29KB", 290},
        {".5K", 512},
        {"2.", 2},
        {"3T", UINT64_C(3) << 40},
        {"1TB", UINT64_C(1000000000000)},
        {"9007199254740993", UINT64_C(9007199254740993)}, // 2^53 + 1: lost by a double
        {"18446744073709551615", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        uint64_t got = 0;
        assert_tide_ok(tide_parse_bytes(good[i].text, &got, &err), &err);
        if (got != good[i].want) fail_msg("%s: got %" PRIu64 ", want %" PRIu64, good[i].text, got, good[i].want);
    }
    static const char *const bad[] = {"",
                                      "-1",
                                      "-0",
                                      "K",
                                      "1X",
                                      "1KiBs",
                                      "1 KiB x",
                                      "0x10",
                                      "1e3",
                                      "nan",
                                      "inf",
                                      "1.2.3",
                                      " 5 ",
                                      "5 5",
                                      "1KK",
                                      ".",
                                      "18446744073709551616",
                                      "16777216T",
                                      "99999999999999999999",
                                      "1Bi"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        uint64_t got = 77;
        if (tide_parse_bytes(bad[i], &got, &err) != TIDE_ERR_INVALID) fail_msg("'%s' was read as a size", bad[i]);
        assert_int_equal(got, 77);
        assert_text_has(err.msg, bad[i]);
        assert_text_has(err.hint, "64KiB");
    }
}

static void sizes_for_people(void **state) {
    (void)state;
    char buf[24];
    assert_string_equal(tide_format_bytes(0, buf, sizeof buf), "0 B");
    assert_string_equal(tide_format_bytes(1023, buf, sizeof buf), "1023 B");
    assert_string_equal(tide_format_bytes(1536, buf, sizeof buf), "1.50 KiB");
    assert_string_equal(tide_format_bytes(3407872, buf, sizeof buf), "3.25 MiB");
    assert_string_equal(tide_format_bytes(UINT64_C(2) << 30, buf, sizeof buf), "2.00 GiB");
    assert_string_equal(tide_format_bytes(UINT64_MAX, buf, sizeof buf), "16.00 EiB");
}

static void times_are_shown_with_four_digits(void **state) {
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},           {999, "999 ns"},        {1000, "1 us"},        {12345, "12.35 us"},
        {4506000, "4.506 ms"}, {999999999, "1000 ms"}, {1500000000, "1.5 s"}, {UINT64_C(98765) << 30, "106048 s"}};
    char buf[24];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(tide_format_ns(cases[i].ns, "us", buf, sizeof buf), cases[i].text);
    assert_string_equal(tide_format_ns(1500, "\xC2\xB5s", buf, sizeof buf), "1.5 \xC2\xB5s");
}

// ---- files ----

/// A fresh folder below /tmp; the test removes it with drop_folder.
static void make_folder(char *path, size_t path_bytes) {
    snprintf(path, path_bytes, "/tmp/tide_text_XXXXXX");
    assert_non_null(mkdtemp(path));
}

static int count_entries(const char *path) {
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int n = 0;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void drop_folder(const char *path) {
    chmod(path, 0700);
    DIR *dir = opendir(path);
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        char below[512];
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') remove(below);
    }
    closedir(dir);
    rmdir(path);
}

static void file_round_trip(void **state) {
    (void)state;
    char dir[64], path[128];
    make_folder(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/out.bin", dir);
    static char content[200000];
    tide_rng rng = {5};
    for (size_t i = 0; i < sizeof content; i++) content[i] = (char)tide_rng_u64(&rng);
    static const size_t lens[] = {0, 1, 65535, 65536, 65537, sizeof content};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        char *back = NULL;
        size_t len = 0;
        assert_tide_ok(tide_write_file(path, content, lens[i], &err), &err);
        assert_tide_ok(tide_read_file(path, 0, &back, &len, &err), &err);
        assert_int_equal(len, lens[i]);
        assert_memory_equal(back, content, len);
        assert_int_equal(back[len], '\0');
        tide_host_free(back);
        assert_int_equal(count_entries(dir), 1); // no temporary file is left
    }
    tide_error err = TIDE_ERROR_INIT;
    char *back = NULL;
    size_t len = 0;
    assert_tide_status(tide_read_file(path, sizeof content - 1, &back, &len, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, path);
    assert_tide_ok(tide_read_file(path, sizeof content, &back, &len, &err), &err);
    tide_host_free(back);
    drop_folder(dir);
}

static void reading_what_is_not_there(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char *back = NULL;
    size_t len = 0;
    assert_tide_status(tide_read_file("/tmp/no/such/file", 0, &back, &len, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "/tmp/no/such/file");
    assert_text_has(err.msg, "No such file");
    assert_tide_status(tide_read_file("/tmp", 0, &back, &len, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "directory");
    assert_null(back);
}

static void reading_without_memory(void **state) {
    (void)state;
    char dir[64], path[128];
    make_folder(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/f", dir);
    tide_error err = TIDE_ERROR_INIT;
    static const char content[100000];
    assert_tide_ok(tide_write_file(path, content, sizeof content, &err), &err);
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st == TIDE_ERR_NOMEM; n++) {
        char *back = NULL;
        size_t len = 0;
        tide_host_fail_after(n);
        st = tide_read_file(path, 0, &back, &len, &err);
        tide_host_free(back);
    }
    tide_host_fail_after(-1);
    assert_tide_status(st, TIDE_OK);
    assert_true(n > 1); // it did fail before
    drop_folder(dir);
}

// ---- chance and time ----

static void numbers_repeat_with_the_seed(void **state) {
    (void)state;
    // First numbers of splitmix64 from seed 1234567, as in its author's reference.
    tide_rng rng = {1234567};
    assert_true(tide_rng_u64(&rng) == UINT64_C(6457827717110365317));
    assert_true(tide_rng_u64(&rng) == UINT64_C(3203168211198807973));
    for (int i = 0; i < 1000; i++) {
        const double x = tide_rng_f64(&rng);
        assert_true(x >= 0.0 && x < 1.0);
        assert_true(tide_rng_below(&rng, 7) < 7);
    }
    const uint64_t before = tide_now_ns();
    assert_true(tide_now_ns() >= before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(text_grows_and_stays_terminated),
        tide_unit_test(text_failure_is_remembered),
        tide_unit_test(map_against_a_plain_list),
        tide_unit_test(map_is_unchanged_when_memory_ends),
        tide_unit_test(sizes_as_people_write_them),
        tide_unit_test(times_are_shown_with_four_digits),
        tide_unit_test(sizes_for_people),
        tide_unit_test(file_round_trip),
        tide_unit_test(reading_what_is_not_there),
        tide_unit_test(reading_without_memory),
        tide_unit_test(numbers_repeat_with_the_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
