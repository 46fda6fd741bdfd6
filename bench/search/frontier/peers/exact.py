"""The truth of unit rows: exhaustive MaxSim in f32 over document rows scaled to length 1. Engines that use the cosine
rank by these rows.

    exact.py EMBEDDINGS OUT

Writes JSON: the best 100 chunks of each query, best first, for query rows as they are (`weighted`: token weights folded
in) and for query rows of length 1 (`unit`: the cosine drops the weights).
"""

import json
import sys
from pathlib import Path

import numpy as np
from embeddings import Embeddings, unit_rows, write_whole

top_k = 100


def scores(embeddings: Embeddings, queries: list[np.ndarray]) -> np.ndarray:
    """MaxSim of every query and chunk: f32 [queries x chunks]."""
    rows = np.concatenate(queries)
    firsts = np.concatenate(([0], np.cumsum([len(query) for query in queries])))[:-1]
    parts = []
    for first, end in embeddings.runs(20_000):
        documents = embeddings.rows(first, end)
        documents /= np.maximum(np.linalg.norm(documents, axis=1, keepdims=True), 1e-6)
        best = np.maximum.reduceat(documents @ rows.T, embeddings.starts[first:end] - embeddings.starts[first], axis=0)
        parts.append(np.add.reduceat(best, firsts, axis=1))
    return np.concatenate(parts).T


def best(embeddings: Embeddings, queries: list[np.ndarray]) -> list[list[int]]:
    return np.argsort(-scores(embeddings, queries), axis=1, kind="stable")[:, :top_k].tolist()


def main(directory: str, out: str) -> None:
    embeddings = Embeddings(directory)
    unit = [unit_rows(query) for query in embeddings.queries]
    found = {"weighted": best(embeddings, embeddings.queries), "unit": best(embeddings, unit)}
    write_whole(Path(out), json.dumps(found))


main(*sys.argv[1:])
