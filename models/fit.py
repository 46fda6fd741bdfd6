"""Fits the head: projection, centring mean, token weights; and the moment of rows.

Everything is fitted on the text of `fit_text.py`. No evaluation data is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import calibrate
import encoder
import rows
from graph import Graph, Head, LinearF32, build
from source import HIDDEN, Vocabulary, Weights

DIM = 128
FIT_TOKENS_MAX = 450_000
CENTRING_PASSAGES = 700
MOMENT_PASSAGES = 1400
SEED = 20260101

RANK_OFFSET = 1000


def hidden_states(weights: Weights, fit_sequences: list[encoder.Pieces], cache: Path) -> tuple[np.ndarray, np.ndarray]:
    """(hidden states f16 [tokens, 384], offsets [passages + 1]) of the fit text. They are stored in `cache`."""
    if not (cache / "offsets.npy").exists():
        cache.mkdir(parents=True, exist_ok=True)
        count = int(np.searchsorted(np.cumsum([len(sequence) - 2 for sequence in fit_sequences]), FIT_TOKENS_MAX))
        sequences = fit_sequences[:count]
        offsets = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
        states = np.empty((int(offsets[-1]), HIDDEN), np.float16)
        running = encoder.session(build(weights, None, LinearF32()))
        for number, (own,) in encoder.run(running, sequences, ["hidden"]):
            states[offsets[number] : offsets[number + 1]] = own
        np.save(cache / "states.npy", states)
        np.save(cache / "offsets.npy", offsets)
    return np.load(cache / "states.npy"), np.load(cache / "offsets.npy")


def centring(model_file: Path, fit_sequences: list[encoder.Pieces]) -> np.ndarray:
    """The mean f64 [dim] of the unit vectors that a graph gives to fit text."""
    parts = list(_unit_vectors(model_file, fit_sequences, CENTRING_PASSAGES))
    return np.concatenate(parts).mean(axis=0, dtype=np.float64)


def moment(model_file: Path, fit_sequences: list[encoder.Pieces]) -> np.ndarray:
    """The mean f16 [dim, dim] of r r' over the rotated unit vectors r that a graph gives to fit text. The mean vector stays in
    them, and they are not pooled, because query vectors are like that. CLS and SEP count, as they do in documents."""
    total, count = 0.0, 0
    for vectors in _unit_vectors(model_file, fit_sequences, MOMENT_PASSAGES):
        turned = rows.rotated(vectors).astype(np.float64)
        total, count = total + turned.T @ turned, count + len(turned)
    return (total / count).astype(np.float16)


def _unit_vectors(model_file: Path, fit_sequences: list[encoder.Pieces], count: int) -> Iterator[np.ndarray]:
    """Yields `output` f32 [tokens, dim] of each of the first `count` passages behind those that `calibrate` takes."""
    sequences = fit_sequences[calibrate.PASSAGES :][:count]
    for _, (vectors,) in encoder.run(encoder.session(model_file, threads=1), sequences, ["output"]):
        yield vectors


def head(states: np.ndarray, vocabulary: Vocabulary) -> Head:
    return Head(token_weights(vocabulary), orthogonal_projection(), document_vectors(states).mean(axis=0))


def document_vectors(states: np.ndarray) -> np.ndarray:
    """Hidden states to unit vectors f32 [tokens, dim], by the f32 projection."""
    return unit(states.astype(np.float32) @ orthogonal_projection())


def orthogonal_projection() -> np.ndarray:
    """A random 384 -> 128 projection with orthonormal columns [384, 128]."""
    square = np.random.default_rng(SEED).standard_normal((HIDDEN, DIM))
    basis, triangle = np.linalg.qr(square)
    return (basis * np.sign(np.diag(triangle))).astype(np.float32)


def token_weights(vocabulary: Vocabulary) -> np.ndarray:
    """[vocabulary] weights of query tokens: log(rank + 1000), about 1 for a middling word of WordPiece.

    Vocabularies list pieces by falling frequency in the text that they were made from. So the rank stands for the inverse
    frequency, and no other text is needed. Start and end (CLS and SEP) and padding have no weight: measured, that is better.
    Unknown words have weight.
    """
    rank = np.maximum(np.arange(vocabulary.size) - vocabulary.first_word, 1)
    weights = np.log(rank + RANK_OFFSET) / np.log(5 * RANK_OFFSET)
    weights[[vocabulary.start, vocabulary.end, vocabulary.pad]] = 0
    return weights.astype(np.float32)


def computed_token_weights(vocabulary: Vocabulary) -> Callable[[Graph], str]:
    """The same weights as nodes of a graph, for a large vocabulary. They do not depend on inputs, so the runtime computes the table
    once, at load, and the file does not hold it."""

    def nodes(graph: Graph) -> str:
        number = graph.number
        scalar = lambda value: graph.node("Squeeze", number(value))
        ids = graph.node("Range", scalar(0), scalar(vocabulary.size), scalar(1))
        rank = graph.node("Max", graph.node("Sub", ids, number(vocabulary.first_word)), number(1))
        logarithms = graph.node("Log", graph.node("Add", rank, number(RANK_OFFSET)))
        weights = graph.node("Mul", logarithms, number(1 / np.log(5 * RANK_OFFSET)))
        frame = graph.axes(vocabulary.start, vocabulary.end, vocabulary.pad)
        nothing = graph.constant("nothing", np.zeros(3, np.float32))
        return graph.node("ScatterElements", weights, frame, nothing)

    return nodes


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
