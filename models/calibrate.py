"""Fits the steps of 8-bit activations to the values that the f32 graph computes on the fit text, at each point."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

import encoder
import graph
from source import Weights

PASSAGES = 400
# The share of a channel's outliers that is moved into the weights: 0 none, 1 all. Measured; see the model card.
MOVED = 0.75


class Observed(graph.LinearF32):
    """Records the value that is quantised at each point, and the weights behind it."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.weights: dict[str, np.ndarray] = {}

    def rows(self, at: graph.Graph, point: str, x: str) -> graph.Rows:
        self.values[point] = x
        return super().rows(at, point, x)

    def product(self, at: graph.Graph, name: str, x: graph.Rows, weight: np.ndarray, bias: np.ndarray) -> str:
        for point, value in self.values.items():
            if value == x.name:
                self.weights[point] = np.maximum(self.weights.get(point, 0), np.abs(weight).max(axis=1))
        return super().product(at, name, x, weight, bias)


def steps(weights: Weights, fit_sequences: list[encoder.Pieces]) -> dict[str, graph.Steps]:
    """Takes the first of the fit text."""
    observed = Observed()
    model = graph.build(weights, None, observed)
    names = list(observed.values.values())
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    ranges = _ranges(model, names, fit_sequences[:PASSAGES])
    return {point: _steps(*ranges[value], observed.weights[point]) for point, value in observed.values.items()}


def _ranges(
    model: onnx.ModelProto, names: list[str], sequences: list[encoder.Pieces]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The least and the greatest number of each channel of each value."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for _, rows in encoder.run(encoder.session(model), sequences, names):
        for name, values in zip(names, rows):
            least, greatest = values.min(axis=0), values.max(axis=0)
            if name in found:
                least, greatest = np.minimum(found[name][0], least), np.maximum(found[name][1], greatest)
            found[name] = least, greatest
    return found


def _steps(least: np.ndarray, greatest: np.ndarray, weights: np.ndarray) -> graph.Steps:
    """Steps that give 256 values from the least to the greatest of all channels. Each channel is divided by its share of the outliers."""
    largest = np.maximum(np.abs(least), np.abs(greatest))
    largest = np.maximum(largest, np.median(largest))
    share = largest**MOVED / weights ** (1 - MOVED)
    low, high = min((least / share).min(), 0), (greatest / share).max()
    unit = (high - low) / 255
    return graph.Steps((share * unit).astype(np.float32), int(np.rint(-low / unit)))
