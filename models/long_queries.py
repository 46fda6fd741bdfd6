"""Long queries: half a text looks for its other half; what other weights, fewer tokens or a level of noise make of that.

    .venv/bin/python long_queries.py DATA [SET...]

DATA holds `scifact`, `cranfield` (as `evaluate.py` reads them) and `training/medquad.jsonl.gz`, `training/qed-nq-dev.jsonl.gz`
({query, positive} a line). MedQuAD halves are what treatments and their numbers are chosen on; the other halves only report, and
the questions show what a treatment would do to short queries. Scores are exhaustive MaxSim of the shipped model's int8
document vectors. All treatments are sums over the best match of every query token in every chunk, which is kept under `.cache/long`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import build
import evaluate
import fit
import served_vectors
import text_sets

HALF_WORDS = range(120, 501)
DOCUMENTS_MAX = 3000
QUERIES_CHOOSING, QUERIES_REPORTING = 400, 250
GROUP_TOKENS = 2000
# Chunks, deviations, strength.
CONTRASTS = [(100, 1.5, strength) for strength in (1, 4, 8, 1000)]
CONTRASTS += [(100, 1, 1000), (100, 2, 1000), (100, 1, 8), (100, 2, 8), (30, 2, 8), (300, 2, 8)]
DISCOUNT = 1 / np.log2(np.arange(2, 12))


def collections(data: Path) -> dict[str, evaluate.Collection]:
    medquad = evaluate.jsonl(data / "training" / "medquad.jsonl.gz")
    natural = evaluate.jsonl(data / "training" / "qed-nq-dev.jsonl.gz")

    def halves(name: str, texts: list[str], queries: int) -> evaluate.Collection:
        return text_sets.halves(name, texts, HALF_WORDS, DOCUMENTS_MAX, queries)

    def texts(name: str) -> list[str]:
        return [document["text"] for document in evaluate.jsonl(data / name / "corpus.jsonl.gz")]

    def questions(name: str, pairs: list[dict]) -> evaluate.Collection:
        drawn = [(pair["query"], pair["positive"]) for pair in pairs]
        return text_sets.questions(name, drawn, DOCUMENTS_MAX, QUERIES_CHOOSING)

    return {
        "medquad halves": halves("medquad-halves", [pair["positive"] for pair in medquad], QUERIES_CHOOSING),
        "scifact halves": halves("scifact-halves", texts("scifact"), QUERIES_REPORTING),
        "cranfield halves": halves("cranfield-halves", texts("cranfield"), QUERIES_REPORTING),
        "medquad questions": questions("medquad-questions", medquad),
        "nq questions": questions("nq-questions", natural),
        "cranfield": evaluate.load(data / "cranfield"),
        "scifact": evaluate.load(data / "scifact"),
    }


@dataclass(frozen=True)
class Matches:
    """`best` f32 [tokens of all queries, chunks]: the best match of a token in a chunk, not weighted."""

    collection: evaluate.Collection
    queries: served_vectors.Queries
    documents: served_vectors.Documents
    best: np.ndarray


def matches(collection: evaluate.Collection) -> Matches:
    queries = served_vectors.queries(collection.query_texts)
    documents = served_vectors.documents(collection.document_texts)
    digest = hashlib.sha256(queries.vectors.tobytes() + documents.values.tobytes()).hexdigest()[:12]
    path = build.CACHE / "long" / f"{collection.name}.{digest}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shape = (len(queries.ids), len(documents.owners))
        best = np.lib.format.open_memmap(path.with_suffix(".part"), "w+", np.float32, shape)
        for start in range(0, len(queries.ids), GROUP_TOKENS):
            group = queries.vectors[start : start + GROUP_TOKENS]
            best[start : start + len(group)] = evaluate.best_matches(group, documents.rows, documents.offsets).T
        best.flush()
        path.with_suffix(".part").rename(path)
    return Matches(collection, queries, documents, np.load(path, mmap_mode="r"))


@dataclass(frozen=True)
class Query:
    """One query: ids, vectors and weights of its tokens, their best matches [tokens, chunks], and rows of every chunk."""

    ids: np.ndarray
    vectors: np.ndarray
    weights: np.ndarray
    best: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.best.mean(axis=1)

    @property
    def deviation(self) -> np.ndarray:
        return self.best.std(axis=1)


Treatment = Callable[[Query], np.ndarray]  # scores of all chunks


def weighted(weights: Callable[[Query], np.ndarray]) -> Treatment:
    return lambda query: weights(query).astype(np.float32) @ query.best


def kept(count: int, by: Callable[[Query], np.ndarray]) -> Treatment:
    """The tokens that `by` is greatest of; of equal ones the first."""

    def scores(query: Query) -> np.ndarray:
        chosen = np.sort(np.argsort(-by(query), kind="stable")[:count])
        return query.weights[chosen] @ query.best[chosen]

    return scores


def duplicates(power: float) -> Callable[[Query], np.ndarray]:
    """A word piece that occurs n times weighs n^(1 - power) in all."""

    def weights(query: Query) -> np.ndarray:
        _, which, counts = np.unique(query.ids, return_inverse=True, return_counts=True)
        return query.weights / counts[which] ** power

    return weights


def alike(power: float) -> Callable[[Query], np.ndarray]:
    """Weights by how much of the query is like a token: more (power > 0) or less."""

    def weights(query: Query) -> np.ndarray:
        cosines = np.maximum(query.vectors @ query.vectors.T, 0)
        return query.weights * (cosines**4).sum(axis=1) ** power

    return weights


def rank_weights(offset: int) -> Callable[[Query], np.ndarray]:
    return lambda query: np.log(np.maximum(query.ids - fit.FIRST_WORD_ID, 1) + offset)


def above(level: Callable[[Query], np.ndarray]) -> Treatment:
    """Of a match counts what is above the token's level."""
    return lambda query: query.weights @ np.maximum(0, query.best - level(query))


