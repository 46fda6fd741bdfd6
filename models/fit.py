"""Fits the head: projection, centring mean, token weights; and the moment of rows.

Everything is fitted on the text of `fit_text.py`. No evaluation data is read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import calibrate
import encoder
import fit_text
import rows
from graph import Head, LinearF32, build
from source import CLS_ID, HIDDEN, PAD_ID, SEP_ID, VOCABULARY, Weights

DIM = 128
FIT_TOKENS_MAX = 450_000
CENTRING_PASSAGES = 700
MOMENT_PASSAGES = 1400
SEED = 20260101

# Word pieces without weight in a query. Measured, that is better than with their weights. Unknown words have weight.
FRAME_IDS = [PAD_ID, CLS_ID, SEP_ID]
# The vocabulary lists whole words by falling frequency from this id on.
FIRST_WORD_ID = 1996
RANK_OFFSET = 1000


def hidden_states(weights: Weights, tokenizer_file: Path, wheels: Path, cache: Path) -> tuple[np.ndarray, np.ndarray]:
    """(hidden states f16 [tokens, 384], offsets [passages + 1]) of the fit text. They are stored in `cache`."""
    if not (cache / "offsets.npy").exists():
        cache.mkdir(parents=True, exist_ok=True)
        texts = [f"{title} {body}" for title, body in fit_text.passages(wheels)]
        contents = [piece[: encoder.WINDOW_TOKENS] for piece in encoder.pieces(encoder.tokenizer(tokenizer_file), texts)]
        count = int(np.searchsorted(np.cumsum([len(content) for content in contents]), FIT_TOKENS_MAX))
        sequences = [encoder.framed(content) for content in contents[:count]]
        offsets = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
        states = np.empty((int(offsets[-1]), HIDDEN), np.float16)
        running = encoder.session(build(weights, None, LinearF32()))
        for number, (own,) in encoder.run(running, sequences, ["hidden"]):
            states[offsets[number] : offsets[number + 1]] = own
        np.save(cache / "states.npy", states)
        np.save(cache / "offsets.npy", offsets)
    return np.load(cache / "states.npy"), np.load(cache / "offsets.npy")


def centring(model_file: Path, tokenizer_file: Path, wheels: Path) -> np.ndarray:
    """The mean f64 [dim] of the unit vectors that a graph gives to fit text."""
    parts = list(_unit_vectors(model_file, tokenizer_file, wheels, CENTRING_PASSAGES))
    return np.concatenate(parts).mean(axis=0, dtype=np.float64)


def moment(model_file: Path, tokenizer_file: Path, wheels: Path) -> np.ndarray:
    """The mean f16 [dim, dim] of r r' over the rotated unit vectors r that a graph gives to fit text. The mean vector stays in
    them, and they are not pooled, because query vectors are like that. CLS and SEP count, as they do in documents."""
    total, count = 0.0, 0
    for vectors in _unit_vectors(model_file, tokenizer_file, wheels, MOMENT_PASSAGES):
        turned = rows.rotated(vectors).astype(np.float64)
        total, count = total + turned.T @ turned, count + len(turned)
    return (total / count).astype(np.float16)


def _unit_vectors(model_file: Path, tokenizer_file: Path, wheels: Path, count: int) -> Iterator[np.ndarray]:
    """Yields `output` f32 [tokens, dim] of each of the first `count` passages behind those that `calibrate` takes."""
    texts = [f"{title} {body}" for title, body in fit_text.passages(wheels)[calibrate.PASSAGES :][:count]]
    contents = encoder.pieces(encoder.tokenizer(tokenizer_file), texts)
    sequences = [encoder.framed(content[: encoder.WINDOW_TOKENS]) for content in contents]
    for _, (vectors,) in encoder.run(encoder.session(model_file, threads=1), sequences, ["output"]):
        yield vectors


def head(states: np.ndarray) -> Head:
    return Head(token_weights(), orthogonal_projection(), document_vectors(states).mean(axis=0))


def document_vectors(states: np.ndarray) -> np.ndarray:
    """Hidden states to unit vectors f32 [tokens, dim], by the f32 projection."""
    return unit(states.astype(np.float32) @ orthogonal_projection())


def orthogonal_projection() -> np.ndarray:
    """A random 384 -> 128 projection with orthonormal columns [384, 128]."""
    square = np.random.default_rng(SEED).standard_normal((HIDDEN, DIM))
    basis, triangle = np.linalg.qr(square)
    return (basis * np.sign(np.diag(triangle))).astype(np.float32)


def token_weights() -> np.ndarray:
    """[vocabulary] weights of query tokens: log(rank + 1000), about 1 for a middling word.

    WordPiece vocabularies list words by falling frequency in the text that they were made from. So
    the rank stands for the inverse frequency, and no other text is needed.
    """
    rank = np.maximum(np.arange(VOCABULARY) - FIRST_WORD_ID, 1)
    weights = np.log(rank + RANK_OFFSET) / np.log(5 * RANK_OFFSET)
    weights[FRAME_IDS] = 0
    return weights.astype(np.float32)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
