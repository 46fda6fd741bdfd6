"""Haystack's own tests of document stores. Contents are not compared, because the service keeps none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.core.errors import DeserializationError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.testing.document_store import (
    CountDocumentsTest,
    DeleteDocumentsTest,
    FilterDocumentsTest,
    WriteDocumentsTest,
)
from haystack.testing.document_store_async import (
    CountDocumentsAsyncTest,
    DeleteDocumentsAsyncTest,
    WriteDocumentsAsyncTest,
)

from maxsimd import AsyncMaxsimd, Maxsimd, MaxsimdError
from maxsimd.integrations.haystack import MaxsimdDocumentStore, MaxsimdRetriever

TEXTS = {f"animal {number}": f"Animal number {number} lives in a forest." for number in range(5)}


def load(_: object) -> dict[str, str]:
    return TEXTS


@pytest.fixture(params=["threads", "native"])
def async_client(request: pytest.FixtureRequest) -> AsyncMaxsimd | None:
    return AsyncMaxsimd() if request.param == "native" else None


@pytest.fixture
def document_store(name: str, async_client: AsyncMaxsimd | None) -> Iterator[MaxsimdDocumentStore]:
    client = Maxsimd()
    index = client.create_index(f"haystack {name}")
    yield MaxsimdDocumentStore(client, index.id, async_client=async_client)
    client.delete_index(index.id)


class TestDocumentStore(
    CountDocumentsTest,
    WriteDocumentsTest,
    DeleteDocumentsTest,
    FilterDocumentsTest,
    CountDocumentsAsyncTest,
    WriteDocumentsAsyncTest,
    DeleteDocumentsAsyncTest,
):
    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        assert all(document.content is None for document in received)
        plain = [sorted(((one.id, one.meta) for one in some), key=lambda one: one[0]) for some in (received, expected)]
        assert plain[0] == plain[1]

    def test_write_documents(self, document_store: MaxsimdDocumentStore) -> None:  # type: ignore[override]
        for kind in ("old", "new"):
            assert document_store.write_documents([Document(id="1", content="text", meta={"kind": kind})]) == 1
        assert [document.meta for document in document_store.filter_documents()] == [{"kind": "new"}]

    async def test_write_documents_async(self, document_store: MaxsimdDocumentStore) -> None:  # type: ignore[override]
        for kind in ("old", "new"):
            written = [Document(id="1", content="text", meta={"kind": kind})]
            assert await document_store.write_documents_async(written) == 1
        assert [document.meta for document in await document_store.filter_documents_async()] == [{"kind": "new"}]


def test_a_pipeline_writes_and_retrieves(document_store: MaxsimdDocumentStore) -> None:
    writer = Pipeline()
    writer.add_component("writer", DocumentWriter(document_store, policy=DuplicatePolicy.SKIP))
    documents = [Document(id=doc_id, content=text, meta={"n": n}) for n, (doc_id, text) in enumerate(TEXTS.items())]
    assert writer.run({"writer": {"documents": documents}}) == {"writer": {"documents_written": 5}}
    retriever = MaxsimdRetriever(document_store._client, document_store._index_id, load)

    def found(filters: dict[str, object]) -> list[str]:
        return sorted(document.id[-1] for document in retriever.run("who?", filters=filters)["documents"])

    def of(operator: str, value: object, field: str = "meta.n") -> dict[str, object]:
        return {"field": field, "operator": operator, "value": value}

    assert found(of("==", 3)) == ["3"]
    assert found(of("!=", 3)) == ["0", "1", "2", "4"]
    assert found(of("in", [1, 2])) == ["1", "2"]
    assert found(of("not in", [1, 2])) == ["0", "3", "4"]
    assert found(of("==", None, "meta.missing")) == ["0", "1", "2", "3", "4"]
    assert found(of("!=", None, "meta.missing")) == []
    assert found({"operator": "AND", "conditions": [of(">", 1), of("<=", 3)]}) == ["2", "3"]
    assert found({"operator": "OR", "conditions": [of("<", 1), of(">=", 4)]}) == ["0", "4"]
    either = [{"operator": "OR", "conditions": one} for one in ([of("<", 2), of("==", 4)], [of("!=", 1), of(">", 3)])]
    assert found({"operator": "AND", "conditions": either}) == ["0", "4"]
    assert found({"operator": "AND", "conditions": [of(">", 1), of(">=", 3), of("!=", 4)]}) == ["3"]
    for wrong in ({"operator": "AND", "conditions": either * 5}, {"kind": "insect"}, {"operator": "NOT", "conditions": []}, of("~", 1)):
        with pytest.raises(FilterError):
            found(wrong)


async def test_async_calls(document_store: MaxsimdDocumentStore, async_client: AsyncMaxsimd | None) -> None:
    documents = [Document(id=doc_id, content=text) for doc_id, text in TEXTS.items()]
    assert await DocumentWriter(document_store).run_async(documents) == {"documents_written": 5}

    async def load_async(_: object) -> dict[str, str]:
        return TEXTS

    parts = (document_store._client, document_store._index_id, load_async)
    retriever = MaxsimdRetriever(*parts, async_client=async_client, top_k=1)
    [best] = (await retriever.run_async("animal number 3"))["documents"]
    assert best.content == TEXTS["animal 3"]


def test_a_saved_pipeline_has_no_key(document_store: MaxsimdDocumentStore, url: str, key: str) -> None:
    index_id = document_store._index_id
    given = Maxsimd(url, key)
    chosen: dict[str, Any] = {"group_by": "kind", "top_k": 2, "exact": True}
    pipeline = Pipeline()
    pipeline.add_component("writer", DocumentWriter(MaxsimdDocumentStore(given, index_id, load)))
    pipeline.add_component("loads", MaxsimdRetriever(given, index_id, load, **chosen))
    pipeline.add_component("reads", MaxsimdRetriever(given, index_id, text_field="body", **chosen))
    saved = pipeline.dumps()
    assert (key in saved, url in saved) == (False, False)
    with pytest.raises(DeserializationError, match="allowed_modules"):
        Pipeline.loads(saved)
    loaded = Pipeline.loads(saved, allowed_modules=["maxsimd", load.__module__])
    assert loaded.dumps() == saved
    documents = [Document(id=doc_id, content=text, meta={"kind": doc_id, "body": text}) for doc_id, text in TEXTS.items()]
    loaded.get_component("writer").run(documents)
    assert document_store.count_documents() == 5
    for name in ("loads", "reads"):
        retriever = loaded.get_component(name)
        assert [one.content for one in retriever.run("animal number 3")["documents"]][:1] == [TEXTS["animal 3"]]
        assert len(retriever.run("animal number 3")["documents"]) == 2


def test_a_document_without_text_is_refused(document_store: MaxsimdDocumentStore) -> None:
    with pytest.raises(MaxsimdError, match="1 documents were refused"):
        document_store.write_documents([Document(id="empty"), Document(id="bar", content="bar")])
    assert document_store.count_documents() == 1
