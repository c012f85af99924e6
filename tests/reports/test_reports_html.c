// SPDX-License-Identifier: MIT
//
// The HTML page: well-formed whatever the names, loads nothing, and says the timeline's numbers.
#include "tests/reports/sample_reports.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "reports/plot.h"

// ---- a checker: balanced tags, quoted attributes, references, nothing that loads or runs from a name ----

enum { MAX_DEPTH = 32, MAX_TAG = 24 };

typedef struct checker {
    char open[MAX_DEPTH][MAX_TAG];
    int depth;
    size_t n_elements, n_scripts;
} checker;

static bool is_void(const char *tag) { return strcmp(tag, "meta") == 0; }

static void check_reference(const char *p) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(p, known[i], strlen(known[i])) == 0) return;
    }
    fail_msg("a bare '&': %.40s", p);
}

/// An attribute at `p`; the character after its closing quote.
static const char *check_attribute(const char *p) {
    const char *name = p;
    while (isalnum((unsigned char)*p) || *p == '-') p++;
    const size_t len = (size_t)(p - name);
    if (len == 0 || p[0] != '=' || p[1] != '"') fail_msg("an attribute that is not name=\"value\": %.60s", name);
    if (len > 2 && strncmp(name, "on", 2) == 0) fail_msg("an event handler: %.60s", name);
    static const char *const loading[] = {"src", "href", "srcset", "data", "action", "poster", "xlink"};
    for (size_t i = 0; i < sizeof loading / sizeof loading[0]; i++) {
        if (len == strlen(loading[i]) && strncmp(name, loading[i], len) == 0)
            fail_msg("something that loads: %.60s", name);
    }
    for (p += 2; *p != '"'; p++) {
        if (*p == '\0' || *p == '<' || *p == '>') fail_msg("an attribute that does not end: %.60s", name);
        if (*p == '&') check_reference(p);
    }
    return p + 1;
}

static bool is_open(const checker *c, const char *tag) {
    return c->depth > 0 && strcmp(c->open[c->depth - 1], tag) == 0;
}

/// Table cells and rows may leave their end tags out where the next one or the end of the table's body follows.
static void close_implied(checker *c, const char *next) {
    const bool row = strcmp(next, "tr") == 0 || strcmp(next, "tbody") == 0;
    if ((row || strcmp(next, "td") == 0) && is_open(c, "td")) c->depth--;
    if (row && is_open(c, "tr")) c->depth--;
}

static const char *check_closing_tag(checker *c, const char *p) {
    char tag[MAX_TAG];
    size_t len = 0;
    for (p += 2; isalnum((unsigned char)*p); p++) {
        assert_true(len + 1 < sizeof tag);
        tag[len++] = *p;
    }
    tag[len] = '\0';
    assert_int_equal(*p, '>');
    if (strcmp(tag, "tbody") == 0) close_implied(c, tag);
    if (c->depth == 0 || strcmp(c->open[c->depth - 1], tag) != 0)
        fail_msg("</%s> closes <%s>", tag, c->depth > 0 ? c->open[c->depth - 1] : "nothing");
    c->depth--;
    return p + 1;
}

static const char *check_opening_tag(checker *c, const char *p) {
    char tag[MAX_TAG];
    size_t len = 0;
    for (p++; isalnum((unsigned char)*p); p++) {
        assert_true(len + 1 < sizeof tag);
        tag[len++] = *p;
    }
    tag[len] = '\0';
    if (len == 0) fail_msg("a bare '<': %.40s", p);
    close_implied(c, tag);
    while (*p == ' ' || *p == '\n') p = check_attribute(p + strspn(p, " \n"));
    c->n_elements++;
    if (p[0] == '/' && p[1] == '>') return p + 2;
    if (*p != '>') fail_msg("<%s> does not end: %.40s", tag, p);
    p++;
    if (is_void(tag)) return p;
    if (strcmp(tag, "script") == 0 || strcmp(tag, "style") == 0) {
        char end[MAX_TAG + 4];
        snprintf(end, sizeof end, "</%s>", tag);
        c->n_scripts += tag[1] == 'c';
        p = strstr(p, end);
        assert_non_null(p);
        return p + strlen(end);
    }
    assert_in_range(c->depth, 0, MAX_DEPTH - 1);
    memcpy(c->open[c->depth++], tag, sizeof tag);
    return p;
}

