#!/usr/bin/python3
"""Prints src/data/unicode_ranges.hpp: letters, numbers and what NFC needs, by this Python's Unicode.

    src/data/unicode_ranges.py > src/data/unicode_ranges.hpp

Only the ranges from U+0080 on; a class is one letter: L (general categories L*) and N (N*) of one table, Q (NFC_Quick_Check
is No or Maybe: Unicode Standard Annex 15) of another, the canonical combining class of a third.
Decompositions are those of one step, without Hangul."""
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


def decompositions():
    """CODE=FIRST+SECOND of each character with one step of decomposition, = replaced by > where NFC does not make it of its parts."""
    for code in range(0x80, 0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if parts and not parts[0].startswith("<"):
            composes = unicodedata.normalize("NFC", "".join(chr(int(part, 16)) for part in parts)) == chr(code)
            yield f"{code:X}{'=' if composes else '>'}{'+'.join(f'{int(part, 16):X}' for part in parts)}"


def table(name, what, found):
    cells = [f"{{0x{first:X},0x{last:X},'{kind}'}}," for first, last, kind in found]
    return "\n".join([f"/// {what}", f"inline constexpr std::array<UnicodeRange, {len(found)}> {name}{{{{", *wrapped("   ", cells), "}};"])


def text(name, what, found):
    return "\n".join([f"/// {what}", f"inline constexpr std::string_view {name} =",
                      *(f'    "{line.strip()} "' for line in wrapped("", found)), "    ;"])


def wrapped(line, cells, width=118):
    start, lines = line, []
    for cell in cells:
        if len(line) + len(cell) > width:
            lines, line = lines + [line], start
        line += " " + cell
    return [*lines, line]


def main():
    joined = seconds()
    classes = ranges(lambda c: c_ if (c_ := unicodedata.category(c)[0]) in "LN" else None)
    marks = ranges(lambda c: unicodedata.combining(c) or None)
    unstable = ranges(lambda c: "Q" if c in joined or unicodedata.normalize("NFC", c) != c else None)
    print(f"""#pragma once

// Made by unicode_ranges.py of Unicode {unicodedata.unidata_version}.
// clang-format off

#include <array>
#include <string_view>

namespace nas {{

struct UnicodeRange {{
  char32_t first, last;
  char kind;
}};

{table("kUnicodeClasses", "Letters and numbers from U+0080 on.", classes)}

{table("kUnicodeUnstable", "Characters that are in no text in NFC, or not behind all others.", unstable)}

{text("kUnicodeMarks", "Canonical combining classes other than 0: first, last, class, in hexadecimal digits.",
      (f"{first:X}-{last:X}:{kind:X}" for first, last, kind in marks))}

{text("kUnicodeDecompositions", "Canonical decompositions in one step: code=first+second, > for = where NFC does not join them.",
      decompositions())}

}}  // namespace nas""")


main()
