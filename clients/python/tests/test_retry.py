"""What both clients do when the service refuses, breaks or stays silent: a transport stands in for it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from maxsimd import (
    APIError,
    AsyncMaxsimd,
    ConnectionFailed,
    ImportStopped,
    Maxsimd,
    MaxsimdError,
    ServiceUnavailableError,
    UsageLimitError,
)
from maxsimd.retry import repeat_delay

INDEX = "ffffffff-ffff-4fff-8fff-ffffffffffff"
USAGE = {"input_tokens": 1, "document_count": 0, "chunk_count": 0, "candidate_count": 0, "latency_ms": 1}
RANKED = {"results": [], "usage": USAGE, "added_later": {"nested": [1]}}

Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Double:
    """Answers from a list, the last entry for ever after."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []
        self.times: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.times.append(time.monotonic())
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, httpx.Response) else reply(request)

    def client(self, **options: Any) -> Maxsimd:
        return Maxsimd("http://service", "qkv_live_x", transport=httpx.MockTransport(self), **options)


def error(status: int, code: str, retry_after: int | None = None) -> httpx.Response:
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return httpx.Response(status, headers=headers, json={"error": {"code": code, "message": "m"}})


def upserted(request: httpx.Request) -> httpx.Response:
    count = request.content.count(b'"doc_id"')
    answer = {"index_id": INDEX, "upserted_documents": count, "upserted_chunks": count, "failed": [], "usage": USAGE}
    return httpx.Response(200, json=answer)


def test_a_safe_request_is_sent_again_no_sooner_than_retry_after() -> None:
    double = Double(error(503, "service_unavailable", 1), httpx.Response(200, json=RANKED))
    assert double.client().search(INDEX, "q").results == []
    assert double.times[1] - double.times[0] >= 0.99


def test_a_safe_request_is_sent_again_after_a_lost_connection() -> None:
    double = Double(httpx.ReadError("gone"), httpx.Response(200, json=RANKED))
    double.client().search(INDEX, "q")
    assert len(double.requests) == 2


def test_a_request_is_given_up_when_the_next_wait_would_pass_the_bound() -> None:
    double = Double(error(503, "service_unavailable", 3600))
    with pytest.raises(ServiceUnavailableError) as given_up:
        double.client().usage()
    assert given_up.value.retry_after_seconds == 3600
    assert len(double.requests) == 1


def test_a_batch_of_an_import_is_tried_once_more_at_the_bound() -> None:
    double = Double(error(503, "service_unavailable", 3600), upserted)
    report = double.client(retry_seconds_max=0.3).import_documents(INDEX, [{"doc_id": "a", "text": "t"}])
    assert report.documents == 1
    assert double.times[1] - double.times[0] < 5


def test_creating_an_index_waits_for_a_model_that_is_being_loaded() -> None:
    index = {
        "id": INDEX,
        "name": "one",
        "model": "m",
        "model_version": "1",
        "text_retention": "none",
        "chunking": {"strategy": "token_window", "max_tokens": 8, "overlap_tokens": 1, "minimum_chunk_tokens": 2},
        "metadata_schema": {},
        "status": "ready",
        "created_at": "2026-01-01T00:00:00Z",
    }
    double = Double(error(503, "service_unavailable", 1), httpx.Response(200, json=index))
    assert double.client().create_index("one").name == "one"
    refused = Double(error(503, "service_unavailable", 1))
    with pytest.raises(ServiceUnavailableError):
        refused.client().delete_index(INDEX)
    assert len(refused.requests) == 1


@pytest.mark.parametrize("reply", [error(500, "internal_error"), httpx.ReadError("gone")])
def test_creating_and_deleting_an_index_are_sent_once(reply: Reply) -> None:
    double = Double(reply)
    with pytest.raises(MaxsimdError):
        double.client().create_index("one")
    with pytest.raises(MaxsimdError):
        double.client().delete_index(INDEX)
    assert len(double.requests) == 2


def test_the_used_up_allowance_is_never_tried_again() -> None:
    double = Double(error(429, "usage_limit_exceeded", 1))
    with pytest.raises(UsageLimitError):
        double.client().search(INDEX, "q")
    assert len(double.requests) == 1


