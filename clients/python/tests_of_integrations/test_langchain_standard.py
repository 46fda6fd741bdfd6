"""LangChain's own standard tests, with a client that blocks and with one for asyncio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import IndexingResult, InMemoryRecordManager, aindex, index
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests
from pydantic import ValidationError

from maxsimd import AsyncMaxsimd, Maxsimd, MaxsimdError
from maxsimd.integrations.langchain import MaxsimdReranker, MaxsimdRetriever, MaxsimdVectorStore

TEXTS = {f"animal {number}": f"Animal number {number} lives in a forest." for number in range(5)}


@pytest.fixture
def index_id(name: str) -> Iterator[str]:
    with Maxsimd() as client:
        index = client.create_index(f"standard {name}")
        yield str(index.id)
        client.delete_index(index.id)


@pytest.fixture(params=["threads", "native"])
def async_client(request: pytest.FixtureRequest) -> AsyncMaxsimd | None:
    return AsyncMaxsimd() if request.param == "native" else None


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _filled(self, index_id: str, async_client: AsyncMaxsimd | None) -> None:
        client = Maxsimd()
        client.import_documents(index_id, ({"doc_id": doc_id, "text": text} for doc_id, text in TEXTS.items()))
        self.params = {"client": client, "index_id": index_id, "load": lambda _: TEXTS, "async_client": async_client}

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MaxsimdRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.params

    @property
    def retriever_query_example(self) -> str:
        return "who lives in a forest?"

    def test_unknown_parameters_are_refused(self) -> None:
        with pytest.raises(ValidationError, match="top_k"):
            MaxsimdRetriever(**self.params, top_k=1)
        with pytest.raises(ValidationError, match="k"):
            MaxsimdReranker(client=self.params["client"], k=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unknown parameters: top_k"):
            MaxsimdRetriever(**self.params).invoke("who?", top_k=1)

    async def test_async_calls(self) -> None:
        loaded: list[str] = []

        async def load(doc_ids: list[str]) -> dict[str, str]:
            loaded.extend(doc_ids)
            return TEXTS

        retriever = MaxsimdRetriever(**{**self.params, "load": load})
        found = await retriever.ainvoke("animal number 3", k=2)
        assert [document.id for document in found] == loaded
        assert loaded[0] == "animal 3"
        with pytest.raises(TypeError, match="unknown parameters: top_k"):
            await retriever.ainvoke("who?", top_k=1)
        with pytest.raises(TypeError, match="asynchronous"):
            retriever.invoke("who?")
        reranker = MaxsimdReranker(client=self.params["client"], async_client=self.params["async_client"], top_n=1)
        [best] = await reranker.acompress_documents(found, "animal number 3")
        assert best.id == "animal 3"


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, index_id: str, async_client: AsyncMaxsimd | None) -> VectorStore:
        return MaxsimdVectorStore(Maxsimd(), index_id, InMemoryStore(), async_client=async_client)

    def test_searches_are_narrowed(self, vectorstore: VectorStore) -> None:
        vectorstore.add_texts(list(TEXTS.values()), [{"n": n} for n in range(5)], ids=list(TEXTS))
        found = vectorstore.similarity_search("animal number 3", k=5, where={"n": {"gt": 2}}, exact=True)
        assert [document.id for document in found] == ["animal 3", "animal 4"]
        retriever = vectorstore.as_retriever(search_kwargs={"k": 1, "filter": {"n": 2}})
        assert [document.id for document in retriever.invoke("animal number 3")] == ["animal 2"]

    def test_unknown_parameters_are_refused(self, vectorstore: VectorStore) -> None:
        with pytest.raises(TypeError, match="unknown parameters: top_k"):
            vectorstore.similarity_search("foo", top_k=1)
        with pytest.raises(TypeError, match="unknown parameters: namespace"):
            vectorstore.add_documents([Document("foo")], namespace="x")
        with pytest.raises(ValueError, match="`ids` is missing"):
            vectorstore.delete()

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_the_indexing_api_writes_what_changed(self, vectorstore: VectorStore, is_async: bool) -> None:
        records = InMemoryRecordManager(namespace="animals")
        given = [Document(text, metadata={"source": doc_id}) for doc_id, text in TEXTS.items()]

        async def indexed(documents: list[Document], cleanup: Any, **options: Any) -> IndexingResult:
            options |= {"cleanup": cleanup, "source_id_key": "source", "key_encoder": "sha256", "batch_size": 2}
            if is_async:
                return await aindex(documents, records, vectorstore, **options)
            return index(documents, records, vectorstore, **options)

        def texts() -> list[str]:
            found = vectorstore.similarity_search("who lives in a forest?", k=10)
            return sorted(document.page_content for document in found)

        none = IndexingResult(num_added=0, num_updated=0, num_deleted=0, num_skipped=0)
        assert await indexed(given, "full") == {**none, "num_added": 5}
        assert await indexed(given, "full") == {**none, "num_skipped": 5}
        assert texts() == list(TEXTS.values())
        given[4] = Document("Animal number 9 lives in a pond.", metadata={"source": "animal 4"})
        assert await indexed(given[4:], "incremental") == {**none, "num_added": 1, "num_deleted": 1}
        assert await indexed(given[1:], "full", force_update=True) == {**none, "num_updated": 4, "num_deleted": 1}
        assert texts() == sorted(document.page_content for document in given[1:])

    def test_a_refused_document_keeps_its_text(self, vectorstore: VectorStore) -> None:
        vectorstore.add_texts(["foo"], ids=["1"])
        with pytest.raises(MaxsimdError, match="1 documents were refused"):
            vectorstore.add_texts(["", "bar"], ids=["1", "2"])
        assert [document.page_content for document in vectorstore.get_by_ids(["1", "2"])] == ["foo", "bar"]

    def test_is_made_from_texts(self, index_id: str) -> None:
        parts = {"client": Maxsimd(), "index_id": index_id, "documents": InMemoryStore()}
        store = MaxsimdVectorStore.from_texts(["foo", "bar"], None, **parts)
        assert [document.page_content for document in store.similarity_search("bar")] == ["bar", "foo"]
        with pytest.raises(ValueError, match="embedding"):
            MaxsimdVectorStore.from_texts(["foo"], DeterministicFakeEmbedding(size=2), **parts)
