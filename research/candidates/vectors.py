"""One vector a chunk whose product with one vector a query stands for MaxSim: mean pooling, fixed dimensional
encodings (MUVERA, arXiv 2405.19504) and vectors fitted onto MaxSim values (LEMUR, arXiv 2601.21853).

Each kind has `dim`, `query(rows)` for a query's token vectors, f32 [dim], and `chunks(rows, scales, offsets)` for
token matrices, f32 [chunks, dim]. Query rows carry token weights as their lengths.
"""

from __future__ import annotations

import numpy as np

import kernels
from embeddings import DIM, Embeddings, unit

SAMPLE_RUNS = 64
SAMPLE_RUN = 32


class Mean:
    dim = DIM

    def query(self, rows: np.ndarray) -> np.ndarray:
        return rows.sum(axis=0)

    def chunks(self, rows: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        at = (offsets - offsets[0]).astype(np.int64)
        sums = np.add.reduceat(rows.astype(np.float32) * scales[:, None], at[:-1], axis=0)
        return sums / np.diff(at)[:, None]


class FixedDimensional:
    """`repetitions` times: token vectors fall into 2**bits cells by the signs of random projections; a query's cell
    holds the sum of its rows, a chunk's the mean, projected to `size` dimensions by random signs."""

    def __init__(self, repetitions: int, bits: int, size: int, seed: int = 11):
        random = np.random.default_rng(seed)
        self.bits, self.size = bits, size
        self.planes = random.standard_normal((repetitions, DIM, bits)).astype(np.float32)
        signs = random.integers(0, 2, (repetitions, DIM, size)) * 2 - 1
        self.projections = (signs / np.sqrt(size)).astype(np.float32)
        self.dim = repetitions * 2**bits * size

    def _cells(self, rows: np.ndarray, planes: np.ndarray) -> np.ndarray:
        return ((rows @ planes > 0) @ (1 << np.arange(self.bits))).astype(np.uint8)

    def query(self, rows: np.ndarray) -> np.ndarray:
        out = np.zeros((len(self.planes), 2**self.bits, self.size), np.float32)
        for part, planes, projection in zip(out, self.planes, self.projections):
            np.add.at(part, self._cells(rows, planes), rows @ projection)
        return out.ravel()

    def chunks(self, rows: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        values = rows.astype(np.float32) * scales[:, None]
        out = np.empty((len(offsets) - 1, self.dim), np.float32)
        step = 2**self.bits * self.size
        for n, (planes, projection) in enumerate(zip(self.planes, self.projections)):
            kernels.chunk_encodings(
                values @ projection,
                self._cells(values, planes),
                offsets - offsets[0],
                2**self.bits,
                out[:, n * step : (n + 1) * step],
            )
        return out


def gelu(z: np.ndarray) -> np.ndarray:
    return 0.5 * z * (1 + np.tanh(0.79788456 * (z + 0.044715 * z**3)))


class RandomFeatures:
    """gelu(x W + b), W and b Gaussian with standard deviations `scale` and `scale * offset`."""

    def __init__(self, dim: int, scale: float, offset: float, seed: int = 13):
        random = np.random.default_rng(seed)
        self.weights = (random.standard_normal((DIM, dim)) * scale).astype(np.float32)
        self.biases = (random.standard_normal(dim) * scale * offset).astype(np.float32)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return gelu(rows @ self.weights + self.biases)


class CentroidFeatures:
    """gelu(scale * (x . c - threshold)) over centroids of the collection: how close x is to each."""

    def __init__(self, centroids: np.ndarray, scale: float, threshold: float):
        self.weights = np.ascontiguousarray(centroids.T) * np.float32(scale)
        self.biases = np.float32(-scale * threshold)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return gelu(rows @ self.weights + self.biases)


class Fitted:
    """LEMUR: a chunk's vector is the ridge regression of its MaxSim values with training tokens onto their features;
    a query's vector is the sum of its tokens' features. Features are of directions, times the token's weight.

    `rank` fits that many dimensions to all features (reduced-rank regression: the directions in which predicted
    values differ most between `some` chunks), instead of one dimension a feature."""

    def __init__(
        self, features, train: np.ndarray, ridge: float, rank: int | None = None, some: Embeddings | None = None
    ):
        self.features, self.train = features, train
        values = features(train).astype(np.float64)
        gram = values.T @ values
        size = len(gram)
        solved = np.linalg.solve(gram + ridge * np.trace(gram) / size * np.eye(size), values.T)
        self.project = None
        if rank is not None:
            # Predicted values are values @ W' for chunk vectors W. In the basis where features are white
            # (gram = L L'), the best `rank` directions are the leading ones of the covariance of W L.
            lower = np.linalg.cholesky(gram + 1e-6 * np.trace(gram) / size * np.eye(size))
            solved = lower.T @ solved
            covariance, total, count = np.zeros((size, size)), np.zeros(size), 0
            operator = solved.astype(np.float32).T
            for a, b in some.blocks():
                first, last = int(some.offsets[a]), int(some.offsets[b])
                block = some.offsets[a : b + 1] - some.offsets[a]
                found = kernels.chunk_maxima(some.vectors[first:last], some.scales[first:last], block, train) @ operator
                covariance += found.T @ found
                total += found.sum(axis=0, dtype=np.float64)
                count += len(found)
            covariance -= np.outer(total, total) / count
            leading = np.linalg.eigh(covariance)[1][:, ::-1][:, :rank]
            solved = leading.T @ solved
            self.project = np.linalg.solve(lower, np.eye(size)).T @ leading
            self.project = self.project.astype(np.float32)
        self.operator = np.ascontiguousarray(solved.T.astype(np.float32))
        self.dim = self.operator.shape[1]

    def query(self, rows: np.ndarray) -> np.ndarray:
        weights = np.linalg.norm(rows, axis=1)
        summed = weights @ self.features(unit(rows))
        return summed if self.project is None else summed @ self.project


def chunk_vectors(embeddings: Embeddings, kinds: list) -> list[np.ndarray]:
    """int8 [chunks, dim], one array a kind. The mean of an even sample is taken away, for it changes no order; the
    scale is common to all chunks. Kinds fitted with the same training tokens share their MaxSim values."""
    starts = np.linspace(0, max(0, embeddings.chunks - SAMPLE_RUN), SAMPLE_RUNS).astype(int)
    samples = [_vectors(embeddings, kinds, a, min(a + SAMPLE_RUN, embeddings.chunks)) for a in starts]
    middles, steps = [], []
    for sampled in zip(*samples):
        rows = np.concatenate(sampled)
        middles.append(rows.mean(axis=0))
        # The few longest components are cut.
        steps.append(127 / np.quantile(np.abs(rows - middles[-1]), 0.9999))
    found = [np.empty((embeddings.chunks, kind.dim), np.int8) for kind in kinds]
    for a, b in embeddings.blocks():
        for out, rows, middle, step in zip(found, _vectors(embeddings, kinds, a, b), middles, steps):
            out[a:b] = np.clip(np.rint((rows - middle) * step), -127, 127)
    return found


def _vectors(embeddings: Embeddings, kinds: list, a: int, b: int) -> list[np.ndarray]:
    """f32 vectors of chunks a to b."""
    first, last = int(embeddings.offsets[a]), int(embeddings.offsets[b])
    rows, scales = embeddings.vectors[first:last], embeddings.scales[first:last]
    offsets = embeddings.offsets[a : b + 1] - embeddings.offsets[a]
    shared: dict[int, np.ndarray] = {}
    vectors = []
    for kind in kinds:
        if not isinstance(kind, Fitted):
            vectors.append(kind.chunks(rows, scales, offsets))
            continue
        if id(kind.train) not in shared:
            shared[id(kind.train)] = kernels.chunk_maxima(rows, scales, offsets, kind.train)
        vectors.append(shared[id(kind.train)] @ kind.operator)
    return vectors


def products(vectors: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """f32 [queries, chunks]."""
    scores = np.empty((len(queries), len(vectors)), np.float32)
    for a in range(0, len(vectors), 4096):
        scores[:, a : a + 4096] = queries @ vectors[a : a + 4096].astype(np.float32).T
    return scores
