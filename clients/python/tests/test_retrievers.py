"""What the parts for all frameworks have in common, without the frameworks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from maxsimd import Maxsimd
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