static size_t check_html(const char *html) {
    checker c = {0};
    static const char doctype[] = "<!DOCTYPE html>\n";
    assert_memory_equal(html, doctype, sizeof doctype - 1);
    for (const char *p = html + sizeof doctype - 1; *p != '\0';) {
        if (p[0] == '<') {
            p = p[1] == '/' ? check_closing_tag(&c, p) : check_opening_tag(&c, p);
        } else {
            if (*p == '&') check_reference(p);
            if (*p == '>') fail_msg("a bare '>': %.40s", p);
            if ((unsigned char)*p < 0x20 && *p != '\n') fail_msg("a control character 0x%02x", (unsigned)*p);
            p++;
        }
    }
    assert_int_equal(c.depth, 0);
    assert_int_equal(c.n_scripts, 2); // the data and our own; no name has opened a third
    assert_null(strstr(html, "http://"));
    assert_null(strstr(html, "https://"));
    assert_null(strstr(html, "@import"));
    assert_null(strstr(html, "//cdn"));
    assert_text_has(html, "<html lang=\"en\">");
    return c.n_elements;
}

static void pages_are_well_formed(void **state) {
    (void)state;
    tide_timeline *samples[] = {sample_small(), sample_hostile_names(), sample_one(), sample_empty(),
                                sample_many(3000, 5)};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        tide_text got = report_of(samples[s], TIDE_REPORT_HTML);
        assert_int_equal(strlen(got.data), got.len);
        assert_in_range(check_html(got.data), 20, 1000000);
        tide_text_deinit(&got);
        sample_destroy(samples[s]);
    }
}

// ---- the data in the page ----

static json_t *data_of(const char *html) {
    static const char begin[] = "<script type=\"application/json\" id=\"tidemark-data\">";
    const char *from = strstr(html, begin);
    assert_non_null(from);
    from += sizeof begin - 1;
    const char *to = strstr(from, "</script>");
    assert_non_null(to);
    json_error_t where;
    json_t *doc = json_loadb(from, (size_t)(to - from), 0, &where);
    if (doc == NULL) fail_msg("data: line %d: %s", where.line, where.text);
    return doc;
}

/// The cell at `column` is the place of `want` in the table of words.
static void check_word(const json_t *doc, const json_t *row, size_t column, const char *want) {
    const json_t *names = json_object_get(doc, "columns"), *worded = json_object_get(doc, "word_columns");
    bool named = false;
    for (size_t i = 0; i < json_array_size(worded); i++)
        named = named || json_equal(json_array_get(worded, i), json_array_get(names, column));
    assert_true(named);
    const json_t *place = json_array_get(row, column);
    assert_true(json_is_integer(place));
    const json_t *word = json_array_get(json_object_get(doc, "words"), (size_t)json_integer_value(place));
    assert_string_equal(json_string_value(word), want);
}

static void the_page_carries_its_data(void **state) {
    (void)state;
    tide_timeline *samples[] = {sample_small(), sample_hostile_names(), sample_empty(), sample_many(50, 3)};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        tide_timeline *tl = samples[s];
        tide_text got = report_of(tl, TIDE_REPORT_HTML);
        assert_text_has(got.data, "{\"schema\":\"tidemark.report.data\",\"version\":1,");
        json_t *doc = data_of(got.data);
        const json_t *columns = json_object_get(doc, "columns"), *rows = json_object_get(doc, "rows");
        assert_string_equal(json_string_value(json_array_get(columns, 5)), "size_bytes");
        assert_string_equal(json_string_value(json_array_get(columns, 7)), "relative_begin");
        assert_int_equal(json_array_size(rows), tl->n_items);
        for (size_t i = 0; i < tl->n_items; i++) {
            const tide_timeline_item *item = &tl->items[i];
            const json_t *row = json_array_get(rows, i);
            assert_int_equal(json_array_size(row), json_array_size(columns));
            assert_int_equal(json_integer_value(json_array_get(row, 0)), item->id);
            assert_int_equal(json_integer_value(json_array_get(row, 5)), item->size_bytes);
            assert_int_equal(json_integer_value(json_array_get(row, 7)), item->begin - tl->begin);
            assert_int_equal(json_integer_value(json_array_get(row, 8)), item->end - tl->begin);
            assert_int_equal(json_integer_value(json_array_get(row, 9)), item->open_ended);
            assert_int_equal(json_integer_value(json_array_get(row, 10)), item->persistent);
            check_word(doc, row, 3, tide_memory_kind_name(item->kind));
            if (tl->axis == TIDE_AXIS_STEPS) check_word(doc, row, 4, tide_role_name(item->role));
            if (s == 0) check_word(doc, row, 2, item->owner);
        }
        json_decref(doc);
        tide_text_deinit(&got);
        sample_destroy(tl);
    }
}

