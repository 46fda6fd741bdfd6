"""Trains the upper layers, or all, with the head, on cached states of the layer below them; lower layers and embeddings stay as they are.

Losses and lists are those of `heads.py`. Layers learn slowly, the head `HEAD_RATE_FACTOR` times as fast. Training goes
in rounds: behind each the caller may measure, and the next may have other lists, such as what the model itself finds by then. The
result is later mixed with the start (`network.mixed`), by a share that the development sets choose.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch

import data
import heads
from network import Network
from states import States
from student import Student, late_interaction, parted
from teacher import Lists

HEAD_RATE_FACTOR = 4
WARM_UP = 20


@dataclass(frozen=True)
class Plan(heads.Plan):
    first: int = 3  # layers behind this one learn
    stop: int | None = None  # the last step, if before the rate has fallen to nothing
    rounds: int = 1
    own: bool = False  # candidates are what the model itself finds, anew in every round
    sources: tuple[str, ...] = data.SOURCES
    tokens_max: int | None = None  # of a passage, CLS included
    in_batch: bool = False  # contrast with the candidates of the batch's other queries, too
    shares: tuple[float, ...] = ()  # of the way from the start that are measured, too


def rounds(
    start: Network,
    student: Student,
    plan: Plan,
    lists: Callable[[Network, Student, int], list[Lists]],
    passages: States,
    queries: States,
    query_ids: States,
) -> Iterator[tuple[Network, Student]]:
    """The model behind each round. `passages` and `queries` are states behind layer `plan.first`."""
    torch.manual_seed(heads.SEED)
    network, student = copy.deepcopy(start).requires_grad_(False), copy.deepcopy(student)
    network.blocks[plan.first :].requires_grad_(True)
    groups = [
        {"params": list(network.blocks[plan.first :].parameters()), "lr": plan.rate},
        *student.groups(plan.rate * HEAD_RATE_FACTOR),
    ]
    optimiser = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1, (step + 1) / WARM_UP) * (1 - step / plan.steps))
    batches = None
    for number in range(plan.rounds):
        if batches is None or plan.own:
            batches = heads.batches(lists(network, student, number), plan, heads.SEED + number)
        for asked, candidates, teacher in islice(batches, (plan.stop or plan.steps) // plan.rounds):
            query_states, query_real = queries.gathered(asked)
            states, real = passages.gathered(candidates.ravel(), plan.tokens_max)
            form = (1, candidates.size) if plan.in_batch else candidates.shape
            with torch.autocast("cpu", torch.bfloat16):
                query_states = network.through(query_states.float(), query_real, plan.first)
                vectors = student.vectors(network.through(states.float(), real, plan.first)).view(*form, real.shape[1], -1)
                weight = student.weights(heads.pieces(query_ids, asked), query_states)
                logits = late_interaction(student.vectors(query_states), weight, vectors, real.view(*form, -1))
            logits = logits * student.log_scale.exp()
            logits, others = parted(logits, candidates) if plan.in_batch else (logits, None)
            value = heads.loss(plan, logits, teacher, others) + plan.straying * student.strayed()
            optimiser.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        yield copy.deepcopy(network).eval(), copy.deepcopy(student).eval()
