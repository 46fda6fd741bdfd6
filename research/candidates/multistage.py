"""Measures candidates from centroids: codes of all chunks, inverted lists, and residuals of what lists hand on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import codebooks
import kernels
import lists
import residuals
from embeddings import Embeddings, ends
from recall import KEPT, Recall, best

Row = dict[str, object]


class Clock:
    """Milliseconds of this thread's processor time a query, of what runs inside `with`."""

    def __init__(self) -> None:
        self.spent, self.rounds = 0.0, 0

    def __enter__(self) -> None:
        self.started = time.thread_time()

    def __exit__(self, *_) -> None:
        self.spent += time.thread_time() - self.started
        self.rounds += 1

    @property
    def ms(self) -> float:
        return round(self.spent / max(1, self.rounds) * 1e3, 3)


def codes_alone(name: str, embeddings: Embeddings, exact: np.ndarray, codes: codebooks.Codes) -> Row:
    recall, clock = Recall(exact), Clock()
    for number, query in enumerate(embeddings.queries):
        levels = codebooks.levels(query, codes.centroids)
        with clock:
            scores = kernels.code_scores(levels, codes.codes, codes.offsets)
        recall.add(number, best(scores, max(KEPT)))
    bytes_per_chunk = round(2 * len(codes.codes) / embeddings.chunks)
    return {"candidates": name, "ms": clock.ms, "bytes_per_chunk": bytes_per_chunk, **recall.line()}


def with_lists(
    name: str,
    embeddings: Embeddings,
    exact: np.ndarray,
    codes: codebooks.Codes,
    left: residuals.Residuals | None,
    probing: list[dict[str, int | None]],
    shortlist: tuple[int, ...],
) -> Iterator[Row]:
    """For each way of probing: the partial sums alone, then the shortlist by codes and, where given, by residuals."""
    inverted = lists.inverted(codes)
    list_bytes = 2 * len(codes.codes) / embeddings.chunks
    row_bytes = 0 if left is None else len(embeddings.vectors) / embeddings.chunks * (2 + left.row_parts.shape[1])
    for probe in probing:
        walk, entries = Clock(), 0
        alone = Recall(exact, shortlist)
        stages = {(p, kind): (Recall(exact), Clock()) for p in shortlist for kind in ("codes", "residuals")}
        for number, query in enumerate(embeddings.queries):
            levels = codebooks.levels(query, codes.centroids)
            probes = lists.probes(inverted, levels, len(query), **probe)
            with walk:
                sums, walked = lists.gains(inverted, probes)
            entries += walked
            order = best(sums, max(shortlist))
            alone.add(number, order)
            tables = None if left is None else left.tables(query)
            for (count, kind), (recall, clock) in stages.items():
                kept = np.sort(order[:count])
                if kind == "codes":
                    with clock:
                        scores = kernels.code_scores(levels, codes.codes, codes.offsets, kept)
                elif left is not None:
                    with clock:
                        scores = kernels.residual_scores(
                            *tables, left.row_codes, left.row_parts, embeddings.offsets, kept
                        )
                else:
                    continue
                recall.add(number, kept[best(scores, max(KEPT))])
        of = " ".join(f"{key} {value}" for key, value in probe.items() if value is not None)
        shared: Row = {"entries": entries // len(embeddings.queries), "list_ms": walk.ms}
        name_alone = f"{name}, {of}: partial sums"
        yield {"candidates": name_alone, **shared, "bytes_per_chunk": round(list_bytes), **alone.line()}
        for (count, kind), (recall, clock) in stages.items():
            if kind == "residuals" and left is None:
                continue
            size = list_bytes + (list_bytes if kind == "codes" else row_bytes)
            yield {
                "candidates": f"{name}, {of} -> {count} by {kind}", **shared,
                "ms": round(walk.ms + clock.ms, 3), "bytes_per_chunk": round(size), **recall.line(),
            }  # fmt: skip


def at_scale(
    embeddings: Embeddings, codes: codebooks.Codes, copies: int, probing: tuple[dict[str, int], ...], count: int
) -> Iterator[Row]:
    """The cost of lists and codes at `copies` times the chunks: the same ones again and again, as further numbers.
    Probing meets `copies` times the entries; recall at that size is another matter."""
    more = replace(
        codes, codes=np.tile(codes.codes, copies), offsets=ends(np.tile(np.diff(codes.offsets), copies))
    )
    inverted = lists.inverted(more)
    random = np.random.default_rng(1)
    for probe in probing:
        walk, selected, ranked, entries = Clock(), Clock(), Clock(), 0
        for query in embeddings.queries:
            levels = codebooks.levels(query, codes.centroids)
            probes = lists.probes(inverted, levels, len(query), **probe)
            with walk:
                sums, walked = lists.gains(inverted, probes)
            entries += walked
            with selected:
                kernels.threshold(sums, count)
            # Copies of a chunk are among the best together: take some of each, as far apart as real ones would be.
            kept = best(sums, count)
            elsewhere = random.integers(copies, size=len(kept)) * embeddings.chunks
            kept = np.sort((kept + elsewhere) % len(sums)).astype(np.uint32)
            with ranked:
                kernels.code_scores(levels, more.codes, more.offsets, kept)
        yield {
            "chunks": len(sums), "centroids": len(codes.centroids), "probing": probe, "shortlist": count,
            "entries": entries // len(embeddings.queries), "list_ms": walk.ms, "threshold_ms": selected.ms,
            "codes_ms": ranked.ms,
        }  # fmt: skip
