"""Quality of token vectors: MaxSim of all queries with all passages in bf16, nDCG@10 and recall@100 by `evaluate.py`.

A collection here is one of `evaluate.py`, so that the development sets and SciFact and Cranfield are measured by the
same code. Hidden states are f16 [tokens, 384], rows of all sequences one after another.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import data
import encoder
import evaluate
from network import Embedding, Network, padded
from source import HIDDEN, LAYERS
from states import States
from student import Student

BATCH_TOKENS = 3072
BLOCK_CHUNKS, BLOCK_QUERY_TOKENS, BLOCK_ROWS = 64, 4096, 50_000


@dataclass(frozen=True)
class Measured:
    """A collection as sequences of word pieces; queries have no frame here, it weighs nothing."""

    collection: evaluate.Collection
    documents: evaluate.Chunks
    queries: evaluate.Chunks


def collection(directory: Path, tokenizer: encoder.Tokenizer) -> Measured:
    loaded = evaluate.load(directory)
    contents = encoder.pieces(tokenizer, loaded.document_texts)
    return _measured(loaded, [encoder.windows(content) for content in contents], tokenizer)


def development(own: data.Data, source: str, tokenizer: encoder.Tokenizer) -> tuple[Measured, list[int]]:
    """A development collection, and the numbers of its passages."""
    queries, numbers = own.development_collection(source)
    place = {number: at for at, number in enumerate(numbers)}
    gains: dict[str, dict[int, float]] = {}
    for query in queries:
        gains.setdefault(query.text, {})[place[query.passage]] = 1.0
    texts = [own.passages[number] for number in numbers]
    loaded = evaluate.Collection(source, list(map(str, numbers)), texts, list(gains), list(gains), gains)
    contents = data.contents(tokenizer, texts, data.PASSAGE_TOKENS)
    return _measured(loaded, [[content] for content in contents], tokenizer), numbers


def _measured(loaded: evaluate.Collection, windows: list[list[encoder.Pieces]], tokenizer: encoder.Tokenizer) -> Measured:
    queries = [[encoder.framed(content)[1:-1]] for content in encoder.pieces(tokenizer, loaded.query_texts)]
    return Measured(loaded, evaluate.chunks(windows), evaluate.chunks(queries))


def states(network: Network, sequences: list[encoder.Pieces], layer: int = LAYERS) -> np.ndarray:
    """States of framed sequences behind a layer, f16 [tokens, 384]; computed in bf16."""
    narrow = copy.deepcopy(network).bfloat16()
    lengths = np.array([len(sequence) for sequence in sequences])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.empty((int(offsets[-1]), HIDDEN), np.float16)
    with torch.inference_mode():
        for numbers in batches(lengths):
            ids, mask = padded([sequences[number][1:-1] for number in numbers])
            hidden = narrow(ids, mask, layer).half().numpy()
            for row, number in enumerate(numbers):
                rows[offsets[number] : offsets[number + 1]] = hidden[row, : lengths[number]]
    return rows


def raised(network: Network, rows: np.ndarray, offsets: np.ndarray, first: int) -> np.ndarray:
    """Last hidden states from the states behind layer `first` of the same texts."""
    narrow, last = copy.deepcopy(network).bfloat16(), np.empty_like(rows)
    kept, lengths = States(rows, offsets), np.diff(offsets)
    with torch.inference_mode():
        for numbers in batches(lengths):
            x, real = kept.gathered(numbers)
            x = narrow.through(x.bfloat16(), real, first).half().numpy()
            for row, number in enumerate(numbers):
                last[offsets[number] : offsets[number + 1]] = x[row, : lengths[number]]
    return last


def batches(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of the texts of each batch, longest texts first."""
    order, start = np.argsort(-lengths, kind="stable"), 0
    while start < len(order):
        numbers = order[start : start + max(1, BATCH_TOKENS // lengths[order[start]])]
        start += len(numbers)
        yield numbers


def best_matches(query_rows: torch.Tensor, document_rows: torch.Tensor, offsets: np.ndarray) -> torch.Tensor:
    """Best match of every query token in every chunk: f32 [chunks, query tokens]."""
    lengths = np.diff(offsets)
    best = torch.empty(len(lengths), len(query_rows))
    columns = query_rows.bfloat16().t().contiguous()
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), BLOCK_CHUNKS):
        numbers = order[start : start + BLOCK_CHUNKS]
        # A place behind a chunk's end repeats its first row, which changes no maximum.
        places = np.arange(lengths[numbers[0]])
        places = offsets[numbers][:, None] + np.where(places < lengths[numbers][:, None], places, 0)
        rows = document_rows[torch.from_numpy(places)].bfloat16()
        for at in range(0, columns.shape[1], BLOCK_QUERY_TOKENS):
            products = rows.view(-1, rows.shape[-1]) @ columns[:, at : at + BLOCK_QUERY_TOKENS]
            best[torch.from_numpy(numbers), at : at + BLOCK_QUERY_TOKENS] = products.view(*rows.shape[:2], -1).amax(1).float()
    return best


def scores(measured: Measured, best: torch.Tensor, token_weight: torch.Tensor) -> np.ndarray:
    """[queries, documents] from best matches and the weight of every query token."""
    weighted = (best * token_weight).numpy()
    totals = np.add.reduceat(weighted, measured.queries.offsets[:-1], axis=1)
    return evaluate.best_chunk(totals, measured.documents.owners)


def quality(measured: Measured, values: np.ndarray) -> dict:
    return evaluate.quality(measured.collection, values)


@dataclass(frozen=True)
class Bench:
    """A collection with the hidden states of its documents and queries."""

    measured: Measured
    documents: np.ndarray
    queries: np.ndarray

    def score(self, student: Student, embedding: Embedding | None = None) -> dict:
        with torch.inference_mode():
            documents = self._vectors(student, self.documents, self.measured.documents, embedding).bfloat16()
            queries = self._vectors(student, self.queries, self.measured.queries, embedding)
            ids = torch.from_numpy(np.concatenate(self.measured.queries.sequences))
            weight = student.weights(ids, torch.from_numpy(self.queries).float())
            best = best_matches(queries, documents, self.measured.documents.offsets)
            return quality(self.measured, scores(self.measured, best, weight))

    def raised(self, network: Network, first: int) -> Bench:
        """The same with last states, from those behind layer `first`."""
        parts = (self.documents, self.measured.documents.offsets), (self.queries, self.measured.queries.offsets)
        return Bench(self.measured, *(raised(network, *part, first) for part in parts))

    def _vectors(self, student: Student, rows: np.ndarray, chunks: evaluate.Chunks, embedding: Embedding | None) -> torch.Tensor:
        ids = torch.from_numpy(np.concatenate(chunks.sequences)) if student.form.embedding else None
        places = np.arange(len(rows)) - np.repeat(chunks.offsets[:-1], np.diff(chunks.offsets))
        parts = []
        for start in range(0, len(rows), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            embedded = None if ids is None else embedding(ids[part], torch.from_numpy(places[part]))
            parts.append(student.vectors(torch.from_numpy(rows[part]).float(), embedded))
        return torch.cat(parts)
