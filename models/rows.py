"""Stored rows, as the service makes them (src/encoder/inference/rows.ts): pooling, rotation, codes, one scale a row.

The addon (native/kernels/encoding) is the reference of bits. Of 118,080 vectors of text, 2 bits a component, all pooled rows had
the same members here, all nearest codes were equal, and 28 of 45.3 million refined codes differed.
"""

from __future__ import annotations

import hashlib

import numpy as np

ROUNDS = 4
# How many standard deviations of a row's components the codes span on either side.
CLIPS = {4: 2.4, 2: 2.0}
# How much an error along the row's own vector counts beside errors along other vectors.
OWN_WEIGHT = np.float32(0.1)
MOVES_MAX = 16
# A longer chunk is pooled in parts of equal size.
POOLED_TOGETHER_MAX = 1024


def rotated(vectors: np.ndarray) -> np.ndarray:
    """[rows, dim] times a pseudo-random orthogonal matrix: signs and Walsh-Hadamard transforms, in turn of the first and
    of the last 2^k dimensions, the largest power of two that fits."""
    dim = vectors.shape[1]
    size = 1 << (dim.bit_length() - 1)
    turned = vectors.astype(np.float32)
    for number in range(ROUNDS):
        turned = turned * _signs(number, dim)
        part = slice(0, size) if number % 2 == 0 else slice(dim - size, dim)
        turned[:, part] = _hadamard(turned[:, part])
    return turned


def quantised(vectors: np.ndarray, bits: int, moment: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Odd components int8 [rows, dim] and scales f16 [rows]; a vector is about components * scale. The product of a row
    with its own vector is exact but for the rounding of the scale. With a moment the components are refined."""
    most = 2**bits - 1
    if bits == 1:
        components = np.where(vectors >= 0, 1, -1)
    else:
        deviation = np.sqrt((vectors * vectors).mean(axis=1, keepdims=True))
        levels = 2 ** (bits - 1)
        components = 2 * np.floor(vectors * (levels / CLIPS[bits]) / np.maximum(deviation, 1e-9)) + 1
        components = np.clip(components, -most, most)
    scales = _scales(vectors, components)
    if moment is not None:
        components = refined(vectors, components, scales, moment, bits)
        scales = _scales(vectors, components)
    return components.astype(np.int8), scales.astype(np.float16)


def refined(vectors: np.ndarray, components: np.ndarray, scales: np.ndarray, moment: np.ndarray, bits: int) -> np.ndarray:
    """Components f32 [rows, dim] that lose less along queries than the nearest ones.

    `vectors` f32 [rows, dim]: less the mean and rotated; `components` and `scales` (f32, not yet rounded): theirs by `quantised`;
    `moment` f32 [dim, dim]: H of `fit.moment`.

    An error e of a row costs a search the product of e with query vectors, which lie where other vectors of text lie. So the loss
    of a vector y is e' (H + OWN_WEIGHT y y') e. It falls by 4 s (|t_i| - s (H_ii + OWN_WEIGHT y_i^2)) if component i moves by 2
    towards t_i, where s is the scale and t = H e + OWN_WEIGHT (y e) y. The move with the greatest fall is made, and of equals the
    first, at most MOVES_MAX times and while there is one. No component leaves its range.
    """
    most, moved, numbers = 2**bits - 1, components.astype(np.float32), np.arange(len(vectors))
    scale = scales.astype(np.float32)[:, None]
    gradient = (vectors - scale * moved) @ moment
    cost = scale * (np.diag(moment) + OWN_WEIGHT * vectors * vectors)
    # A move out of the range never pays.
    upwards, downwards = np.where(moved < most, cost, np.inf), np.where(moved > -most, cost, np.inf)
    product = np.zeros_like(scale)  # of each vector and its error: the scale made it 0
    for _ in range(MOVES_MAX):
        towards = gradient + OWN_WEIGHT * product * vectors
        gain = np.maximum(towards - upwards, -towards - downwards)
        chosen = gain.argmax(axis=1)
        at = numbers, chosen
        if not (gain[at] > 0).any():
            break
        step = np.where(gain[at] > 0, np.copysign(2, towards[at]), 0).astype(np.float32)
        moved[at] += step
        upwards[at] = np.where(moved[at] < most, cost[at], np.inf)
        downwards[at] = np.where(moved[at] > -most, cost[at], np.inf)
        change = scale * step[:, None]
        gradient -= change * moment[chosen]
        product -= change * vectors[at][:, None]
    # Without a product with its own vector a row has no scale.
    has_scale = (moved * vectors).sum(axis=1, keepdims=True) > 0
    return np.where(has_scale, moved, components)


def pooled(vectors: np.ndarray, factor: int) -> tuple[np.ndarray, np.ndarray]:
    """Pools the unit rows f32 [rows, dim] of one chunk (Clavié, Chaffin and Adams, arXiv:2409.14683).

    Returns unit rows f32 [ceil(rows / factor), dim], and for each row of the chunk the number of the pooled row that it is part of.

    Rows are clustered by Ward's criterion on squared Euclidean distances: merges are sorted by height, and the lowest are done. A
    pooled row is the unit mean of its cluster. Pooled rows are in the order of their representatives: the row of the cluster that
    has the greatest product with the mean. Among equals the lower row counts.
    """
    rows = len(vectors)
    parts = -(-rows // POOLED_TOGETHER_MAX)
    bounds = [rows * part // parts for part in range(parts + 1)] if rows else [0]
    found: list[tuple[int, np.ndarray, np.ndarray]] = []  # representative, members, vector
    for first, end in zip(bounds, bounds[1:]):
        clusters = -(-end // factor) - -(-first // factor)
        lowest = first + _lowest_rows(vectors[first:end], clusters)
        found += [_cluster(vectors, first + np.flatnonzero(lowest == low)) for low in np.unique(lowest)]
    found.sort(key=lambda cluster: cluster[0])
    of = np.empty(rows, np.int64)
    for number, (_, members, _) in enumerate(found):
        of[members] = number
    return np.stack([vector for _, _, vector in found]) if found else vectors, of


def _cluster(vectors: np.ndarray, members: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """(representative, members, unit mean f32 [dim]). The only row of a cluster stays as it is."""
    own = vectors[members]
    if len(members) == 1:
        return int(members[0]), members, own[0]
    total = own.sum(axis=0).astype(np.float64)
    representative = int(members[np.argmax(own.astype(np.float64) @ total)])
    length = np.sqrt(total @ total)
    return representative, members, (total / length if length > 0 else total * 0).astype(np.float32)


def _lowest_rows(vectors: np.ndarray, clusters: int) -> np.ndarray:
    """For each row the lowest row of its cluster."""
    if clusters == len(vectors):
        return np.arange(clusters)
    lowest = list(range(len(vectors)))
    for _, low, high in sorted(_joins(_distances(vectors)))[: len(vectors) - clusters]:
        one, other = _root(lowest, low), _root(lowest, high)
        lowest[max(one, other)] = min(one, other)
    return np.array([_root(lowest, row) for row in range(len(vectors))])


def _root(lowest: list[int], row: int) -> int:
    while lowest[row] != row:
        row = lowest[row]
    return row


def _distances(vectors: np.ndarray) -> np.ndarray:
    """Squared distances f32 [rows, rows], at least 0; infinite between a row and itself. Rows are rounded to integers of 8 bits
    first. Their products are whole numbers that f32 holds, so the order of a sum does not matter."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    rounded = np.rint(vectors * (np.float32(127) / np.where(largest > 0, largest, 1)))
    products = rounded @ rounded.T
    squares = np.diag(products).astype(np.float64)
    inverses = np.where(squares > 0, 1 / np.sqrt(np.maximum(squares, 1)), 0).astype(np.float32)
    distances = np.maximum(2 - 2 * (products * (inverses[:, None] * inverses)), 0)
    np.fill_diagonal(distances, np.inf)
    return distances


