// SPDX-License-Identifier: MIT
//
// EXPLAIN: why it is so much at the cursor: a partition that sums exactly, as a bar and as lines; by operator and by
// kind; and what the peak would be without each of the large ones, up to the next binding constraint. See draw.h.
//
//     == EXPLAIN: step 5 (conv1) ============================ 3.50 MiB held ==
//     LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLrrrHHHHHHHHsss
//     L live           3.00 MiB   85.7 %
//     r rounding        512 KiB   14.3 %
//     = held           3.50 MiB  100.0 %   3,145,728 + 524,288 = 3,670,016 B
//     Without conv1_out (conv1, 1.00 MiB) the peak is 3.00 MiB (-14.3 %); then step 7 (fc) rules.
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

enum { MAX_GROUPS = 12, NAME_W = 16, SIZE_W = 10, SHARE_W = 8 };

/// Letter and fill of each part: the bar tells them apart without colour.
typedef struct part_look {
    uint32_t glyph, ascii;
    tide_tui_role role;
} part_look;
static const part_look looks[TIDE_N_PARTS] = {
    [TIDE_PART_LIVE] = {0x2588, 'L', TIDE_TUI_ROLE_CURVE},   [TIDE_PART_ROUNDING] = {0x2593, 'r', TIDE_TUI_ROLE_PLAN},
    [TIDE_PART_HOLES] = {0x2591, 'h', TIDE_TUI_ROLE_HOLE},   [TIDE_PART_SLACK] = {0x2592, 's', TIDE_TUI_ROLE_BOUND},
    [TIDE_PART_CACHED] = {0x259A, 'c', TIDE_TUI_ROLE_LABEL}, [TIDE_PART_UNUSED] = {'?', '?', TIDE_TUI_ROLE_DIM},
};

static uint32_t look_glyph(const tide_tui_view *v, int part) {
    return v->glyphs->ascii ? looks[part].ascii : looks[part].glyph;
}

// ---- the partition ----

/// All parts as one bar: each part that is not 0 has a cell, and the sum of the cells is the width.
static void write_bar(tide_tui_lines *p, const tide_explanation *e) {
    int cells[TIDE_N_PARTS], sum = 0, largest = 0;
    for (int i = 0; i < TIDE_N_PARTS; i++) {
        cells[i] = tide_tui_share_of(e->parts[i], e->held_bytes, p->r.w);
        sum += cells[i];
        if (e->parts[i] > e->parts[largest]) largest = i;
    }
    cells[largest] += p->r.w - sum; // what rounding left over, or took too much
    int x = 0;
    for (int i = 0; i < TIDE_N_PARTS; i++) {
        if (cells[i] <= 0) continue;
        tide_tui_lines_fill(p, x, cells[i], look_glyph(p->v, i), looks[i].role);
        x += cells[i];
    }
    tide_tui_lines_next(p);
}

