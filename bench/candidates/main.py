"""Ways to find candidates for exact MaxSim, side by side on real embeddings.

    python main.py DIRECTORY [--queries 100] [--chunks N] [--only codes,lists,residuals,vectors,graph,scale]
                   [--keep FOLDER] [--json FILE]

DIRECTORY is as `embeddings.py` describes. Prints a table of the shares of exhaustive MaxSim's top 10 and 100 chunks
among 100, 200 and 500 candidates, with costs: milliseconds of one thread's processor time a query. Set
OPENBLAS_NUM_THREADS=1. --keep saves fitted centroids and the codes of token vectors for the next run.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

import codebooks
import embeddings
import multistage
import onevector
import residuals
import vectors

Row = dict[str, object]
MODEL = Path(__file__).parents[2] / "models" / "minilm-l6-maxsim" / "1"
CENTROIDS = 4096
# Parts of a residual, and entries of each part.
RESIDUALS = (8, 256)
SURVIVORS = (1000, 2000, 4000, 8000)
TRAINING_TOKENS = 8192
FEATURE_SCALE, FEATURE_OFFSET, RIDGE = 4.0, 0.25, 1e-3
# Random features that vectors of fewer dimensions are fitted to.
WIDE = 2048
RANK = 512


class Comparison:
    def __init__(self, directory: Path, queries: int, chunks: int | None, keep: Path | None):
        self.data = embeddings.opened(directory, queries, chunks)
        self.keep = keep
        self.exact = embeddings.exhaustive(self.data)

    @cache
    def row_codes(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Centroids fitted on the collection, and the code of each token vector."""
        kept = self.keep and self.keep / f"codes-{count}-{self.data.chunks}.npz"
        if kept and kept.exists():
            saved = np.load(kept)
            return saved["centroids"], saved["row_codes"]
        started = time.perf_counter()
        centroids = codebooks.fitted(self.data.vectors, count)
        fitted = time.perf_counter()
        found = codebooks.assigned(self.data, centroids)
        note(f"{count} centroids: fitted in {fitted - started:.0f} s, assigned in {time.perf_counter() - fitted:.0f} s")
        if kept:
            np.savez(kept, centroids=centroids, row_codes=found)
        return centroids, found

    def codes(self, count: int) -> codebooks.Codes:
        centroids, found = self.row_codes(count)
        return codebooks.gathered(self.data, found, centroids)

    @cache
    def residual_codes(self, count: int, parts: int, entries: int) -> residuals.Residuals:
        _, found = self.row_codes(count)
        started = time.perf_counter()
        means = codebooks.means(self.data, found, count)
        left = residuals.fitted(self.data, found, means, parts, entries)
        note(f"residuals of {parts} x {entries}: fitted and assigned in {time.perf_counter() - started:.0f} s")
        return left

    @cache
    def rerank(self) -> onevector.Reranker:
        return onevector.Reranker(self.data, self.residual_codes(CENTROIDS, *RESIDUALS))

    def by_codes(self) -> Iterator[Row]:
        shipped = np.fromfile(MODEL / "centroids.i8", np.int8).reshape(-1, embeddings.DIM).astype(np.float32)
        shipped *= np.fromfile(MODEL / "centroids.scale.f32", np.float32)[:, None]
        found = codebooks.assigned(self.data, shipped)
        general = codebooks.gathered(self.data, found, shipped)
        yield multistage.codes_alone(f"codes, {len(shipped)} of general text", self.data, self.exact, general)
        for count in (1024, 4096, 16384, 65536):
            codes = self.codes(count)
            yield multistage.codes_alone(f"codes, {count} of the collection", self.data, self.exact, codes)
            if count == CENTROIDS:
                name = f"codes, {count}, means instead of directions"
                middle = codes.with_centroids(codebooks.means(self.data, self.row_codes(count)[1], count))
                yield multistage.codes_alone(name, self.data, self.exact, middle)

    def by_lists(self) -> Iterator[Row]:
        counts = (2, 4, 8, 16, 32, 64)
        tried = [{"nprobe": n} for n in counts] + [{"visits": n} for n in (4096, 8192, 16384)]
        ways = {CENTROIDS: tried, 16384: tried[2:4] + tried[7:8], 65536: tried[3:6]}
        for count, some in ways.items():
            name = f"lists of {count}"
            yield from multistage.with_lists(name, self.data, self.exact, self.codes(count), None, some, SURVIVORS)

    def by_residuals(self) -> Iterator[Row]:
        ways = [{"nprobe": 4}, {"nprobe": 8}, {"visits": 8192}, {"visits": 16384}]
        shapes = [(CENTROIDS, *RESIDUALS, ways)]
        others = ((4, 256), (16, 16), (32, 16), (16, 256))
        shapes += [(CENTROIDS, parts, entries, ways[1:2]) for parts, entries in others]
        shapes += [(16384, parts, 256, [{"nprobe": 16}]) for parts in (4, 8)]
        for count, parts, entries, tried in shapes:
            name = f"lists of {count}, residuals {parts} x {entries}"
            left = self.residual_codes(count, parts, entries)
            for row in multistage.with_lists(
                name, self.data, self.exact, self.codes(count), left, tried, SURVIVORS[1:3]
            ):
                if "by residuals" in str(row["candidates"]):
                    yield row

    @cache
    def fitted(self) -> dict[str, tuple[object, np.ndarray]]:
        """Mean pooling and fitted vectors by name: the kind and its vectors of all chunks."""
        train = self.data.sample(TRAINING_TOKENS, 3)
        kinds: dict[str, object] = {"mean pooling": vectors.Mean()}
        for count in (256, 512, 1024):
            kinds[f"fitted, {count} random features"] = vectors.Fitted(random_features(count), train, RIDGE)
        ranked = vectors.Fitted(random_features(WIDE), train, RIDGE, RANK, self.data.every(8))
        kinds[ranked_name(RANK)] = ranked
        stored = vectors.chunk_vectors(self.data, list(kinds.values()))
        found = {name: (kind, one) for (name, kind), one in zip(kinds.items(), stored)}
        found[ranked_name(RANK // 2)] = vectors.Leading(ranked, RANK // 2), stored[-1][:, : RANK // 2]
        return found

    def by_vectors(self) -> Iterator[Row]:
        for name, (kind, stored) in self.fitted().items():
            yield from onevector.scanned(name, self.data, self.exact, kind, stored, self.rerank())
        for repetitions, bits, size in ((16, 3, 8), (20, 4, 8), (20, 5, 16)):
            kind = vectors.FixedDimensional(repetitions, bits, size)
            (stored,) = vectors.chunk_vectors(self.data, [kind])
            name = f"fixed dimensional, {kind.dim}"
            yield from onevector.scanned(name, self.data, self.exact, kind, stored, self.rerank())

    def by_graph(self) -> Iterator[Row]:
        kind, stored = self.fitted()[ranked_name(RANK)]
        yield from onevector.by_graph(ranked_name(RANK), self.data, self.exact, kind, stored, self.rerank())

    def at_scale(self) -> Iterator[Row]:
        codes, left = self.codes(CENTROIDS), self.residual_codes(CENTROIDS, *RESIDUALS)
        for copies in (1, 8):
            for visits in (8192, 16384, 32768, 65536):
                yield multistage.at_scale(self.data, codes, left, copies, {"visits": visits}, 4000)


def random_features(count: int) -> vectors.RandomFeatures:
    return vectors.RandomFeatures(count, FEATURE_SCALE, FEATURE_OFFSET)


def ranked_name(rank: int) -> str:
    return f"fitted, rank {rank} of {WIDE} random features"


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--chunks", type=int)
    parser.add_argument("--only", default="codes,lists,residuals,vectors,graph,scale")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    comparison = Comparison(options.directory, options.queries, options.chunks, options.keep)
    ways = {
        "codes": comparison.by_codes, "lists": comparison.by_lists, "residuals": comparison.by_residuals,
        "vectors": comparison.by_vectors, "graph": comparison.by_graph, "scale": comparison.at_scale,
    }  # fmt: skip
    data = comparison.data
    note(f"{data.chunks} chunks, {len(data.vectors)} token vectors, {len(data.queries)} queries")
    rows: list[Row] = []
    for way in options.only.split(","):
        for row in ways[way]():
            print(json.dumps(row), flush=True)
            rows.append({"way": way, **row})
    if options.json:
        environment = {"cpu": platform.processor() or platform.machine(), "command": " ".join(sys.argv)}
        report = {"environment": environment, "chunks": data.chunks, "queries": len(data.queries), "rows": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
