// SPDX-License-Identifier: MIT
//
// COMPARE: how much more or less B holds; the differences by operator as a waterfall with an exact sum; and what was
// added, removed, moved, resized or lives at other times. See draw.h.
//
//     == COMPARE: A step 5, B step 5 ============== 1 added, 2 moved, 9 unchanged ==
//                        A          B      B - A
//     held        3.50 MiB   3.00 MiB   -512 KiB  -14.3 %
//     peak        3.50 MiB   3.00 MiB   -512 KiB  -14.3 %
//     plan        2.00 MiB   1.50 MiB   -512 KiB  -25.0 %
//     conv1      -1.00 MiB       #########|
//     holes       +512 KiB                |####
//     = B - A     -512 KiB
//       name         what          at A       at B      B - A         size  op
//     > conv1_out    removed   1.00 MiB          -  -1.00 MiB     1.00 MiB  conv1
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

enum { NAME_W = 16, SIZE_W = 10, MAX_STEPS = 10 };

// ---- totals ----

typedef struct total {
    const char *name;
    uint64_t a, b;
} total;

/// Two moments of one input have the same peak and the same plan, which are left out.
static int totals_of(const tide_tui_scene *s, total out[3]) {
    const tide_diff *d = s->diff;
    int n = 0;
    out[n++] = (total){"held", d->a_bytes, d->b_bytes};
    if (s->state->compares_moments) return n;
    if (d->a_peak_bytes != d->a_bytes || d->b_peak_bytes != d->b_bytes)
        out[n++] = (total){"peak", d->a_peak_bytes, d->b_peak_bytes};
    if (d->a_plan_bytes != TIDE_UNKNOWN_BYTES || d->b_plan_bytes != TIDE_UNKNOWN_BYTES)
        out[n++] = (total){"plan", d->a_plan_bytes, d->b_plan_bytes};
    return n;
}