// ---- numbers for people ----

/// The text of the `i`-th cell of the table row that begins at `row`.
static void cell_text(const char *row, int i, char *buf, size_t buf_bytes) {
    const char *p = row;
    for (int k = 0; k <= i; k++) {
        p = strstr(p, "<td>");
        assert_non_null(p);
        p += 4;
    }
    const size_t len = strcspn(p, "<");
    assert_true(len < buf_bytes);
    memcpy(buf, p, len);
    buf[len] = '\0';
}

static void the_table_says_the_timelines_numbers(void **state) {
    (void)state;
    tide_timeline *samples[] = {sample_small(), sample_many(500, 5)};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        tide_timeline *tl = samples[s];
        tide_text got = report_of(tl, TIDE_REPORT_HTML);
        const char *row = strstr(got.data, "<table id=\"items\">");
        assert_non_null(row);
        row = strstr(row, "<tbody>");
        const int64_t zero = tl->axis == TIDE_AXIS_NS ? tl->begin : 0;
        for (size_t i = 0; i < tl->n_items; i++) {
            const tide_timeline_item *item = &tl->items[i];
            char cell[128];
            row = strstr(row, "<tr>");
            assert_non_null(row);
            cell_text(row, 0, cell, sizeof cell);
            assert_string_equal(cell, item->name);
            cell_text(row, 4, cell, sizeof cell);
            assert_int_equal(strtoull(cell, NULL, 10), item->size_bytes);
            cell_text(row, 5, cell, sizeof cell);
            assert_int_equal(strtoll(cell, NULL, 10), item->begin - zero);
            cell_text(row, 6, cell, sizeof cell);
            if (item->open_ended) {
                assert_string_equal(cell, "never freed");
            } else {
                assert_int_equal(strtoll(cell, NULL, 10), item->end - zero);
            }
            row++;
        }
        assert_null(strstr(row, "<tr>"));
        tide_text_deinit(&got);
        sample_destroy(tl);
    }
}

static size_t count(const char *text, const char *needle) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, needle)) != NULL; p++) n++;
    return n;
}

static size_t n_bars(const char *html) { return count(html, "</title></path>"); }

static void the_summary_and_the_kinds(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    assert_text_has(got.data, "<dt>Peak of live bytes</dt><dd>480.00 KiB <small>491520 B, at step 2</small>");
    assert_text_has(got.data, "<dt>Plan</dt><dd>512.00 KiB <small>524288 B</small>");
    assert_text_has(got.data, "<dt>Gap to the bound</dt><dd>6.7 %");
    assert_text_has(got.data, "<dt>Saving</dt><dd>45.3 %");
    // predicted alone: measured is unknown, and so is the difference
    assert_text_has(got.data, "Default</th><td class=\"t\">cpu</td><td>4096</td><td>unknown</td><td>unknown</td>");
    assert_text_has(got.data, "Workspace</th><td class=\"t\">cpu</td><td>524288</td><td>524288</td><td>0</td>");
    assert_int_equal(n_bars(got.data), tl->n_items);
    assert_text_has(got.data, "<title>conv2_out\nby Conv_2\n256.00 KiB\nstep 2 to 4, 2 steps</title>");
    assert_text_has(got.data, "lower bound 480.00 KiB</text>");
    assert_text_has(got.data, "plan 512.00 KiB</text>");
    tide_text_deinit(&got);
    sample_destroy(tl);
}

