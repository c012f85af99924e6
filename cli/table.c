// SPDX-License-Identifier: MIT
//
// See table.h.
#include "cli/table.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/host_alloc.h"

size_t cli_terminal_width(void) {
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    char *end;
    if (columns != NULL) {
        const unsigned long n = strtoul(columns, &end, 10);
        if (end != columns && *end == '\0' && n < 10000) return n;
    }
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void add_clean(tide_text *out, const char *text) {
    char *clean = tide_host_alloc(strlen(text) + 1);
    if (clean == NULL)
        out->failed = true;
    else
        tide_text_add(out, cli_clean(text, clean, strlen(text) + 1));
    tide_host_free(clean);
}

void cli_table_add(const tide_table *t, const char *indent, tide_text *out) {
    const tide_lines_style style = {.begin = indent,
                                    .between = "  ",
                                    .end = "",
                                    .is_padded = true,
                                    .line_width = cli_terminal_width(),
                                    .cut_mark = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "…" : "~",
                                    .escape = add_clean};
    tide_table_lines(t, SIZE_MAX, &style, out);
}

void cli_table_print(const tide_table *t, const char *indent, FILE *to) {
    tide_text text = {0};
    cli_table_add(t, indent, &text);
    fputs(tide_text_str(&text), to);
    if (text.failed) cli_cut(to);
    tide_text_deinit(&text);
}

tide_json_out cli_document_begin(const char *name, tide_text *out) {
    char schema[64];
    tide_json_out j = {.out = out, .indent = true};
    snprintf(schema, sizeof schema, "tidemark.%s", name);
    tide_json_open(&j, NULL, '{');
    tide_json_text(&j, "schema", schema);
    tide_json_u64(&j, "version", 1);
    return j;
}

void cli_document_end(tide_json_out *j) {
    tide_json_close(j, '}');
    tide_text_add(j->out, "\n");
}

int cli_document_print(tide_text *text) {
    const bool failed = text->failed;
    if (failed)
        fputs("error: out of memory: no memory for the JSON document\n", stderr);
    else
        fputs(tide_text_str(text), stdout);
    tide_text_deinit(text);
    return failed ? CLI_EXIT_DOES_NOT_FIT : CLI_EXIT_OK;
}
