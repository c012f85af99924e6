// SPDX-License-Identifier: MIT
//
// Completion for shells: a function in the language of each, and a table of all commands, options and values in its
// form.
#include "cli/completion.h"

#include <string.h>

#include "cli/option_values.h"

extern const char tide_completion_bash[], tide_completion_zsh[], tide_completion_fish[]; // cli/completion.*

/// An option of a command as a shell is told of it.
typedef struct entry {
    const cli_command *cmd;
    const struct option *option;
    char letter; ///< '\0': none
    cli_help_option help;
    cli_value_kind kind;
    tide_text words;
} entry;

/// Calls `write` with every option that the help names, of one command.
static void each_option(const cli_command *cmd, void (*write)(const entry *e, tide_text *out), tide_text *out) {
    for (const struct option *o = cmd->options; o->name != NULL; o++) {
        entry e = {.cmd = cmd, .option = o, .letter = cli_option_letter(o)};
        if (!cli_help_find(cmd, o, &e.help)) continue;
        if (o->has_arg != no_argument) e.kind = cli_option_values(cmd, o, &e.help, &e.words);
        if (e.words.failed) out->failed = true;
        write(&e, out);
        tide_text_deinit(&e.words);
    }
}

static void each_command(void (*write)(const cli_command *cmd, tide_text *out), tide_text *out) {
    for (const cli_command *const *cmd = cli_commands; *cmd != NULL; cmd++)
        if (!cli_command_is_internal(*cmd)) write(*cmd, out);
}

/// Text inside of single quotes of a shell; letters of `special` get a backslash in front.
static void add_quoted(tide_text *out, const char *text, size_t n, const char *quote, const char *special) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\'') {
            tide_text_add(out, quote);
            continue;
        }
        if (strchr(special, text[i]) != NULL) tide_text_add(out, "\\");
        tide_text_add_n(out, text + i, 1);
    }
}

/// A script with a table in the place of each "@name@".
typedef struct part {
    const char *name;
    void (*write)(const cli_command *cmd, tide_text *out);
} part;

static void fill_in(const char *script, const part *parts, size_t n_parts, tide_text *out) {
    while (*script != '\0') {
        size_t k = 0;
        while (k < n_parts && strncmp(script, parts[k].name, strlen(parts[k].name)) != 0) k++;
        if (k < n_parts) {
            each_command(parts[k].write, out);
            script += strlen(parts[k].name);
            continue;
        }
        const size_t n = strcspn(script + 1, "@") + 1;
        tide_text_add_n(out, script, n);
        script += n;
    }
}

// ---- bash ----

static void bash_command(const cli_command *cmd, tide_text *out) { tide_text_addf(out, "%s ", cmd->name); }

static void bash_option(const entry *e, tide_text *out) {
    if (e->letter != '\0') tide_text_addf(out, "-%c ", e->letter);
    tide_text_addf(out, "--%s ", e->option->name);
}

static void bash_options(const cli_command *cmd, tide_text *out) {
    tide_text_addf(out, "    %s) options='", cmd->name);
    each_option(cmd, bash_option, out);
    tide_text_add(out, "--help' ;;\n");
}

/// What is done behind an option that takes a value. One that may be left out comes behind a '='.
static void bash_value(const entry *e, tide_text *out) {
    if (e->option->has_arg == no_argument) return;
    tide_text_addf(out, "    '%s --%s='", e->cmd->name, e->option->name);
    if (e->option->has_arg == required_argument) tide_text_addf(out, " | '%s --%s'", e->cmd->name, e->option->name);
    if (e->letter != '\0') tide_text_addf(out, " | '%s -%c'", e->cmd->name, e->letter);
    tide_text_add(out, ") ");
    switch (e->kind) {
    case CLI_VALUE_WORDS:
        tide_text_addf(out, "_tidemark_words '%s'", tide_text_str(&e->words));
        break;
    case CLI_VALUE_LIST:
        tide_text_addf(out, "_tidemark_list '%s'", tide_text_str(&e->words));
        break;
    case CLI_VALUE_FILE: // what readline completes where nothing is proposed
        tide_text_add(out, ":");
        break;
    case CLI_VALUE_FOLDER:
        tide_text_add(out, "compopt -o dirnames +o default");
        break;
    case CLI_VALUE_FREE:
        tide_text_add(out, "compopt +o default");
        break;
    }
    tide_text_add(out, " ;;\n");
}

