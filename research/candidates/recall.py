"""How many of the chunks that exhaustive MaxSim finds are among the candidates."""

from __future__ import annotations

import numpy as np

KEPT = (100, 200, 500)
TOPS = (10, 100)


def best(scores: np.ndarray, count: int) -> np.ndarray:
    """The numbers of the `count` greatest scores, greatest first; equal ones in order of their numbers."""
    if count < len(scores):
        threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
        numbers = np.flatnonzero(scores >= threshold)
    else:
        numbers = np.arange(len(scores))
    # Unsigned scores do not negate.
    return numbers[np.argsort(-scores[numbers].astype(np.float64), kind="stable")][:count].astype(np.uint32)


class Recall:
    """Shares of the exact top 10 and 100 among the first 100, 200, 500 (or other numbers of) candidates."""

    def __init__(self, exact: np.ndarray, kept: tuple[int, ...] = KEPT):
        self.tops = [best(scores, max(TOPS)) for scores in exact]
        self.kept = kept
        self.shares: dict[tuple[int, int], list[float]] = {(top, k): [] for k in kept for top in TOPS}

    def add(self, query: int, ranked: np.ndarray) -> None:
        for top, k in self.shares:
            self.shares[top, k].append(np.isin(self.tops[query][:top], ranked[:k]).mean())

    def line(self) -> dict[str, float]:
        return {f"top-{top} in {k}": round(float(np.mean(values)), 4) for (top, k), values in self.shares.items()}
