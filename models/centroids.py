"""The codebook for candidate generation: unit directions that stand for centred document vectors.

Spherical k-means on (unit document vector - centring mean) of the fit text. A vector's code is the
centroid with the largest dot product, so no centroid norm is needed; every query token's product
with a centroid approximates its product with the vectors of that code (PLAID, arXiv 2205.09707).
`candidate_recall.py` measures it.
"""

from __future__ import annotations

import numpy as np

import fit

COUNT = 4096
ROUNDS = 12
SAMPLE_MAX = 200_000
BLOCK = 16_384
SEED = 20260102


def fitted(centred: np.ndarray, count: int = COUNT) -> np.ndarray:
    """Unit f32 [count, dim]. Starts from distinct rows; an empty cluster restarts at a random row."""
    random = np.random.default_rng(SEED)
    rows = fit.unit(centred[random.permutation(len(centred))[:SAMPLE_MAX]].astype(np.float32))
    found = rows[random.permutation(len(rows))[:count]]
    for _ in range(ROUNDS):
        owners = codes(rows, found)
        order = np.argsort(owners, kind="stable")
        present, starts = np.unique(owners[order], return_index=True)
        sums = np.add.reduceat(rows[order], starts, axis=0)
        found = rows[random.integers(len(rows), size=count)]
        found[present] = fit.unit(sums)
    return found


def codes(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """The code of each row: int32 [rows]."""
    columns = np.ascontiguousarray(directions.T)
    blocks = (rows[start : start + BLOCK].astype(np.float32) for start in range(0, len(rows), BLOCK))
    return np.concatenate([(block @ columns).argmax(axis=1) for block in blocks]).astype(np.int32)


def quantised(directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int8 [count, dim], f32 scales [count]): direction = value * scale, rounded to nearest even."""
    scales = np.abs(directions).max(axis=1) / 127
    return np.rint(directions / scales[:, None]).astype(np.int8), scales.astype(np.float32)
