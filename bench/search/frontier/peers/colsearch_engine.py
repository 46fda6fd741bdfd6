"""colsearch: a trained router (LEMUR) over one vector a chunk finds candidates, and exact or coded MaxSim ranks them, on a CPU.

Its default code of 1.58 bits, and f16. Each index trains its router anew, which takes most of the time. Its code of 4 bits is
left out: its authors find it as good as f16, and seven times slower on a CPU.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from embeddings import Embeddings
from engine import Index, Setting, top_k

# Before colsearch is loaded: it asks which devices there are.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import faiss
import torch
from colsearch import Index as ColSearch

# Chunks that the router finds and that are scored.
candidates = (200, 500, 1000, 2000)


def indexes(embeddings: Embeddings) -> Iterator[Index]:
    for compression in ("rroq158", "fp16"):
        yield Index(
            compression,
            lambda folder: build(embeddings, folder, compression),
            lambda folder, threads: settings(embeddings, folder, compression, threads),
        )


def opened(embeddings: Embeddings, folder: Path, compression: str, found: int = 2000) -> ColSearch:
    return ColSearch(
        str(folder),
        embeddings.dim,
        engine="shard",
        device="cpu",
        compression=compression,
        n_shards=32,
        k_candidates=found,
        max_docs_exact=found,
        n_full_scores=found,
    )


def build(embeddings: Embeddings, folder: Path, compression: str) -> None:
    index = opened(embeddings, folder, compression)
    index.add(embeddings.matrices(0, embeddings.chunks), ids=list(range(embeddings.chunks)))
    index.flush()
    index.close()


def settings(embeddings: Embeddings, folder: Path, compression: str, threads: int) -> Iterator[Setting]:
    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    for found in candidates:
        index = opened(embeddings, folder, compression, found)

        def search(query: np.ndarray) -> list[int]:
            return [result.doc_id for result in index.search(query, k=top_k)]

        yield Setting(f"{compression}, {found} scored", search)
        index.close()
