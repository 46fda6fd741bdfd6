"""The model graph, written node by node with `onnx.helper`: word pieces in, token vectors out.

    input_ids, attention_mask  int64 [batch, tokens]
      -> BERT (fused attention and normalisation, linear layers by `Linear`)
      -> 384 -> dim projection, L2 norm                          -> output          f32  [batch, tokens, dim]
      -> minus the centring mean, symmetric int8 per token       -> document_int8   int8 [batch, tokens, dim]
                                                                    document_scale  f32  [batch, tokens]
      -> weight of each token as a query token                   -> token_weight    f32  [batch, tokens]

Nothing crosses the rows of a batch: activations are quantised per row, never per tensor, and masked
positions get exactly zero attention. Rows at masked positions hold values without a meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from source import HEADS, LAYER_NORM_EPSILON, Weights

FUSED = "com.microsoft"
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid(FUSED, 1)]
IR_VERSION = 9


@dataclass(frozen=True)
class Head:
    """What turns hidden states into token vectors.

    projection: [384, dim]; centring: [dim], the mean of unit document token vectors;
    token_weights: [vocabulary], the weight of a word piece in a query.
    """

    projection: np.ndarray
    centring: np.ndarray
    token_weights: np.ndarray


class Graph:
    """Collects nodes and constants; every method returns the name of a value."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: np.ndarray) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def number(self, value: float, kind: type = np.float32) -> str:
        return self.constant(f"{np.dtype(kind).name}_{value}", np.array(value, kind))

    def axes(self, *values: int) -> str:
        return self.constant("axes_" + "_".join(map(str, values)), np.array(values, np.int64))

    def node(self, kind: str, *inputs: str, domain: str = "", output: str = "", **attributes: object) -> str:
        name = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, domain=domain, **attributes))
        return name

    def fused(self, kind: str, *inputs: str, **attributes: object) -> str:
        return self.node(kind, *inputs, domain=FUSED, **attributes)


class LinearF32:
    """x @ w in f32: the reference the int8 graph is measured against."""

    def words(self, graph: Graph, table: np.ndarray) -> str:
        return graph.node("Gather", graph.constant("words", table), "input_ids")

    def positions(self, graph: Graph, table: np.ndarray) -> str:
        return _first_rows(graph, graph.constant("positions", table))

    def product(self, graph: Graph, name: str, x: str, weight: np.ndarray) -> str:
        return graph.node("MatMul", x, graph.constant(name, weight))


class LinearInt8:
    """x @ w with int8 weights (a scale per output column) and 8-bit activations (a scale per row).

    A row's scale comes from that row alone, so a text's vectors do not depend on its neighbours.
    Tables of embeddings are int8 with a scale per row.
    """

    def __init__(self) -> None:
        self._rows: dict[str, tuple[str, str]] = {}

    def words(self, graph: Graph, table: np.ndarray) -> str:
        values, scales = _int8_rows(table)
        rows = graph.node("Cast", graph.node("Gather", graph.constant("words", values), "input_ids"), to=TensorProto.FLOAT)
        return graph.node("Mul", rows, graph.node("Gather", graph.constant("words_scale", scales), "input_ids"))

    def positions(self, graph: Graph, table: np.ndarray) -> str:
        values, scales = _int8_rows(table)
        rows = graph.node("Cast", _first_rows(graph, graph.constant("positions", values)), to=TensorProto.FLOAT)
        return graph.node("Mul", rows, _first_rows(graph, graph.constant("positions_scale", scales)))

    def product(self, graph: Graph, name: str, x: str, weight: np.ndarray) -> str:
        values, scales = _int8_rows(weight.T)
        rows, row_scales = self._quantised(graph, x)
        product = graph.fused(
            "MatMulIntegerToFloat",
            rows,
            graph.constant(name, values.T),
            graph.number(1),
            graph.constant(f"{name}_scale", scales[:, 0]),
            graph.number(128, np.uint8),
        )
        return graph.node("Mul", product, row_scales)

    def _quantised(self, graph: Graph, x: str) -> tuple[str, str]:
        if x not in self._rows:
            largest = graph.node("ReduceMax", graph.node("Abs", x), graph.axes(-1), keepdims=1)
            largest = graph.node("Max", largest, graph.number(1e-10))
            scaled = graph.node("Mul", x, graph.node("Div", graph.number(127), largest))
            rows = graph.node("QuantizeLinear", scaled, graph.number(1), graph.number(128, np.uint8))
            self._rows[x] = rows, graph.node("Mul", largest, graph.number(1 / 127))
        return self._rows[x]


Linear = LinearF32 | LinearInt8


def build(weights: Weights, head: Head | None, linear: Linear) -> onnx.ModelProto:
    """The whole model; without a head, the last hidden states as `hidden` f32 [batch, tokens, 384]."""
    graph = Graph()
    hidden = _transformer(graph, weights, linear)
    outputs = []
    if head is None:
        graph.node("Identity", hidden, output="hidden")
        outputs.append(_value("hidden", TensorProto.FLOAT, weights.words.shape[1]))
    else:
        outputs += finish(graph, head, lambda: graph.node("MatMul", hidden, projection(graph, head)))
    model = assembled(graph, outputs)
    onnx.checker.check_model(model)
    return model


