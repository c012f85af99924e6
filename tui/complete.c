// SPDX-License-Identifier: MIT
//
// Completion of what is typed into the bottom line: commands, their arguments, words of filters, names of tensors.
// See actions.h.
//
//     :edit in-place conv|      |: cursor; "conv" is completed by names of tensors
//      ^    ^        ^ word 2
//      |    word 1
//      word 0
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tui/commands.h"

enum { MAX_WORDS = 128, MAX_NAMES = 200000 };

/// What fits so far.
typedef struct found {
    const char *prefix;
    size_t prefix_len;
    size_t n;
    char common[TIDE_TUI_MAX_PROMPT]; ///< how all of them begin
    char *list;                       ///< separated by blanks
    size_t list_len, list_bytes;
} found;

static bool is_listed(const found *f, const char *word) {
    const size_t len = strlen(word);
    for (const char *at = f->list; (at = strstr(at, word)) != NULL; at += len) {
        const bool begins = at == f->list || at[-1] == ' ', ends = at[len] == 0 || at[len] == ' ';
        if (begins && ends) return true;
    }
    return false;
}

static void add(found *f, const char *word) {
    const size_t len = strlen(word);
    if (len == 0 || len >= sizeof f->common || strncasecmp(word, f->prefix, f->prefix_len) != 0) return;
    if (strchr(word, ' ') != NULL || is_listed(f, word)) return;
    if (f->n++ == 0) {
        memcpy(f->common, word, len + 1);
    } else {
        size_t same = 0;
        while (f->common[same] != 0 && f->common[same] == word[same]) same++;
        f->common[same] = 0;
    }
    const size_t need = len + (f->list_len > 0);
    if (f->list_len + need + 1 > f->list_bytes) return; // the shared begin goes on all the same
    if (f->list_len > 0) f->list[f->list_len++] = ' ';
    memcpy(f->list + f->list_len, word, len + 1);
    f->list_len += len;
}

static void add_names(found *f, const tide_tui_state *st) {
    const tide_items *items = tide_subject_items(st->a);
    const size_t n = items == NULL ? 0 : items->n_sites < MAX_NAMES ? items->n_sites : MAX_NAMES;
    for (size_t i = 0; i < n; i++) add(f, items->sites[i].name);
}

static void add_steps(found *f, const tide_tui_state *st) {
    const tide_subject_facts *facts = tide_subject_get_facts(st->a);
    for (size_t i = 0; i < facts->n_steps && i < MAX_NAMES; i++) add(f, facts->step_names[i]);
}

static void add_words(found *f, tide_tui_action action) {
    const char *words[MAX_WORDS];
    const size_t n = tide__words_of(action, words, MAX_WORDS);
    for (size_t i = 0; i < n; i++) add(f, words[i]);
}

/// Values of settings, by the name of the setting.
static void add_values(found *f, const char *setting) {
    static const struct {
        const char *setting;
        tide_tui_action action;
    } lists[] = {{"sort ", TIDE_TUI_SORT}, {"group ", TIDE_TUI_GROUP}, {"kind ", TIDE_TUI_KIND}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strncmp(setting, lists[i].setting, strlen(lists[i].setting)) == 0) {
            add_words(f, lists[i].action);
            return;
        }
    }
    if (strncmp(setting, "capacity ", 9) == 0) {
        add(f, "none");
    } else {
        add(f, "on");
        add(f, "off");
    }
}

/// Conditions of a filter; behind "kind=" the kinds.
static void add_conditions(found *f, const tide_tui_state *st) {
    static const char *const words[] = {
        "name~", "owner~",     "kind=",  "role=",      "device=", "allocator=", "fill=", "size>=",
        "size<", "life>=",     "life<",  "begin>=",    "begin<",  "end>=",      "end<",  "alive@cursor",
        "alias", "alive@peak", "leaked", "persistent", "top=",    "planned"};
    if (strncmp(f->prefix, "kind=", 5) == 0) {
        for (int i = 0; i < TIDE_N_KINDS; i++) {
            char word[64];
            (void)snprintf(word, sizeof word, "kind=%s", tide_memory_kind_name((tide_memory_kind)i));
            add(f, word);
        }
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(f, words[i]);
    if (f->prefix_len > 0 && f->n == 0) add_names(f, st);
}

/// Where the next word of `text` begins: behind this one and its blanks.
static const char *next_word(const char *text) {
    text += strcspn(text, " ");
    return text + strspn(text, " ");
}

static void add_arguments(found *f, const tide_tui_state *st, const char *line, size_t word) {
    char name[64] = "";
    const size_t n = strcspn(line, " ");
    if (n < sizeof name) memcpy(name, line, n);
    const tide_tui_action action = tide_tui_action_named(name);
    if (action == TIDE_TUI_FILTER) {
        add_conditions(f, st);
    } else if (action == TIDE_TUI_GOTO && word == 1) {
        add_steps(f, st);
        add_names(f, st);
    } else if (action == TIDE_TUI_SEARCH || (action == TIDE_TUI_EDIT && word > 1)) {
        add_names(f, st);
    } else if (action == TIDE_TUI_SET && word == 2) {
        add_values(f, next_word(line));
    } else if (word == 1) {
        add_words(f, action);
    }
}

/// The word before the cursor gives way to what all candidates share.
static void put(tide_tui_state *st, size_t from, const found *f) {
    char tail[TIDE_TUI_MAX_PROMPT], last = f->common[strlen(f->common) - 1];
    (void)snprintf(tail, sizeof tail, "%s", st->text + st->text_at);
    const char *blank = f->n == 1 && strchr("=~<>@", last) == NULL ? " " : "";
    const size_t len = from + strlen(f->common) + strlen(blank);
    if (len + strlen(tail) >= sizeof st->text) return;
    (void)snprintf(st->text + from, sizeof st->text - from, "%s%s%s", f->common, blank, tail);
    st->text_at = len;
}

void tide_tui_complete(tide_tui_state *st) {
    char line[TIDE_TUI_MAX_PROMPT], prefix[TIDE_TUI_MAX_PROMPT];
    (void)snprintf(line, sizeof line, "%.*s", (int)st->text_at, st->text);
    size_t from = st->text_at, word = 0;
    while (from > 0 && line[from - 1] != ' ') from--;
    for (const char *at = line + strspn(line, " "); at < line + from; at = next_word(at)) word++;
    (void)snprintf(prefix, sizeof prefix, "%s", line + from);

    found f = {
        .prefix = prefix, .prefix_len = strlen(prefix), .list = st->completions, .list_bytes = sizeof st->completions};
    st->completions[0] = 0;
    if (st->prompt == TIDE_TUI_PROMPT_FILTER) {
        add_conditions(&f, st);
    } else if (st->prompt == TIDE_TUI_PROMPT_SEARCH) {
        add_names(&f, st);
    } else if (st->prompt == TIDE_TUI_PROMPT_GOTO) {
        add_steps(&f, st);
        add_names(&f, st);
    } else if (st->prompt == TIDE_TUI_PROMPT_COMMAND && word == 0) {
        const tide_tui_binding *bindings;
        const size_t n = tide_tui_bindings(&bindings);
        for (size_t i = 0; i < n; i++) add(&f, bindings[i].name);
    } else if (st->prompt == TIDE_TUI_PROMPT_COMMAND) {
        add_arguments(&f, st, line + strspn(line, " "), word);
    }
    if (f.n == 0) return;
    if (f.common[0] != 0 && strlen(f.common) >= f.prefix_len) put(st, from, &f);
    if (f.n == 1) st->completions[0] = 0;
}
