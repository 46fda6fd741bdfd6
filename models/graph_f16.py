"""The same model for GPUs: f16 between f32 ends, made from the int8 graph's own weights.

    input_ids, attention_mask  int64 [batch, tokens]
      -> EmbedLayerNormalization, and per layer Attention, SkipLayerNormalization, BiasGelu: the fused
         operators that ONNX Runtime's CUDA provider has in f16, with matrix products of f16 between them
      -> projection in f16, then the head of `graph.py` in f32, int8 output included

The int8 graph does not fit a GPU: CUDA has no kernels for its 8-bit products, so they would run on the CPU, with copies
before and after each. Both graphs have the same weights to the bit. The int8 tables and matrices lie in `model.onnx` only.
This file names their byte ranges there (ONNX external data). The runtime turns them into f16 once, when it folds constants at
load, without the steps of the int8 graph's activations. So this graph adds a fraction of a megabyte, and hosts of both
kinds can serve one index.

Attention takes the number of attended tokens of each text (its mask is a prefix), because the fused CUDA kernels need
that form. The softmax of a text without attended tokens is undefined. The service never sends one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import graph as int8_graph
from source import HEADS, HIDDEN, LAYER_NORM_EPSILON, Blocks

# In the int8 graph the values of attention are in 8-bit steps, and the next weights are small, by about this factor. A power
# of two brings both into the middle of the range of f16.
VALUE_STEP = 1 / 64


class Stored:
    """The constants of the int8 graph, and the places of their bytes in its file."""

    def __init__(self, file: Path) -> None:
        self._location = file.name
        self._content = file.read_bytes()
        graph = onnx.load_from_string(self._content).graph
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._gathers = [node for node in graph.node if node.op_type == "GatherBlockQuantized"]

    @property
    def layers(self) -> int:
        return sum(name.endswith("_attended_bias") for name in self._tensors)

    def blocks(self) -> Blocks | None:
        """The table of words, if it has 4 bits."""
        if not self._gathers:
            return None
        block = next(attribute.i for attribute in self._gathers[0].attribute if attribute.name == "block_size")
        return Blocks(self.value("words"), self.value("words_scale"), block)

    def value(self, name: str) -> np.ndarray:
        return numpy_helper.to_array(self._tensors[name])

    def external(self, name: str) -> onnx.TensorProto:
        """The same tensor, with the place of its bytes in the other file instead of the bytes."""
        tensor = self._tensors[name]
        offset = self._content.index(tensor.raw_data)
        place = {"location": self._location, "offset": str(offset), "length": str(len(tensor.raw_data))}
        result = onnx.TensorProto(name=name, data_type=tensor.data_type, dims=tensor.dims)
        result.data_location = TensorProto.EXTERNAL
        result.external_data.extend(onnx.StringStringEntryProto(key=key, value=value) for key, value in place.items())
        return result


def build(int8_file: Path, head: int8_graph.Head) -> onnx.ModelProto:
    """The f16 graph over the weights of the int8 graph, with the same head. Both files must be in one folder."""
    stored = Stored(int8_file)
    graph = int8_graph.Graph()

    def weight(name: str, factor: float = 1) -> str:
        """An int8 table or matrix times its scales, as f32."""
        graph.constants[name] = stored.external(name)
        scale = graph.constant(f"{name}_scale", stored.value(f"{name}_scale") * np.float32(factor))
        return graph.node("Mul", graph.node("Cast", name, to=TensorProto.FLOAT), scale)

    def behind_norm(point: str, wide: str) -> str:
        """Weights for the values of a LayerNorm instead of its 8-bit steps."""
        steps = graph.constant(f"{point}_rows", stored.value(f"{point}_steps")[:, None])
        return graph.node("Div", wide, steps)

    def narrow(wide: str) -> str:
        return graph.node("Cast", wide, to=TensorProto.FLOAT16)

    def half(name: str, value: np.ndarray) -> str:
        return graph.constant(name, value.astype(np.float16))

    def norm(point: str) -> list[str]:
        steps = 1 if point == "last" else stored.value(f"{point}_steps")
        return [half(name, stored.value(name) * steps) for name in (f"{point}_gain", f"{point}_shift")]

    def bias(name: str) -> str:
        return half(f"{name}_bias", stored.value(f"{name}_bias"))

    def normalised(point: str, change: str, x: str, change_bias: str) -> str:
        """LayerNorm(x + change + bias), one fused pass."""
        return graph.fused("SkipLayerNormalization", change, x, *norm(point), change_bias, epsilon=LAYER_NORM_EPSILON)

    def qkv(at: str) -> tuple[str, str]:
        """The three products of attention as one: weights and biases."""
        weights = [_without_barrier(graph, weight(f"{at}_{part}")) for part in ("query", "key")]
        weights = graph.node("Concat", *weights, weight(f"{at}_value", VALUE_STEP), axis=1)
        biases = [stored.value(f"{at}_{part}_bias") for part in ("query", "key")]
        biases = [bias.reshape(HEADS, -1)[:, : int8_graph.HEAD].reshape(-1) for bias in biases]
        biases.append(stored.value(f"{at}_value_bias") * VALUE_STEP)
        return narrow(behind_norm(f"{at}_qkv", weights)), half(f"{at}_qkv_bias", np.concatenate(biases))

    ids = graph.node("Cast", "input_ids", to=TensorProto.INT32)
    mask = graph.node("Cast", "attention_mask", to=TensorProto.INT32)
    x, attended_tokens = "embedded", "attended_tokens"
    if (table := stored.blocks()) is None:
        graph.nodes.append(
            onnx.helper.make_node(
                "EmbedLayerNormalization",
                [ids, "", narrow(weight("words")), narrow(weight("positions")), "", *norm("layer0_qkv"), mask],
                [x, attended_tokens],
                "embed",
                domain=int8_graph.FUSED,
                epsilon=LAYER_NORM_EPSILON,
            )
        )
    else:
        for name in ("words", "words_scale"):
            graph.constants[name] = stored.external(name)
        words = int8_graph.gathered_blocks(graph, "words", "words_scale", table)
        positions = int8_graph.first_rows(graph, narrow(weight("positions")))
        embedded = graph.node("Add", words, positions)
        x = graph.node("LayerNormalization", embedded, *norm("layer0_qkv"), axis=-1, epsilon=LAYER_NORM_EPSILON)
        attended_tokens = graph.node("ReduceSum", mask, graph.axes(1), keepdims=0)
    for number in range(stored.layers):
        at = f"layer{number}"
        attended = graph.fused("Attention", x, *qkv(at), attended_tokens, num_heads=HEADS)
        change = graph.node("MatMul", attended, narrow(weight(f"{at}_attended", 1 / VALUE_STEP)))
        x = normalised(f"{at}_up", change, x, bias(f"{at}_attended"))
        inner = graph.node("MatMul", x, narrow(behind_norm(f"{at}_up", weight(f"{at}_up"))))
        inner = graph.fused("BiasGelu", inner, bias(f"{at}_up"))
        change = graph.node("MatMul", inner, narrow(weight(f"{at}_down")))
        following = "last" if number == stored.layers - 1 else f"layer{number + 1}_qkv"
        x = normalised(following, change, x, bias(f"{at}_down"))

    def project() -> str:
        projected = x if head.projection is None else graph.node("MatMul", x, half("projection", head.projection))
        return graph.node("Cast", projected, to=TensorProto.FLOAT)

    return int8_graph.assembled(graph, int8_graph.finish(graph, head, project))


def _without_barrier(graph: int8_graph.Graph, columns: str) -> str:
    """[384, heads * (head + 1)] -> [384, heads * head]"""
    heads = graph.node("Reshape", columns, graph.axes(0, HEADS, -1))
    heads = graph.node("Slice", heads, graph.axes(0), graph.axes(int8_graph.HEAD), graph.axes(2))
    return graph.node("Reshape", heads, graph.axes(0, HIDDEN))
