"""What codes leave of each token vector, in a few bytes: product quantisation (Jegou, Douze and Schmid, TPAMI 33, 2011)
of the difference to the mean of its code. MaxSim over codes and residuals ranks the few chunks that codes hand on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kernels
from embeddings import DIM, Embeddings

ROUNDS = 10
SAMPLE = 60_000
STEPS = 12_000
"""Levels that the widest token's range is cut into: with residuals added it must stay within i16."""


@dataclass(frozen=True)
class Residuals:
    means: np.ndarray
    """f32 [centroids, dim]"""
    entries: np.ndarray
    """f32 [parts, 256 or 16, dim / parts]"""
    row_codes: np.ndarray
    row_parts: np.ndarray
    """u8 [token vectors, parts], or [token vectors, parts / 2] with two of 16 entries a byte, the low half first"""

    def tables(self, query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """i16 [centroids, tokens] and [parts, entries, tokens], tokens padded to a multiple of 32, in common steps."""
        products = self.means @ query.T
        low, high = products.min(axis=0), products.max(axis=0)
        step = max(1e-9, float((high - low).max())) / STEPS
        padded = -(-len(query) // 32) * 32
        coarse = np.zeros((len(products), padded), np.int16)
        coarse[:, : len(query)] = np.rint((products - low) / step)
        parts = query.reshape(len(query), len(self.entries), -1)
        fine = np.zeros((*self.entries.shape[:2], padded), np.int16)
        fine[:, :, : len(query)] = np.rint(np.einsum("ped,tpd->pet", self.entries, parts) / step)
        return coarse, fine


def nearest(rows: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """The entry at the least Euclidean distance from each row: u8."""
    found, half = np.empty(len(rows), np.uint8), (entries**2).sum(axis=1) / 2
    columns = np.ascontiguousarray(entries.T)
    for a in range(0, len(rows), 16384):
        found[a : a + 16384] = (rows[a : a + 16384] @ columns - half).argmax(axis=1)
    return found


def _fitted(rows: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    entries = rows[random.choice(len(rows), count, False)].copy()
    for _ in range(ROUNDS):
        owners = nearest(rows, entries)
        for e in range(count):
            members = rows[owners == e]
            entries[e] = members.mean(axis=0) if len(members) else rows[random.integers(len(rows))]
    return entries


def fitted(embeddings: Embeddings, row_codes: np.ndarray, means: np.ndarray, parts: int, count: int) -> Residuals:
    """`parts` entries of `count` (256 or 16) for each token vector, fitted on an even sample of all."""
    random, size = np.random.default_rng(17), DIM // parts
    picked = np.sort(random.choice(len(embeddings.vectors), min(SAMPLE, len(embeddings.vectors)), False))
    sample = embeddings.vectors[picked].astype(np.float32) * embeddings.scales[picked, None] - means[row_codes[picked]]
    slices = [slice(p * size, (p + 1) * size) for p in range(parts)]
    entries = np.stack([_fitted(np.ascontiguousarray(sample[:, one]), count, random) for one in slices])
    found, step = np.empty((len(embeddings.vectors), parts), np.uint8), 200_000
    for a in range(0, len(found), step):
        b = min(a + step, len(found))
        left = embeddings.rows(a, b) - means[row_codes[a:b]]
        for p, one in enumerate(slices):
            found[a:b, p] = nearest(np.ascontiguousarray(left[:, one]), entries[p])
    if count == 16:
        found = found[:, 0::2] | found[:, 1::2] << 4
    return Residuals(means, entries, row_codes, found)
