"""Tokens per second of the shipped graph and of the f32 graph on this machine: the best of many runs.

    .venv/bin/python speed.py NAME
"""

from __future__ import annotations

import sys
import time

import numpy as np

import encoder
import graph
from recipes import INT8, named

SHAPES = ((1, 16), (2, 128), (1, 256), (2, 256))
SECONDS = 2.0


def main() -> None:
    recipe = named(sys.argv[1])
    reference = graph.build(recipe.source().load(), None, graph.LinearF32())
    models = {"int8 (shipped)": recipe.graphs / INT8, "f32": reference}
    random = np.random.default_rng(1)
    for name, model in models.items():
        for threads in (1, 2):
            running = encoder.session(model, threads)
            outputs = ["output"] if name.startswith("int8") else ["hidden"]
            for texts, tokens in SHAPES:
                sequences = random.integers(1000, recipe.vocabulary.size, (texts, tokens)).tolist()
                best = fastest(running, outputs, encoder.batch(sequences))
                print(f"{name:15} {threads} threads  {texts} x {tokens:3}: {texts * tokens / best:7.0f} tokens/s", flush=True)


def fastest(running, outputs: list[str], inputs: dict[str, np.ndarray]) -> float:
    """Seconds of the fastest of the runs that fit into `SECONDS`. The first run does not count."""
    running.run(outputs, inputs)
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        running.run(outputs, inputs)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
