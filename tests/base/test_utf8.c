// SPDX-License-Identifier: MIT
//
// core/base/utf8: every code point there and back, every short byte string against a table-free oracle, and the
// classic malformed forms.
#include "core/base/utf8.h"

#include "core/base/text.h"
#include "tests/tide_test.h"

static void every_code_point_comes_back(void **state) {
    (void)state;
    for (uint32_t cp = 1; cp <= 0x10FFFF; cp++) {
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        char bytes[5] = {0};
        uint32_t got;
        const size_t n = tide_utf8_encode(cp, bytes);
        assert_int_equal(n, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
        assert_int_equal(tide_utf8_decode(bytes, &got), n);
        assert_int_equal(got, cp);
    }
}

static void what_is_no_character_is_encoded_as_the_replacement(void **state) {
    (void)state;
    static const uint32_t bad[] = {0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0x110000, 0x7FFFFFFF, TIDE_UTF8_BAD};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char bytes[4];
        assert_int_equal(tide_utf8_encode(bad[i], bytes), 3);
        assert_memory_equal(bytes, TIDE_UTF8_REPLACEMENT, 3);
    }
}

/// Bytes that `cp` takes, and its value from the bits of the sequence, by definition D92 alone: decode by length, then
/// refuse what has a shorter form, is a surrogate or lies beyond the end.
static size_t oracle(const unsigned char *p, uint32_t *cp) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (p[0] < 0x80) {
        *cp = p[0];
        return p[0] != 0;
    }
    *cp = TIDE_UTF8_BAD;
    size_t n = 0;
    for (unsigned char lead = p[0]; lead & 0x80; lead = (unsigned char)(lead << 1)) n++;
    if (n < 2 || n > 4) return 1;
    uint32_t value = p[0] % (1u << (7 - n));
    for (size_t i = 1; i < n; i++) {
        if (p[i] / 64 != 2) return 1;
        value = value * 64 + p[i] % 64;
    }
    if (value < least[n] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 1;
    *cp = value;
    return n;
}

static void check_bytes(const unsigned char *bytes) {
    uint32_t got, want;
    const size_t n = tide_utf8_decode((const char *)bytes, &got), want_n = oracle(bytes, &want);
    if (n != want_n || got != want)
        fail_msg("%02x %02x %02x %02x: %zu bytes, %x; want %zu, %x", bytes[0], bytes[1], bytes[2], bytes[3], n,
                 (unsigned)got, want_n, (unsigned)want);
}

/// Every lead with every second byte, and the edges of the third and fourth.
static void short_strings_agree_with_the_oracle(void **state) {
    (void)state;
    static const unsigned char edges[] = {0x00, 0x01, 0x7F, 0x80, 0x8F, 0x9F, 0xA0, 0xBF, 0xC0, 0xED, 0xFF};
    enum { N = sizeof edges / sizeof edges[0] };
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            for (unsigned cd = 0; cd < N * N; cd++)
                check_bytes((unsigned char[]){(unsigned char)a, (unsigned char)b, edges[cd / N], edges[cd % N], 0});
        }
    }
}

/// Each byte of a malformed sequence is bad by itself, and what follows is read again.
static void malformed_forms(void **state) {
    (void)state;
    static const struct {
        const char *what, *text;
        size_t n_bad;
    } cases[] = {
        {"overlong slash, 2 bytes", "\xc0\xaf", 2},
        {"overlong slash, 3 bytes", "\xe0\x80\xaf", 3},
        {"overlong slash, 4 bytes", "\xf0\x80\x80\xaf", 4},
        {"overlong U+007F", "\xc1\xbf", 2},
        {"overlong U+07FF", "\xe0\x9f\xbf", 3},
        {"overlong U+FFFF", "\xf0\x8f\xbf\xbf", 4},
        {"first surrogate", "\xed\xa0\x80", 3},
        {"last surrogate", "\xed\xbf\xbf", 3},
        {"surrogate pair", "\xed\xa0\xbd\xed\xb2\xbe", 6},
        {"U+110000", "\xf4\x90\x80\x80", 4},
        {"five bytes", "\xf8\x88\x80\x80\x80", 5},
        {"fe and ff", "\xfe\xff", 2},
        {"cut after one", "\xe2", 1},
        {"cut after two", "\xe2\x82", 2},
        {"cut after three", "\xf0\x9f\x92", 3},
        {"stray continuation", "\x80\xbf", 2},
        {"lead before ASCII", "\xe2(\xa1", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s|", cases[i].text);
        size_t n_bad = 0;
        uint32_t cp = 0;
        for (const char *p = text; *p != '\0';) {
            const size_t n = tide_utf8_decode(p, &cp);
            if (cp == TIDE_UTF8_BAD) {
                assert_int_equal(n, 1);
                n_bad++;
            }
            p += n;
        }
        if (n_bad != cases[i].n_bad) fail_msg("%s: %zu bad bytes, want %zu", cases[i].what, n_bad, cases[i].n_bad);
        assert_int_equal(cp, '|');
    }
}

/// The text ends where its memory ends: a read past the NUL is seen by the sanitizer.
static void nothing_is_read_behind_the_end(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\xc3", "\xe2", "\xe2\x82", "\xf0", "\xf0\x9f", "\xf0\x9f\x92", "a"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *copy = tide_host_strdup(texts[i]);
        assert_non_null(copy);
        uint32_t cp;
        const char *p = copy;
        for (size_t n; (n = tide_utf8_decode(p, &cp)) > 0;) p += n;
        assert_int_equal(p - copy, strlen(texts[i]));
        assert_int_equal(cp, 0);
        tide_host_free(copy);
    }
}

