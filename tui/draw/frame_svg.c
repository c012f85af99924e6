// SPDX-License-Identifier: MIT
//
// Cells as rectangles and text. See frame_svg.h.
#include "tui/draw/frame_svg.h"

#include "core/base/utf8.h"
#include "tui/draw/colours.h"

enum { CELL_W = 8, CELL_H = 16, BASELINE = 12, PAPER = 0xFFFFFF, INK = 0x1A1A1A };

/// What a cell looks like, its reverse resolved.
typedef struct look {
    int32_t fore, back; ///< back TIDE_TUI_OWN_COLOUR: the paper
    unsigned attrs;
} look;

static look look_of(tide_tui_cell cell) {
    const tide_tui_look l = tide_tui_look_of(TIDE_TUI_COLOUR_TRUE, TIDE_TUI_GROUND_LIGHT, (tide_tui_role)cell.role);
    look out = {l.colour == TIDE_TUI_OWN_COLOUR ? INK : l.colour,
                tide_tui_ground_colour(TIDE_TUI_COLOUR_TRUE, TIDE_TUI_GROUND_LIGHT, (tide_tui_role)cell.ground),
                l.attrs};
    if (cell.marks & TIDE_TUI_MARK_MATCH) out.attrs |= TIDE_TUI_ATTR_UNDERLINE;
    const bool reverse = ((out.attrs & TIDE_TUI_ATTR_REVERSE) != 0) != ((cell.marks & TIDE_TUI_MARK_SELECTED) != 0);
    if (!reverse) return out;
    const int32_t fore = out.fore;
    out.fore = out.back == TIDE_TUI_OWN_COLOUR ? PAPER : out.back;
    out.back = fore;
    return out;
}

static bool same(look a, look b) { return a.fore == b.fore && a.back == b.back && a.attrs == b.attrs; }

/// Eighths of the cell's height that a block element fills, from below, or from above (negative); 0: it is no block.
static int block_of(uint32_t glyph) {
    if (glyph >= 0x2581 && glyph <= 0x2588) return (int)(glyph - 0x2580);
    return glyph == 0x2580 ? -4 : 0;
}

/// Quadrants that begin and end a bar (all but the lower right one, all but the upper left one), and those of a hatch
/// (the upper left one and the lower right one).
static bool is_quadrants(uint32_t glyph) { return glyph == 0x259B || glyph == 0x259F || glyph == 0x259A; }

/// Light of shades: a quarter, a half, three quarters; 0: it is none.
static int shade_of(uint32_t glyph) { return glyph >= 0x2591 && glyph <= 0x2593 ? (int)(glyph - 0x2590) : 0; }

static bool is_shape(uint32_t glyph) { return block_of(glyph) != 0 || shade_of(glyph) != 0 || is_quadrants(glyph); }

static void add_rect(tide_text *out, int x, int y, int w, int h, int32_t colour, int quarters) {
    tide_text_addf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"", x, y, w, h,
                   (unsigned)colour);
    if (quarters < 4) tide_text_addf(out, " fill-opacity=\"%s\"", quarters == 1 ? ".25" : quarters == 2 ? ".5" : ".75");
    tide_text_add(out, "/>\n");
}

static void add_shape(tide_text *out, int x, int y, int n, uint32_t glyph, int32_t colour) {
    const int block = block_of(glyph), h = (block < 0 ? -block : block) * CELL_H / 8;
    for (int i = 0; is_quadrants(glyph) && i < n; i++) {
        const int left = (x + i) * CELL_W, top = y * CELL_H, half_w = CELL_W / 2, half_h = CELL_H / 2;
        if (glyph != 0x259F) add_rect(out, left, top, half_w, half_h, colour, 4);
        if (glyph != 0x259A) add_rect(out, left + half_w, top, half_w, half_h, colour, 4);
        if (glyph != 0x259A) add_rect(out, left, top + half_h, half_w, half_h, colour, 4);
        if (glyph != 0x259B) add_rect(out, left + half_w, top + half_h, half_w, half_h, colour, 4);
    }
    if (is_quadrants(glyph)) return;
    if (block == 0)
        add_rect(out, x * CELL_W, y * CELL_H, n * CELL_W, CELL_H, colour, shade_of(glyph));
    else
        add_rect(out, x * CELL_W, y * CELL_H + (block < 0 ? 0 : CELL_H - h), n * CELL_W, h, colour, 4);
}

static void add_glyph(tide_text *out, uint32_t glyph) {
    char bytes[4];
    if (glyph == '<')
        tide_text_add(out, "&lt;");
    else if (glyph == '&')
        tide_text_add(out, "&amp;");
    else
        tide_text_add_n(out, bytes, tide_utf8_encode(glyph, bytes));
}

static void add_phrase(tide_text *out, const tide_tui_cell *cells, int x, int y, int n, look l) {
    tide_text_addf(out, "<text x=\"%d\" y=\"%d\" textLength=\"%d\"", x * CELL_W, y * CELL_H + BASELINE, n * CELL_W);
    if (l.fore != INK) tide_text_addf(out, " fill=\"#%06x\"", (unsigned)l.fore);
    if (l.attrs & TIDE_TUI_ATTR_BOLD) tide_text_add(out, " font-weight=\"bold\"");
    if (l.attrs & TIDE_TUI_ATTR_UNDERLINE) tide_text_add(out, " text-decoration=\"underline\"");
    tide_text_add(out, ">");
    for (int i = 0; i < n; i++)
        if (cells[i].glyph != 0) add_glyph(out, cells[i].glyph);
    tide_text_add(out, "</text>\n");
}

static bool is_blank(const tide_tui_cell *cells, int i, int n) { return i >= n || cells[i].glyph == ' '; }

/// Cells of one look, side by side, none of which is a shape: phrases between which there are two blanks or more, for
/// not every viewer keeps those. A width of its own keeps each in its columns whatever the font.
static void add_words(tide_text *out, const tide_tui_cell *cells, int x, int y, int n, look l) {
    for (int from = 0, to; from < n; from = to + 1) {
        to = from;
        if (is_blank(cells, from, n)) continue;
        while (!is_blank(cells, to, n) || !is_blank(cells, to + 1, n)) to++;
        add_phrase(out, cells + from, x + from, y, to - from, l);
    }
}

static void add_row(const tide_tui_grid *grid, int y, tide_text *out) {
    const tide_tui_cell *row = grid->cells + (size_t)y * (size_t)grid->width;
    for (int x = 0, end; x < grid->width; x = end) {
        const look l = look_of(row[x]);
        const bool shape = is_shape(row[x].glyph);
        for (end = x + 1; end < grid->width && same(look_of(row[end]), l); end++) {
            if (shape ? row[end].glyph != row[x].glyph : is_shape(row[end].glyph)) break;
        }
        if (l.back != TIDE_TUI_OWN_COLOUR) add_rect(out, x * CELL_W, y * CELL_H, (end - x) * CELL_W, CELL_H, l.back, 4);
        if (shape)
            add_shape(out, x, y, end - x, row[x].glyph, l.fore);
        else
            add_words(out, row + x, x, y, end - x, l);
    }
}

void tide_tui_grid_to_svg(const tide_tui_grid *grid, tide_text *out) {
    const int w = grid->width * CELL_W, h = grid->height * CELL_H;
    tide_text_addf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                   "font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\" "
                   "fill=\"#%06x\">\n",
                   w, h, w, h, INK);
    add_rect(out, 0, 0, w, h, PAPER, 4);
    for (int y = 0; y < grid->height; y++) add_row(grid, y, out);
    tide_text_add(out, "</svg>\n");
}
