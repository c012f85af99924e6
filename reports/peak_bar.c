// SPDX-License-Identifier: MIT
//
// peak_bar: what is held at the peak, tensor by tensor: one bar, and its parts in words. A part leads to the tensor:
// with the page's script in the picture and the list, without it in the table. See render.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/html_text.h"
#include "core/base/host_alloc.h"
#include "reports/render.h"

enum { MAX_NAMED = 10, MAX_PARTS = MAX_NAMED + 2 + TIDE_N_PARTS, NAME_CHARS = 60 };

typedef struct part {
    const char *name;
    size_t n; // blocks of that name; 0: one, or no block
    uint64_t bytes;
    int fill;                 // of a tensor; -1: of none
    const tide_live_item *of; // NULL: several, or no tensor
    bool weights;             // all of them, folded
    bool no_tensor;           // rounding, holes, …
} part;

typedef struct bar {
    const tide_report *r;
    const tide_report_side *side;
    const char *id;
    part parts[MAX_PARTS];
    size_t n;
    char weights[64], more[64];
} bar;

static void add_part(bar *b, part p) {
    if (p.bytes > 0) b->parts[b->n++] = p;
}

// ---- blocks of a trace that have one name and one operator are one part ----

typedef struct holder {
    const tide_live_item *first; // the largest of them
    uint64_t bytes;
    size_t n;
} holder;

static int by_site(const void *a, const void *b) {
    const tide_live_item *x = ((const holder *)a)->first, *y = ((const holder *)b)->first;
    const int names = strcmp(x->site.name, y->site.name), owners = strcmp(x->site.owner, y->site.owner);
    if (names != 0 || owners != 0) return names != 0 ? names : owners;
    return (x > y) - (x < y); // as in the list: the largest first
}

