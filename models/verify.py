"""Measures one graph against another, and a text alone against the same text in batches.

    agreement:    cosines of `output` rows of two graphs, on passages of the fit text that were not
                  used for fitting
    independence: the largest difference, in int8 steps, and the share of components that differ
"""

from __future__ import annotations

import numpy as np
import onnxruntime

import encoder
import rows

# Texts of many lengths, and the batches they are put into: (texts a batch, extra padded tokens).
LENGTHS = (1, 2, 3, 7, 16, 31, 32, 33, 64, 100, 128, 200, 256, 510)
BATCHES = ((1, 1), (1, 61), (2, 0), (3, 5), (5, 0), (14, 0), (14, 2))
POSITIONS = 512
PASSAGES = 200
SEED = 7


def agreement(one, other, fit_sequences: list[encoder.Pieces]) -> dict:
    sequences = fit_sequences[-PASSAGES:]
    own, others = (dict(encoder.run(running, sequences, ["output"])) for running in (one, other))
    cosines = np.concatenate([(own[number][0] * others[number][0]).sum(axis=1) for number in own])
    return {
        "tokens": len(cosines),
        "cosine_mean": round(float(cosines.mean()), 5),
        "cosine_p01": round(float(np.percentile(cosines, 1)), 5),
        "cosine_min": round(float(cosines.min()), 5),
    }


def independence(shipped: onnxruntime.InferenceSession, row_bits: int, tokens: encoder.Tokens) -> dict:
    """A text's stored rows alone against its rows in batches of other texts and with more padding."""
    random = np.random.default_rng(SEED)
    contents = [random.integers(1000, tokens.vocabulary.size, length).tolist() for length in LENGTHS]
    sequences = [tokens.framed("document", content) for content in contents]
    alone = [[values[0] for values in stored(shipped, encoder.batch([sequence]), row_bits)] for sequence in sequences]
    largest, differing, compared, scale_change = 0, 0, 0, 0.0
    for size, padding in BATCHES:
        order = random.permutation(len(sequences))
        for start in range(0, len(order), size):
            numbers = order[start : start + size]
            longest = max(len(sequences[number]) for number in numbers)
            tokens = min(longest + padding, POSITIONS)
            values, scales = stored(shipped, encoder.batch([sequences[number] for number in numbers], tokens), row_bits)
            for row, number in enumerate(numbers):
                count = len(sequences[number])
                steps = np.abs(values[row, :count].astype(np.int32) - alone[number][0])
                largest = max(largest, int(steps.max()))
                differing += int((steps > 0).sum())
                compared += steps.size
                change = np.abs(scales[row, :count] / alone[number][1] - 1).max()
                scale_change = max(scale_change, float(change))
    return {
        "components": compared,
        "int8_steps_max": largest,
        "differing_share": round(differing / compared, 6),
        "scale_change_max": float(f"{scale_change:.2g}"),
    }


def stored(shipped: onnxruntime.InferenceSession, inputs: dict[str, np.ndarray], row_bits: int) -> list[np.ndarray]:
    """Components [texts, tokens, dim] and scales [texts, tokens] of document rows."""
    if row_bits == 8:
        return shipped.run(["document_int8", "document_scale"], inputs)
    (output,) = shipped.run(["output"], inputs)
    components, scales = rows.quantised(rows.rotated(output.reshape(-1, output.shape[-1])), row_bits)
    return [components.reshape(output.shape), scales.astype(np.float32).reshape(output.shape[:-1])]
