// SPDX-License-Identifier: MIT
//
// Pages of the manual in the man macros of roff. See manual.h.
#include "cli/manual.h"

#include <ctype.h>
#include <string.h>

#include "cli/help_text.h"
#include "core/base/assert.h"
#include "core/base/utf8.h"
#include "tidemark/version.h"
#include "tui/tui.h"

extern const char tide_everyday[]; // docs/everyday.md

// ---- text ----

/// One character as roff shows it. A hyphen of an option is not the one that a line may be broken at.
static const char *add_character(tide_text *out, const char *at) {
    uint32_t cp;
    const size_t n = tide_utf8_decode(at, &cp);
    if (cp == 0x2026) // groff's terminals of ASCII do not know the ellipsis
        tide_text_add(out, "...");
    else if (cp >= 0x80)
        tide_text_addf(out, "\\[u%04X]", cp);
    else if (cp == '\\')
        tide_text_add(out, "\\(rs");
    else if (cp == '-')
        tide_text_add(out, "\\-");
    else if (cp == '^')
        tide_text_add(out, "\\(ha");
    else if (cp == '~')
        tide_text_add(out, "\\(ti");
    else if (cp == '\'')
        tide_text_add(out, "\\(aq");
    else
        tide_text_add_n(out, at, n);
    return at + n;
}

enum { LINE_LENGTH = 76 };

/// Up to the next space, with room for what roff wants in front of some letters.
static size_t word_length(const char *text, const char *end) {
    size_t n = 0;
    for (; text < end && *text != ' '; text++) n += *text == '-' || *text == '\'' ? 3 : *text == '`' ? 3 : 1;
    return n;
}

static bool is_of_option(char c) { return isalnum((unsigned char)c) || c == '-'; }

/// Running text, in lines of a length that a person can read: options and what stands in `` are bold. A line that would
/// be a request of roff gets an empty character in front.
static void add_text(tide_text *out, const char *text, size_t n) {
    const char *const begin = text, *const end = text + n;
    size_t line = out->len; // where it begins
    bool is_typed = false;
    if (n > 0 && (*text == '.' || *text == '\'')) tide_text_add(out, "\\&");
    while (text < end) {
        if (*text == ' ' && text > begin && out->len - line + word_length(text + 1, end) > LINE_LENGTH) {
            text += strspn(text, " ");
            tide_text_add(out, text < end && (*text == '.' || *text == '\'') ? "\n\\&" : "\n");
            line = out->len;
            continue;
        }
        if (*text == '`') {
            is_typed = !is_typed;
            tide_text_add(out, is_typed ? "\\fB" : "\\fR");
            text++;
            continue;
        }
        const bool begins = !is_typed && *text == '-' && (text == begin || strchr(" (", text[-1]) != NULL) &&
                            text + 1 < end && (text[1] == '-' || isalpha((unsigned char)text[1]));
        if (begins) {
            tide_text_add(out, "\\fB");
            while (text < end && is_of_option(*text)) text = add_character(out, text);
            tide_text_add(out, "\\fR");
            continue;
        }
        text = add_character(out, text);
    }
    if (is_typed) tide_text_add(out, "\\fR");
}

/// Options are bold; a word with a capital letter stands for something and is italic.
static void add_form(tide_text *out, const char *text, size_t n) {
    const char *const end = text + n;
    while (text < end) {
        size_t len = strcspn(text, " =[],");
        if (text + len > end) len = (size_t)(end - text);
        bool stands_for = false;
        for (size_t i = 0; i < len; i++) stands_for |= isupper((unsigned char)text[i]) != 0;
        const char *const stop = text + len;
        if (len > 0)
            tide_text_add(out, *text == '-' || (!stands_for && len > 2) ? "\\fB" : stands_for ? "\\fI" : "\\fR");
        while (text < stop) text = add_character(out, text);
        if (len > 0) tide_text_add(out, "\\fR");
        if (text < end) tide_text_add_n(out, text++, 1);
    }
}

static void add_paragraphs(tide_text *out, const char *text) {
    while (*text != '\0') {
        const char *const gap = strstr(text, "\n\n");
        const size_t n = gap != NULL ? (size_t)(gap - text) : strlen(text);
        add_text(out, text, n);
        tide_text_add(out, "\n");
        if (gap != NULL) tide_text_add(out, ".PP\n");
        text += n + (gap != NULL ? 2 : 0);
    }
}

static void add_line(tide_text *out, const char *text, size_t n) {
    add_text(out, text, n);
    tide_text_add(out, "\n");
}

// ---- options ----

typedef struct writer {
    tide_text *out;
    cli_help_kind before; ///< of the last line
    bool has_open_tag;    ///< options whose text is still to come
} writer;

static void close_tag(writer *w) {
    if (w->has_open_tag) tide_text_add(w->out, "\n");
    w->has_open_tag = false;
}

static bool is_of_row(cli_help_kind kind) { return kind == CLI_HELP_ROW || kind == CLI_HELP_ROW_TEXT; }

