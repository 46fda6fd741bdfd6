"""How well MaxSim over centroid codes finds what exact MaxSim finds.

    .venv/bin/python candidate_recall.py COLLECTION [QUERIES_MAX]

On a collection that evaluate.py has run on (its vectors are kept under `.cache/evaluate`): the share
of the exact top-10 and top-100 chunks among the best 200 and 500 chunks by MaxSim over codes.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import build
import evaluate
import fit
from centroids import COUNT, SAMPLE_MAX, codes, fitted


def main() -> None:
    name, queries_max = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    saved = evaluate.cache(name) / "vectors.npz"
    vectors = np.load(saved)
    served = np.load(evaluate.cache(name) / str(vectors["served"]), mmap_mode="r")
    offsets, bounds, query_rows = vectors["offsets"], vectors["query_offsets"], vectors["query_rows"]
    count = min(queries_max, len(bounds) - 1)
    exact = evaluate.best_matches(query_rows[: bounds[count]], lambda a, b: served[a:b].astype(np.float32), offsets)
    exact = np.add.reduceat(exact, bounds[:count], axis=1)
    book = np.fromfile(build.TARGET / "centroids.i8", np.int8).reshape(COUNT, fit.DIM).astype(np.float32)
    book *= np.fromfile(build.TARGET / "centroids.scale.f32", np.float32)[:, None]
    states = np.load(build.CACHE / "fit" / "states.npy", mmap_mode="r")
    sets = {"shipped, 4096": book}
    for size in (1024, 2048):
        sets[f"fit text, {size}"] = fitted(fit.centred(states), size)
    sets["the collection itself, 4096 (not shipped)"] = fitted(served[:: max(1, len(served) // SAMPLE_MAX)])
    for label, directions in sets.items():
        print(label, json.dumps(recall(served, offsets, query_rows, bounds[: count + 1], exact, directions)), flush=True)


def recall(served, offsets, query_rows, bounds, exact, directions) -> dict:
    """Shares of the exact top among the best candidates, and how tightly codes describe vectors."""
    assigned = codes(served, directions)
    hits = {(top, kept): [] for top in (10, 100) for kept in (200, 500)}
    for number in range(len(bounds) - 1):
        table = np.ascontiguousarray((query_rows[bounds[number] : bounds[number + 1]] @ directions.T).T)
        best = [
            np.maximum.reduceat(table[assigned[offsets[a] : offsets[b]]], offsets[a:b] - offsets[a], axis=0).sum(axis=1)
            for a in range(0, len(offsets) - 1, 512)
            for b in [min(a + 512, len(offsets) - 1)]
        ]
        ranked = np.argsort(-np.concatenate(best), kind="stable")
        order = np.argsort(-exact[:, number], kind="stable")
        for top, kept in hits:
            hits[top, kept].append(len(set(order[:top]) & set(ranked[:kept])) / top)
    sample = served[:: max(1, len(served) // 50_000)].astype(np.float32)
    cosine = (fit.unit(sample) * directions[codes(sample, directions)]).sum(axis=1).mean()
    return {f"top-{top} in {kept}": round(float(np.mean(shares)), 4) for (top, kept), shares in hits.items()} | {
        "mean cosine to centroid": round(float(cosine), 4)
    }


if __name__ == "__main__":
    main()
