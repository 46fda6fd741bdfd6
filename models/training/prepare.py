"""Everything that training and measuring read again and again, computed once and kept in a directory.

    texts          passages and queries as word pieces
    states         of passages, queries and collections, behind the layers that are asked for
    lists          candidates and the scores of the three teachers
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import data
import encoder
import measure
import mining
import source
import teacher
from network import Embedding, Network
from states import States
from student import Student

MEASURED_ONLY = ("cranfield", "scifact")


@dataclass
class Prepared:
    """`texts` is the training data, `passage_ids` and `query_ids` are its word pieces."""

    directory: Path
    datasets: Path
    wheels: Path
    tokenizer: encoder.Tokenizer
    weights: source.Weights = field(default_factory=source.load)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.network, self.embedding = Network(self.weights), Embedding(self.weights)
        self.texts: data.Data = self._kept("texts.pkl", lambda: data.load(self.datasets / "training", self.wheels))
        queries = [query.text for query in self.texts.queries]
        self.passage_ids = self._kept("passages.pkl", lambda: self._framed(self.texts.passages, data.PASSAGE_TOKENS))
        self.query_ids = self._kept("queries.pkl", lambda: self._framed(queries, data.QUERY_TOKENS))

    def passages(self, layer: int = source.LAYERS) -> States:
        return self._states("passages", self.passage_ids, layer)

    def queries(self, layer: int = source.LAYERS) -> States:
        return self._states("queries", self.query_ids, layer)

    def lists(self, sources: tuple[str, ...] = data.SOURCES) -> list[teacher.Lists]:
        return [self._kept(f"lists.{name}.pkl", lambda: self._lists(name)) for name in sources]

    def own_lists(self, network: Network, student: Student, first: int, number: int, sources: tuple[str, ...]) -> list[teacher.Lists]:
        """Lists of what the model finds first as it is now, for other queries in every round. In the first round it is the
        start, whose last states are kept."""
        first = first if number else source.LAYERS
        find = mining.finder(network, student, first, self.passages(first), self.queries(first), self.query_ids)
        return [self._lists(name, find, mining.among(number)) for name in sources]

    def development(self, layer: int = source.LAYERS) -> dict[str, measure.Bench]:
        """By source: the collection of what is held back, with states behind a layer."""
        found = {}
        for name in data.SOURCES:
            measured, numbers = self._kept(f"development.{name}.pkl", lambda: measure.development(self.texts, name, self.tokenizer))
            queries = self._states(f"development.{name}", _ids(measured.queries.sequences), layer)
            found[name] = measure.Bench(measured, self.passages(layer).part(numbers).values, queries.values)
        return found

    def collection(self, name: str, layer: int = source.LAYERS) -> measure.Bench:
        """SciFact or Cranfield, with states behind a layer."""
        measured = self._kept(f"{name}.pkl", lambda: measure.collection(self.datasets / name, self.tokenizer))
        parts = {"documents": measured.documents.sequences, "queries": measured.queries.sequences}
        rows = [self._states(f"{name}.{part}", _ids(sequences), layer).values for part, sequences in parts.items()]
        return measure.Bench(measured, *rows)

    def _lists(self, name: str, *choice: object) -> teacher.Lists:
        ids = self.query_ids
        pieces = [ids.values[start:after, 0] for start, after in zip(ids.offsets, ids.offsets[1:])]
        return teacher.lists(self.texts, self.passages(), self.queries(), pieces, name, *choice)

    def _framed(self, texts: list[str], tokens: int) -> States:
        return _ids([encoder.framed(content) for content in data.contents(self.tokenizer, texts, tokens)])

    def _states(self, name: str, ids: States, layer: int) -> States:
        """States of the network as it starts."""

        def compute() -> np.ndarray:
            sequences = [ids.values[start:after, 0].tolist() for start, after in zip(ids.offsets, ids.offsets[1:])]
            return measure.states(self.network, sequences, layer)

        return States(self._kept(f"{name}.{layer}.npy", compute), ids.offsets)

    def _kept(self, name: str, make: Callable[[], object]) -> object:
        path = self.directory / name
        if not path.exists():
            start, made = time.perf_counter(), make()
            np.save(path, made) if path.suffix == ".npy" else path.write_bytes(pickle.dumps(made))
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
        return np.load(path, mmap_mode="c") if path.suffix == ".npy" else pickle.loads(path.read_bytes())


def _ids(sequences: list[encoder.Pieces]) -> States:
    """Word pieces as rows of one number."""
    offsets = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
    return States(np.concatenate(sequences).astype(np.int64)[:, None], offsets)
