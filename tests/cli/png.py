# SPDX-License-Identifier: MIT
"""Pictures that Chromium makes: how far two of them are apart. It draws the corners of boxes one level lighter or darker from
time to time."""

import base64
import struct
import zlib


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def lines(picture):
    """Lines of bytes of an 8-bit PNG in base64, as W3C's PNG has them (filters 0 to 4, not interlaced)."""
    data, at, packed = base64.b64decode(picture), 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, at + 8)
            assert (depth, interlaced) == (8, 0) and colour in (2, 6)
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += 12 + size
    step, raw = {2: 3, 6: 4}[colour], zlib.decompress(packed)
    before, out = bytearray(width * step), []
    for y in range(height):
        begin = y * (width * step + 1)
        kind, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * step])
        for x in range(len(line) if kind else 0):
            left, above, corner = (line[x - step], before[x], before[x - step]) if x >= step else (0, before[x], 0)
            line[x] = (line[x] + (0, left, above, (left + above) // 2, paeth(left, above, corner))[kind]) & 255
        out.append(line)
        before = line
    return out


def distance(a, b):
    """The largest difference of a level of two pictures of one size; 256: their sizes differ."""
    if a == b:
        return 0
    a, b = lines(a), lines(b)
    if [len(line) for line in a] != [len(line) for line in b]:
        return 256
    return max(abs(p - q) for one, other in zip(a, b) if one != other for p, q in zip(one, other))
