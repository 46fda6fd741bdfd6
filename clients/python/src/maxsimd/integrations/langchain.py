"""A retriever, a document compressor (reranker) and a vector store for LangChain: `pip install "maxsimd[langchain]"`.

Their asynchronous methods use `async_client`; without one, threads run `client`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict

from ..asynchronous import AsyncMaxsimd
from ..models import Result
from ..synchronous import Maxsimd
from .texts import (
    AnyLoad,
    Found,
    TextSource,
    aretrieve,
    arerank,
    asynchronous,
    check_stored,
    narrowed,
    refuse_unknown,
    rerank,
    retrieve,
)


class MaxsimdRetriever(BaseRetriever):
    """The best passages of the best `k` documents of an index, best first.

    `load` gives texts by `doc_id`, or `text_field` is the metadata field that holds them.

    With `group_by`, a metadata field, documents with the same value there count as one, by the best of them: of the
    parts that an import with `cut` made, `group_by="part_of"` gives the best of each document.

    `k`, `filter`, `where` and `exact` may be given here, or to one call. Other parameters are refused.

    Example:
        retriever = MaxsimdRetriever(client=Maxsimd(), index_id=index_id, load=load, k=5)
        documents = retriever.invoke("how do insects communicate?", k=3, where={"year": {"gte": 2020}})
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    client: Maxsimd
    async_client: AsyncMaxsimd | None = None
    index_id: str
    load: AnyLoad | None = None
    text_field: str | None = None
    group_by: str | None = None
    k: int = 10
    filter: dict[str, Any] | None = None
    where: dict[str, Any] | None = None
    exact: bool | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        narrow = self._narrowed(**options)
        return _documents(retrieve(self.client, self.index_id, self._texts(), query, narrow, self.group_by))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        client = asynchronous(self.client, self.async_client)
        narrow = self._narrowed(**options)
        return _documents(await aretrieve(client, self.index_id, self._texts(), query, narrow, self.group_by))

    def _texts(self) -> TextSource:
        return TextSource.of(self.load, self.text_field)

    def _narrowed(self, **options: Any) -> dict[str, Any]:
        own = {"k": self.k, "filter": self.filter, "where": self.where, "exact": self.exact}
        chosen = {**own, **{name: option for name, option in options.items() if option is not None}}
        return narrowed(chosen.pop("k"), **chosen)


class MaxsimdReranker(BaseDocumentCompressor):
    """The `top_n` best documents, ranked by the service, which stores nothing of them.

    Example:
        reranker = MaxsimdReranker(client=Maxsimd(), top_n=3)
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    client: Maxsimd
    async_client: AsyncMaxsimd | None = None
    top_n: int = 10

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The best documents, best first, each with a `relevance_score` in its metadata.

        Example:
            best, *_ = reranker.compress_documents(documents, "largest animal")
        """
        ranked = rerank(self.client, query, [document.page_content for document in documents], self.top_n)
        return [_scored(documents[at], score) for at, score in ranked]

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """`compress_documents` for asyncio.

        Example:
            best, *_ = await reranker.acompress_documents(documents, "largest animal")
        """
        texts = [document.page_content for document in documents]
        ranked = await arerank(asynchronous(self.client, self.async_client), query, texts, self.top_n)
        return [_scored(documents[at], score) for at, score in ranked]


