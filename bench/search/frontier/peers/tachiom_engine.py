"""TACHIOM: inverted lists of token-aware centroids, and product-quantised residuals.

Its clustering wants the vocabulary id of every token vector. Where the embeddings have none, the nearest of 1,024
directions drawn from the vectors stands for it.

It ranks by product-quantised residuals. A second line for each setting has its best 200 ranked by exact MaxSim of the stored
vectors, with NumPy: a user who wants exact scores does this, and keeps the vectors in f16 beside the index.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tachiom
from embeddings import Embeddings
from engine import Index, Setting, top_k

rescored_k = 200
# Centroids for each query token, chunks scored by their product-quantised residuals, width of the graph's search.
grid = [(4, 100, 8), (8, 200, 16), (20, 200, 30), (20, 500, 30), (40, 1000, 60), (80, 2000, 120), (160, 4000, 240)]


def indexes(embeddings: Embeddings) -> Iterator[Index]:
    yield Index(
        "index",
        lambda folder: build(embeddings, folder),
        lambda folder, threads: settings(embeddings, folder, threads),
    )


def halves(embeddings: Embeddings) -> np.ndarray:
    """f16 [token vectors x dim]."""
    rows = np.empty((embeddings.token_vectors, embeddings.dim), np.float16)
    for first, end in embeddings.runs():
        rows[embeddings.starts[first] : embeddings.starts[end]] = embeddings.rows(first, end)
    return rows


def kinds(rows: np.ndarray) -> np.ndarray:
    """Where there is no vocabulary: the nearest of some of the vectors themselves."""
    chosen = np.random.default_rng(1).choice(len(rows), min(1024, len(rows)), replace=False)
    directions = rows[np.sort(chosen)].astype(np.float32)
    found = np.empty(len(rows), np.int64)
    for at in range(0, len(rows), 50_000):
        found[at : at + 50_000] = (rows[at : at + 50_000].astype(np.float32) @ directions.T).argmax(1)
    return found


def build(embeddings: Embeddings, folder: Path) -> None:
    rows, ids = halves(embeddings), embeddings.token_ids()
    arrays = {
        "vectors": rows,
        "token_ids": kinds(rows) if ids is None else ids,
        "doclens": embeddings.counts.astype(np.int32),
    }
    files = {name: folder / f"{name}.npy" for name in arrays}
    for name, values in arrays.items():
        np.save(files[name], values)
    # Its own choice of centroids: fewer than one for each kind of token would make it ignore the kinds.
    tachiom.Tachiom.build(*map(str, files.values())).save(str(folder / "index.bin"))
    for file in files.values():
        file.unlink()


def rescored(rows: np.ndarray, starts: np.ndarray, chunks: list[int], query: np.ndarray) -> list[int]:
    """The best chunks by exact MaxSim, best first. `rows` is f32 [token vectors x dim], `starts` int [chunks + 1]."""
    parts = [rows[starts[chunk] : starts[chunk + 1]] for chunk in chunks]
    firsts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    scores = np.maximum.reduceat(np.concatenate(parts) @ query.T, firsts).sum(1)
    return [chunks[at] for at in np.argsort(-scores, kind="stable")[:top_k]]


def settings(embeddings: Embeddings, folder: Path, threads: int) -> Iterator[Setting]:
    index = tachiom.Tachiom.load(str(folder / "index.bin"))
    rows = halves(embeddings)
    half_bytes = rows.nbytes
    rows = rows.astype(np.float32)

    for exact, (centroids, scored, width) in itertools.product((False, True), grid):

        def search(query: np.ndarray) -> list[int]:
            _, ids = index.batch_search(
                query,
                1,
                k=rescored_k if exact else top_k,
                num_threads=threads,
                k_centroids=centroids,
                k_docs_to_score=scored,
                ef_search=width,
            )
            found = [int(one) for one in ids[0] if one != 0xFFFFFFFF]
            return rescored(rows, embeddings.starts, found, query) if exact else found

        text = f"{centroids} centroids a token of {index.n_centroids}, {scored} scored, width {width}"
        if exact:
            yield Setting(f"{text}, {rescored_k} scored exactly", search, half_bytes)
        else:
            yield Setting(text, search)