static void without_a_plan_nothing_is_made_up(void **state) {
    (void)state;
    tide_timeline *tl = sample_many(5, 1);
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    assert_text_has(got.data, "<dt>Plan</dt><dd>unknown <small>no plan</small>");
    assert_text_has(got.data, "<dt>Saving</dt><dd>unknown</dd>");
    assert_null(strstr(got.data, "lower bound "));
    tide_text_deinit(&got);
    sample_destroy(tl);
}

static void pools_are_listed_with_their_members(void **state) {
    (void)state;
    tide_timeline *tl = sample_pools();
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    check_html(got.data);
    assert_text_has(got.data, "<tr><th scope=\"row\">1</th><td>262144</td><td>196608</td><td>3</td>");
    assert_text_has(got.data, "conv0.scratch, conv2_out, add5_out");
    tide_text_deinit(&got);
    sample_pools_destroy(tl);
}

static void many_items_are_cut_to_the_largest_and_it_says_so(void **state) {
    (void)state;
    tide_timeline *tl = sample_many(10500, 3);
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    check_html(got.data);
    assert_text_has(got.data, "The 2000 largest of 10500 lifetimes are drawn; the other 8500 hold");
    assert_text_has(got.data, "The 10000 largest of 10500 are listed");
    assert_int_equal(n_bars(got.data), 2000);
    json_t *doc = data_of(got.data);
    const json_t *rows = json_object_get(doc, "rows");
    assert_int_equal(json_array_size(rows), 10000);
    uint64_t smallest = UINT64_MAX;
    for (size_t i = 0; i < 10000; i++) {
        const uint64_t bytes = (uint64_t)json_integer_value(json_array_get(json_array_get(rows, i), 5));
        if (bytes < smallest) smallest = bytes;
    }
    size_t n_smaller = 0;
    for (size_t i = 0; i < tl->n_items; i++) n_smaller += tl->items[i].size_bytes < smallest;
    assert_in_range(n_smaller, 490, 500); // ties may reach over the edge
    json_decref(doc);
    tide_text_deinit(&got);
    sample_destroy(tl);
}

// ---- the curve ----

/// The relative moves add up: each point of the curve is a corner of the outline, in order, to a tenth of a unit, and
/// the outline ends where it began to fall.
static void the_outline_is_the_curve(void **state) {
    (void)state;
    tide_timeline *tl = sample_many(900, 12); // without a plan: the peak touches the top
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    static const char begin[] = "<path class=\"max\" transform=\"scale(.1)\" d=\"M";
    const char *p = strstr(got.data, begin);
    assert_non_null(p);
    char *end = NULL;
    const long x0 = strtol(p + sizeof begin - 1, &end, 10), y0 = strtol(end, &end, 10);
    assert_int_equal(x0, 10 * TIDE_PLOT_LEFT);
    long x = x0, y = y0, top = y0;
    size_t point_i = 0;
    for (p = end;; p = end) {
        while (point_i < tl->n_points && lround(10.0 * tide_plot_x(tl, tl->curve[point_i].t)) == x) {
            const double height = (double)tl->curve[point_i].bytes / (double)tl->peak_bytes * 2360.0; // 262 - 26 units
            if (lround((double)y0 - height) != y) break;
            point_i++;
        }
        if (*p == 'z') break;
        assert_true(*p == 'h' || *p == 'v');
        *(*p == 'h' ? &x : &y) += strtol(p + 1, &end, 10);
        top = y < top ? y : top;
    }
    assert_int_equal(point_i, tl->n_points);
    assert_int_equal(top, y0 - 2360);
    assert_int_equal(x, 10 * TIDE_PLOT_RIGHT);
    assert_int_equal(y, y0);
    tide_text_deinit(&got);
    sample_destroy(tl);
}

// ---- order of the bars ----

/// Vertical place of the bar whose tooltip begins with `name`.
static double y_of_bar(const char *html, const char *name) {
    char title[128];
    snprintf(title, sizeof title, "\"><title>%s\n", name);
    const char *at = strstr(html, title);
    if (at == NULL) fail_msg("no bar of '%s'", name);
    while (strncmp(at, "<path d=\"M", 10) != 0) at--;
    double x = 0.0, y = 0.0;
    assert_int_equal(sscanf(at, "<path d=\"M%lf %lf", &x, &y), 2);
    return y;
}

