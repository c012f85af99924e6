// SPDX-License-Identifier: MIT
//
// The views of `tidemark trace`, and the recording around a run, without memory at any one of their allocations: an
// exit code, a message, nothing lost. The program's own parts are linked in, all but main.c.
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/recording.h"
#include "cli/table.h"
#include "cli/trace_view.h"
#include "tests/tide_test.h"

// ---- shorthands ----

static char folder[] = "/tmp/tide-trace-view-XXXXXX", trace_path[64], other_path[64];

/// A command in this process.
static int call(const cli_command *cmd, int n, const char *const *args) {
    char copies[16][512], *argv[17] = {NULL};
    for (int i = 0; i < n; i++) {
        snprintf(copies[i], sizeof copies[i], "%s", args[i]);
        argv[i] = copies[i];
    }
    optind = 0;
    return cmd->run(n, argv);
}
#define CALL(cmd, ...)                                                                                                 \
    call(cmd, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)), (const char *[]){__VA_ARGS__})

/// Standard output and error go nowhere between hush(true) and hush(false).
static void hush(bool on) {
    static int kept[2];
    fflush(NULL);
    for (int fd = 1; fd <= 2; fd++) {
        if (on) {
            kept[fd - 1] = dup(fd);
            const int null = open("/dev/null", O_WRONLY);
            dup2(null, fd);
            close(null);
        } else {
            dup2(kept[fd - 1], fd);
            close(kept[fd - 1]);
        }
    }
}

static int make_traces(void **state) {
    (void)state;
    char sample[1024];
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(trace_path, sizeof trace_path, "%s/t.db", folder);
    snprintf(other_path, sizeof other_path, "%s/o.db", folder);
    tide_source_path("sample_graphs/diamond.json", sample, sizeof sample);
    hush(true);
    const int a = CALL(&cli_command_compare, "compare", sample, "-n", "2", "-o", trace_path, "--recorder", "thread");
    const int b = CALL(&cli_command_run, "run", sample, "--naive", "-n", "2", "-o", other_path, "--recorder", "thread",
                       "--form", "chunks");
    hush(false);
    return a == CLI_EXIT_OK && b == CLI_EXIT_OK ? 0 : -1;
}

static int remove_traces(void **state) {
    (void)state;
    unlink(trace_path);
    unlink(other_path);
    return rmdir(folder);
}

// ---- no memory ----

static void *json_alloc(size_t size_bytes) { return tide_host_alloc(size_bytes); }

/// Everything from opening to the last line, with one allocation failing: each of the first, then samples of the rest.
static void allocations_fail_once(const char *const *args, int n) {
    json_set_alloc_funcs(json_alloc, tide_host_free); // as the program does
    tide_host_stats stats;
    hush(true);
    tide_host_reset_peak();
    const int without = call(&cli_command_trace, n, args);
    tide_host_get_stats(&stats);
    const int64_t n_all = (int64_t)stats.n_allocs;
    const uint64_t n_live = stats.n_live;
    int n_failed = 0, n_odd = 0;
    uint64_t n_lost = 0;
    for (int64_t k = 0; k < n_all; k += k < 60 ? 1 : 1 + n_all / 40) {
        tide_host_fail_after(k);
        const int code = call(&cli_command_trace, n, args);
        tide_host_fail_after(-1);
        tide_host_get_stats(&stats);
        n_lost += stats.n_live - n_live;
        n_failed += code != CLI_EXIT_OK;
        n_odd += code != CLI_EXIT_OK && code != CLI_EXIT_DOES_NOT_FIT;
    }
    hush(false);
    assert_int_equal(without, CLI_EXIT_OK);
    assert_true(n_all > 10 && n_failed > 5);
    assert_int_equal(n_odd, 0);
    assert_true(n_lost == 0);
}

static void facts_without_memory(void **state) {
    (void)state;
    allocations_fail_once((const char *[]){"trace", trace_path}, 2);
    allocations_fail_once((const char *[]){"trace", trace_path, "--json"}, 3);
}

static void moments_without_memory(void **state) {
    (void)state;
    allocations_fail_once((const char *[]){"trace", trace_path, "--at", "peak"}, 4);
    allocations_fail_once((const char *[]){"trace", other_path, "--at", "warm", "--json"}, 5);
    allocations_fail_once((const char *[]){"trace", other_path, "--at", "50%", "--by", "scope"}, 6);
    allocations_fail_once((const char *[]){"trace", trace_path, "--at", "begin", "--and", "end"}, 6);
    allocations_fail_once((const char *[]){"trace", trace_path, "--compare", other_path, "--json"}, 5);
}

static void answers_without_memory(void **state) {
    (void)state;
    allocations_fail_once((const char *[]){"trace", other_path, "--sql", "SELECT id, op FROM event"}, 4);
    allocations_fail_once((const char *[]){"trace", trace_path, "--sql", "SELECT 1, 'a'", "--json"}, 5);
    allocations_fail_once((const char *[]){"trace", trace_path, "--check"}, 3);
}

// ---- tables ----

static const char *printed(const tide_table *t, const char *columns, char *buf, size_t buf_bytes) {
    memset(buf, 0, buf_bytes);
    if (columns != NULL)
        setenv("COLUMNS", columns, 1);
    else
        unsetenv("COLUMNS");
    FILE *f = fmemopen(buf, buf_bytes - 1, "w");
    assert_non_null(f);
    cli_table_print(t, "  ", f);
    fclose(f);
    unsetenv("COLUMNS");
    return buf;
}

typedef struct named_row {
    uint64_t n;
    const char *name, *scope;
} named_row;

static void tables_are_as_wide_as_they_must(void **state) {
    (void)state;
    static const tide_column columns[] = {
        {NULL, "n", TIDE_UNIT_COUNT, TIDE_AT(named_row, n)},
        {NULL, "name", TIDE_UNIT_TEXT, TIDE_AT(named_row, name), .may_be_cut = true},
        {NULL, "scope", TIDE_UNIT_TEXT, TIDE_AT(named_row, scope), .may_be_cut = true},
    };
    static const named_row rows[] = {{5, "a name that is quite long", "x\ty\x1b"}, {12345678, "b", ""}};
    const tide_table t = {TIDE_COLUMNS(columns), .rows = rows, .row_bytes = sizeof rows[0], .n_rows = 2};
    char buf[1024];
    assert_string_equal(printed(&t, "0", buf, sizeof buf), "         n  name                       scope\n"
                                                           "         5  a name that is quite long  x?y?\n"
                                                           "  12345678  b\n");
    assert_string_equal(printed(&t, "30", buf, sizeof buf), "         n  name         scope\n"
                                                            "         5  a name tha~  x?y?\n"
                                                            "  12345678  b\n");
    // names give way only so far, numbers never
    assert_text_has(printed(&t, "5", buf, sizeof buf), "         5  a name ~  x?y?\n");
    // Without memory it says so, whichever piece is missing.
    for (int64_t n = 0; n < 8; n++) {
        tide_host_fail_after(n);
        assert_string_equal(printed(&t, "0", buf, sizeof buf), "(cut: out of memory)\n");
        tide_host_fail_after(-1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_without_memory),
        cmocka_unit_test(moments_without_memory),
        cmocka_unit_test(answers_without_memory),
        tide_unit_test(tables_are_as_wide_as_they_must),
    };
    return cmocka_run_group_tests(tests, make_traces, remove_traces);
}
