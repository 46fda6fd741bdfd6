"""Runs a model graph over texts as the service does: windows, batches sorted by length, slices.

Only the tools of the recipe use this. The service has its own encoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from tokenizers import Tokenizer

from source import POSITIONS, Vocabulary

WINDOW_TOKENS, OVERLAP_TOKENS, WINDOW_TOKENS_MIN = 256, 32, 16
BATCH_TOKENS_MAX = 512

Pieces = list[int]


class Tokens:
    """Makes the token sequences of a model. `prefixes`: the text before each text, by kind (query, document)."""

    def __init__(self, file: Path, vocabulary: Vocabulary, prefixes: dict[str, str]) -> None:
        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # "[MASK]" in a text is ordinary text
        self.vocabulary = vocabulary
        prefix_pieces = self.pieces([prefix.rstrip() for prefix in prefixes.values()])
        self._heads = {kind: [vocabulary.start, *own] for kind, own in zip(prefixes, prefix_pieces)}

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Ids of the pieces of each text, without special tokens."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def framed(self, kind: str, content: Pieces) -> Pieces:
        """The start (CLS), the prefix, the content cut to the position limit, and the end (SEP)."""
        head = self._heads[kind]
        return [*head, *content[: POSITIONS - len(head) - 1], self.vocabulary.end]


def windows(content: Pieces) -> list[Pieces]:
    """Chunks of 256 content tokens, 32 shared with the one before; a remainder under 16 new tokens
    is joined to the last window."""
    found, start = [], 0
    while len(content) - start - WINDOW_TOKENS >= WINDOW_TOKENS_MIN:
        found.append(content[start : start + WINDOW_TOKENS])
        start += WINDOW_TOKENS - OVERLAP_TOKENS
    return [*found, content[start:]]


def session(model: onnx.ModelProto | Path, threads: int = 2) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def batch(sequences: Sequence[Pieces], tokens: int | None = None) -> dict[str, np.ndarray]:
    """Padded int64 [batch, tokens] inputs."""
    tokens = tokens or max(map(len, sequences))
    ids = np.zeros((len(sequences), tokens), np.int64)  # behind a sequence any id does, because the mask hides it
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def run(
    running: onnxruntime.InferenceSession,
    sequences: Sequence[Pieces],
    outputs: Sequence[str],
    batch_tokens_max: int = BATCH_TOKENS_MAX,
) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yields (number of the sequence, its rows of each output), longest sequences first."""
    order = sorted(range(len(sequences)), key=lambda number: (-len(sequences[number]), number))
    start = 0
    while start < len(order):
        longest = len(sequences[order[start]])
        numbers = order[start : start + max(1, batch_tokens_max // longest)]
        start += len(numbers)
        results = running.run(list(outputs), batch([sequences[number] for number in numbers]))
        for row, number in enumerate(numbers):
            yield number, [result[row, : len(sequences[number])] for result in results]
