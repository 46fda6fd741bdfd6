"""Hard negatives: the passages that the model as it is now finds first for a query (Xiong et al., arXiv:2007.00808).

Each round of training asks for lists of other queries, so that only as many are searched as a round can use.
"""

from __future__ import annotations

import numpy as np
import torch

import measure
import teacher
from network import Network
from states import States
from student import Student

QUERIES_A_ROUND = 150  # of each source


def among(number: int) -> slice:
    return slice(number * QUERIES_A_ROUND, (number + 1) * QUERIES_A_ROUND)


def finder(network: Network, student: Student, first: int, passages: States, queries: States, query_ids: States) -> teacher.Find:
    """`passages` and `queries` are states behind layer `first`."""
    raised = States(measure.raised(network, passages.values, passages.offsets, first), passages.offsets)

    @torch.inference_mode()
    def find(asked: list[int], corpus: list[int]) -> np.ndarray:
        documents, part = raised.part(corpus), queries.part(asked)
        rows = torch.from_numpy(measure.raised(network, part.values, part.offsets, first)).float()
        weight = student.weights(torch.from_numpy(query_ids.part(asked).values[:, 0]), rows)
        vectors = student.vectors(torch.from_numpy(documents.values).float()).bfloat16()
        best = measure.best_matches(student.vectors(rows), vectors, documents.offsets)
        return np.add.reduceat((best * weight).numpy(), part.offsets[:-1], axis=1).T

    return find
