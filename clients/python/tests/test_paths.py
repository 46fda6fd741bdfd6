"""An id reaches the service as it is, or nothing is sent: a real server records what arrives."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from recorder import recorder

from maxsimd import AsyncMaxsimd, ImportStopped, Maxsimd, MaxsimdError

INDEX = "ffffffff-ffff-4fff-8fff-ffffffffffff"
NO_IDS = ["", ".", "..", "\ud83d"]
DOCUMENTS = [{"doc_id": "d", "text": "t"}]

OF_DOCUMENT: dict[str, Callable[[Any, str], Any]] = {
    "get_document": lambda client, doc_id: client.get_document(INDEX, doc_id),
    "update_metadata": lambda client, doc_id: client.update_metadata(INDEX, doc_id, {}),
    "merge_metadata": lambda client, doc_id: client.merge_metadata(INDEX, doc_id, {}),
    "set_expiry": lambda client, doc_id: client.set_expiry(INDEX, doc_id, None),
    "delete_document": lambda client, doc_id: client.delete_document(INDEX, doc_id),
}
OF_INDEX: dict[str, Callable[[Any, str], Any]] = {
    "get_index": lambda client, index_id: client.get_index(index_id),
    "rename_index": lambda client, index_id: client.rename_index(index_id, "n"),
    "set_match_fields": lambda client, index_id: client.set_match_fields(index_id, []),
    "swap_index_names": lambda client, index_id: client.swap_index_names(index_id, INDEX),
    "delete_index": lambda client, index_id: client.delete_index(index_id),
    "upsert": lambda client, index_id: client.upsert(index_id, DOCUMENTS),
    "list_documents": lambda client, index_id: client.list_documents(index_id),
    "get_document": lambda client, index_id: client.get_document(index_id, "d"),
    "count_documents": lambda client, index_id: client.count_documents(index_id),
    "update_metadata": lambda client, index_id: client.update_metadata(index_id, "d", {}),
    "merge_metadata": lambda client, index_id: client.merge_metadata(index_id, "d", {}),
    "facets": lambda client, index_id: client.facets(index_id, ["a"]),
    "set_expiry": lambda client, index_id: client.set_expiry(index_id, "d", None),
    "delete_document": lambda client, index_id: client.delete_document(index_id, "d"),
    "delete_documents": lambda client, index_id: client.delete_documents(index_id, filter={"a": 1}),
    "search": lambda client, index_id: client.search(index_id, "q"),
    "query": lambda client, index_id: client.query(index_id, [{"query": "q"}]),
    "import_documents": lambda client, index_id: client.import_documents(index_id, DOCUMENTS),
}


def test_every_method_with_an_id_is_in_the_tables() -> None:
    for client in (Maxsimd, AsyncMaxsimd):
        methods = inspect.getmembers(client, inspect.isfunction)
        parameters = {name: inspect.signature(method).parameters for name, method in methods if name[0] != "_"}
        assert {name for name, taken in parameters.items() if "index_id" in taken} == set(OF_INDEX)
        assert {name for name, taken in parameters.items() if "doc_id" in taken} == set(OF_DOCUMENT)


def each(of: dict[str, Callable[[Any, str], Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", of.values(), ids=of.keys())


def refused(call: Callable[[Any, str], Any], given: str) -> None:
    with recorder() as service:
        with Maxsimd(service.url, "k") as client, pytest.raises(MaxsimdError) as error:
            result = call(client, given)
            if inspect.isgenerator(result):
                next(result)
        assert "id" in str(error.value)

        async def scenario() -> None:
            async with AsyncMaxsimd(service.url, "k") as client:
                result = call(client, given)
                await (anext(result) if inspect.isasyncgen(result) else result)

        with pytest.raises(MaxsimdError):
            asyncio.run(scenario())
        assert service.requests == []


@each(OF_DOCUMENT)
@pytest.mark.parametrize("doc_id", NO_IDS, ids=ascii)
def test_what_is_no_document_id_is_refused_and_nothing_is_sent(call: Callable[[Any, str], Any], doc_id: str) -> None:
    refused(call, doc_id)


@each(OF_INDEX)
@pytest.mark.parametrize("index_id", NO_IDS, ids=ascii)
def test_what_is_no_index_id_is_refused_and_nothing_is_sent(call: Callable[[Any, str], Any], index_id: str) -> None:
    refused(call, index_id)


def test_an_import_says_which_id_stopped_it() -> None:
    with recorder() as service, Maxsimd(service.url, "k") as client:
        with pytest.raises(ImportStopped) as stopped:
            client.import_documents("..", DOCUMENTS)
        assert '".."' in str(stopped.value)
        assert service.requests == []


@pytest.mark.parametrize("doc_id", ["%2e%2e", "%2E", "...", ". ", "a/../b", "/..", "..\\", "?x#y", "é€", "\x00\n", "%"])
def test_every_other_id_arrives_as_it_is(doc_id: str) -> None:
    with recorder() as service:
        with Maxsimd(service.url, "k") as client:
            assert client.delete_document(INDEX, doc_id).deleted is True

        async def scenario() -> None:
            async with AsyncMaxsimd(service.url, "k") as client:
                assert (await client.delete_document(INDEX, doc_id)).deleted is True

        asyncio.run(scenario())
        first, second = service.requests
        assert first == second
        method, target = first
        segments = target.split("/")
        assert (method, segments[:-1]) == ("DELETE", ["", "v1", "indexes", INDEX, "documents"])
        assert segments[-1] == "%252e%252e" or doc_id != "%2e%2e"
        assert unquote(segments[-1]) == doc_id