class MaxsimdVectorStore(VectorStore):
    """An index of the service, and a store of yours for the documents, because the service keeps no texts.

    `documents` is any `BaseStore[str, Document]`. Hits that it does not have are left out. The service encodes texts
    itself, so there is no embedding model, and no search by vector or by maximal marginal relevance.

    Example:
        store = MaxsimdVectorStore(Maxsimd(), index_id, InMemoryStore())
        retriever = store.as_retriever(search_kwargs={"k": 3})
    """

    def __init__(
        self,
        client: Maxsimd,
        index_id: UUID | str,
        documents: BaseStore[str, Document],
        *,
        async_client: AsyncMaxsimd | None = None,
    ) -> None:
        self._client = client
        self._async_client = asynchronous(client, async_client)
        self._index_id = index_id
        self._documents = documents

    def add_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, batch_size: int | None = None, **kwargs: Any
    ) -> list[str]:
        """Stores documents and gives their ids. A document with an id that exists is replaced.

        LangChain's `index` gives its `batch_size`. It changes nothing, because the client chooses its own.

        Example:
            ids = store.add_documents([Document("Honey bees dance.", metadata={"kind": "insect"})])
        """
        refuse_unknown(kwargs)
        named = _named(documents, ids)
        report = self._client.import_documents(self._index_id, map(_sent, named))
        refused = {failure.doc_id for failure in report.failed}
        self._documents.mset([(doc_id, one) for doc_id, one in named if doc_id not in refused])
        check_stored(report)
        return [doc_id for doc_id, _ in named]

    async def aadd_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, batch_size: int | None = None, **kwargs: Any
    ) -> list[str]:
        """`add_documents` for asyncio.

        Example:
            ids = await store.aadd_documents([Document("Honey bees dance.")], ids=["bee"])
        """
        refuse_unknown(kwargs)
        named = _named(documents, ids)
        report = await self._async_client.import_documents(self._index_id, map(_sent, named))
        refused = {failure.doc_id for failure in report.failed}
        await self._documents.amset([(doc_id, one) for doc_id, one in named if doc_id not in refused])
        check_stored(report)
        return [doc_id for doc_id, _ in named]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Deletes these documents from the index, then from your store. Ids that do not exist are ignored.

        Example:
            store.delete(["bee"])
        """
        refuse_unknown(kwargs)
        for doc_id in _chosen(ids):
            self._client.delete_document(self._index_id, doc_id)
        self._documents.mdelete(_chosen(ids))
        return True

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """`delete` for asyncio.

        Example:
            await store.adelete(["bee"])
        """
        refuse_unknown(kwargs)
        for doc_id in _chosen(ids):
            await self._async_client.delete_document(self._index_id, doc_id)
        await self._documents.amdelete(_chosen(ids))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """These documents from your store; the ones that it does not have are left out.

        Example:
            [bee] = store.get_by_ids(["bee"])
        """
        return [document for document in self._documents.mget(list(ids)) if document is not None]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """`get_by_ids` for asyncio.

        Example:
            [bee] = await store.aget_by_ids(["bee"])
        """
        return [document for document in await self._documents.amget(list(ids)) if document is not None]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The best `k` documents, best first. `filter`, `where` and `exact` narrow the search as in the service's own.

        Example:
            documents = store.similarity_search("how do insects communicate?", k=3, filter={"kind": "insect"})
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """`similarity_search` for asyncio.

        Example:
            documents = await store.asimilarity_search("how do insects communicate?", k=3)
        """
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """`similarity_search` with the MaxSim score of each document. It orders hits, and has no fixed range.

        Example:
            [(document, score)] = store.similarity_search_with_score("largest animal", k=1)
        """
        results = self._client.search(self._index_id, query, **narrowed(k, **kwargs)).results
        return _hits(results, self._documents.mget([result.doc_id for result in results]))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """`similarity_search_with_score` for asyncio.

        Example:
            [(document, score)] = await store.asimilarity_search_with_score("largest animal", k=1)
        """
        results = (await self._async_client.search(self._index_id, query, **narrowed(k, **kwargs))).results
        return _hits(results, await self._documents.amget([result.doc_id for result in results]))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> MaxsimdVectorStore:
        """A store with these texts. `embedding` must be `None`; the other parameters are those of the class.

        Example:
            store = MaxsimdVectorStore.from_texts(
                ["Honey bees dance."], None, client=Maxsimd(), index_id=index_id, documents=InMemoryStore()
            )
        """
        if embedding is not None:
            raise ValueError("the service encodes texts itself: `embedding` must be None")
        store = cls(**kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store


def _documents(found: Iterable[Found]) -> list[Document]:
    return [Document(id=one.doc_id, page_content=one.text, metadata=one.metadata) for one in found]


def _scored(document: Document, score: float) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, "relevance_score": score}})


def _named(documents: Sequence[Document], ids: Sequence[str | None] | None) -> list[tuple[str, Document]]:
    """Copies with an id: the given one, their own, or a new one."""
    given = [document.id for document in documents] if ids is None else ids
    named = [doc_id or str(uuid4()) for doc_id in given]
    pairs = zip(named, documents, strict=True)
    return [(doc_id, document.model_copy(update={"id": doc_id})) for doc_id, document in pairs]


def _sent(named: tuple[str, Document]) -> dict[str, Any]:
    doc_id, document = named
    return {"doc_id": doc_id, "text": document.page_content, "metadata": document.metadata}


def _chosen(ids: list[str] | None) -> list[str]:
    if ids is None:
        raise ValueError("`ids` is missing; `Maxsimd.delete_index` deletes all documents of an index")
    return ids


def _hits(results: Sequence[Result], documents: Sequence[Document | None]) -> list[tuple[Document, float]]:
    pairs = zip(results, documents, strict=True)
    return [(document, result.score) for result, document in pairs if document is not None]
