"""A USearch graph over one int8 vector a chunk: what building and searching it costs and loses."""

from __future__ import annotations

import time

import numpy as np
from usearch.index import Index

CONNECTIVITY = 16
EXPANSION_ADD = 128


def built(vectors: np.ndarray) -> tuple[Index, float]:
    """An inner-product graph of int8 vectors, built by one thread; and the seconds of processor time that took."""
    index = Index(
        ndim=vectors.shape[1], metric="ip", dtype="i8", connectivity=CONNECTIVITY, expansion_add=EXPANSION_ADD
    )
    started = time.thread_time()
    index.add(np.arange(len(vectors)), vectors, threads=1, copy=True)
    return index, time.thread_time() - started


def searched(index: Index, queries: np.ndarray, count: int) -> tuple[list[np.ndarray], float]:
    """The `count` nearest chunks of each f32 query, best first, and milliseconds of processor time a query."""
    scales = 127 / np.abs(queries).max(axis=1, keepdims=True)
    quantised = np.rint(queries * scales).astype(np.int8)
    # Looking for more neighbours than the expansion makes the expansion as large.
    found, started = [], time.thread_time()
    for query in quantised:
        found.append(index.search(query, count, threads=1).keys.astype(np.uint32))
    return found, (time.thread_time() - started) / len(queries) * 1e3
