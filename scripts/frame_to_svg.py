#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A frame of a terminal as an SVG picture: frame_to_svg.py dark|light < FRAME > PICTURE. FRAME is what `tmux capture-pane -ep`
prints: lines with colours as escape sequences. Block elements become rectangles, so that they meet in every font."""
import re
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, SIZE = 8.4, 17.0, 14  # of a cell, of its letters; pixels
THEMES = {"dark": ("#0d1117", "#e6edf3"), "light": ("#ffffff", "#1f2328")}  # ground, letters: those of GitHub's pages
BASIC = ["#000000", "#cd3131", "#0dbc79", "#c5a500", "#2472c8", "#bc3fbc", "#11a8cd", "#c0c0c0",
         "#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"]
QUARTERS = {"▘": 8, "▝": 4, "▖": 2, "▗": 1, "▀": 12, "▄": 3, "▌": 10, "▐": 5, "▚": 9, "▞": 6, "▙": 11, "▟": 7, "▛": 14, "▜": 13}
SHADES = {"░": 0.35, "▒": 0.6, "▓": 0.8}


def colour_256(n):
    if n < 16:
        return BASIC[n]
    if n >= 232:
        return "#" + 3 * f"{8 + 10 * (n - 232):02x}"
    levels = [0, 95, 135, 175, 215, 255]
    n -= 16
    return "#" + "".join(f"{levels[v]:02x}" for v in (n // 36, n // 6 % 6, n % 6))


class Pen:
    """What escape sequences have set."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.fg = self.bg = None
        self.bold = self.dim = self.reverse = self.underline = False

    def take(self, codes):
        codes = [int(c or 0) for c in codes.split(";")]
        while codes:
            c = codes.pop(0)
            if c == 0:
                self.reset()
            elif c in (1, 2, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 4: "underline", 7: "reverse"}[c], True)
            elif c in (22, 24, 27):
                self.bold, self.dim = (False, False) if c == 22 else (self.bold, self.dim)
                self.underline, self.reverse = self.underline and c != 24, self.reverse and c != 27
            elif c in (38, 48):
                kind = codes.pop(0)
                value = colour_256(codes.pop(0)) if kind == 5 else "#" + "".join(f"{codes.pop(0):02x}" for _ in range(3))
                setattr(self, "fg" if c == 38 else "bg", value)
            elif c in (39, 49):
                setattr(self, "fg" if c == 39 else "bg", None)
            elif 30 <= c <= 37 or 90 <= c <= 97:
                self.fg = BASIC[c - 30 if c < 90 else c - 82]
            elif 40 <= c <= 47 or 100 <= c <= 107:
                self.bg = BASIC[c - 40 if c < 100 else c - 92]

    def style(self, theme):
        ground, letters = THEMES[theme]
        fg, bg = self.fg or letters, self.bg
        if self.reverse:
            fg, bg = bg or ground, self.fg or letters
        return fg, bg, self.bold, self.dim, self.underline


def cells(line, pen, theme):
    """[(character, style)] of one line."""
    found = []
    for part in re.split(r"(\x1b\[[\d;]*m|\x1b\(.|\x1b\]8[^\x1b\x07]*(?:\x1b\\|\x07)|[\x0e\x0f])", line):
        if part.startswith("\x1b["):
            pen.take(part[2:-1])
        elif part[:1] not in ("\x1b", "\x0e", "\x0f"):
            found += [(c, pen.style(theme)) for c in part]
    return found


def rect(x, y, w, h, fill, opacity=1.0):
    more = f' opacity="{opacity}"' if opacity < 1 else ""
    return f'<rect x="{x:.1f}" y="{y:.2f}" width="{w:.1f}" height="{h:.2f}" fill="{fill}"{more}/>'


def shape(c, n, x, y, fg):
    """`n` cells of a character that is drawn and not written; None: it is a letter."""
    w = n * WIDTH
    if "▁" <= c <= "█":
        h = (ord(c) - ord("▁") + 1) / 8 * HEIGHT
        return rect(x, y + HEIGHT - h, w, h, fg)
    if c in SHADES:
        return rect(x, y, w, HEIGHT, fg, SHADES[c])
    if c in "─═":
        return "".join(rect(x, y + HEIGHT * at, w, 1, fg) for at in ((0.5,) if c == "─" else (0.42, 0.58)))
    if c == "│":
        return "".join(rect(x + (i + 0.45) * WIDTH, y, 1, HEIGHT, fg) for i in range(n))
    if c in QUARTERS:
        half, tall, out = WIDTH / 2, HEIGHT / 2, ""
        for i in range(n):
            for bit, dx, dy in ((8, 0, 0), (4, half, 0), (2, 0, tall), (1, half, tall)):
                if QUARTERS[c] & bit:
                    out += rect(x + i * WIDTH + dx, y + dy, half, tall, fg)
        return out
    return None


def runs(line):
    """[(column, text, style)]: letters of one style together, and each drawn character with its like."""
    out = []
    for i, (c, style) in enumerate(line):
        drawn = shape(c, 1, 0, 0, "") is not None
        if out and out[-1][2] == style and (out[-1][1][-1] == c if drawn else not out[-1][3]):
            out[-1][1] += c
        else:
            out.append([i, c, style, drawn])
    return [run[:3] for run in out]


def letters(x, y, text, style):
    """Words; where there are several spaces between them, each as a text of its own, for pictures close them up."""
    fg, _, bold, dim, underline = style
    more = (' font-weight="bold"' if bold else "") + (' opacity=".7"' if dim else "") + (' text-decoration="underline"' if underline else "")
    out = ""
    for word in re.finditer(r"\S+(?: \S+)*", text):
        n = len(word[0])
        length = f' textLength="{n * WIDTH:.1f}"' if n > 1 else ""
        out += f'<text x="{x + word.start() * WIDTH:.1f}" y="{y + 13:.1f}" fill="{fg}"{length}{more}>{escape(word[0])}</text>'
    return out


def picture(frame, theme):
    pen, out = Pen(), []
    lines = [cells(line, pen, theme) for line in frame.rstrip("\n").split("\n")]
    columns = max(map(len, lines))
    for row, line in enumerate(lines):
        y = row * HEIGHT
        for column, text, style in runs(line):
            x = column * WIDTH
            if style[1]:
                out.append(rect(x, y, len(text) * WIDTH, HEIGHT, style[1]))
            out.append(shape(text[0], len(text), x, y, style[0]) or letters(x, y, text, style))
    width, height = columns * WIDTH + 16, len(lines) * HEIGHT + 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
            f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{SIZE}">\n<rect x="-8" y="-8" width="100%" height="100%" rx="6" fill="{THEMES[theme][0]}"/>\n'
            + "\n".join(part for part in out if part) + "\n</svg>\n")


if __name__ == "__main__":
    sys.stdout.write(picture(sys.stdin.read(), sys.argv[1]))