static void write_option(writer *w, const cli_help_line *line) {
    tide_text_add(w->out, w->has_open_tag ? " " : ".TP\n");
    add_form(w->out, line->head, (size_t)line->n_head);
    w->has_open_tag = true;
    if (line->n_text == 0) return;
    close_tag(w);
    add_line(w->out, line->text, (size_t)line->n_text);
}

static void write_row(writer *w, const cli_help_line *line) {
    tide_text_add(w->out, ".TP\n\\fB");
    add_text(w->out, line->head, (size_t)line->n_head);
    tide_text_add(w->out, "\\fR\n");
    add_line(w->out, line->text, (size_t)line->n_text);
}

/// A line of the help that stands in the section of options.
static void write_line(writer *w, const cli_help_line *line) {
    if (is_of_row(w->before) && !is_of_row(line->kind)) tide_text_add(w->out, ".RE\n");
    if (line->kind != CLI_HELP_OPTION) close_tag(w);
    switch (line->kind) {
    case CLI_HELP_OPTION:
        write_option(w, line);
        break;
    case CLI_HELP_ROW:
        if (!is_of_row(w->before)) tide_text_add(w->out, ".RS\n");
        write_row(w, line);
        break;
    case CLI_HELP_TEXT:
        if (is_of_row(w->before)) tide_text_add(w->out, ".IP\n");
        add_line(w->out, line->text, (size_t)line->n_text);
        break;
    case CLI_HELP_PARAGRAPH:
        if (w->before != CLI_HELP_PARAGRAPH) tide_text_add(w->out, ".PP\n");
        add_line(w->out, line->text, (size_t)line->n_text);
        break;
    case CLI_HELP_ROW_TEXT:
        add_line(w->out, line->text, (size_t)line->n_text);
        break;
    case CLI_HELP_EXIT:
    case CLI_HELP_EXAMPLE:
    case CLI_HELP_BLANK:
        break;
    }
    w->before = line->kind;
}

/// Whether the line is of a paragraph about exit codes, which has a section of its own.
static bool is_of_exit(const cli_help_line *line, bool *is_in_exit) {
    if (line->kind == CLI_HELP_EXIT) *is_in_exit = true;
    if (line->kind != CLI_HELP_EXIT && line->kind != CLI_HELP_PARAGRAPH) *is_in_exit = false;
    return *is_in_exit;
}

static void add_options(const cli_command *cmd, tide_text *out) {
    writer w = {.out = out, .before = CLI_HELP_BLANK};
    cli_help_line line;
    bool is_in_exit = false;
    tide_text_add(out, ".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nthe options in short\n");
    for (const char *at = cmd->help; cli_help_next(&at, &line);)
        if (!is_of_exit(&line, &is_in_exit)) write_line(&w, &line);
    close_tag(&w);
}

// ---- sections ----

static void add_heading(tide_text *out, const char *title) { tide_text_addf(out, ".SH \"%s\"\n", title); }

static void add_exit_status(const cli_command *cmd, tide_text *out) {
    add_heading(out, "EXIT STATUS");
    cli_help_line line;
    bool is_in_exit = false, has_own = false;
    for (const char *at = cmd != NULL ? cmd->help : ""; cli_help_next(&at, &line);) {
        if (!is_of_exit(&line, &is_in_exit)) continue;
        add_line(out, line.text, (size_t)line.n_text);
        has_own = true;
    }
    if (has_own) tide_text_add(out, ".PP\n");
    tide_text_add(out, "In every command:\n");
    for (const cli_exit_meaning *e = cli_exit_meanings; e->text != NULL; e++) {
        tide_text_addf(out, ".TP\n.B %d\n", e->code);
        add_line(out, e->text, strlen(e->text));
    }
}

/// Whether `word` is one of `words`, which have spaces between them.
static bool is_among(const char *word, const char *words) {
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
    return false;
}

static void add_names(const char *title, const cli_about_name *names, const cli_command *cmd, tide_text *out) {
    bool has_title = false;
    for (; names->name != NULL; names++) {
        if (cmd != NULL && names->commands != NULL && !is_among(cmd->name, names->commands)) continue;
        if (!has_title) add_heading(out, title);
        has_title = true;
        tide_text_add(out, ".TP\n.B ");
        add_text(out, names->name, strlen(names->name));
        tide_text_add(out, "\n");
        add_line(out, names->text, strlen(names->text));
    }
}

/// The first one of a section needs no space above.
static void add_command_line(const char *text, size_t n, tide_text *out) {
    tide_text_add(out, out->len > 0 ? ".PP\n.nf\n\\fB" : ".nf\n\\fB");
    for (const char *at = text; at < text + n;) at = add_character(out, at);
    tide_text_add(out, "\\fR\n.fi\n");
}

