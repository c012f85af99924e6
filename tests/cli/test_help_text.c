// SPDX-License-Identifier: MIT
//
// Every option of every command is in the command's help, and nothing else is: pages of the manual and completion are
// made of both. And every command has what its page says beside.
#include <ctype.h>

#include "cli/help_text.h"
#include "cli/manual.h"
#include "cli/option_values.h"
#include "core/base/text.h"
#include "tests/tide_test.h"

/// Options that no help names, with the command that has them: one for tests, another name for --capacity, two that a
/// gate refuses with its reason.
static const char *const hidden[][2] = {
    {"tui", "test-mode"}, {"tui", "budget"}, {"check", "time-limit"}, {"check", "plan-threads"}};

static bool is_hidden(const cli_command *cmd, const char *name) {
    if (strcmp(name, "help") == 0) return true; // of all commands, and in no table
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (strcmp(hidden[i][0], cmd->name) == 0 && strcmp(hidden[i][1], name) == 0) return true;
    return false;
}

static void test_every_option_is_in_the_help(void **state) {
    (void)state;
    for (const cli_command *const *cmd = cli_commands; *cmd != NULL; cmd++) {
        for (const struct option *o = (*cmd)->options; o->name != NULL; o++) {
            cli_help_option found;
            const bool is_there = cli_help_find(*cmd, o, &found);
            if (is_there == is_hidden(*cmd, o->name)) fail_msg("%s --%s", (*cmd)->name, o->name);
            if (!is_there) continue;
            if (found.brief[0] == '\0') fail_msg("%s --%s: nothing is said of it", (*cmd)->name, o->name);
            if ((o->has_arg != no_argument) != (found.n_value > 0))
                fail_msg("%s --%s: the value is called '%.*s'", (*cmd)->name, o->name, found.n_value, found.value);
        }
    }
}

static bool is_option(const cli_command *cmd, const char *name, size_t n) {
    for (const struct option *o = cmd->options; o->name != NULL; o++) {
        if (n == 1 && cli_option_letter(o) == name[0]) return true;
        if (n > 1 && strlen(o->name) == n && strncmp(o->name, name, n) == 0) return true;
    }
    return false;
}

/// Where lines of options begin, every word that begins with a hyphen is an option of the command.
static void test_the_help_has_no_option_that_is_none(void **state) {
    (void)state;
    size_t n_seen = 0;
    for (const cli_command *const *cmd = cli_commands; *cmd != NULL; cmd++) {
        cli_help_line line;
        for (const char *at = (*cmd)->help; cli_help_next(&at, &line);) {
            if (line.kind != CLI_HELP_OPTION) continue;
            for (int i = 0; i < line.n_head; i++) {
                if (line.head[i] != '-' || (i > 0 && line.head[i - 1] != ' ')) continue;
                while (i < line.n_head && line.head[i] == '-') i++;
                const char *const name = line.head + i;
                while (i < line.n_head && (isalnum((unsigned char)line.head[i]) || line.head[i] == '-')) i++;
                const size_t n = (size_t)(line.head + i - name);
                n_seen++;
                if (!is_option(*cmd, name, n)) fail_msg("%s: '%.*s'", (*cmd)->name, (int)n, name);
            }
        }
    }
    assert_true(n_seen > 300);
}

static void test_every_command_has_a_text(void **state) {
    (void)state;
    for (const cli_command *const *cmd = cli_commands; *cmd != NULL; cmd++) {
        if (cli_command_is_internal(*cmd)) continue;
        const cli_about *about = cli_about_find((*cmd)->name);
        if (about == NULL) fail_msg("%s has no text in cli/manual_about.c", (*cmd)->name);
        assert_true(strlen(about->text) > 80 && about->see_also[0] != '\0');
    }
    // The other way round: commands that are named there are some.
    for (const cli_about_name *n = cli_about_variables; n->name != NULL; n++) assert_true(n->text[0] != '\0');
}

/// What commands are named beside a variable, a file or a page is one.
static void check_names(const char *names) {
    char name[32];
    for (const char *at = names; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (cli_command_find(name) == NULL) fail_msg("'%s' is no command", name);
        at += n;
    }
}

static void test_what_is_named_is_there(void **state) {
    (void)state;
    for (const cli_about_name *n = cli_about_variables; n->name != NULL; n++) check_names(n->commands);
    for (const cli_about_name *n = cli_about_files; n->name != NULL; n++) check_names(n->commands);
    check_names(cli_about_find("")->see_also);
    for (const cli_command *const *cmd = cli_commands; *cmd != NULL; cmd++)
        if (!cli_command_is_internal(*cmd)) check_names(cli_about_find((*cmd)->name)->see_also);
}

static void check_line(const char *text, cli_help_kind kind, const char *head, const char *rest) {
    cli_help_line line;
    const char *at = text;
    assert_true(cli_help_next(&at, &line));
    assert_int_equal(line.kind, kind);
    if (head != NULL) {
        assert_int_equal(line.n_head, strlen(head));
        assert_memory_equal(line.head, head, strlen(head));
    }
    assert_int_equal(line.n_text, strlen(rest));
    assert_memory_equal(line.text, rest, strlen(rest));
    assert_false(cli_help_next(&at, &line));
}

static void test_lines(void **state) {
    (void)state;
    check_line("  --all               every one\n", CLI_HELP_OPTION, "--all", "every one");
    check_line("  --allow-recompute P compute\n", CLI_HELP_OPTION, "--allow-recompute P", "compute");
    check_line("  -n RUNS, --contexts N, --limit SIZE\n", CLI_HELP_OPTION, "-n RUNS, --contexts N, --limit SIZE", "");
    check_line("  --devices apart|same  whether\n", CLI_HELP_OPTION, "--devices apart|same", "whether");
    check_line("  --x", CLI_HELP_OPTION, "--x", "");
    check_line("                      more", CLI_HELP_TEXT, NULL, "more");
    check_line("                        csv   lifetimes", CLI_HELP_ROW, "csv", "lifetimes");
    check_line("                          more of it", CLI_HELP_ROW_TEXT, NULL, "more of it");
    check_line("Words.", CLI_HELP_PARAGRAPH, NULL, "Words.");
    check_line("Exit 1 when", CLI_HELP_EXIT, NULL, "Exit 1 when");
    check_line("Example: tidemark plan x", CLI_HELP_EXAMPLE, NULL, "tidemark plan x");
    check_line("         tidemark run x", CLI_HELP_EXAMPLE, NULL, "tidemark run x");
    check_line("\n", CLI_HELP_BLANK, NULL, "");
    check_line("   \n", CLI_HELP_BLANK, NULL, "");
    const char *at = "";
    cli_help_line line;
    assert_false(cli_help_next(&at, &line));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_is_in_the_help),
        cmocka_unit_test(test_the_help_has_no_option_that_is_none),
        cmocka_unit_test(test_every_command_has_a_text),
        cmocka_unit_test(test_what_is_named_is_there),
        cmocka_unit_test(test_lines),
    };
    cli_commands = cli_command_table;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
