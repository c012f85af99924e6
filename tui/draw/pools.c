// SPDX-License-Identifier: MIT
//
// POOLS: what allocators hold and who uses it; below, what was never freed and where that began. See draw.h.
//
//     == POOLS: allocators at 1.5 ms ===================== 4.00 MiB reserved ==
//     stream_caching on cpu (Workspace): 2.00 MiB of its 4.00 MiB stayed unused from 0 ns to 1.5 ms.
//       allocator       device      reserved     active     cached     unused    since
//     > stream_caching  cpu         4.00 MiB   1.00 MiB   3.00 MiB   2.00 MiB   1.2 ms
//     > stream_caching    4.00 MiB  ##:::::####::::::##::::                  over time: pool_bands.c
//     -- leaks: 3 sites, 40.0 KiB --
//       name       op     blocks      bytes   first seen   grows
//       kept       add    3 of 9   40.0 KiB       1.5 ms   yes, 3.20 KiB/s
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

// ---- pools ----

enum { SENTENCE = 640 };
enum {
    POOL,
    DEVICE,
    KIND,
    RESERVED,
    ACTIVE,
    CACHED,
    UNUSED,
    SINCE,
    LARGEST,
    FRAGMENTED,
    HIGHEST,
    WASTED,
    N_POOL_COLUMNS
};
static const tide_tui_column pool_columns[N_POOL_COLUMNS] = {
    [POOL] = {.title = "allocator", .key = "pool", .min_w = 20, .max_w = 32, .stretch = true},
    [DEVICE] = {.title = "device", .key = "device", .rank = 7},
    [KIND] = {.title = "kind", .key = "kind", .rank = 6},
    [RESERVED] = {.title = "reserved", .key = "reserved_bytes", .min_w = 10, .right = true, .rank = 2},
    [ACTIVE] = {.title = "active", .key = "active_bytes", .min_w = 10, .right = true, .rank = 4},
    [CACHED] = {.title = "cached", .key = "cached_bytes", .min_w = 10, .right = true, .rank = 1},
    [UNUSED] = {.title = "unused", .key = "unused_bytes", .min_w = 10, .right = true},
    [SINCE] = {.title = "since", .key = "unused_since", .min_w = 8, .right = true, .rank = 3},
    [LARGEST] = {.title = "largest free", .key = "largest_free_bytes", .right = true, .rank = 5},
    [FRAGMENTED] = {.title = "fragm.", .key = "fragmentation", .right = true, .rank = 9},
    [HIGHEST] = {.title = "peak reserved", .key = "peak_reserved_bytes", .right = true, .rank = 8},
    [WASTED] = {.title = "wasted", .key = "wasted_bytes", .right = true, .rank = 10},
};

static tide_tui_role pool_cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = ((const tide_tui_list_table *)ctx)->scene;
    const tide_pool *p = &s->pools->items[row];
    switch (column) {
    case POOL:
        tide_tui_say_pool(s, row, buf, buf_bytes);
        break;
    case DEVICE:
        snprintf(buf, buf_bytes, "%s", p->device);
        break;
    case KIND:
        snprintf(buf, buf_bytes, "%s", tide_memory_kind_name(p->kind));
        break;
    case RESERVED:
        tide_tui_bytes(p->reserved_bytes, buf, buf_bytes);
        break;
    case ACTIVE:
        tide_tui_bytes(p->active_bytes, buf, buf_bytes);
        break;
    case CACHED:
        tide_tui_bytes(p->cached_bytes, buf, buf_bytes);
        break;
    case UNUSED:
        tide_tui_bytes(p->unused_bytes, buf, buf_bytes);
        break;
    case SINCE:
        if (p->cached_bytes == 0 || p->cached_bytes == TIDE_UNKNOWN_BYTES) {
            snprintf(buf, buf_bytes, "-");
        } else if (p->unused_since <= s->a->begin) {
            snprintf(buf, buf_bytes, "always");
        } else {
            tide_tui_when(s->a, p->unused_since, buf, buf_bytes);
        }
        break;
    case LARGEST:
        tide_tui_bytes(p->largest_free_bytes, buf, buf_bytes);
        break;
    case FRAGMENTED:
        if (p->largest_free_bytes == TIDE_UNKNOWN_BYTES)
            snprintf(buf, buf_bytes, "unknown");
        else
            tide_tui_percent(p->cached_bytes - p->largest_free_bytes, p->cached_bytes, buf, buf_bytes);
        break;
    case WASTED:
        if (p->is_planned)
            tide_tui_bytes(p->wasted_bytes, buf, buf_bytes);
        else
            snprintf(buf, buf_bytes, "-");
        break;
    default:
        tide_tui_bytes(p->peak_reserved_bytes, buf, buf_bytes);
        break;
    }
    if (column == UNUSED && p->unused_bytes > 0 && p->unused_bytes != TIDE_UNKNOWN_BYTES) return TIDE_TUI_ROLE_PEAK;
    return TIDE_TUI_ROLE_TEXT;
}

