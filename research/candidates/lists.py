"""Inverted lists of centroids: which chunks gain most from the centroids near the query's token vectors.

For each query token the lists of its best centroids are walked, best first; a chunk gains, from the first of them it
is on, how far that centroid is above a floor that stands for chunks on none of them (WARP, arXiv 2501.17788; the
first stage of PLAID, arXiv 2205.09707, is the case without gains).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kernels
from codebooks import Codes
from embeddings import ends

BLOCK = 65536


@dataclass(frozen=True)
class Lists:
    """List k of block b is entries[offsets[b, k]:offsets[b, k + 1]], chunks counted from the block's first."""

    entries: np.ndarray
    offsets: np.ndarray
    lengths: np.ndarray
    """u32 [centroids], of all blocks."""
    chunks: int


def inverted(codes: Codes) -> Lists:
    count = len(codes.centroids)
    chunks = len(codes.offsets) - 1
    owner = np.repeat(np.arange(chunks, dtype=np.int64), np.diff(codes.offsets.astype(np.int64)))
    order = np.lexsort((owner, codes.codes, owner // BLOCK))
    entries = (owner[order] % BLOCK).astype(np.uint16)
    blocks = -(-chunks // BLOCK)
    sizes = np.bincount(owner // BLOCK * count + codes.codes, minlength=blocks * count).reshape(blocks, count)
    starts = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))[:-1]])
    offsets = np.concatenate([np.zeros((len(sizes), 1), np.int64), np.cumsum(sizes, axis=1)], axis=1) + starts[:, None]
    return Lists(entries, offsets.astype(np.uint32), sizes.sum(axis=0).astype(np.uint32), chunks)


@dataclass(frozen=True)
class Probes:
    """Token t probes centroids[offsets[t]:offsets[t + 1]], best first, for so many gains: u32 each."""

    offsets: np.ndarray
    centroids: np.ndarray
    gains: np.ndarray


def probes(
    lists: Lists, levels: np.ndarray, tokens: int, nprobe: int | None = None, visits: int | None = None
) -> Probes:
    """Each token probes `nprobe` lists, or as many as it takes to meet `visits` entries. Its floor is one below the
    level of the last, so that being met at all gains something."""
    centroids, values = [], []
    for token in range(tokens):
        column = levels[:, token]
        order = np.argsort(255 - column, kind="stable")
        if nprobe is None:
            taken = int(np.searchsorted(np.cumsum(lists.lengths[order], dtype=np.int64), visits)) + 1
        else:
            taken = nprobe
        order = order[:taken]
        centroids.append(order.astype(np.uint32))
        values.append(column[order].astype(np.uint32) - int(column[order[-1]]) + 1)
    bounds = ends([len(order) for order in centroids]).astype(np.uint32)
    return Probes(bounds, np.concatenate(centroids), np.concatenate(values).astype(np.uint32))


def gains(lists: Lists, probes: Probes) -> tuple[np.ndarray, int]:
    """Partial sums of all chunks (u32) and the entries walked."""
    sums = np.empty(lists.chunks, np.uint32)
    walked = kernels.list_gains(
        lists.entries, lists.offsets, len(lists.lengths), probes.offsets, probes.centroids, probes.gains, sums
    )
    return sums, walked
