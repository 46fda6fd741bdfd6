"""The models that are built here, and where their files lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import source

HERE = Path(__file__).parent
INT8, F16 = "model.onnx", "model.f16.onnx"


@dataclass(frozen=True)
class Recipe:
    """row_bits: of a stored component. With 8 the head projects to 128 dimensions and the graph quantises its rows.
    dim: of the learnt projection of a model of few bits; None = the states themselves are its vectors.
    """

    name: str
    version: str
    licence: str
    source: Callable[[], source.Source]
    row_bits: int
    dim: int | None = None

    @property
    def target(self) -> Path:
        return HERE / self.name / self.version

    @property
    def cache(self) -> Path:
        return HERE / ".cache" / self.name

    @property
    def quality(self) -> Path:
        """Written by evaluate.py."""
        return HERE / self.name / "quality.json"


MINILM = Recipe("minilm-l6-maxsim", "1", "Apache-2.0", source.minilm, row_bits=8)
BGE_SMALL = Recipe("bge-small-maxsim", "1", "MIT", source.bge_small, row_bits=2)
BGE_SMALL_L6 = Recipe("bge-small-l6-maxsim", "1", "MIT", source.bge_small_student, row_bits=2)
RECIPES = {recipe.name: recipe for recipe in (BGE_SMALL, BGE_SMALL_L6, MINILM)}
WHEELS = HERE / ".cache" / "wheels"


def named(name: str) -> Recipe:
    if name not in RECIPES:
        raise SystemExit(f"{name} is none of the models: {', '.join(RECIPES)}")
    return RECIPES[name]
