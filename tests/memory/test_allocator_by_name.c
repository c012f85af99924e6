// SPDX-License-Identifier: MIT
//
// Allocators from a text: each form makes what it says, and everything else is refused with the list.
#include "memory_test.h"

static tide_allocator *make(const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create_by_name(text, &a, &err), &err);
    return a;
}

static const struct {
    const char *text, *name;
    size_t align_bytes;
} forms[] = {
    {"cpu", "cpu", 64},
    {"cpu:align=64", "cpu", 64},
    {"cpu:align=256", "cpu", 256},
    {"cpu_caching", "cpu_caching", 64},
    {"cpu_caching:sizes=pow2", "cpu_caching", 64},
    {"cpu_caching:sizes=steps", "cpu_caching", 64},
    {"stream_caching", "stream_caching", 64},
    {"pinned", "pinned", 64},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

static void every_form(void **state) {
    (void)state;
    for (size_t i = 0; i < N_FORMS; i++) {
        tide_allocator *a = make(forms[i].text);
        assert_string_equal(tide_allocator_name(a), forms[i].name);
        tide_allocator_props p;
        tide_allocator_get_props(a, &p);
        assert_true(p.align_bytes >= forms[i].align_bytes);
        const tide_memory mem = take(a, 1000, 0);
        memset(mem.data, 1, 1000);
        assert_true((uintptr_t)mem.data % forms[i].align_bytes == 0);
        give(a, &mem);
        tide_allocator_unref(a);
    }
}

/// The list is whole: each text makes an allocator, none stands there twice, and no form that works is left out.
static void every_listed_name_can_be_made(void **state) {
    (void)state;
    size_t n = 0;
    for (const char *text; (text = tide_allocator_name_at(n)) != NULL; n++) {
        tide_allocator *a = make(text);
        const size_t len = strlen(tide_allocator_name(a)); // begins with what it is
        assert_memory_equal(text, tide_allocator_name(a), len);
        assert_true(text[len] == '\0' || text[len] == ':');
        tide_allocator_unref(a);
        for (size_t i = 0; i < n; i++) assert_string_not_equal(tide_allocator_name_at(i), text);
    }
    assert_int_equal(n, N_FORMS);
    for (size_t i = 0; i < N_FORMS; i++) {
        size_t at = 0;
        while (at < n && strcmp(tide_allocator_name_at(at), forms[i].text) != 0) at++;
        assert_true(at < n);
    }
    assert_null(tide_allocator_name_at(n + 1));
    assert_null(tide_allocator_name_at(SIZE_MAX));
}

/// 3 MiB: the next power of two is 4 MiB, the next eighth of one is itself.
static void size_classes_are_as_named(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t takes_bytes;
    } rows[] = {
        {"cpu_caching", (size_t)4 << 20},
        {"cpu_caching:sizes=pow2", (size_t)4 << 20},
        {"cpu_caching:sizes=steps", (size_t)3 << 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_allocator *a = make(rows[i].text);
        const tide_memory mem = take(a, (size_t)3 << 20, 0);
        assert_true(mem.reserved_bytes == rows[i].takes_bytes);
        give(a, &mem);
        tide_allocator_unref(a);
    }
}

static void anything_else_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "no allocator ''"},
        {"buddy", "no allocator 'buddy'"},
        {"cp", "no allocator 'cp'"},
        {"cpuu", "no allocator 'cpuu'"},
        {"CPU", "no allocator 'CPU'"},
        {":align=64", "no allocator ''"},
        {"arena", "no allocator 'arena'"},
        {"buddy:align=64", "no allocator 'buddy'"},
        {"cpu:", "'cpu' has no option ''"},
        {"cpu:align", "'cpu' has no option 'align'"},
        {"cpu:align=", "'cpu' has no option 'align='"},
        {"cpu:align=128", "'cpu' has no option 'align=128'"},
        {"cpu:align=64 ", "'cpu' has no option 'align=64 '"},
        {"cpu:align=64:align=256", "has no option"},
        {"cpu:sizes=pow2", "'cpu' has no option 'sizes=pow2'"},
        {"cpu_caching:align=64", "'cpu_caching' has no option 'align=64'"},
        {"pinned:x=1", "'pinned' has no option 'x=1'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        assert_tide_status(tide_allocator_create_by_name(rows[i].text, &a, &err), TIDE_ERR_INVALID);
        assert_null(a);
        assert_text_has(err.msg, rows[i].words);
        assert_string_equal(err.hint, "allocators: cpu, cpu:align=64, cpu:align=256, cpu_caching, "
                                      "cpu_caching:sizes=pow2, cpu_caching:sizes=steps, stream_caching, pinned");
    }
    assert_tide_status(tide_allocator_create_by_name("buddy", NULL, NULL), TIDE_ERR_INVALID);
}

/// `word` stands in `text`, and not as the beginning of a longer one.
static bool names(const char *text, const char *word) {
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        if (strchr("(,}; ", at[strlen(word)]) != NULL) return true;
    }
    return false;
}

/// How many functions that make an allocator the header at `path` declares; each stands in one of `tables`.
static int count_makers(const char *header, char *const *tables, size_t n_tables) {
    char path[512], *text;
    size_t len;
    int n_makers = 0;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(tide_source_path(header, path, sizeof path), 0, &text, &len, &err), &err);
    for (const char *at = text; (at = strstr(at, "\ntide_status tide_")) != NULL;) {
        at += strlen("\ntide_status ");
        char call[64];
        snprintf(call, sizeof call, "%.*s", (int)strcspn(at, "("), at);
        // By name none is made that has no maker of its own; a block is no allocator; one that takes no memory gives
        // out only what it was shown (test_allocator_mapped.c).
        static const char *const others[] = {"tide_allocator_create_by_name", "tide_allocator_create_on",
                                             "tide_block_create", "tide_mapped_block_create", "tide_mapped_create"};
        bool is_other = strstr(call, "_create") == NULL;
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) is_other |= strcmp(call, others[i]) == 0;
        if (is_other) continue;
        bool found = false;
        for (size_t i = 0; i < n_tables; i++) found = found || names(tables[i], call);
        if (!found) fail_msg("%s stands in no table of the conformance suite", call);
        n_makers++;
    }
    tide_host_free(text);
    return n_makers;
}

// LT-21, LT-39: whatever the two headers can make stands in a table of the conformance suite, so that none goes
// untested.
static void every_allocator_is_in_the_suite(void **state) {
    (void)state;
    static const char *const files[] = {
        "tests/memory/test_allocator_conformance.c", "tests/memory/test_allocator_conformance_devices.c",
        "tests/memory/test_allocator_conformance_streams.c", "tests/memory/test_allocator_conformance_wrapped.c"};
    enum { N_FILES = sizeof files / sizeof files[0] };
    tide_error err = TIDE_ERROR_INIT;
    char path[512], *tables[N_FILES];
    size_t len;
    for (int i = 0; i < N_FILES; i++)
        assert_tide_ok(tide_read_file(tide_source_path(files[i], path, sizeof path), 0, &tables[i], &len, &err), &err);
    assert_true(count_makers("core/memory/allocators/allocators.h", tables, N_FILES) >= 9);
    assert_int_equal(count_makers("include/tidemark/memory.h", tables, N_FILES), 4);
    for (int i = 0; i < N_FILES; i++) tide_host_free(tables[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_form),
        tide_unit_test(every_listed_name_can_be_made),
        tide_unit_test(size_classes_are_as_named),
        tide_unit_test(anything_else_is_refused),
        tide_unit_test(every_allocator_is_in_the_suite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
