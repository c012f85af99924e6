// SPDX-License-Identifier: MIT
//
// Where a configuration and its models lie: folders, patterns, files of other types; and files that are hostile to a
// parser.
#include "config_case.h"
#include "core/base/text.h"

#define TOP "version = 1\n"
#define MODEL "[[model]]\npath = \"x.onnx\"\n"

// ---- patterns ----

static void assert_keys(const char *path, const char *const *want, size_t n_want) {
    char text[512];
    snprintf(text, sizeof text, TOP "[[model]]\n%s\n", path);
    tide_gate_config *c = config_of("t.toml", text);
    size_t n;
    const tide_gate_target *t = tide_gate_config_targets(c, &n);
    assert_int_equal(n, n_want);
    for (size_t i = 0; i < n; i++) assert_string_equal(t[i].key, want[i]);
    tide_gate_config_destroy(c);
}
#define assert_finds(path, ...)                                                                                        \
    assert_keys(path, (const char *const[]){__VA_ARGS__},                                                              \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void test_patterns_find_files(void **state) {
    (void)state;
    put_models();
    assert_int_equal(mkdir("m/sub.onnx", 0777), 0); // a folder is no model, whatever its name
    put("m/sub.onnx/d.onnx", "");
    put("m/.hidden.onnx", "");
    assert_finds("path = \"m/*.onnx\"", "m/B.onnx", "m/a.onnx", "m/b.onnx");
    assert_finds("path = \".//m/./[ab].onnx\"", "m/a.onnx", "m/b.onnx");
    assert_finds("path = \"m/*/?.onnx\"", "m/sub.onnx/d.onnx");
    assert_finds("path = \"m/*.onnx\"\nexclude = [\"./m/B*\", \"m/b.onnx\"]", "m/a.onnx");
    assert_finds("path = \"m/*.onnx\"\nexclude = \"m/[ab].onnx\"", "m/B.onnx");
    assert_finds("path = \"../gone/x.onnx\"", "../gone/x.onnx");
    put("m/[ab].onnx", ""); // the name of a file before a pattern
    assert_finds("path = \"m/[ab].onnx\"", "m/[ab].onnx");
    assert_int_equal(symlink("nowhere", "m/z.onnx"), 0); // it vanished: measuring it fails, and is told
    assert_finds("path = \"m/z*\"", "m/z.onnx");
}

static void test_patterns_without_a_match_are_reported(void **state) {
    (void)state;
    put_models();
    assert_bad(TOP "[[model]]\npath = \"m/*.tflite\"\n", "t.toml:3", "no file matches this pattern: 'm/*.tflite'",
               "folder");
    assert_bad(TOP "[[model]]\npath = \"gone/*.onnx\"\n", "t.toml:3", "no file matches", NULL);
    assert_bad(TOP "[[model]]\npath = \"m\"\n", "t.toml:3", "'m' is a folder", "\"m/*.onnx\"");
    assert_bad(TOP "[[model]]\npath = \"m/**/x\"\n", "t.toml:3", "'**' is not known", "models/*/*.onnx");
    assert_bad(TOP "[[model]]\npath = \"-\"\n", "t.toml:3", "not standard input", NULL);
    tide_gate_config *c =
        config_of("t.toml", TOP "[[model]]\npath = \"m/*.onnx\"\nexclude = [\"m/a.onnx\", \"m/q*\"]\n");
    assert_empty_target(c, "m/q*", "'exclude' leaves nothing out", "t.toml:4");
    tide_gate_config_destroy(c);
    c = config_of("t.toml", TOP "[[model]]\npath = \"m/*.onnx\"\nexclude = \"m/*\"\n[[model]]\npath = \"m/b.onnx\"\n");
    assert_empty_target(c, "m/*.onnx", "leaves no file", "t.toml:3");
    tide_gate_config_destroy(c);
    assert_bad(TOP "[[model]]\npath = \"m/*.onnx\"\nexclude = \"m/*\"\n", "t.toml:3",
               "leaves no file at all: 'm/*.onnx'", NULL);
    assert_bad(TOP "[[model]]\npath = \"m/*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\"\n", "t.toml:3", "16 stars", NULL);
    assert_bad(TOP MODEL "[[override]]\nmatch = \"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\"\nmax_bytes = 1\n", "t.toml:5",
               "16 stars", NULL);
    assert_bad(TOP "[[model]]\npath = \"m/*.onnx\"\nextents = { A = [1,2,3,4,5,6,7,8,9,10], B = [1,2,3,4,5,6,7,8,9,10],"
                   " C = [1,2,3,4,5,6,7,8,9,10], D = [1,2,3,4,5,6,7,8,9,10] }\n",
               "t.toml:2", "more than 10000 cases", NULL);
}

/// Root may read every file, so a test of permissions runs as another user for a while.
static void become(uid_t user) {
    if (user != 0) assert_int_equal(chmod(".", 0777), 0);
    assert_int_equal(seteuid(user), 0);
}

static void test_unreadable_files_are_reported(void **state) {
    (void)state;
    enum { OTHER_USER = 65534 };
    const bool is_root = geteuid() == 0;
    put("secret.toml", TOP MODEL);
    assert_int_equal(chmod("secret.toml", 0), 0);
    assert_int_equal(mkdir("shut", 0), 0);
    put("t.toml", TOP "[[model]]\npath = \"*/*.onnx\"\n");
    if (is_root) become(OTHER_USER);
    tide_gate_config *c = NULL;
    tide_error err = TIDE_ERROR_INIT, of_folder = TIDE_ERROR_INIT;
    const tide_status st = tide_gate_config_read("secret.toml", &c, &err);
    const tide_status st_folder = tide_gate_config_read("t.toml", &c, &of_folder);
    if (is_root) become(0);
    assert_int_equal(st, TIDE_ERR_IO);
    assert_text_has(err.msg, "'secret.toml': Permission denied");
    assert_int_equal(st_folder, TIDE_ERR_BAD_INPUT); // models in that folder would be left unmeasured
    assert_text_has(of_folder.msg, "'*/*.onnx': cannot read a folder: Permission denied");
    assert_string_equal(of_folder.where, "t.toml:3");
}

static void test_paths_are_looked_up_from_the_folder_of_the_configuration(void **state) {
    (void)state;
    assert_int_equal(mkdir("c[1]*", 0777), 0); // a folder whose name would be a pattern
    assert_int_equal(mkdir("c[1]*/m", 0777), 0);
    put("c[1]*/m/a.onnx", "");
    tide_gate_config *c =
        config_of("c[1]*/t.toml", TOP "baseline = \"base.json\"\n[defaults]\ninput_dir = \"in\"\n"
                                      "[[model]]\npath = \"m/*.onnx\"\n[[model]]\npath = \"/abs/x.onnx\"\n");
    const tide_gate_target *t = target_of(c, "m/a.onnx");
    assert_string_equal(t->path, "c[1]*/m/a.onnx");
    assert_string_equal(t->settings.input_dir, "c[1]*/in");
    assert_string_equal(t->origin, "c[1]*/t.toml:5");
    assert_string_equal(target_of(c, "/abs/x.onnx")->path, "/abs/x.onnx");
    assert_string_equal(tide_gate_config_baseline(c, NULL), "c[1]*/base.json");
    tide_gate_config_destroy(c);
}

// ---- files that are none ----

static void test_no_file_no_configuration(void **state) {
    (void)state;
    tide_gate_config *c = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_gate_config_read("gone.toml", &c, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "'gone.toml'");
    assert_int_equal(mkdir("d.toml", 0777), 0);
    assert_tide_status(tide_gate_config_read("d.toml", &c, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "'d.toml': Is a directory");
    assert_tide_status(tide_gate_config_read("/dev/zero", &c, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "longer than");
    assert_null(c);
    assert_bad("", "", "the file is empty", "docs/gate.md");
    assert_bad_json("", "", "the file is empty", NULL);
    assert_bad("# nothing\n", "t.toml", "does not say its version", NULL);
}

static void test_standard_input_is_either_format(void **state) {
    (void)state;
    static const char *const texts[] = {TOP MODEL, " \n{\"version\": 1, \"model\": [{\"path\": \"x.onnx\"}]}"};
    static const char *const origins[] = {"standard input:2", "standard input: model[0]"};
    for (size_t i = 0; i < 2; i++) {
        put("in", texts[i]);
        assert_non_null(freopen("in", "rb", stdin));
        tide_gate_config *c = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_gate_config_read("-", &c, &err), &err);
        assert_string_equal(target_of(c, "x.onnx")->origin, origins[i]);
        assert_string_equal(target_of(c, "x.onnx")->path, "x.onnx");
        tide_gate_config_destroy(c);
    }
}

static void test_a_long_path_leaves_room_for_the_reason(void **state) {
    (void)state;
    char path[1024] = "";
    for (int i = 0; i < 4; i++) {
        char part[201];
        memset(part, 'a' + i, 200);
        part[200] = '\0';
        const size_t at = strlen(path);
        snprintf(path + at, sizeof path - at, "%s%s", i > 0 ? "/" : "", part);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    snprintf(path + strlen(path), sizeof path - strlen(path), "/t.toml");
    put(path, TOP MODEL "max_byts = 3\n");
    tide_gate_config *c = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_gate_config_read(path, &c, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "no key 'max_byts'");
    assert_text_has(err.where, "dd/t.toml:4");
    assert_text_has(err.hint, "'max_bytes'");
}

// ---- hostile ones ----

static void test_broken_documents_are_reported_with_line_and_column(void **state) {
    (void)state;
    assert_bad(TOP "baseline = \"a\"\nbaseline = \"b\"\n", "t.toml:3:12", "cannot redefine", NULL);
    assert_bad(TOP "[rules]\n[rules]\n", "t.toml:3:1", "redefine", NULL);
    assert_bad(TOP "baseline = \"\xff\xfe\"\n", "t.toml:2:12", "utf-8", NULL);
    assert_bad(TOP "baseline = \"abc\n", "t.toml:2:16", "string", NULL);
    assert_bad_json("{\"version\": 1, \"version\": 1}", "t.json:1:24", "duplicate object key", NULL);
    assert_bad_json("{\"version\": 1,\n \"baseline\": \"\xff\"}", "t.json:2:14", "unable to decode byte 0xff", NULL);
    assert_bad_json("{\"version\": 1} x", "t.json:1:16", "end of file expected", NULL);
    assert_bad_json("{\"version\": 1e999}", "t.json:1:17", "real number overflow", NULL);
    static const char nul[] = TOP "a = \"b\0c\"\n";
    assert_refused("t.toml", nul, sizeof nul - 1, "t.toml:2:7", "", NULL);
    static const char nul_json[] = "{\"version\": 1,\n\0}";
    assert_refused("t.json", nul_json, sizeof nul_json - 1, "t.json:2", "a NUL byte", NULL);
    assert_bad_json("{\"version\": 1, \"baseline\": \"a\\u0000b\"}", "t.json: baseline", "has a NUL character in it",
                    NULL);
}

static char *repeated(const char *head, const char *part, size_t n, const char *tail, size_t *len) {
    const size_t h = strlen(head), p = strlen(part), t = strlen(tail);
    *len = h + n * p + t;
    char *text = malloc(*len + 1);
    assert_non_null(text);
    memcpy(text, head, h);
    for (size_t i = 0; i < n; i++) memcpy(text + h + i * p, part, p);
    memcpy(text + h + n * p, tail, t + 1);
    return text;
}

static void assert_refused_repeated(const char *path, const char *head, const char *part, size_t n, const char *tail,
                                    const char *where, const char *msg) {
    size_t len;
    char *text = repeated(head, part, n, tail, &len);
    assert_refused(path, text, len, where, msg, NULL);
    free(text);
}

static void test_depth_is_bounded(void **state) {
    (void)state;
    const size_t million = 1000 * 1000;
    assert_refused_repeated("t.toml", "a = ", "[", million, "", "t.toml:1:261", "nested value depth");
    assert_refused_repeated("t.toml", "a = ", "{a=", million / 4, "", "t.toml:1:773", "nested value depth");
    assert_refused_repeated("t.toml", TOP "a = ", "[", 100, "", "t.toml:2:105", "");
    assert_refused_repeated("t.toml", TOP "\na", ".a", million / 2, " = 1\n", "t.toml:3", "a key of more than 16");
    assert_refused_repeated("t.toml", TOP "\n[a", ". 'a\"#'", million / 8, "]\n", "t.toml:3", "a key of more than 16");
    assert_refused_repeated("t.toml", TOP "x = '''\n.\n''''' # .'\na", ".\"\"", 17, "=1\n", "t.toml:5", "more than 16");
    assert_refused_repeated("t.json", "", "[", million, "", "t.json:1:2049", "maximum parsing depth");
    assert_refused_repeated("t.json", "", "{\"a\":", million / 2, "", "t.json:1:10241", "maximum parsing depth");
    size_t len, n_close;
    char *open = repeated("{\"version\": 1, \"rules\": ", "[", 1000, "", &len);
    char *whole = repeated(open, "]", 1000, "}", &n_close);
    char where[256] = "t.json: rules";
    for (int i = 1; i < 64; i++) strcat(where, "[0]");
    assert_refused("t.json", whole, n_close, where, "nested deeper than 64", NULL);
    free(open);
    free(whole);
    open = repeated(TOP "rules = ", "[", 100, "", &len);
    whole = repeated(open, "]", 100, "\n", &n_close);
    assert_refused("t.toml", whole, n_close, "t.toml:2", "nested deeper than 64", NULL);
    free(open);
    free(whole);
}

/// Points in strings, comments and numbers are no parts of a key.
static void test_points_elsewhere_do_not_count(void **state) {
    (void)state;
    put("...................x.onnx", "");
    tide_gate_config *c = config_of("t.toml", TOP "# ........................................\n[[model]]\n"
                                                  "path = \"...................x.onnx\"\n"
                                                  "name = \"\"\"\\\"...................\"\"\"\"\"\n"
                                                  "allocator = 'cpu' # ''' .....................\n");
    assert_string_equal(target_of(c, "...................x.onnx [\"...................\"\"]")->settings.allocator,
                        "cpu");
    tide_gate_config_destroy(c);
}

static void test_long_names_are_cut_in_messages(void **state) {
    (void)state;
    assert_refused_repeated("t.toml", TOP, "k", 10000, " = 1\n" MODEL, "t.toml:2", "no key 'kkkk");
    assert_refused_repeated("t.toml", TOP "[rules]\n", "k", 10000, " = 1\n" MODEL, "t.toml:3", "no metric 'kkkk");
    assert_refused_repeated("t.toml", TOP MODEL "strategy = \"", "s", 10000, "\"\n", "t.toml:4", "no strategy 'ss");
    assert_refused_repeated("t.toml", TOP MODEL "extents = {", "N", 10000, " = 1}\n", "t.toml:4",
                            "no name of an extent");
    assert_refused_repeated("t.toml", TOP "[[model]]\npath = \"", "*", 5000, "\"\n", "t.toml:3", "'**' is not known");
    assert_refused_repeated("t.toml", TOP "[[model]]\npath = \"", "?", 5000, "\"\n", "t.toml:3", "too long");
    size_t len;
    char *text = repeated("{\"version\": 1, \"", "k", 10000, "\": 1}", &len);
    put_bytes("t.json", text, len);
    free(text);
    tide_gate_config *c = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_gate_config_read("t.json", &c, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "has no key 'kkkk");
    text = repeated(TOP "[[model]]\npath = \"", "p", 10000, ".onnx\"\n", &len); // a name is as long as it is
    c = config_of("t.toml", text);
    size_t n;
    assert_int_equal(strlen(tide_gate_config_targets(c, &n)->key), 10005);
    tide_gate_config_destroy(c);
    free(text);
}

// ---- no memory ----

static const char large[] = "version = 1\nbaseline = \"b.json\"\ngain = \"off\"\n[defaults]\nrun = true\n"
                            "input_dir = \"in\"\n[rules]\npeak_bytes = { warn = \"0\", fail = \"1KiB\" }\n"
                            "kind_peak_bytes = { Workspace = { max = \"1MiB\" } }\n"
                            "[[model]]\npath = \"m/*\"\nexclude = \"m/B*\"\nextents = { N = [1, 2, 3], T = 4 }\n"
                            "shapes = { data = \"1x3\" }\nmax_bytes = 99\n"
                            "[[override]]\nmatch = \"*N=2*\"\nrules.planned_bytes = \"warn\"\n";

/// Fails the 1st, 2nd, 3rd … allocation until one attempt gets through.
static void fail_each(const char *path) {
    int64_t n = 0;
    for (;; n++) {
        tide_gate_config *c = NULL;
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = tide_gate_config_read(path, &c, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) {
            size_t n_targets;
            tide_gate_config_targets(c, &n_targets);
            assert_int_equal(n_targets, 9);
            tide_gate_config_destroy(c);
            break;
        }
        if (st != TIDE_ERR_NOMEM) fail_msg("allocation %lld: %s: %s", (long long)n, tide_status_name(st), err.msg);
        assert_null(c);
    }
    assert_true(n > 10);
}

static void test_no_memory_is_reported_and_nothing_is_kept(void **state) {
    (void)state;
    put_models();
    put("t.toml", large);
    fail_each("t.toml");
    const char *paths[] = {"a", "b"};
    const tide_gate_plan_settings settings = {.strategy = "search", .shapes = paths, .n_shapes = 2};
    for (int64_t n = 0;; n++) {
        tide_gate_config *c = NULL;
        tide_host_fail_after(n);
        const tide_status st = tide_gate_config_of_files(paths, 2, &settings, &c, NULL);
        tide_host_fail_after(-1);
        tide_gate_config_destroy(c);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
    }
}

/// Bytes changed, left out and put in at random: whatever comes of it is a configuration or bad input.
static void test_broken_at_random(void **state) {
    (void)state;
    static const char json[] = "{\"version\": 1, \"rules\": {\"peak_bytes\": {\"fail\": \"1KiB and 2 %\"}}, \"model\": "
                               "[{\"path\": \"m/*\", \"extents\": {\"N\": [1, 2]}, \"run\": true}]}";
    static const char spice[] = "\0\xff\n\"'[]{}=.,#*?\\-09eE%";
    put_models();
    tide_rng rng = {.state = 20260131};
    size_t n_taken = 0;
    for (int round = 0; round < 4000; round++) {
        char text[1024];
        const char *from = round % 4 == 0 ? json : large;
        size_t len = strlen(from);
        memcpy(text, from, len);
        for (uint64_t edits = 1 + tide_rng_below(&rng, 4); edits > 0; edits--) {
            const size_t at = (size_t)tide_rng_below(&rng, len);
            const uint64_t what = tide_rng_below(&rng, 3);
            if (what == 0) memmove(text + at, text + at + 1, --len - at);
            if (what == 1) memmove(text + at + 1, text + at, len++ - at);
            if (what > 0) text[at] = spice[tide_rng_below(&rng, sizeof spice - 1)];
        }
        const char *path = from == json ? "t.json" : "t.toml";
        put_bytes(path, text, len);
        tide_gate_config *c = NULL;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_gate_config_read(path, &c, &err);
        if (st != TIDE_OK && st != TIDE_ERR_BAD_INPUT)
            fail_msg("round %d: %s: %s", round, tide_status_name(st), err.msg);
        if (st == TIDE_OK) rule_of(c, "m/a.onnx", "peak_bytes");
        n_taken += st == TIDE_OK;
        tide_gate_config_destroy(c);
    }
    assert_true(n_taken > 50 && n_taken < 3500); // both ways were walked
}

// The C++ library's operator new, as toml++ calls it: the n-th call fails.
static long fail_new = -1;
void *_Znwm(size_t n);
void _ZdlPv(void *p);
void _ZdlPvm(void *p, size_t n);
void _ZSt17__throw_bad_allocv(void);
void *_Znwm(size_t n) {
    void *p = fail_new == 0 ? NULL : malloc(n > 0 ? n : 1);
    if (fail_new >= 0) fail_new--;
    if (p == NULL) _ZSt17__throw_bad_allocv();
    return p;
}
void _ZdlPv(void *p) { free(p); }
void _ZdlPvm(void *p, size_t n) {
    (void)n;
    free(p);
}

static void test_no_memory_of_the_toml_library_is_reported_too(void **state) {
    (void)state;
    put_models();
    put("t.toml", large);
    long n = 0;
    for (;; n++) {
        tide_gate_config *c = NULL;
        tide_error err = TIDE_ERROR_INIT;
        fail_new = n;
        const tide_status st = tide_gate_config_read("t.toml", &c, &err);
        fail_new = -1;
        tide_gate_config_destroy(c);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_text_has(err.msg, "no memory to read 't.toml'");
    }
    assert_true(n > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        config_test(test_patterns_find_files),
        config_test(test_patterns_without_a_match_are_reported),
        config_test(test_unreadable_files_are_reported),
        config_test(test_paths_are_looked_up_from_the_folder_of_the_configuration),
        config_test(test_no_file_no_configuration),
        config_test(test_standard_input_is_either_format),
        config_test(test_a_long_path_leaves_room_for_the_reason),
        config_test(test_broken_documents_are_reported_with_line_and_column),
        config_test(test_depth_is_bounded),
        config_test(test_points_elsewhere_do_not_count),
        config_test(test_long_names_are_cut_in_messages),
        config_test(test_broken_at_random),
        config_test(test_no_memory_is_reported_and_nothing_is_kept),
        config_test(test_no_memory_of_the_toml_library_is_reported_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
