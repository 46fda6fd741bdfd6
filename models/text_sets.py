"""Collections made of text at hand: halves of documents that look for each other, questions that look for their passage.

Halves: the first half of a document is the query, its second half is what is to be found among all second halves. The cut is
at the end of a sentence near the middle. A text of which a half shares a third of its runs of eight words with texts before it
is left out: pages made from one form would have many right answers. Each of these sets is a `Collection` of `evaluate.py`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

from evaluate import Collection

SEED = 20260101
RUN_WORDS = 8
SHARED_MAX = 1 / 3


def halves(name: str, texts: Iterable[str], words: range, documents_max: int, queries_max: int) -> Collection:
    """`words`: how many a text may have to be taken."""
    kept, seen = [], set()
    for text in shuffled(dict.fromkeys(texts)):
        if len(text.split()) not in words:
            continue
        both = cut(text)
        runs = [runs_of_words(half) for half in both]
        if any(len(own & seen) > SHARED_MAX * len(own) for own in runs):
            continue
        seen.update(*runs)
        kept.append(both)
        if len(kept) == documents_max:
            break
    identifiers = [str(number) for number in range(len(kept))]
    asked = min(queries_max, len(kept))
    return Collection(
        name,
        identifiers,
        [second for _, second in kept],
        identifiers[:asked],
        [first for first, _ in kept[:asked]],
        {identifiers[number]: {number: 1.0} for number in range(asked)},
    )


def runs_of_words(text: str) -> set[int]:
    words = text.split()
    return {hash(tuple(words[at : at + RUN_WORDS])) for at in range(len(words) - RUN_WORDS + 1)}


def cut(text: str) -> tuple[str, str]:
    """The text before and after the end of a sentence nearest to its middle; a middle without one is cut at a word."""
    middle = len(text) / 2
    ends = [match.end() for match in re.finditer(r"[.!?]\s", text) if len(text) * 0.35 < match.end() < len(text) * 0.65]
    at = min(ends, key=lambda end: abs(end - middle)) if ends else text.index(" ", int(middle))
    return text[:at].strip(), text[at:].strip()


def questions(name: str, pairs: Iterable[tuple[str, str]], documents_max: int, queries_max: int) -> Collection:
    """(question, passage) pairs; every passage that a question came with is right for it."""
    drawn = shuffled(pairs)
    documents = list(dict.fromkeys(passage for _, passage in drawn))[:documents_max]
    number = {passage: at for at, passage in enumerate(documents)}
    gains: dict[str, dict[int, float]] = {}
    for question, passage in drawn:
        if passage in number:
            gains.setdefault(question, {})[number[passage]] = 1.0
    asked = list(gains)[:queries_max]
    return Collection(name, [str(at) for at in range(len(documents))], documents, asked, asked, {q: gains[q] for q in asked})


def shuffled(items: Iterable) -> list:
    drawn = list(items)
    random.Random(SEED).shuffle(drawn)
    return drawn