def contrast(count: int, deviations: float, strength: float) -> Treatment:
    """In the `count` best chunks by plain MaxSim, what a match has above the mean of the token's matches in these chunks and so many
    standard deviations counts once more, `strength` times."""

    def scores(query: Query) -> np.ndarray:
        result = query.weights @ query.best
        first = np.argsort(-result, kind="stable")[:count]
        best = query.best[:, first]
        level = best.mean(axis=1) + deviations * best.std(axis=1)
        result[first] += strength * (query.weights @ np.maximum(0, best - level[:, None]))
        return result

    return scores


def shorter_first(strength: float) -> Treatment:
    """Long chunks have better matches by chance: so much is taken off for the logarithm of a chunk's rows."""
    return lambda query: query.weights @ query.best - strength * query.weights.sum() * np.log(query.lengths)


def of_all(deviations: float) -> Callable[[Query], np.ndarray]:
    return lambda query: (query.mean + deviations * query.deviation)[:, None]


TREATMENTS: dict[str, Treatment] = {
    "today": weighted(lambda query: query.weights),
    "every token weighs 1": weighted(lambda query: np.ones(len(query.ids))),
    "weights log(rank + 1)": weighted(rank_weights(1)),
    "weights to the power of 3": weighted(lambda query: query.weights**3),
    **{f"{count} tokens of greatest weight": kept(count, lambda query: query.weights) for count in (64, 32, 16, 12, 8)},
    **{f"{count} tokens that match least on average": kept(count, lambda query: -query.mean) for count in (64, 32, 16, 12, 8)},
    **{f"{count} tokens whose matches vary most": kept(count, lambda query: query.deviation) for count in (64, 32)},
    "a word piece counts once": weighted(duplicates(1)),
    "a word piece counts sqrt(n) times": weighted(duplicates(0.5)),
    "less weight for what is alike": weighted(alike(-0.25)),
    "more weight for what is alike": weighted(alike(0.25)),
    "weights / deviation": weighted(lambda query: query.weights / query.deviation),
    "weights x (1 - mean)": weighted(lambda query: query.weights * (1 - query.mean)),
    "above 0.5": above(lambda query: np.float32(0.5)),
    **{f"above mean + {d} deviations, all chunks": above(of_all(d)) for d in (1, 2)},
    "shorter chunks first, 0.02": shorter_first(0.02),
    **{f"contrast of {n}, {d} deviations, x {x}": contrast(n, d, x) for n, d, x in CONTRASTS},
}


def measure(found: Matches) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """[queries, (nDCG@10, reciprocal rank)] of each treatment, and the tokens of the queries."""
    firsts = np.searchsorted(found.documents.owners, np.arange(found.documents.owners[-1] + 1))
    lengths = np.diff(found.documents.offsets)
    results: dict[str, list] = {name: [] for name in TREATMENTS}
    tokens = []
    for number, name in enumerate(found.collection.queries):
        if not (relevant := found.collection.gains.get(name)):
            continue
        place = slice(*found.queries.offsets[number : number + 2])
        parts = (part[place] for part in (found.queries.ids, found.queries.vectors, found.queries.weights))
        query = Query(*parts, np.asarray(found.best[place]), lengths)
        tokens.append(len(query.ids))
        for treatment, score in TREATMENTS.items():
            results[treatment].append(quality(np.maximum.reduceat(score(query), firsts), relevant))
    return {name: np.array(rows) for name, rows in results.items()}, np.array(tokens)


def quality(scores: np.ndarray, relevant: dict[int, float]) -> tuple[float, float]:
    ranking = np.argsort(-scores, kind="stable")[: evaluate.RANKED].tolist()
    gains = np.array([relevant.get(document, 0) for document in ranking[:10]])
    ideal = np.array(sorted(relevant.values(), reverse=True)[:10])
    first = next((1 / (at + 1) for at, document in enumerate(ranking) if document in relevant), 0.0)
    return gains @ DISCOUNT / (ideal @ DISCOUNT[: len(ideal)]), first


def main() -> None:
    data, *names = sys.argv[1:]
    found = collections(Path(data))
    for name in names or found:
        results, tokens = measure(matches(found[name]))
        print(f"{name}: {len(tokens)} queries of {tokens.min()} to {tokens.max()} tokens, median {np.median(tokens):.0f}")
        for treatment, rows in results.items():
            change = rows[:, 0] - results["today"][:, 0]
            error = change.std() / np.sqrt(len(change))
            gain, rank = rows.mean(axis=0)
            print(f"  {treatment:42} nDCG@10 {gain:.4f}  {change.mean():+.4f} +- {error:.4f}  MRR {rank:.4f}", flush=True)


if __name__ == "__main__":
    main()
