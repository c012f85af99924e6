// SPDX-License-Identifier: MIT
//
// Which writer, by the ending of the path. See reports.h.
#include "reports/render.h"

#include <string.h>
#include <strings.h>

#include "core/base/host_alloc.h"

tide_status tide_report_format_of_path(const char *path, tide_report_format *out, tide_error *err) {
    static const struct {
        const char *ending;
        tide_report_format format;
    } known[] = {
#define XX(name, ending, what) {ending, TIDE_REPORT_##name},
        TIDE_REPORT_FORMAT_MAP(XX)
#undef XX
            {".htm", TIDE_REPORT_HTML},
        {".markdown", TIDE_REPORT_MARKDOWN},
    };
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp(dot, known[i].ending) != 0) continue;
        *out = known[i].format;
        return TIDE_OK;
    }
    TIDE_FAIL(err, TIDE_ERR_INVALID, "no report format ends like '%.200s'", name);
    tide_error_hint(err, "endings are .html .csv .json .md .svg .txt");
    return TIDE_ERR_INVALID;
}

/// One table: "items", "kinds", …; of the second input with "b." in front.
static tide_status render_csv(const tide_report *r, tide_text *out, tide_error *err) {
    const char *want = r->opt.table != NULL ? r->opt.table : r->has_b ? "change_by_item" : "items";
    tide_report_table tables[TIDE_REPORT_MAX_TABLES];
    const size_t n = tide_report_tables(r, tables);
    const bool of_b = strncmp(want, "b.", 2) == 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tables[i].table.name, of_b ? want + 2 : want) != 0 || (strcmp(tables[i].of, "b") == 0) != of_b)
            continue;
        tide_table_csv(&tables[i].table, r->opt.exact_names ? TIDE_CSV_EXACT : TIDE_CSV_GUARDED, out);
        return TIDE_OK;
    }
    TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the report has no table '%.64s'", want);
    tide_text names = {0};
    for (size_t i = 0; i < n; i++)
        tide_text_addf(&names, "%s%s%s", i > 0 ? ", " : "", strcmp(tables[i].of, "b") == 0 ? "b." : "",
                       tables[i].table.name);
    tide_error_hint(err, "there are %s", tide_text_str(&names));
    tide_text_deinit(&names);
    return TIDE_ERR_NOT_FOUND;
}

tide_status tide_report_render(tide_subject *a, tide_subject *b, const tide_report_options *opt,
                               tide_report_format format, tide_text *out, tide_error *err) {
    tide_report r;
    TIDE_TRY(tide_report_gather(a, b, opt, &r, err));
    tide_status st = TIDE_OK;
    switch (format) {
    case TIDE_REPORT_HTML:
        tide_report_html(&r, out);
        break;
    case TIDE_REPORT_CSV:
        st = render_csv(&r, out, err);
        break;
    case TIDE_REPORT_JSON:
        tide_report_json(&r, out);
        break;
    case TIDE_REPORT_MARKDOWN:
    case TIDE_REPORT_TEXT:
        tide_report_words(&r, format == TIDE_REPORT_MARKDOWN, out);
        break;
    case TIDE_REPORT_SVG:
        tide_report_svg(&r, out);
        break;
    case TIDE_N_REPORT_FORMATS:
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "no such report format");
        break;
    }
    if (st == TIDE_OK && out->failed) st = TIDE_NO_MEMORY(err, "for the report");
    tide_report_deinit(&r);
    return st;
}

void tide_report_script(tide_text *out) { tide_text_add(out, tide_report_page_script); }
void tide_report_style(tide_text *out) { tide_text_add(out, tide_report_page_style); }
void tide_report_sorting(tide_text *out) { tide_text_add(out, tide_report_sort_script); }
