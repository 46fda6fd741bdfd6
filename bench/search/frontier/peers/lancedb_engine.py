"""LanceDB with a column of multivectors: a row a chunk, its token vectors as a list. Cosine is the only distance that it has for
them, so the weights of query rows do not count. Three families of indexes, over a sweep of the settings of a query."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
from embeddings import Embeddings, unit_rows
from engine import Index, Setting, top_k
from lancedb.index import HnswSq, IvfPq, IvfRq

table_name = "chunks"


@dataclass(frozen=True)
class Family:
    folder: str
    text: str
    config: object
    # Partitions probed for each query token, times that the best are fetched in full, and the width of the graph's search.
    grid: list[tuple[int, int, int | None]]


def families(embeddings: Embeddings) -> list[Family]:
    partitions = max(1, round(embeddings.token_vectors**0.5))
    parts = embeddings.dim // 4
    graphs = max(1, round(embeddings.token_vectors / 1_000_000))
    lists = [(8, 1, None), (32, 1, None), (32, 4, None), (64, 10, None), (128, 20, None)]
    cosine = {"distance_type": "cosine", "num_partitions": partitions}
    return [
        Family(
            "ivf-pq",
            f"IVF_PQ, {partitions} partitions, {parts} sub-vectors",
            IvfPq(num_sub_vectors=parts, **cosine),
            lists,
        ),
        Family("ivf-rq", f"IVF_RQ, {partitions} partitions", IvfRq(**cosine), lists),
        Family(
            "ivf-hnsw-sq",
            f"IVF_HNSW_SQ, {graphs} partitions",
            HnswSq(distance_type="cosine", num_partitions=graphs),
            # It wants a width no smaller than the number that it asks of the graph, more than `top_k` times the factor.
            [(graphs, 1, 1000), (graphs, 2, 2000), (graphs, 4, 4000), (graphs, 10, 10_000)],
        ),
    ]


def indexes(embeddings: Embeddings) -> Iterator[Index]:
    for family in families(embeddings):
        yield Index(
            family.folder,
            lambda folder: build(embeddings, folder, family.config),
            lambda folder, _threads: settings(folder, family),
        )


def batches(embeddings: Embeddings, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    matrix = schema.field("vector").type
    for first, end in embeddings.runs():
        rows = embeddings.rows(first, end)
        tokens = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), type=matrix.value_type)
        starts = pa.array((embeddings.starts[first : end + 1] - embeddings.starts[first]).astype(np.int32))
        chunks = pa.array(np.arange(first, end, dtype=np.int32))
        yield pa.record_batch([chunks, pa.ListArray.from_arrays(starts, tokens, type=matrix)], schema=schema)


def build(embeddings: Embeddings, folder: Path, config: object) -> None:
    matrix = pa.list_(pa.list_(pa.float32(), embeddings.dim))
    schema = pa.schema([pa.field("chunk", pa.int32(), nullable=False), pa.field("vector", matrix)])
    reader = pa.RecordBatchReader.from_batches(schema, batches(embeddings, schema))
    table = lancedb.connect(folder).create_table(table_name, reader, schema=schema)
    table.optimize()
    table.create_index("vector", config=config)


def settings(folder: Path, family: Family) -> Iterator[Setting]:
    table = lancedb.connect(folder).open_table(table_name)
    for probes, refine, width in family.grid:

        def search(query: np.ndarray) -> list[int]:
            asked = table.search(unit_rows(query), vector_column_name="vector").distance_type("cosine")
            asked = asked.nprobes(probes).refine_factor(refine)
            if width is not None:
                asked = asked.ef(width)
            return asked.select(["chunk", "_distance"]).limit(top_k).to_arrow()["chunk"].to_pylist()

        more = "" if width is None else f", ef {width}"
        yield Setting(f"{family.text}, nprobes {probes}, refine {refine}{more}", search)