static void draw_totals(const tide_tui_view *v, tide_tui_rect r) {
    total list[3];
    const int n = totals_of(v->scene, list);
    char text[3][TIDE_TUI_WORD], percent[TIDE_TUI_WORD];
    tide_tui_lines p = {.v = v, .r = r};
    const int names = r.w >= 60 ? 8 : 5;
    static const char *const titles[3] = {"A", "B", "B - A"};
    for (int i = r.h > n ? -1 : 0; i < n; i++) {
        if (i >= 0) {
            tide_tui_lines_text(&p, 0, names, list[i].name, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
            tide_tui_bytes(list[i].a, text[0], TIDE_TUI_WORD);
            tide_tui_bytes(list[i].b, text[1], TIDE_TUI_WORD);
            tide_tui_change(list[i].a, list[i].b, text[2], TIDE_TUI_WORD);
        }
        for (int c = 0; c < 3; c++)
            tide_tui_lines_right(&p, names + c * (SIZE_W + 1), SIZE_W + (c == 2), i < 0 ? titles[c] : text[c],
                                 i < 0 ? TIDE_TUI_ROLE_LABEL : TIDE_TUI_ROLE_TEXT);
        if (i >= 0)
            tide_tui_lines_text(&p, names + 3 * (SIZE_W + 1) + 3, 10,
                                tide_tui_change_percent(list[i].a, list[i].b, percent, sizeof percent),
                                TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        tide_tui_lines_next(&p);
    }
}

// ---- waterfall ----

static uint64_t size_of_change(const tide_diff_step *st) {
    return st->a_bytes > st->b_bytes ? st->a_bytes - st->b_bytes : st->b_bytes - st->a_bytes;
}

/// Steps that change anything; they come largest first.
static size_t n_changing(const tide_diff *d) {
    size_t n = 0;
    while (n < d->n_by_owner && size_of_change(&d->by_owner[n]) > 0) n++;
    return n;
}

/// A bar from the middle: to the left what B has less, to the right what it has more.
static void write_bar(tide_tui_lines *p, int x, int w, const tide_diff_step *st, uint64_t largest) {
    if (w < 5) return;
    const int half = (w - 1) / 2, n = tide_tui_share_of(size_of_change(st), largest, half);
    const bool less = st->b_bytes < st->a_bytes;
    const tide_tui_glyphs *g = p->v->glyphs;
    tide_tui_lines_fill(p, x + half, 1, g->cursor, TIDE_TUI_ROLE_DIM);
    if (less) {
        tide_tui_lines_fill(p, x + half - n, n, g->ascii ? '-' : g->bar[TIDE_ITEM_FILL_WEIGHT], TIDE_TUI_ROLE_GOOD);
    } else {
        tide_tui_lines_fill(p, x + half + 1, n, g->ascii ? '+' : g->bar[TIDE_ITEM_FILL_INTERMEDIATE],
                            TIDE_TUI_ROLE_ERROR);
    }
}

static void write_step(tide_tui_lines *p, const char *name, const tide_diff_step *st, uint64_t largest,
                       tide_tui_role role) {
    char change[TIDE_TUI_WORD];
    const int w = p->r.w, name_w = w >= 70 ? 24 : w >= 50 ? NAME_W : w - SIZE_W - 2;
    tide_tui_lines_text(p, 0, name_w, name, TIDE_TUI_CUT_MIDDLE, role);
    tide_tui_lines_right(p, name_w + 1, SIZE_W + 1, tide_tui_change(st->a_bytes, st->b_bytes, change, sizeof change),
                         role);
    if (largest > 0) write_bar(p, name_w + SIZE_W + 4, w - name_w - SIZE_W - 4, st, largest);
    tide_tui_lines_next(p);
}

static void draw_waterfall(const tide_tui_view *v, tide_tui_rect r) {
    const tide_diff *d = v->scene->diff;
    tide_tui_lines p = {.v = v, .r = r};
    const size_t n = n_changing(d), room = r.h > 1 ? (size_t)r.h - 1 : 0;
    if (r.h <= 0) return;
    if (n == 0) {
        tide_tui_lines_text(&p, 0, r.w, "Both hold the same, operator by operator.", TIDE_TUI_CUT_END,
                            TIDE_TUI_ROLE_DIM);
        return;
    }
    const size_t shown = n <= room ? n : room > 0 ? room - 1 : 0;
    const uint64_t largest = size_of_change(&d->by_owner[0]);
    char name[160];
    tide_diff_step rest = {0};
    for (size_t i = 0; i < n; i++) {
        const tide_diff_step *st = &d->by_owner[i];
        if (i < shown) {
            // A part that is no operator has brackets, so that it differs from an operator of the same name.
            snprintf(name, sizeof name, st->is_part ? "(%s)" : "%s", st->key[0] != '\0' ? st->key : "(no operator)");
            write_step(&p, name, st, largest, TIDE_TUI_ROLE_TEXT);
        } else {
            rest.a_bytes += st->a_bytes;
            rest.b_bytes += st->b_bytes;
        }
    }
    if (shown < n && room > 0) {
        snprintf(name, sizeof name, "%zu others", n - shown);
        write_step(&p, name, &rest, largest, TIDE_TUI_ROLE_DIM);
    }
    const tide_diff_step all = {.a_bytes = d->a_bytes, .b_bytes = d->b_bytes};
    write_step(&p, "= B - A", &all, 0, TIDE_TUI_ROLE_TITLE);
}

// ---- rows ----

enum { NAME, WHAT, A, B, CHANGE, SIZE, OWNER, N_COLUMNS };
static const tide_tui_column columns[N_COLUMNS] = {
    [NAME] = {.title = "name", .key = "name", .min_w = 18, .max_w = 48, .stretch = true},
    [WHAT] = {.title = "what", .key = "what", .min_w = 8, .rank = 1},
    [A] = {.title = "at A", .key = "a_at_bytes", .min_w = 10, .right = true, .rank = 2},
    [B] = {.title = "at B", .key = "b_at_bytes", .min_w = 10, .right = true, .rank = 2},
    [CHANGE] = {.title = "B - A", .key = "change_bytes", .min_w = 11, .right = true},
    [SIZE] = {.title = "size", .key = "a_bytes", .min_w = 10, .right = true, .rank = 4},
    [OWNER] = {.title = "op", .key = "owner", .min_w = 8, .max_w = 32, .stretch = true, .rank = 3},
};

/// `missing`: it is not there on this side.
static void say_side(const tide_diff_row *r, unsigned missing, uint64_t bytes, char *buf, size_t buf_bytes) {
    if ((r->what & missing) != 0)
        snprintf(buf, buf_bytes, "-");
    else
        tide_tui_bytes(bytes, buf, buf_bytes);
}

/// "1.00 MiB"; "1.00M, 512K" of A and of B.
static void say_size(const tide_diff_row *r, char *buf, size_t buf_bytes) {
    char a[TIDE_TUI_WORD], b[TIDE_TUI_WORD];
    if ((r->what & (TIDE_DIFF_ADDED | TIDE_DIFF_REMOVED)) != 0 || r->a_bytes == r->b_bytes) {
        tide_tui_bytes((r->what & TIDE_DIFF_ADDED) != 0 ? r->b_bytes : r->a_bytes, buf, buf_bytes);
        return;
    }
    snprintf(buf, buf_bytes, "%s, %s", tide_tui_format_short(r->a_bytes, a, sizeof a),
             tide_tui_format_short(r->b_bytes, b, sizeof b));
}

static tide_tui_role cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_diff_row *r = &((const tide_tui_list_table *)ctx)->scene->diff->rows[row];
    switch (column) {
    case NAME:
        snprintf(buf, buf_bytes, "%s", tide_tui_named(r->name));
        break;
    case WHAT:
        tide_diff_changes(r->what, ", ", "same", buf, buf_bytes);
        return r->what == TIDE_DIFF_ADDED     ? TIDE_TUI_ROLE_ERROR
               : r->what == TIDE_DIFF_REMOVED ? TIDE_TUI_ROLE_GOOD
               : r->what == 0                 ? TIDE_TUI_ROLE_DIM
                                              : TIDE_TUI_ROLE_TEXT;
    case A:
        say_side(r, TIDE_DIFF_ADDED, r->a_at_bytes, buf, buf_bytes);
        break;
    case B:
        say_side(r, TIDE_DIFF_REMOVED, r->b_at_bytes, buf, buf_bytes);
        break;
    case SIZE:
        say_size(r, buf, buf_bytes);
        break;
    case CHANGE:
        tide_tui_change(r->a_at_bytes, r->b_at_bytes, buf, buf_bytes);
        break;
    default:
        snprintf(buf, buf_bytes, "%s", r->owner != NULL ? r->owner : "");
        break;
    }
    return TIDE_TUI_ROLE_TEXT;
}

// ---- the pane ----

tide_tui_compare_parts tide_tui_compare_divide(const tide_tui_scene *s, tide_tui_rect body) {
    tide_tui_compare_parts parts = {.rows = body};
    if (s->diff == NULL || body.h <= 0) return parts;
    total list[3];
    const int n_totals = totals_of(s, list);
    const size_t n = n_changing(s->diff);
    // Totals first, then as many steps of the waterfall as leave rows their half.
    const int totals_h = body.h >= n_totals + 7 ? n_totals + 1 : body.h >= 6 ? n_totals : 1;
    int left = body.h - totals_h, steps_h = n < MAX_STEPS ? (int)n + 1 : MAX_STEPS + 1;
    if (steps_h > left / 2) steps_h = left / 2;
    if (steps_h < 2 || body.h < 8) steps_h = 0;
    left -= steps_h;
    parts.totals = (tide_tui_rect){body.x + 1, body.y, body.w - 2, totals_h < body.h ? totals_h : body.h};
    parts.waterfall = (tide_tui_rect){body.x + 1, body.y + totals_h, body.w - 2, steps_h};
    parts.rows = (tide_tui_rect){body.x, body.y + totals_h + steps_h, body.w, left > 0 ? left : 0};
    return parts;
}

static void say_facts(const tide_diff *d, char *buf, size_t buf_bytes) {
    size_t len = 0;
    char n[TIDE_TUI_WORD];
    buf[0] = '\0';
    for (unsigned i = 0; i <= TIDE_DIFF_N_CHANGES && len < buf_bytes; i++) {
        const bool is_change = i < TIDE_DIFF_N_CHANGES;
        const size_t count = is_change ? tide_diff_n_changed(d, i) : d->n_unchanged;
        if (count == 0) continue;
        len += (size_t)snprintf(buf + len, buf_bytes - len, "%s%s %s", len > 0 ? ", " : "",
                                tide_tui_exact(count, n, sizeof n), is_change ? tide_diff_change_name(i) : "same");
    }
}

bool tide_tui_table_of_compare(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out) {
    if (!tide_tui_list_begin(s, TIDE_TUI_LIST_COMPARE, body, out)) return false;
    out->t.columns = columns;
    out->t.n_columns = N_COLUMNS;
    out->t.cell = cell;
    out->r = tide_tui_compare_divide(s, out->r).rows;
    return true;
}

void tide_tui_draw_compare(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_diff *d = s->diff;
    char title[192] = "A and B", facts[192] = "", a[TIDE_TUI_WORD], b[TIDE_TUI_WORD];
    if (d != NULL) {
        const tide_subject_facts *fb = s->b != NULL ? s->b : s->a;
        snprintf(title, sizeof title, "A at %s, B%s at %s", tide_tui_when(s->a, d->a_at.t, a, sizeof a),
                 s->state->b_is_whatif ? " (what if)" : "", tide_tui_when(fb, d->b_at.t, b, sizeof b));
        say_facts(d, facts, sizeof facts);
    }
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_COMPARE, title, facts);
    if (d == NULL) {
        char empty[320], key_a[TIDE_TUI_WORD], key_b[TIDE_TUI_WORD];
        snprintf(empty, sizeof empty,
                 "There is no second input. Open one with :compare FILE, or set two moments: %s for A, %s for B.",
                 tide_tui_key_of(TIDE_TUI_SET_A, key_a, sizeof key_a),
                 tide_tui_key_of(TIDE_TUI_SET_B, key_b, sizeof key_b));
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_COMPARE, body, empty);
        return;
    }
    const tide_tui_compare_parts parts = tide_tui_compare_divide(s, body);
    draw_totals(v, parts.totals);
    draw_waterfall(v, parts.waterfall);
    tide_tui_list_table list;
    if (tide_tui_table_of_compare(s, body, &list)) tide_tui_draw_table_of(v, list.r, &list.t);
}
