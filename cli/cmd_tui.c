// SPDX-License-Identifier: MIT
//
// tidemark tui: a trace, a plan, a model or a pair of them in the terminal.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tui_view.h"
#include "core/base/host_alloc.h"
#include "tui/state/layout.h"

enum {
    OPT_ONCE = CLI_OPT_FIRST_OWN,
    OPT_SIZE,
    OPT_SCRIPT,
    OPT_LINEAR,
    OPT_PANE,
    OPT_CSV,
    OPT_KEYS,
    OPT_RUN,
    OPT_CAPACITY,
    OPT_VIEW,
    OPT_COMMAND,
    OPT_FOLLOW,
    OPT_GLYPHS,
    OPT_ASCII,
    OPT_COLOR,
    OPT_NO_MOUSE,
    OPT_STATE,
    OPT_NO_STATE,
    OPT_TEST_MODE,
};

static const char help[] =
    "FILE is a trace, a plan, a model (planned on the spot) or a list of lifetimes; with FILE_B both are compared.\n\n"
    "  --view V            what is seen first: 1 lifetimes, 2 memory, 3 peak, 4 allocators, 5 comparison, 6 stacks\n"
    "  --run N             run N of a trace (default: the last), or all: everything in it\n"
    "  --capacity SIZE     a line in the curve: so much there is\n"
    "  --follow            of a trace that is being recorded: keep the newest in view\n"
    "  --command LINE      done first, as behind ':' (\"filter size>1MiB\"); may be repeated\n"
    "  --once              print one frame as text and end\n"
    "  --size WxH          of that frame, 40x10 or more, or of a script's (default 120x40)\n"
    "  --script FILE       keys and commands from FILE, a frame for each line \"dump\"\n"
    "  --linear            no screen: commands from standard input, answers in lines (screen readers, scripts)\n"
    "  --pane P            what a pane shows: curve gantt map table operators pools explain compare whatif stacks\n"
    "                      details\n"
    "  --json, --csv       how --pane writes it\n"
    "  --keys[=troff]      print the table of keys and commands\n"
    "  --glyphs G          what bars are drawn with: auto (default), block, braille or ascii\n"
    "  --ascii             the same as --glyphs ascii\n"
    "  --color C           colours: auto (default: NO_COLOR and the terminal decide), true, 256, 16, 8 or never\n"
    "  --no-mouse          leave the mouse to the terminal\n"
    "  --state FILE        keep view, filters and marks there (default: below $XDG_STATE_HOME/tidemark, one for each\n"
    "                      FILE)\n"
    "  --no-state          keep them nowhere\n" CLI_PLANNING_HELP
    "\nKeys: press ? inside. docs/tui.md shows every view.\n"
    "Example: tidemark tui sample_graphs/lenet5.json\n";

static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"view", required_argument, NULL, OPT_VIEW},
                                             {"run", required_argument, NULL, OPT_RUN},
                                             {"capacity", required_argument, NULL, OPT_CAPACITY},
                                             {"budget", required_argument, NULL, OPT_CAPACITY},
                                             {"follow", no_argument, NULL, OPT_FOLLOW},
                                             {"command", required_argument, NULL, OPT_COMMAND},
                                             {"once", no_argument, NULL, OPT_ONCE},
                                             {"size", required_argument, NULL, OPT_SIZE},
                                             {"script", required_argument, NULL, OPT_SCRIPT},
                                             {"linear", no_argument, NULL, OPT_LINEAR},
                                             {"pane", required_argument, NULL, OPT_PANE},
                                             {"json", no_argument, NULL, CLI_OPT_JSON},
                                             {"csv", no_argument, NULL, OPT_CSV},
                                             {"keys", optional_argument, NULL, OPT_KEYS},
                                             {"glyphs", required_argument, NULL, OPT_GLYPHS},
                                             {"ascii", no_argument, NULL, OPT_ASCII},
                                             {"color", required_argument, NULL, OPT_COLOR},
                                             {"no-mouse", no_argument, NULL, OPT_NO_MOUSE},
                                             {"state", required_argument, NULL, OPT_STATE},
                                             {"no-state", no_argument, NULL, OPT_NO_STATE},
                                             {"test-mode", no_argument, NULL, OPT_TEST_MODE},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_tui = {"tui",
                                     "[OPTION…] FILE [FILE_B]",
                                     "Look at tensor lifetimes in the terminal",
                                     help,
                                     option_table,
                                     CLI_OPERANDS_FILES,
                                     run};