/// The pool with the most unused bytes; SIZE_MAX: none.
static size_t most_unused(const tide_pools *pools) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < pools->n; i++) {
        const uint64_t unused = pools->items[i].unused_bytes;
        if (unused == 0 || unused == TIDE_UNKNOWN_BYTES) continue;
        // One that is larger, or there, at other moments of the window alone: "12 MiB of its 0 B" says nothing.
        if (unused > pools->items[i].reserved_bytes) continue;
        if (best == SIZE_MAX || unused > pools->items[best].unused_bytes) best = i;
    }
    return best;
}

/// Of a plan's pools the one that leaves most unused on average; SIZE_MAX: there are not several. Each context has the
/// same: the first one's are looked at.
static size_t most_wasted(const tide_pools *pools) {
    size_t best = SIZE_MAX, n = 0;
    for (size_t i = 0; i < pools->n; i++) {
        if (!pools->items[i].is_planned || pools->items[i].context > 1) continue;
        n++;
        if (best == SIZE_MAX || pools->items[i].wasted_bytes > pools->items[best].wasted_bytes) best = i;
    }
    return n > 1 && pools->items[best].wasted_bytes > 0 ? best : SIZE_MAX;
}

static void say_wasted(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    const size_t i = most_wasted(s->pools);
    if (i == SIZE_MAX) return;
    const tide_pool *p = &s->pools->items[i];
    char wasted[TIDE_TUI_WORD], size[TIDE_TUI_WORD];
    snprintf(buf, buf_bytes, " %s wastes most of the plan's pools: on average %s of its %s.", p->name,
             tide_tui_bytes(p->wasted_bytes, wasted, sizeof wasted),
             tide_tui_bytes(p->reserved_bytes, size, sizeof size));
}

/// Where nothing that is known stayed unused; of what the others keep nothing is known.
static void say_all_used(const tide_pools *pools, char *buf, size_t buf_bytes) {
    const tide_pool *unknown = NULL;
    size_t n = 0;
    for (size_t i = 0; i < pools->n; i++) {
        if (pools->items[i].unused_bytes != TIDE_UNKNOWN_BYTES) continue;
        unknown = &pools->items[i];
        n++;
    }
    if (n == 0)
        snprintf(buf, buf_bytes, "All that was held was used at some moment of this window.");
    else if (n == pools->n)
        snprintf(buf, buf_bytes, "What stays unused is unknown: no allocator here tells what it keeps.");
    else if (n == 1)
        snprintf(buf, buf_bytes, "All that is known was used at some moment; %s does not tell what it keeps.",
                 tide_tui_named(unknown->name));
    else
        snprintf(buf, buf_bytes, "All that is known was used at some moment; %zu pools do not tell what they keep.", n);
}

