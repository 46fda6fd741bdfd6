"""Centroids of token vectors, and chunks as sets of them (PLAID, arXiv 2205.09707)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kernels
from embeddings import DIM, Embeddings, ends, unit

ROUNDS = 8
SAMPLE_PER_CENTROID = 48
SAMPLE_MAX = 1_000_000
"""Centroids beyond which the nearest one is looked for in two steps."""
DIRECT_MAX = 4096
NEIGHBOURING_GROUPS = 24


class Search:
    """The nearest centroid of many rows: among all, or among those of the groups near a row's own."""

    def __init__(self, centroids: np.ndarray, rows: np.ndarray):
        self.centroids = centroids
        self.near = None
        if len(centroids) > DIRECT_MAX:
            self.groups = fit_plain(rows[: 64 * 256], 256, 6)
            home = kernels.nearest_columns(kernels.quantised(centroids)[0], self.groups)
            order = np.argsort(-(self.groups @ self.groups.T), axis=1)[:, :NEIGHBOURING_GROUPS]
            self.near = [np.flatnonzero(np.isin(home, ids)) for ids in order]

    def nearest(self, rows: np.ndarray) -> np.ndarray:
        if self.near is None:
            return kernels.nearest_columns(rows, self.centroids)
        group = kernels.nearest_columns(rows, self.groups)
        found = np.empty(len(rows), np.uint32)
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(len(self.groups) + 1))
        for g, ids in enumerate(self.near):
            members = order[bounds[g] : bounds[g + 1]]
            if len(members):
                found[members] = ids[kernels.nearest_columns(rows[members], self.centroids[ids])]
        return found


def moved(rows: np.ndarray, owners: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Directions of the sums of the unit rows that each centroid owns; without any, that of a random row."""
    order = np.argsort(owners, kind="stable")
    present, starts = np.unique(owners[order], return_index=True)
    centroids = rows[random.integers(len(rows), size=count)].astype(np.float32)
    bounds = np.append(starts, len(order))
    for k, a, b in zip(present, bounds[:-1], bounds[1:]):
        centroids[k] = unit(rows[order[a:b]].astype(np.float32)).sum(axis=0)
    return unit(centroids)


def fit_plain(rows: np.ndarray, count: int, rounds: int) -> np.ndarray:
    random = np.random.default_rng(7)
    centroids = unit(rows[random.permutation(len(rows))[:count]].astype(np.float32))
    for _ in range(rounds):
        centroids = moved(rows, kernels.nearest_columns(rows, centroids), count, random)
    return centroids


def fitted(rows: np.ndarray, count: int) -> np.ndarray:
    """Spherical k-means of a sample of int8 rows: f32 unit vectors [count, dim]."""
    random = np.random.default_rng(5)
    sample = rows[np.sort(random.choice(len(rows), min(len(rows), count * SAMPLE_PER_CENTROID, SAMPLE_MAX), False))]
    random.shuffle(sample)
    if count <= DIRECT_MAX:
        return fit_plain(sample, count, ROUNDS)
    centroids = unit(sample[:count].astype(np.float32))
    for _ in range(ROUNDS):
        centroids = moved(sample, Search(centroids, sample).nearest(sample), count, random)
    return centroids


@dataclass(frozen=True)
class Codes:
    """Chunks as ascending unique centroids: chunk c has codes[offsets[c]:offsets[c + 1]]."""

    codes: np.ndarray
    offsets: np.ndarray
    centroids: np.ndarray
    """f32 [count, dim]: what stands for the token vectors of a code."""

    def with_centroids(self, centroids: np.ndarray) -> Codes:
        return Codes(self.codes, self.offsets, centroids)


def assigned(embeddings: Embeddings, centroids: np.ndarray) -> np.ndarray:
    """The code of each token vector, u16."""
    step = 2_000_000
    search = Search(centroids, embeddings.vectors[:: max(1, len(embeddings.vectors) // 16384)])
    parts = [search.nearest(embeddings.vectors[a : a + step]) for a in range(0, len(embeddings.vectors), step)]
    return np.concatenate(parts).astype(np.uint16)


def gathered(embeddings: Embeddings, of_rows: np.ndarray, centroids: np.ndarray) -> Codes:
    owner = np.repeat(np.arange(embeddings.chunks, dtype=np.uint64), np.diff(embeddings.offsets.astype(np.int64)))
    keys = np.unique(owner << np.uint64(16) | of_rows.astype(np.uint64))
    counts = np.bincount((keys >> np.uint64(16)).astype(np.int64), minlength=embeddings.chunks)
    return Codes((keys & np.uint64(0xFFFF)).astype(np.uint16), ends(counts), centroids)


def means(embeddings: Embeddings, of_rows: np.ndarray, count: int) -> np.ndarray:
    """f32 [count, dim]: the plain mean of the token vectors of each code, shorter where they scatter."""
    sums, step = np.zeros((count, DIM)), 500_000
    for a in range(0, len(of_rows), step):
        part = of_rows[a : a + step]
        order = np.argsort(part, kind="stable")
        present, starts = np.unique(part[order], return_index=True)
        rows = embeddings.rows(a, a + len(part))[order]
        bounds = np.append(starts, len(order))
        for k, first, last in zip(present, bounds[:-1], bounds[1:]):
            sums[k] += rows[first:last].sum(axis=0)
    return (sums / np.maximum(np.bincount(of_rows, minlength=count), 1)[:, None]).astype(np.float32)


def levels(query: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """One byte per centroid and query token, in steps common to all tokens: u8 [centroids, tokens to a multiple of 32].

    Each token's best centroid is at 255 or below; what is more than the widest token's range below it is at 0."""
    products = centroids @ query.T
    low, high = products.min(axis=0), products.max(axis=0)
    out = np.zeros((len(centroids), -(-len(query) // 32) * 32), np.uint8)
    out[:, : len(query)] = np.rint((products - low) * (255 / max(1e-9, float((high - low).max()))))
    return out