typedef struct options {
    cli_view view;
    tide_tui_options tui;
    bool once, linear, json, csv, keys, troff, no_state;
    int width, height;
    uint64_t capacity_bytes;
    const char *script, *pane, *state, *given; // given: an option that only --once and --script use
    tide_text commands, prefix;
} options;

// ---- what is asked for ----

static bool is_batch(const options *o) { return o->once || o->script != NULL || o->linear || o->pane != NULL; }

/// What --command says is a part of the command line.
static int fail_view(const options *o, const tide_error *err) {
    const int code = cli_fail(err);
    return err->status == TIDE_ERR_INVALID && o->commands.len > 0 && o->script == NULL ? CLI_EXIT_USAGE : code;
}

static int print_text(const options *o, tide_status st, tide_text *text, tide_error *err) {
    if (st == TIDE_OK && text->failed) st = TIDE_NO_MEMORY(err, "for the text");
    if (st == TIDE_OK) fputs(tide_text_str(text), stdout);
    tide_text_deinit(text);
    // A reader that closed the pipe (head) is no failure.
    if (st == TIDE_OK && (fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE)
        st = TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write to standard output");
    return st == TIDE_OK ? CLI_EXIT_OK : fail_view(o, err);
}

static int run_script(const tide_tui_session *session, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    char *script = NULL;
    size_t len;
    tide_text text = {0};
    if (tide_read_file(o->script, 0, &script, &len, &err) != TIDE_OK) return cli_fail(&err);
    const tide_status st = tide_tui_script(session, &o->tui, o->width, o->height, script, &text, &err);
    tide_host_free(script);
    return print_text(o, st, &text, &err);
}

static int show_session(const tide_tui_session *session, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    if (o->script != NULL) return run_script(session, o);
    if (o->once) return print_text(o, tide_tui_once(session, &o->tui, o->width, o->height, &text, &err), &text, &err);
    if (o->json) return print_text(o, tide_tui_pane_json(session, &o->tui, o->pane, &text, &err), &text, &err);
    if (o->csv) return print_text(o, tide_tui_pane_csv(session, &o->tui, o->pane, &text, &err), &text, &err);
    const tide_status st =
        o->linear ? tide_tui_linear(session, &o->tui, stdin, stdout, &err) : tide_tui_run(session, &o->tui, &err);
    return st == TIDE_OK ? CLI_EXIT_OK : fail_view(o, &err);
}

static int show(const char *a, const char *b, options *o) {
    tide_error err = TIDE_ERROR_INIT;
    if (!is_batch(o) && cli_tui_need_terminal(&err) != TIDE_OK) {
        cli_print_error(&err);
        return CLI_EXIT_USAGE;
    }
    cli_tui_session s = {.prefix = o->prefix};
    o->prefix = (tide_text){0}; // moved into the session
    char *state = NULL;
    int code;
    if (cli_tui_session_open(&o->view, a, b, o->capacity_bytes, &s, &err) != TIDE_OK) {
        code = cli_fail(&err);
    } else {
        if (!is_batch(o) && o->state == NULL && !o->no_state) state = cli_tui_state_path(a, b);
        o->tui.state_file = o->state != NULL ? o->state : state;
        o->tui.no_copy_file = o->no_state;
        o->tui.commands = o->commands.data;
        o->tui.opens_alive = !o->linear && !o->json && !o->csv;
        o->tui.is_data = o->json || o->csv;
        code = show_session(&s.session, o);
    }
    tide_host_free(state);
    cli_tui_session_close(&s);
    return code;
}

// ---- options ----

static bool parse_frame_size(const char *text, int *width, int *height) {
    char *end = NULL;
    const long w = strtol(text, &end, 10);
    if (end == text || *end != 'x') return false;
    const char *second = end + 1;
    const long h = strtol(second, &end, 10);
    if (end == second || *end != '\0' || w < 1 || h < 1 || w > 2000 || h > 2000) return false;
    *width = (int)w;
    *height = (int)h;
    return true;
}

typedef struct word {
    const char *name;
    int value;
} word;

/// The value of a word, or -1 after the message was printed.
static int pick(const char *option, const char *text, const word *words, size_t n) {
    tide_text list = {0};
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, words[i].name) == 0) {
            tide_text_deinit(&list);
            return words[i].value;
        }
        tide_text_addf(&list, "%s%s", i > 0 ? ", " : "", words[i].name);
    }
    cli_usage(&cli_command_tui, "%s: '%s' is none of %s", option, text, tide_text_str(&list));
    tide_text_deinit(&list);
    return -1;
}