/// `window`: from when to when, which the axis above shows too.
static void say_unused(const tide_tui_scene *s, bool window, char *buf, size_t buf_bytes) {
    const size_t i = most_unused(s->pools);
    buf[0] = 0;
    if (s->pools->n == 0) return; // the table says so
    if (i == SIZE_MAX) {
        say_all_used(s->pools, buf, buf_bytes);
    } else {
        const tide_pool *p = &s->pools->items[i];
        char unused[TIDE_TUI_WORD], reserved[TIDE_TUI_WORD], from[TIDE_TUI_WORD], to[TIDE_TUI_WORD];
        snprintf(buf, buf_bytes, "%s on %s (%s): %s of its %s stayed unused%s%s%s%s.", tide_tui_named(p->name),
                 p->device, tide_memory_kind_name(p->kind), tide_tui_bytes(p->unused_bytes, unused, sizeof unused),
                 tide_tui_bytes(p->reserved_bytes, reserved, sizeof reserved), window ? " from " : "",
                 window ? tide_tui_when(s->a, s->state->window.begin, from, sizeof from) : "", window ? " to " : "",
                 window ? tide_tui_when(s->a, s->state->window.end, to, sizeof to) : "");
    }
}

/// The longest form that has room in `lines` of `w` columns.
static void say_all(const tide_tui_view *v, int w, size_t lines, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = v->scene;
    char growth[256];
    tide_tui_say_growth(s, most_unused(s->pools), growth, sizeof growth);
    if (s->pool_request != NULL) {
        tide_tui_say_request(s, buf, buf_bytes);
        return;
    }
    if (s->b_pools_error != NULL) {
        snprintf(buf, buf_bytes, "The pools of B are not known: %s", s->b_pools_error);
        return;
    }
    for (int form = 0; form < 2 && s->b_pools != NULL; form++) {
        tide_tui_say_both(s, form, buf, buf_bytes);
        if (form == 1 || tide_tui_wrap_count(v, w, buf) <= lines) return;
    }
    for (int form = 0; form < 4; form++) { // without the window, then without what it grew by
        say_unused(s, form == 0, buf, buf_bytes);
        const size_t len = strlen(buf);
        if (form < 2 && len < buf_bytes) say_wasted(s, buf + len, buf_bytes - len);
        const size_t more = strlen(buf);
        if (form < 3 && more < buf_bytes) snprintf(buf + more, buf_bytes - more, "%s", growth);
        if (tide_tui_wrap_count(v, w, buf) <= lines) return;
    }
}

/// Lines that the sentence above the table takes, of `most`.
static int sentence_lines(const tide_tui_scene *s, int w, int most) {
    const tide_tui_view v = {.scene = s, .glyphs = tide_tui_glyphs_of(false)};
    const tide_tui_locale locale = tide_tui_locale_enter();
    char text[SENTENCE];
    say_all(&v, w, (size_t)most, text, sizeof text);
    const size_t n = tide_tui_wrap_count(&v, w, text);
    tide_tui_locale_leave(locale);
    return n < (size_t)most ? (int)n : most;
}

// ---- leaks ----

enum { SITE, OWNER, LEAK_KIND, BLOCKS, BYTES, FIRST, GROWS, N_LEAK_COLUMNS };
static const tide_tui_column leak_columns[N_LEAK_COLUMNS] = {
    [SITE] = {.title = "never freed", .key = "name", .min_w = 16, .max_w = 40, .stretch = true},
    [OWNER] = {.title = "op", .key = "owner", .min_w = 8, .max_w = 32, .stretch = true, .rank = 3},
    [LEAK_KIND] = {.title = "kind", .key = "kind", .rank = 4},
    [BLOCKS] = {.title = "blocks", .key = "blocks", .right = true, .rank = 2},
    [BYTES] = {.title = "bytes", .key = "bytes", .min_w = 10, .right = true},
    [FIRST] = {.title = "began at", .key = "first", .min_w = 8, .right = true},
    [GROWS] = {.title = "grows", .key = "grows", .min_w = 5, .rank = 1},
};

