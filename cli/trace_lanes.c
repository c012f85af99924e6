// SPDX-License-Identifier: MIT
//
// Processes of a trace side by side. See trace_view.h.
#include <stdio.h>

#include "analysis/lanes.h"
#include "cli/table.h"
#include "cli/trace_view.h"

static int print_json(const tide_lanes *l, const cli_trace_options *o) {
    tide_text text = {0};
    const tide_table lanes = tide_table_of_lanes(l), causes = tide_table_of_lane_causes(l);
    tide_json_out j = cli_document_begin("trace_lanes", &text);
    tide_json_text(&j, "file", o->path);
    tide_json_text(&j, "outlier", l->outlier != SIZE_MAX ? l->rows[l->outlier].lane->name : NULL);
    tide_table_json(&lanes, true, &j);
    tide_table_json(&causes, true, &j);
    cli_document_end(&j);
    return cli_document_print(&text);
}

static void print(const tide_lanes *l) {
    char clean[512];
    tide_text say = {0};
    tide_table lanes = tide_table_of_lanes(l), causes = tide_table_of_lane_causes(l);
    tide_lanes_say(l, &say);
    if (say.failed)
        cli_cut(stdout);
    else if (say.len > 0)
        printf("%s\n\n", cli_clean(tide_text_str(&say), clean, sizeof clean));
    else
        printf("%s\n\n",
               l->trace.n == 1 ? "one process: there is none to hold it against" : "no lane differs from the others");
    tide_text_deinit(&say);
    tide_table_hide_unknown(&lanes);
    cli_table_print(&lanes, "  ", stdout);
    if (l->n_causes == 0) return;
    putchar('\n');
    cli_table_print(&causes, "  ", stdout);
}

int cli_trace_lanes(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lanes l;
    if (tide_lanes_make(t, &l, &err) != TIDE_OK) return cli_fail(&err);
    int code = CLI_EXIT_OK;
    if (o->json)
        code = print_json(&l, o);
    else
        print(&l);
    tide_lanes_deinit(&l);
    return code;
}
