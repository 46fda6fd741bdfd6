"""The model graph, written node by node with `onnx.helper`: word pieces in, token vectors out.

    input_ids, attention_mask  int64 [batch, tokens]
      -> BERT (fused attention, linear layers by `Linear`)
      -> 384 -> dim projection, if any, and L2 norm              -> output          f32  [batch, tokens, dim]
      -> weight of each token as a query token                   -> token_weight    f32  [batch, tokens]
    and of a model that quantises its rows in the graph
      -> minus the centring mean, symmetric int8 per token       -> document_int8   int8 [batch, tokens, dim]
                                                                    document_scale  f32  [batch, tokens]

The rows of a batch do not affect each other: activations are quantised with fixed steps or per row, never per tensor,
and masked positions get exactly zero attention. Rows at masked positions hold values without a meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from source import HALF_ZERO, HEADS, HIDDEN, LAYER_NORM_EPSILON, Blocks, Weights

FUSED = "com.microsoft"
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid(FUSED, 1)]
IR_VERSION = 9
HEAD = HIDDEN // HEADS
BARRIER = 30_000.0
# The least value of GELU, and the u8 that stands for zero after it.
GELU_LEAST, GELU_ZERO = -0.17, 24

Norm = tuple[np.ndarray, np.ndarray]  # gain, shift


@dataclass(frozen=True)
class Head:
    """The parameters that turn hidden states into token vectors.

    projection: [384, dim], None = the states themselves; centring: [dim], the mean of unit document token vectors, None
    = the graph does not quantise; token_weights: [vocabulary], the weight of a piece in a query, or what gives the value.
    """

    token_weights: np.ndarray | Callable[[Graph], str]
    projection: np.ndarray | None = None
    centring: np.ndarray | None = None

    @property
    def dim(self) -> int:
        return HIDDEN if self.projection is None else self.projection.shape[1]


class Graph:
    """Collects nodes and constants. Every method returns the name of a value."""

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


@dataclass(frozen=True)
class Steps:
    """The 8-bit form of a point of the network: u8 = round(x / step) + zero, with one step per channel."""

    step: np.ndarray  # f32 [channels]
    zero: int


@dataclass(frozen=True)
class Rows:
    """A value that products take: its `name`, and for int8 the meaning of its u8.

    The weights are multiplied by the `steps` of channels, the product by the `scales` [.., 1] of rows.
    """

    name: str
    zero: int = 0
    steps: np.ndarray | None = None
    scales: str | None = None


class LinearF32:
    """x @ w in f32: the reference that the int8 graph is compared with."""

    def words(self, graph: Graph, table: np.ndarray | Blocks) -> str:
        if isinstance(table, Blocks):
            return words_of_blocks(graph, table)
        return graph.node("Gather", graph.constant("words", table), "input_ids")

    def positions(self, graph: Graph, table: np.ndarray) -> str:
        return first_rows(graph, graph.constant("positions", table))

    def normalised(self, graph: Graph, point: str, x: str, norm: Norm) -> tuple[str, Rows]:
        """LayerNorm of x, for the residual and for products."""
        y = normalised(graph, point, x, norm)
        return y, self.rows(graph, point, y)

    def made_for(self, point: str, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A linear layer. `rows` of that point takes its results."""
        return weight, bias

    def rows(self, graph: Graph, point: str, x: str) -> Rows:
        return Rows(x)

    def activated(self, graph: Graph, x: str) -> Rows:
        """Results of GELU, for products."""
        return Rows(x)

    def product(self, graph: Graph, name: str, x: Rows, weight: np.ndarray, bias: np.ndarray) -> str:
        product = graph.node("MatMul", x.name, graph.constant(name, weight))
        return graph.node("Add", product, graph.constant(f"{name}_bias", bias))


