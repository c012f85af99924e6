// SPDX-License-Identifier: MIT
//
// What the value of an option can be. See option_values.h.
#include "cli/option_values.h"

#include <string.h>

#include "core/device/sim_device.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/kind.h"
#include "planner/planner.h"
#include "tui/state/layout.h"

static void add_word(tide_text *words, const char *word) {
    tide_text_addf(words, "%s%s", words->len > 0 ? " " : "", word);
}

// ---- lists that other floors have ----

static void add_strategies(tide_text *words) {
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t i = 0; i < n; i++) add_word(words, all[i]->name);
}

static void add_allocators_of(tide_device device, tide_text *words) {
    const char *name;
    for (size_t i = 0; (name = tide_allocator_name_on(device, i)) != NULL; i++) add_word(words, name);
}

static void add_allocators(tide_text *words) { add_allocators_of(TIDE_CPU, words); }

/// Those of the simulated device too: a replay may go there.
static void add_replay_allocators(tide_text *words) {
    tide_device sim;
    tide_error err = TIDE_ERROR_INIT;
    add_allocators_of(TIDE_CPU, words);
    if (tide_sim_device_parse("sim", &sim, &err) == TIDE_OK) add_allocators_of(sim, words);
}

static void add_kinds(tide_text *words) {
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) add_word(words, tide_memory_kind_name((tide_memory_kind)kind));
}

static void add_views(tide_text *words) {
    for (int i = 0; i < TIDE_TUI_N_PRESETS; i++) add_word(words, tide_tui_preset_name((tide_tui_preset)i));
}

// ---- the table ----

typedef struct values {
    const char *command; ///< NULL: of any command
    const char *option;
    const char *words;             ///< or
    void (*add)(tide_text *words); ///< who knows them
    bool is_list;                  ///< several, with commas between them
} values;

/// Rows of one command stand before those of any.
static const values table[] = {
    {"sweep", "strategy", NULL, add_strategies, true},
    {NULL, "strategy", NULL, add_strategies, false},
    {"replay", "allocator", NULL, add_replay_allocators, true},
    {NULL, "allocator", NULL, add_allocators, false},
    {NULL, "kind", NULL, add_kinds, false},
    {NULL, "view", NULL, add_views, false},
    {"run", "device", "cpu", NULL, false},
    {NULL, "device", "cpu sim cuda:0", NULL, false},
    {NULL, "of", "cpu cuda:0", NULL, false},
    {"merge", "align", "boot wall marks begin", NULL, false},
    {"merge", "devices", "apart same", NULL, false},
    {"plan", "dump-stage", "liveness graph colour plan", NULL, false},
    {"record", "cuda", "auto on off", NULL, false},
    {"record", "malloc", "auto on off", NULL, false},
    {"trace", "by",
     "kind device scope name allocator size age thread run process module function file library stack category", NULL,
     false},
    {"trace", "sort", "own callees", NULL, false},
    {"tui", "pane", "curve gantt map table operators pools explain compare whatif stacks details", NULL, false},
    {"tui", "glyphs", "auto block braille ascii", NULL, false},
    {"tui", "color", "auto true 256 16 8 never", NULL, false},
    {"tui", "keys", "troff", NULL, false},
    {"sweep", "run", "answers", NULL, false},
    {"export", "to", "csv json minimalloc c-header tflm chrome-trace pytorch", NULL, false},
    {"help", "format", "text man bash zsh fish", NULL, false},
    {NULL, "weights", "auto map copy", NULL, false},
    {NULL, "recorder", "process thread", NULL, false},
    {NULL, "form", "auto rows chunks", NULL, false},
    {NULL, "on-full", "wait drop", NULL, false},
    {NULL, "fill", "zero none poison", NULL, false},
    {NULL, "domain", "ai.onnx com.microsoft", NULL, false},
    // Moments that every trace has.
    {NULL, "at", "begin peak end", NULL, false},
    {NULL, "and", "begin peak end", NULL, false},
};

static bool is_called(const cli_help_option *help, const char *word) {
    return help->n_value == (int)strlen(word) && strncmp(help->value, word, strlen(word)) == 0;
}

cli_value_kind cli_option_values(const cli_command *cmd, const struct option *option, const cli_help_option *help,
                                 tide_text *words) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const values *v = &table[i];
        if ((v->command != NULL && strcmp(v->command, cmd->name) != 0) || strcmp(v->option, option->name) != 0)
            continue;
        if (v->add != NULL)
            v->add(words);
        else
            tide_text_add(words, v->words);
        return v->is_list ? CLI_VALUE_LIST : CLI_VALUE_WORDS;
    }
    if (is_called(help, "DIR")) return CLI_VALUE_FOLDER;
    static const char *const files[] = {"FILE", "TRACE", "OTHER", "OUT"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (is_called(help, files[i])) return CLI_VALUE_FILE;
    return CLI_VALUE_FREE;
}
