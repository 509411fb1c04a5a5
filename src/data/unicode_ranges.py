#!/usr/bin/python3
"""Prints src/data/unicode_ranges.hpp: letters, numbers and what is not in NFC, by this Python's Unicode.

    src/data/unicode_ranges.py > src/data/unicode_ranges.hpp

Only the ranges from U+0080 on; a class is one letter: L (general categories L*) and N (N*) of one table, Q (NFC_Quick_Check
is No or Maybe: Unicode Standard Annex 15) of another."""
import unicodedata


def ranges(kind_of):
    found = []
    for code in range(0x80, 0x110000):
        kind = None if 0xD800 <= code <= 0xDFFF else kind_of(chr(code))
        if found and kind == found[-1][2] and found[-1][1] == code - 1:
            found[-1][1] = code
        elif kind:
            found.append([code, code, kind])
    return found


def seconds():
    """Characters that NFC may join to the one before: second of a primary composite, and the vowels and ends of Hangul."""
    joined = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for code in range(0x80, 0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            pair = "".join(chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", pair) == chr(code):
                joined.add(pair[1])
    return joined


def table(name, what, found):
    cells = [f"{{0x{first:X}, 0x{last:X}, '{kind}'}}," for first, last, kind in found]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) > 99:
            lines, line = lines + [line], "   "
        line += " " + cell
    return "\n".join([f"/// {what}", f"inline constexpr std::array<UnicodeRange, {len(found)}> {name}{{{{", *lines, line, "}};"])


def main():
    joined = seconds()
    classes = ranges(lambda c: c_ if (c_ := unicodedata.category(c)[0]) in "LN" else None)
    unstable = ranges(lambda c: "Q" if c in joined or unicodedata.normalize("NFC", c) != c else None)
    print(f"""#pragma once

// Made by unicode_ranges.py of Unicode {unicodedata.unidata_version}.
// clang-format off

#include <array>

namespace nas {{

struct UnicodeRange {{
  char32_t first, last;
  char kind;
}};

{table("kUnicodeClasses", "Letters and numbers from U+0080 on.", classes)}

{table("kUnicodeUnstable", "Characters that are in no text in NFC, or not behind all others.", unstable)}

}}  // namespace nas""")


main()