/// The lines of docs/everyday.md that begin with "    tidemark NAME ", each with what it says of itself.
static void add_everyday(const char *name, tide_text *out) {
    char begin[64];
    snprintf(begin, sizeof begin, "    tidemark %s ", name);
    for (const char *line = tide_everyday; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, begin, strlen(begin)) != 0) continue;
        const char *const text = line + 4, *const gap = strstr(text, "  ");
        const size_t len = strcspn(text, "\n");
        const bool has_words = gap != NULL && gap < text + len;
        const size_t n = has_words ? (size_t)(gap - text) : len;
        add_command_line(text, n, out);
        if (!has_words) continue;
        const size_t skip = n + strspn(gap, " ");
        tide_text_add(out, ".RS 4\n");
        add_line(out, text + skip, len - skip);
        tide_text_add(out, ".RE\n");
    }
}

static void add_examples(const cli_command *cmd, tide_text *out) {
    cli_help_line line;
    tide_text own = {0};
    for (const char *at = cmd->help; cli_help_next(&at, &line);)
        if (line.kind == CLI_HELP_EXAMPLE) add_command_line(line.text, (size_t)line.n_text, &own);
    add_everyday(cmd->name, &own);
    if (own.failed) out->failed = true;
    if (own.len > 0) {
        add_heading(out, "EXAMPLES");
        tide_text_add(out, tide_text_str(&own));
    }
    tide_text_deinit(&own);
}

static void add_see_also(const cli_about *about, tide_text *out) {
    add_heading(out, "SEE ALSO");
    if (about->command[0] != '\0') tide_text_add(out, ".BR tidemark (1),\n");
    for (const char *at = about->see_also; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        tide_text_addf(out, ".BR tidemark\\-%.*s (1)%s\n", (int)n, at, at[n] != '\0' ? "," : "");
        at += n + (at[n] == ' ');
    }
}

// ---- pages ----

static void add_head(const char *name, const char *what, tide_text *out) {
    tide_text upper = {0};
    for (const char *c = name; *c != '\0'; c++) {
        const char big = (char)toupper((unsigned char)*c);
        tide_text_add_n(&upper, &big, 1);
    }
    tide_text_add(out, ".\\\" Written by `tidemark help --format man`.\n.TH ");
    add_text(out, tide_text_str(&upper), upper.len);
    if (upper.failed) out->failed = true;
    tide_text_deinit(&upper);
    tide_text_add(out, " 1 \"\" \"tidemark " TIDE_VERSION "\" \"User Commands\"\n");
    // Lines end where they do: lists of settings are words too long to stretch the spaces beside them.
    tide_text_add(out, ".ad l\n.SH NAME\n");
    add_text(out, name, strlen(name));
    // "Plan the memory": the phrase of the list of commands as the manual has it.
    tide_text_addf(out, " \\- %c", tolower((unsigned char)what[0]));
    for (what++; *what != '\0';) what = add_character(out, what);
    tide_text_add(out, "\n");
}

static void add_program_page(tide_text *out) {
    const cli_about *about = cli_about_find("");
    add_head("tidemark", "Plan a tensor program's memory, run it, and see where every byte went", out);
    tide_text_add(out, ".SH SYNOPSIS\n\\fBtidemark\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] \\fIFILE\\fR...\n.br\n"
                       "\\fBtidemark\\fR \\fB\\-\\-version\\fR [\\fB\\-\\-json\\fR]\n.SH DESCRIPTION\n");
    add_paragraphs(out, about->text);
    tide_text_add(out, ".SH COMMANDS\n");
    for (const cli_command *const *cmd = cli_commands; *cmd != NULL; cmd++) {
        if (cli_command_is_internal(*cmd)) continue;
        tide_text_addf(out, ".TP\n.BR tidemark\\-%s (1)\n", (*cmd)->name);
        add_line(out, (*cmd)->what, strlen((*cmd)->what));
    }
    tide_text_add(
        out, ".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nthe list of commands\n.TP\n"
             "\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nthe version; with \\fB\\-\\-json\\fR also those of all formats\n");
}

void cli_manual_page(const cli_command *cmd, tide_text *out) {
    const cli_about *about = cli_about_find(cmd != NULL ? cmd->name : "");
    TIDE_ASSERT(about != NULL); // of every command (tests/cli/test_help_text.c)
    if (cmd == NULL) {
        add_program_page(out);
    } else {
        char name[64];
        snprintf(name, sizeof name, "tidemark-%s", cmd->name);
        add_head(name, cmd->what, out);
        tide_text_addf(out, ".SH SYNOPSIS\n\\fBtidemark %s\\fR ", cmd->name);
        add_form(out, cmd->args, strlen(cmd->args));
        tide_text_add(out, "\n.SH DESCRIPTION\n");
        add_paragraphs(out, about->text);
        add_options(cmd, out);
    }
    if (cmd == &cli_command_tui) {
        add_heading(out, "KEYS");
        tide_tui_print_keys(true, out);
    }
    add_exit_status(cmd, out);
    add_names("ENVIRONMENT", cli_about_variables, cmd, out);
    add_names("FILES", cli_about_files, cmd, out);
    if (cmd != NULL) add_examples(cmd, out);
    add_see_also(about, out);
}