class LinearInt8:
    """x @ w with int8 weights (a scale per output column) and 8-bit activations.

    Activations after a linear map (the gain of LayerNorm, the values of attention) have a fixed step per channel. The
    map divides by the step, and the next weights are multiplied by it, as SmoothQuant (arXiv:2211.10438) moves the
    outliers of few channels into weights. So quantising is one rounding. Activations after GELU have a scale per row.
    No row depends on another one, so the vectors of a text do not depend on its batch. Tables of embeddings are int8
    with a scale per row; a table of words whose source has 4 bits stays as it is.
    """

    def __init__(self, steps: dict[str, Steps]) -> None:
        self._steps = steps

    def words(self, graph: Graph, table: np.ndarray | Blocks) -> str:
        if isinstance(table, Blocks):
            return words_of_blocks(graph, table)
        values, scales = _int8_rows(table)
        rows = graph.node("Cast", graph.node("Gather", graph.constant("words", values), "input_ids"), to=TensorProto.FLOAT)
        return graph.node("Mul", rows, graph.node("Gather", graph.constant("words_scale", scales), "input_ids"))

    def positions(self, graph: Graph, table: np.ndarray) -> str:
        values, scales = _int8_rows(table)
        rows = graph.node("Cast", first_rows(graph, graph.constant("positions", values)), to=TensorProto.FLOAT)
        return graph.node("Mul", rows, first_rows(graph, graph.constant("positions_scale", scales)))

    def normalised(self, graph: Graph, point: str, x: str, norm: Norm) -> tuple[str, Rows]:
        step = self._steps[point].step
        y = normalised(graph, point, x, (norm[0] / step, norm[1] / step))
        return graph.node("Mul", y, graph.constant(f"{point}_steps", step)), self.rows(graph, point, y)

    def made_for(self, point: str, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = self._steps[point].step
        return weight / step, bias / step

    def rows(self, graph: Graph, point: str, x: str) -> Rows:
        """x is in steps already."""
        at = self._steps[point]
        return Rows(self._rounded(graph, x, at.zero), at.zero, at.step)

    def activated(self, graph: Graph, x: str) -> Rows:
        """GELU is never below -0.17, so almost all of the 256 values are above zero."""
        largest = graph.node("ReduceMax", x, graph.axes(-1), keepdims=1)
        scales = graph.node("Mul", largest, graph.number(1 / (255 - GELU_ZERO)))
        scales = graph.node("Max", scales, graph.number(-GELU_LEAST / GELU_ZERO))
        scaled = graph.node("Mul", x, graph.node("Reciprocal", scales))
        return Rows(self._rounded(graph, scaled, GELU_ZERO), GELU_ZERO, scales=scales)

    def product(self, graph: Graph, name: str, x: Rows, weight: np.ndarray, bias: np.ndarray) -> str:
        values, scales = _int8_rows((weight if x.steps is None else weight * x.steps[:, None]).T)
        parts = [
            x.name,
            graph.constant(name, values.T),
            graph.number(1),
            graph.constant(f"{name}_scale", scales[:, 0]),
            graph.number(x.zero, np.uint8),
        ]
        shift = graph.constant(f"{name}_bias", bias.astype(np.float32))
        if x.scales is None:
            return graph.fused("MatMulIntegerToFloat", *parts, "", shift)
        return graph.node("Add", graph.node("Mul", graph.fused("MatMulIntegerToFloat", *parts), x.scales), shift)

    def _rounded(self, graph: Graph, x: str, zero: int) -> str:
        return graph.node("QuantizeLinear", x, graph.number(1), graph.number(zero, np.uint8))


Linear = LinearF32 | LinearInt8


def build(weights: Weights, head: Head | None, linear: Linear) -> onnx.ModelProto:
    """The whole model. Without a head its output is `hidden` f32 [batch, tokens, 384], the last hidden states."""
    graph = Graph()
    hidden = _transformer(graph, weights, linear)
    outputs = []
    if head is None:
        graph.node("Identity", hidden, output="hidden")
        outputs.append(_value("hidden", TensorProto.FLOAT, HIDDEN))
    else:
        outputs += finish(graph, head, lambda: hidden if head.projection is None else _projected(graph, head, hidden))
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
    """Adds residuals by Sum. The runtime would fuse an Add and LayerNormalization into SkipLayerNormalization, which takes
    six times as long as the two on a CPU (onnxruntime 1.30)."""
    barrier = _barrier(graph)
    norm, x = weights.norm, graph.node("Add", linear.words(graph, weights.words), linear.positions(graph, weights.positions))
    for number, layer in enumerate(weights.layers):
        at = f"layer{number}"
        x, rows = linear.normalised(graph, f"{at}_qkv", x, norm)
        columns, biases = np.split(layer.qkv, 3, axis=1), np.split(layer.qkv_bias, 3)
        query = linear.product(graph, f"{at}_query", rows, _wider(columns[0]), _wider(biases[0], 1))
        key = linear.product(graph, f"{at}_key", rows, _wider(columns[1]), _wider(biases[1]))
        key = graph.node("Add", key, barrier)
        value = linear.made_for(f"{at}_attended", columns[2], biases[2])
        value = linear.product(graph, f"{at}_value", rows, *value)
        attended = graph.fused("MultiHeadAttention", query, key, value, num_heads=HEADS, scale=HEAD**-0.5)
        rows = linear.rows(graph, f"{at}_attended", attended)
        change = linear.product(graph, f"{at}_attended", rows, layer.attended, layer.attended_bias)
        x, rows = linear.normalised(graph, f"{at}_up", graph.node("Sum", change, x), layer.attended_norm)
        inner = graph.fused("Gelu", linear.product(graph, f"{at}_up", rows, layer.up, layer.up_bias))
        rows = linear.activated(graph, inner)
        change = linear.product(graph, f"{at}_down", rows, layer.down, layer.down_bias)
        norm, x = layer.down_norm, graph.node("Sum", change, x)
    return normalised(graph, "last", x, norm)


def words_of_blocks(graph: Graph, table: Blocks) -> str:
    """The rows of `input_ids`, f32."""
    halves, scales = graph.constant("words", table.halves), graph.constant("words_scale", table.scales)
    rows = gathered_blocks(graph, halves, scales, table)
    return graph.node("Cast", rows, to=TensorProto.FLOAT)


def gathered_blocks(graph: Graph, halves: str, scales: str, table: Blocks) -> str:
    """The rows of `input_ids`, f16. All zero points are equal and given in full, because the default differs between types of
    data. The runtime makes them at load, so the file does not hold them."""
    rows, blocks = table.scales.shape
    both = numpy_helper.from_array(np.array([HALF_ZERO | HALF_ZERO << 4], np.uint8))
    zeros = graph.node("ConstantOfShape", graph.axes(rows, blocks // 2), value=both)
    parts = [halves, "input_ids", scales, zeros]
    return graph.fused("GatherBlockQuantized", *parts, bits=4, block_size=table.block, gather_axis=0, quantize_axis=1)


def normalised(graph: Graph, point: str, x: str, norm: Norm) -> str:
    gain, shift = (graph.constant(f"{point}_{part}", value) for part, value in zip(("gain", "shift"), norm))
    return graph.node("LayerNormalization", x, gain, shift, axis=-1, epsilon=LAYER_NORM_EPSILON)


def _barrier(graph: Graph) -> str:
    """Keeps attention from masked positions: f32 [batch, tokens, heads * (head + 1)], to be added to keys.

    Every head has one more dimension. There queries are 1, keys are 0, and keys of masked positions are so low that their
    softmax is exactly zero. Without a mask the runtime's attention is faster, because it works in blocks that stay in the
    cache.
    """
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    lowered = graph.node("Mul", graph.node("Sub", mask, graph.number(1)), graph.number(BARRIER))
    place = _wider(np.zeros(HEADS * HEAD, np.float32), 1)
    return graph.node("Mul", graph.node("Unsqueeze", lowered, graph.axes(-1)), graph.constant("barrier", place))


def _wider(columns: np.ndarray, last: float = 0) -> np.ndarray:
    """[.., heads * head] -> [.., heads * (head + 1)], `last` in the added columns."""
    heads = columns.reshape(*columns.shape[:-1], HEADS, HEAD)
    return np.concatenate([heads, np.full_like(heads[..., :1], last)], axis=-1).reshape(*columns.shape[:-1], -1)


def _projected(graph: Graph, head: Head, hidden: str) -> str:
    return graph.node("MatMul", hidden, graph.constant("projection", head.projection.astype(np.float32)))


def finish(graph: Graph, head: Head, project: Callable[[], str]) -> list[onnx.ValueInfoProto]:
    """All nodes after the projection, in f32, and the outputs. `project` gives f32 [batch, tokens, dim]."""
    given = head.token_weights
    weights = given(graph) if callable(given) else graph.constant("token_weights", given.astype(np.float32))
    graph.node("Gather", weights, "input_ids", output="token_weight")
    projected = project()
    length = graph.node("Max", graph.node("ReduceL2", projected, graph.axes(-1), keepdims=1), graph.number(1e-9))
    unit = graph.node("Div", projected, length, output="output")
    quantised = [] if head.centring is None else _quantised(graph, unit, head.centring)
    return [_value("output", TensorProto.FLOAT, head.dim), *quantised, _value("token_weight", TensorProto.FLOAT)]


def _quantised(graph: Graph, unit: str, centring: np.ndarray) -> list[onnx.ValueInfoProto]:
    centred = graph.node("Sub", unit, graph.constant("centring", centring.astype(np.float32)))
    largest = graph.node("ReduceMax", graph.node("Abs", centred), graph.axes(-1), keepdims=1)
    scale = graph.node("Mul", graph.node("Max", largest, graph.number(1e-9)), graph.number(1 / 127))
    rounded = graph.node("Round", graph.node("Div", centred, scale))
    graph.node("Cast", rounded, to=TensorProto.INT8, output="document_int8")
    graph.node("Squeeze", scale, graph.axes(-1), output="document_scale")
    return [
        _value("document_int8", TensorProto.INT8, len(centring)),
        _value("document_scale", TensorProto.FLOAT),
    ]


def _value(name: str, kind: int, dim: int | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, ["batch", "tokens"] + ([dim] if dim else []))


def first_rows(graph: Graph, table: str) -> str:
    """The table's rows for positions 0 .. tokens - 1."""
    tokens = graph.node("Slice", graph.node("Shape", "input_ids"), graph.axes(1), graph.axes(2))
    return graph.node("Slice", table, graph.axes(0), tokens)


def _int8_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric int8 with one scale per row: values [rows, columns], scales [rows, 1]."""
    scales = np.abs(table).max(axis=1, keepdims=True) / 127
    scales[scales == 0] = 1
    values = np.clip(np.rint(table / scales), -127, 127).astype(np.int8)
    return values, scales.astype(np.float32)
