// SPDX-License-Identifier: MIT
//
// Which writer, and what holds for all of them. See reports.h.
#include "reports/render.h"

#include <locale.h>
#include <string.h>
#include <strings.h>

#include "reports/reports.h"

tide_status tide_report_format_of_path(const char *path, tide_report_format *out, tide_error *err) {
    static const struct {
        const char *ending;
        tide_report_format format;
    } endings[] = {{".html", TIDE_REPORT_HTML},
                   {".htm", TIDE_REPORT_HTML},
                   {".csv", TIDE_REPORT_CSV},
                   {".json", TIDE_REPORT_JSON}};
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name != NULL ? name : path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof endings[0]; i++) {
        if (strcasecmp(dot, endings[i].ending) != 0) continue;
        *out = endings[i].format;
        return TIDE_OK;
    }
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "no report format for '%s'", path);
    tide_error_hint(err, "end the name with .html, .htm, .csv or .json");
    return st;
}

static tide_status render(const tide_timeline *tl, tide_report_format format, tide_text *out, tide_error *err) {
    switch (format) {
    case TIDE_REPORT_HTML:
        return tide_report_html(tl, out, err);
    case TIDE_REPORT_CSV:
        return tide_report_csv(tl, out, err);
    case TIDE_REPORT_JSON:
        return tide_report_json(tl, out, err);
    }
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "report format %d does not exist", (int)format);
}

tide_status tide_report_render(const tide_timeline *tl, tide_report_format format, tide_text *out, tide_error *err) {
    // Numbers have a point in every country: the same input gives the same bytes.
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the report's locale");
    const locale_t before = uselocale(c);
    tide_status st = render(tl, format, out, err);
    uselocale(before);
    freelocale(c);
    if (st == TIDE_OK && out->failed)
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a report of %zu items (%zu bytes so far)", tl->n_items,
                       out->len);
    return st;
}
