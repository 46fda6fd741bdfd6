"""How much of a text its stored rows give away: a linear map reads word pieces back from them.

    .venv/bin/python readback.py NAME/VERSION DIRECTORY

NAME/VERSION is a model of rows of few bits, and DIRECTORY a collection as `evaluate.py` reads it. The rows of some documents are
stored as the service stores them. A linear discriminant (one matrix and one offset a piece) learns from rows and pieces of
these documents, and then names the piece of each row of TESTED other documents. CLS and SEP take no part. A pooled row stands for
several tokens: its piece is that of the token which the row resembles most, and the second figure counts any of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse

import encoder
import evaluate
import rows as few_bits
from recipes import INT8, MOMENT, Recipe, named

DOCUMENTS, TESTED = 1000, 150
SEED = 64
# A mean of few rows is drawn towards the mean of all rows, by so many rows of it.
DRAWN = 1
# Of the mean variance, added to the variance of each direction.
REGULARISED = 0.1
BLOCK = 500


@dataclass(frozen=True)
class Stored:
    """rows: f32 [rows, dim], of length 1. pieces: of each row. members: pieces of all its tokens. owners: documents in order."""

    rows: np.ndarray
    pieces: np.ndarray
    members: list[np.ndarray]
    owners: np.ndarray


def main() -> None:
    name, directory = sys.argv[1:]
    recipe = named(name)
    stored = stored_rows(recipe, evaluate.load(Path(directory)).document_texts)
    content = ~np.isin(stored.pieces, [recipe.vocabulary.start, recipe.vocabulary.end])
    learnt = content & (stored.owners < DOCUMENTS - TESTED)
    tested = np.flatnonzero(content & (stored.owners >= DOCUMENTS - TESTED))
    guess = probe(stored.rows[learnt], stored.pieces[learnt])
    read = np.concatenate([guess(stored.rows[tested[at : at + BLOCK]]) for at in range(0, len(tested), BLOCK)])
    alike = read == stored.pieces[tested]
    among = [piece in stored.members[row] for piece, row in zip(read, tested)]
    print(f"{learnt.sum()} rows learnt, {len(tested)} tested: {alike.mean():.1%} read back, {np.mean(among):.1%} as any of their tokens")


def stored_rows(recipe: Recipe, texts: list[str]) -> Stored:
    chosen = np.random.default_rng(SEED).permutation(len(texts))[:DOCUMENTS]
    tokens = recipe.tokens()
    windows = [encoder.windows(content) for content in tokens.pieces([texts[number] for number in chosen])]
    chunks = evaluate.chunks(tokens, "document", windows)
    mean = evaluate.centring_of(recipe)
    turn = few_bits.rotated(np.eye(len(mean)))
    moment = np.fromfile(recipe.target / MOMENT, "<f2").astype(np.float32).reshape(len(mean), -1) if recipe.refined else None
    found: dict[int, tuple[np.ndarray, np.ndarray, list[np.ndarray]]] = {}
    for number, (vectors,) in encoder.run(encoder.session(recipe.graphs / INT8), chunks.sequences, ["output"]):
        pieces = np.array(chunks.sequences[number])
        pooled, of = few_bits.pooled(vectors, recipe.pool_factor)
        products = (vectors * pooled[of]).sum(axis=1)
        members = [np.flatnonzero(of == row) for row in range(len(pooled))]
        nearest = [own[products[own].argmax()] for own in members]
        kept = evaluate.stored((pooled - mean) @ turn, recipe.row_bits, moment)
        found[number] = unit(kept), pieces[nearest], [pieces[own] for own in members]
    ordered = [found[number] for number in range(len(found))]
    return Stored(
        np.concatenate([own for own, _, _ in ordered]),
        np.concatenate([own for _, own, _ in ordered]),
        [own for _, _, members in ordered for own in members],
        np.repeat(chunks.owners, [len(own) for own, _, _ in ordered]),
    )


def probe(rows: np.ndarray, pieces: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that gives the piece of each of some rows, by Fisher's linear discriminant."""
    names, numbers, counts = np.unique(pieces, return_inverse=True, return_counts=True)
    belongs = scipy.sparse.csr_matrix((np.ones(len(rows), np.float32), (numbers, np.arange(len(rows)))), (len(names), len(rows)))
    sums = belongs @ rows
    inner = rows - (sums / counts[:, None])[numbers]
    variance = inner.T @ inner / (len(rows) - len(names))
    variance += REGULARISED * np.trace(variance) / len(variance) * np.eye(len(variance), dtype=np.float32)
    means = (sums + DRAWN * rows.mean(axis=0)) / (counts + DRAWN)[:, None]
    matrix = means @ np.linalg.inv(variance)
    offsets = np.log(counts) - (matrix * means).sum(axis=1) / 2
    return lambda tested: names[(tested @ matrix.T + offsets).argmax(axis=1)]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


if __name__ == "__main__":
    main()