static void bash_values(const cli_command *cmd, tide_text *out) { each_option(cmd, bash_value, out); }

/// Files are what readline completes where nothing is proposed.
static void bash_operands(const cli_command *cmd, tide_text *out) {
    static const char *const actions[] = {
        [CLI_OPERANDS_NONE] = "compopt +o default",
        [CLI_OPERANDS_FILES] = NULL,
        [CLI_OPERANDS_FOLDER] = "compopt -o dirnames +o default",
        [CLI_OPERANDS_WORDS] = "compopt +o default",
        [CLI_OPERANDS_COMMANDS] = "_tidemark_words \"$commands\"",
        [CLI_OPERANDS_PROGRAM] = "_tidemark_program \"$COMP_CWORD\"",
    };
    if (actions[cmd->operands] != NULL) tide_text_addf(out, "    %s) %s ;;\n", cmd->name, actions[cmd->operands]);
}

void cli_completion_bash(tide_text *out) {
    static const part parts[] = {{"@commands@", bash_command},
                                 {"@options@\n", bash_options},
                                 {"@values@\n", bash_values},
                                 {"@operands@\n", bash_operands}};
    fill_in(tide_completion_bash, parts, sizeof parts / sizeof parts[0], out);
}

// ---- zsh ----

/// In single quotes, where ':' and brackets have a meaning of their own.
static void zsh_text(tide_text *out, const char *text, size_t n) { add_quoted(out, text, n, "'\\''", ":[]\\"); }

static void zsh_command(const cli_command *cmd, tide_text *out) {
    tide_text_addf(out, "    '%s:", cmd->name);
    zsh_text(out, cmd->what, strlen(cmd->what));
    tide_text_add(out, "'\n");
}

static void zsh_words(const entry *e, tide_text *out) {
    const char *const words = tide_text_str(&e->words);
    tide_text_add(out, e->kind == CLI_VALUE_LIST ? "_values -s , value " : "(");
    zsh_text(out, words, strlen(words));
    if (e->kind == CLI_VALUE_WORDS) tide_text_add(out, ")");
}

static void zsh_form(const entry *e, const char *option, tide_text *out) {
    tide_text_addf(out, " \\\n      '*%s[", option);
    zsh_text(out, e->help.brief, strlen(e->help.brief));
    tide_text_add(out, "]");
    if (e->option->has_arg != no_argument) {
        tide_text_add(out, e->option->has_arg == optional_argument ? "::" : ":");
        zsh_text(out, e->help.value, (size_t)e->help.n_value);
        tide_text_add(out, ":");
        if (e->kind == CLI_VALUE_WORDS || e->kind == CLI_VALUE_LIST) zsh_words(e, out);
        if (e->kind == CLI_VALUE_FILE) tide_text_add(out, "_files");
        if (e->kind == CLI_VALUE_FOLDER) tide_text_add(out, "_files -/");
        if (e->kind == CLI_VALUE_FREE) tide_text_add(out, " ");
    }
    tide_text_add(out, "'");
}

static void zsh_option(const entry *e, tide_text *out) {
    const int has_arg = e->option->has_arg;
    char name[80];
    snprintf(name, sizeof name, "--%s%s", e->option->name,
             has_arg == no_argument         ? ""
             : has_arg == optional_argument ? "=-"
                                            : "=");
    zsh_form(e, name, out);
    if (e->letter == '\0') return;
    snprintf(name, sizeof name, "-%c%s", e->letter, has_arg == no_argument ? "" : "+");
    zsh_form(e, name, out);
}

