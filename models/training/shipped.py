"""A row's model in the form that ships: the int8 graph of `graph.py`, with steps fitted as `build.py` fits them.

A head that the graph knows (one projection, a number for each word piece) becomes a directory that the service can serve,
named like the row. What other heads make of the int8 graph's hidden states is computed here. The centring mean is that of
the passages which the steps are fitted on.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

import build
import calibrate
import encoder
import evaluate
import fit
import fit_text
import graph
import measure
from network import Network
from prepare import MEASURED_ONLY, Prepared
from student import Form, Student


def quality(prepared: Prepared, learned: Path) -> dict:
    """SciFact and Cranfield of the int8 graph, by the products in bf16 that measure f32."""
    network, student = _loaded(prepared, learned)
    steps = graph.LinearInt8(calibrate.steps(network.weights(), build.TARGET / "tokenizer.json", prepared.wheels))
    form = student.form
    if form.residual or form.embedding or form.context:
        return _behind_the_graph(prepared, graph.build(network.weights(), None, steps), student)
    directory = learned.with_suffix("")
    _write(directory, network, _head(prepared, network, student), steps)
    return _of_the_graph(prepared, directory / build.INT8)


def _loaded(prepared: Prepared, learned: Path) -> tuple[Network, Student]:
    values = load_file(learned)
    head, trained = _part(values, "head"), _part(values, "network")
    student = Student(Form(residual="down" in head, embedding="embedding" in head, pieces="pieces" in head, context="context" in head))
    student.load_state_dict(head)
    network = Network(prepared.weights)
    network.load_state_dict(trained or network.state_dict())
    return network, student


def _part(values: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    return {key.removeprefix(f"{name}."): value for key, value in values.items() if key.startswith(f"{name}.")}


def _head(prepared: Prepared, network: Network, student: Student) -> graph.Head:
    projection = student.projection.detach().numpy()
    texts = [f"{title} {body}" for title, body in fit_text.passages(prepared.wheels)[: calibrate.PASSAGES]]
    sequences = [encoder.framed(content[: encoder.WINDOW_TOKENS]) for content in encoder.pieces(prepared.tokenizer, texts)]
    vectors = fit.unit(measure.states(network, sequences).astype(np.float32) @ projection)
    with torch.inference_mode():
        weights = student.weights(torch.arange(len(student.formula)), torch.zeros(())).numpy()
    return graph.Head(projection, vectors.mean(axis=0), weights)


def _write(directory: Path, network: Network, head: graph.Head, steps: graph.LinearInt8) -> None:
    directory.mkdir(exist_ok=True)
    model = graph.build(network.weights(), head, steps)
    (directory / build.INT8).write_bytes(model.SerializeToString(deterministic=True))
    build.write_json(directory / "onnx_config.json", build.config(head))
    shutil.copy(build.TARGET / "tokenizer.json", directory)


def _of_the_graph(prepared: Prepared, file: Path) -> dict:
    found: dict = {}
    for name in MEASURED_ONLY:
        measured = prepared.collection(name).measured
        kept = prepared.directory / f"int8.{name}.npy"
        rows, query_rows, _ = evaluate.shipped(measured.documents, measured.queries, kept, file, encoder.BATCH_TOKENS_MAX)
        best = measure.best_matches(torch.from_numpy(query_rows), torch.from_numpy(rows), measured.documents.offsets)
        found |= _named(name, measure.quality(measured, measure.scores(measured, best, torch.ones(()))))
    return found | {"bytes": file.stat().st_size}


def _behind_the_graph(prepared: Prepared, hidden, student: Student) -> dict:
    """The network is that of version 1; its states are kept for the next row. Vectors are rounded to bf16, not to int8."""
    running, found = encoder.session(hidden), {}
    for name in MEASURED_ONLY:
        measured = prepared.collection(name).measured
        parts = {"documents": measured.documents, "queries": measured.queries}
        rows = [
            evaluate.reference_states(running, chunks, prepared.directory / f"int8.{name}.{part}.npy")
            for part, chunks in parts.items()
        ]
        found |= _named(name, measure.Bench(measured, *rows).score(student, prepared.embedding))
    return found


def _named(collection: str, result: dict) -> dict:
    return {collection: result["ndcg@10"], f"{collection} recall@100": result["recall@100"]}
