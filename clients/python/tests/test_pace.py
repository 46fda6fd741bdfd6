"""How an import adapts to a service that is too slow. The TypeScript client passes the same cases of its pace."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from maxsimd import APIError, AsyncMaxsimd, ImportReport, ImportStopped, Maxsimd, asynchronous, synchronous
from maxsimd.pace import Pace

CASES = json.loads((Path(__file__).parents[3] / "test/clients/cases/pace.json").read_text())
INDEX = "ffffffff-ffff-4fff-8fff-ffffffffffff"
USAGE = {"input_tokens": 1, "document_count": 0, "chunk_count": 0, "candidate_count": 0, "latency_ms": 1}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_pace_of_an_import(case: dict[str, Any]) -> None:
    pace = Pace(case["requestsMax"])
    for step in case["steps"]:
        for _ in range(step.get("stored", 0)):
            pace.stored()
        for _ in range(step.get("refused", 0)):
            pace.refused()
        if "late" in step:
            assert pace.late(**step["late"]) == step["verdict"]
        assert (pace.requests, pace.documents) == (step["requests"], step["documents"])


class SlowService:
    """Refuses a request late if `is_too_much` says so of its ids and of the documents in flight."""

    timeout = 0.02
    """Of the client, which takes an answer after more than half of it for late."""

    def __init__(self, is_too_much: Callable[[list[str], int], bool]) -> None:
        self._is_too_much = is_too_much
        self._lock = threading.Lock()
        self._in_flight = 0
        self.sent: list[list[str]] = []
        self.stored: dict[str, str] = {}

    def _arrive(self, request: httpx.Request) -> list[dict[str, str]]:
        documents: list[dict[str, str]] = json.loads(request.content)["documents"]
        with self._lock:
            self.sent.append([document["doc_id"] for document in documents])
            self._in_flight += len(documents)
        return documents

    def _answer(self, documents: list[dict[str, str]]) -> httpx.Response:
        with self._lock:
            is_too_much = self._is_too_much([document["doc_id"] for document in documents], self._in_flight)
        return httpx.Response(503, json={"error": {"code": "service_unavailable", "message": "slow"}}) if is_too_much else self._store(documents)

    def _store(self, documents: list[dict[str, str]]) -> httpx.Response:
        with self._lock:
            self.stored.update((document["doc_id"], document["text"]) for document in documents)
        count = len(documents)
        answer = {"index_id": INDEX, "upserted_documents": count, "upserted_chunks": count, "failed": [], "usage": USAGE}
        return httpx.Response(200, json=answer)

    def _leave(self, documents: list[dict[str, str]]) -> None:
        with self._lock:
            self._in_flight -= len(documents)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        documents = self._arrive(request)
        time.sleep(self.timeout)
        response = self._answer(documents)
        time.sleep(self.timeout)
        self._leave(documents)
        return response

    async def in_loop(self, request: httpx.Request) -> httpx.Response:
        documents = self._arrive(request)
        await asyncio.sleep(self.timeout)
        response = self._answer(documents)
        await asyncio.sleep(self.timeout)
        self._leave(documents)
        return response


Run = Callable[[SlowService, list[dict[str, Any]], int], ImportReport]


def by_threads(service: SlowService, documents: list[dict[str, Any]], concurrency: int) -> ImportReport:
    with Maxsimd("http://service", "k", timeout=service.timeout, transport=httpx.MockTransport(service)) as client:
        return client.import_documents(INDEX, documents, concurrency=concurrency)


def by_tasks(service: SlowService, documents: list[dict[str, Any]], concurrency: int) -> ImportReport:
    async def scenario() -> ImportReport:
        transport = httpx.MockTransport(service.in_loop)
        async with AsyncMaxsimd("http://service", "k", timeout=service.timeout, transport=transport) as client:
            return await client.import_documents(INDEX, documents, concurrency=concurrency)

    return asyncio.run(scenario())


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (synchronous, asynchronous):
        monkeypatch.setattr(module, "random", lambda: 0.0)


def documents(count: int) -> list[dict[str, Any]]:
    return [{"doc_id": f"d{number}", "text": "t"} for number in range(count)]


both = pytest.mark.parametrize("run", [by_threads, by_tasks])


@both
def test_it_sends_fewer_requests_at_once_then_smaller_ones(run: Run) -> None:
    service = SlowService(lambda _ids, in_flight: in_flight > 12)
    report = run(service, documents(300), 4)
    assert (report.documents, report.failed, len(service.stored)) == (300, [], 300)
    sizes = [len(ids) for ids in service.sent]
    # The others at the beginning may be cut already.
    assert sizes[0] == 50
    assert max(sizes[-10:]) <= 12


@both
@pytest.mark.parametrize("most", [1, 7, 60])
def test_it_ends_where_no_more_documents_at_once_are_stored(run: Run, most: int) -> None:
    service = SlowService(lambda _ids, in_flight: in_flight > most)
    assert run(service, documents(120), 8).documents == 120


@both
def test_a_document_that_comes_late_alone_three_times_fails(run: Run) -> None:
    service = SlowService(lambda ids, _in_flight: "d70" in ids)
    report = run(service, documents(200), 4)
    assert report.documents == 199
    assert [failure.doc_id for failure in report.failed] == ["d70"]
    assert report.failed[0].error.startswith("sent alone three times: 503 ")
    assert service.sent.count(["d70"]) == 3


@both
def test_three_such_documents_in_a_row_end_it(run: Run) -> None:
    service = SlowService(lambda _ids, _in_flight: True)
    with pytest.raises(ImportStopped) as stopped:
        run(service, documents(100), 4)
    assert isinstance(stopped.value.__cause__, APIError)
    assert stopped.value.__cause__.status == 503
    assert len(stopped.value.report.failed) == 2


@both
def test_the_last_document_of_a_repeated_id_stays(run: Run) -> None:
    service = SlowService(lambda ids, _in_flight: len(ids) > 2)
    run(service, [*documents(9), {"doc_id": "d8", "text": "last"}, {"doc_id": "d0", "text": "last"}], 4)
    assert (service.stored["d0"], service.stored["d8"]) == ("last", "last")


def test_an_answer_that_came_sooner_is_not_late() -> None:
    replies = [503, 408]
    sent: list[int] = []

    def reply(request: httpx.Request) -> httpx.Response:
        count = len(json.loads(request.content)["documents"])
        sent.append(count)
        if replies:
            return httpx.Response(replies.pop(), json={"error": {"code": "service_unavailable", "message": "m"}})
        answer = {"index_id": INDEX, "upserted_documents": count, "upserted_chunks": count, "failed": [], "usage": USAGE}
        return httpx.Response(200, json=answer)

    with Maxsimd("http://service", "k", transport=httpx.MockTransport(reply)) as client:
        client.import_documents(INDEX, documents(8))
    assert sent == [8, 8, 8]


def test_a_time_limit_of_the_client_is_late() -> None:
    sent: list[int] = []

    def reply(request: httpx.Request) -> httpx.Response:
        count = len(json.loads(request.content)["documents"])
        sent.append(count)
        if count > 4:
            time.sleep(0.02)
            raise httpx.ReadTimeout("slow")
        answer = {"index_id": INDEX, "upserted_documents": count, "upserted_chunks": count, "failed": [], "usage": USAGE}
        return httpx.Response(200, json=answer)

    with Maxsimd("http://service", "k", timeout=0.02, transport=httpx.MockTransport(reply)) as client:
        assert client.import_documents(INDEX, documents(8)).documents == 8
    assert sent == [8, 4, 4]


def test_an_import_that_may_make_one_attempt_alone_ends() -> None:
    service = SlowService(lambda _ids, _in_flight: True)
    transport = httpx.MockTransport(service)
    with Maxsimd("http://service", "k", timeout=0.02, retry_seconds_max=0, transport=transport) as client:
        with pytest.raises(ImportStopped):
            client.import_documents(INDEX, documents(8))
    assert [len(ids) for ids in service.sent] == [8]