def test_no_answer_is_an_error_that_says_whether_the_request_may_have_arrived() -> None:
    with pytest.raises(ConnectionFailed) as silent:
        Double(httpx.ReadTimeout("slow")).client(retry_seconds_max=0).usage()
    assert (silent.value.code, silent.value.maybe_received) == ("timeout", True)
    with pytest.raises(ConnectionFailed) as missing:
        Double(httpx.ConnectError("refused")).client(retry_seconds_max=0).usage()
    assert (missing.value.code, missing.value.maybe_received) == ("connection_failed", False)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>"),
        httpx.Response(404, text="<html>"),
        httpx.Response(307, headers={"location": "http://elsewhere/"}),
        httpx.Response(200, json={"results": "none"}),
    ],
)
def test_what_is_not_an_answer_of_the_service_is_an_error(answer: httpx.Response) -> None:
    double = Double(answer)
    with pytest.raises(APIError) as strange:
        double.client().search(INDEX, "q")
    assert (strange.value.status, strange.value.code) == (answer.status_code, "unexpected_response")
    assert len(double.requests) == 1


def test_an_import_stops_at_a_failure_that_concerns_no_single_document() -> None:
    documents = [{"doc_id": f"d{number}", "text": "t"} for number in range(400)]
    double = Double(upserted, upserted, error(401, "authentication_failed"))
    with pytest.raises(ImportStopped) as stopped:
        double.client().import_documents(INDEX, documents, concurrency=1)
    assert stopped.value.report.documents == 100
    assert isinstance(stopped.value.__cause__, APIError)
    assert len(double.requests) == 3

    async def scenario() -> None:
        double = Double(upserted, upserted, error(401, "authentication_failed"))
        client = AsyncMaxsimd("http://service", "qkv_live_x", transport=httpx.MockTransport(double))
        with pytest.raises(ImportStopped) as stopped:
            await client.import_documents(INDEX, documents, concurrency=1)
        assert stopped.value.report.documents == 100

    asyncio.run(scenario())


def test_the_client_names_itself_and_keeps_its_key_out_of_errors() -> None:
    double = Double(httpx.Response(200, json=RANKED))
    double.client(user_agent="shop/2").search(INDEX, "q")
    assert double.requests[0].headers["user-agent"].startswith("shop/2 maxsimd-python/0.1.0")
    with pytest.raises(MaxsimdError) as malformed:
        Maxsimd("http://service", "secret\nsecret")
    assert "secret" not in str(malformed.value)
    with pytest.raises(MaxsimdError):
        Maxsimd("ftp://service", "k")


def test_half_an_emoji_is_left_to_the_service() -> None:
    double = Double(httpx.Response(200, json=RANKED))
    double.client().search(INDEX, "half \ud83d")
    assert double.requests[0].content == b'{"query":"half \\ud83d"}'


def test_an_answer_with_half_an_emoji_is_read_as_it_was_given() -> None:
    metadata = {"\udc00": [{"cut": "half \ud83d"}], "large": 2**70}
    document = {"doc_id": "d", "metadata": metadata, "chunk_count": 1}
    result = {"doc_id": "d", "chunk_id": "c", "chunk_index": 0, "score": 1.5, "metadata": metadata}
    ranked = {**RANKED, "results": [result]}
    of_route = {
        "documents": {"data": [document], "next_cursor": None},
        "search": ranked,
        "query": {"results": [ranked], "usage": USAGE},
    }

    def reply(request: httpx.Request) -> httpx.Response:
        route = request.url.path.rsplit("/", 1)[1]
        return httpx.Response(200, content=json.dumps(of_route.get(route, document)))

    double = Double(reply)
    client = double.client()
    assert client.get_document(INDEX, "d").metadata == metadata
    assert client.update_metadata(INDEX, "d", metadata).metadata == metadata
    assert json.loads(double.requests[-1].content) == {"metadata": metadata}
    assert [one.metadata for one in client.list_documents(INDEX)] == [metadata]
    assert client.search(INDEX, "q").results[0].metadata == metadata
    assert client.query(INDEX, [{"query": "q"}]).results[0].results[0].metadata == metadata

    async def scenario() -> None:
        client = AsyncMaxsimd("http://service", "qkv_live_x", transport=httpx.MockTransport(Double(reply)))
        assert (await client.get_document(INDEX, "d")).metadata == metadata

    asyncio.run(scenario())


def test_delays_grow_and_stay_bounded() -> None:
    lost = ConnectionFailed("m", code="timeout", maybe_received=True)

    def delay(attempts: int) -> float | None:
        return repeat_delay(lost, attempts=attempts, is_safe=True, random=lambda: 1.0)

    assert [delay(attempts) for attempts in (1, 2, 3, 20)] == [0.6, 1.1, 2.1, 30.1]
    assert repeat_delay(lost, attempts=1, is_safe=False, random=lambda: 0.0) is None
