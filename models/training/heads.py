"""Learns heads and weights of query tokens on cached hidden states: the network stays as it is.

Losses over lists: `distil` takes the softmax of the teacher's scores over a list as the target, `contrast` the right
passage, `both` their sum. The teacher is MaxSim over all 384 dimensions, or the fusion of `teacher.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from network import Embedding
from states import States
from student import Form, Student, contrasted, distilled, late_interaction
from teacher import Lists

SEED = 1
STRAYING = 3e-4


@dataclass(frozen=True)
class Plan:
    form: Form
    loss: str  # distil, contrast or both
    teacher: tuple[float, float, float]  # shares of BM25, single vector, MaxSim
    steps: int = 200  # over which the rate falls to nothing
    rate: float = 2e-4
    straying: float = STRAYING
    batch: int = 16
    ways: int = 8


def batches(lists: list[Lists], plan: Plan, seed: int = SEED) -> Iterator[tuple[np.ndarray, np.ndarray, torch.Tensor]]:
    """Queries [batch], candidates [batch, ways], teacher [batch, ways] of one source a batch; sources in proportion.

    The ways are the right passage and others of its list, drawn anew for every batch. Without end.
    """
    random = np.random.default_rng(seed)
    sizes = np.array([len(one.queries) for one in lists], float)
    queues: list[list[int]] = [[] for _ in lists]
    teachers = [one.teacher(plan.teacher) for one in lists]
    while True:
        at = random.choice(len(lists), p=sizes / sizes.sum())
        if len(queues[at]) < plan.batch:
            queues[at] = random.permutation(len(lists[at].queries)).tolist()
        picked, queues[at] = queues[at][: plan.batch], queues[at][plan.batch :]
        ways = np.concatenate([[0], 1 + random.permutation(lists[at].candidates.shape[1] - 1)[: plan.ways - 1]])
        teacher = torch.from_numpy(teachers[at][np.ix_(picked, ways)]).float()
        yield lists[at].queries[picked], lists[at].candidates[np.ix_(picked, ways)], teacher


def loss(plan: Plan, logits: torch.Tensor, teacher: torch.Tensor, others: torch.Tensor | None = None) -> torch.Tensor:
    total = torch.zeros(())
    if plan.loss != "contrast":
        total = total + distilled(logits, teacher)
    if plan.loss != "distil":
        total = total + contrasted(logits, teacher, others)
    return total


def pieces(ids: States, texts: np.ndarray) -> torch.Tensor:
    """Word pieces [texts, tokens] of texts whose ids are kept as rows of one number."""
    return ids.gathered(texts)[0][..., 0].long()


def train(
    plan: Plan, lists: list[Lists], passages: States, queries: States, passage_ids: States, query_ids: States, embedding: Embedding
) -> Student:
    torch.manual_seed(SEED)
    student = Student(plan.form)
    optimiser = torch.optim.Adam(student.groups(plan.rate))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1, (step + 1) / 50) * (1 - step / plan.steps))
    for asked, candidates, teacher in islice(batches(lists, plan), plan.steps):
        query_states, _ = queries.gathered(asked)
        query_pieces = pieces(query_ids, asked)
        states, real = passages.gathered(candidates.ravel())
        embedded = query_embedded = None
        if plan.form.embedding:
            embedded = embedding(pieces(passage_ids, candidates.ravel()), torch.arange(real.shape[1]))
            query_embedded = embedding(query_pieces, torch.arange(query_pieces.shape[1]))
        with torch.autocast("cpu", torch.bfloat16):
            vectors = student.vectors(states.bfloat16(), embedded).view(*candidates.shape, real.shape[1], -1)
            query_states = query_states.bfloat16()
            weight = student.weights(query_pieces, query_states)
            logits = late_interaction(student.vectors(query_states, query_embedded), weight, vectors, real.view(*candidates.shape, -1))
        value = loss(plan, logits * student.log_scale.exp(), teacher) + plan.straying * student.strayed()
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()
    return student.eval()
