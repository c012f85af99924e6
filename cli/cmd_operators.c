// SPDX-License-Identifier: MIT
//
// tidemark operators: what the operator table serves, row by row.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"
#include "core/graph/region.h"
#include "core/ops/ops.h"

static int run(int argc, char **argv);

static const char help[] =
    "  --domain D          those of one domain: ai.onnx, com.microsoft …\n"
    "  --json              print the table as JSON\n"
    "\n"
    "NAME lists the operators of that name alone, exit 1: there is none. Types are those of the\n"
    "first operand, or of the one that is named; \"refused\" is what else ONNX allows.\n";
static const struct option option_table[] = {{"domain", required_argument, NULL, 'd'},
                                             {"json", no_argument, NULL, 'j'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

const cli_command cli_command_operators = {
    "operators", "[OPTION…] [NAME…]", "Which operators are served", help, option_table, CLI_OPERANDS_WORDS, run};

// ---- one row ----

static const tide_op_def *def_of(const void *row) { return *(const tide_op_def *const *)row; }

/// "ai.onnx" is how people write the standard domain.
static const char *domain_of(const tide_op_def *def) { return def->domain[0] != '\0' ? def->domain : "ai.onnx"; }

static void get_domain(const void *row, tide_cell *out) { tide_cell_text(out, domain_of(def_of(row))); }
static void get_name(const void *row, tide_cell *out) { tide_cell_text(out, def_of(row)->name); }
static void get_since(const void *row, tide_cell *out) { tide_cell_count(out, (uint64_t)def_of(row)->since); }
static void get_until(const void *row, tide_cell *out) {
    if (def_of(row)->until != 0) tide_cell_count(out, (uint64_t)def_of(row)->until);
}
static void get_opset(const void *row, tide_cell *out) {
    const tide_op_def *def = def_of(row);
    if (def->until == 0)
        snprintf(out->buf, sizeof out->buf, "%d and later", def->since);
    else
        snprintf(out->buf, sizeof out->buf, "%d to %d", def->since, def->until);
    tide_cell_text(out, out->buf);
}
static void get_typed_input(const void *row, tide_cell *out) {
    const tide_op_note *note = tide_op_note_of(def_of(row));
    if (note != NULL) tide_cell_count(out, note->typed_input);
}

static void add_word(tide_cell *out, const char *word) {
    const size_t len = strlen(out->buf);
    snprintf(out->buf + len, sizeof out->buf - len, "%s%s", len > 0 ? ", " : "", word);
}

static void add_types(tide_cell *out, uint32_t types) {
    for (int t = 0; t < 32; t++)
        if ((types >> t & 1u) != 0) add_word(out, tide_dtype_name((tide_dtype)t));
}

static void get_types(const void *row, tide_cell *out) {
    const tide_op_note *note = tide_op_note_of(def_of(row));
    out->buf[0] = '\0';
    add_types(out, note != NULL ? tide_op_types_served(note) : 0);
    tide_cell_text(out, out->buf);
}

#define FLOATS (1u << TIDE_F32 | 1u << TIDE_F64 | 1u << TIDE_F16 | 1u << TIDE_BF16)
#define UNSIGNED (1u << TIDE_U8 | 1u << TIDE_U16 | 1u << TIDE_U32 | 1u << TIDE_U64)
#define INTEGERS (1u << TIDE_I8 | 1u << TIDE_I16 | 1u << TIDE_I32 | 1u << TIDE_I64 | UNSIGNED)

/// Types that people know by one word are told by it, the largest group first.
static void get_type_words(const void *row, tide_cell *out) {
    static const struct {
        const char *word;
        uint32_t types;
    } groups[] = {{"any", FLOATS | INTEGERS | 1u << TIDE_BOOL},
                  {"floats", FLOATS},
                  {"integers", INTEGERS},
                  {"unsigned", UNSIGNED}};
    const tide_op_note *note = tide_op_note_of(def_of(row));
    uint32_t left = note != NULL ? tide_op_types_served(note) : 0;
    out->buf[0] = '\0';
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        if ((left & groups[g].types) != groups[g].types) continue;
        left &= ~groups[g].types;
        add_word(out, groups[g].word);
    }
    add_types(out, left);
    const size_t len = strlen(out->buf);
    if (note != NULL && note->typed_input > 0)
        snprintf(out->buf + len, sizeof out->buf - len, " of input %zu", note->typed_input);
    tide_cell_text(out, out->buf);
}

static void get_refused(const void *row, tide_cell *out) {
    const tide_op_note *note = tide_op_note_of(def_of(row));
    if (note != NULL && note->refused != NULL) tide_cell_text(out, note->refused);
}
static void get_runs(const void *row, tide_cell *out) {
    out->known = true;
    out->u = (def_of(row)->flags & TIDE_OP_PLAN_ONLY) == 0;
}

static const tide_column columns[] = {
    {"domain", "domain", TIDE_UNIT_TEXT, .get = get_domain},
    {"name", "operator", TIDE_UNIT_TEXT, .get = get_name},
    {"since", NULL, TIDE_UNIT_COUNT, .get = get_since},
    {"until", NULL, TIDE_UNIT_COUNT, .get = get_until},
    {NULL, "opset", TIDE_UNIT_TEXT, .get = get_opset},
    {"types", NULL, TIDE_UNIT_WORDS, .get = get_types},
    {"typed_input", NULL, TIDE_UNIT_COUNT, .get = get_typed_input},
    {NULL, "types", TIDE_UNIT_TEXT, .get = get_type_words},
    {"refused", "refused", TIDE_UNIT_TEXT, .get = get_refused},
    {"runs", NULL, TIDE_UNIT_FLAG, .get = get_runs},
};

// ---- the list ----

static int by_name(const void *a, const void *b) {
    const tide_op_def *x = *(const tide_op_def *const *)a, *y = *(const tide_op_def *const *)b;
    int order = strcmp(x->domain, y->domain);
    if (order == 0) order = strcmp(x->name, y->name);
    return order != 0 ? order : x->since - y->since;
}

typedef struct wish {
    const char *domain; ///< NULL: all
    char **names;       ///< [n_names]; none: all
    int n_names;
    bool as_json;
} wish;

static bool is_wanted(const wish *w, const tide_op_def *def) {
    if (w->domain != NULL && strcmp(w->domain, domain_of(def)) != 0) return false;
    for (int i = 0; i < w->n_names; i++)
        if (strcmp(w->names[i], def->name) == 0) return true;
    return w->n_names == 0;
}

static int show(const tide_op_def **rows, size_t n, bool as_json) {
    const tide_table t = {
        .name = "operators", TIDE_COLUMNS(columns), .n_rows = n, .rows = rows, .row_bytes = sizeof *rows};
    if (!as_json) {
        cli_table_print(&t, "", stdout);
        return CLI_EXIT_OK;
    }
    tide_text text = {0};
    tide_json_out j = cli_document_begin("operators", &text);
    tide_table_json(&t, true, &j);
    cli_document_end(&j);
    return cli_document_print(&text);
}

static int list(const wish *w) {
    const tide_op_def *const *table;
    const size_t n_table = tide_op_table(&table);
    const tide_op_def **rows = tide_host_calloc(n_table + 1, sizeof *rows);
    if (rows == NULL) {
        fputs("error: out of memory: no memory for the table\n", stderr);
        return CLI_EXIT_DOES_NOT_FIT;
    }
    size_t n = 0;
    for (size_t i = 0; i < n_table; i++)
        if (is_wanted(w, table[i]) && strcmp(table[i]->domain, TIDE_REGION_DOMAIN) != 0) rows[n++] = table[i];
    qsort(rows, n, sizeof *rows, by_name);
    const int code = n > 0 ? show(rows, n, w->as_json) : CLI_EXIT_CHECK_FAILED;
    tide_host_free(rows);
    if (n == 0) fputs("error: no operator of that name or domain is served\n", stderr);
    return code;
}

static int run(int argc, char **argv) {
    wish w = {0};
    int c;
    while ((c = cli_next_option(&cli_command_operators, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c == 'd')
            w.domain = optarg;
        else if (c == 'j')
            w.as_json = true;
        else
            return CLI_EXIT_USAGE;
    }
    w.names = argv + optind;
    w.n_names = argc - optind;
    return list(&w);
}
