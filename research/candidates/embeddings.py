"""The embeddings directory that `npm run bench -- search` reads too: raw little-endian files.

vectors.i8 [token vectors x dim], scales.f16 [token vectors] (value = vector * scale), chunk_rows.u32 [chunks],
queries.f32 [query token vectors x dim] (token weights multiplied in), query_rows.u32 [queries].
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kernels

DIM = 128
BLOCK_CHUNKS = 2000


@dataclass(frozen=True)
class Embeddings:
    vectors: np.ndarray
    scales: np.ndarray
    offsets: np.ndarray
    """Chunk c has rows offsets[c] to offsets[c + 1]: u64."""
    queries: tuple[np.ndarray, ...]

    @property
    def chunks(self) -> int:
        return len(self.offsets) - 1

    def rows(self, first: int, last: int) -> np.ndarray:
        """f32 vectors of rows first to last."""
        return self.vectors[first:last].astype(np.float32) * self.scales[first:last, None]

    def blocks(self, size: int = BLOCK_CHUNKS):
        """Ranges of chunks."""
        return ((a, min(a + size, self.chunks)) for a in range(0, self.chunks, size))

    def every(self, step: int) -> Embeddings:
        """Every step-th chunk, the same queries."""
        counts = np.diff(self.offsets.astype(np.int64))
        chosen = np.arange(self.chunks) % step == 0
        rows = np.repeat(chosen, counts)
        return Embeddings(self.vectors[rows], self.scales[rows], ends(counts[chosen]), self.queries)

    def sample(self, count: int, seed: int) -> np.ndarray:
        """f32 unit vectors of `count` token vectors, drawn without replacement."""
        picked = np.sort(np.random.default_rng(seed).choice(len(self.vectors), min(count, len(self.vectors)), False))
        return unit(self.vectors[picked].astype(np.float32))


def opened(directory: Path, queries_max: int, chunks_max: int | None = None) -> Embeddings:
    """Every n-th query, so that all kinds of query are among them; the first `chunks_max` chunks."""
    offsets = ends(np.fromfile(directory / "chunk_rows.u32", "<u4")[:chunks_max])
    rows = int(offsets[-1])
    all_queries = np.fromfile(directory / "queries.f32", "<f4").reshape(-1, DIM)
    bounds = ends(np.fromfile(directory / "query_rows.u32", "<u4"))
    picked = np.linspace(0, len(bounds) - 2, min(queries_max, len(bounds) - 1)).round().astype(int)
    return Embeddings(
        vectors=np.fromfile(directory / "vectors.i8", np.int8, rows * DIM).reshape(-1, DIM),
        scales=np.fromfile(directory / "scales.f16", "<f2", rows).astype(np.float32),
        offsets=offsets,
        queries=tuple(all_queries[bounds[q] : bounds[q + 1]] for q in picked),
    )


def ends(counts: np.ndarray) -> np.ndarray:
    """u64 [counts + 1]: where each of consecutive runs starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.uint64)]).astype(np.uint64)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)


def exhaustive(embeddings: Embeddings) -> np.ndarray:
    """Exact MaxSim of every chunk and query, int8 by int8 as the service computes it: f32 [queries, chunks]."""
    tokens = np.concatenate(embeddings.queries)
    bounds = ends([len(query) for query in embeddings.queries])
    scores = np.empty((len(embeddings.queries), embeddings.chunks), np.float32)
    for a, b in embeddings.blocks():
        best = kernels.chunk_maxima(embeddings.vectors, embeddings.scales, embeddings.offsets[a : b + 1], tokens)
        scores[:, a:b] = np.add.reduceat(best, bounds[:-1].astype(np.int64), axis=1).T
    return scores
