// SPDX-License-Identifier: MIT
//
// Lines behind ':', with settings, and the completion of what is typed into the bottom line. The words are those of the
// key table (tui/state/keys.h); a number alone goes to that step or time. See actions.h.
//
//     :edit in-place conv|      |: cursor; "conv" is completed by names of tensors
//      ^    ^        ^ word 2
//      |    word 1
//      word 0
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/nearest.h"
#include "tui/actions_internal.h"

enum { MAX_WORDS = 128 };

/// "; did you mean 'x'?" or, where nothing is near, the words that there are.
static void say_unknown(tide__action *act, const char *what, const char *word, const char *const *words, size_t n) {
    const char *near = tide_nearest_of(word, words, n);
    if (near != NULL) {
        tide_tui_say(act->st, true, "there is no %s '%s': did you mean '%s'?", what, word, near);
        return;
    }
    char list[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < n && n <= 12; i++) {
        const int more = snprintf(list + len, sizeof list - len, "%s%s", i > 0 ? ", " : "", words[i]);
        if (more < 0 || (size_t)more >= sizeof list - len) break;
        len += (size_t)more;
    }
    tide_tui_say(act->st, true, "there is no %s '%s'%s%s", what, word, len > 0 ? ": there are " : " (? lists them)",
                 list);
}

/// Index of `word` among `n` words, case ignored; -1: there is none, and the error is shown.
static int word_index(tide__action *act, const char *what, const char *word, const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (words[i] != NULL && strcasecmp(words[i], word) == 0) return (int)i;
    }
    say_unknown(act, what, word, words, n);
    return -1;
}

static size_t words_of(tide_tui_action action, const char **words, size_t max) {
    size_t n = 0;
#define ADD(count, get)                                                                                                \
    for (int i = 0; i < (int)(count) && n < max; i++) words[n++] = get
    switch (action) {
    case TIDE_TUI_VIEW_1:
        ADD(TIDE_TUI_N_PRESETS, tide_tui_preset_name((tide_tui_preset)i));
        break;
    case TIDE_TUI_PANE:
        ADD(TIDE_TUI_N_PANES, tide_tui_pane_name((tide_tui_pane)i));
        break;
    case TIDE_TUI_SORT:
        ADD(TIDE_N_ROW_SORTS, tide_row_sort_name((tide_row_sort)i));
        break;
    case TIDE_TUI_GROUP:
        ADD(TIDE_N_ROW_GROUPS, tide_row_group_name((tide_row_group)i));
        break;
    case TIDE_TUI_KIND:
        ADD(TIDE_N_KINDS, tide_memory_kind_name((tide_memory_kind)i));
        if (n < max) words[n++] = "all";
        break;
    case TIDE_TUI_BANDS:
        ADD(TIDE_N_BAND_BYS, tide_band_by_name((tide_band_by)i));
        if (n < max) words[n++] = "off";
        break;
    case TIDE_TUI_EDIT:
        ADD(TIDE_N_EDITS, tide_edit_name((tide_edit_kind)i));
        break;
    case TIDE_TUI_SET:
        ADD(TIDE_TUI_N_SETTINGS, tide_tui_setting_name((tide_tui_setting)i));
        break;
    default:
        break;
    }
#undef ADD
    return n;
}

/// One of the words of an action. -1: it is none, and the error is shown.
static int choose(tide__action *act, tide_tui_action action, const char *what, const char *word) {
    const char *words[MAX_WORDS];
    return word_index(act, what, word, words, words_of(action, words, MAX_WORDS));
}

// ---- arguments ----

static void view(tide__action *act, const char *text) {
    if (text[0] >= '1' && text[0] <= '5' && text[1] == 0) {
        tide__action_do(act, (tide_tui_action)(TIDE_TUI_VIEW_1 + (text[0] - '1')));
        return;
    }
    const int preset = choose(act, TIDE_TUI_VIEW_1, "view", text);
    if (preset >= 0) tide__action_do(act, (tide_tui_action)((int)TIDE_TUI_VIEW_1 + preset));
}