static void zsh_options(const cli_command *cmd, tide_text *out) {
    static const char *const operands[] = {
        [CLI_OPERANDS_NONE] = "",
        [CLI_OPERANDS_FILES] = " \\\n      '*:FILE:_files'",
        [CLI_OPERANDS_FOLDER] = " \\\n      '1:DIR:_files -/'",
        [CLI_OPERANDS_WORDS] = " \\\n      '*:name: '",
        [CLI_OPERANDS_COMMANDS] = " \\\n      '1: :_tidemark_commands'",
        [CLI_OPERANDS_PROGRAM] = " \\\n      '(-):command: _command_names -e' '*::argument: _normal'",
    };
    tide_text_addf(out, "  %s)\n    _arguments -S '(- *)'{-h,--help}'[what the command does]'", cmd->name);
    each_option(cmd, zsh_option, out);
    tide_text_addf(out, "%s && ret=0\n    ;;\n", operands[cmd->operands]);
}

void cli_completion_zsh(tide_text *out) {
    static const part parts[] = {{"@commands@\n", zsh_command}, {"@options@\n", zsh_options}};
    fill_in(tide_completion_zsh, parts, sizeof parts / sizeof parts[0], out);
}

// ---- fish ----

static void fish_text(tide_text *out, const char *text, size_t n) { add_quoted(out, text, n, "\\'", "\\"); }

static void fish_command(const cli_command *cmd, tide_text *out) {
    tide_text_addf(out, "complete -c tidemark -n __tidemark_is -a %s -d '", cmd->name);
    fish_text(out, cmd->what, strlen(cmd->what));
    tide_text_add(out, "'\n");
}

static void fish_option(const entry *e, tide_text *out) {
    tide_text_addf(out, "complete -c tidemark -n '__tidemark_is %s'", e->cmd->name);
    if (e->letter != '\0') tide_text_addf(out, " -s %c", e->letter);
    tide_text_addf(out, " -l %s", e->option->name);
    const bool is_needed = e->option->has_arg == required_argument;
    if (e->kind == CLI_VALUE_WORDS) tide_text_addf(out, "%s -a '%s'", is_needed ? " -x" : "", tide_text_str(&e->words));
    if (e->kind == CLI_VALUE_LIST) tide_text_addf(out, " -x -a '(__tidemark_list %s)'", tide_text_str(&e->words));
    if (e->kind == CLI_VALUE_FILE) tide_text_add(out, " -r -F");
    if (e->kind == CLI_VALUE_FOLDER) tide_text_add(out, " -x -a '(__fish_complete_directories)'");
    if (e->kind == CLI_VALUE_FREE && is_needed) tide_text_add(out, " -x");
    tide_text_add(out, " -d '");
    fish_text(out, e->help.brief, strlen(e->help.brief));
    tide_text_add(out, "'\n");
}

static void fish_options(const cli_command *cmd, tide_text *out) {
    static const char *const operands[] = {
        [CLI_OPERANDS_NONE] = NULL,
        [CLI_OPERANDS_FILES] = "-F",
        [CLI_OPERANDS_FOLDER] = "-a '(__fish_complete_directories)'",
        [CLI_OPERANDS_WORDS] = NULL,
        [CLI_OPERANDS_COMMANDS] = NULL, // below
        [CLI_OPERANDS_PROGRAM] = "-a '(__tidemark_program)'",
    };
    tide_text_addf(out, "complete -c tidemark -n '__tidemark_is %s' -s h -l help -d 'what the command does'\n",
                   cmd->name);
    each_option(cmd, fish_option, out);
    if (cmd->operands == CLI_OPERANDS_COMMANDS) {
        tide_text_addf(out, "complete -c tidemark -n '__tidemark_is %s' -a '", cmd->name);
        each_command(bash_command, out);
        tide_text_add(out, "'\n");
    }
    if (operands[cmd->operands] != NULL)
        tide_text_addf(out, "complete -c tidemark -n '__tidemark_is %s' %s\n", cmd->name, operands[cmd->operands]);
}

void cli_completion_fish(tide_text *out) {
    static const part parts[] = {{"@commands@\n", fish_command}, {"@options@\n", fish_options}};
    fill_in(tide_completion_fish, parts, sizeof parts / sizeof parts[0], out);
}
