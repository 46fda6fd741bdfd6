"""Builds models/minilm-l6-maxsim/1: graph, tokenizer, config, manifest with checksums. See README.md."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import onnx

import calibrate
import encoder
import fit
import graph
import graph_f16
import source
import verify

HERE = Path(__file__).parent
NAME, VERSION = "minilm-l6-maxsim", "1"
TARGET = HERE / NAME / VERSION
INT8, F16 = "model.onnx", "model.f16.onnx"
CACHE = HERE / ".cache"
QUALITY = HERE / NAME / "quality.json"  # written by evaluate.py

# The golden values are those of the int8 graph; f16 differs from them by up to 0.024 on the CPU provider.
F16_GOLDEN_TOLERANCE = 0.05
F32_REFERENCE = "the same head on the f32 graph"

GOLDEN = (
    ("query", "Which tissues express the receptor?"),
    ("query", "naïve Bayes: 3.14 [MASK] 東京"),
    ("document", "Late interaction scores a document by the best match of every query token."),
    ("document", "x"),
)


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    write_tokenizer(TARGET / "tokenizer.json")
    weights = source.load()
    states, _ = fit.hidden_states(weights, TARGET / "tokenizer.json", CACHE / "wheels", CACHE / "fit")
    head = fit.head(states)
    steps = calibrate.steps(weights, TARGET / "tokenizer.json", CACHE / "wheels")
    model = graph.build(weights, head, graph.LinearInt8(steps))
    (TARGET / INT8).write_bytes(model.SerializeToString(deterministic=True))
    (TARGET / F16).write_bytes(graph_f16.build(TARGET / INT8).SerializeToString(deterministic=True))
    onnx.checker.check_model(str(TARGET / F16))
    write_json(TARGET / "onnx_config.json", config(head))
    write_json(TARGET / "manifest.json", manifest(graph.build(weights, head, graph.LinearF32())))
    print(f"{TARGET}: {sum(file.stat().st_size for file in TARGET.iterdir())} bytes")


def write_tokenizer(path: Path) -> None:
    """The tokenizer of the package without truncation and padding, which the service does itself."""
    tokenizer = json.loads((source.model_directory() / "tokenizer.json").read_text())
    tokenizer["truncation"] = tokenizer["padding"] = None
    path.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def config(head: fit.Head) -> dict:
    return {
        "model_type": "ColBERT",
        "model_name": NAME,
        "query_prefix": "",
        "query_prefix_id": None,
        "document_prefix": "",
        "document_prefix_id": None,
        "query_length": source.POSITIONS,
        "document_length": source.POSITIONS,
        "do_query_expansion": False,
        "attend_to_expansion_tokens": False,
        "embedding_dim": fit.DIM,
        "uses_token_type_ids": False,
        "mask_token_id": source.MASK_ID,
        "pad_token_id": source.PAD_ID,
        "skiplist_words": [],
        "do_lower_case": True,
        "maxsimd": {
            "position_limit": source.POSITIONS,
            "centring": [float(f"{value:.9g}") for value in head.centring],
            "int8_output": "document_int8",
            "scale_output": "document_scale",
            "token_weight_output": "token_weight",
        },
    }


def manifest(reference: onnx.ModelProto) -> dict:
    exact, int8, f16 = (encoder.session(model) for model in (reference, TARGET / INT8, TARGET / F16))

    def agreement(one, other, name: str) -> dict:
        return {"reference": name} | verify.agreement(one, other, TARGET / "tokenizer.json", CACHE / "wheels")

    names = (INT8, F16, "onnx_config.json", "tokenizer.json")
    return {
        "name": NAME,
        "version": VERSION,
        "licence": "Apache-2.0",
        "dim": fit.DIM,
        "files": {name: checksum(TARGET / name) for name in names},
        "variants": [
            {
                "file": INT8,
                "provider": "cpu",
                "precision": "int8",
                "agreement": agreement(int8, exact, F32_REFERENCE),
                "batch_independence": verify.independence(int8),
            },
            {
                "file": F16,
                "provider": "cuda",
                "precision": "f16",
                "measured_on": "the CPU provider, which rounds to f16 at fewer places than a GPU",
                "agreement": agreement(f16, exact, F32_REFERENCE),
                "agreement_with_int8": agreement(f16, int8, INT8),
                "batch_independence": verify.independence(f16),
                "golden_tolerance": F16_GOLDEN_TOLERANCE,
            },
        ],
        "quality": known_quality()["results"],
        "golden": golden(),
    }


def known_quality() -> dict:
    """{model_sha256, results}: the results that were measured on this graph."""
    digest = checksum(TARGET / INT8)["sha256"]
    known = json.loads(QUALITY.read_text()) if QUALITY.exists() else {}
    return known if known.get("model_sha256") == digest else {"model_sha256": digest, "results": {}}


def checksum(path: Path) -> dict:
    content = path.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def golden() -> list[dict]:
    """Golden values for the check at start: the first values of some rows of `output`, before any weight."""
    running = encoder.session(TARGET / INT8, threads=1)
    tokenizer = encoder.tokenizer(TARGET / "tokenizer.json")
    found = []
    for kind, text in GOLDEN:
        (content,) = encoder.pieces(tokenizer, [text])
        sequence = encoder.framed(content)
        output, weight = (rows[0] for rows in running.run(["output", "token_weight"], encoder.batch([sequence])))
        rows = [0, len(sequence) // 2, len(sequence) - 1]
        found.append(
            {
                "text": text,
                "kind": kind,
                "tokens": len(sequence),
                "input_ids": sequence,
                "rows": [{"row": row, "values": [round(float(value), 5) for value in output[row, :8]]} for row in rows],
                "token_weight": [round(float(value), 5) for value in weight],
                "tolerance": 0.02,
            }
        )
    return found


if __name__ == "__main__":
    main()