/// "3 9", "1ms 2.5ms". False: the error is shown.
static bool two_times(tide__action *act, const char *text, int64_t *from, int64_t *to) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    char word[64];
    tide_error err = TIDE_ERROR_INIT;
    if (!tide__parse_time(f, tide__take_word(&text, word, sizeof word), from, &err) ||
        !tide__parse_time(f, tide__take_word(&text, word, sizeof word), to, &err)) {
        if (word[0] == 0) (void)TIDE_FAIL(&err, TIDE_ERR_INVALID, "a range has two ends, as in 'range 3 9'");
        tide__action_fail(act, &err);
    } else if (*text != 0) {
        tide_tui_say(act->st, true, "a range has two ends: '%s' is too much", text);
    } else {
        return true;
    }
    return false;
}

static void range(tide__action *act, const char *text) {
    int64_t from, to;
    if (two_times(act, text, &from, &to)) tide__set_range(act, from, to);
}

/// Exactly that window, without a margin.
static void fit(tide__action *act, const char *text) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    int64_t from, to;
    if (!two_times(act, text, &from, &to)) return;
    if (from > to) {
        const int64_t other = from;
        from = to;
        to = other;
    }
    if (from < f->begin) from = f->begin;
    if (to > f->end) to = f->end;
    if (from >= to) {
        tide_tui_say(act->st, true, "there is nothing between these times");
        return;
    }
    act->st->window = (tide_tui_window){from, to};
    act->st->is_fitted = false;
}

static void mark(tide__action *act, const char *text) {
    const bool has_letter = text[0] >= 'a' && text[0] <= 'z' && (text[1] == 0 || text[1] == ' ');
    const char name = has_letter ? text[0] : 0;
    if (has_letter) text++;
    while (*text == ' ') text++;
    if (tide__mark(act, name, text)) {
        const tide_tui_mark *made = &act->st->marks[act->st->n_marks - 1];
        tide_tui_say(act->st, false, "mark %c%s%s", made->name, made->text[0] != 0 ? ": " : "", made->text);
    }
}

static void jump(tide__action *act, const char *text) {
    if (text[1] != 0) {
        tide_tui_say(act->st, true, "a mark is one letter, not '%s'", text);
    } else {
        tide__jump(act, text[0]);
    }
}

static void pane(tide__action *act, const char *text) {
    const int chosen = choose(act, TIDE_TUI_PANE, "pane", text);
    if (chosen >= 0) act->st->focus = (tide_tui_pane)chosen;
}

static void kind(tide__action *act, const char *text) {
    const int chosen = choose(act, TIDE_TUI_KIND, "kind", text);
    if (chosen >= 0) act->st->curve_kind = chosen < TIDE_N_KINDS ? chosen : -1;
}

static void bands(tide__action *act, const char *text) {
    const int chosen = choose(act, TIDE_TUI_BANDS, "sort of bands", text);
    if (chosen >= 0) act->st->bands_by = chosen < (int)TIDE_N_BAND_BYS ? chosen : -1;
}

static void sort(tide__action *act, const char *text) {
    if (tide__sort_as_told(act, text)) return;
    const int chosen = choose(act, TIDE_TUI_SORT, "order", text);
    if (chosen < 0) return;
    act->st->sort = (tide_row_sort)chosen;
    tide__rows_changed(act);
}

static void group(tide__action *act, const char *text) {
    const int chosen = choose(act, TIDE_TUI_GROUP, "grouping", text);
    if (chosen >= 0) tide__set_group(act, (tide_row_group)chosen);
}

