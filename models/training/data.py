"""What the model learns from and is chosen by: queries, each with the passage that answers it.

Seven sources, none of them SciFact or Cranfield or derived from them:

    medical   MedQuAD questions and answers            squad   SQuAD questions and the sentence that answers each
    natural   Natural Questions with paragraphs (QED)  title   first paragraph and rest of the fit text (`fit_text.py`)
    claim     a sentence out of a medical or natural passage, for the passage without that sentence: queries without
              people (inverse cloze task, Lee et al., arXiv:1906.00300)
    heading   the name of what is documented, as words, for the rest of a fit text
    dropped   a claim without two words in five

The last two are for training only: development is the mean over the other five.

A passage is held back for development if its hash says so, with every query that asks for it: one in ten. Passages are
the first `PASSAGE_TOKENS` word pieces of a text; equal texts are one passage.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import encoder
import evaluate
import fit_text

FILES = {"medical": "medquad.jsonl.gz", "natural": "qed-nq-dev.jsonl.gz", "squad": "squad-nqg-sentences.jsonl.gz"}
SOURCES = (*FILES, "title", "claim")
TRAINED_ONLY = ("heading", "dropped")
PASSAGE_TOKENS, QUERY_TOKENS = 190, 48
DEVELOPMENT_SHARE = 0.1
# Most passages of one group, in the order of their hashes: what two cores encode in minutes.
PASSAGES_MAX = 3500
# Passages of one development collection, and its queries: those held back, then others, in the order of their hashes.
DEVELOPMENT_PASSAGES, DEVELOPMENT_QUERIES = 1500, 400
SENTENCES_MIN, SENTENCE_WORDS = 4, range(7, 31)
DROPPED_SHARE = 0.4


@dataclass(frozen=True)
class Query:
    text: str
    source: str
    passage: int


@dataclass(frozen=True)
class Data:
    passages: list[str]
    groups: list[str]  # of each passage: medical, natural, squad or title; searched within one group only
    queries: list[Query]

    def development(self, number: int) -> bool:
        return share(self.passages[number]) < DEVELOPMENT_SHARE

    def training_queries(self) -> list[Query]:
        return [query for query in self.queries if not self.development(query.passage)]

    def development_collection(self, source: str) -> tuple[list[Query], list[int]]:
        """Queries held back, and the passages they are searched in."""
        queries = [query for query in self.queries if query.source == source and self.development(query.passage)]
        queries = sorted(queries, key=lambda query: share(query.text))[:DEVELOPMENT_QUERIES]
        groups = {self.groups[query.passage] for query in queries}
        wanted = {query.passage for query in queries}
        others = [number for number, group in enumerate(self.groups) if group in groups and number not in wanted]
        others.sort(key=lambda number: share(self.passages[number]))
        return queries, [*sorted(wanted), *others[: max(0, DEVELOPMENT_PASSAGES - len(wanted))]]


def load(directory: Path, wheels: Path) -> Data:
    texts = {group: list(_pairs(directory / file)) for group, file in FILES.items()}
    texts["title"] = fit_text.passages(wheels)
    frequency = Counter(sentence for pairs in texts.values() for text in {text for _, text in pairs} for sentence in sentences(text))
    passages, groups, queries, known = [], [], [], {}
    for group, pairs in texts.items():
        kept = set(sorted({text for _, text in pairs}, key=share)[:PASSAGES_MAX])
        for query, text in pairs:
            if text not in kept:
                continue
            if (group, text) not in known:
                known[group, text] = len(passages)
                claim, rest = _claim(text, frequency) if group in ("medical", "natural") else (None, text)
                if claim:
                    queries.append(Query(claim, "claim", len(passages)))
                passages.append(rest)
                groups.append(group)
            queries.append(Query(query, group, known[group, text]))
    dropped = [Query(_dropped(query.text), "dropped", query.passage) for query in queries if query.source == "claim"]
    named = [(heading, known.get(("title", text))) for heading, text in fit_text.headings(wheels)]
    headings = [Query(heading, "heading", number) for heading, number in named if number is not None]
    return Data(passages, groups, list(dict.fromkeys([*queries, *headings, *dropped])))


def share(text: str) -> float:
    """A number in 0 .. 1 that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)]


def contents(tokenizer: encoder.Tokenizer, texts: list[str], tokens: int) -> list[encoder.Pieces]:
    return [content[:tokens] for content in encoder.pieces(tokenizer, texts)]


def _pairs(file: Path) -> Iterator[tuple[str, str]]:
    brackets = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "``": '"', "''": '"'}
    for pair in evaluate.jsonl(file):
        yield tuple(" ".join(brackets.get(word, word) for word in pair[part].split()) for part in ("query", "positive"))


def _claim(text: str, frequency: Counter[str]) -> tuple[str | None, str]:
    """One sentence that no other text has, and the text without it."""
    parts = sentences(text[: 6 * PASSAGE_TOKENS])
    fitting = [part for part in parts if frequency[part] == 1 and len(part.split()) in SENTENCE_WORDS and part[-1] in ".!"]
    if len(parts) < SENTENCES_MIN or not fitting:
        return None, text
    claim = min(fitting, key=share)
    return claim, " ".join(text.replace(claim, " ", 1).split())


def _dropped(text: str) -> str:
    return " ".join(word for at, word in enumerate(text.split()) if share(f"{at} {text}") >= DROPPED_SHARE)
