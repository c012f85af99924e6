// SPDX-License-Identifier: MIT
//
// The lines around the panes. See draw.h.
//
// At the top what is looked at, and what must be known of it:
//
//     smallnet: planned, greedy_by_size                          PAUSED   peak 480.00 KiB
//     filter size>=64k | 6 of 10 hidden | plan 512.00 KiB | lower bound 480.00 KiB | gap 6.7 % | ...
//
// Facts are written in full where all fit. Else those that other panes show too are left out, the others are shortened,
// and then left out by rank. Filters, what is hidden, errors and the gap always stay; on screens without the second
// line they stand in the first.
//
// At the bottom a prompt with its cursor and completions, a message, or the keys that matter in the pane that has the
// focus, as many as fit:
//
//     :filter size>1M_    size>1MiB  size>1M  ...
//     error: there is no order 'siez'; did you mean 'size'?
//     ? help   q quit   p peak   / search   + zoom-in   Enter open                                 seq=12 idle
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

// ---- the lines at the top ----

enum { MAX_FACTS = 20, FACT = 640, GAP = 3, RANK_MINOR = 7 };

typedef struct fact {
    char full[FACT], brief[FACT];
    tide_tui_role role;
    int rank; ///< 0: stays always
    bool is_brief;
} fact;

typedef struct facts {
    fact items[MAX_FACTS];
    int n;
} facts;

static fact *add(facts *f, tide_tui_role role, int rank) {
    fact *out = &f->items[f->n < MAX_FACTS ? f->n++ : MAX_FACTS - 1];
    *out = (fact){.role = role, .rank = rank};
    return out;
}

/// A fact whose short form has a shorter name and a shorter number.
static void add_bytes(facts *f, const char *name, const char *brief, uint64_t bytes, tide_tui_role role, int rank) {
    char size[TIDE_TUI_WORD];
    fact *out = add(f, role, rank);
    snprintf(out->full, FACT, "%s %s", name, tide_tui_bytes(bytes, size, sizeof size));
    snprintf(out->brief, FACT, "%s %s", brief, tide_tui_format_short(bytes, size, sizeof size));
}

static void add_text(facts *f, const char *full, const char *brief, tide_tui_role role, int rank) {
    fact *out = add(f, role, rank);
    snprintf(out->full, FACT, "%s", full);
    snprintf(out->brief, FACT, "%s", brief);
}

// ---- facts ----

/// Rows that are hidden beside folded weights.
static bool says_hidden(const tide_tui_scene *s) {
    const tide_tui_state *st = s->state;
    const bool is_fold_alone = st->folds_weights && st->n_filters == 0 && !st->hides_persistent && !st->is_opening;
    return s->rows != NULL && s->rows->n_hidden > 0 && !is_fold_alone;
}

static void add_filters(facts *f, const tide_tui_scene *s) {
    const tide_tui_state *st = s->state;
    char n[TIDE_TUI_WORD], of[TIDE_TUI_WORD];
    if (st->n_filters > 0) {
        fact *out = add(f, TIDE_TUI_ROLE_KEY, 0);
        size_t at = (size_t)snprintf(out->full, FACT, "%s", st->filters_off ? "filter off:" : "filter");
        for (size_t i = 0; i < st->n_filters && at < FACT; i++)
            at += (size_t)snprintf(out->full + at, FACT - at, "%s %s", i > 0 ? " &" : "", st->filters[i]);
        memcpy(out->brief, out->full, FACT);
        if (st->n_filters > 1)
            snprintf(out->brief, FACT, "%zu filters%s", st->n_filters, st->filters_off ? " off" : "");
    }
    if (st->folds_weights) {
        add_bytes(f, "weights folded:", "weights folded", tide_tui_weights_bytes(s->a), TIDE_TUI_ROLE_KEY, 0);
    }
    const size_t hidden = s->rows != NULL ? s->rows->n_hidden : 0;
    if (says_hidden(s)) {
        fact *out = add(f, TIDE_TUI_ROLE_KEY, 0);
        snprintf(out->full, FACT, "%s of %s %s hidden%s", tide_tui_exact(hidden, n, sizeof n),
                 tide_tui_exact(s->a->n_items, of, sizeof of), tide_tui_item_word(s->a, s->a->n_items),
                 st->hides_persistent ? ", persistent ones too" : "");
        if (st->is_opening) snprintf(out->full, FACT, "alive at the peak, %s others: @", n);
        snprintf(out->brief, FACT, st->is_opening ? "@ %s others" : "%s hidden", n);
    } else if (st->hides_persistent) {
        add_text(f, "persistent hidden", "persistent hidden", TIDE_TUI_ROLE_KEY, 0);
    }
}