static void controls(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp < 0x200; cp++)
        assert_int_equal(tide_utf8_is_control(cp), cp <= 0x1F || (cp >= 0x7F && cp <= 0x9F));
    assert_false(tide_utf8_is_control(0x202E));
    assert_false(tide_utf8_is_control(TIDE_UTF8_BAD));
}

/// The twelve that Unicode Standard Annex 9 calls marks, embeddings, overrides, isolates and their ends.
static void direction(void **state) {
    (void)state;
    size_t n = 0;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) n += tide_utf8_turns_direction(cp);
    assert_int_equal(n, 12);
    static const uint32_t some[] = {0x061C, 0x200E, 0x200F, 0x202A, 0x202E, 0x2066, 0x2069};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) assert_true(tide_utf8_turns_direction(some[i]));
    assert_false(tide_utf8_turns_direction(0x202F)); // a narrow space
    assert_false(tide_utf8_turns_direction(TIDE_UTF8_BAD));
}

// ---- the rule of what is shown ----

static void unsafe_is_what_is_not_seen_or_changes_its_neighbours(void **state) {
    (void)state;
    static const uint32_t bad[] = {0,      0x1B,   0x7F,   0x85,    0x9B,    0xAD,         0x061C,
                                   0x200B, 0x200E, 0x2028, 0x202E,  0x2066,  0x2069,       0xFEFF,
                                   0xFFFE, 0xFDD0, 0xFFF9, 0xE0041, 0x1FFFF, TIDE_UTF8_BAD};
    static const uint32_t good[] = {' ', 'a', '=', 0xA0, 0xE9, 0x5D0, 0x627, 0x202F, 0x2030, 0x5F35, 0xFFFD, 0x1F4BE};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_true(tide_utf8_is_unsafe(bad[i]));
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_false(tide_utf8_is_unsafe(good[i]));
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++)
        if (tide_utf8_is_control(cp) || tide_utf8_turns_direction(cp)) assert_true(tide_utf8_is_unsafe(cp));
}

static void text_is_cleaned(void **state) {
    (void)state;
    static const struct {
        const char *in, *clean, *json;
    } all[] = {
        {"", "", ""},
        {"plain", "plain", "plain"},
        {"a\xE2\x80\xAE"
         "b",
         "a\xEF\xBF\xBD"
         "b",
         "a\\u202eb"},
        {"\033[31m\n", "\xEF\xBF\xBD[31m\xEF\xBF\xBD", "\\u001b[31m\\n"},
        {"\xC2\x9B", "\xEF\xBF\xBD", "\\u009b"},
        {"\xF3\xA0\x81\x81", "\xEF\xBF\xBD", "\\udb40\\udc41"},
        {"\"\\", "\"\\", "\\\"\\\\"},
        {"\xFF", "\xEF\xBF\xBD", "\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tide_text clean = {0}, json = {0};
        tide_utf8_add_clean(&clean, all[i].in);
        tide_utf8_add_json(&json, all[i].in);
        assert_string_equal(tide_text_str(&clean), all[i].clean);
        assert_string_equal(tide_text_str(&json), all[i].json);
        tide_text_deinit(&clean);
        tide_text_deinit(&json);
    }
    static const char document[] = "{\n  \"a\xE2\x80\xAE\": \"\x7F\"\n}";
    tide_text out = {0};
    tide_utf8_add_json_document(&out, document, sizeof document - 1);
    assert_string_equal(tide_text_str(&out), "{\n  \"a\\u202e\": \"\\u007f\"\n}");
    tide_text_deinit(&out);
}

static void formulas(void **state) {
    (void)state;
    static const char *const yes[] = {"=1", "+1", "-1", "@a", "\tx", "\rx", "--"};
    static const char *const no[] = {"", "-", "a=1", " =1", "1-1"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) assert_true(tide_utf8_is_formula(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) assert_false(tide_utf8_is_formula(no[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(unsafe_is_what_is_not_seen_or_changes_its_neighbours),
        tide_unit_test(text_is_cleaned),
        tide_unit_test(formulas),
        tide_unit_test(every_code_point_comes_back),
        tide_unit_test(what_is_no_character_is_encoded_as_the_replacement),
        tide_unit_test(short_strings_agree_with_the_oracle),
        tide_unit_test(malformed_forms),
        tide_unit_test(nothing_is_read_behind_the_end),
        tide_unit_test(controls),
        tide_unit_test(direction),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