def assembled(graph: Graph, outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "late_interaction",
            [_value("input_ids", TensorProto.INT64), _value("attention_mask", TensorProto.INT64)],
            outputs,
            list(graph.constants.values()),
        ),
        opset_imports=OPSETS,
        ir_version=IR_VERSION,
        producer_name="maxsimd models/build.py",
    )


def _transformer(graph: Graph, weights: Weights, linear: Linear) -> str:
    mask = graph.node("Cast", "attention_mask", to=TensorProto.INT32)
    x = graph.node("Add", linear.words(graph, weights.words), linear.positions(graph, weights.positions))
    gain, bias = (graph.constant(f"norm_{part}", value) for part, value in zip(("gain", "bias"), weights.norm))
    x = graph.node("LayerNormalization", x, gain, bias, axis=-1, epsilon=LAYER_NORM_EPSILON)
    for number, layer in enumerate(weights.layers):
        at = f"layer{number}"

        def constant(name: str, value: np.ndarray) -> str:
            return graph.constant(f"{at}_{name}", value)

        def normalised(name: str, change: str, bias: np.ndarray, norm: tuple[np.ndarray, np.ndarray], x: str) -> str:
            """LayerNorm(x + change + bias), one fused pass."""
            parts = constant(f"{name}_gain", norm[0]), constant(f"{name}_shift", norm[1]), constant(f"{name}_bias", bias)
            return graph.fused("SkipLayerNormalization", change, x, *parts, epsilon=LAYER_NORM_EPSILON)

        qkv = linear.product(graph, f"{at}_qkv", x, layer.qkv)
        parts = [f"{at}_query", f"{at}_key", f"{at}_value"]
        graph.nodes.append(helper.make_node("Split", [qkv], parts, f"{at}_split", axis=-1, num_outputs=3))
        attended = graph.fused(
            "MultiHeadAttention", *parts, constant("qkv_bias", layer.qkv_bias), mask, num_heads=HEADS
        )
        attended = linear.product(graph, f"{at}_attended", attended, layer.attended)
        x = normalised("attended", attended, layer.attended_bias, layer.attended_norm, x)
        inner = linear.product(graph, f"{at}_up", x, layer.up)
        inner = graph.fused("BiasGelu", inner, constant("up_bias", layer.up_bias))
        down = linear.product(graph, f"{at}_down", inner, layer.down)
        x = normalised("down", down, layer.down_bias, layer.down_norm, x)
    return x


def projection(graph: Graph, head: Head) -> str:
    return graph.constant("projection", head.projection.astype(np.float32))


def finish(graph: Graph, head: Head, project: Callable[[], str]) -> list[onnx.ValueInfoProto]:
    """Everything behind the projection, in f32, and the outputs; `project` gives f32 [batch, tokens, dim]."""
    weights = graph.constant("token_weights", head.token_weights.astype(np.float32))
    graph.node("Gather", weights, "input_ids", output="token_weight")

    projected = project()
    length = graph.node("Max", graph.node("ReduceL2", projected, graph.axes(-1), keepdims=1), graph.number(1e-9))
    unit = graph.node("Div", projected, length, output="output")

    centred = graph.node("Sub", unit, graph.constant("centring", head.centring.astype(np.float32)))
    largest = graph.node("ReduceMax", graph.node("Abs", centred), graph.axes(-1), keepdims=1)
    scale = graph.node("Mul", graph.node("Max", largest, graph.number(1e-9)), graph.number(1 / 127))
    rounded = graph.node("Round", graph.node("Div", centred, scale))
    graph.node("Cast", rounded, to=TensorProto.INT8, output="document_int8")
    graph.node("Squeeze", scale, graph.axes(-1), output="document_scale")
    dim = len(head.centring)
    return [
        _value("output", TensorProto.FLOAT, dim),
        _value("document_int8", TensorProto.INT8, dim),
        _value("document_scale", TensorProto.FLOAT),
        _value("token_weight", TensorProto.FLOAT),
    ]


def _value(name: str, kind: int, dim: int | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, ["batch", "tokens"] + ([dim] if dim else []))


def _first_rows(graph: Graph, table: str) -> str:
    """The table's rows for positions 0 .. tokens - 1."""
    tokens = graph.node("Slice", graph.node("Shape", "input_ids"), graph.axes(1), graph.axes(2))
    return graph.node("Slice", table, graph.axes(0), tokens)


def _int8_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric int8 with one scale per row: values [rows, columns], scales [rows, 1]."""
    scales = np.abs(table).max(axis=1, keepdims=True) / 127
    scales[scales == 0] = 1
    values = np.clip(np.rint(table / scales), -127, 127).astype(np.int8)
    return values, scales.astype(np.float32)