static tide_tui_role leak_cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = ((const tide_tui_list_table *)ctx)->scene;
    const tide_leak *l = &s->leaks->items[row];
    char a[TIDE_TUI_WORD], b[TIDE_TUI_WORD];
    switch (column) {
    case SITE:
        snprintf(buf, buf_bytes, "%s", tide_tui_named(l->name));
        break;
    case OWNER:
        snprintf(buf, buf_bytes, "%s", l->owner);
        break;
    case LEAK_KIND:
        snprintf(buf, buf_bytes, "%s", tide_memory_kind_name(l->kind));
        break;
    case BLOCKS:
        snprintf(buf, buf_bytes, "%s of %s", tide_tui_exact(l->n, a, sizeof a),
                 tide_tui_exact(l->n_allocated, b, sizeof b));
        break;
    case BYTES:
        tide_tui_bytes(l->bytes, buf, buf_bytes);
        break;
    case FIRST:
        tide_tui_when(s->a, l->first, buf, buf_bytes);
        break;
    default:
        if (!l->grows) {
            snprintf(buf, buf_bytes, "no");
        } else if (l->per_second > 0 && l->per_second < 1e18) {
            snprintf(buf, buf_bytes, "yes, %s/s", tide_tui_bytes((uint64_t)(l->per_second + 0.5), a, sizeof a));
        } else {
            snprintf(buf, buf_bytes, "yes");
        }
        return l->grows ? TIDE_TUI_ROLE_PEAK : TIDE_TUI_ROLE_TEXT;
    }
    return TIDE_TUI_ROLE_TEXT;
}

// ---- the pane ----

bool tide_tui_table_of_pools(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out) {
    if (!tide_tui_list_begin(s, TIDE_TUI_LIST_POOLS, body, out)) return false;
    out->t.columns = pool_columns;
    out->t.n_columns = N_POOL_COLUMNS;
    out->t.cell = pool_cell;
    if (s->b_pools != NULL) tide_tui_columns_of_both(out);
    out->r = tide_tui_pools_divide(s, out->r).pools;
    return true;
}

bool tide_tui_table_of_leaks(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out) {
    if (!tide_tui_list_begin(s, TIDE_TUI_LIST_LEAKS, body, out)) return false;
    out->t.columns = leak_columns;
    out->t.n_columns = N_LEAK_COLUMNS;
    out->t.cell = leak_cell;
    out->r = tide_tui_pools_divide(s, out->r).leaks;
    return true;
}

static void draw_leaks(const tide_tui_view *v, const tide_tui_pools_parts *parts) {
    const tide_tui_scene *s = v->scene;
    const tide_leaks *leaks = s->leaks;
    if (parts->rule.h > 0) {
        char title[160], n[TIDE_TUI_WORD], size[TIDE_TUI_WORD];
        const size_t n_leaks = leaks != NULL ? leaks->n : 0;
        snprintf(title, sizeof title, n_leaks > 0 ? " leaks: %s site%s, %s%s " : " leaks ",
                 tide_tui_exact(n_leaks, n, sizeof n), n_leaks == 1 ? "" : "s",
                 tide_tui_bytes(leaks != NULL ? leaks->bytes : 0, size, sizeof size),
                 leaks != NULL && leaks->n_lost > 0 ? "; events were lost: some may have been freed" : "");
        tide_tui_fill_row(v->grid, parts->rule.x, parts->rule.y, parts->rule.w, v->glyphs->rule, TIDE_TUI_ROLE_DIM);
        tide_tui_text(v, parts->rule.x + 1, parts->rule.y, parts->rule.w - 2, title, TIDE_TUI_CUT_END,
                      TIDE_TUI_ROLE_LABEL);
    }
    if (parts->leaks.h <= 0) return;
    if (leaks == NULL || leaks->n == 0) {
        const char *text = !s->a->is_trace      ? "A plan has no leaks: all in it ends."
                           : leaks == NULL      ? "Leaks are not known yet."
                           : s->a->is_recording ? "Nothing that should have been freed is alive so far."
                                                : "Everything was freed.";
        tide_tui_lines p = {.v = v, .r = {parts->leaks.x + 1, parts->leaks.y, parts->leaks.w - 2, parts->leaks.h}};
        tide_tui_lines_wrap(&p, 0, text, TIDE_TUI_ROLE_DIM);
        return;
    }
    tide_tui_list_table list;
    if (tide_tui_table_of_leaks(s, tide_tui_body_of(s, TIDE_TUI_PANE_POOLS), &list))
        tide_tui_draw_table_of(v, parts->leaks, &list.t);
}

