"""Reads what a browser's canvas writes: 8-bit PNG pictures without interlacing."""
import struct
import zlib


def _unfiltered(kind, line, above, step):
    done = bytearray(line)
    for i, value in enumerate(line):
        left = done[i - step] if i >= step else 0
        up = above[i]
        corner = above[i - step] if i >= step else 0
        if kind == 1:
            done[i] = (value + left) & 255
        elif kind == 2:
            done[i] = (value + up) & 255
        elif kind == 3:
            done[i] = (value + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            done[i] = (value + near) & 255
    return done


def decode(data):
    """(width, height, {colour: pixels}) of a PNG."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
    at, packed, size, channels = 8, b"", None, 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body), "a damaged PNG"
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and interlace == 0 and colour in (2, 6), (depth, colour, interlace)
            size, channels = (width, height), 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    lines = zlib.decompress(packed)
    stride = size[0] * channels
    assert len(lines) == size[1] * (stride + 1)
    above, colours = bytearray(stride), {}
    for y in range(size[1]):
        start = y * (stride + 1)
        above = _unfiltered(lines[start], lines[start + 1:start + 1 + stride], above, channels)
        for x in range(0, stride, channels):
            pixel = bytes(above[x:x + 3])
            colours[pixel] = colours.get(pixel, 0) + 1
    return size[0], size[1], colours
