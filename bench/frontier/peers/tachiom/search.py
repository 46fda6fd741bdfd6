"""TACHIOM over a directory of embeddings (bench/search/embedding-directory.ts): builds its index once, then asks every
query at every setting and prints one JSON line a setting.

    search.py EMBEDDINGS INDEX ROUNDS THREADS CLOCK      (wall or processor)

Its clustering wants the vocabulary id of every token vector, which embeddings do not carry: the nearest of 1,024
directions drawn from the vectors stands for it.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import tachiom

top_k = 100
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


def queries(directory: Path, dim: int) -> list[np.ndarray]:
    values = np.fromfile(directory / "queries.f32", np.float32).reshape(-1, dim)
    counts = np.fromfile(directory / "query_rows.u32", np.uint32)
    return np.split(values, np.cumsum(counts)[:-1])


def build(directory: Path, index: Path) -> None:
    rows, counts = documents(directory)
    index.mkdir(parents=True, exist_ok=True)
    np.save(index / "vectors.npy", rows)
    np.save(index / "token_ids.npy", kinds(rows))
    np.save(index / "doclens.npy", counts)
    # As many token vectors a centroid as its authors have: 266 million on 2 million.
    centroids = 1 << max(10, round(np.log2(len(rows) / 127)))
    files = [str(index / name) for name in ("vectors.npy", "token_ids.npy", "doclens.npy")]
    tachiom.Tachiom.build(*files, total_centroids=centroids).save(str(index / "index.bin"))


def main(embeddings: str, folder: str, rounds: str, threads: str, clock: str) -> None:
    now = time.process_time if clock == "processor" else time.perf_counter
    directory, index = Path(embeddings), Path(folder)
    started = time.perf_counter()
    if not (index / "index.bin").exists():
        build(directory, index)
    built = time.perf_counter() - started
    loaded = tachiom.Tachiom.load(str(index / "index.bin"))
    asked = queries(directory, loaded.dim)
    for centroids, scored, width in settings:
        milliseconds, found = [], []
        for turn in range(int(rounds) + 1):
            for query in asked:
                tokens = np.ascontiguousarray(query)
                start = now()
                _, ids = loaded.batch_search(
                    tokens, 1, k=top_k, num_threads=int(threads), k_centroids=centroids, k_docs_to_score=scored, ef_search=width
                )
                if turn > 0:
                    milliseconds.append((now() - start) * 1000)
                else:
                    found.append([int(one) for one in ids[0] if one != 0xFFFFFFFF])
        line = {
            "settings": f"{centroids} centroids a token, {scored} scored, width {width}, {loaded.n_centroids} centroids",
            "buildSeconds": built,
            "milliseconds": milliseconds,
            "found": found,
            "memoryBytes": os.path.getsize(index / "index.bin"),
        }
        print(json.dumps(line), flush=True)


main(*sys.argv[1:])
