"""Real text to fit models on: the documentation inside ordinary PyPI packages.

The wheels listed in `fit-packages.txt` (pinned, hashed, pure Python) are opened as archives and
never installed or run. Three kinds of text are taken from them: docstrings of modules, classes
and functions; the package description; and, in botocore, the service documentation. Text of other languages
is the translated messages in Django. A passage is
a (title, body) pair: the first paragraph and the rest. Code, tables and formulas are left out.
Each package gives at most `CHARACTERS_MAX` characters, so that no field dominates.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import html
import inspect
import json
import re
import struct
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zipfile import ZipFile

CHARACTERS_MAX = 350_000
BODY_CHARACTERS_MIN = 150
BODY_CHARACTERS_MAX = 6_000

MESSAGE_BYTES_MIN = 40
MESSAGES_CHARACTERS = 700

Passage = tuple[str, str]


@cache
def passages(wheels: Path) -> tuple[Passage, ...]:
    """All passages of the wheels in a directory. Their order depends on the texts only."""
    found: list[Passage] = []
    for wheel in sorted(wheels.glob("*.whl")):
        own = {passage for _, text in _texts(wheel) if (passage := _passage(text))}
        size = 0
        for passage in sorted(own, key=_shuffle):
            size += len(passage[0]) + len(passage[1])
            if size > CHARACTERS_MAX:
                break
            found.append(passage)
    return tuple(sorted(set(found), key=_shuffle))


@cache
def passages_of_many_languages(wheels: Path) -> tuple[Passage, ...]:
    """By turns a passage of `passages` and one of translated messages in Django."""
    (django,) = wheels.glob("django-*.whl")
    with ZipFile(django) as archive:
        messages: dict[str, set[str]] = {}
        for name in archive.namelist():
            if (found := re.fullmatch(r".*/locale/(\w+)/LC_MESSAGES/django\.mo", name)) and not found[1].startswith("en"):
                messages.setdefault(found[1], set()).update(_translations(archive.read(name)))
    translated = sorted({passage for own in messages.values() for passage in _joined(own)}, key=_shuffle)
    return tuple(passage for pair in zip(passages(wheels), translated) for passage in pair)


def _joined(messages: set[str]) -> Iterator[Passage]:
    """Passages of several messages of a language each."""
    body: list[str] = []
    for message in sorted(messages, key=lambda text: _shuffle(("", text))):
        body.append(message)
        if sum(map(len, body)) >= MESSAGES_CHARACTERS:
            yield body[0], " ".join(body[1:])
            body = []


def _translations(catalogue: bytes) -> Iterator[str]:
    """The longer translations of a .mo file (GNU gettext's manual, "The Format of GNU MO Files"), without their placeholders. The
    first entry is no message. Of several plural forms the first is taken."""
    _, _, count, _, table = struct.unpack_from("<5I", catalogue)
    for number in range(1, count):
        length, place = struct.unpack_from("<2I", catalogue, table + 8 * number)
        text = catalogue[place : place + length].decode().split("\0")[0]
        text = " ".join(re.sub(r"<[^>]+>|%(\(\w+\))?[a-z]|\{[^}]*\}", "", text).split())
        if len(text.encode()) >= MESSAGE_BYTES_MIN:
            yield text


def headings(wheels: Path) -> list[Passage]:
    """Yields (heading, body) for each documented thing whose name has two words or more and is unique."""
    named = {
        (" ".join(words).lower(), passage[1])
        for wheel in sorted(wheels.glob("*.whl"))
        for name, text in _texts(wheel)
        if len(words := re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)) >= 2 and (passage := _passage(text))
    }
    count = Counter(heading for heading, _ in named)
    return sorted((passage for passage in named if count[passage[0]] == 1), key=_shuffle)


def _shuffle(passage: Passage) -> bytes:
    return hashlib.sha256("\n".join(passage).encode()).digest()


def _texts(wheel: Path) -> Iterator[tuple[str, str]]:
    """Yields (name of the documented thing, or an empty one; text)."""
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/tests/" in name or "/test/" in name:
                continue
            if name.endswith(".py"):
                yield from _docstrings(archive.read(name))
            elif name.endswith(".dist-info/METADATA"):
                yield "", archive.read(name).decode("utf-8", "replace").partition("\n\n")[2]
            elif name.startswith("botocore/data/") and "service-2.json" in name:
                raw = archive.read(name)
                yield from _documentation(json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw))


def _docstrings(source: bytes) -> Iterator[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if text := ast.get_docstring(node):
                yield getattr(node, "name", ""), inspect.cleandoc(text)


def _documentation(node: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        text = node.get("documentation")
        if isinstance(text, str):
            yield name, html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"</p>|<br */?>", "\n\n", text)))
        for key, child in node.items():
            yield from _documentation(child, key)
    elif isinstance(node, list):
        for child in node:
            yield from _documentation(child)


def _passage(text: str) -> Passage | None:
    paragraphs = [clean for part in re.split(r"\n\s*\n", text) if (clean := _prose(part))]
    if len(paragraphs) < 2:
        return None
    title, body = paragraphs[0], "\n".join(paragraphs[1:])[:BODY_CHARACTERS_MAX]
    if not 15 <= len(title) <= 300 or len(body) < BODY_CHARACTERS_MIN:
        return None
    return title, body


def _prose(paragraph: str) -> str:
    """The paragraph as one line of plain text, or empty if it is not mainly words."""
    if ">>>" in paragraph or "::" in paragraph or ".. math" in paragraph or "----" in paragraph:
        return ""
    text = re.sub(r":[\w:]+:`~?([^`<]*)[^`]*`", r"\1", paragraph)
    text = " ".join(re.sub(r"[`*|]+|\[\d+\]_?", " ", text).split())
    words = re.findall(r"[A-Za-z]{2,}", text)
    letters = sum(map(len, words))
    return text if len(words) >= 4 and letters > 0.72 * len(text.replace(" ", "")) else ""
