"""Vectors as the service has them: int8 document vectors with their scales, query vectors and the weights of query tokens.

Document vectors are kept under `.cache/served`, named by the graph and the texts they are of.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import build
import encoder
import evaluate
import fit


@dataclass(frozen=True)
class Queries:
    """Rows of all queries, one after the other, without CLS and SEP; `offsets` says where each begins."""

    ids: np.ndarray
    vectors: np.ndarray  # f32 [tokens, dim], not weighted
    weights: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class Documents:
    """A chunk's rows stand together, CLS first, SEP last; vector = int8 * scale, centred."""

    ids: np.ndarray
    values: np.ndarray
    scales: np.ndarray
    owners: np.ndarray
    offsets: np.ndarray

    def rows(self, start: int, end: int) -> np.ndarray:
        return self.values[start:end].astype(np.float32) * self.scales[start:end, None]


def queries(texts: list[str]) -> Queries:
    contents = encoder.pieces(_tokenizer(), texts)
    sequences = [encoder.framed(content) for content in contents]
    found: list = [None] * len(texts)
    for number, (rows, weight) in encoder.run(_session(), sequences, ["output", "token_weight"]):
        found[number] = rows[1:-1].copy(), weight[1:-1].copy()
    return Queries(
        np.concatenate([sequence[1:-1] for sequence in sequences]),
        np.concatenate([rows for rows, _ in found]),
        np.concatenate([weight for _, weight in found]),
        np.concatenate([[0], np.cumsum([len(weight) for _, weight in found])]),
    )


def documents(texts: list[str]) -> Documents:
    contents = encoder.pieces(_tokenizer(), texts)
    chunks = evaluate.chunks([encoder.windows(content) for content in contents])
    ids = np.concatenate(chunks.sequences)
    digest = hashlib.sha256((build.TARGET / build.INT8).read_bytes() + ids.tobytes()).hexdigest()[:16]
    path = build.CACHE / "served" / f"{digest}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        values, scales = np.empty((len(ids), fit.DIM), np.int8), np.empty(len(ids), np.float32)
        for number, (rows, scale) in encoder.run(_session(), chunks.sequences, ["document_int8", "document_scale"]):
            place = slice(chunks.offsets[number], chunks.offsets[number + 1])
            values[place], scales[place] = rows, scale.astype(np.float16)
        np.savez(path, values=values, scales=scales)
    with np.load(path) as kept:
        return Documents(ids, kept["values"], kept["scales"], chunks.owners, chunks.offsets)


def _tokenizer() -> encoder.Tokenizer:
    return encoder.tokenizer(build.TARGET / "tokenizer.json")


def _session():
    return encoder.session(build.TARGET / build.INT8, threads=1)