/// Sign, name, size, share, and a remark.
static void write_row(tide_tui_lines *p, const char *name, uint64_t bytes, uint64_t whole, const char *more,
                      tide_tui_role role) {
    char size[TIDE_TUI_WORD], share[TIDE_TUI_WORD];
    const int names = p->r.w - 2 - SIZE_W - SHARE_W - 3;
    const int name_w = names < NAME_W ? (names > 4 ? names : 4) : names > 40 ? 32 : NAME_W;
    tide_tui_lines_text(p, 2, name_w, name, TIDE_TUI_CUT_MIDDLE, role);
    int x = 2 + name_w + 1;
    tide_tui_lines_right(p, x, SIZE_W, tide_tui_bytes(bytes, size, sizeof size), role);
    x += SIZE_W + 1;
    tide_tui_lines_right(p, x, SHARE_W, tide_tui_percent(bytes, whole, share, sizeof share), role);
    x += SHARE_W + 2;
    if (more[0] != '\0' && x + tide_tui_text_width(p->v->glyphs, more) <= p->r.w)
        tide_tui_lines_text(p, x, p->r.w - x, more, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    tide_tui_lines_next(p);
}

static const char *part_words(int part) {
    switch ((tide_part_kind)part) {
    case TIDE_PART_LIVE:
        return "what those alive asked for";
    case TIDE_PART_ROUNDING:
        return "added by alignment and size classes";
    case TIDE_PART_HOLES:
        return "free, between those alive";
    case TIDE_PART_SLACK:
        return "of the buffer above them, or of pools";
    case TIDE_PART_CACHED:
        return "kept by allocators, not in use";
    default:
        return "taken beyond what the plan explains";
    }
}

/// "3,145,728 + 524,288 = 3,670,016 B": the same order as the lines above it.
static void write_sum(tide_tui_lines *p, const tide_explanation *e) {
    char sum[320] = "", n[TIDE_TUI_WORD];
    size_t len = 0;
    for (int i = 0; i < TIDE_N_PARTS && len < sizeof sum; i++) {
        if (e->parts[i] == 0) continue;
        len += (size_t)snprintf(sum + len, sizeof sum - len, "%s%s", len > 0 ? " + " : "",
                                tide_tui_exact(e->parts[i], n, sizeof n));
    }
    if (len < sizeof sum)
        snprintf(sum + len, sizeof sum - len, "%s= %s B", len > 0 ? " " : "0 ",
                 tide_tui_exact(e->held_bytes, n, sizeof n));
    tide_tui_lines_text(p, 0, 1, "=", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
    write_row(p, "held", e->held_bytes, e->held_bytes, "", TIDE_TUI_ROLE_TITLE);
    tide_tui_lines_wrap(p, 2, sum, TIDE_TUI_ROLE_DIM);
}

static void write_parts(tide_tui_lines *p, const tide_explanation *e) {
    write_bar(p, e);
    for (int i = 0; i < TIDE_N_PARTS; i++) {
        if (e->parts[i] == 0) continue;
        tide_tui_lines_fill(p, 0, 1, look_glyph(p->v, i), looks[i].role);
        write_row(p, tide_part_name((tide_part_kind)i), e->parts[i], e->held_bytes, part_words(i), TIDE_TUI_ROLE_TEXT);
    }
    write_sum(p, e);
}

// ---- groups of what is alive ----

static void write_groups(tide_tui_lines *p, const tide_tui_scene *s, const char *title,
                         const tide_explain_group *groups, size_t n) {
    const uint64_t whole = s->explanation->live.bytes;
    if (n == 0) return;
    char more[TIDE_TUI_WORD], count[TIDE_TUI_WORD];
    tide_tui_lines_text(p, 0, p->r.w, title, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL);
    tide_tui_lines_next(p);
    uint64_t left_bytes = 0;
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        if (i >= MAX_GROUPS && n > MAX_GROUPS + 1) { // a single one more is shown rather than called "1 more"
            left_bytes += groups[i].bytes;
            n_left += groups[i].n;
            continue;
        }
        snprintf(more, sizeof more, "%s %s", tide_tui_exact(groups[i].n, count, sizeof count),
                 tide_tui_item_word(s->a, groups[i].n));
        const char *key = groups[i].key[0] != '\0' ? groups[i].key : "(no operator)";
        write_row(p, key, groups[i].bytes, whole, more, TIDE_TUI_ROLE_TEXT);
    }
    if (n_left > 0) {
        char name[TIDE_TUI_WORD];
        snprintf(name, sizeof name, "%zu more", n - MAX_GROUPS);
        snprintf(more, sizeof more, "%s %s", tide_tui_exact(n_left, count, sizeof count),
                 tide_tui_item_word(s->a, n_left));
        write_row(p, name, left_bytes, whole, more, TIDE_TUI_ROLE_DIM);
    }
    tide_tui_lines_text(p, 0, 1, "=", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    snprintf(more, sizeof more, "%s %s", tide_tui_exact(s->explanation->live.n, count, sizeof count),
             tide_tui_item_word(s->a, s->explanation->live.n));
    write_row(p, "all alive", whole, whole, more, TIDE_TUI_ROLE_DIM);
}

// ---- conclusions ----

static void say_without(const tide_tui_scene *s, const tide_without *w, char *buf, size_t buf_bytes) {
    const tide_explanation *e = s->explanation;
    const tide_live_item *item = &e->live.items[w->live];
    char size[TIDE_TUI_WORD], peak[TIDE_TUI_WORD], percent[TIDE_TUI_WORD], when[128], rules[160];
    tide_tui_when_in_step(s->a, w->at.t, when, sizeof when);
    const bool stays = w->at.t == s->a->peak.t && w->at.event == s->a->peak.event;
    if (w->peak_bytes >= s->a->peak_bytes) {
        snprintf(rules, sizeof rules, "%s is as high", tide_tui_when(s->a, w->at.t, when, sizeof when));
    } else {
        snprintf(rules, sizeof rules, stays ? "still at %s" : "then %s rules", when);
    }
    const bool owned = item->site.owner != NULL && item->site.owner[0] != '\0';
    char alike[96] = "", count[TIDE_TUI_WORD], there[TIDE_TUI_WORD];
    if (w->n_alike > 1)
        snprintf(alike, sizeof alike, "; %s now of %s, which all go", tide_tui_exact(w->n_now, there, sizeof there),
                 tide_tui_exact(w->n_alike, count, sizeof count));
    char more[64], now[TIDE_TUI_WORD] = "";
    if (strcmp(w->name, item->site.name) != 0) snprintf(now, sizeof now, "now %s, ", tide_tui_named(item->site.name));
    snprintf(buf, buf_bytes, "Without %s%s (%s%s%s%s%s) the peak is %s%s%s%s; %s.", tide_tui_named(w->name),
             tide_without_more(w, more, sizeof more), now, owned ? item->site.owner : "", owned ? ", " : "",
             tide_tui_bytes(w->bytes, size, sizeof size), alike, tide_tui_bytes(w->peak_bytes, peak, sizeof peak),
             s->a->peak_bytes > 0 ? " (" : "",
             tide_tui_change_percent(s->a->peak_bytes, w->peak_bytes, percent, sizeof percent),
             s->a->peak_bytes > 0 ? ")" : "", rules);
}

/// "The plan of the rest: 3.50 MiB (-22.2 %)."
static void say_plan(const tide_without *w, char *buf, size_t buf_bytes) {
    char size[TIDE_TUI_WORD], percent[TIDE_TUI_WORD];
    snprintf(buf, buf_bytes, "The plan of the rest: %s (%s).", tide_tui_bytes(w->plan_bytes, size, sizeof size),
             tide_tui_change_percent(w->was_bytes, w->plan_bytes, percent, sizeof percent));
}

/// "Way: recompute r82 (1 operator runs twice), plan 6.12 MiB."; "No known way: why".
static void write_ways(tide_tui_lines *p, const tide_explanation *e, size_t without) {
    const tide_without *w = &e->without[without];
    char text[512], size[TIDE_TUI_WORD];
    for (size_t i = 0; i < e->n_ways; i++) {
        tide_text way = {0};
        if (e->ways[i].without != without) continue;
        tide_way_print(&e->ways[i], &way);
        snprintf(text, sizeof text, "Way: %s, plan %s.", tide_text_str(&way),
                 tide_tui_bytes(e->ways[i].plan_bytes, size, sizeof size));
        tide_text_deinit(&way);
        tide_tui_lines_wrap(p, 2, text, TIDE_TUI_ROLE_TEXT);
    }
    if (!w->is_asked || w->has_way) return;
    snprintf(text, sizeof text, "No known way%s%s.", w->why_not[0] != '\0' ? ": " : "", w->why_not);
    tide_tui_lines_wrap(p, 2, text, TIDE_TUI_ROLE_DIM);
}

static void write_without(tide_tui_lines *p, const tide_tui_scene *s, size_t from, size_t to) {
    char text[512];
    for (size_t i = from; i < to && i < s->explanation->n_without; i++) {
        say_without(s, &s->explanation->without[i], text, sizeof text);
        tide_tui_lines_text(p, 0, 1, "-", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        tide_tui_lines_wrap(p, 2, text, TIDE_TUI_ROLE_TEXT);
        if (s->explanation->without[i].has_plan) {
            say_plan(&s->explanation->without[i], text, sizeof text);
            tide_tui_lines_wrap(p, 2, text, TIDE_TUI_ROLE_TEXT);
        }
        write_ways(p, s->explanation, i);
    }
}

static void write_floor(tide_tui_lines *p, const tide_tui_scene *s) {
    const tide_explanation *e = s->explanation;
    char text[512], size[TIDE_TUI_WORD], percent[TIDE_TUI_WORD], when[160];
    if (e->second_peak_bytes == 0) {
        snprintf(text, sizeof text, "Without all that is alive here nothing is held at any moment.");
    } else {
        snprintf(text, sizeof text,
                 "Without all that is alive here and does not persist the peak is %s%s%s%s; then %s rules.",
                 tide_tui_bytes(e->second_peak_bytes, size, sizeof size), s->a->peak_bytes > 0 ? " (" : "",
                 tide_tui_change_percent(s->a->peak_bytes, e->second_peak_bytes, percent, sizeof percent),
                 s->a->peak_bytes > 0 ? ")" : "", tide_tui_when_in_step(s->a, e->second_peak.t, when, sizeof when));
    }
    tide_tui_lines_text(p, 0, 1, ">", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
    tide_tui_lines_wrap(p, 2, text, TIDE_TUI_ROLE_TEXT);
}

// ---- the pane ----

/// Whether some of what is alive lies in the buffer of a planned run.
static bool holds_a_buffer(const tide_explanation *e) {
    for (size_t i = 0; i < e->live.n; i++)
        if (e->live.items[i].shape.is_planned) return true;
    return false;
}

/// What would lower the peak takes plans: until they are made, how far they are.
static void write_working(tide_tui_lines *p, const tide_tui_scene *s) {
    const char *busy = s->busy[TIDE_TUI_PANE_EXPLAIN];
    char text[160];
    if (s->explanation->n_without > 0 || busy[0] == '\0' || s->is_earlier[TIDE_TUI_PANE_EXPLAIN]) return;
    tide_tui_lines_text(p, 0, p->r.w, "what would lower the peak", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL);
    tide_tui_lines_next(p);
    snprintf(text, sizeof text, "Making a plan without each of the largest: %s.", busy);
    tide_tui_lines_wrap(p, 2, text, TIDE_TUI_ROLE_DIM);
}

static void write_all(tide_tui_lines *p, const tide_tui_scene *s) {
    const tide_explanation *e = s->explanation;
    if (e->held_bytes == 0) {
        tide_tui_lines_wrap(p, 0, "Nothing is held at this moment.", TIDE_TUI_ROLE_DIM);
        return;
    }
    write_parts(p, e);
    if (e->n_without > 0) {
        tide_tui_lines_text(p, 0, p->r.w, "what would lower the peak", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL);
        tide_tui_lines_next(p);
        write_without(p, s, 0, 1);
        write_floor(p, s);
    }
    if (e->n_without == 0 && s->a->is_trace && holds_a_buffer(e) && s->busy[TIDE_TUI_PANE_EXPLAIN][0] == '\0')
        tide_tui_lines_wrap(p, 0,
                            "The run holds its buffer from begin to end, whatever lies in it: a smaller plan lowers "
                            "the peak (what-if).",
                            TIDE_TUI_ROLE_TEXT);
    if (e->n_without > 0 && e->without[0].has_plan && !e->without[0].is_asked)
        tide_tui_lines_wrap(p, 2, "No known way from here: only the model could tell.", TIDE_TUI_ROLE_DIM);
    write_working(p, s);
    write_groups(p, s, "alive, by operator", e->by_owner, e->n_by_owner);
    write_groups(p, s, "alive, by kind", e->by_kind, e->n_by_kind);
    if (e->n_without > 1) {
        tide_tui_lines_text(p, 0, p->r.w, "without one of the others", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL);
        tide_tui_lines_next(p);
        write_without(p, s, 1, e->n_without);
    }
}

/// Wrapped lines depend on the pane's width; the tier of glyphs only on how wide foreign names are.
size_t tide_tui_explain_lines(const tide_tui_scene *s) {
    const tide_tui_rect body = tide_tui_body_of(s, TIDE_TUI_PANE_EXPLAIN);
    if (s->explanation == NULL || body.w < 4) return 0;
    const tide_tui_view v = {.scene = s, .glyphs = tide_tui_glyphs_of(false)};
    tide_tui_lines counted = {.v = &v, .r = {.w = body.w - 2}};
    const tide_tui_locale locale = tide_tui_locale_enter();
    write_all(&counted, s);
    tide_tui_locale_leave(locale);
    return counted.n;
}

size_t tide_tui_explain_top(const tide_tui_scene *s, size_t n, int h) {
    const size_t room = h > 0 ? (size_t)h : 0, row = s->state->pane_row[TIDE_TUI_PANE_EXPLAIN];
    if (room == 0 || n <= room) return 0;
    return row < n - room ? row : n - room;
}

/// "12-20/34" in the heading, as other lists say it, when there is more than the pane shows.
static void say_facts(const tide_tui_scene *s, size_t top, size_t n, int h, char *buf, size_t buf_bytes) {
    char size[TIDE_TUI_WORD];
    tide_tui_bytes(s->explanation->held_bytes, size, sizeof size);
    if (n > (size_t)h && h > 0) {
        snprintf(buf, buf_bytes, "%zu-%zu/%zu, %s held", top + 1, top + (size_t)h, n, size);
    } else {
        snprintf(buf, buf_bytes, "%s held", size);
    }
}

void tide_tui_draw_explain(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_explanation *e = s->explanation;
    char when[128], title[160], facts[128] = "";
    const tide_moment at = e != NULL ? e->at : (tide_moment){s->state->cursor, s->state->cursor_event};
    snprintf(title, sizeof title, "%s", tide_tui_when_named(s->a, at.t, when, sizeof when));
    const tide_tui_rect r = tide_tui_body_of(s, TIDE_TUI_PANE_EXPLAIN);
    const size_t n = tide_tui_explain_lines(s), top = tide_tui_explain_top(s, n, r.h);
    if (e != NULL) say_facts(s, top, n, r.h, facts, sizeof facts);
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_EXPLAIN, title, facts);
    if (e == NULL) {
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_EXPLAIN, body, "Nothing is known of this moment yet.");
        return;
    }
    if (body.w < 4) return;
    tide_tui_lines p = {.v = v, .r = {body.x + 1, body.y, body.w - 2, body.h}, .top = top};
    write_all(&p, s);
}
