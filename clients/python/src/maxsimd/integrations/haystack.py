"""A retriever and a document store for Haystack: `pip install "maxsimd[haystack]"`.

Their asynchronous methods use `async_client`; without one, threads run `client`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils import deserialize_callable, serialize_callable
from haystack.utils.filters import document_matches_filter

from ..asynchronous import AsyncMaxsimd
from ..errors import NotFoundError
from ..models import StoredDocument
from ..synchronous import Maxsimd
from .conditions import Condition, all_of, any_of, is_missing, of_field
from .texts import AnyLoad, Found, Load, TextSource, aretrieve, asynchronous, check_stored, narrowed, retrieve


@component
class MaxsimdRetriever:
    """The best passages of the best `top_k` documents of an index, best first.

    `load` gives texts by `doc_id`, or `text_field` is the metadata field that holds them. With `group_by`, a metadata
    field, documents with the same value there count as one, by the best of them: of the parts that an import with `cut`
    made, `group_by="part_of"` gives the best of each document.

    Example:
        retriever = MaxsimdRetriever(Maxsimd(), index_id, load, top_k=5)
        pipeline.add_component("retriever", retriever)
    """

    def __init__(
        self,
        client: Maxsimd,
        index_id: UUID | str,
        load: AnyLoad | None = None,
        *,
        text_field: str | None = None,
        group_by: str | None = None,
        async_client: AsyncMaxsimd | None = None,
        top_k: int = 10,
        exact: bool | None = None,
    ) -> None:
        self._client = client
        self._async_client = asynchronous(client, async_client)
        self._index_id = index_id
        self._texts = TextSource.of(load, text_field)
        self._group_by = group_by
        self._top_k = top_k
        self._exact = exact

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        where: dict[str, Any] | None = None,
    ) -> dict[str, list[Document]]:
        """`filters` are Haystack's, and `where` the conditions of the service's own search. Give one of them.

        Example:
            is_insect = {"field": "meta.kind", "operator": "==", "value": "insect"}
            documents = retriever.run("how do they communicate?", filters=is_insect, top_k=3)["documents"]
        """
        options = self._narrowed(filters, top_k, where)
        return _output(retrieve(self._client, self._index_id, self._texts, query, options, self._group_by))

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        where: dict[str, Any] | None = None,
    ) -> dict[str, list[Document]]:
        """`run` for asyncio.

        Example:
            documents = (await retriever.run_async("how do insects communicate?"))["documents"]
        """
        options = self._narrowed(filters, top_k, where)
        client = self._async_client
        return _output(await aretrieve(client, self._index_id, self._texts, query, options, self._group_by))

    def to_dict(self) -> dict[str, Any]:
        """For the file of a pipeline. It has the name of `load`, and no address and no key.

        Example:
            data = retriever.to_dict()
        """
        return default_to_dict(
            self,
            index_id=str(self._index_id),
            load=_named(self._texts.load),
            text_field=self._texts.field,
            group_by=self._group_by,
            top_k=self._top_k,
            exact=self._exact,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MaxsimdRetriever:
        """From such a file. The clients read MAXSIMD_URL and MAXSIMD_API_KEY.

        Example:
            retriever = MaxsimdRetriever.from_dict(data)
        """
        return default_from_dict(cls, _with_clients(data))

    def _narrowed(
        self, filters: dict[str, Any] | None, top_k: int | None, where: dict[str, Any] | None
    ) -> dict[str, Any]:
        if filters and where:
            raise FilterError("give either `filters` or `where`")
        conditions = _condition(filters) if filters else where
        return narrowed(self._top_k if top_k is None else top_k, where=conditions, exact=self._exact)


class MaxsimdDocumentStore:
    """The documents of an index. The service keeps no texts: `content` comes from your `load`, or is `None`.

    Example:
        store = MaxsimdDocumentStore(Maxsimd(), index_id, load)
        DocumentWriter(store).run([Document(id="bee", content="Honey bees dance.", meta={"kind": "insect"})])
    """

    def __init__(
        self,
        client: Maxsimd,
        index_id: UUID | str,
        load: Load | None = None,
        *,
        async_client: AsyncMaxsimd | None = None,
    ) -> None:
        self._client = client
        self._async_client = asynchronous(client, async_client)
        self._index_id = index_id
        self._load = load

    def to_dict(self) -> dict[str, Any]:
        """For the file of a pipeline. It has the name of `load`, and no address and no key.

        Example:
            data = store.to_dict()
        """
        return default_to_dict(self, index_id=str(self._index_id), load=_named(self._load))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MaxsimdDocumentStore:
        """From such a file. The clients read MAXSIMD_URL and MAXSIMD_API_KEY.

        Example:
            store = MaxsimdDocumentStore.from_dict(data)
        """
        return default_from_dict(cls, _with_clients(data))

    def count_documents(self) -> int:
        """The number of documents in the index.

        Example:
            print(store.count_documents())
        """
        return self._client.count_documents(self._index_id).documents

    async def count_documents_async(self) -> int:
        """`count_documents` for asyncio.

        Example:
            print(await store.count_documents_async())
        """
        return (await self._async_client.count_documents(self._index_id)).documents

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """The documents that match, by id. It reads the whole list of the index; a retriever is faster.

        Example:
            drafts = store.filter_documents({"field": "meta.status", "operator": "==", "value": "draft"})
        """
        return self._matching(list(self._client.list_documents(self._index_id)), filters)

    async def filter_documents_async(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """`filter_documents` for asyncio.

        Example:
            documents = await store.filter_documents_async()
        """
        stored = [document async for document in self._async_client.list_documents(self._index_id)]
        return await asyncio.to_thread(self._matching, stored, filters)

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Stores documents and gives their number. `NONE` means `OVERWRITE`. Embeddings are not used.

        Example:
            store.write_documents([Document(id="bee", content="Honey bees dance.")])
        """
        _check(documents)
        known = {document.id for document in documents if self._is_known(document.id)} if _asks(policy) else set()
        chosen = _chosen(documents, known, policy)
        check_stored(self._client.import_documents(self._index_id, map(_sent, chosen)))
        return len(chosen)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """`write_documents` for asyncio.

        Example:
            await store.write_documents_async([Document(id="bee", content="Honey bees dance.")])
        """
        _check(documents)
        asked = documents if _asks(policy) else []
        known = {document.id for document in asked if await self._is_known_async(document.id)}
        chosen = _chosen(documents, known, policy)
        check_stored(await self._async_client.import_documents(self._index_id, map(_sent, chosen)))
        return len(chosen)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Deletes these documents. Ids that do not exist are ignored.

        Example:
            store.delete_documents(["bee"])
        """
        for doc_id in document_ids:
            self._client.delete_document(self._index_id, doc_id)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """`delete_documents` for asyncio.

        Example:
            await store.delete_documents_async(["bee"])
        """
        for doc_id in document_ids:
            await self._async_client.delete_document(self._index_id, doc_id)

    def _matching(self, stored: Sequence[StoredDocument], filters: dict[str, Any] | None) -> list[Document]:
        texts: Mapping[str, str] = self._load([one.doc_id for one in stored]) if self._load and stored else {}
        documents = [Document(id=one.doc_id, content=texts.get(one.doc_id), meta=one.metadata) for one in stored]
        if not filters:
            return documents
        if "operator" not in filters:
            raise FilterError("a filter has `operator`, and `conditions`, or `field` and `value`")
        return [document for document in documents if document_matches_filter(filters, document)]

    def _is_known(self, doc_id: str) -> bool:
        try:
            self._client.get_document(self._index_id, doc_id)
        except NotFoundError:
            return False
        return True

    async def _is_known_async(self, doc_id: str) -> bool:
        try:
            await self._async_client.get_document(self._index_id, doc_id)
        except NotFoundError:
            return False
        return True


def _named(load: AnyLoad | None) -> str | None:
    return None if load is None else serialize_callable(load)


def _with_clients(data: dict[str, Any]) -> dict[str, Any]:
    """The description of a part in a file, with the clients and the function that it needs to be made."""
    given = data["init_parameters"]
    load = None if given.get("load") is None else deserialize_callable(given["load"])
    return {**data, "init_parameters": {**given, "client": Maxsimd(), "async_client": AsyncMaxsimd(), "load": load}}


_OPERATORS: dict[str, Callable[[Any], dict[str, Any]]] = {
    # A field that is missing equals `None`.
    "==": lambda value: is_missing(None) if value is None else {"in": [value]},
    "!=": lambda value: {"not": {"in": [value]}, **({"exists": True} if value is None else {})},
    ">": lambda value: {"gt": value},
    ">=": lambda value: {"gte": value},
    "<": lambda value: {"lt": value},
    "<=": lambda value: {"lte": value},
    "in": lambda value: is_missing(*value) if None in value else {"in": value},
    "not in": lambda value: {"not": {"in": value}, **({"exists": True} if None in value else {})},
}


def _condition(filters: Mapping[str, Any]) -> Condition:
    """The service's words for Haystack's filters."""
    try:
        operator = filters["operator"]
        if operator in ("AND", "OR"):
            parts = map(_condition, filters["conditions"])
            return all_of(parts) if operator == "AND" else any_of(parts)
        return of_field(filters["field"].removeprefix("meta."), _OPERATORS[operator](filters["value"]))
    except KeyError as error:
        raise FilterError(f"a search knows no filter with or without {error}; `where` takes the service's own") from error
    except ValueError as error:
        raise FilterError(str(error)) from error


def _output(found: Iterable[Found]) -> dict[str, list[Document]]:
    documents = [Document(id=one.doc_id, content=one.text, meta=one.metadata, score=one.score) for one in found]
    return {"documents": documents}


def _check(documents: Any) -> None:
    if not isinstance(documents, list) or not all(isinstance(one, Document) for one in documents):
        raise ValueError("`documents` must be a list of haystack.Document")


def _asks(policy: DuplicatePolicy) -> bool:
    """Whether it matters which documents exist."""
    return policy in (DuplicatePolicy.FAIL, DuplicatePolicy.SKIP)


def _chosen(documents: Sequence[Document], known: set[str], policy: DuplicatePolicy) -> list[Document]:
    if policy == DuplicatePolicy.FAIL and known:
        raise DuplicateDocumentError(f"these documents exist: {', '.join(sorted(known))}")
    return [document for document in documents if document.id not in known]


def _sent(document: Document) -> dict[str, Any]:
    return {"doc_id": document.id, "text": document.content or "", "metadata": document.meta}
