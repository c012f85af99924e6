// SPDX-License-Identifier: MIT
//
// tidemark help: what a command does, as text, as a page of the manual, or as what a shell needs to complete it.
#include <stdio.h>
#include <string.h>

#include "cli/completion.h"
#include "cli/folders.h"
#include "cli/manual.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"

enum { OPT_FORMAT = 256, OPT_WRITE };

static const char help[] =
    "  --format F          as what:\n"
    "                        text  the options of COMMAND, or the list of commands (default)\n"
    "                        man   the page of the manual of COMMAND, or that of the program\n"
    "                        bash  a script with which bash completes all commands\n"
    "                        zsh   the same for zsh\n"
    "                        fish  the same for fish\n"
    "  --write DIR         write all pages and scripts below DIR, where man and the shells look for them when it is\n"
    "                      ~/.local/share, /usr/local/share or the share folder of another prefix that they know\n"
    "  -o FILE             write to FILE (default: standard output)\n\n"
    "Example: tidemark help plan\n"
    "         tidemark help --format bash > ~/.local/share/bash-completion/completions/tidemark\n"
    "         tidemark help --write ~/.local/share\n";
static const struct option option_table[] = {{"format", required_argument, NULL, OPT_FORMAT},
                                             {"write", required_argument, NULL, OPT_WRITE},
                                             {"output", required_argument, NULL, 'o'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_help = {
    "help", "[OPTION…] [COMMAND]", "Say what a command does; pages of the manual, completion for shells",
    help,   option_table,          CLI_OPERANDS_COMMANDS,
    run};

static void bash_script(const cli_command *cmd, tide_text *out) {
    (void)cmd;
    cli_completion_bash(out);
}

static void zsh_script(const cli_command *cmd, tide_text *out) {
    (void)cmd;
    cli_completion_zsh(out);
}

static void fish_script(const cli_command *cmd, tide_text *out) {
    (void)cmd;
    cli_completion_fish(out);
}

/// `write` is NULL for plain text.
typedef struct format {
    const char *name;
    void (*write)(const cli_command *cmd, tide_text *out);
    const char *path; ///< of its file below a share folder; NULL: it has none, or one for each command
} format;
static const format formats[] = {{"text", NULL, NULL},
                                 {"man", cli_manual_page, NULL},
                                 {"bash", bash_script, "bash-completion/completions/tidemark"},
                                 {"zsh", zsh_script, "zsh/site-functions/_tidemark"},
                                 {"fish", fish_script, "fish/vendor_completions.d/tidemark.fish"}};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

typedef struct options {
    const format *format; ///< NULL: not given
    const char *out, *folder;
} options;

static tide_status write_to(const char *path, const format *f, const cli_command *cmd, tide_error *err) {
    tide_text text = {0};
    f->write(cmd, &text);
    const tide_status st =
        text.failed ? TIDE_NO_MEMORY(err, "for the text") : tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return st;
}

/// Below `folder`, with the folders that it lies in.
static tide_status write_below(const char *folder, const char *path, const format *f, const cli_command *cmd,
                               tide_error *err) {
    tide_text whole = {0}, above = {0};
    tide_text_addf(&whole, "%s/%s", folder, path);
    if (!whole.failed) tide_text_add_n(&above, whole.data, (size_t)(strrchr(whole.data, '/') - whole.data));
    tide_status st = whole.failed || above.failed ? TIDE_NO_MEMORY(err, "for the name of a file") : TIDE_OK;
    if (st == TIDE_OK) st = cli_make_folders(above.data, 0777, err);
    if (st == TIDE_OK) st = write_to(whole.data, f, cmd, err);
    tide_text_deinit(&whole);
    tide_text_deinit(&above);
    return st;
}

static tide_status write_all(const char *folder, tide_error *err) {
    static const format page = {"man", cli_manual_page, "man/man1/tidemark.1"};
    char path[96];
    TIDE_TRY(write_below(folder, page.path, &page, NULL, err));
    for (const cli_command *const *cmd = cli_commands; *cmd != NULL; cmd++) {
        if (cli_command_is_internal(*cmd)) continue;
        snprintf(path, sizeof path, "man/man1/tidemark-%s.1", (*cmd)->name);
        TIDE_TRY(write_below(folder, path, &page, *cmd, err));
    }
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i].path != NULL) TIDE_TRY(write_below(folder, formats[i].path, &formats[i], NULL, err));
    return TIDE_OK;
}

static int set_format(options *o, const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (strcmp(formats[i].name, name) != 0) continue;
        o->format = &formats[i];
        return CLI_EXIT_OK;
    }
    return cli_usage(&cli_command_help, "--format: '%s' is none of text, man, bash, zsh, fish", name);
}

/// @return -1: go on; otherwise the exit code
static int parse(int argc, char **argv, options *o) {
    const cli_command *const self = &cli_command_help;
    int c;
    while ((c = cli_next_option(self, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c == 'o')
            o->out = optarg;
        else if (c == OPT_WRITE)
            o->folder = optarg;
        else if (c != OPT_FORMAT || set_format(o, optarg) != CLI_EXIT_OK)
            return CLI_EXIT_USAGE;
    }
    const bool is_text = o->format == NULL || o->format->write == NULL;
    if (argc - optind > 1) return cli_usage(self, "one COMMAND at most, %d given", argc - optind);
    if (o->folder != NULL && o->folder[0] == '\0') return cli_usage(self, "--write: the name of the folder is empty");
    if (o->folder != NULL && (o->format != NULL || o->out != NULL || argc > optind))
        return cli_usage(self, "--write writes everything: leave --format, -o and COMMAND out");
    if (o->out != NULL && is_text) return cli_usage(self, "-o wants --format man, bash, zsh or fish");
    if (argc > optind && !is_text && o->format->path != NULL)
        return cli_usage(self, "--format %s is of all commands: leave COMMAND out", o->format->name);
    return -1;
}

static int run(int argc, char **argv) {
    options o = {0};
    const int code = parse(argc, argv, &o);
    if (code >= 0) return code;
    const cli_command *cmd = optind < argc ? cli_command_find(argv[optind]) : NULL;
    if (optind < argc && cmd == NULL) return cli_no_command(argv[optind]);
    tide_error err = TIDE_ERROR_INIT;
    if (o.folder != NULL) return write_all(o.folder, &err) == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
    if (o.format != NULL && o.format->write != NULL) {
        if (cmd != NULL && cli_command_is_internal(cmd))
            return cli_usage(&cli_command_help, "%s is started by tidemark itself and has no page", cmd->name);
        return write_to(o.out != NULL ? o.out : "-", o.format, cmd, &err) == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
    }
    if (cmd != NULL)
        cli_print_help(cmd);
    else
        cli_print_commands(stdout);
    return CLI_EXIT_OK;
}
