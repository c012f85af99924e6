// SPDX-License-Identifier: MIT
//
// The pools of A and B at the cursor, or at two moments, side by side: the table of view 4 where there is a B, and what
// it says above it.
// Over time: pool_bands.c. See draw.h.
//
//     B - A: -1.38 MiB reserved, 0 B active. A: 5.88 MiB reserved, 4.50 MiB active; B at step 19: …
//       allocator    A reserved   B reserved        B - A   A active   B active      B - A
//     > pool 0         2.00 MiB            -    -2.00 MiB   2.00 MiB          -  -2.00 MiB
//       buffer                -     4.50 MiB    +4.50 MiB          -   4.50 MiB  +4.50 MiB
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

enum { POOL, KIND, A_RESERVED, B_RESERVED, MORE_RESERVED, A_ACTIVE, B_ACTIVE, MORE_ACTIVE, N_COLUMNS };
static const tide_tui_column columns[N_COLUMNS] = {
    [POOL] = {.title = "allocator", .key = "pool", .min_w = 12, .max_w = 32, .stretch = true},
    [KIND] = {.title = "kind", .key = "kind", .rank = 6},
    [A_RESERVED] = {.title = "A reserved", .key = "reserved_bytes", .min_w = 10, .right = true, .rank = 4},
    [B_RESERVED] = {.title = "B reserved", .min_w = 10, .right = true, .rank = 3},
    [MORE_RESERVED] = {.title = "B - A", .min_w = 10, .right = true, .rank = 5},
    [A_ACTIVE] = {.title = "A active", .key = "active_bytes", .min_w = 10, .right = true, .rank = 2},
    [B_ACTIVE] = {.title = "B active", .min_w = 10, .right = true, .rank = 1},
    [MORE_ACTIVE] = {.title = "B - A", .min_w = 10, .right = true},
};

static void say_bytes(const tide_pool *p, bool is_reserved, char *buf, size_t buf_bytes) {
    if (p == NULL)
        snprintf(buf, buf_bytes, "-");
    else
        tide_tui_bytes(is_reserved ? p->reserved_bytes : p->active_bytes, buf, buf_bytes);
}

static tide_tui_role say_change(const tide_pool *a, const tide_pool *b, bool is_reserved, char *buf, size_t buf_bytes) {
    const uint64_t from = a == NULL ? 0 : is_reserved ? a->reserved_bytes : a->active_bytes;
    const uint64_t to = b == NULL ? 0 : is_reserved ? b->reserved_bytes : b->active_bytes;
    tide_tui_change(from, to, buf, buf_bytes);
    return to > from ? TIDE_TUI_ROLE_PEAK : to < from ? TIDE_TUI_ROLE_GOOD : TIDE_TUI_ROLE_TEXT;
}

const tide_pool *tide_tui_pool_of_a(const tide_tui_scene *s, size_t row) {
    const tide_pool *p = &s->pools->items[row];
    return p->number != SIZE_MAX ? p : NULL;
}

/// "pool 0"; "stream_caching / cpu Workspace" where B has another allocator for it.
static void say_name(const tide_tui_scene *s, size_t row, char *buf, size_t buf_bytes) {
    const tide_pool *p = &s->pools->items[row], *b = s->pool_of_b[row];
    if (b == NULL || strcmp(p->name, b->name) == 0)
        tide_tui_say_pool(s, row, buf, buf_bytes);
    else
        snprintf(buf, buf_bytes, "%s / %s %s", tide_tui_named(p->name), tide_tui_named(b->name),
                 tide_memory_kind_name(p->kind));
}

static tide_tui_role cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = ((const tide_tui_list_table *)ctx)->scene;
    const tide_pool *p = &s->pools->items[row], *a = tide_tui_pool_of_a(s, row), *b = s->pool_of_b[row];
    switch (column) {
    case POOL:
        say_name(s, row, buf, buf_bytes);
        break;
    case KIND:
        snprintf(buf, buf_bytes, "%s", tide_memory_kind_name(p->kind));
        break;
    case A_RESERVED:
    case A_ACTIVE:
        say_bytes(a, column == A_RESERVED, buf, buf_bytes);
        break;
    case B_RESERVED:
    case B_ACTIVE:
        say_bytes(b, column == B_RESERVED, buf, buf_bytes);
        break;
    default:
        return say_change(a, b, column == MORE_RESERVED, buf, buf_bytes);
    }
    return TIDE_TUI_ROLE_TEXT;
}

void tide_tui_columns_of_both(tide_tui_list_table *out) {
    out->t.columns = columns;
    out->t.n_columns = N_COLUMNS;
    out->t.cell = cell;
}

void tide_tui_say_both(const tide_tui_scene *s, int form, char *buf, size_t buf_bytes) {
    const tide_pools *a = s->pools, *b = s->b_pools;
    char at[TIDE_TUI_WORD], a_all[TIDE_TUI_WORD], a_used[TIDE_TUI_WORD], b_all[TIDE_TUI_WORD], b_used[TIDE_TUI_WORD],
        more[TIDE_TUI_WORD], more_used[TIDE_TUI_WORD];
    tide_tui_when(s->state->compares_moments ? s->a : s->b, b->at.t, at, sizeof at);
    tide_tui_bytes(a->reserved_bytes, a_all, sizeof a_all);
    tide_tui_bytes(a->active_bytes, a_used, sizeof a_used);
    tide_tui_bytes(b->reserved_bytes, b_all, sizeof b_all);
    tide_tui_bytes(b->active_bytes, b_used, sizeof b_used);
    tide_tui_change(a->reserved_bytes, b->reserved_bytes, more, sizeof more);
    tide_tui_change(a->active_bytes, b->active_bytes, more_used, sizeof more_used);
    if (b->n == 0)
        snprintf(buf, buf_bytes, "B holds nothing at %s: no allocator and no plan of it is known.", at);
    else if (form == 0)
        snprintf(buf, buf_bytes,
                 "B - A: %s reserved, %s active. A: %s reserved, %s active; B at %s: %s reserved, %s active.", more,
                 more_used, a_all, a_used, at, b_all, b_used);
    else
        snprintf(buf, buf_bytes, "B - A: %s reserved, %s active.", more, more_used);
}
