"""Trains what the table of the model card shows, row by row, and measures every row. Run by `models/train.sh`.

    train.py DATASETS OUT [ROW...]

DATASETS holds `training/`, `scifact/` and `cranfield/`. OUT keeps intermediate results, for each row `ROW.json` (measurements,
seconds, checksum) and `ROW.safetensors` (what was learned); `int8: ROW` measures the form that ships of a row that is there. SciFact
and Cranfield are measured for every row and read by no choice: rows are chosen by `development`, the mean nDCG@10 over the five
sets held back.
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
import data
import encoder
import finetune
import measure
import shipped
import source
import teacher
from heads import Plan, train
from network import Network, mixed
from prepare import MEASURED_ONLY, Prepared
from states import States
from student import Form, Student

LATE, FUSED = (0, 0, 1), teacher.SHARES
LINEAR, FIXED = Form(), Form(projection=False)
WITHOUT_PEOPLE = ("title", "claim", *data.TRAINED_ONLY)

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
# Stopped before their rate has fallen to nothing, to keep within hours.
SHORT = {"steps": 260, "stop": 160, "rate": 3e-5, "batch": 8, "ways": 6}
CUT = SHORT | {"stop": 80, "tokens_max": 128}
NETWORKS: dict[str, finetune.Plan] = {
    "layers 4 to 6, both, fusion": finetune.Plan(LINEAR, "both", FUSED, **SHORT, shares=(0.5,)),
    "layers 4 to 6, distil fusion": finetune.Plan(LINEAR, "distil", FUSED, **CUT),
    "layers 4 to 6, contrast": finetune.Plan(LINEAR, "contrast", FUSED, **CUT),
    "layers 4 to 6, both, without people": finetune.Plan(LINEAR, "both", FUSED, **CUT, sources=WITHOUT_PEOPLE),
    "layers 4 to 6, both, own negatives": finetune.Plan(LINEAR, "both", FUSED, **CUT, own=True, rounds=2),
    "all layers, both, fusion, long": finetune.Plan(
        LINEAR,
        "both",
        FUSED,
        first=0,
        steps=320,
        rate=3e-5,
        batch=16,
        ways=3,
        tokens_max=128,
        in_batch=True,
        sources=(*data.SOURCES, *data.TRAINED_ONLY),
        rounds=2,
        shares=(0.5,),
    ),
}

# Rows are measured in the form that ships, too, once they are learned; all but 384 dimensions, of which none is made.
INT8 = "int8: "
SHIPPED = ("start", *ROWS, *NETWORKS)


def main() -> None:
    torch.set_num_threads(1)
    datasets, out, *wanted = sys.argv[1:]
    tokenizer = encoder.tokenizer(build.TARGET / "tokenizer.json")
    prepared = Prepared(Path(out), Path(datasets), build.CACHE / "wheels", tokenizer)
    for name in wanted or ["teacher", *STARTS, *ROWS, *NETWORKS, *(INT8 + name for name in SHIPPED)]:
        if name == "teacher":
            measure_teacher(prepared)
        elif name.startswith(INT8):
            record(prepared, name, shipped.quality(prepared, learned_file(prepared, name.removeprefix(INT8))))
        else:
            learn(prepared, name)


def learn(prepared: Prepared, name: str) -> None:
    start, start_cpu = time.perf_counter(), time.process_time()
    if name in NETWORKS:
        network, student, found = learned_network(prepared, name)
        first = NETWORKS[name].first
    else:
        network, student, first = None, learned(prepared, name), source.LAYERS
        found = quality(prepared, student)
    seconds = {"seconds": round(time.perf_counter() - start), "CPU seconds": round(time.process_time() - start_cpu)}
    found |= seconds | saved(prepared, name, student, network)
    record(prepared, name, found | afterwards(prepared, student, network, first))


def learned(prepared: Prepared, name: str) -> Student:
    if name in STARTS:
        return Student(FIXED, STARTS[name])
    states = prepared.passages(), prepared.queries(), prepared.passage_ids, prepared.query_ids
    return train(ROWS[name], prepared.lists(), *states, prepared.embedding)


def learned_network(prepared: Prepared, name: str) -> tuple[Network, Student, dict]:
    """Network and head of the round, mixed with the start by the share, that are best in development; and their quality."""
    plan, start = NETWORKS[name], Student(NETWORKS[name].form)

    def lists(network: Network, student: Student, number: int) -> list[teacher.Lists]:
        return prepared.own_lists(network, student, plan.first, number, plan.sources) if plan.own else prepared.lists(plan.sources)

    choices = []

    def consider(network: Network, student: Student, **how: float) -> None:
        found = quality(prepared, student, network, plan.first) | how
        record(prepared, ", ".join([name, *(f"{word} {value}" for word, value in how.items())]), found)
        choices.append((network, student, found))

    states = prepared.passages(plan.first), prepared.queries(plan.first), prepared.query_ids
    for number, (network, student) in enumerate(finetune.rounds(prepared.network, start, plan, lists, *states)):
        consider(network, student, round=number + 1, share=1.0)
    network, student, _ = max(choices, key=development)
    for share in plan.shares:
        consider(Network(mixed(prepared.weights, network.weights(), share)), start.towards(student, share), share=share)
    return max(choices, key=development)


def development(choice: tuple[Network, Student, dict]) -> float:
    return choice[2]["development"]


def quality(prepared: Prepared, student: Student, network: Network | None = None, first: int = source.LAYERS) -> dict:
    """nDCG@10 of every development set and their mean. A network has learned behind layer `first`."""
    found = {}
    for name, bench in prepared.development(first).items():
        found[name] = (bench.raised(network, first) if network else bench).score(student, prepared.embedding)["ndcg@10"]
    return found | {"development": round(float(np.mean(list(found.values()))), 4)}


def afterwards(prepared: Prepared, student: Student, network: Network | None, first: int) -> dict:
    """SciFact and Cranfield, which choose nothing."""
    found = {}
    for name in MEASURED_ONLY:
        bench = prepared.collection(name, first)
        result = (bench.raised(network, first) if network else bench).score(student, prepared.embedding)
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
    path = learned_file(prepared, name)
    states = {"head": student.state_dict(), "network": network.state_dict() if network else {}}
    save_file({f"{part}.{key}": value.contiguous() for part, values in states.items() for key, value in values.items()}, path)
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def learned_file(prepared: Prepared, name: str) -> Path:
    return prepared.directory / f"{name}.safetensors"


def record(prepared: Prepared, name: str, result: dict) -> None:
    print(name, json.dumps(result), flush=True)
    (prepared.directory / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