static void search(tide__action *act, const char *text) { tide__search(act, text); }
static void filter(tide__action *act, const char *text) { (void)tide__filter(act, text); }
static void open_b(tide__action *act, const char *text) {
    if (tide__names_runs(text)) {
        tide__compare_runs(act, text);
    } else {
        tide__action_effect(act, TIDE_TUI_EFFECT_OPEN_B, text);
    }
}
static void go_to(tide__action *act, const char *text) {
    if (strncmp(text, "exec:", 5) == 0) {
        tide__go_to_execution(act, text);
    } else if (strcmp(text, "fragmented") == 0) {
        tide__go_to_worst(act);
    } else {
        tide__go_to(act, text);
    }
}
static void save_plan(tide__action *act, const char *text) {
    if (act->st->n_edits == 0) {
        tide_tui_say(act->st, true, "nothing was changed: an edit (E) makes a plan to save");
    } else {
        tide__action_effect(act, TIDE_TUI_EFFECT_SAVE_PLAN, text);
    }
}
static void export_view(tide__action *act, const char *text) { tide__action_effect(act, TIDE_TUI_EFFECT_EXPORT, text); }
static void sql(tide__action *act, const char *text) { tide__action_effect(act, TIDE_TUI_EFFECT_SQL, text); }

// ---- settings ----

/// "on", "off", "" (toggle). False: none of them.
static bool read_switch(const char *value, bool now, bool *out) {
    static const char *const words[] = {"off", "on", "no", "yes", "0", "1", "false", "true"};
    *out = !now;
    if (*value == 0) return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(words[i], value) != 0) continue;
        *out = i % 2 == 1;
        return true;
    }
    return false;
}

static void set_switch(tide__action *act, tide_tui_setting setting, const char *value) {
    tide_tui_state *st = act->st;
    bool now = false, to;
    if (setting == TIDE_TUI_SETTING_REVERSE) now = st->reverse;
    if (setting == TIDE_TUI_SETTING_PERSISTENT) now = !st->hides_persistent;
    if (setting == TIDE_TUI_SETTING_WEIGHTS) now = !st->folds_weights;
    if (setting == TIDE_TUI_SETTING_FILTERS) now = !st->filters_off;
    if (setting == TIDE_TUI_SETTING_FOLLOW) now = st->follows;
    if (setting == TIDE_TUI_SETTING_MOUSE) now = st->mouse;
    if (!read_switch(value, now, &to)) {
        tide_tui_say(st, true, "%s is on or off, not '%s'", tide_tui_setting_name(setting), value);
        return;
    }
    if (to == now) return;
    if (setting == TIDE_TUI_SETTING_WEIGHTS) {
        tide__action_do(act, TIDE_TUI_WEIGHTS);
    } else if (setting == TIDE_TUI_SETTING_FOLLOW) {
        tide__action_do(act, TIDE_TUI_FOLLOW);
    } else if (setting == TIDE_TUI_SETTING_MOUSE) {
        st->mouse = to;
        tide__action_effect(act, TIDE_TUI_EFFECT_MOUSE, "");
    } else {
        if (setting == TIDE_TUI_SETTING_REVERSE) st->reverse = to;
        if (setting == TIDE_TUI_SETTING_PERSISTENT) st->hides_persistent = !to;
        if (setting == TIDE_TUI_SETTING_FILTERS) st->filters_off = !to;
        tide__rows_changed(act);
    }
}

static void set_capacity(tide__action *act, const char *value) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t bytes = 0;
    if (*value == 0) {
        tide__open_prompt(act, TIDE_TUI_PROMPT_COMMAND, "set capacity ");
    } else if (strcasecmp(value, "none") != 0 && tide_parse_bytes(value, &bytes, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
    } else {
        act->st->capacity_bytes = bytes;
    }
}

/// The pool that is selected, in the view that shows pools.
/// The next value when none is given, else the one that is named.
static void set_word(tide__action *act, tide_tui_action action, void (*set_to)(tide__action *act, const char *text),
                     const char *value) {
    if (*value == 0) {
        tide__action_do(act, action);
    } else {
        set_to(act, value);
    }
}

/// The order of rows, whatever has the focus.
static void set_sort(tide__action *act, const char *text) {
    const tide_tui_pane focus = act->st->focus;
    act->st->focus = TIDE_TUI_PANE_GANTT;
    if (*text == 0)
        tide__next_sort(act);
    else
        sort(act, text);
    act->st->focus = focus;
}

