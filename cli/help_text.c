// SPDX-License-Identifier: MIT
//
// The help of a command, read by program. See help_text.h.
#include "cli/help_text.h"

#include <ctype.h>
#include <string.h>

enum { TEXT_COLUMN = 22, ROW_COLUMN = 24 };

char cli_option_letter(const struct option *option) {
    return option->val == 'n' || option->val == 'o' || option->val == 'v' ? (char)option->val : '\0';
}

static int spaces_at(const char *line, int len) {
    int n = 0;
    while (n < len && line[n] == ' ') n++;
    return n;
}

/// Where the text behind `head` begins: after two spaces, or in the column of all texts. @return `len`: there is none
static int text_behind(const char *line, int len, int from) {
    for (int i = from; i + 1 < len; i++) {
        if (line[i] == ' ' && line[i + 1] == ' ') return i + spaces_at(line + i, len - i);
    }
    // A list of options may have its words there by chance.
    const bool is_list = memchr(line, ',', (size_t)(len < TEXT_COLUMN ? len : TEXT_COLUMN)) != NULL;
    return !is_list && from < TEXT_COLUMN && len > TEXT_COLUMN && line[TEXT_COLUMN - 1] == ' ' ? TEXT_COLUMN : len;
}

static void split(const char *line, int len, int from, cli_help_line *out) {
    const int text = text_behind(line, len, from);
    int end = text;
    while (end > from && line[end - 1] == ' ') end--;
    out->head = line + from;
    out->n_head = end - from;
    out->text = line + text;
    out->n_text = len - text;
}

bool cli_help_next(const char **at, cli_help_line *out) {
    static const char example[] = "Example: ";
    const char *line = *at;
    if (*line == '\0') return false;
    const int len = (int)strcspn(line, "\n"), indent = spaces_at(line, len);
    *at = line + len + (line[len] == '\n');
    *out = (cli_help_line){.kind = CLI_HELP_PARAGRAPH, .head = line, .text = line + indent, .n_text = len - indent};
    if (len == indent) {
        out->kind = CLI_HELP_BLANK;
    } else if (indent == 2 && line[2] == '-') {
        out->kind = CLI_HELP_OPTION;
        split(line, len, 2, out);
    } else if (indent == ROW_COLUMN) {
        out->kind = CLI_HELP_ROW;
        split(line, len, ROW_COLUMN, out);
    } else if (indent >= TEXT_COLUMN) {
        out->kind = indent > ROW_COLUMN ? CLI_HELP_ROW_TEXT : CLI_HELP_TEXT;
    } else if (strncmp(line, example, sizeof example - 1) == 0 || indent == (int)sizeof example - 1) {
        out->kind = CLI_HELP_EXAMPLE;
        out->text = line + sizeof example - 1;
        out->n_text = len - (int)sizeof example + 1;
    } else if (strncmp(line, "Exit", 4) == 0) {
        out->kind = CLI_HELP_EXIT;
    }
    return true;
}

/// Behind `name` in `head` ("-o", "--shape"); NULL: it is not there.
static const char *behind_name(const cli_help_line *line, const char *name) {
    const int n = (int)strlen(name);
    for (int i = 0; i + n <= line->n_head; i++) {
        const char *const at = line->head + i;
        if (strncmp(at, name, (size_t)n) != 0 || (i > 0 && at[-1] != ' ')) continue;
        if (i + n == line->n_head || (at[n] != '-' && !isalnum((unsigned char)at[n]))) return at + n;
    }
    return NULL;
}

/// " FILE", "[=troff]", ", --next": what the value is called.
static void take_value(const cli_help_line *line, const char *at, cli_help_option *out) {
    const char *const end = line->head + line->n_head;
    out->value = at;
    out->n_value = 0;
    if (at < end && (*at == '[' || *at == '='))
        at += strspn(at, "[=");
    else if (at < end && *at == ' ' && at + 1 < end && at[1] != '-' && at[1] != '(')
        at++;
    else
        return;
    out->value = at;
    while (at < end && *at != ' ' && *at != ']') at++;
    if (at > out->value && at[-1] == ',') at--;
    out->n_value = (int)(at - out->value);
}

/// @return whether the sentence goes on with the next line
static bool add_brief(const cli_help_line *line, cli_help_option *out) {
    size_t n = strlen(out->brief);
    if (n > 0 && n + 1 < sizeof out->brief) out->brief[n++] = ' ';
    for (int i = 0; i < line->n_text && n + 1 < sizeof out->brief; i++) {
        const char c = line->text[i];
        const bool ends_word = i + 1 == line->n_text || line->text[i + 1] == ' ';
        if ((strchr(":;.", c) != NULL && ends_word) || (c == '(' && i > 0)) {
            while (n > 0 && out->brief[n - 1] == ' ') n--;
            out->brief[n] = '\0';
            return false;
        }
        out->brief[n++] = c;
    }
    // Cut at a word where the sentence is too long.
    if (n + 1 == sizeof out->brief)
        while (n > 0 && out->brief[n - 1] != ' ') n--;
    while (n > 0 && out->brief[n - 1] == ' ') n--;
    out->brief[n] = '\0';
    return n + 2 < sizeof out->brief;
}

/// Lines of options without a text belong to the text that comes next.
static void take_brief(const char *at, cli_help_line line, cli_help_option *out) {
    bool goes_on = true;
    while (line.kind == CLI_HELP_OPTION && line.n_text == 0 && cli_help_next(&at, &line)) continue;
    while (goes_on && (line.kind == CLI_HELP_OPTION || line.kind == CLI_HELP_TEXT)) {
        goes_on = add_brief(&line, out) && cli_help_next(&at, &line) && line.kind == CLI_HELP_TEXT;
    }
}

bool cli_help_find(const cli_command *cmd, const struct option *option, cli_help_option *out) {
    char name[64];
    const char letter[] = {'-', cli_option_letter(option), '\0'};
    snprintf(name, sizeof name, "--%s", option->name);
    *out = (cli_help_option){.value = ""};
    cli_help_line line;
    for (const char *at = cmd->help; cli_help_next(&at, &line);) {
        if (line.kind != CLI_HELP_OPTION) continue;
        const char *behind = behind_name(&line, name);
        if (behind == NULL && letter[1] != '\0') behind = behind_name(&line, letter);
        if (behind == NULL) continue;
        take_value(&line, behind, out);
        // "-v, --verbose": the value stands behind the last of the two.
        if (option->has_arg == no_argument) out->n_value = 0;
        take_brief(at, line, out);
        return true;
    }
    return false;
}
