"""The models that are built here, and where their files lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import source

HERE = Path(__file__).parent
INT8, F16, MOMENT = "model.onnx", "model.f16.onnx", "moment.f16"


@dataclass(frozen=True)
class Recipe:
    """row_bits: of a stored component. With 8 the head projects to 128 dimensions and the graph quantises its rows.
    dim: of the learnt projection of a model of few bits; None = the states themselves are its vectors.
    shares: the version whose graphs and tokenizer this one has; None = its own. Only a version that shares has refined codes.
    pool_factor: how many vectors of a chunk become one row.
    """

    name: str
    version: str
    licence: str
    source: Callable[[], source.Source]
    row_bits: int
    dim: int | None = None
    shares: int | None = None
    pool_factor: int = 1

    @property
    def target(self) -> Path:
        return HERE / self.name / self.version

    @property
    def graphs(self) -> Path:
        """The directory with the graphs and the tokenizer."""
        return self.target if self.shares is None else HERE / self.name / str(self.shares)

    @property
    def cache(self) -> Path:
        return HERE / ".cache" / self.name

    @property
    def quality(self) -> Path:
        """Written by evaluate.py."""
        return HERE / self.name / f"quality-{self.version}.json"


MINILM = Recipe("minilm-l6-maxsim", "1", "Apache-2.0", source.minilm, row_bits=8)
BGE_SMALL = Recipe("bge-small-maxsim", "1", "MIT", source.bge_small, row_bits=2)
BGE_SMALL_POOLED = replace(BGE_SMALL, version="2", shares=1, pool_factor=3)
BGE_SMALL_L6 = Recipe("bge-small-l6-maxsim", "1", "MIT", source.bge_small_student, row_bits=2)
# Versions of a model are in ascending order.
RECIPES = {f"{recipe.name}/{recipe.version}": recipe for recipe in (BGE_SMALL, BGE_SMALL_POOLED, BGE_SMALL_L6, MINILM)}
WHEELS = HERE / ".cache" / "wheels"


def named(name: str) -> Recipe:
    """The model NAME/VERSION. A NAME alone stands for its newest version."""
    found = [recipe for full, recipe in RECIPES.items() if name in (full, recipe.name)]
    if not found:
        raise SystemExit(f"{name} is none of the models: {', '.join(RECIPES)}")
    return found[-1]
