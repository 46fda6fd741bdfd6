"""TACHIOM over a directory of embeddings (bench/search/embedding-directory.ts): builds its index once, then asks every
query at every setting and prints one JSON line for each setting.

    search.py EMBEDDINGS INDEX ROUNDS THREADS CLOCK      (wall or processor)

Its clustering wants the vocabulary id of every token vector. Where the embeddings have none, the nearest of 1,024
directions drawn from the vectors stands for it.

It ranks by product-quantised residuals. A second line for each setting has its best 200 ranked by exact MaxSim of the stored
vectors, with NumPy: what its user would do who wants exact scores.
"""

import itertools
import json
import os
import sys
import time
from pathlib import Path

# Before NumPy is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = sys.argv[4]
import numpy as np
import tachiom

top_k = 100
rescored_k = 200
# Centroids for each query token, chunks scored by their product-quantised residuals, width of the graph's search.
settings = [(4, 100, 8), (8, 200, 16), (20, 200, 30), (20, 500, 30), (40, 1000, 60), (80, 2000, 120), (160, 4000, 240)]


def documents(directory: Path) -> tuple[np.ndarray, np.ndarray]:
    mean = np.fromfile(directory / "centring.f32", np.float32)
    vectors = np.fromfile(directory / "vectors.i8", np.int8).reshape(-1, len(mean))
    scales = np.fromfile(directory / "scales.f16", np.float16).astype(np.float32)
    rows = np.empty(vectors.shape, np.float16)
    for at in range(0, len(rows), 100_000):
        part = slice(at, at + 100_000)
        rows[part] = vectors[part] * scales[part, None] + mean
    return rows, np.fromfile(directory / "chunk_rows.u32", np.uint32).astype(np.int32)


def kinds(rows: np.ndarray) -> np.ndarray:
    """Where there is no vocabulary: the nearest of some of the vectors themselves."""
    chosen = np.random.default_rng(1).choice(len(rows), min(1024, len(rows)), replace=False)
    directions = rows[np.sort(chosen)].astype(np.float32)
    found = np.empty(len(rows), np.int64)
    for at in range(0, len(rows), 50_000):
        found[at : at + 50_000] = (rows[at : at + 50_000].astype(np.float32) @ directions.T).argmax(1)
    return found


def token_ids(directory: Path, rows: np.ndarray) -> np.ndarray:
    file = directory / "token_ids.u32"
    return np.fromfile(file, np.uint32).astype(np.int64) if file.exists() else kinds(rows)


def rescored(rows: np.ndarray, starts: np.ndarray, chunks: list[int], query: np.ndarray) -> list[int]:
    """The best chunks by exact MaxSim, best first. `rows` is f32 [token vectors x dim], `starts` int [chunks + 1]."""
    parts = [rows[starts[chunk] : starts[chunk + 1]] for chunk in chunks]
    firsts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    scores = np.maximum.reduceat(np.concatenate(parts) @ query.T, firsts).sum(1)
    return [chunks[at] for at in np.argsort(-scores, kind="stable")[:top_k]]


def queries(directory: Path, dim: int) -> list[np.ndarray]:
    values = np.fromfile(directory / "queries.f32", np.float32).reshape(-1, dim)
    counts = np.fromfile(directory / "query_rows.u32", np.uint32)
    return np.split(values, np.cumsum(counts)[:-1])


def build(directory: Path, index: Path) -> None:
    rows, counts = documents(directory)
    index.mkdir(parents=True, exist_ok=True)
    np.save(index / "vectors.npy", rows)
    np.save(index / "token_ids.npy", token_ids(directory, rows))
    np.save(index / "doclens.npy", counts)
    files = [str(index / name) for name in ("vectors.npy", "token_ids.npy", "doclens.npy")]
    # Its own choice of centroids: fewer than one for each kind of token would make it ignore the kinds.
    tachiom.Tachiom.build(*files).save(str(index / "index.bin"))


def measured(search, asked: list[np.ndarray], rounds: int, clock) -> tuple[list[float], list[list[int]]]:
    """Times of all rounds but a first one, and what each query finds."""
    found = [search(tokens) for tokens in asked]
    milliseconds = []
    for tokens in asked * rounds:
        start = clock()
        search(tokens)
        milliseconds.append((clock() - start) * 1000)
    return milliseconds, found


def main(embeddings: str, folder: str, rounds: str, threads: str, clock: str) -> None:
    directory, index = Path(embeddings), Path(folder)
    started = time.perf_counter()
    if not (index / "index.bin").exists():
        build(directory, index)
    built = time.perf_counter() - started
    loaded = tachiom.Tachiom.load(str(index / "index.bin"))
    asked = [np.ascontiguousarray(query) for query in queries(directory, loaded.dim)]
    halves, counts = documents(directory)
    rows, starts = halves.astype(np.float32), np.concatenate(([0], np.cumsum(counts)))
    del halves

    def found_by(tokens: np.ndarray, k: int, centroids: int, scored: int, width: int) -> list[int]:
        _, ids = loaded.batch_search(
            tokens, 1, k=k, num_threads=int(threads), k_centroids=centroids, k_docs_to_score=scored, ef_search=width
        )
        return [int(one) for one in ids[0] if one != 0xFFFFFFFF]

    for exact, (centroids, scored, width) in itertools.product((False, True), settings):

        def search(tokens: np.ndarray) -> list[int]:
            best = found_by(tokens, rescored_k if exact else top_k, centroids, scored, width)
            return rescored(rows, starts, best, tokens) if exact else best

        milliseconds, found = measured(
            search, asked, int(rounds), time.process_time if clock == "processor" else time.perf_counter
        )
        settled = f"{centroids} centroids a token, {scored} scored, width {width}, {loaded.n_centroids} centroids"
        line = {
            "settings": f"{settled}, {rescored_k} scored exactly" if exact else settled,
            "buildSeconds": built,
            "milliseconds": milliseconds,
            "found": found,
            "memoryBytes": os.path.getsize(index / "index.bin"),
        }
        print(json.dumps(line), flush=True)


main(*sys.argv[1:])
