"""Ways to find candidates for exact MaxSim, side by side on real embeddings.

    python main.py DIRECTORY [--queries 100] [--chunks N] [--only codes,lists,residuals,vectors,encodings,graph,scale]
                   [--keep FOLDER] [--json FILE]

DIRECTORY is as `embeddings.py` describes. Prints a table of the shares of exhaustive MaxSim's top 10 and 100 chunks
among 100, 200 and 500 candidates, with costs: milliseconds of one thread's processor time a query. Set
OPENBLAS_NUM_THREADS=1. --keep saves exact scores, centroids and codes for the next run.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
CENTROIDS = 4096
CENTROIDS_MOST = 65536
# Parts of a residual, and entries of each part.
RESIDUALS = (8, 256)
SHORTLIST = (1000, 2000, 4000, 8000)
TRAINING_TOKENS = 4096
FEATURE_SCALE, FEATURE_OFFSET, RIDGE = 4.0, 0.25, 1e-3
# Random features that vectors of fewer dimensions are fitted to.
WIDE = 2048
RANK = 512


class Comparison:
    def __init__(self, directory: Path, queries: int, chunks: int | None, keep: Path | None):
        self.data = embeddings.opened(directory, queries, chunks)
        self.keep = keep
        self.exact = self._kept(f"exact-{queries}", lambda: {"scores": embeddings.exhaustive(self.data)})["scores"]

    def _kept(self, name: str, make: Callable[[], dict[str, np.ndarray]]) -> Mapping[str, np.ndarray]:
        """Arrays of an earlier run over as many chunks, or new ones."""
        path = self.keep and self.keep / f"{name}-{self.data.chunks}.npz"
        if path and path.exists():
            return np.load(path)
        made = make()
        if path:
            np.savez(path, **made)
        return made

    @cache
    def row_codes(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Centroids fitted on the collection, and the code of each token vector."""

        def make() -> dict[str, np.ndarray]:
            started = time.perf_counter()
            centroids = codebooks.fitted(self.data.vectors, count)
            fitted = time.perf_counter()
            found = codebooks.assigned(self.data, centroids)
            took = f"fitted in {fitted - started:.0f} s, assigned in {time.perf_counter() - fitted:.0f} s"
            note(f"{count} centroids: {took}")
            return {"centroids": centroids, "row_codes": found}

        kept = self._kept(f"codes-{count}", make)
        return kept["centroids"], kept["row_codes"]

    def codes(self, count: int) -> codebooks.Codes:
        centroids, found = self.row_codes(count)
        return codebooks.gathered(self.data, found, centroids)

    @cache
    def residual_codes(self, count: int, parts: int, entries: int) -> residuals.Residuals:
        _, found = self.row_codes(count)
        means = codebooks.means(self.data, found, count)

        def make() -> dict[str, np.ndarray]:
            started = time.perf_counter()
            left = residuals.fitted(self.data, found, means, parts, entries)
            note(f"residuals of {parts} x {entries}: fitted and assigned in {time.perf_counter() - started:.0f} s")
            return {"entries": left.entries, "row_parts": left.row_parts}

        kept = self._kept(f"residuals-{count}-{parts}x{entries}", make)
        return residuals.Residuals(means, kept["entries"], found, kept["row_parts"])

    def by_codes(self) -> Iterator[Row]:
        for count in (1024, CENTROIDS, 16384, CENTROIDS_MOST):
            codes = self.codes(count)
            yield multistage.codes_alone(f"codes, {count} of the collection", self.data, self.exact, codes)
            if count == CENTROIDS:
                name = f"codes, {count}, means instead of directions"
                middle = codes.with_centroids(codebooks.means(self.data, self.row_codes(count)[1], count))
                yield multistage.codes_alone(name, self.data, self.exact, middle)

    def by_lists(self) -> Iterator[Row]:
        counts = (2, 4, 8, 16, 32, 64)
        tried = [{"nprobe": n} for n in counts] + [{"visits": n} for n in (4096, 8192, 16384)]
        ways = {CENTROIDS: tried, 16384: tried[2:4] + tried[7:8], CENTROIDS_MOST: tried[3:6]}
        for count, some in ways.items():
            name = f"lists of {count}"
            yield from multistage.with_lists(name, self.data, self.exact, self.codes(count), None, some, SHORTLIST)

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
                name, self.data, self.exact, self.codes(count), left, tried, SHORTLIST[1:3]
            ):
                if "by residuals" in str(row["candidates"]):
                    yield row

    @cache
    def fitted(self) -> list[onevector.Kind]:
        """Mean pooling and fitted vectors, the one for the graph last."""

        def make() -> dict[str, np.ndarray]:
            train = self.data.sample(TRAINING_TOKENS, 3)
            kinds: dict[str, object] = {"mean pooling": vectors.Mean()}
            for count in (256, 512, 1024):
                kinds[f"fitted, {count} random features"] = vectors.Fitted(random_features(count), train, RIDGE)
            wide = random_features(WIDE)
            kinds[ranked_name(RANK)] = vectors.Fitted(wide, train, RIDGE, RANK, self.data.every(16))
            stored = vectors.chunk_vectors(self.data, list(kinds.values()))
            made = {}
            for (name, kind), one in zip(kinds.items(), stored):
                made[name] = one
                made[f"queries, {name}"] = np.array([kind.query(query) for query in self.data.queries])
            return made

        kept = self._kept("fitted", make)
        names = [name for name in kept if not name.startswith("queries")]
        return [onevector.Kind(name, kept[name], kept[f"queries, {name}"]) for name in names]

    @cache
    def measurement(self) -> onevector.Measurement:
        return onevector.Measurement(self.data, self.exact, self.codes(CENTROIDS_MOST))

    def by_vectors(self) -> Iterator[Row]:
        measurement = self.measurement()
        for kind in self.fitted():
            yield from measurement.scanned(kind)
        # Dimensions of a reduced rank come in order of weight.
        half = RANK // 2
        yield from measurement.scanned(onevector.Kind(ranked_name(half), kind.stored[:, :half], kind.queries[:, :half]))

    def by_encodings(self) -> Iterator[Row]:
        measurement = self.measurement()
        for repetitions, bits, size in ((16, 3, 8), (20, 4, 8), (20, 5, 16)):
            kind = vectors.FixedDimensional(repetitions, bits, size)
            (stored,) = vectors.chunk_vectors(self.data, [kind])
            queries = np.array([kind.query(query) for query in self.data.queries])
            yield from measurement.scanned(onevector.Kind(f"fixed dimensional, {kind.dim}", stored, queries))

    def by_graph(self) -> Iterator[Row]:
        yield from self.measurement().by_graph(self.fitted()[-1])

    def at_scale(self) -> Iterator[Row]:
        for count, copies in ((CENTROIDS, 1), (16384, 1), (16384, 8)):
            yield from multistage.at_scale(self.data, self.codes(count), copies, ({"nprobe": 8}, {"nprobe": 16}), 4000)


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
    parser.add_argument("--only", default="codes,lists,residuals,vectors,encodings,graph,scale")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    comparison = Comparison(options.directory, options.queries, options.chunks, options.keep)
    ways = {
        "codes": comparison.by_codes, "lists": comparison.by_lists, "residuals": comparison.by_residuals,
        "vectors": comparison.by_vectors, "encodings": comparison.by_encodings, "graph": comparison.by_graph,
        "scale": comparison.at_scale,
    }  # fmt: skip
    data = comparison.data
    note(f"{data.chunks} chunks, {len(data.vectors)} token vectors, {len(data.queries)} queries")
    rows: list[Row] = []
    for way in options.only.split(","):
        for row in ways[way]():
            print(json.dumps(row), flush=True)
            rows.append({"way": way, **row})
        # Saved as they come: the whole takes a while.
        save(options.json, data, rows)


def save(path: Path | None, data: embeddings.Embeddings, rows: list[Row]) -> None:
    if path:
        environment = {"cpu": platform.processor() or platform.machine(), "command": " ".join(sys.argv)}
        report = {"environment": environment, "chunks": data.chunks, "queries": len(data.queries), "rows": rows}
        path.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