static int take_glyphs(options *o, const char *text) {
    static const word words[] = {{"auto", TIDE_TUI_GLYPHS_AUTO},
                                 {"block", TIDE_TUI_GLYPHS_BLOCK},
                                 {"braille", TIDE_TUI_GLYPHS_BRAILLE},
                                 {"ascii", TIDE_TUI_GLYPHS_ASCII}};
    const int tier = pick("--glyphs", text, words, sizeof words / sizeof words[0]);
    if (tier >= 0) o->tui.glyphs = (tide_tui_glyph_tier)tier;
    return tier >= 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

static int take_colour(options *o, const char *text) {
    static const word words[] = {{"auto", TIDE_TUI_COLOUR_AUTO}, {"true", TIDE_TUI_COLOUR_TRUE},
                                 {"256", TIDE_TUI_COLOUR_256},   {"16", TIDE_TUI_COLOUR_16},
                                 {"8", TIDE_TUI_COLOUR_8},       {"never", TIDE_TUI_COLOUR_MONO}};
    const int tier = pick("--color", text, words, sizeof words / sizeof words[0]);
    if (tier >= 0) o->tui.colour = (tide_tui_colour_tier)tier;
    return tier >= 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

static int take_view(options *o, const char *text) {
    word words[2 * TIDE_TUI_N_PRESETS];
    static const char *const digits[] = {"1", "2", "3", "4", "5", "6"};
    _Static_assert(sizeof digits / sizeof digits[0] == TIDE_TUI_N_PRESETS, "a digit for each view");
    for (int i = 0; i < TIDE_TUI_N_PRESETS; i++) {
        words[i] = (word){digits[i], i + 1};
        words[TIDE_TUI_N_PRESETS + i] = (word){tide_tui_preset_name((tide_tui_preset)i), i + 1};
    }
    o->tui.preset = pick("--view", text, words, sizeof words / sizeof words[0]);
    return o->tui.preset > 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

static int take_pane(options *o, const char *text) {
    word words[TIDE_TUI_N_PANES];
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) words[i] = (word){tide_tui_pane_name((tide_tui_pane)i), i};
    char pane[32]; // "pools.leaks": of the pane another table, by its name
    (void)snprintf(pane, sizeof pane, "%.*s", (int)strcspn(text, "."), text);
    o->pane = text;
    return pick("--pane", pane, words, TIDE_TUI_N_PANES) >= 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

static int take_run(options *o, const char *text) {
    o->view.whole = strcmp(text, "all") == 0;
    if (o->view.whole) return CLI_EXIT_OK;
    if (!cli_parse_count(&cli_command_tui, "--run", text, INT64_MAX, &o->view.run_id)) return CLI_EXIT_USAGE;
    if (o->view.run_id == 0) return cli_usage(&cli_command_tui, "--run: runs are counted from 1; or 'all'");
    return CLI_EXIT_OK;
}

static int take_keys(options *o, const char *text) {
    o->keys = true;
    o->troff = text != NULL && strcmp(text, "troff") == 0;
    if (text != NULL && !o->troff) return cli_usage(&cli_command_tui, "--keys: '%s' is not troff", text);
    return CLI_EXIT_OK;
}

/// What a line of --command may begin with when it is copied out of the view.
static void add_command(options *o, const char *line) {
    if (*line == ':') line++;
    tide_text_addf(&o->commands, "%s%s", o->commands.len > 0 ? "\n" : "", line);
}

/// Options that say how the view is shown.
static int take_look(options *o, int c) {
    switch (c) {
    case OPT_VIEW:
        return take_view(o, optarg);
    case OPT_GLYPHS:
        return take_glyphs(o, optarg);
    case OPT_ASCII:
        o->tui.glyphs = TIDE_TUI_GLYPHS_ASCII;
        return CLI_EXIT_OK;
    case OPT_COLOR:
        return take_colour(o, optarg);
    case OPT_NO_MOUSE:
        o->tui.no_mouse = true;
        return CLI_EXIT_OK;
    case OPT_FOLLOW:
        o->tui.follow = true;
        return CLI_EXIT_OK;
    case OPT_COMMAND:
        add_command(o, optarg);
        return CLI_EXIT_OK;
    case OPT_STATE:
        o->state = optarg;
        return CLI_EXIT_OK;
    case OPT_NO_STATE:
        o->no_state = true;
        return CLI_EXIT_OK;
    case OPT_TEST_MODE:
        o->tui.test_mode = true;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

/// Options that say what comes out.
static int take_option(options *o, int c) {
    switch (c) {
    case OPT_ONCE:
        o->once = true;
        return CLI_EXIT_OK;
    case OPT_SIZE:
        o->given = "--size";
        if (parse_frame_size(optarg, &o->width, &o->height)) return CLI_EXIT_OK;
        return cli_usage(&cli_command_tui, "--size: '%s' is not of the form 120x40", optarg);
    case OPT_SCRIPT:
        o->script = optarg;
        return CLI_EXIT_OK;
    case OPT_LINEAR:
        o->linear = true;
        return CLI_EXIT_OK;
    case OPT_PANE:
        return take_pane(o, optarg);
    case CLI_OPT_JSON:
        o->json = true;
        return CLI_EXIT_OK;
    case OPT_CSV:
        o->csv = true;
        return CLI_EXIT_OK;
    case OPT_KEYS:
        return take_keys(o, optarg);
    case OPT_RUN:
        return take_run(o, optarg);
    case OPT_CAPACITY:
        return cli_parse_size(&cli_command_tui, "--capacity", optarg, &o->capacity_bytes) ? CLI_EXIT_OK
                                                                                          : CLI_EXIT_USAGE;
    default:
        return take_look(o, c);
    }
}

/// Notes the options that another call needs for the same view: those of planning, the run, the capacity.
static void note_option(options *o, int c) {
    if (c >= CLI_OPT_FIRST_OWN && c != OPT_RUN && c != OPT_CAPACITY) return;
    for (const struct option *t = option_table; t->name != NULL; t++) {
        if (t->val != c || c == CLI_OPT_JSON) continue;
        tide_text_addf(&o->prefix, " --%s", t->name);
        if (t->has_arg != required_argument) return;
        tide_text_add(&o->prefix, " ");
        cli_shell_word(optarg, &o->prefix);
        return;
    }
}

static int settle(const options *o, int n_files) {
    const cli_command *cmd = &cli_command_tui;
    const int n_modes = (int)o->once + (o->script != NULL) + (int)o->linear + (o->pane != NULL);
    if (o->keys) return n_files == 0 ? CLI_GO_ON : cli_usage(cmd, "--keys looks at no FILE");
    if (n_modes > 1) return cli_usage(cmd, "--once, --script, --linear and --pane are different things to be done");
    if (o->pane == NULL && (o->json || o->csv)) return cli_usage(cmd, "--json and --csv are of --pane");
    if (o->pane != NULL && o->json == o->csv) return cli_usage(cmd, "--pane wants --json or --csv, one of them");
    if (o->given != NULL && !o->once && o->script == NULL)
        return cli_usage(cmd, "%s is of --once and --script: a terminal has its size", o->given);
    if (o->once && o->width > 0 && (o->width < TIDE_TUI_MIN_WIDTH || o->height < TIDE_TUI_MIN_HEIGHT))
        return cli_usage(cmd, "--size: a frame needs %dx%d, %dx%d is too small for one", TIDE_TUI_MIN_WIDTH,
                         TIDE_TUI_MIN_HEIGHT, o->width, o->height);
    if (o->state != NULL && o->no_state) return cli_usage(cmd, "--state and --no-state exclude each other");
    if (n_files < 1 || n_files > 2) return cli_usage(cmd, "FILE or FILE and FILE_B are needed, %d given", n_files);
    return CLI_GO_ON;
}

static int parse(int argc, char **argv, options *o) {
    int c;
    while ((c = cli_next_option(&cli_command_tui, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        note_option(o, c);
        const int taken = c == CLI_OPT_JSON ? 0 : cli_planning_option(&cli_command_tui, &o->view.planning, c);
        if (taken < 0 || (taken == 0 && take_option(o, c) != CLI_EXIT_OK)) return CLI_EXIT_USAGE;
    }
    return settle(o, argc - optind);
}

static int print_keys(const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    tide_tui_print_keys(o->troff, &text);
    return print_text(o, TIDE_OK, &text, &err);
}

static int run(int argc, char **argv) {
    options o = {.width = 120, .height = 40};
    tide_host_return_large(); // tables of millions of blocks come and go
    tide_text_add(&o.prefix, "tidemark tui");
    int code = parse(argc, argv, &o);
    if (code == CLI_GO_ON)
        code = o.keys ? print_keys(&o) : show(argv[optind], optind + 1 < argc ? argv[optind + 1] : NULL, &o);
    tide_text_deinit(&o.commands);
    tide_text_deinit(&o.prefix);
    cli_planning_deinit(&o.view.planning);
    return code;
}
