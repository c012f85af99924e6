// SPDX-License-Identifier: MIT
//
// The first line of a pane, and what stands in a pane that has nothing to show. See draw.h.
//
//     -- table: alive at step 5 (conv1) ---------- 12 tensors, 3.20 MiB --
//     == TABLE: alive at step 5 (conv1) ========== 12 tensors, 3.20 MiB ==    with the focus: told by the rule and by
//                                                                             capitals, not by colour alone
#include <stdio.h>
#include <string.h>

#include "tui/draw_words.h"

static uint32_t rule_of(const tide_tui_view *v, bool focused) {
    if (!focused) return v->glyphs->rule;
    return v->glyphs->ascii ? '=' : 0x2550; // a double rule
}

/// " text " inside the rule, at column x. @return columns used
static int inlay(const tide_tui_view *v, int x, int y, int w, const char *text, tide_tui_role role) {
    if (w < 3 || text[0] == '\0') return 0;
    tide_tui_put(v->grid, x, y, ' ', role);
    const int used = tide_tui_text(v, x + 1, y, w - 2, text, TIDE_TUI_CUT_END, role);
    tide_tui_put(v->grid, x + 1 + used, y, ' ', role);
    return used + 2;
}

/// As many facts as fit into `room` columns; what is left out shows as cut. @return columns
static int fit_facts(const tide_tui_view *v, const char *facts, int room, char *buf, size_t buf_bytes) {
    snprintf(buf, buf_bytes, "%s", facts);
    int w = tide_tui_text_width(v->glyphs, buf);
    while (w > room) {
        char *comma = strrchr(buf, ',');
        if (comma == NULL) return 0;
        snprintf(comma, buf_bytes - (size_t)(comma - buf), v->glyphs->ascii ? "~" : "\xE2\x80\xA6");
        w = tide_tui_text_width(v->glyphs, buf);
    }
    return w;
}

tide_tui_rect tide_tui_heading(const tide_tui_view *v, tide_tui_pane pane, const char *title, const char *facts) {
    const tide_tui_rect r = v->scene->layout->panes[pane];
    if (r.w <= 0 || r.h <= 0) return (tide_tui_rect){r.x, r.y, 0, 0};
    const bool focused = v->scene->state->focus == pane;
    const tide_tui_role role = focused ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_DIM;
    tide_tui_fill_row(v->grid, r.x, r.y, r.w, rule_of(v, focused), role);

    char name[192];
    snprintf(name, sizeof name, "%s", tide_tui_pane_name(pane));
    for (char *c = name; focused && *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    const size_t len = strlen(name);
    if (title[0] != '\0') snprintf(name + len, sizeof name - len, ": %s", title);
    // What is shown is of the moment that the title says; that of the cursor is being made.
    char with_progress[256];
    if (v->scene->is_earlier[pane]) {
        const char *busy = v->scene->busy[pane];
        snprintf(with_progress, sizeof with_progress, "%s%s%s", busy[0] != '\0' ? busy : "working",
                 facts[0] != '\0' ? ", " : "", facts);
        facts = with_progress;
    }

    // The title first; facts have what is left, and end at one of their commas rather than in the middle of a number.
    const int need = tide_tui_text_width(v->glyphs, name), room = r.w - 2;
    char some[256];
    const int facts_w = fit_facts(v, facts, room - (need < 40 ? need : 40) - 5, some, sizeof some);
    const int title_room = facts_w > 0 ? room - facts_w - 3 : room;
    inlay(v, r.x + 1, r.y, title_room, name, focused ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_LABEL);
    if (facts_w > 0) inlay(v, r.x + r.w - facts_w - 3, r.y, facts_w + 2, some, role);
    return (tide_tui_rect){r.x, r.y + 1, r.w, r.h - 1};
}

/// What errors say in the middle of a line, as a sentence of its own.
static void sentence_of(const char *words, char *buf, size_t buf_bytes) {
    const size_t n = strlen(words);
    const bool ends = n > 0 && strchr(".!?", words[n - 1]) != NULL;
    snprintf(buf, buf_bytes, "%s%s", words, ends ? "" : ".");
    const bool is_word = (words[0] >= 'a' && words[0] <= 'z') && strpbrk(words, " ") != NULL;
    if (is_word) buf[0] = (char)(words[0] - 'a' + 'A');
}

bool tide_tui_draw_state_of(const tide_tui_view *v, tide_tui_pane pane, tide_tui_rect body, const char *empty) {
    const char *trouble = v->scene->trouble[pane], *busy = v->scene->busy[pane];
    char text[512];
    tide_tui_role role = TIDE_TUI_ROLE_DIM;
    if (trouble[0] != '\0') {
        sentence_of(trouble, text, sizeof text);
        role = TIDE_TUI_ROLE_TEXT;
    } else if (busy[0] != '\0') {
        // What is done aside comes with its share done; the keys go on working meanwhile.
        snprintf(text, sizeof text, "Working: %s%s", busy, v->glyphs->ascii ? "..." : "\xE2\x80\xA6");
        role = TIDE_TUI_ROLE_KEY;
    } else if (empty != NULL && empty[0] != '\0') {
        snprintf(text, sizeof text, "%s", empty);
    } else {
        return false;
    }
    if (body.w > 2 && body.h > 0) {
        tide_tui_paper p = {.v = v, .r = {body.x + 1, body.y, body.w - 2, body.h}};
        tide_tui_paper_wrap(&p, 0, text, role);
    }
    return true;
}
