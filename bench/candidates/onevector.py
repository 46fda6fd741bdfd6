"""Measures candidates from one vector a chunk: the nearest by a scan of all, and by a graph, alone and re-ranked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import graph
import residuals
import vectors
from embeddings import Embeddings
from recall import KEPT, Recall, best
from residuals import Residuals

Row = dict[str, object]
SURVIVORS = 4000


@dataclass(frozen=True)
class Reranker:
    """What chunks, in any order, are ranked by: MaxSim over codes and residuals."""

    embeddings: Embeddings
    left: Residuals

    @property
    def bytes_per_chunk(self) -> float:
        return len(self.embeddings.vectors) / self.embeddings.chunks * (2 + self.left.row_parts.shape[1])

    def __call__(self, query: np.ndarray, chunks: np.ndarray) -> np.ndarray:
        chunks = np.sort(chunks)
        scores = residuals.scores(self.left, query, self.embeddings.offsets, chunks)
        return chunks[best(scores, max(KEPT))]


def scanned(
    name: str, embeddings: Embeddings, exact: np.ndarray, kind, stored: np.ndarray, rerank: Reranker
) -> list[Row]:
    """By exact products with all chunks: the best that a graph over these int8 vectors could find."""
    queries = np.array([kind.query(query) for query in embeddings.queries])
    orders = [best(scores, SURVIVORS) for scores in vectors.products(stored, queries)]
    return _ranked(name, embeddings, exact, orders, kind.dim, rerank)


def by_graph(
    name: str, embeddings: Embeddings, exact: np.ndarray, kind, stored: np.ndarray, rerank: Reranker
) -> Iterator[Row]:
    """Through a USearch graph. Bytes are those of the saved graph, vectors included."""
    index, seconds = graph.built(stored)
    queries = np.array([kind.query(query) for query in embeddings.queries])
    size = round(index.serialized_length / embeddings.chunks)
    for count in (KEPT[-1], SURVIVORS // 4, SURVIVORS // 2, SURVIVORS):
        found, ms = graph.searched(index, queries, count)
        for row in _ranked(f"graph of {name}, {count} neighbours", embeddings, exact, found, size, rerank):
            yield {**row, "graph_ms": round(ms, 3), "build_s": round(seconds, 1)}


def _ranked(
    name: str, embeddings: Embeddings, exact: np.ndarray, orders: list, size: int, rerank: Reranker
) -> list[Row]:
    alone, after = Recall(exact, (*KEPT, 1000, 2000, SURVIVORS)), Recall(exact)
    for number, (query, order) in enumerate(zip(embeddings.queries, orders)):
        alone.add(number, order)
        after.add(number, rerank(query, order[:SURVIVORS].copy()))
    with_residuals = round(size + rerank.bytes_per_chunk)
    return [
        {"candidates": name, "bytes_per_chunk": size, **alone.line()},
        {"candidates": f"{name} -> {SURVIVORS} by residuals", "bytes_per_chunk": with_residuals, **after.line()},
    ]