static void add_recording_error(facts *f, const tide_tui_scene *s) {
    char text[FACT], n[TIDE_TUI_WORD];
    if (s->a->trouble[0] != '\0') {
        snprintf(text, sizeof text, "%.*s", (int)strcspn(s->a->trouble, ":"), s->a->trouble);
        add_text(f, s->a->trouble, s->a->n_dynamic > 0 ? text : s->a->trouble, TIDE_TUI_ROLE_ERROR, 0);
    }
    if (s->a->n_lost > 0) {
        snprintf(text, sizeof text, "%s events lost", tide_tui_exact(s->a->n_lost, n, sizeof n));
        add_text(f, text, text, TIDE_TUI_ROLE_ERROR, 0);
    }
    if (s->a->n_problems > 0) {
        snprintf(text, sizeof text, "%s problem%s in the trace", tide_tui_exact(s->a->n_problems, n, sizeof n),
                 s->a->n_problems == 1 ? "" : "s");
        add_text(f, text, text, TIDE_TUI_ROLE_ERROR, 1);
    }
}

static void add_range(facts *f, const tide_tui_scene *s) {
    if (!s->state->shows_range) return;
    char span[TIDE_TUI_WORD], size[TIDE_TUI_WORD], left[TIDE_TUI_WORD];
    tide_tui_format_span(s->a, s->state->range_begin, s->state->range_end, span, sizeof span);
    fact *out = add(f, TIDE_TUI_ROLE_KEY, 1);
    snprintf(out->brief, FACT, "range %s", span);
    const tide_tui_range_facts *r = &s->range;
    tide_tui_bytes(r->peak_bytes, size, sizeof size);
    if (r->known) {
        snprintf(out->full, FACT, "range %s: peak %s, +%zu -%zu, %s left", span, size, r->n_allocs, r->n_frees,
                 tide_tui_bytes(r->left_bytes, left, sizeof left));
    } else if (r->peak_bytes > 0) {
        snprintf(out->full, FACT, "range %s: peak %s", span, size);
    } else {
        memcpy(out->full, out->brief, FACT);
    }
}

static void add_gap(facts *f, const tide_subject_facts *a) {
    char text[64];
    if (a->lower_bound_bytes == 0) {
        add_text(f, "gap unknown", "gap ?", TIDE_TUI_ROLE_TEXT, 0);
        return;
    }
    const double gap = ((double)a->plan_bytes - (double)a->lower_bound_bytes) / (double)a->lower_bound_bytes;
    snprintf(text, sizeof text, "gap %.1f %%", 100.0 * gap);
    fact *out = add(f, gap > 0 ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_GOOD, 0);
    snprintf(out->full, FACT, "%s%s", text, a->proven ? " (proven)" : "");
    snprintf(out->brief, FACT, "%s", text);
}

static void add_plan(facts *f, const tide_tui_scene *s) {
    const tide_subject_facts *a = s->a;
    char text[FACT], size[TIDE_TUI_WORD];
    if (!a->has_plan) {
        add_text(f, "no plan", "no plan", TIDE_TUI_ROLE_DIM, 4);
        return;
    }
    add_bytes(f, "plan", "plan", a->plan_bytes, TIDE_TUI_ROLE_PLAN, 1);
    add_bytes(f, "lower bound", "bound", a->lower_bound_bytes, TIDE_TUI_ROLE_BOUND, 2);
    add_gap(f, a);
    const tide_levels l = tide_tui_scene_levels(s);
    if (a->n_contexts > 1) {
        snprintf(text, sizeof text, "in %" PRIu64 " contexts", a->n_contexts);
        add_text(f, text, text, TIDE_TUI_ROLE_TEXT, 3);
    }
    if (l.known && l.below > 0) {
        snprintf(text, sizeof text, "+ %s %s", tide_tui_bytes(l.below, size, sizeof size), l.words);
        add_text(f, text, text, TIDE_TUI_ROLE_TEXT, 6);
    }
}

