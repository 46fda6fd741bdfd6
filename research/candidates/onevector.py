"""Measures candidates from one vector a chunk: the nearest by a scan of all, and by a graph, alone and re-ranked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import codebooks
import graph
import kernels
import vectors
from embeddings import Embeddings
from recall import KEPT, Recall, best

Row = dict[str, object]
SHORTLIST = 4000
HELD = (*KEPT, 1000, 2000, SHORTLIST)


@dataclass(frozen=True)
class Kind:
    """One way to make one vector a chunk: int8 of all chunks and f32 of all queries."""

    name: str
    stored: np.ndarray
    queries: np.ndarray


@dataclass(frozen=True)
class Measurement:
    embeddings: Embeddings
    exact: np.ndarray
    codes: codebooks.Codes
    """What the nearest chunks are ranked by."""

    @cached_property
    def levels(self) -> list[np.ndarray]:
        return [codebooks.levels(query, self.codes.centroids) for query in self.embeddings.queries]

    def scanned(self, kind: Kind) -> list[Row]:
        """By exact products with all chunks: the best that a graph over these int8 vectors could find."""
        orders = [best(scores, SHORTLIST) for scores in vectors.products(kind.stored, kind.queries)]
        return self._ranked(kind.name, orders, kind.stored.shape[1])

    def by_graph(self, kind: Kind) -> Iterator[Row]:
        """Through a USearch graph. Bytes are those of the saved graph, vectors included."""
        index, seconds = graph.built(kind.stored)
        size = round(index.serialized_length / self.embeddings.chunks)
        for count in (KEPT[-1], SHORTLIST // 4, SHORTLIST // 2, SHORTLIST):
            found, ms = graph.searched(index, kind.queries, count)
            for row in self._ranked(f"graph of {kind.name}, {count} neighbours", found, size):
                yield {**row, "graph_ms": round(ms, 3), "build_s": round(seconds, 1)}

    def _ranked(self, name: str, orders: list[np.ndarray], size: int) -> list[Row]:
        alone, after = Recall(self.exact, HELD), Recall(self.exact)
        for number, (levels, order) in enumerate(zip(self.levels, orders)):
            alone.add(number, order)
            kept = np.sort(order[:SHORTLIST])
            scores = kernels.code_scores(levels, self.codes.codes, self.codes.offsets, kept)
            after.add(number, kept[best(scores, max(KEPT))])
        code_bytes = 2 * len(self.codes.codes) / self.embeddings.chunks
        reranked = f"{name} -> {SHORTLIST} by codes of {len(self.codes.centroids)}"
        return [
            {"candidates": name, "bytes_per_chunk": size, **alone.line()},
            {"candidates": reranked, "bytes_per_chunk": round(size + code_bytes), **after.line()},
        ]
