"""Everything that training and measuring read again and again, computed once and kept in a directory.

    texts          passages and queries as word pieces
    states         of passages, queries and collections, behind layer 3 and behind the last
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
import finetune
import measure
import source
import teacher
from network import Embedding, Network
from states import States

MEASURED_ONLY = ("cranfield", "scifact")
LAYERS = (finetune.FIRST, source.LAYERS)


@dataclass
class Prepared:
    """`texts`, `passages`, `queries` are of the training data; states are by layer."""

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
        self.passages = self._states("passages", self.passage_ids)
        self.queries = self._states("queries", self.query_ids)

    def lists(self) -> list[teacher.Lists]:
        def find(name: str) -> teacher.Lists:
            last = source.LAYERS
            ids = [self.query_ids.values[start:after, 0] for start, after in zip(self.query_ids.offsets, self.query_ids.offsets[1:])]
            return teacher.lists(self.texts, self.passages[last], self.queries[last], ids, name)

        return [self._kept(f"lists.{name}.pkl", lambda: find(name)) for name in data.SOURCES]

    def development(self, layer: int = source.LAYERS) -> dict[str, measure.Bench]:
        """By source: the collection of what is held back, with states behind a layer."""
        found = {}
        for name in data.SOURCES:
            measured, numbers = self._kept(f"development.{name}.pkl", lambda: measure.development(self.texts, name, self.tokenizer))
            queries = self._states(f"development.{name}", _ids(measured.queries.sequences))[layer]
            found[name] = measure.Bench(measured, self.passages[layer].joined(numbers), queries.values)
        return found

    def collection(self, name: str, network: Network | None = None) -> measure.Bench:
        """SciFact or Cranfield with the states of the network as it starts (kept), or as it is now."""
        measured = self._kept(f"{name}.pkl", lambda: measure.collection(self.datasets / name, self.tokenizer))
        parts = {"documents": measured.documents.sequences, "queries": measured.queries.sequences}
        if network:
            return measure.Bench(measured, *(measure.states(network, part)[0] for part in parts.values()))
        rows = [self._kept(f"{name}.{part}.npy", lambda: measure.states(self.network, parts[part])[0]) for part in parts]
        return measure.Bench(measured, *rows)

    def _framed(self, texts: list[str], tokens: int) -> States:
        return _ids([encoder.framed(content) for content in data.contents(self.tokenizer, texts, tokens)])

    def _states(self, name: str, ids: States) -> dict[int, States]:
        files = [self.directory / f"{name}.{layer}.npy" for layer in LAYERS]
        if not all(file.exists() for file in files):
            sequences = [ids.values[start:after, 0].tolist() for start, after in zip(ids.offsets, ids.offsets[1:])]
            for file, rows in zip(files, measure.states(self.network, sequences, LAYERS)):
                np.save(file, rows)
        return {layer: States(np.load(file, mmap_mode="c"), ids.offsets) for layer, file in zip(LAYERS, files)}

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