/// What has to fit: the highest of the curve, what allocators held at most, and of a plan the whole buffer on what lies
/// below it.
static void add_capacity(facts *f, const tide_tui_scene *s) {
    const uint64_t capacity = s->state->capacity_bytes;
    if (capacity == 0) return;
    const tide_subject_facts *a = s->a;
    uint64_t need = a->levels.known && a->levels.plan > a->peak_bytes ? a->levels.plan : a->peak_bytes;
    if (s->whole_reserved > need) need = s->whole_reserved;
    char size[TIDE_TUI_WORD], more[TIDE_TUI_WORD];
    fact *out = add(f, need <= capacity ? TIDE_TUI_ROLE_GOOD : TIDE_TUI_ROLE_ERROR, 1);
    tide_tui_bytes(capacity, size, sizeof size);
    if (need <= capacity && a->n_dynamic > 0) {
        out->role = TIDE_TUI_ROLE_TEXT;
        snprintf(out->full, FACT, "fits %s without what is sized while running", size);
        snprintf(out->brief, FACT, "fits %s?", tide_tui_format_short(capacity, more, sizeof more));
    } else if (need <= capacity) {
        snprintf(out->full, FACT, "fits %s", size);
        snprintf(out->brief, FACT, "fits %s", tide_tui_format_short(capacity, more, sizeof more));
    } else {
        snprintf(out->full, FACT, "does not fit %s: %s too much", size,
                 tide_tui_bytes(need - capacity, more, sizeof more));
        snprintf(out->brief, FACT, "over by %s", more);
    }
}

static void add_rest(facts *f, const tide_tui_scene *s) {
    const tide_tui_state *st = s->state;
    const tide_subject_facts *a = s->a;
    char text[FACT], word[TIDE_TUI_WORD];
    if (a->peak_bytes > 0) {
        snprintf(text, sizeof text, "peak at %s", tide_tui_when(a, a->peak.t, word, sizeof word));
        add_text(f, text, text, TIDE_TUI_ROLE_PEAK, 3);
    }
    if (st->curve_kind >= 0) {
        snprintf(text, sizeof text, "%s only", tide_memory_kind_name((tide_memory_kind)st->curve_kind));
        add_text(f, text, text, TIDE_TUI_ROLE_KEY, 1);
    }
    if (!says_hidden(s)) {
        snprintf(text, sizeof text, "%s %s", tide_tui_exact(a->n_items, word, sizeof word),
                 tide_tui_item_word(a, a->n_items));
        add_text(f, text, text, TIDE_TUI_ROLE_TEXT, 5);
    }
    if (st->group != TIDE_ROW_GROUP_NONE) {
        snprintf(text, sizeof text, "by %s, grouped by %s", tide_row_sort_name(tide_tui_row_sort(st)),
                 tide_row_group_name(st->group));
    } else {
        snprintf(text, sizeof text, "by %s%s", tide_row_sort_name(tide_tui_row_sort(st)),
                 st->reverse ? ", reversed" : "");
    }
    add_text(f, text, text, TIDE_TUI_ROLE_DIM, 8);
    if (a->has_plan) add_bytes(f, "naive", "naive", a->naive_bytes, TIDE_TUI_ROLE_DIM, 7);
    tide_tui_format_span(a, a->begin, a->end, word, sizeof word);
    add_text(f, word, word, TIDE_TUI_ROLE_DIM, 9);
}

// ---- fitting facts into the line ----

static const char *text_of(const fact *f) { return f->is_brief ? f->brief : f->full; }

/// Columns of the facts from `first` on.
static int width_of(const tide_tui_view *v, const facts *f, int first) {
    int sum = 0;
    for (int i = first; i < f->n; i++) sum += tide_tui_text_width(v->glyphs, text_of(&f->items[i])) + (i > 0 ? GAP : 0);
    return sum;
}

/// The last fact of the highest rank, of those that can be shortened if `brief`; -1: none.
static int worst_of(const facts *f, bool brief) {
    int worst = -1;
    for (int i = 0; i < f->n; i++) {
        if (brief && f->items[i].is_brief) continue;
        if (worst < 0 || f->items[i].rank >= f->items[worst].rank) worst = i;
    }
    return worst;
}

