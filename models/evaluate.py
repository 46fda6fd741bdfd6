"""The quality table: nDCG@10 and recall@100 by exhaustive MaxSim, against single vectors and BM25.

    .venv/bin/python evaluate.py NAME DIRECTORY...

NAME is a model. Each directory holds `corpus.jsonl.gz` ({id, title, text}), `queries.jsonl` ({id, text}) and
`qrels.tsv` (header; query id, document id, gain). A document's text is title, space, text; its
score is that of its best chunk (256 content tokens, 32 shared). The last hidden states of the
f32 graph are kept as f16 under `.cache/evaluate`; everything else is computed from them, but for
the shipped model, which runs itself: stored document rows, f32 query vectors times token weights.
Writes the results into `quality.json` beside the model; `build.py` copies them into the manifest.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
import Stemmer

import build
import encoder
import fit
import graph
import rows as few_bits
import source
import verify
from recipes import F16, INT8, Recipe, named

RANKED = 100
BLOCK_TOKENS = 12_000
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
    tokenizer = encoder.tokenizer(recipe.target / "tokenizer.json")
    for directory in map(Path, sys.argv[2:]):
        collection = load(directory)
        results = {}
        for name, result in systems(recipe, collection, tokenizer):
            results[name] = result
            print(f"{collection.name:10} {name:46} {result}", flush=True)
        known = build.known_quality(recipe)
        known["results"][collection.name] = results
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


def systems(recipe: Recipe, collection: Collection, tokenizer: encoder.Tokenizer):
    """(name, {ndcg@10, recall@100}) of every system of the table."""
    contents = encoder.pieces(tokenizer, collection.document_texts)
    documents = chunks([encoder.windows(content) for content in contents])
    queries = chunks([[encoder.framed(content)[1:-1]] for content in encoder.pieces(tokenizer, collection.query_texts)])
    weights = recipe.source().load()
    reference = encoder.session(graph.build(weights, None, graph.LinearF32()))
    states = reference_states(reference, documents, cache(recipe, collection.name) / "documents.npy")
    query_states = reference_states(reference, queries, cache(recipe, collection.name) / "queries.npy").astype(np.float32)

    def report(chunk_scores: np.ndarray) -> dict:
        return quality(collection, best_chunk(chunk_scores, documents.owners))

    def maxsim(query_rows: np.ndarray, rows: Rows) -> np.ndarray:
        """Best match of every query token in every chunk, f32 [chunks, query tokens]."""
        return best_matches(query_rows, rows, documents.offsets)

    def total(best: np.ndarray, token_weight: np.ndarray | float) -> np.ndarray:
        return np.add.reduceat(best * token_weight, queries.offsets[:-1], axis=1)

    ids = np.concatenate(queries.sequences)
    table = fit.token_weights()[ids]
    projections = {"f32-384": np.eye(source.HIDDEN, dtype=np.float32)}
    if recipe.row_bits == 8:
        projections["f32-128"] = fit.orthogonal_projection()
    for name, projection in projections.items():
        rows = lambda a, b: fit.unit(states[a:b].astype(np.float32) @ projection)
        best = maxsim(fit.unit(query_states @ projection), rows)
        yield f"maxsim {name}, plain", report(total(best, 1.0))
        exact = total(best, table)
        yield f"maxsim {name}, token weights", report(exact)

    for name, file in (("maxsim shipped int8", INT8), ("maxsim shipped f16", F16)):
        kept = cache(recipe, collection.name) / "shipped.npy"
        served, query_rows, speed = shipped(recipe, documents, queries, kept, file)
        scores = total(maxsim(query_rows, lambda a, b: served[a:b].astype(np.float32)), 1.0)
        yield name, report(scores) | speed | {f"top-10 chunks shared with {list(projections)[-1]}": overlap(exact, scores)}

    limit = encoder.WINDOW_TOKENS - 2
    whole = chunks([[content[:limit]] for content in contents])
    path = cache(recipe, collection.name) / "pooled.npy"
    if not path.exists():
        np.save(path, pool(reference, whole))
    yield "single vector, mean pooling f32", quality(collection, pool(reference, queries) @ np.load(path).T)
    for name, parameters in BM25.items():
        yield name, quality(collection, bm25(collection, **parameters))


def chunks(windows: list[list[encoder.Pieces]]) -> Chunks:
    sequences = [[source.CLS_ID, *window, source.SEP_ID] for own in windows for window in own]
    owners = np.repeat(np.arange(len(windows)), [len(own) for own in windows])
    return Chunks(sequences, owners, np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])]))


def reference_states(reference, wanted: Chunks, path: Path) -> np.ndarray:
    """Last hidden states, f16 [tokens, 384]."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        states = np.empty((int(wanted.offsets[-1]), source.HIDDEN), np.float16)
        for number, (rows,) in encoder.run(reference, wanted.sequences, ["hidden"]):
            states[wanted.offsets[number] : wanted.offsets[number + 1]] = rows
        np.save(path, states)
    return np.load(path, mmap_mode="r")


def shipped(recipe: Recipe, documents: Chunks, queries: Chunks, path: Path, name: str) -> tuple[np.ndarray, np.ndarray, dict]:
    """Document rows as served (components times scale, f16 here), weighted query rows f32, and the speed."""
    file, batch_tokens = recipe.target / name, BATCH_TOKENS[name]
    running = encoder.session(file)
    path = path.with_suffix(f".{build.checksum(file)['sha256'][:12]}.npy")
    query_rows = np.concatenate([rows * weight[:, None] for rows, weight in ordered(running, queries, ["output", "token_weight"], batch_tokens)])
    if recipe.row_bits < 8:
        query_rows = few_bits.rotated(query_rows)
    speed = {}
    if not path.exists():
        start = time.perf_counter()
        outputs = ["document_int8", "document_scale"] if recipe.row_bits == 8 else ["output"]
        read = lambda rows, scale: rows * scale[:, None]
        if recipe.row_bits < 8:
            read = lambda rows: np.multiply(*(part.reshape(len(rows), -1) for part in few_bits.quantised(few_bits.rotated(rows), recipe.row_bits)))
        served = np.concatenate([read(*values).astype(np.float16) for values in ordered(running, documents, outputs, batch_tokens)])
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
    """Means over the judged queries. Of documents with equal scores the earlier one comes first."""
    gains, recalls = [], []
    discount = 1 / np.log2(np.arange(2, 12))
    for query, row in zip(collection.queries, scores):
        if relevant := collection.gains.get(query):
            ranking = np.argsort(-row, kind="stable")[:RANKED].tolist()
            found = np.array([relevant.get(document, 0) for document in ranking[:10]])
            ideal = np.array(sorted(relevant.values(), reverse=True)[:10])
            gains.append(found @ discount / (ideal @ discount[: len(ideal)]))
            recalls.append(len(set(ranking) & set(relevant)) / len(relevant))
    return {"ndcg@10": round(float(np.mean(gains)), 4), "recall@100": round(float(np.mean(recalls)), 4)}


if __name__ == "__main__":
    main()
