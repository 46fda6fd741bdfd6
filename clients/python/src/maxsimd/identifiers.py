"""Picks the words of a text that look like identifiers, such as `E11.65`, `read_file` or `XMLHttpRequest`.

Words end at white space and at marks of East Asian sentences, and where ASCII letters or digits meet a letter of a script
other than Latin: `什么是E11.65` has the word `E11.65`. So do the words of a query.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

SPACES = "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""White space as ECMAScript has it, so that both clients find the same words."""

_LENGTH_MIN, _LENGTH_MAX = 3, 64
_IDENTIFIERS_MAX = 64
_BETWEEN = re.compile(
    f"[{SPACES}\u3001\u3002\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]+"
)
_ASCII = re.compile("[0-9A-Za-z\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
"""Letters and digits, also as full-width forms."""
_LATIN = re.compile(
    "[A-Za-z\u00aa\u00ba-\u02b8\u02e0-\u02e4\u1d00-\u1d25\u1d2c-\u1d5c\u1d62-\u1d65\u1d6b-\u1d77\u1d79-\u1dbe\u1e00-\u1eff"
    "\u2071-\u209c\u212a\u212b\u2132\u214e-\u2184\u2c60-\u2c7f\ua722-\ua787\ua78b-\ua7ff\uab30-\uab64\uab66-\uab69"
    "\ufb00-\ufb06\uff21-\uff5a\U00010780-\U000107ba\U0001df00-\U0001df2a]"
)
"""All letters of the Latin script (Unicode 17), among characters that are no letters."""
_MARKS = ".,;:?!()\"'"
"""A sentence may put these around a word."""
_SIGN = re.compile(r"[\d_.]")


def identifiers_in(text: str) -> list[str]:
    """Each once, at most 64, the first ones. They have 3 to 64 characters with a digit, an underscore, an inner dot or camelCase."""
    found: dict[str, None] = {}
    for piece in _BETWEEN.split(text):
        for word in _words_in(piece):
            trimmed = word.strip(_MARKS)
            if _is_identifier(trimmed):
                found[trimmed] = None
            if len(found) == _IDENTIFIERS_MAX:
                return list(found)
    return list(found)


def _is_identifier(trimmed: str) -> bool:
    """A dot is inside, because the marks at both ends are gone."""
    if not _LENGTH_MIN <= len(trimmed) <= _LENGTH_MAX:
        return False
    return _SIGN.search(trimmed) is not None or any(
        unicodedata.category(one) == "Ll" and unicodedata.category(next_one) == "Lu"
        for one, next_one in pairwise(trimmed)
    )


def _words_in(piece: str) -> list[str]:
    """Cuts where ASCII letters or digits meet letters of another script. Signs between them stay with the former."""
    if piece.isascii():
        return [piece]
    words: list[str] = []
    start, letters_end = 0, 0
    is_other: bool | None = None
    for at, point in enumerate(piece):
        is_letter = _is_other_letter(point)
        if is_letter or _ASCII.match(point):
            if is_other is (not is_letter):
                cut = at if is_letter else letters_end
                words.append(piece[start:cut])
                start = cut
            is_other, letters_end = is_letter, at + 1
        elif letters_end == at and unicodedata.category(point).startswith("M"):
            letters_end += 1
    return [*words, piece[start:]]


def _is_other_letter(point: str) -> bool:
    return not point.isascii() and point.isalpha() and _LATIN.match(point) is None