static bool drop_one(facts *f, int lowest) {
    const int i = worst_of(f, false);
    if (i < 0 || f->items[i].rank < lowest) return false;
    memmove(&f->items[i], &f->items[i + 1], (size_t)(f->n - i - 1) * sizeof f->items[0]);
    f->n--;
    return true;
}

static bool shorten_one(facts *f) {
    const int i = worst_of(f, true);
    if (i < 0) return false;
    f->items[i].is_brief = true;
    return true;
}

/// Facts that other panes show are left out first; then facts are shortened, then left out, the highest rank first.
static void fit(const tide_tui_view *v, facts *f, int room) {
    while (width_of(v, f, 0) > room) {
        if (!drop_one(f, RANK_MINOR) && !shorten_one(f) && !drop_one(f, 1)) break;
    }
}

static void draw_facts(const tide_tui_view *v, tide_tui_rect r, facts *f) {
    const int end = r.x + r.w - 1;
    int x = r.x + 1;
    fit(v, f, r.w - 2);
    for (int i = 0; i < f->n && x < end; i++) {
        if (i > 0) {
            if (x + GAP >= end) break;
            tide_tui_put(v->grid, x + 1, r.y, v->glyphs->separator, TIDE_TUI_ROLE_DIM);
            x += GAP;
        }
        // Leaves room for the facts behind it: a long filter must not hide the gap.
        int room = end - x - width_of(v, f, i + 1);
        if (room < 12) room = 12;
        if (room > end - x) room = end - x;
        x += tide_tui_text(v, x, r.y, room, text_of(&f->items[i]), TIDE_TUI_CUT_MIDDLE, f->items[i].role);
    }
}

static void draw_summary(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    facts f = {.n = 0};
    if (s->layout->summary.h <= 0) return;
    add_recording_error(&f, s);
    add_filters(&f, s);
    add_range(&f, s);
    add_capacity(&f, s);
    add_plan(&f, s);
    add_rest(&f, s);
    draw_facts(v, s->layout->summary, &f);
}

/// Short words at the right end of the first line, the last one outermost; they leave `title_w` columns to the title.
/// @return where the next one ends
static int draw_badge(const tide_tui_view *v, int right, int title_w, const char *text, tide_tui_role role) {
    const tide_tui_rect r = v->scene->layout->title;
    const int w = tide_tui_text_width(v->glyphs, text);
    if (w == 0 || right - w - 2 < r.x + title_w) return right;
    tide_tui_text(v, right - w, r.y, w, text, TIDE_TUI_CUT_END, role);
    return right - w - 2;
}

/// What the second line would say, if there were one.
static int draw_small_badges(const tide_tui_view *v, int right) {
    enum { TITLE = 4 };
    const tide_tui_scene *s = v->scene;
    char text[FACT] = "";
    if (says_hidden(s) && !s->state->is_opening) {
        snprintf(text, sizeof text, "%zu hidden", s->rows->n_hidden);
    } else if (s->state->n_filters > 0) {
        snprintf(text, sizeof text, "filter%s", s->state->filters_off ? " off" : "");
    }
    right = draw_badge(v, right, TITLE, text, TIDE_TUI_ROLE_KEY);
    facts f = {.n = 0};
    if (s->a->has_plan) add_gap(&f, s->a);
    if (f.n > 0) right = draw_badge(v, right, TITLE, f.items[0].brief, f.items[0].role);
    snprintf(text, sizeof text, "%.*s", (int)strcspn(s->a->trouble, ":"), s->a->trouble); // "cut short: disk full"
    return draw_badge(v, right, TITLE, text, TIDE_TUI_ROLE_ERROR);
}

static const char *live_words(const tide_tui_state *st) {
    if (st->is_paused) return "PAUSED";
    if (!st->is_recording) return "";
    return st->follows ? "LIVE, following" : "LIVE";
}

static const char *title_of(const tide_subject_facts *f) {
    return f->title != NULL && f->title[0] != '\0' ? f->title : "untitled";
}

