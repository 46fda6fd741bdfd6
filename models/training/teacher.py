"""The teacher: BM25, the single vector and MaxSim over all 384 dimensions, and their sum.

    of whole collections  for measuring the teacher itself before anything learns from it
    of lists              for training: the passage a query asks for, then those that BM25 and the single vector (or
                          any other system) find first, with the scores of all three

Scores of the three are brought to one size within a query (mean 0, deviation 1 over its best candidates) and added
with `SHARES`; reciprocal ranks (Cormack et al., 2009) are the other form that was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

import data
import encoder
import evaluate
import fit
from measure import Measured, best_matches, scores
from states import States

SYSTEMS = ("bm25", "single", "maxsim")
SHARES = (0.25, 0.25, 0.5)
SHARES_MEASURED = (SHARES, (0.2, 0, 0.8), (0.35, 0.15, 0.5), (0.3, 0, 0.7), (0, 0.3, 0.7), (0.4, 0, 0.6), (0.15, 0.15, 0.7))
BEST, RANK_OFFSET = 100, 60
QUERIES_MAX, WAYS, SEED = 4000, 24, 20261124
# Numbers of queries and of passages -> scores [queries, passages].
Find = Callable[[list[int], list[int]], np.ndarray]
BM25 = evaluate.BM25["BM25, stemmed, stop words out (k1 1.5, b 0.75)"]


def unit(rows: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(rows, dim=-1)


def systems(measured: Measured, documents: States, queries: States) -> list[np.ndarray]:
    """Scores [queries, documents] of `SYSTEMS`."""
    single = queries.pooled(range(len(measured.queries.sequences))) @ documents.pooled(range(len(measured.documents.sequences))).T
    rows = unit(torch.from_numpy(queries.values).float()), unit(torch.from_numpy(documents.values).bfloat16())
    weight = torch.from_numpy(fit.token_weights()[np.concatenate(measured.queries.sequences)])
    late = scores(measured, best_matches(*rows, measured.documents.offsets), weight)
    return [evaluate.bm25(measured.collection, **BM25), evaluate.best_chunk(single.T, measured.documents.owners), late]


def standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=-1, keepdims=True)) / (values.std(axis=-1, keepdims=True) + 1e-6)


def summed(parts: list[np.ndarray], shares: tuple[float, ...] = SHARES) -> np.ndarray:
    """Standardised over the best of each system; what is worse than those counts as the last of them."""
    total = np.zeros_like(parts[0], dtype=np.float32)
    for part, share in zip(parts, shares):
        best = -np.sort(-part, axis=1)[:, :BEST]
        floored = np.maximum(part, best[:, -1:])
        total += share * (floored - best.mean(axis=1, keepdims=True)) / (best.std(axis=1, keepdims=True) + 1e-6)
    return total


def reciprocal_ranks(parts: list[np.ndarray]) -> np.ndarray:
    return sum(1 / (RANK_OFFSET + 1 + np.argsort(np.argsort(-part, axis=1), axis=1)) for part in parts)


@dataclass(frozen=True)
class Lists:
    """Numbers of training queries, candidates [queries, ways] (the first is right), scores [queries, ways, 3]."""

    queries: np.ndarray
    candidates: np.ndarray
    scores: np.ndarray

    def teacher(self, shares: tuple[float, ...] = SHARES) -> np.ndarray:
        return standardised(sum(share * standardised(self.scores[:, :, at]) for at, share in enumerate(shares)))


def candidates(first: np.ndarray, others: list[np.ndarray], ways: int, random: np.random.Generator) -> np.ndarray:
    """The right passage, the best of the others in turn, then a quarter by chance; none twice: columns [queries, ways]."""
    mined, passages = ways - ways // 4, others[0].shape[1]
    orders = [np.argpartition(-values, 2 * mined, axis=1)[:, : 2 * mined] for values in others]
    orders = [np.take_along_axis(order, np.argsort(-np.take_along_axis(values, order, 1), 1), 1) for order, values in zip(orders, others)]
    found = np.empty((len(first), ways), np.int64)
    for row, right in enumerate(first):
        turns = np.stack([order[row] for order in orders], axis=1).ravel().tolist()
        best = list(dict.fromkeys([int(right), *turns]))[:mined]
        chance = random.integers(0, passages, 4 * ways).tolist()
        found[row] = list(dict.fromkeys([*best, *chance]))[:ways]
    return found


def lists(
    own: data.Data,
    states: States,
    query_states: States,
    query_ids: list[encoder.Pieces],
    source: str,
    find: Find | None = None,
    among: slice = slice(QUERIES_MAX),
) -> Lists:
    """Lists for the training queries of one source, or some `among` them, searched within the passages that are not held
    back; candidates are what `find` puts first, or BM25 and the single vector."""
    picked = [at for at, query in enumerate(own.queries) if query.source == source and not own.development(query.passage)]
    picked = sorted(picked, key=lambda at: data.share(own.queries[at].text))[among]
    queries = [own.queries[at] for at in picked]
    groups = {own.groups[query.passage] for query in queries}
    corpus = [at for at, group in enumerate(own.groups) if group in groups and not own.development(at)]
    place = {number: at for at, number in enumerate(corpus)}
    texts = [own.passages[number] for number in corpus]
    searched = evaluate.Collection(source, [], texts, [], [query.text for query in queries], {})
    lexical = evaluate.bm25(searched, **BM25)
    single = query_states.pooled(picked) @ states.pooled(corpus).T
    first = np.array([place[query.passage] for query in queries])
    random = np.random.default_rng(SEED)
    columns = candidates(first, [find(picked, corpus)] if find else [lexical, single], WAYS, random)
    found = np.empty((*columns.shape, len(SYSTEMS)), np.float32)
    table = fit.token_weights()
    for row, at in enumerate(picked):
        weight = torch.from_numpy(table[query_ids[at]])
        rows, real = states.gathered(np.array(corpus)[columns[row]])
        products = unit(query_states.rows(at)).bfloat16() @ unit(rows.bfloat16()).transpose(-1, -2)
        products = products.float().masked_fill(~real[:, None, :], -1)
        found[row, :, 2] = (products.amax(-1) * weight).sum(-1) / weight.sum()
    rows = np.arange(len(picked))[:, None]
    found[:, :, 0], found[:, :, 1] = lexical[rows, columns], single[rows, columns]
    return Lists(np.array(picked), np.array(corpus)[columns], found)
