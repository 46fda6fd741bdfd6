"""Qdrant's engine in this process (qdrant-edge-py): a point a chunk with a multivector, compared by MaxSim of inner products.

Its documentation advises against a graph over multivectors, so a scan of quantised rows finds candidates and the originals
score them. The other way that it recommends is two stages: one vector for the whole chunk, here the mean of its rows, with
a graph finds candidates, and the multivectors score them. Originals are stored in f16; `Turbo8` stores them in 8 bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import qdrant_edge as qdrant
from embeddings import Embeddings
from engine import Index, Setting, top_k

points_at_once = 256
bits = qdrant.TurboQuantBitSize
kept = qdrant.VectorStorageDatatype


@dataclass(frozen=True)
class Kind:
    folder: str
    text: str
    datatype: object
    quantization: object
    # Times `top_k` that a scan of quantised rows hands on to the originals; 0 ranks by the quantised rows alone.
    oversampling: tuple[float, ...]
    # Chunks that the first stage finds by their means.
    prefetched: tuple[int, ...] = (200, 1000)


def kinds() -> list[Kind]:
    int8 = qdrant.ScalarQuantizationConfig(qdrant.ScalarType.Int8, quantile=0.99)
    four, two = (qdrant.TurboQuantQuantizationConfig(bits=one) for one in (bits.Bits4, bits.Bits2))
    return [
        Kind("scalar", "scalar int8, f16 originals", kept.Float16, int8, (0, 1, 2)),
        # The two stages read originals alone, so they are measured once for each kind of originals.
        Kind("turbo-4", "TurboQuant 4 bits, f16 originals", kept.Float16, four, (0, 1, 2), ()),
        Kind("turbo-2", "TurboQuant 2 bits, f16 originals", kept.Float16, two, (0, 1, 2, 4), ()),
        Kind("turbo8", "TurboQuant 2 bits, Turbo8 originals", kept.Turbo8, two, (0, 2)),
    ]


def indexes(embeddings: Embeddings) -> Iterator[Index]:
    for kind in kinds():
        yield Index(
            kind.folder,
            lambda folder: build(embeddings, folder, kind),
            lambda folder, threads: settings(embeddings, folder, kind, threads),
        )


def config_of(embeddings: Embeddings, kind: Kind, threads: int | None = None) -> qdrant.EdgeConfig:
    no_graph = qdrant.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000)
    graph = qdrant.HnswIndexConfig(m=16, ef_construct=128, full_scan_threshold=10)
    rows = qdrant.EdgeVectorParams(
        embeddings.dim,
        qdrant.Distance.Dot,
        multivector_config=qdrant.MultiVectorConfig(qdrant.MultiVectorComparator.MaxSim),
        datatype=kind.datatype,
        quantization_config=kind.quantization,
        hnsw_config=no_graph,
    )
    mean = qdrant.EdgeVectorParams(embeddings.dim, qdrant.Distance.Dot, hnsw_config=graph)
    return qdrant.EdgeConfig(
        vectors={"rows": rows, "mean": mean},
        max_search_threads=threads,
        optimizers=qdrant.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
        wal_enabled=False,
    )


def build(embeddings: Embeddings, folder: Path, kind: Kind) -> None:
    shard = qdrant.EdgeShard.create(str(folder), config_of(embeddings, kind))
    for first in range(0, embeddings.chunks, points_at_once):
        end = min(first + points_at_once, embeddings.chunks)
        points = [
            qdrant.Point(first + at, {"rows": rows.tolist(), "mean": rows.mean(0).tolist()})
            for at, rows in enumerate(embeddings.matrices(first, end))
        ]
        shard.update(qdrant.UpdateOperation.upsert_points(points))
    shard.optimize()
    shard.flush()
    shard.close()


def settings(embeddings: Embeddings, folder: Path, kind: Kind, threads: int) -> Iterator[Setting]:
    shard = qdrant.EdgeShard.load(str(folder), config_of(embeddings, kind, threads))

    def found(request: qdrant.QueryRequest) -> list[int]:
        return [point.id for point in shard.query(request)]

    for factor in kind.oversampling:
        quantised = qdrant.QuantizationSearchParams(rescore=factor > 0, oversampling=max(1.0, float(factor)))

        def scan(query: np.ndarray) -> list[int]:
            nearest = qdrant.Query.Nearest(query.tolist(), using="rows")
            params = qdrant.SearchParams(quantization=quantised)
            return found(qdrant.QueryRequest(top_k, query=nearest, params=params))

        how = "ranked by codes" if factor == 0 else f"{int(top_k * factor)} scored by originals"
        yield Setting(f"{kind.text}, scan, {how}", scan)

    for count in kind.prefetched:

        def two_stages(query: np.ndarray) -> list[int]:
            by_mean = qdrant.Query.Nearest(query.sum(0).tolist(), using="mean")
            first = qdrant.Prefetch(count, query=by_mean, params=qdrant.SearchParams(hnsw_ef=max(128, count)))
            nearest = qdrant.Query.Nearest(query.tolist(), using="rows")
            exactly = qdrant.SearchParams(quantization=qdrant.QuantizationSearchParams(ignore=True))
            return found(qdrant.QueryRequest(top_k, query=nearest, prefetches=[first], params=exactly))

        yield Setting(f"{kind.text}, {count} by a graph of means, scored by originals", two_stages)

    shard.close()
