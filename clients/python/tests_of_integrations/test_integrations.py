"""The parts for LangChain, LlamaIndex and Haystack, in those frameworks, against the real service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from haystack import Pipeline
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from maxsimd import Index, Maxsimd
from maxsimd.integrations import haystack, langchain, llama_index

TEXTS = {
    "whale": "The blue whale is the largest animal known to have existed.",
    "bee": "Honey bees dance to tell each other where flowers are. " + "Hives are made of wax. " * 9,
    "gone": "This document has left the caller's own store; insects, flowers, animals.",
}
QUERY = "how do insects communicate?"


def load(doc_ids: Sequence[str]) -> dict[str, str]:
    return {doc_id: TEXTS[doc_id] for doc_id in doc_ids if doc_id != "gone"}


@pytest.fixture
def client(url: str, key: str) -> Iterator[Maxsimd]:
    with Maxsimd(url, key) as client:
        yield client


@pytest.fixture
def index(client: Maxsimd, name: str) -> Index:
    index = client.create_index(f"integration {name}", chunking={"max_tokens": 8, "overlap_tokens": 2})
    documents = [{"doc_id": doc_id, "text": text, "metadata": {"kind": doc_id}} for doc_id, text in TEXTS.items()]
    # Small chunks: a document has several among the results.
    assert client.import_documents(index.id, documents).chunks > len(TEXTS)
    return index


def assert_passage(text: str, metadata: dict[str, Any]) -> None:
    """The best chunk of the bee's text, with the words in it that matched."""
    assert (metadata["kind"], metadata["doc_id"]) == ("bee", "bee")
    place = metadata["text_range"]
    assert text == TEXTS["bee"][place["start"] : place["end"]] != TEXTS["bee"]
    assert metadata["highlights"] != []
    for one in metadata["highlights"]:
        assert place["start"] <= one["start"] < one["end"] <= place["end"]
        assert one["text"] == TEXTS["bee"][one["start"] : one["end"]]


def test_top_k_is_a_number_of_documents(client: Maxsimd, name: str) -> None:
    texts = {f"{number} bees": "Honey bees dance to tell each other where flowers are. " * 30 for number in range(2)}
    texts |= {f"{number} other": f"Whale number {number} swims." for number in range(6)}
    crowded = client.create_index(f"crowded {name}", chunking={"max_tokens": 8, "overlap_tokens": 2})
    client.import_documents(crowded.id, ({"doc_id": doc_id, "text": text} for doc_id, text in texts.items()))
    # The chunks of the two would fill 5 results.
    best = [result.doc_id for result in client.search(crowded.id, QUERY, top_k=5).results]
    assert len(set(best)) < 5

    def load_all(doc_ids: Sequence[str]) -> dict[str, str]:
        return {doc_id: texts[doc_id] for doc_id in doc_ids}

    of_langchain = langchain.MaxsimdRetriever(client=client, index_id=str(crowded.id), load=load_all, k=5)
    ids = [document.id for document in of_langchain.invoke(QUERY)]
    assert len(set(ids)) == len(ids) == 5
    nodes = llama_index.MaxsimdRetriever(client, crowded.id, load_all, top_k=5).retrieve(QUERY)
    assert [node.node.node_id for node in nodes] == ids
    of_haystack = haystack.MaxsimdRetriever(client, crowded.id, load_all, top_k=5)
    assert [document.id for document in of_haystack.run(QUERY)["documents"]] == ids


def test_the_parts_of_a_document_count_as_one(client: Maxsimd, name: str) -> None:
    parts = client.create_index(f"parts {name}")
    documents = [{"doc_id": doc_id, "text": text * 20} for doc_id, text in TEXTS.items() if doc_id != "gone"]
    client.import_documents(parts.id, documents, keep_text="body", cut=1024)
    chosen: dict[str, Any] = {"text_field": "body", "group_by": "part_of"}
    of_langchain = langchain.MaxsimdRetriever(client=client, index_id=str(parts.id), k=2, **chosen)
    ids = [document.id for document in of_langchain.invoke(QUERY)]
    assert [str(doc_id).partition("#")[0] for doc_id in ids] == ["bee", "whale"]
    nodes = llama_index.MaxsimdRetriever(client, parts.id, top_k=2, **chosen).retrieve(QUERY)
    assert [node.node.node_id for node in nodes] == ids
    of_haystack = haystack.MaxsimdRetriever(client, parts.id, top_k=2, **chosen)
    assert [document.id for document in of_haystack.run(QUERY)["documents"]] == ids


