"""Each kernel against plain numpy on random input: python check.py"""

from __future__ import annotations

import numpy as np

import codebooks
import embeddings
import kernels
import lists
import residuals
import vectors


def main() -> None:
    random = np.random.default_rng()
    state = random.bit_generator.state["state"]["state"]
    print(f"random state {state}")
    counts = random.integers(1, 70, 400)
    offsets = embeddings.ends(counts)
    rows = int(offsets[-1])
    data = embeddings.Embeddings(
        random.integers(-127, 128, (rows, embeddings.DIM)).astype(np.int8),
        random.uniform(0.005, 0.01, rows).astype(np.float32),
        offsets,
        tuple(random.standard_normal((tokens, embeddings.DIM)).astype(np.float32) for tokens in (1, 24, 33)),
    )
    values, starts = data.rows(0, rows), offsets[:-1].astype(np.int64)
    columns = random.standard_normal((130, embeddings.DIM)).astype(np.float32)
    stored, scales = kernels.quantised(columns)
    products = values @ (stored * scales[:, None]).T

    assert np.array_equal(kernels.nearest_columns(data.vectors, columns), products.argmax(axis=1))
    maxima = np.maximum.reduceat(products, starts, axis=0)
    assert np.allclose(kernels.chunk_maxima(data.vectors, data.scales, offsets, columns), maxima, rtol=1e-4, atol=1e-4)

    owners = kernels.nearest_columns(data.vectors, columns)
    codes = codebooks.gathered(data, owners, embeddings.unit(columns))
    inverted = lists.inverted(codes)
    left = residuals.fitted(data, owners, codebooks.means(data, owners, 130), 16, 16)
    for query in data.queries:
        levels = codebooks.levels(query, codes.centroids)
        best = np.maximum.reduceat(levels[owners], starts, axis=0).sum(axis=1)
        assert np.array_equal(kernels.code_scores(levels, codes.codes, codes.offsets), best)

        found = lists.probes(inverted, levels, len(query), nprobe=5)
        sums = np.zeros(data.chunks, np.uint32)
        for t in range(len(query)):
            best = np.argsort(255 - levels[:, t], kind="stable")[:5]
            gains = np.zeros(130, np.uint32)
            gains[best] = levels[best, t].astype(np.uint32) - levels[best[-1], t] + 1
            sums += np.maximum.reduceat(gains[owners], starts)
        assert np.array_equal(lists.gains(inverted, found)[0], sums)
        least = kernels.threshold(sums, 50)
        assert (sums >= least).sum() >= 50 > (sums > least).sum()

        coarse, fine = left.tables(query)
        entries = np.stack([left.row_parts & 15, left.row_parts >> 4], axis=2).reshape(rows, 16)
        level = coarse[owners].astype(np.int64) + sum(fine[p, entries[:, p]].astype(np.int64) for p in range(16))
        which = random.permutation(data.chunks)[:100].astype(np.uint32)
        scores = kernels.residual_scores(coarse, fine, owners.astype(np.uint16), left.row_parts, offsets, which)
        assert np.array_equal(scores, np.maximum.reduceat(level, starts, axis=0).sum(axis=1)[which])

    kind = vectors.FixedDimensional(2, 3, 4)
    encoded = kind.chunks(data.vectors, data.scales, offsets)
    chunk = int(random.integers(data.chunks))
    part = values[starts[chunk] : int(offsets[chunk + 1])]
    cells, projected = kind._cells(part, kind.planes[1]), part @ kind.projections[1]
    for cell in range(8):
        distance = np.array([int(own ^ cell).bit_count() for own in cells])
        mean = projected[cells == cell].mean(axis=0) if 0 in distance else projected[distance.argmin()]
        assert np.allclose(encoded[chunk].reshape(2, 8, 4)[1, cell], mean, atol=1e-4)
    print("all kernels agree with numpy")


if __name__ == "__main__":
    main()
