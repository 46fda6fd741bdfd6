"""Cuts a long document into parts that are documents, and finds what an import has left behind.

A part ends before a heading of Markdown, else at the end of a paragraph, else at the end of a sentence, else between words.
Its id is `ID#1`, `ID#2` and so on, and its metadata say where it comes from: `part_of`, `part` (from 1) and, below headings,
`headings` (from the outermost).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .added import METADATA_BYTES_MAX, AddedFields, assert_free, json_bytes, utf8
from .errors import MaxsimdError
from .identifiers import SPACES
from .models import StoredDocument

PART_FIELDS = ("part_of", "part")
"""Metadata of a part that say which one it is."""
CUT_BYTES_MIN = 1024
TEXT_BYTES_MAX = 100 * 1024
_DOC_ID_LENGTH_MAX = 255
_HEADING_LENGTH_MAX = 100
_PART_DIGITS_MAX = 8
"""Bytes of the longest `part` in metadata, beyond one digit."""
_IDENTIFIERS_BYTES = 1024
"""Bytes of metadata that a part with its text leaves for its identifiers. Most texts of this size need no more."""

_SPACE = f"[{SPACES}]"
_NOT_BREAK = f"[{SPACES.replace(chr(10), '')}]"
_PARAGRAPH = re.compile(rf"\n{_NOT_BREAK}*\n{_SPACE}*")
_CLOSING = "\"')\\]\u201d\u2019"
_SENTENCE = re.compile(rf"[.!?\u2026][{_CLOSING}]*{_SPACE}+|[\u3002\uff01\uff1f][{_CLOSING}\u300d]*|\n")
_WORD = re.compile(rf"{_SPACE}+")
_NO_SPACE = re.compile(f"[^{SPACES}]")
_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")
_HEADING = re.compile(rf" {{0,3}}(#{{1,6}})[ \t]+([^{SPACES}][^\n]*)\Z")
_CLOSING_SIGNS = re.compile(r"(?<![ \t])[ \t]+#+\Z")


@dataclass(frozen=True)
class Cutting:
    bytes: int
    """Bytes of UTF-8 that the text of a document has at most."""
    added: AddedFields
    """The metadata fields that the import adds. If one keeps the text, the metadata of a part have at most 16 KiB with it."""

    @property
    def metadata_bytes(self) -> int:
        """Bytes that the metadata of a part have at most with its text, if a field keeps it."""
        return METADATA_BYTES_MAX - (0 if self.added.identifiers is None else _IDENTIFIERS_BYTES)

    @staticmethod
    def of(cut: bool | int, added: AddedFields) -> Cutting | None:
        """None without a cut. Raises a `MaxsimdError` where `cut` is no number of bytes."""
        if cut is False:
            return None
        size = TEXT_BYTES_MAX if cut is True else cut
        if not isinstance(size, int) or not CUT_BYTES_MIN <= size <= TEXT_BYTES_MAX:
            raise MaxsimdError(f"cut: bytes of text from {CUT_BYTES_MIN} to {TEXT_BYTES_MAX}, or True")
        return Cutting(size, added)


@dataclass(frozen=True)
class _Heading:
    at: int
    """The place where it begins."""
    level: int
    path: list[str]
    """The words of the headings that it stands below, from the outermost, and its own."""


@dataclass(frozen=True)
class _Boundaries:
    """Places where a part may end, in ascending order."""

    headings: Sequence[_Heading]
    steps: Sequence[Sequence[int]]
    """Headings, paragraphs and sentences."""
    words: Sequence[int]


def cut_document(document: Mapping[str, Any], cutting: Cutting) -> list[Mapping[str, Any]]:
    """The document itself if it is short enough. Raises a `MaxsimdError` that says why it cannot be cut."""
    text = document.get("text")
    if not isinstance(text, str) or _fits(document, text, cutting):
        return [document]
    assert_free(document, ("part_of", "part", "headings", *cutting.added.names))
    boundaries = _boundaries_of(text)
    parts: list[Mapping[str, Any]] = []
    start = _after_space(text, 0)
    while start < len(text):
        number = len(parts) + 1
        headings = _headings_at(boundaries, start)
        doc_id = document.get("doc_id", "")
        metadata = {**(document.get("metadata") or {}), "part_of": doc_id, "part": number}
        if headings:
            metadata["headings"] = headings
        end = _end_of_part(text, start, boundaries, _room_of(metadata, cutting))
        part_id = f"{doc_id}#{number}"
        if len(part_id) > _DOC_ID_LENGTH_MAX:
            raise MaxsimdError(f"the id of a part has more than {_DOC_ID_LENGTH_MAX} characters")
        part = text[start:end].rstrip(SPACES)
        parts.append({**document, "doc_id": part_id, "text": part, "metadata": metadata})
        start = _after_space(text, end)
    # A text of spaces alone has no parts. The service refuses it.
    return parts or [document]


class StaleParts:
    """Finds the documents that an import has left behind.

    They are parts of an earlier import that are no longer there, and documents that were whole and are cut now. A document is
    left behind only if all parts of the present import are stored.
    """

    def __init__(self) -> None:
        self._parts: dict[str, int] = {}
        """Id of a document of the input -> number of its parts; 1 = whole."""

    def add(self, doc_id: str, parts: int) -> None:
        self._parts[doc_id] = parts

    def drop(self, doc_id: str) -> None:
        """This document, or part of a document, is not stored."""
        self._parts.pop(doc_id, None)
        self._parts.pop(doc_id.rpartition("#")[0], None)

    def concerns(self, document: StoredDocument) -> bool:
        """Whether the document belongs to one of the import."""
        return _source_of(document)[0] in self._parts

    def among(self, stored: Iterable[StoredDocument]) -> list[str]:
        """The ids, given all documents of the index that concern the import."""
        present: Counter[str] = Counter()
        candidates: list[tuple[str, str]] = []
        for document in stored:
            source, part = _source_of(document)
            parts = self._parts[source]
            if part == 0 if parts == 1 else 1 <= part <= parts:
                present[source] += 1
            elif part == 0 or document.doc_id not in self._parts:
                candidates.append((document.doc_id, source))
        return [doc_id for doc_id, source in candidates if present[source] == self._parts[source]]


def _source_of(document: StoredDocument) -> tuple[str, int]:
    """Part 0 is a document that is no part."""
    part_of, part = document.metadata.get("part_of"), document.metadata.get("part")
    is_part = isinstance(part, int) and not isinstance(part, bool) and part > 0
    if is_part and isinstance(part_of, str) and document.doc_id == f"{part_of}#{part}":
        return part_of, cast(int, part)
    return document.doc_id, 0


def _fits(document: Mapping[str, Any], text: str, cutting: Cutting) -> bool:
    if len(utf8(text)) > cutting.bytes:
        return False
    keep_text = cutting.added.keep_text
    if keep_text is None:
        return True
    return json_bytes({**(document.get("metadata") or {}), keep_text: text}) <= cutting.metadata_bytes


def _room_of(metadata: Mapping[str, Any], cutting: Cutting) -> tuple[int, float]:
    """Bytes that the text of a part may have: of its own, and as a string of JSON."""
    keep_text = cutting.added.keep_text
    if keep_text is None:
        return cutting.bytes, float("inf")
    rest = cutting.metadata_bytes - _PART_DIGITS_MAX - json_bytes({**metadata, keep_text: ""})
    if rest < CUT_BYTES_MIN:
        raise MaxsimdError(
            f"the other metadata leave {max(0, rest)} bytes for the text, and at least {CUT_BYTES_MIN} are needed"
        )
    return cutting.bytes, rest


def _end_of_part(text: str, start: int, boundaries: _Boundaries, room: tuple[int, float]) -> int:
    """Beyond the room only where one character is larger."""
    middle, furthest = _stretch(text, start, room)
    if furthest == len(text):
        return furthest
    # A part that ended before the middle would be small without need.
    for places in boundaries.steps:
        end = _last_within(places, middle, furthest)
        if end is not None:
            return end
    end = _last_within(boundaries.words, start, furthest)
    return furthest if end is None else end


def _stretch(text: str, start: int, room: tuple[int, float]) -> tuple[int, int]:
    """Where half of the room is used, and where all of it is."""
    size, json_size = room
    middle: int | None = None
    for end in range(start, len(text)):
        point = ord(text[end])
        own = 1 if point < 0x80 else 2 if point < 0x800 else 3 if point < 0x10000 else 4
        size -= own
        json_size -= _escaped_bytes(point, own)
        if (size < 0 or json_size < 0) and end > start:
            return middle or start, end
        if middle is None and (2 * size < room[0] or 2 * json_size < room[1]):
            middle = end
    return middle or start, len(text)


def _escaped_bytes(point: int, own: int) -> int:
    """In a string of JSON, as RFC 8259 (section 7) escapes it."""
    if point in (0x22, 0x5C):
        return 2
    if point < 0x20:
        return 2 if chr(point) in "\b\f\n\r\t" else 6
    return 6 if 0xD800 <= point <= 0xDFFF else own


def _boundaries_of(text: str) -> _Boundaries:
    headings = _headings_of(text)
    ends = [[match.end() for match in pattern.finditer(text)] for pattern in (_PARAGRAPH, _SENTENCE, _WORD)]
    return _Boundaries(headings, ([heading.at for heading in headings], *ends[:2]), ends[2])


def _headings_of(text: str) -> list[_Heading]:
    """CommonMark's ATX headings, outside of fenced code (https://spec.commonmark.org/0.31.2/#atx-headings)."""
    headings: list[_Heading] = []
    above: list[_Heading] = []
    fence: str | None = None
    for match in _LINE.finditer(text):
        line = match[0].rstrip(SPACES)
        mark = _FENCE.match(line)
        if fence is not None:
            if mark is not None and mark[1].startswith(fence) and line.strip(SPACES) == mark[1]:
                fence = None
            continue
        if mark is not None:
            fence = mark[1]
            continue
        heading = _HEADING.match(line)
        if heading is not None:
            words, level = _CLOSING_SIGNS.sub("", heading[2])[:_HEADING_LENGTH_MAX], len(heading[1])
            while above and above[-1].level >= level:
                above.pop()
            headings.append(_Heading(match.start(), level, [*(above[-1].path if above else []), words]))
            above.append(headings[-1])
    return headings


def _headings_at(boundaries: _Boundaries, place: int) -> list[str]:
    """The headings that a place stands below, from the outermost."""
    count = bisect_right(boundaries.steps[0], place)
    return boundaries.headings[count - 1].path if count > 0 else []


def _last_within(ascending: Sequence[int], after: int, to: int) -> int | None:
    """The last one above `after` and at most `to`."""
    place = bisect_right(ascending, to) - 1
    return ascending[place] if place >= 0 and ascending[place] > after else None


def _after_space(text: str, place: int) -> int:
    match = _NO_SPACE.search(text, place)
    return len(text) if match is None else match.start()