static bool has_lanes(const tide_tui_scene *s) { return s->pool_tensors != NULL && s->pool_tensors->n > 0; }

enum { ROOMY = 16 }; ///< lines from which on it may be said in lines of their own that there are none
/// A plan has no leaks: beside a B, and where its pools name their tensors, their lines are needed.
static bool has_leaks(const tide_tui_scene *s, int h) {
    if (s->leaks != NULL && s->leaks->n > 0) return true;
    return h >= ROOMY && (s->a->is_trace || (!has_lanes(s) && s->b_pools == NULL));
}

/// Bands have the lines that the two tables do not need, up to four for each and one for the tensors of each pool; one
/// for each where they are short. The table has six rows, or three where the bands need the others.
static void put_bands(const tide_tui_scene *s, tide_tui_pools_parts *parts, bool says_leaks, int *left) {
    const int n = s->pools->n > 64 ? 64 : (int)s->pools->n, sides = tide_tui_pools_have_two_axes(s) ? 2 : 1;
    const int n_leaks = s->leaks != NULL && s->leaks->n > 0 ? 3 : says_leaks ? 2 : 0;
    const bool has_request = s->state->request_bytes > 0;
    if (n == 0 || s->layout->panes[TIDE_TUI_PANE_CURVE].w <= 0) return;
    const int lanes = has_lanes(s) ? 1 : 0, request = has_request ? 1 : 0, least = (sides + lanes) * n + request;
    const bool is_short = (lanes > 0 || sides > 1) && *left - 7 - n_leaks < least;
    const int most_rows = is_short ? 3 : 6, rows = 1 + (n < most_rows ? n : most_rows);
    const int most = (4 * sides + lanes) * n + request;
    int h = *left - rows - n_leaks;
    if (h > most) h = most;
    if (h < 1) h = *left - 2 > n ? n : 0; // rather than leaks
    if (h < 2 && sides > 1) h = *left >= 6 ? 2 : 0;
    parts->bands.h = h;
    *left -= h;
}

tide_tui_pools_parts tide_tui_pools_divide(const tide_tui_scene *s, tide_tui_rect body) {
    tide_tui_pools_parts parts = {.pools = body, .leaks = {body.x, body.y, body.w, 0}};
    if (s->pools == NULL || body.h <= 0) return parts;
    const int n_leaks = s->leaks != NULL ? (s->leaks->n > 1000 ? 1000 : (int)s->leaks->n) : 0;
    const int n_pools = s->pools->n > 1000 ? 1000 : (int)s->pools->n;
    int y = body.y, left = body.h;
    const bool says_leaks = has_leaks(s, body.h);
    if (left >= 7 && body.w > 2) {
        const int lines = sentence_lines(s, body.w - 2, left >= 10 ? 3 : 2);
        parts.sentence = (tide_tui_rect){body.x + 1, y, body.w - 2, lines};
        y += lines;
        left -= lines;
    }
    parts.devices = (tide_tui_rect){body.x + 1, y, body.w - 2, tide_tui_device_lines(s, body.w - 2, left)};
    y += parts.devices.h;
    left -= parts.devices.h;
    put_bands(s, &parts, says_leaks, &left);
    // Leaks have what pools leave, and at least half of it when both are long; below six lines the selection decides.
    const int want_leaks = 1 + (n_leaks > 0 ? 1 + n_leaks : 1), want_pools = 1 + (n_pools > 0 ? n_pools : 1);
    int leaks_h = left - want_pools;
    if (leaks_h < want_leaks && leaks_h < left / 2) leaks_h = want_leaks < left / 2 ? want_leaks : left / 2;
    if (left < 6)
        leaks_h = n_leaks > 0 && s->state->pane_row[TIDE_TUI_PANE_POOLS] >= s->pools->n ? left : left - want_pools;
    if (leaks_h < 2 || !says_leaks) leaks_h = 0;
    parts.pools = (tide_tui_rect){body.x, y, body.w, left - leaks_h};
    y += left - leaks_h;
    if (parts.bands.h > 0) {
        parts.bands = (tide_tui_rect){body.x, y, body.w, parts.bands.h};
        y += parts.bands.h;
    }
    if (leaks_h > 0) {
        parts.rule = (tide_tui_rect){body.x, y, body.w, 1};
        parts.leaks = (tide_tui_rect){body.x, y + 1, body.w, leaks_h - 1};
    }
    return parts;
}

