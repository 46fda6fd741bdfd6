"""A row's model in the form that ships: the int8 graph of `graph.py`, with steps fitted as `build.py` fits them.

The centring mean is that of the passages which the steps are fitted on. Only heads that the graph knows have this
form: one projection, and the formula's weights of query tokens.
"""

from __future__ import annotations

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


def quality(prepared: Prepared, learned: Path) -> dict:
    """SciFact and Cranfield of the int8 graph, by the products in bf16 that measure f32."""
    file, found = learned.with_suffix(".onnx"), {}
    file.write_bytes(_graph(prepared, load_file(learned)).SerializeToString(deterministic=True))
    for name in MEASURED_ONLY:
        measured = prepared.collection(name).measured
        kept = prepared.directory / f"int8.{name}.npy"
        rows, query_rows, _ = evaluate.shipped(measured.documents, measured.queries, kept, file, encoder.BATCH_TOKENS_MAX)
        best = measure.best_matches(torch.from_numpy(query_rows), torch.from_numpy(rows), measured.documents.offsets)
        result = measure.quality(measured, measure.scores(measured, best, torch.ones(())))
        found |= {name: result["ndcg@10"], f"{name} recall@100": result["recall@100"]}
    return found | {"bytes": file.stat().st_size}


def _graph(prepared: Prepared, learned: dict[str, torch.Tensor]):
    network = Network(prepared.weights)
    trained = {key.removeprefix("network."): value for key, value in learned.items() if key.startswith("network.")}
    network.load_state_dict(trained or network.state_dict())
    weights, projection = network.weights(), learned["head.projection"].numpy()
    texts = [f"{title} {body}" for title, body in fit_text.passages(prepared.wheels)[: calibrate.PASSAGES]]
    sequences = [encoder.framed(content[: encoder.WINDOW_TOKENS]) for content in encoder.pieces(prepared.tokenizer, texts)]
    vectors = fit.unit(measure.states(network, sequences).astype(np.float32) @ projection)
    steps = calibrate.steps(weights, build.TARGET / "tokenizer.json", prepared.wheels)
    return graph.build(weights, graph.Head(projection, vectors.mean(axis=0), fit.token_weights()), graph.LinearInt8(steps))
