"""The same weights as common tooling exports them, for `npm run bench -- encoder --export DIRECTORY`.

    .venv/bin/python export.py DIRECTORY

writes DIRECTORY/onnx/model.onnx (f32), model_quantized.onnx and tokenizer.json, in the layout of Transformers.js. The
graph has the standard operators that exporters make of BERT, in their order, and the runtime fuses those that it
knows. `quantize_dynamic` makes the quantised graph with the settings of `q8` in Transformers.js: int8 weights with one
scale per tensor, and activations quantised per tensor, and so per batch. Both end with the projection and the L2 norm of
the shipped model, in f32, so that their work and result compare with those of the shipped graph.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import source
from graph import HEAD, IR_VERSION, Graph, Norm, normalised
from recipes import INT8, MINILM
from source import HEADS, HIDDEN, Layer, Weights

OUTPUT = "last_hidden_state"
PROJECT = "project"


def main() -> None:
    directory = Path(sys.argv[1])
    (directory / "onnx").mkdir(parents=True, exist_ok=True)
    plain, quantised = (directory / "onnx" / name for name in ("model.onnx", "model_quantized.onnx"))
    shipped = onnx.load(MINILM.target / INT8).graph.initializer
    (projection,) = (numpy_helper.to_array(tensor) for tensor in shipped if tensor.name == "projection")
    onnx.save(export(MINILM.source().load(), projection), plain)
    quantize_dynamic(
        plain,
        quantised,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=[PROJECT],
        extra_options={"EnableSubgraph": True, "MatMulConstBOnly": True},
    )
    shutil.copy(MINILM.target / "tokenizer.json", directory)


def export(weights: Weights, projection: np.ndarray) -> onnx.ModelProto:
    graph = Graph()
    tokens = graph.node("Slice", graph.node("Shape", "input_ids"), graph.axes(1), graph.axes(2))
    places = graph.node("Slice", graph.constant("places", np.arange(source.POSITIONS)[None]), graph.axes(0), tokens, graph.axes(1))
    words = graph.node("Gather", graph.constant("words", weights.words), "input_ids")
    x = graph.node("Add", words, graph.node("Gather", graph.constant("positions", weights.positions), places))
    x = normalised(graph, "embedded", x, weights.norm)
    mask = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=TensorProto.FLOAT), graph.axes(1, 2))
    lowest = graph.number(float(np.finfo(np.float32).min))
    mask = graph.node("Mul", graph.node("Sub", graph.number(1), mask), lowest)
    for number, layer in enumerate(weights.layers):
        x = _layer(graph, f"layer{number}", layer, x, mask)
    graph.nodes.append(helper.make_node("MatMul", [x, graph.constant("projection", projection)], [PROJECT], PROJECT))
    length = graph.node("Max", graph.node("ReduceL2", PROJECT, graph.axes(-1), keepdims=1), graph.number(1e-9))
    graph.node("Div", PROJECT, length, output=OUTPUT)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", "tokens", projection.shape[1]])
    made = helper.make_graph(graph.nodes, "export", inputs, [output], list(graph.constants.values()))
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def _layer(graph: Graph, at: str, layer: Layer, x: str, mask: str) -> str:
    def linear(name: str, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        product = graph.node("MatMul", x, graph.constant(f"{at}_{name}", weight))
        return graph.node("Add", graph.constant(f"{at}_{name}_bias", bias), product)

    def heads(x: str, *order: int) -> str:
        return graph.node("Transpose", graph.node("Reshape", x, graph.axes(0, 0, HEADS, HEAD)), perm=order)

    def added(name: str, change: str, x: str, norm: Norm) -> str:
        return normalised(graph, f"{at}_{name}", graph.node("Add", change, x), norm)

    columns, biases = np.split(layer.qkv, 3, axis=1), np.split(layer.qkv_bias, 3)
    query, key, value = (
        linear(name, x, *part) for name, part in zip(("query", "key", "value"), zip(columns, biases))
    )
    scores = graph.node("MatMul", heads(query, 0, 2, 1, 3), heads(key, 0, 2, 3, 1))
    scores = graph.node("Add", graph.node("Div", scores, graph.number(HEAD**0.5)), mask)
    attended = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), heads(value, 0, 2, 1, 3))
    attended = graph.node("Reshape", graph.node("Transpose", attended, perm=(0, 2, 1, 3)), graph.axes(0, 0, HIDDEN))
    x = added("attended_norm", linear("attended", attended, layer.attended, layer.attended_bias), x, layer.attended_norm)
    inner = linear("up", x, layer.up, layer.up_bias)
    curve = graph.node("Add", graph.node("Erf", graph.node("Div", inner, graph.number(2**0.5))), graph.number(1))
    inner = graph.node("Mul", graph.node("Mul", inner, curve), graph.number(0.5))
    return added("down_norm", linear("down", inner, layer.down, layer.down_bias), x, layer.down_norm)


if __name__ == "__main__":
    main()
