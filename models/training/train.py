"""Trains what the table of the model card shows, row by row, and measures every row. Run by `models/train.sh`.

    train.py DATASETS OUT [ROW...]

DATASETS holds `training/`, `scifact/` and `cranfield/`. OUT keeps intermediate results, for each row `ROW.json` (measurements,
seconds, checksum) and `ROW.safetensors` (what was learned). SciFact and Cranfield are measured for every row and read
by no choice: rows are chosen by `development`, the mean nDCG@10 over the five sets held back.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

import build
import encoder
import finetune
import measure
import source
import teacher
from heads import Plan, train
from network import Network, mixed
from prepare import MEASURED_ONLY, Prepared
from states import States
from student import Form, Student

LATE, FUSED = (0, 0, 1), teacher.SHARES
LINEAR, FIXED = Form(), Form(projection=False)

# Nothing is learned here: the head as it starts, and none at all.
STARTS = {"start": None, "384 dimensions": np.eye(source.HIDDEN, dtype=np.float32)}
ROWS: dict[str, Plan] = {
    "linear, distil MaxSim": Plan(LINEAR, "distil", LATE),
    "linear, contrast": Plan(LINEAR, "contrast", FUSED),
    "linear, distil fusion": Plan(LINEAR, "distil", FUSED),
    "linear, both, fusion": Plan(LINEAR, "both", FUSED),
    "residual, distil fusion": Plan(Form(residual=True), "distil", FUSED),
    "last and embedding layer, distil fusion": Plan(Form(embedding=True), "distil", FUSED),
    "weights by piece, distil fusion": Plan(Form(projection=False, pieces=True), "distil", FUSED),
    "weights by state, distil fusion": Plan(Form(projection=False, context=True), "distil", FUSED),
    "weights by state, linear, contrast, 600 steps": Plan(Form(context=True), "contrast", FUSED, steps=600),
}
# Stopped before its rate has fallen to nothing, to keep within hours; a share of the way from the start, chosen by development.
NETWORKS: dict[str, Plan] = {
    "layers 4 to 6, both, fusion": Plan(LINEAR, "both", FUSED, steps=260, stop=160, rate=3e-5, batch=8, ways=6),
}
SHARE_CHOICES = (0.5, 1.0)


def main() -> None:
    torch.set_num_threads(1)
    datasets, out, *wanted = sys.argv[1:]
    tokenizer = encoder.tokenizer(build.TARGET / "tokenizer.json")
    prepared = Prepared(Path(out), Path(datasets), build.CACHE / "wheels", tokenizer)
    for name in wanted or ["teacher", *STARTS, *ROWS, *NETWORKS]:
        start = time.perf_counter()
        if name == "teacher":
            measure_teacher(prepared)
            continue
        if name in NETWORKS:
            network, student, found = learned_network(prepared, name)
        else:
            network, student = None, learned(prepared, name)
            found = quality(prepared, student)
        found |= {"seconds": round(time.perf_counter() - start)} | saved(prepared, name, student, network)
        record(prepared, name, found | afterwards(prepared, student, network))


def learned(prepared: Prepared, name: str) -> Student:
    if name in STARTS:
        return Student(FIXED, STARTS[name])
    last = source.LAYERS
    states = prepared.passages[last], prepared.queries[last], prepared.passage_ids, prepared.query_ids
    return train(ROWS[name], prepared.lists(), *states, prepared.embedding)


def learned_network(prepared: Prepared, name: str) -> tuple[Network, Student, dict]:
    """Network and head mixed with the start by the share that is best in development, and its quality."""
    first, start = finetune.FIRST, Student(NETWORKS[name].form)
    states = prepared.passages[first], prepared.queries[first], prepared.query_ids
    network, student = finetune.train(prepared.network, start, NETWORKS[name], prepared.lists(), *states)
    choices = []
    for share in SHARE_CHOICES:
        mixture = Network(mixed(prepared.weights, network.weights(), share)), start.towards(student, share)
        choices.append((*mixture, quality(prepared, mixture[1], mixture[0]) | {"share": share}))
        record(prepared, f"{name}, share {share}", choices[-1][2])
    return max(choices, key=lambda choice: choice[2]["development"])


def quality(prepared: Prepared, student: Student, network: Network | None = None) -> dict:
    """nDCG@10 of every development set and their mean."""
    found = {}
    for name, bench in prepared.development(finetune.FIRST if network else source.LAYERS).items():
        found[name] = (bench.raised(network, finetune.FIRST) if network else bench).score(student, prepared.embedding)["ndcg@10"]
    return found | {"development": round(float(np.mean(list(found.values()))), 4)}


def afterwards(prepared: Prepared, student: Student, network: Network | None = None) -> dict:
    """SciFact and Cranfield, which choose nothing."""
    found = {}
    for name in MEASURED_ONLY:
        result = prepared.collection(name, network).score(student, prepared.embedding)
        found |= {name: result["ndcg@10"], f"{name} recall@100": result["recall@100"]}
    return found


def measure_teacher(prepared: Prepared) -> None:
    benches = prepared.development() | {name: prepared.collection(name) for name in MEASURED_ONLY}
    found: dict[str, dict] = {}
    for name, bench in benches.items():
        measured = bench.measured
        parts = teacher.systems(measured, States(bench.documents, measured.documents.offsets), States(bench.queries, measured.queries.offsets))
        values = dict(zip(teacher.SYSTEMS, parts)) | {"reciprocal ranks": teacher.reciprocal_ranks(parts)}
        values |= {f"sum {shares}": teacher.summed(parts, shares) for shares in teacher.SHARES_MEASURED}
        for system, scores in values.items():
            found.setdefault(system, {})[name] = measure.quality(measured, scores)["ndcg@10"]
    for system, result in found.items():
        result["development"] = round(float(np.mean([value for name, value in result.items() if name not in MEASURED_ONLY])), 4)
        record(prepared, f"teacher: {system}", result)


def saved(prepared: Prepared, name: str, student: Student, network: Network | None) -> dict:
    """Keeps what was learned; its checksum."""
    path = prepared.directory / f"{name}.safetensors"
    states = {"head": student.state_dict(), "network": network.state_dict() if network else {}}
    save_file({f"{part}.{key}": value.contiguous() for part, values in states.items() for key, value in values.items()}, path)
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def record(prepared: Prepared, name: str, result: dict) -> None:
    print(name, json.dumps(result), flush=True)
    (prepared.directory / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
