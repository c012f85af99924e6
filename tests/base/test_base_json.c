// SPDX-License-Identifier: MIT
//
// The JSON helpers: what each getter takes and refuses, in which words and where; documents that lack something.
#include <stdlib.h>
#include <unistd.h>

#include "core/base/json.h"
#include "tests/tide_test.h"

static const char good[] = "{\"text\": \"a\", \"n\": 3, \"less\": -1, \"part\": 1.5, \"yes\": true, \"none\": null, "
                           "\"list\": [{\"k\": 1}, 7], \"object\": {}}";

static json_t *parse(tide_json_reader *r, const char *data) {
    json_t *doc = NULL;
    assert_tide_ok(tide_json_parse(r, data, strlen(data), JSON_REJECT_DUPLICATES, "not JSON", &doc), r->err);
    return doc;
}

static void assert_refused(const tide_json_reader *r, tide_status st, const char *msg, const char *where) {
    assert_tide_status(st, TIDE_ERR_BAD_INPUT);
    assert_string_equal(r->err->msg, msg);
    assert_string_equal(r->err->where, where);
    *r->err = (tide_error){0};
}

static void typed_values(void **state) {
    (void)state;
    tide_error err = {0};
    tide_json_reader r = {.path = "a.json", .err = &err};
    json_t *doc = parse(&r, good), *value = NULL;
    const char *text = NULL;
    int64_t n = 0;
    uint64_t bytes = 0;
    bool flag = false;
    assert_tide_ok(tide_json_get_text(&r, doc, "text", &text), &err);
    assert_string_equal(text, "a");
    assert_tide_ok(tide_json_get_count(&r, doc, "n", &n), &err);
    assert_int_equal(n, 3);
    assert_tide_ok(tide_json_get_bytes(&r, doc, "n", &bytes), &err);
    assert_true(bytes == 3);
    assert_tide_ok(tide_json_get_i64(&r, doc, "less", &n), &err);
    assert_int_equal(n, -1);
    assert_tide_ok(tide_json_get_count(&r, doc, "n", &n), &err);
    assert_tide_ok(tide_json_get_flag(&r, doc, "yes", &flag), &err);
    assert_true(flag);
    assert_tide_ok(tide_json_get_flag(&r, doc, "absent", &flag), &err);
    assert_true(flag);
    flag = false;
    assert_tide_ok(tide_json_get_bool(&r, doc, "yes", &flag), &err);
    assert_true(flag);
    assert_tide_ok(tide_json_get_list(&r, doc, "list", &value), &err);
    assert_int_equal(json_array_size(value), 2);
    assert_tide_ok(tide_json_get_object(&r, doc, "object", &value), &err);
    assert_tide_ok(tide_json_get(&r, doc, "absent", JSON_STRING, false, &value), &err);
    assert_null(value);
    assert_true(tide_json_has(doc, "none"));
    assert_false(tide_json_has(doc, "absent"));
    assert_refused(&r, tide_json_get_text(&r, doc, "absent", &text), "the key 'absent' is missing", "a.json: absent");
    assert_refused(&r, tide_json_get_text(&r, doc, "n", &text), "'n' is an integer: want a string", "a.json: n");
    assert_refused(&r, tide_json_get_count(&r, doc, "less", &n), "'less' is -1: want 0 or more", "a.json: less");
    assert_refused(&r, tide_json_get_count(&r, doc, "part", &n), "'part' is a number with a fraction: want an integer",
                   "a.json: part");
    assert_refused(&r, tide_json_get_flag(&r, doc, "none", &flag), "'none' is null: want true or false",
                   "a.json: none");
    assert_refused(&r, tide_json_get_bool(&r, doc, "absent", &flag), "the key 'absent' is missing", "a.json: absent");
    assert_refused(&r, tide_json_get_bool(&r, doc, "n", &flag), "'n' is an integer: want true or false", "a.json: n");
    assert_refused(&r, tide_json_get_i64(&r, doc, "part", &n), "'part' is a number with a fraction: want an integer",
                   "a.json: part");
    assert_refused(&r, tide_json_get_list(&r, doc, "object", &value), "'object' is an object: want a list",
                   "a.json: object");
    assert_refused(&r, tide_json_get_object(&r, doc, "yes", &value), "'yes' is true or false: want an object",
                   "a.json: yes");
    assert_int_equal(n, 3);
    json_decref(doc);
}