/// ", 6.00 MiB never freed"; ", all freed"; "": a plan, or not known.
static const char *say_leaked(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    char size[TIDE_TUI_WORD];
    buf[0] = 0;
    if (!s->a->is_trace || s->leaks == NULL || (s->a->is_recording && s->leaks->n == 0)) return buf;
    if (s->leaks->n == 0)
        snprintf(buf, buf_bytes, ", all freed");
    else
        snprintf(buf, buf_bytes, ", %s never freed", tide_tui_bytes(s->leaks->bytes, size, sizeof size));
    return buf;
}

void tide_tui_draw_pools(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    char title[128], when[TIDE_TUI_WORD], b_when[TIDE_TUI_WORD], size[TIDE_TUI_WORD], leaked[TIDE_TUI_WORD],
        facts[160] = "", sentence[SENTENCE];
    tide_tui_when(s->a, s->pools != NULL ? s->pools->at.t : s->state->cursor, when, sizeof when);
    if (s->b_pools != NULL && !tide_tui_pools_have_two_axes(s))
        snprintf(title, sizeof title, "A at %s, B at %s", when,
                 tide_tui_when(s->a, s->b_pools->at.t, b_when, sizeof b_when));
    else
        snprintf(title, sizeof title, s->b_pools != NULL ? "A and B at %s" : "allocators at %s", when);
    if (s->pools != NULL && s->b_pools != NULL)
        snprintf(facts, sizeof facts, "B - A %s reserved",
                 tide_tui_change(s->pools->reserved_bytes, s->b_pools->reserved_bytes, size, sizeof size));
    else if (s->pools != NULL)
        snprintf(facts, sizeof facts, "%s reserved%s", tide_tui_bytes(s->pools->reserved_bytes, size, sizeof size),
                 say_leaked(s, leaked, sizeof leaked));
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_POOLS, title, facts);
    if (s->pools == NULL) {
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_POOLS, body, "Nothing is known of allocators yet.");
        return;
    }
    const tide_tui_pools_parts parts = tide_tui_pools_divide(s, body);
    if (parts.sentence.h > 0) {
        say_all(v, parts.sentence.w, (size_t)parts.sentence.h, sentence, sizeof sentence);
        tide_tui_lines p = {.v = v, .r = parts.sentence};
        tide_tui_lines_wrap(&p, 0, sentence, TIDE_TUI_ROLE_TEXT);
    }
    tide_tui_draw_devices(v, parts.devices);
    if (s->pools->n == 0) {
        if (parts.pools.h > 0)
            tide_tui_text(v, body.x + 1, parts.pools.y, body.w - 2, "No allocator holds anything at this moment.",
                          TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    } else {
        tide_tui_list_table list;
        if (tide_tui_table_of_pools(s, body, &list)) tide_tui_draw_table_of(v, parts.pools, &list.t);
    }
    tide_tui_draw_pool_bands(v, parts.bands);
    draw_leaks(v, &parts);
}
