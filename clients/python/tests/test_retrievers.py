"""What the parts for all frameworks have in common, without the frameworks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from maxsimd import InvalidRequestError, Maxsimd
from maxsimd.integrations.texts import TextSource, narrowed, rerank, retrieve

INDEX = "ffffffff-ffff-4fff-8fff-ffffffffffff"


def test_a_retriever_asks_for_documents_and_gives_the_passage_of_each() -> None:
    asked: list[object] = []
    usage = {"input_tokens": 1, "document_count": 0, "chunk_count": 0, "candidate_count": 0, "latency_ms": 1}
    match = {"token_index": 0, "document_token_index": 3, "similarity": 0.5, "text_range": {"start": 4, "end": 7}}
    place = {
        "text_range": {"start": 2, "end": 7},
        "components": {"maxsim": 0.5, "per_query_token": [match]},
    }
    found = [
        {
            "doc_id": doc_id,
            "chunk_id": f"{doc_id} 7",
            "chunk_index": 7,
            "score": 2.5,
            "metadata": {"kind": doc_id},
            **(place if doc_id == "bee" else {}),
        }
        for doc_id in ("bee", "gone", "whale")
    ]

    def reply(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path, json.loads(request.content)))
        return httpx.Response(200, json={"results": found, "usage": usage})

    def load(doc_ids: Sequence[str]) -> dict[str, str]:
        return {doc_id: f"A {doc_id} 𝒾sx." for doc_id in doc_ids if doc_id != "gone"}

    client = Maxsimd("http://service", "k", transport=httpx.MockTransport(reply))
    bee, whale = retrieve(client, INDEX, TextSource.of(load, None), "q", narrowed(5))
    assert (bee.text, whale.text) == ("bee 𝒾", "A whale 𝒾sx.")
    highlight = {"text": "e 𝒾", "start": 4, "end": 7, "similarity": 0.5}
    chunk = {"chunk_index": 7, "score": 2.5}
    own = {"kind": "bee", "doc_id": "bee", "chunk_id": "bee 7", **chunk}
    assert bee.metadata == {**own, "text_range": {"start": 2, "end": 7}, "highlights": [highlight]}
    assert (whale.metadata["text_range"], whale.metadata["highlights"]) == (None, [])
    options: dict[str, Any] = {"filter": {"kind": "bee"}, "where": {"n": {"gt": 1}}, "exact": True}
    retrieve(client, INDEX, TextSource.of(load, None), "q", narrowed(100, **options))
    path = f"/v1/indexes/{INDEX}/search"
    asks = {"query": "q", "group_by_document": True, "return_components": True}
    many = {**asks, "top_k": 100, "return_components": False}
    assert asked == [(path, {**asks, "top_k": 5}), (path, {**many, **options})]


def test_a_retriever_takes_the_text_from_a_metadata_field() -> None:
    asked: list[Any] = []
    usage = {"input_tokens": 1, "document_count": 0, "chunk_count": 0, "candidate_count": 0, "latency_ms": 1}
    word = {"text": "bees", "start": 6, "end": 10, "similarity": 0.5, "query_word": "insects"}
    passage = {"text": "Honey bees", "start": 0, "end": 10, "highlights": [word]}
    found = [
        {
            "doc_id": doc_id,
            "chunk_id": doc_id,
            "chunk_index": 0,
            "score": 2.5,
            "text_range": {"start": 0, "end": 10},
            "metadata": {"kind": doc_id, "body": "Honey bees dance."},
            "passage": passage if doc_id == "bee" else None,
        }
        for doc_id in ("bee", "none")
    ]

    def reply(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json={"results": found, "usage": usage})

    client = Maxsimd("http://service", "k", transport=httpx.MockTransport(reply))
    [bee] = retrieve(client, INDEX, TextSource.of(None, "body"), "q", narrowed(5))
    place = {"doc_id": "bee", "chunk_id": "bee", "chunk_index": 0, "score": 2.5, "text_range": {"start": 0, "end": 10}}
    assert bee.text == "Honey bees"
    assert bee.metadata == {"kind": "bee", **place, "highlights": [word]}
    assert asked[0]["passage"] == {"from": "body"}
    for load, field in ((None, None), (lambda doc_ids: {}, "body")):
        with pytest.raises(TypeError, match="either"):
            TextSource.of(load, field)


def _part(doc_id: str, part_of: str | None) -> dict[str, Any]:
    metadata = {} if part_of is None else {"part_of": part_of}
    return {"doc_id": doc_id, "chunk_id": doc_id, "chunk_index": 0, "score": 1.0, "metadata": metadata}


def test_a_grouped_retrieval_asks_for_pages_until_it_has_enough_documents() -> None:
    asked: list[tuple[int, int]] = []
    usage = {"input_tokens": 1, "document_count": 0, "chunk_count": 0, "candidate_count": 0, "latency_ms": 1}
    stored = [*(_part(f"long#{at}", "long") for at in range(25)), _part("short", None), _part("other#1", "other")]

    def reply(request: httpx.Request) -> httpx.Response:
        search = json.loads(request.content)
        first, size = search.get("offset", 0), search["top_k"]
        asked.append((first, size))
        return httpx.Response(200, json={"results": stored[first : first + size], "usage": usage})

    def found(top_k: int) -> list[str]:
        asked.clear()
        texts = TextSource.of(lambda doc_ids: dict.fromkeys(doc_ids, "a text"), None)
        return [one.doc_id for one in retrieve(client, INDEX, texts, "q", narrowed(top_k), "part_of")]

    client = Maxsimd("http://service", "k", transport=httpx.MockTransport(reply))
    assert (found(1), asked) == (["long#0"], [(0, 10)])
    assert (found(2), asked) == (["long#0", "short"], [(0, 10), (10, 10), (20, 10)])
    assert (found(9), asked) == (["long#0", "short", "other#1"], [(0, 10), (10, 10), (20, 10)])
    assert (found(100), asked) == (["long#0", "short", "other#1"], [(0, 100)])
    found(0)
    assert asked[0] == (0, 0)
    stored[:0] = [_part(f"huge#{at}", "huge") for at in range(100)]
    assert (found(2), len(asked)) == (["huge#0"], 10)


def test_the_parts_of_a_document_count_as_one(url: str, key: str, name: str) -> None:
    bees = "Honey bees dance to tell each other where flowers are. " * 60
    documents = [{"doc_id": "bees", "text": bees}, {"doc_id": "whale", "text": "The blue whale is large."}]
    with Maxsimd(url, key) as client:
        index = client.create_index(f"parts {name}")
        assert client.import_documents(index.id, documents, keep_text="body", cut=1024).documents > 3
        source, query = TextSource.of(None, "body"), "how do bees communicate?"
        found = retrieve(client, index.id, source, query, narrowed(10), "part_of")
        assert [one.metadata.get("part_of", one.doc_id) for one in found] == ["bees", "whale"]
        parts = retrieve(client, index.id, source, query, narrowed(10))
        assert found[0].doc_id == parts[0].doc_id
        assert len(parts) > 3


def test_a_list_that_is_too_long_is_halved() -> None:
    sent: list[int] = []

    def reply(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        texts, tokens = body["documents"], sum(len(text.split()) for text in body["documents"])
        assert (body["max_tokens_per_doc"], len(request.content) < 5 << 20) == (100_000, True)
        sent.append(len(texts))
        if tokens > 100_000 or body["query"] == "":
            issue = {"path": "documents" if body["query"] else "query", "code": "too_much_work", "message": "too many"}
            error = {"code": "validation_error", "message": "too many", "issues": [issue]}
            return httpx.Response(422, json={"error": error})
        results = [
            {"index": at, "relevance_score": float(text.split()[0]), "normalized_score": 0.5}
            for at, text in enumerate(texts)
        ]
        meta = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 1}}
        answer = {"results": results, "id": "i", "model": "default", "meta": meta, "usage": {"total_tokens": 1}}
        return httpx.Response(200, json=answer)

    client = Maxsimd("http://service", "k", transport=httpx.MockTransport(reply))
    assert rerank(client, "q", [str(at) for at in range(2500)], 2) == [(2499, 2499.0), (2498, 2498.0)]
    assert sorted(sent) == [500, 1000, 1000]
    sent.clear()
    long = [f"{at} {'a ' * 40_000}" for at in range(4)]
    assert [at for at, _ in rerank(client, "q", long, 9)] == [3, 2, 1, 0]
    assert sent == [4, 2, 2]
    sent.clear()
    assert [at for at, _ in rerank(client, "q", ["1 " + "xy" * 100_000, "2"] * 4, 1)] == [1]
    assert sent == [2, 6]
    sent.clear()
    with pytest.raises(InvalidRequestError):
        rerank(client, "", ["1", "2"], 1)
    assert sent == [2]


def test_a_long_list_is_ranked_as_one(url: str, key: str) -> None:
    texts = [f"Ship number {at} sails." for at in range(120)]
    texts[7], texts[70], texts[110] = "", "Bees live in a hive.", "Honey bees dance to tell each other about flowers."
    with Maxsimd(url, key) as client:
        ranked = rerank(client, "how do bees communicate?", texts, 200)
        assert [at for at, _ in ranked[:2]] == [110, 70]
        assert sorted(at for at, _ in ranked) == [at for at in range(120) if at != 7]
        assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
        assert rerank(client, "how do bees communicate?", texts, 2) == ranked[:2]
        assert rerank(client, "how do bees communicate?", [""], 2) == []