static void texts(void **state) {
    (void)state;
    tide_error err = {0};
    tide_json_reader r = {.path = "a.json", .err = &err};
    json_t *doc = parse(&r, "{\"text\": \"a\", \"list\": [\"b\", 7]}"), *list = NULL;
    const char *text = NULL;
    char *copy = NULL;
    assert_tide_ok(tide_json_copy_text(&r, doc, "text", &copy), &err);
    assert_string_equal(copy, "a");
    tide_host_free(copy);
    assert_refused(&r, tide_json_copy_text(&r, doc, "list", &copy), "'list' is a list: want a string", "a.json: list");
    tide_host_fail_after(0);
    assert_tide_status(tide_json_copy_text(&r, doc, "text", &copy), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    assert_null(copy);
    assert_tide_ok(tide_json_get_list(&r, doc, "list", &list), &err);
    assert_tide_ok(tide_json_text_in(&r, list, "list", 0, &text), &err);
    assert_string_equal(text, "b");
    assert_refused(&r, tide_json_text_in(&r, list, "list", 1, &text), "list[1] is an integer: want a string",
                   "a.json: list");
    json_decref(doc);
}

static tide_status own_words(tide_json_reader *r, const char *key, const json_t *value, json_type want) {
    (void)want;
    return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s of %s is %s", key, r->at, value == NULL ? "absent" : "wrong");
}

static void places(void **state) {
    (void)state;
    const char *known[] = {"text", "n", "less", "part", "yes", "none", "list", "objects", NULL};
    tide_error err = {0};
    tide_json_reader r = {.path = "a.json", .err = &err};
    json_t *doc = parse(&r, good), *list = NULL, *one = NULL;
    const char *text;
    assert_tide_ok(tide_json_get_list(&r, doc, "list", &list), &err);
    assert_tide_ok(tide_json_enter(&r, list, "list", 0, &one), &err);
    assert_refused(&r, tide_json_get_text(&r, one, "k", &text), "'k' is an integer: want a string",
                   "a.json: list[0].k");
    const size_t outer = tide_json_go_into(&r, "inner[%d]", 2);
    assert_refused(&r, TIDE_JSON_BAD(&r, "k", "no"), "no", "a.json: list[0].inner[2].k");
    r.at[outer] = '\0';
    assert_refused(&r, TIDE_JSON_BAD(&r, "", "no"), "no", "a.json: list[0]");
    assert_refused(&r, tide_json_enter(&r, list, "list", 1, &one), "list[1] is an integer: want an object",
                   "a.json: list[1]");
    assert_refused(&r, tide_json_as_bad_input(&r, "k", TIDE_FAIL(&err, TIDE_ERR_INVALID, "no")), "no",
                   "a.json: list[1].k");
    assert_tide_status(tide_json_as_bad_input(&r, "k", TIDE_ERR_NOMEM), TIDE_ERR_NOMEM);
    assert_tide_status(tide_json_as_bad_input(&r, "k", TIDE_OK), TIDE_OK);
    r.at[0] = '\0';
    assert_int_equal(tide_json_go_into(&r, "inner"), 0);
    assert_refused(&r, TIDE_JSON_BAD(&r, "k", "no"), "no", "a.json: inner.k");
    r.at[0] = '\0';
    assert_refused(&r, TIDE_JSON_BAD(&r, "", "no"), "no", "a.json");
    const tide_status st = tide_json_check_keys(&r, doc, known);
    assert_string_equal(err.hint, "did you mean 'objects'?");
    assert_refused(&r, st, "the document has the unknown key 'object'", "a.json");
    assert_tide_ok(tide_json_enter(&r, list, "list", 0, &one), &err);
    assert_refused(&r, tide_json_check_keys(&r, one, known), "list[0] has the unknown key 'k'", "a.json: list[0]");
    assert_refused(&r, tide_json_check_keys(&r, list, known), "list[0] is a list: want an object", "a.json: list[0]");
    known[7] = "object";
    assert_tide_ok(tide_json_check_keys(&r, doc, known), &err);
    r.refuse = own_words;
    assert_refused(&r, tide_json_get_text(&r, doc, "n", &text), "n of list[0] is wrong", "");
    assert_refused(&r, tide_json_get_text(&r, doc, "no", &text), "no of list[0] is absent", "");
    json_decref(doc);
}

static void text_that_is_not_json(void **state) {
    (void)state;
    tide_error err = {0};
    tide_json_reader r = {.path = "a.json", .err = &err};
    json_t *doc;
    assert_tide_status(tide_json_parse(&r, "{\n \"a\": }", 9, 0, "not JSON", &doc), TIDE_ERR_BAD_INPUT);
    assert_null(doc);
    assert_memory_equal(err.msg, "not JSON: ", 10);
    assert_string_equal(err.where, "a.json:2:7");
    assert_tide_status(tide_json_parse(&r, " \n\t ", 4, 0, "not JSON", &doc), TIDE_ERR_BAD_INPUT);
    assert_string_equal(err.msg, "not JSON: it is empty");
    assert_tide_status(tide_json_parse(&r, "{\n\"a\":1\0}", 9, 0, "not JSON", &doc), TIDE_ERR_BAD_INPUT);
    assert_null(doc);
    assert_string_equal(err.msg, "not JSON: a NUL byte");
    assert_string_equal(err.where, "a.json:2");
}

static void documents_in_files(void **state) {
    (void)state;
    char path[] = "/tmp/tide_json_XXXXXX";
    tide_error err = {0};
    tide_json_reader r = {.path = path, .err = &err};
    json_t *doc = json_null();
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, good, sizeof good - 1), sizeof good - 1);
    assert_tide_ok(tide_json_read_file(&r, sizeof good, &doc), &err);
    assert_true(tide_json_has(doc, "text"));
    json_decref(doc);
    assert_tide_status(tide_json_read_file(&r, 8, &doc), TIDE_ERR_BAD_INPUT);
    assert_null(doc);
    tide_host_fail_after(0);
    assert_tide_status(tide_json_read_file(&r, 0, &doc), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    assert_int_equal(write(fd, "{}", 2), 2);
    assert_tide_status(tide_json_read_file(&r, 0, &doc), TIDE_ERR_BAD_INPUT);
    assert_null(doc);
    assert_memory_equal(err.msg, "not a JSON document: ", 21);
    assert_memory_equal(err.where, path, strlen(path));
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_tide_status(tide_json_read_file(&r, 0, &doc), TIDE_ERR_IO);
    assert_null(doc);
}