def _joins(distances: np.ndarray) -> list[tuple[float, int, int]]:
    """(height, lowest row of one cluster, lowest row of the other) of each merge down to one cluster, by chains of nearest
    neighbours (Murtagh, The Computer Journal 26, 1983). A cluster has the place of its lowest row in `distances`, which is
    overwritten."""
    rows = len(distances)
    sizes, gone = np.ones(rows, np.float32), np.zeros(rows, np.float32)  # infinite for a row in another one's cluster
    joins: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(joins) + 1 < rows:
        if not chain:
            chain.append(int(np.argmin(gone)))
        last = chain[-1]
        nearest = int(np.argmin(distances[last] + gone))
        before = chain[-2] if len(chain) > 1 else None
        if before is None or distances[last, before] > distances[last, nearest]:
            chain.append(nearest)
            continue
        low, high = min(last, before), max(last, before)
        height = distances[low, high]
        joins.append((float(height), low, high))
        _join(distances, sizes, low, high, height)
        gone[high] = np.inf
        del chain[-2:]
    return joins


def _join(distances: np.ndarray, sizes: np.ndarray, low: int, high: int, height: np.float32) -> None:
    """The distances from a merged cluster: the recurrence of Lance and Williams (The Computer Journal 9, 1967)."""
    own, other = distances[low], distances[high]
    total = (sizes[low] + sizes) * own + (sizes[high] + sizes) * other - sizes * height
    joined = total / (sizes[low] + sizes[high] + sizes)
    # Without rounding no cluster comes nearer than the nearer of the two was.
    joined = np.maximum(joined, np.minimum(own, other))
    joined[low] = np.inf
    distances[low] = distances[:, low] = joined
    sizes[low] += sizes[high]


def _scales(vectors: np.ndarray, components: np.ndarray) -> np.ndarray:
    """f32 [rows]: each makes the product of the stored row with its own vector exact."""
    products = (components * vectors).sum(axis=1)
    return (vectors * vectors).sum(axis=1) / np.maximum(products, 1e-9)


def _hadamard(vectors: np.ndarray) -> np.ndarray:
    turned, width = vectors.copy(), 1
    while width < turned.shape[1]:
        pairs = turned.reshape(len(turned), -1, 2, width)
        turned = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(turned.shape)
        width *= 2
    return turned * np.float32(turned.shape[1] ** -0.5)


def _signs(number: int, dim: int) -> np.ndarray:
    """+1 or -1 by the bits of SHA-256, the highest bit of a byte first."""
    digests = [hashlib.sha256(f"{number}:{block}".encode()).digest() for block in range((dim + 255) // 256)]
    bits = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8))[:dim]
    return np.where(bits == 1, np.float32(-1), np.float32(1))
