// SPDX-License-Identifier: MIT
//
// What the ledger says to people, word for word, and the reckoning of what would have fitted.
#include "core/memory/ledger.h"
#include "memory_test.h"

static void what_would_have_fitted(void **state) {
    (void)state;
    const uint64_t unknown = TIDE_UNKNOWN_BYTES;
    static const struct {
        uint64_t largest_free, headroom, asked, align, want;
    } cases[] = {
        {0, UINT64_MAX, 1000, 64, UINT64_MAX},   // the system decides
        {500, UINT64_MAX, 1000, 64, UINT64_MAX}, // and what is cached is no answer to "the largest"
        {1024, 0, 5000, 256, 1024},              // an arena: what is free in it
        {1024, 2048, 5000, 256, 2048},           // a budget over a cache: either
        {2048, 1024, 5000, 256, 2048},           //
        {0, 1000, 5000, 256, 768},               // blocks are rounded up: whole units only
        {0, 1000, 5000, 0, 1000},                // no alignment was requested
        {0, 100, 5000, 256, 0},                  // nothing at all
        {0, 0, 1, 1, 0},                         //
        {0, 6000, 5000, 256, UINT64_MAX},        // there was room: an inner allocator refused
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tide_allocator_stats s = {.largest_free_bytes = cases[i].largest_free,
                                        .headroom_bytes = cases[i].headroom};
        assert_true(tide_oom_would_fit(&s, cases[i].asked, cases[i].align) == cases[i].want);
    }
    assert_true(unknown == UINT64_MAX);
}

static tide_oom_report make_report(void) {
    tide_oom_report r = {.asked_bytes = 4194304,
                         .align_bytes = 256,
                         .device = TIDE_CPU,
                         .kind = TIDE_KIND_WORKSPACE,
                         .allocator = "limit",
                         .tag = "conv2.out",
                         .op = "conv2",
                         .stats = {.requested_bytes = 3000,
                                   .active_bytes = 3072,
                                   .cached_bytes = 1024,
                                   .reserved_bytes = 8192,
                                   .largest_free_bytes = 512,
                                   .pending_bytes = 256,
                                   .n_pending = 2,
                                   .headroom_bytes = 2048},
                         .would_fit_bytes = 2048,
                         .n_blocks = 2,
                         .n_live = 7,
                         .live_bytes = 1536 * 1024};
    r.blocks[0] =
        (tide_live_block){.block_id = 1, .kind = TIDE_KIND_PERSISTENT, .requested_bytes = 1048576, .tag = "w"};
    r.blocks[1] = (tide_live_block){.block_id = 2,
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .requested_bytes = 1000,
                                    .tag = "conv1.out",
                                    .op = "conv1",
                                    .pending = true};
    return r;
}

static void a_report_word_for_word(void **state) {
    (void)state;
    const tide_oom_report r = make_report();
    tide_text t = {0};
    tide_oom_report_text(&r, &t);
    assert_string_equal(
        tide_text_str(&t),
        "out of memory on cpu: asked 4.00 MiB (4194304 bytes, alignment 256) of kind Workspace\n"
        "  for             conv2.out, operator conv2\n"
        "  allocator       limit\n"
        "  would have fit  at most 2.00 KiB\n"
        "  its numbers     requested 2.93 KiB, active 3.00 KiB, cached 1.00 KiB, reserved 8.00 KiB\n"
        "                  largest free block 512 B, may still take 2.00 KiB, pending frees 2 (256 B)\n"
        "  live on cpu: 7 blocks, 1.50 MiB requested; the 2 largest:\n"
        "           bytes  kind          tag                       operator\n"
        "         1048576  Persistent    w                         -\n"
        "            1000  Workspace     conv1.out                 conv1  (released, but a stream may still use it)\n"
        "          523288  in 5 more\n");
    tide_text_deinit(&t);
}

static void unknown_values_are_named_as_unknown(void **state) {
    (void)state;
    tide_oom_report r = make_report();
    r.allocator = r.tag = r.op = NULL;
    r.align_bytes = 0;
    r.would_fit_bytes = r.stats.headroom_bytes = TIDE_UNKNOWN_BYTES;
    r.n_blocks = r.n_live = 0;
    r.live_bytes = 0;
    tide_text t = {0};
    tide_oom_report_text(&r, &t);
    assert_text_has(tide_text_str(&t), "(4194304 bytes) of kind");
    assert_text_has(tide_text_str(&t), "for             (not named)\n");
    assert_text_has(tide_text_str(&t), "would have fit  not known: the system decides; without it 512 B\n");
    assert_text_has(tide_text_str(&t), "may still take unknown");
    assert_text_has(tide_text_str(&t), "live on cpu: 0 blocks, 0 B requested\n");
    assert_null(strstr(tide_text_str(&t), "operator"));
    tide_text_deinit(&t);
    r.would_fit_bytes = 0;
    tide_oom_report_text(&r, &t);
    assert_text_has(tide_text_str(&t), "would have fit  nothing\n");
    tide_text_deinit(&t);
    r.would_fit_bytes = TIDE_UNKNOWN_BYTES;
    // A budget had room for the request, but not for the block that the allocator below makes of it.
    r.stats.headroom_bytes = 5 << 20;
    tide_oom_report_text(&r, &t);
    assert_text_has(tide_text_str(&t),
                    "would have fit  not known: there is room, but rounding or the system refused\n");
    tide_text_deinit(&t);
}

static void live_blocks_word_for_word(void **state) {
    (void)state;
    const tide_live_block blocks[] = {
        {.block_id = 3, .kind = TIDE_KIND_KV_CACHE, .requested_bytes = 123456, .t_ns = 1000, .tag = "kv", .op = "attn"},
        {.block_id = 4, .kind = TIDE_KIND_DEFAULT, .requested_bytes = 1, .t_ns = 9000, .tag = "s\xC3\xA4ule"},
    };
    tide_text t = {0};
    tide_live_blocks_text(blocks, 2, 6000, &t);
    assert_string_equal(
        tide_text_str(&t),
        "           bytes  kind          tag                       operator                  age\n"
        "          123456  KVCache       kv                        attn                      5 us\n"
        "               1  Default       s\xC3\xA4ule                     -                         0 ns\n");
    tide_text_deinit(&t);
    tide_live_blocks_text(NULL, 0, 6000, &t);
    assert_string_equal(tide_text_str(&t), "");
    tide_text_deinit(&t);
}

/// Names come out of files: a report must not steer a terminal.
static void names_cannot_steer_the_terminal(void **state) {
    (void)state;
    tide_oom_report r = make_report();
    r.tag = "red\x1b[31m\nline";
    r.op = "\xFF\x07";
    r.blocks[0].tag = r.tag;
    tide_text t = {0};
    tide_oom_report_text(&r, &t);
    for (const char *c = tide_text_str(&t); *c != '\0'; c++)
        assert_true(*c == '\n' || ((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7F));
    assert_text_has(tide_text_str(&t), "red?[31m?line");
    tide_text_deinit(&t);
}

static void without_memory_the_text_is_marked(void **state) {
    (void)state;
    const tide_oom_report r = make_report();
    tide_text t = {0};
    tide_host_fail_after(0);
    tide_oom_report_text(&r, &t);
    tide_host_fail_after(-1);
    assert_true(t.failed);
    tide_text_deinit(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_would_have_fitted),
        tide_unit_test(a_report_word_for_word),
        tide_unit_test(unknown_values_are_named_as_unknown),
        tide_unit_test(live_blocks_word_for_word),
        tide_unit_test(names_cannot_steer_the_terminal),
        tide_unit_test(without_memory_the_text_is_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
