"""Fewer document vectors: similar tokens of a chunk pooled into one, punctuation left out; what it costs and saves.

    .venv/bin/python pooling.py DATA [SET...]

DATA is that of `long_queries.py`. Vectors are pooled as Clavié, Chaffin and Adams do (arXiv 2409.14683): clusters of a chunk's
vectors, each replaced by its mean, brought to length 1 again; CLS stays alone. Then they are stored as the service stores
them: centred, int8, a scale each. Scores are exhaustive MaxSim of the shipped model with the weights of its query tokens.
MedQuAD questions are what a choice is made on; Cranfield and SciFact are not held out (see the card).
"""

from __future__ import annotations

import json
import string
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

import build
import encoder
import evaluate
import fit
import long_queries
from served_vectors import Documents, documents, queries

SETS = ("medquad questions", "nq questions", "cranfield", "scifact")
FACTORS = (2, 3, 4)
VECTOR_BYTES = fit.DIM + 2  # int8 values and an f16 scale

# Labels of a chunk's vectors, from 0 on without gaps; vectors with one label become one.
Labels = np.ndarray
Clustering = Callable[[np.ndarray, list[int]], list[Labels]]  # one labelling for each number of clusters


def hierarchical(method: str) -> Clustering:
    """Agglomerative clusters of unit vectors; on them Euclidean distances order as cosines do."""

    def labels(rows: np.ndarray, counts: list[int]) -> list[Labels]:
        if len(rows) == 1:
            return [np.zeros(1, int) for _ in counts]
        tree = linkage(rows, method)
        return [fcluster(tree, count, "maxclust") - 1 for count in counts]

    return labels


def neighbours(rows: np.ndarray, counts: list[int]) -> list[Labels]:
    """Runs of neighbouring tokens: the two runs beside each other whose means are closest, by Ward's cost, become one."""
    sums, sizes, found = list(rows), [1] * len(rows), {}

    def cost(at: int) -> float:
        difference = sums[at] / sizes[at] - sums[at + 1] / sizes[at + 1]
        return float(difference @ difference) * sizes[at] * sizes[at + 1] / (sizes[at] + sizes[at + 1])

    costs = [cost(at) for at in range(len(rows) - 1)]
    while True:
        if len(sums) in counts:
            found[len(sums)] = np.repeat(np.arange(len(sizes)), sizes)
        if len(sums) <= min(counts):
            return [found[count] for count in counts]
        at = int(np.argmin(costs))
        sums[at] = sums[at] + sums.pop(at + 1)
        sizes[at] += sizes.pop(at + 1)
        costs.pop(at)
        for changed in (at - 1, at):
            if 0 <= changed < len(costs):
                costs[changed] = cost(changed)


def in_a_row(rows: np.ndarray, counts: list[int]) -> list[Labels]:
    """Every few tokens, whatever they are."""
    return [np.arange(len(rows)) * count // len(rows) for count in counts]


CLUSTERINGS: dict[str, Clustering] = {
    "Ward": hierarchical("ward"),
    "average": hierarchical("average"),
    "neighbours": neighbours,
    "in a row": in_a_row,
}


def pooled(served: Documents, centring: np.ndarray, clustering: Clustering, factors: tuple[int, ...]) -> list[Documents]:
    """One of each factor."""
    made: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in factors]
    for start, end in zip(served.offsets[:-1], served.offsets[1:]):
        rows = served.rows(start, end) + centring
        counts = [max(1, (len(rows) - 1) // factor) for factor in factors]
        for chunks, labels in zip(made, clustering(rows[1:], counts)):
            means = np.zeros((labels.max() + 1, rows.shape[1]), np.float32)
            np.add.at(means, labels, rows[1:])
            chunks.append(quantised(np.concatenate([rows[:1], fit.unit(means)]) - centring))
    return [
        replace(
            served,
            ids=np.empty(0, int),
            values=np.concatenate([values for values, _ in chunks]),
            scales=np.concatenate([scales for _, scales in chunks]),
            offsets=np.concatenate([[0], np.cumsum([len(scales) for _, scales in chunks])]),
        )
        for chunks in made
    ]


def quantised(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.maximum(np.abs(rows).max(axis=1), 1e-9) / 127
    return np.rint(rows / scales[:, None]).astype(np.int8), scales.astype(np.float16).astype(np.float32)


def without(served: Documents, words: str) -> Documents:
    """What `skiplist_words` does: no vector for these tokens."""
    vocabulary = encoder.tokenizer(build.TARGET / "tokenizer.json").get_vocab()
    kept = ~np.isin(served.ids, [vocabulary[word] for word in words if word in vocabulary])
    lengths = np.add.reduceat(kept, served.offsets[:-1])
    return replace(
        served,
        ids=served.ids[kept],
        values=served.values[kept],
        scales=served.scales[kept],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
    )


def forms(served: Documents) -> Iterator[tuple[str, float, Documents]]:
    """(name, CPU milliseconds a chunk for all factors, what is stored)"""
    centring = np.array(json.loads((build.TARGET / "onnx_config.json").read_text())["maxsimd"]["centring"], np.float32)
    spared = without(served, string.punctuation)
    yield "every token (today)", 0.0, served
    yield "punctuation left out", 0.0, spared
    for title, given, names, factors in (
        ("pooled", served, CLUSTERINGS, FACTORS),
        ("punctuation left out, pooled", spared, ["Ward"], FACTORS[:1]),
    ):
        for name in names:
            start = time.process_time()
            made = pooled(given, centring, CLUSTERINGS[name], factors)
            cost = (time.process_time() - start) * 1000 / len(served.owners)
            for factor, stored in zip(factors, made):
                yield f"{title} by {factor}, {name}", cost, stored


def main() -> None:
    data, *names = sys.argv[1:]
    collections = long_queries.collections(Path(data))
    for name in names or SETS:
        collection = collections[name]
        asked = queries(collection.query_texts)
        weighted = asked.vectors * asked.weights[:, None]
        for form, cost, stored in forms(documents(collection.document_texts)):
            best = evaluate.best_matches(weighted, stored.rows, stored.offsets)
            scores = np.add.reduceat(best, asked.offsets[:-1], axis=1)
            result = evaluate.quality(collection, evaluate.best_chunk(scores, stored.owners))
            size = stored.offsets[-1] * VECTOR_BYTES / len(collection.documents)
            print(f"{name:18} {form:42} {result} {size:8.0f} bytes a document {cost:6.2f} ms a chunk", flush=True)


if __name__ == "__main__":
    main()