static void set_one(tide__action *act, tide_tui_setting setting, const char *value) {
    if (setting == TIDE_TUI_SETTING_CAPACITY) {
        set_capacity(act, value);
    } else if (setting == TIDE_TUI_SETTING_SORT) {
        set_sort(act, value);
    } else if (setting == TIDE_TUI_SETTING_GROUP) {
        set_word(act, TIDE_TUI_GROUP, group, value);
    } else if (setting == TIDE_TUI_SETTING_KIND) {
        set_word(act, TIDE_TUI_KIND, kind, value);
    } else if (setting == TIDE_TUI_SETTING_BANDS) {
        set_word(act, TIDE_TUI_BANDS, bands, value);
    } else {
        set_switch(act, setting, value);
    }
}

void tide__toggle_setting(tide__action *act, tide_tui_setting setting) { set_one(act, setting, ""); }

static void set_named(tide__action *act, const char *name, const char *value) {
    const char *names[TIDE_TUI_N_SETTINGS];
    for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) {
        names[i] = tide_tui_setting_name((tide_tui_setting)i);
        if (strcasecmp(names[i], name) != 0) continue;
        set_one(act, (tide_tui_setting)i, value);
        return;
    }
    const char *near = tide_nearest_of(name, names, TIDE_TUI_N_SETTINGS);
    tide_tui_say(act->st, true, "there is no setting '%s'%s%s%s", name, near != NULL ? ": did you mean " : "",
                 near != NULL ? near : "", near != NULL ? "?" : "");
}

static void set(tide__action *act, const char *text) {
    char name[64];
    (void)tide__take_word(&text, name, sizeof name);
    set_named(act, name, text);
}

// ---- the table of commands with an argument ----

/// Functions that take an argument; actions that are not here take none.
static const struct {
    tide_tui_action action;
    void (*run)(tide__action *act, const char *text);
} with_argument[] = {
    {TIDE_TUI_GOTO, go_to},
    {TIDE_TUI_RUN, tide__show_run},
    {TIDE_TUI_VIEW_1, view},
    {TIDE_TUI_PANE, pane},
    {TIDE_TUI_VIEW_5, open_b},
    {TIDE_TUI_KIND, kind},
    {TIDE_TUI_BANDS, bands},
    {TIDE_TUI_SEARCH, search},
    {TIDE_TUI_FILTER, filter},
    {TIDE_TUI_SORT, sort},
    {TIDE_TUI_GROUP, group},
    {TIDE_TUI_ROOT, tide__root_stacks_named},
    {TIDE_TUI_RANGE, range},
    {TIDE_TUI_FIT, fit},
    {TIDE_TUI_MARK, mark},
    {TIDE_TUI_JUMP, jump},
    {TIDE_TUI_EDIT, tide__edit},
    {TIDE_TUI_EXPORT, export_view},
    {TIDE_TUI_SAVE_PLAN, save_plan},
    {TIDE_TUI_SQL, sql},
    {TIDE_TUI_SET, set},
    {TIDE_TUI_REQUEST, tide__request},
};

static void do_command(tide__action *act, tide_tui_action action, const char *argument) {
    if (*argument == 0) {
        // Without conditions the command removes a filter; the key opens a prompt.
        if (action == TIDE_TUI_FILTER) {
            (void)tide__filter(act, "");
        } else if (action == TIDE_TUI_MARK) {
            mark(act, "");
        } else {
            tide__action_do(act, action);
        }
        return;
    }
    for (size_t i = 0; i < sizeof with_argument / sizeof with_argument[0]; i++) {
        if (with_argument[i].action != action) continue;
        with_argument[i].run(act, argument);
        return;
    }
    tide_tui_say(act->st, true, "'%s' takes nothing behind it", tide_tui_binding_of(action)->name);
}