/// One name, or "A name   B name", of which each has its share of the room.
static void draw_names(const tide_tui_view *v, int x, int room) {
    const tide_tui_scene *s = v->scene;
    const int y = s->layout->title.y;
    char text[512], other[512] = "";
    if (s->state->compares_moments) {
        snprintf(text, sizeof text, "%s   (moments A and B)", title_of(s->a));
    } else if (s->b != NULL) {
        snprintf(text, sizeof text, "A %s", title_of(s->a));
        snprintf(other, sizeof other, "B %s", s->state->b_is_whatif ? "what if" : title_of(s->b));
    } else {
        snprintf(text, sizeof text, "%s", title_of(s->a));
    }
    enum { BOTH = 32 };
    if (other[0] != '\0' && room < BOTH) { // no room for two names: the begin of one and the end of the other
        const size_t len = strlen(text);
        if (snprintf(text + len, sizeof text - len, " %s", other) < 0) text[len] = '\0';
        other[0] = '\0';
    }
    const int gap = other[0] == '\0' ? 0 : 3, b_need = tide_tui_text_width(v->glyphs, other);
    const int a_need = tide_tui_text_width(v->glyphs, text), half = (room - gap) / 2;
    int a_room = room - gap - (b_need < half ? b_need : half);
    if (a_room > a_need) a_room = a_need;
    const int used = tide_tui_text(v, x, y, a_room, text, TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TITLE);
    if (gap == 0) return;
    tide_tui_text(v, x + used + gap, y, room - used - gap, other, TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TITLE);
}

/// What runs out: "peak 9.04 MiB live, 48.00 MiB reserved, of 64.00 MiB".
static void say_peak(const tide_tui_scene *s, bool is_brief, bool is_narrow, char *buf, size_t buf_bytes) {
    char *(*const say)(uint64_t, char *, size_t) = is_brief ? tide_tui_format_short : tide_tui_bytes;
    const uint64_t reserved = s->whole_reserved, capacity = s->state->capacity_bytes;
    char live[TIDE_TUI_WORD], held[TIDE_TUI_WORD], room[TIDE_TUI_WORD];
    if (reserved == 0 && (capacity == 0 || is_narrow)) {
        snprintf(buf, buf_bytes, "peak %s",
                 is_narrow ? tide_tui_format_short(s->a->peak_bytes, live, sizeof live)
                           : tide_tui_bytes(s->a->peak_bytes, live, sizeof live));
        return;
    }
    say(s->a->peak_bytes, live, sizeof live);
    say(reserved, held, sizeof held);
    say(capacity, room, sizeof room);
    if (reserved == 0) {
        snprintf(buf, buf_bytes, "peak %s of %s", live, room);
    } else if (is_narrow) {
        snprintf(buf, buf_bytes, "%s, %s res", live, held);
    } else {
        snprintf(buf, buf_bytes, "peak %s live, %s reserved%s%s", live, held, capacity > 0 ? " of " : "",
                 capacity > 0 ? room : "");
    }
}

void tide_tui_draw_title(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->title;
    char peak[192];
    if (r.w <= 0) return;
    const bool small = s->layout->summary.h <= 0;
    say_peak(s, r.w < 100, r.w < 60, peak, sizeof peak);
    int right = draw_badge(v, r.x + r.w - 1, 4, peak, TIDE_TUI_ROLE_PEAK);
    right = draw_badge(v, right, 12, live_words(s->state), TIDE_TUI_ROLE_KEY);
    if (small) right = draw_small_badges(v, right);

    draw_names(v, r.x + 1, right - r.x - 1);
    draw_summary(v);
}

// ---- the line at the bottom: prompt ----

// ---- prompt ----

static const char *prompt_label(tide_tui_prompt prompt) {
    switch (prompt) {
    case TIDE_TUI_PROMPT_SEARCH:
        return "/";
    case TIDE_TUI_PROMPT_FILTER:
        return "filter: ";
    case TIDE_TUI_PROMPT_COMMAND:
        return ":";
    case TIDE_TUI_PROMPT_GOTO:
        return "go to step, time or address: ";
    case TIDE_TUI_PROMPT_NOTE:
        return "mark: ";
    default:
        return "";
    }
}

