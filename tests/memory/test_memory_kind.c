// SPDX-License-Identifier: MIT
//
// core/memory/kind: names, legality, the alignment table.
#include "core/memory/kind.h"

#include "core/base/checked.h"
#include "tests/tide_test.h"

static const tide_device CUDA0 = {TIDE_DEVICE_CUDA, 0};

/// The kinds of the house; a build may have more (docs/extending.md).
enum { N_OWN = TIDE_KIND_HOST_PAGEABLE + 1 };

// LT-16: six kinds, each with a name that reads back.
static void names_round_trip(void **state) {
    (void)state;
    static const char *const names[N_OWN] = {"Default", "Persistent", "Workspace",
                                             "KVCache", "HostPinned", "HostPageable"};
    assert_int_equal(N_OWN, 6);
    for (int i = 0; i < TIDE_N_KINDS; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_memory_kind kind = TIDE_KIND_DEFAULT;
        const char *name = tide_memory_kind_name((tide_memory_kind)i);
        if (i < N_OWN) assert_string_equal(name, names[i]);
        assert_true(strlen(tide_memory_kind_purpose((tide_memory_kind)i)) > 10);
        assert_tide_ok(tide_memory_kind_parse(name, &kind, &err), &err);
        assert_int_equal(kind, i);
    }
    tide_memory_kind kind = TIDE_KIND_WORKSPACE;
    assert_tide_status(tide_memory_kind_parse("kvcache", &kind, NULL), TIDE_OK);
    assert_int_equal(kind, TIDE_KIND_KV_CACHE);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_memory_kind_parse("Scratch", &kind, &err), TIDE_ERR_INVALID);
    assert_int_equal(kind, TIDE_KIND_KV_CACHE);
    assert_text_has(err.hint, "Workspace");
    assert_string_equal(tide_memory_kind_name((tide_memory_kind)42), "kind ?");
}

// LT-18: host kinds are legal on the CPU only, with the reason.
static void host_kinds_are_legal_on_the_cpu_only(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (int i = 0; i < N_OWN; i++) {
        const tide_memory_kind kind = (tide_memory_kind)i;
        const bool host = kind == TIDE_KIND_HOST_PINNED || kind == TIDE_KIND_HOST_PAGEABLE;
        assert_tide_ok(tide_memory_kind_check(kind, TIDE_CPU, &err), &err);
        assert_tide_status(tide_memory_kind_check(kind, CUDA0, &err), host ? TIDE_ERR_INVALID : TIDE_OK);
        if (host) {
            assert_text_has(err.msg, tide_memory_kind_name(kind));
            assert_text_has(err.msg, "cuda:0");
            assert_true(strlen(err.note) > 0);
        }
    }
    assert_tide_status(tide_memory_kind_check((tide_memory_kind)TIDE_N_KINDS, TIDE_CPU, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_memory_kind_check((tide_memory_kind)-1, TIDE_CPU, &err), TIDE_ERR_INVALID);
}

// S28-17, X-3: 256 where tensors live, 64 for host kinds; always a power of two.
static void the_strictest_rule_wins(void **state) {
    (void)state;
    static const size_t on_cpu[N_OWN] = {256, 256, 256, 256, 64, 64};
    for (int i = 0; i < N_OWN; i++) {
        assert_int_equal(tide_memory_kind_alignment((tide_memory_kind)i, TIDE_CPU), on_cpu[i]);
        assert_int_equal(tide_memory_kind_alignment((tide_memory_kind)i, CUDA0), 256);
        assert_true(tide_is_pow2(on_cpu[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_round_trip),
        tide_unit_test(host_kinds_are_legal_on_the_cpu_only),
        tide_unit_test(the_strictest_rule_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
