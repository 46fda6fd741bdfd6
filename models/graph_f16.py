"""The same model for GPUs: f16 between f32 ends, made from the int8 graph's own weights.

    input_ids, attention_mask  int64 [batch, tokens]
      -> EmbedLayerNormalization, and per layer Attention, SkipLayerNormalization, BiasGelu: the fused
         operators that ONNX Runtime's CUDA provider has in f16, with matrix products of f16 between them
      -> projection in f16, then the head of `graph.py` in f32, int8 output included

The int8 graph is wrong for a GPU: its 8-bit products have no CUDA kernels there and would run on the CPU, with
copies around each. Both graphs have the same weights to the bit: the int8 tables and matrices lie in `model.onnx`
only, this file names their byte ranges there (ONNX external data), and the runtime turns them into f16
once, when it folds constants at load. So the variant adds a fraction of a megabyte, and hosts of both kinds can
serve one index.

Attention takes the number of attended tokens of each text (its mask is a prefix), the form that the fused CUDA
kernels know. A text with none would have an undefined softmax; the service never sends one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import graph as int8_graph
from source import HEADS, LAYER_NORM_EPSILON, LAYERS


class Stored:
    """The constants of the int8 graph, and where their bytes lie in its file."""

    def __init__(self, file: Path) -> None:
        self._location = file.name
        self._content = file.read_bytes()
        self._tensors = {tensor.name: tensor for tensor in onnx.load_from_string(self._content).graph.initializer}

    def value(self, name: str) -> np.ndarray:
        return numpy_helper.to_array(self._tensors[name])

    def external(self, name: str) -> onnx.TensorProto:
        """The same tensor without its bytes: their place in the other file."""
        tensor = self._tensors[name]
        offset = self._content.index(tensor.raw_data)
        place = {"location": self._location, "offset": str(offset), "length": str(len(tensor.raw_data))}
        result = onnx.TensorProto(name=name, data_type=tensor.data_type, dims=tensor.dims)
        result.data_location = TensorProto.EXTERNAL
        result.external_data.extend(onnx.StringStringEntryProto(key=key, value=value) for key, value in place.items())
        return result


def build(int8_file: Path) -> onnx.ModelProto:
    """The f16 graph over the weights of the int8 graph; must be written beside it."""
    stored = Stored(int8_file)
    graph = int8_graph.Graph()

    def weight(name: str) -> str:
        """An int8 table or matrix times its scales, as f16; folded when the graph is loaded."""
        graph.constants[name] = stored.external(name)
        scale = graph.constant(f"{name}_scale", stored.value(f"{name}_scale"))
        wide = graph.node("Mul", graph.node("Cast", name, to=TensorProto.FLOAT), scale)
        return graph.node("Cast", wide, to=TensorProto.FLOAT16)

    def half(name: str) -> str:
        return graph.constant(name, stored.value(name).astype(np.float16))

    ids = graph.node("Cast", "input_ids", to=TensorProto.INT32)
    mask = graph.node("Cast", "attention_mask", to=TensorProto.INT32)
    x, attended_tokens = "embedded", "attended_tokens"
    graph.nodes.append(
        onnx.helper.make_node(
            "EmbedLayerNormalization",
            [ids, "", weight("words"), weight("positions"), "", half("norm_gain"), half("norm_bias"), mask],
            [x, attended_tokens],
            "embed",
            domain=int8_graph.FUSED,
            epsilon=LAYER_NORM_EPSILON,
        )
    )
    for number in range(LAYERS):
        at = f"layer{number}"

        def normalised(name: str, change: str, x: str) -> str:
            """LayerNorm(x + change + bias), one fused pass."""
            parts = (half(f"{at}_{name}_{part}") for part in ("gain", "shift", "bias"))
            return graph.fused("SkipLayerNormalization", change, x, *parts, epsilon=LAYER_NORM_EPSILON)

        qkv_bias = half(f"{at}_qkv_bias")
        attended = graph.fused("Attention", x, weight(f"{at}_qkv"), qkv_bias, attended_tokens, num_heads=HEADS)
        x = normalised("attended", graph.node("MatMul", attended, weight(f"{at}_attended")), x)
        inner = graph.fused("BiasGelu", graph.node("MatMul", x, weight(f"{at}_up")), half(f"{at}_up_bias"))
        x = normalised("down", graph.node("MatMul", inner, weight(f"{at}_down")), x)

    head = int8_graph.Head(*(stored.value(name) for name in ("projection", "centring", "token_weights")))

    def project() -> str:
        narrow = graph.constant("projection", head.projection.astype(np.float16))
        return graph.node("Cast", graph.node("MatMul", x, narrow), to=TensorProto.FLOAT)

    return int8_graph.assembled(graph, int8_graph.finish(graph, head, project))