void tide__action_line(tide__action *act, const char *line) {
    const char *text = line;
    char word[64], rest[TIDE_TUI_MAX_PROMPT];
    while (*text == ' ' || *text == ':') text++;
    if (*text == 0) return;
    const bool is_number = *text >= '0' && *text <= '9';
    if (!is_number) (void)tide__take_word(&text, word, sizeof word);
    (void)snprintf(rest, sizeof rest, "%s", text);
    for (size_t n = strlen(rest); n > 0 && (rest[n - 1] == ' ' || rest[n - 1] == '\r'); n--) rest[n - 1] = 0;
    if (is_number) {
        tide__go_to(act, rest);
        return;
    }
    const tide_tui_action action = tide_tui_action_named(word);
    if (action != TIDE_TUI_NOTHING) {
        do_command(act, action, rest);
        return;
    }
    const tide_tui_binding *bindings;
    const size_t n = tide_tui_bindings(&bindings);
    const char *names[TIDE_TUI_N_ACTIONS];
    for (size_t i = 0; i < n; i++) names[i] = bindings[i].name;
    say_unknown(act, "command", word, names, n);
}

tide_tui_result tide_tui_command(tide_tui_state *st, const tide_tui_scene *scene, const char *line) {
    tide__action act = tide__action_begin(st, scene);
    st->click_x = st->click_y = -1;
    tide__action_line(&act, line);
    return tide__action_end(&act);
}

// ---- completion ----

enum { MAX_NAMES = 200000 };

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
    if (f->list_len + need + 1 > f->list_bytes) return; // the common prefix is kept all the same
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
    const size_t n = words_of(action, words, MAX_WORDS);
    for (size_t i = 0; i < n; i++) add(f, words[i]);
}

/// Values of settings, by the name of the setting.
static void add_values(found *f, const char *setting) {
    static const struct {
        const char *setting;
        tide_tui_action action;
    } lists[] = {
        {"sort ", TIDE_TUI_SORT}, {"group ", TIDE_TUI_GROUP}, {"kind ", TIDE_TUI_KIND}, {"bands ", TIDE_TUI_BANDS}};
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

/// Columns of the list that has the focus, else orders of rows.
static void add_orders(found *f, tide_tui_state *st, const tide_tui_scene *scene, size_t word) {
    const tide__action act = {.st = st, .scene = scene};
    const char *words[MAX_WORDS];
    const size_t n = word == 1 ? tide__sort_words(&act, words, MAX_WORDS) : 0;
    for (size_t i = 0; i < n; i++) add(f, words[i]);
    if (n == 0 && word == 1) add_words(f, TIDE_TUI_SORT);
}

/// Where the next word of `text` begins: behind this one and its blanks.
static const char *next_word(const char *text) {
    text += strcspn(text, " ");
    return text + strspn(text, " ");
}

static void add_arguments(found *f, tide_tui_state *st, const tide_tui_scene *scene, const char *line, size_t word) {
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
    } else if (action == TIDE_TUI_SORT) {
        add_orders(f, st, scene, word);
    } else if (word == 1) {
        add_words(f, action);
    }
}

/// The word before the cursor is replaced by the common prefix of all candidates.
static void put(tide_tui_state *st, size_t from, const found *f) {
    char tail[TIDE_TUI_MAX_PROMPT], last = f->common[strlen(f->common) - 1];
    (void)snprintf(tail, sizeof tail, "%s", st->text + st->text_at);
    const char *blank = f->n == 1 && strchr("=~<>@", last) == NULL ? " " : "";
    const size_t len = from + strlen(f->common) + strlen(blank);
    if (len + strlen(tail) >= sizeof st->text) return;
    (void)snprintf(st->text + from, sizeof st->text - from, "%s%s%s", f->common, blank, tail);
    st->text_at = len;
}

void tide_tui_complete(tide_tui_state *st, const tide_tui_scene *scene) {
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
        add_arguments(&f, st, scene, line + strspn(line, " "), word);
    }
    if (f.n == 0) return;
    if (f.common[0] != 0 && strlen(f.common) >= f.prefix_len) put(st, from, &f);
    if (f.n == 1) st->completions[0] = 0;
}
