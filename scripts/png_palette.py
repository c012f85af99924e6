#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A picture with few colours, a third as large: png_palette.py IN.png OUT.png COLOURS. Colours that are far from those chosen
so far and often there are kept, and every other one becomes the nearest of them."""
import base64
import collections
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "cli"))
import png  # noqa: E402


def apart(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def choose(counts, n):
    """The most frequent one, then always the one whose distance, weighed by how often it is there, is largest."""
    common = [c for c, _ in counts.most_common(4000)]
    chosen = [common[0]]
    distance = {c: apart(c, chosen[0]) for c in common}
    while len(chosen) < min(n, len(common)):
        best = max(common, key=lambda c: distance[c] * counts[c] ** 0.5)
        chosen.append(best)
        for c in common:
            distance[c] = min(distance[c], apart(c, best))
    return chosen


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main():
    source, target, n = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    data = source.read_bytes()
    rows = png.lines(base64.b64encode(data))
    width, height, _, colour = struct.unpack(">IIBB", data[16:26])
    step = {2: 3, 6: 4}[colour]
    pixels = [[tuple(row[x:x + 3]) for x in range(0, width * step, step)] for row in rows]
    counts = collections.Counter(p for row in pixels for p in row)
    chosen = choose(counts, n)
    index = {c: min(range(len(chosen)), key=lambda i: apart(c, chosen[i])) for c in counts}
    raw = b"".join(b"\0" + bytes(index[p] for p in row) for row in pixels)
    target.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
                       chunk(b"PLTE", b"".join(bytes(c) for c in chosen)) + chunk(b"IDAT", zlib.compress(raw, 9)) +
                       chunk(b"IEND", b""))


if __name__ == "__main__":
    main()