static int by_size(const void *a, const void *b) {
    const holder *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static bool same_site(const tide_live_item *a, const tide_live_item *b) {
    return strcmp(a->site.name, b->site.name) == 0 && strcmp(a->site.owner, b->site.owner) == 0;
}

/// Those that follow each other by their names are one. @return how many are left
static size_t join(holder *list, size_t n) {
    size_t n_out = 0;
    qsort(list, n, sizeof *list, by_site);
    for (size_t i = 0; i < n; i++) {
        if (n_out > 0 && same_site(list[n_out - 1].first, list[i].first)) {
            list[n_out - 1].bytes += list[i].bytes;
            list[n_out - 1].n++;
        } else {
            list[n_out++] = list[i];
        }
    }
    return n_out;
}

/// What is alive, the largest first: of a trace by site, of a plan each tensor. `out` [live.n]. @return how many
static size_t find_holders(const tide_report_side *s, bool folded, holder *out) {
    const tide_live_items *live = &s->why.live;
    size_t n = 0;
    for (size_t k = 0; k < live->n; k++) {
        const tide_live_item *x = &live->items[k];
        const bool is_folded = folded && x->shape.kind == TIDE_KIND_PERSISTENT;
        if (x->is_unused || is_folded) continue; // is a part of its own
        out[n++] = (holder){x, x->counts_bytes, 1};
    }
    if (s->facts->is_trace && n > 1) n = join(out, n);
    if (n > 1) qsort(out, n, sizeof *out, by_size);
    return n;
}

static void add_holders(bar *b, const holder *list, size_t n) {
    uint64_t rest = 0, n_rest = 0;
    for (size_t i = 0; i < n; i++) {
        const tide_live_item *x = list[i].first;
        if (b->n < MAX_NAMED && list[i].bytes > 0) {
            add_part(b, (part){x->site.name, list[i].n, list[i].bytes, (int)x->shape.fill, x, false, false});
        } else {
            rest += list[i].bytes;
            n_rest += list[i].n;
        }
    }
    snprintf(b->more, sizeof b->more, "in %" PRIu64 " more", n_rest);
    add_part(b, (part){b->more, 0, rest, -1, NULL, false, false});
}

/// Largest first: tensors by name, then the rest of them, then what no tensor holds. False: no memory.
static bool make_parts(bar *b, bool folded) {
    const tide_report_side *s = b->side;
    const tide_live_items *live = &s->why.live;
    uint64_t parts = 0;
    holder *list = tide_host_calloc(live->n + 1, sizeof *list);
    if (list == NULL) return false;
    if (folded)
        add_part(b, (part){tide_report_weights_name(&s->weights, b->weights, sizeof b->weights), 0, s->weights.bytes,
                           TIDE_ITEM_FILL_WEIGHT, NULL, true, false});
    for (size_t k = 0; k < live->n; k++) parts += live->items[k].is_unused ? 0 : live->items[k].counts_bytes;
    add_holders(b, list, find_holders(s, folded, list));
    tide_host_free(list);
    // of a plan the tensors hold their rounding too
    for (int p = parts > s->why.parts[TIDE_PART_LIVE] ? TIDE_PART_HOLES : TIDE_PART_ROUNDING; p < TIDE_N_PARTS; p++)
        add_part(b, (part){tide_part_name((tide_part_kind)p), 0, s->why.parts[p], -1, NULL, false, true});
    return true;
}

/// Its link: the table without a script; with it, the item of that number.
static void open_link(const bar *b, const part *p, bool in_bar, tide_text *out) {
    tide_text_addf(out, "<a href=\"#t-%s-%s\"%s", p->no_tensor ? "peak_parts" : "peak_items", b->id,
                   in_bar ? " tabindex=\"-1\"" : "");
    const size_t at =
        p->of != NULL && p->of->item != TIDE_NO_ITEM ? tide_report_live_index(b->side, p->of->item) : SIZE_MAX;
    if (at != SIZE_MAX) tide_text_addf(out, " data-item=\"%zu\"", at);
    if (p->weights) tide_text_add(out, " data-item=\"-2\"");
    tide_text_add(out, ">");
}

static void add_class(const part *p, tide_text *out) {
    if (p->fill < 0)
        tide_text_add(out, "class=\"rest\"");
    else
        tide_text_addf(out, "class=\"k%d\"", p->fill);
}

static void add_name(const part *p, tide_text *out) {
    tide_html_add_cut(out, p->name[0] != '\0' ? p->name : "(no name)", NAME_CHARS);
    if (p->n > 1) tide_text_addf(out, " (%zu)", p->n);
}

static void add_picture(const bar *b, tide_text *out) {
    const double whole = (double)b->side->why.held_bytes;
    char size[24];
    double x = 0.0;
    tide_text_add(out, "<svg class=\"bar\" width=\"100%\" height=\"34\" aria-hidden=\"true\">\n");
    for (size_t i = 0; i < b->n; i++) {
        const part *p = &b->parts[i];
        const double width = 100.0 * (double)p->bytes / whole;
        open_link(b, p, true, out);
        tide_text_add(out, "<rect ");
        add_class(p, out);
        tide_text_addf(out, " x=\"%.2f%%\" width=\"%.2f%%\" height=\"34\"/>", x, width);
        if (width >= 2.5) tide_text_addf(out, "<text x=\"%.2f%%\" y=\"22\">%zu</text>", x + width / 2.0, i + 1);
        tide_text_add(out, "<title>");
        add_name(p, out);
        tide_text_addf(out, " %s</title></a>\n", tide_format_bytes(p->bytes, size, sizeof size));
        x += width;
    }
    tide_text_add(out, "</svg>\n");
}

static void add_words(const bar *b, tide_text *out) {
    char size[24];
    tide_text_add(out, "<ol class=\"parts\">\n");
    for (size_t i = 0; i < b->n; i++) {
        const part *p = &b->parts[i];
        tide_text_add(out, "<li>");
        open_link(b, p, false, out);
        tide_text_add(out, "<bdi>");
        add_name(p, out);
        tide_text_addf(out, "</bdi></a> <b>%s</b> %.1f %%</li>\n", tide_format_bytes(p->bytes, size, sizeof size),
                       100.0 * (double)p->bytes / (double)b->side->why.held_bytes);
    }
    tide_text_add(out, "</ol>\n");
}

void tide_report_peak_bar(const tide_report *r, const tide_report_side *s, const char *id, tide_text *out) {
    if (s->why.held_bytes == 0) return;
    for (int folded = s->weights.n > 1; folded >= 0; folded--) {
        bar b = {.r = r, .side = s, .id = id};
        if (!make_parts(&b, folded)) {
            out->failed = true;
            return;
        }
        tide_text_addf(out, "<div class=\"peakbar\" data-side=\"%d\" data-folded=\"%d\"%s>\n", id[0] == 'b', folded,
                       folded != (int)s->weights.folded ? " hidden" : "");
        add_picture(&b, out);
        add_words(&b, out);
        tide_text_add(out, "</div>\n");
    }
}