static void persistent_bars_come_last(void **state) {
    (void)state;
    tide_timeline *tl = sample_weights();
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    check_html(got.data);
    // By begin: what comes and goes, then weights, input and output, each from above.
    static const char *const order[] = {"conv0_out", "relu1_out", "gemm2_out",    "weights0",
                                        "input",     "weights2",  "probabilities"};
    for (size_t i = 1; i < sizeof order / sizeof order[0]; i++)
        assert_true(y_of_bar(got.data, order[i - 1]) < y_of_bar(got.data, order[i]));
    assert_text_has(got.data, "the 4 that persist (weights, inputs, outputs) come last.");
    assert_int_equal(n_bars(got.data), tl->n_items);
    tide_text_deinit(&got);
    sample_destroy(tl);
}

// ---- the labels of plan and bound ----

static void the_labels_say_what_the_height_is_made_of(void **state) {
    (void)state;
    tide_timeline *tl = sample_weights();
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    assert_text_has(got.data, ">plan 150.00 KiB + 70.00 KiB weights, inputs, outputs</text>");
    assert_text_has(got.data, ">lower bound 144.00 KiB + 70.00 KiB weights, inputs, outputs</text>");
    tide_text_deinit(&got);
    tl->lower_bound_bytes = tl->plan_bytes;
    got = report_of(tl, TIDE_REPORT_HTML);
    assert_text_has(got.data, ">plan = lower bound 150.00 KiB + 70.00 KiB weights, inputs, outputs</text>");
    assert_int_equal(count(got.data, "weights, inputs, outputs</text>"), 1);
    tide_text_deinit(&got);
    sample_destroy(tl);
}

// ---- operators over the bars of a run ----

static void a_run_says_which_operator_ran_when(void **state) {
    (void)state;
    tide_timeline *tl = sample_run_of_steps(3);
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    check_html(got.data);
    assert_text_has(got.data, "<g class=\"ops\">");
    assert_text_has(got.data, "<title>&lt;op&gt;_0\nfrom 0 ns</title>");
    assert_text_has(got.data, "<title>&lt;op&gt;_2\nfrom 20 ms</title>");
    assert_text_has(got.data, "\">&lt;op&gt;_1</text>"); // wide enough for its name
    tide_text_deinit(&got);
    sample_destroy(tl);
    tl = sample_run_of_steps(1001);
    got = report_of(tl, TIDE_REPORT_HTML);
    assert_null(strstr(got.data, "<g class=\"ops\">"));
    assert_text_has(got.data, "1001 operators ran, too many to be named here.");
    tide_text_deinit(&got);
    sample_destroy(tl);
    tl = sample_small(); // the axis of a plan is the operators themselves
    got = report_of(tl, TIDE_REPORT_HTML);
    assert_null(strstr(got.data, "<g class=\"ops\">"));
    tide_text_deinit(&got);
    sample_destroy(tl);
}

// ---- size ----

static void a_thousand_items_stay_below_300_kb(void **state) {
    (void)state;
    tide_timeline *tl = sample_many(1000, 4);
    tide_text got = report_of(tl, TIDE_REPORT_HTML);
    print_message("a page of 1000 blocks: %zu bytes\n", got.len);
    assert_in_range(got.len, 100000, 300000);
    tide_text_deinit(&got);
    sample_destroy(tl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(pages_are_well_formed),
        tide_unit_test(the_page_carries_its_data),
        tide_unit_test(the_table_says_the_timelines_numbers),
        tide_unit_test(the_summary_and_the_kinds),
        tide_unit_test(without_a_plan_nothing_is_made_up),
        tide_unit_test(pools_are_listed_with_their_members),
        tide_unit_test(many_items_are_cut_to_the_largest_and_it_says_so),
        tide_unit_test(the_outline_is_the_curve),
        tide_unit_test(persistent_bars_come_last),
        tide_unit_test(the_labels_say_what_the_height_is_made_of),
        tide_unit_test(a_run_says_which_operator_ran_when),
        tide_unit_test(a_thousand_items_stay_below_300_kb),
    };
    return cmocka_run_group_tests_name("reports_html", tests, NULL, NULL);
}