/// Columns of the first `n` bytes of the text.
static int width_to(const tide_tui_view *v, const char *text, size_t n) {
    char before[TIDE_TUI_MAX_PROMPT];
    if (n >= sizeof before) n = sizeof before - 1;
    memcpy(before, text, n);
    before[n] = '\0';
    return tide_tui_text_width(v->glyphs, before);
}

static size_t next_character(const char *text, size_t at) {
    at++;
    while (((unsigned char)text[at] & 0xC0U) == 0x80U) at++;
    return at;
}

/// The part of the text that holds the cursor; what does not fit is left out at the left.
static void draw_prompt(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_state *st = v->scene->state;
    const char *label = prompt_label(st->prompt);
    int x = r.x + tide_tui_text(v, r.x, r.y, r.w, label, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
    const size_t len = strlen(st->text), at = st->text_at < len ? st->text_at : len;
    const int room = r.x + r.w - x - 1; // one for the cursor behind the text; the last may show that there is more
    size_t from = 0;
    while (from < at && width_to(v, st->text + from, at - from) > room - 2) from = next_character(st->text, from);
    const int used = tide_tui_text(v, x, r.y, room, st->text + from, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
    tide_tui_mark_row(v->grid, x + width_to(v, st->text + from, at - from), r.y, 1, TIDE_TUI_MARK_SELECTED);
    x += used + 3;
    if (st->completions[0] != '\0' && x + 8 < r.x + r.w)
        tide_tui_text(v, x, r.y, r.x + r.w - x, st->completions, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}

// ---- hints ----

enum { MAX_HINTS = 14 };

/// What matters most in a pane, first what is hardest to guess; 0 ends a list.
static const tide_tui_action *hints_of(tide_tui_pane pane) {
    static const tide_tui_action lists[TIDE_TUI_N_PANES][MAX_HINTS] = {
        [TIDE_TUI_PANE_CURVE] = {TIDE_TUI_PEAK, TIDE_TUI_ZOOM_IN, TIDE_TUI_ZOOM_OUT, TIDE_TUI_WHOLE,
                                 TIDE_TUI_NEXT_CHANGE, TIDE_TUI_RANGE, TIDE_TUI_KIND, TIDE_TUI_MARK, TIDE_TUI_GOTO},
        [TIDE_TUI_PANE_GANTT] = {TIDE_TUI_PEAK, TIDE_TUI_SEARCH, TIDE_TUI_FILTER, TIDE_TUI_SORT, TIDE_TUI_OPEN,
                                 TIDE_TUI_ZOOM_IN, TIDE_TUI_FIT, TIDE_TUI_GROUP, TIDE_TUI_ALIVE, TIDE_TUI_PERSISTENT},
        [TIDE_TUI_PANE_MAP] = {TIDE_TUI_PEAK, TIDE_TUI_ZOOM_IN, TIDE_TUI_SPACE_IN, TIDE_TUI_SPACE_OUT, TIDE_TUI_FIT,
                               TIDE_TUI_NEXT_ITEM, TIDE_TUI_WHOLE},
        [TIDE_TUI_PANE_TABLE] = {TIDE_TUI_PEAK, TIDE_TUI_OPEN, TIDE_TUI_NEXT_CHANGE, TIDE_TUI_VIEW_3, TIDE_TUI_EXPORT},
        [TIDE_TUI_PANE_OPERATORS] = {TIDE_TUI_OPEN, TIDE_TUI_PEAK, TIDE_TUI_GOTO},
        [TIDE_TUI_PANE_POOLS] = {TIDE_TUI_PEAK, TIDE_TUI_OPEN, TIDE_TUI_NEXT_CHANGE, TIDE_TUI_SQL},
        [TIDE_TUI_PANE_EXPLAIN] = {TIDE_TUI_PEAK, TIDE_TUI_PREVIOUS_PEAK, TIDE_TUI_PAGE_ON, TIDE_TUI_SQL},
        [TIDE_TUI_PANE_COMPARE] = {TIDE_TUI_OPEN, TIDE_TUI_SET_A, TIDE_TUI_SET_B, TIDE_TUI_EXPORT},
        [TIDE_TUI_PANE_WHATIF] = {TIDE_TUI_APPLY, TIDE_TUI_UNDO, TIDE_TUI_EDIT, TIDE_TUI_SAVE_PLAN},
        [TIDE_TUI_PANE_STACKS] = {TIDE_TUI_OPEN, TIDE_TUI_CLOSE_ALL, TIDE_TUI_ROOT, TIDE_TUI_SEARCH, TIDE_TUI_PEAK,
                                  TIDE_TUI_NEXT_CHANGE, TIDE_TUI_EXPORT},
        [TIDE_TUI_PANE_DETAILS] = {TIDE_TUI_COPY, TIDE_TUI_FIT, TIDE_TUI_ALIKE, TIDE_TUI_NEXT_ITEM, TIDE_TUI_EDIT},
    };
    static const tide_tui_action overlaid[MAX_HINTS] = {TIDE_TUI_PAGE_ON, TIDE_TUI_PAGE_BACK};
    return pane < TIDE_TUI_N_PANES ? lists[pane] : overlaid;
}

/// "p peak" at column x when it fits before `end`. @return the column behind it; x: it does not fit
static int draw_hint(const tide_tui_view *v, int x, int y, int end, tide_tui_action action) {
    const tide_tui_binding *b = tide_tui_binding_of(action);
    char key[TIDE_TUI_WORD];
    if (b == NULL || b->keys[0] == 0) return x;
    tide_tui_key_of(action, key, sizeof key);
    const int key_w = tide_tui_text_width(v->glyphs, key), name_w = tide_tui_text_width(v->glyphs, b->name);
    if (x + key_w + 1 + name_w > end) return x;
    tide_tui_text(v, x, y, key_w, key, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
    tide_tui_text(v, x + key_w + 1, y, name_w, b->name, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    return x + key_w + 1 + name_w + 2;
}

static void draw_hints(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_state *st = v->scene->state;
    const bool overlaid = st->overlay != TIDE_TUI_OVERLAY_NONE;
    const tide_tui_action *list = hints_of(overlaid ? TIDE_TUI_N_PANES : st->focus);
    const int end = r.x + r.w;
    int x = r.x + 1;
    // The way out and the help always come first; the views last, where there is room.
    x = draw_hint(v, x, r.y, end, overlaid ? TIDE_TUI_BACK : TIDE_TUI_HELP);
    x = draw_hint(v, x, r.y, end, TIDE_TUI_QUIT);
    for (int i = 0; i < MAX_HINTS && list[i] != TIDE_TUI_NOTHING; i++) x = draw_hint(v, x, r.y, end, list[i]);
    if (overlaid) return;
    static const tide_tui_action rest[] = {TIDE_TUI_NEXT_PANE, TIDE_TUI_VIEW_2, TIDE_TUI_VIEW_3, TIDE_TUI_VIEW_4,
                                           TIDE_TUI_VIEW_5,    TIDE_TUI_VIEW_6, TIDE_TUI_COMMAND};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) x = draw_hint(v, x, r.y, end, rest[i]);
}

// ---- the line ----

static void draw_message(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_state *st = v->scene->state;
    char text[sizeof st->message + 8];
    const bool has_word = strncmp(st->message, "error", 5) == 0;
    snprintf(text, sizeof text, "%s%s", st->message_is_error && !has_word ? "error: " : "", st->message);
    tide_tui_text(v, r.x + 1, r.y, r.w - 2, text, TIDE_TUI_CUT_END,
                  st->message_is_error ? TIDE_TUI_ROLE_ERROR : TIDE_TUI_ROLE_TITLE);
}

void tide_tui_draw_bottom(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    tide_tui_rect r = s->layout->bottom;
    if (r.w <= 0 || r.h <= 0) return;
    r.y += r.h - 1;
    if (s->shows_seq) {
        char seq[TIDE_TUI_WORD];
        snprintf(seq, sizeof seq, "seq=%" PRIu64 " %s", s->state->seq, s->is_busy ? "busy" : "idle");
        const int w = tide_tui_text_width(v->glyphs, seq);
        tide_tui_text(v, r.x + r.w - w, r.y, w, seq, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        r.w -= w + 1;
    }
    if (s->state->prompt != TIDE_TUI_PROMPT_NONE) {
        draw_prompt(v, r);
    } else if (s->state->message[0] != '\0' && s->state->overlay != TIDE_TUI_OVERLAY_MESSAGE) {
        draw_message(v, r);
    } else {
        draw_hints(v, r);
    }
}