static void values_are_printed_safely(void **state) {
    (void)state;
    tide_text out = {0};
    json_t *doc = json_pack("{s:[I,f,n], s:s}", "list", (json_int_t)INT64_MAX, 0.5, "text", "a\xe2\x80\xae\x7f");
    assert_non_null(doc);
    assert_true(tide_json_print_safe(doc, JSON_COMPACT, &out)); // the text has an override in it
    assert_string_equal(tide_text_str(&out), "{\"list\":[9223372036854775807,0.5,null],\"text\":\"a\\u202e\\u007f\"}");
    tide_text_deinit(&out);
    json_decref(doc);
}

static void documents_that_say_what_they_are(void **state) {
    (void)state;
    static const struct {
        const char *text, *msg, *where;
    } cases[] = {
        {"[]", "the document is a list: want an object", "a.json"},
        {"{}", "the key 'schema' is missing", "a.json: schema"},
        {"{\"schema\": 1}", "'schema' is an integer: want a string", "a.json: schema"},
        {"{\"schema\": \"b\", \"version\": 3}", "the document is a 'b': want 'a'", "a.json: schema"},
        {"{\"schema\": \"a\"}", "the key 'version' is missing", "a.json: version"},
        {"{\"schema\": \"a\", \"version\": 4}", "version 4 of 'a' is not known here: want 3", "a.json: version"},
    };
    json_t *doc;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        tide_json_reader r = {.path = "a.json", .err = &err};
        assert_tide_status(tide_json_parse_schema(&r, cases[i].text, strlen(cases[i].text), "a", 3, &doc),
                           TIDE_ERR_BAD_INPUT);
        assert_null(doc);
        assert_string_equal(err.msg, cases[i].msg);
        assert_string_equal(err.where, cases[i].where);
    }
    static const char fine[] = "{\"schema\": \"a\", \"version\": 3}",
                      twice[] = "{\"schema\": \"a\", \"schema\": \"a\"}";
    tide_error err = {0};
    tide_json_reader r = {.path = "a.json", .err = &err};
    assert_tide_ok(tide_json_parse_schema(&r, fine, sizeof fine - 1, "a", 3, &doc), &err);
    int version = 0;
    assert_tide_ok(tide_json_check_schema(&r, doc, "a", 2, 3, &version), &err);
    assert_int_equal(version, 3);
    assert_refused(&r, tide_json_check_schema(&r, doc, "a", 1, 2, &version),
                   "version 3 of 'a' is not known here: want 1 to 2", "a.json: version");
    assert_refused(&r, tide_json_check_schema(&r, doc, "a", 4, 5, &version),
                   "version 3 of 'a' is not known here: want 4 to 5", "a.json: version");
    assert_int_equal(version, 3);
    json_decref(doc);
    assert_tide_status(tide_json_parse_schema(&r, twice, sizeof twice - 1, "a", 3, &doc), TIDE_ERR_BAD_INPUT);
    assert_null(doc);
}

static void printing_without_memory(void **state) {
    (void)state;
    json_t *doc = json_string("some text");
    tide_text out = {0};
    tide_host_fail_after(0);
    assert_false(tide_json_print_safe(doc, JSON_ENCODE_ANY, &out));
    tide_host_fail_after(-1);
    assert_true(out.failed);
    tide_text_deinit(&out);
    json_decref(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(typed_values),
        tide_unit_test(texts),
        tide_unit_test(places),
        tide_unit_test(text_that_is_not_json),
        tide_unit_test(documents_in_files),
        tide_unit_test(values_are_printed_safely),
        tide_unit_test(documents_that_say_what_they_are),
        tide_unit_test(printing_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