def test_langchain_retrieves_each_document_once(client: Maxsimd, index: Index) -> None:
    retriever = langchain.MaxsimdRetriever(client=client, index_id=str(index.id), load=load)
    found = retriever.invoke(QUERY)
    assert [document.id for document in found] == ["bee", "whale"]
    assert_passage(found[0].page_content, found[0].metadata)
    chain = retriever | RunnableLambda(lambda documents: documents[0].id)
    assert chain.invoke("largest animal") == "whale"
    narrow = langchain.MaxsimdRetriever(client=client, index_id=str(index.id), load=load, filter={"kind": "whale"})
    assert [document.id for document in narrow.invoke(QUERY)] == ["whale"]
    others = langchain.MaxsimdRetriever(
        client=client, index_id=str(index.id), load=load, where={"kind": {"not": "bee"}}, exact=True
    )
    assert [document.id for document in others.invoke(QUERY)] == ["whale"]


def test_langchain_reranks(client: Maxsimd) -> None:
    reranker = langchain.MaxsimdReranker(client=client, top_n=1)
    documents = [
        Document(page_content=TEXTS["whale"]),
        Document(page_content=""),
        Document(page_content=TEXTS["bee"], metadata={"kept": 1}),
    ]
    (best,) = reranker.compress_documents(documents, QUERY)
    assert best.page_content == TEXTS["bee"]
    assert best.metadata["kept"] == 1
    assert isinstance(best.metadata["relevance_score"], float)
    assert reranker.compress_documents([], QUERY) == []
    many = [*documents[:2] * 30, documents[2], *documents[:2] * 30]
    assert [one.page_content for one in reranker.compress_documents(many, QUERY)] == [TEXTS["bee"]]


def test_llama_index_retrieves_and_reranks(client: Maxsimd, index: Index) -> None:
    nodes = llama_index.MaxsimdRetriever(client, index.id, load).retrieve(QUERY)
    assert [node.node.node_id for node in nodes] == ["bee", "whale"]
    assert_passage(nodes[0].get_content(), nodes[0].node.metadata)
    assert "highlights" not in nodes[0].node.get_content(MetadataMode.LLM)
    assert (nodes[0].score or 0) > (nodes[1].score or 0)
    candidates = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS.values()]
    reranker = llama_index.MaxsimdReranker(client, top_n=2)
    ranked = reranker.postprocess_nodes(candidates, QueryBundle("largest animal"))
    assert len(ranked) == 2
    assert ranked[0].node.get_content() == TEXTS["whale"]
    many = [*candidates[1:] * 30, candidates[0], *candidates[1:] * 30]
    assert reranker.postprocess_nodes(many, QueryBundle("largest animal"))[0].node.get_content() == TEXTS["whale"]


def test_haystack_retrieves_in_a_pipeline(client: Maxsimd, index: Index) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", haystack.MaxsimdRetriever(client, index.id, load))
    documents = pipeline.run({"retriever": {"query": QUERY}})["retriever"]["documents"]
    assert [document.id for document in documents] == ["bee", "whale"]
    assert_passage(documents[0].content or "", documents[0].meta)
    narrow = pipeline.run({"retriever": {"query": QUERY, "filters": {"field": "meta.kind", "operator": "==", "value": "whale"}}})
    assert [document.id for document in narrow["retriever"]["documents"]] == ["whale"]
    others = pipeline.run({"retriever": {"query": QUERY, "where": {"kind": {"in": ["whale"]}}}})
    assert [document.id for document in others["retriever"]["documents"]] == ["whale"]
