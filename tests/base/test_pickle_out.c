// SPDX-License-Identifier: MIT
//
// The writer of pickles: bytes by hand after Python's Lib/pickletools.py, and what runs out of memory.
#include "tests/tide_test.h"

#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/pickle_out.h"

static void is_bytes(const tide_text *text, const char *bytes, size_t n) {
    assert_false(text->failed);
    assert_int_equal(text->len, n);
    assert_memory_equal(text->data, bytes, n);
}
#define IS(text, bytes) is_bytes(&(text), (bytes), sizeof(bytes) - 1)

/// The bytes of one value, without the protocol in front of them.
static void number_is(void (*put)(tide_pickle_out *p, uint64_t value), uint64_t value, const char *bytes, size_t n) {
    tide_text out = {0};
    tide_pickle_out p = {.out = &out};
    put(&p, value);
    is_bytes(&out, bytes, n);
    tide_pickle_deinit(&p);
    tide_text_deinit(&out);
}
#define U(value, bytes) number_is(tide_pickle_u64, (value), (bytes), sizeof(bytes) - 1)
static void put_signed(tide_pickle_out *p, uint64_t value) { tide_pickle_i64(p, (int64_t)value); }
#define I(value, bytes) number_is(put_signed, (uint64_t)(value), (bytes), sizeof(bytes) - 1)

static void numbers_take_the_fewest_bytes(void **state) {
    (void)state;
    U(0, "K\0");
    U(255, "K\xff");
    U(256, "M\0\1");
    U(65535, "M\xff\xff");
    U(65536, "J\0\0\1\0");
    U(INT32_MAX, "J\xff\xff\xff\x7f");
    U(UINT64_C(1) << 31, "\x8a\5\0\0\0\x80\0"); // five: the highest bit of four would be a sign
    U(UINT64_C(0x7f0000000000), "\x8a\6\0\0\0\0\0\x7f");
    U(INT64_MAX, "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f");
    U(UINT64_MAX, "\x8a\x9\xff\xff\xff\xff\xff\xff\xff\xff\0");
    I(-1, "J\xff\xff\xff\xff");
    I(INT32_MIN, "J\0\0\0\x80");
    I(INT64_C(-2147483649), "\x8a\5\xff\xff\xff\x7f\xff");
    I(INT64_MIN, "\x8a\x8\0\0\0\0\0\0\0\x80");
}

static void a_document(void **state) {
    (void)state;
    tide_text out = {0};
    tide_pickle_out p = {.out = &out};
    tide_pickle_word word = {"w", 0};
    tide_pickle_begin(&p);
    tide_pickle_dict(&p);
    tide_pickle_put_word(&p, &word);
    tide_pickle_list(&p);
    tide_pickle_close(&p);
    const uint32_t list = tide_pickle_keep(&p);
    tide_pickle_text(&p, "\xff");
    tide_pickle_again(&p, list);
    tide_pickle_text(&p, "\xff");
    tide_pickle_pair(&p, 1, 2);
    tide_pickle_text(&p, "r");
    tide_pickle_list(&p);
    tide_pickle_real(&p, 0.5);
    tide_pickle_bool(&p, true);
    tide_pickle_put_word(&p, &word);
    tide_pickle_close(&p);
    tide_pickle_close(&p);
    tide_pickle_end(&p);
    IS(out,
       "\x80\4}(\x8c\1w\x94]\x94\x8c\3\xef\xbf\xbd\x94h\1h\2K\1K\2\x86\x8c\1r\x94](G\x3f\xe0\0\0\0\0\0\0\x88h\0eu.");
    tide_pickle_deinit(&p);
    tide_text_deinit(&out);
}

static void long_lists_come_in_thousands(void **state) {
    (void)state;
    tide_text out = {0};
    tide_pickle_out p = {.out = &out};
    tide_pickle_list(&p);
    for (int i = 0; i < 2001; i++) tide_pickle_bool(&p, false);
    tide_pickle_close(&p);
    size_t n_marks = 0, n_puts = 0;
    for (size_t i = 0; i < out.len; i++) {
        n_marks += out.data[i] == '(';
        n_puts += out.data[i] == 'e';
    }
    assert_int_equal(n_marks, 3);
    assert_int_equal(n_puts, 3);
    assert_int_equal(out.len, 1 + 2001 + 6);
    tide_pickle_deinit(&p);
    tide_text_deinit(&out);
}

static void without_memory_the_text_says_so(void **state) {
    (void)state;
    char longest[400];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int64_t n = 0;; n++) {
        tide_text out = {0};
        tide_pickle_out p = {.out = &out};
        tide_host_fail_after(n);
        tide_pickle_list(&p);
        tide_pickle_text(&p, longest);
        tide_pickle_text(&p, "b");
        tide_pickle_text(&p, longest);
        tide_pickle_close(&p);
        tide_host_fail_after(-1);
        const bool failed = out.failed;
        if (!failed) assert_int_equal(out.len, 2 + 5 + 399 + 1 + 4 + 2 + 1);
        tide_pickle_deinit(&p);
        tide_text_deinit(&out);
        if (!failed) break;
        assert_true(n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(numbers_take_the_fewest_bytes),
        tide_unit_test(a_document),
        tide_unit_test(long_lists_come_in_thousands),
        tide_unit_test(without_memory_the_text_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
