"""Trains the upper layers with the head, on cached states of the layer below them; the lower layers stay as they are.

Losses and lists are those of `heads.py`. Layers learn slowly, the head `HEAD_RATE_FACTOR` times as fast. The
result is later mixed with the start (`network.mixed`), by a share that the development sets choose.
"""

from __future__ import annotations

import copy

import torch

import heads
from network import Network
from states import States
from student import Student, late_interaction
from teacher import Lists

FIRST = 3
HEAD_RATE_FACTOR = 4
WARM_UP = 20


def train(
    start: Network,
    student: Student,
    plan: heads.Plan,
    lists: list[Lists],
    passages: States,
    queries: States,
    query_ids: States,
) -> tuple[Network, Student]:
    """`passages` and `queries` are states behind layer `FIRST`."""
    torch.manual_seed(heads.SEED)
    network, student = copy.deepcopy(start).requires_grad_(False), copy.deepcopy(student)
    network.blocks[FIRST:].requires_grad_(True)
    groups = [
        {"params": list(network.blocks[FIRST:].parameters()), "lr": plan.rate},
        *student.groups(plan.rate * HEAD_RATE_FACTOR),
    ]
    optimiser = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1, (step + 1) / WARM_UP) * (1 - step / plan.steps))
    for asked, candidates, teacher in heads.batches(lists, plan):
        query_states, query_real = queries.gathered(asked)
        states, real = passages.gathered(candidates.ravel())
        with torch.autocast("cpu", torch.bfloat16):
            query_states = network.through(query_states.float(), query_real, FIRST)
            vectors = student.vectors(network.through(states.float(), real, FIRST)).view(*candidates.shape, real.shape[1], -1)
            weight = student.weights(heads.pieces(query_ids, asked), query_states)
            logits = late_interaction(student.vectors(query_states), weight, vectors, real.view(*candidates.shape, -1))
        value = heads.loss(plan, logits * student.log_scale.exp(), teacher) + plan.straying * student.strayed()
        optimiser.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return network.eval(), student.eval()
