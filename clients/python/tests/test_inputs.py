"""What no request can carry is an error of the client, and nothing is sent."""

from __future__ import annotations

import asyncio
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import pytest
from recorder import recorder

from maxsimd import AsyncMaxsimd, DocumentInput, ImportReport, Maxsimd, MaxsimdError

INDEX = "ffffffff-ffff-4fff-8fff-ffffffffffff"
Client = Callable[..., Maxsimd | AsyncMaxsimd]
both = pytest.mark.parametrize("client", [Maxsimd, AsyncMaxsimd])


@both
@pytest.mark.parametrize("user_agent", ["é", "€", "a\nb", "a\x00", "\ud83d", "", " a", "\x7f"], ids=ascii)
def test_a_user_agent_that_no_header_can_carry(client: Client, user_agent: str) -> None:
    with pytest.raises(MaxsimdError, match="user agent"):
        client("http://127.0.0.1:1", "k", user_agent=user_agent)


@both
@pytest.mark.parametrize("key", ["", "é", "a\nb", "a b", "\ud83d", "k\x7f"], ids=ascii)
def test_a_key_that_no_header_can_carry(client: Client, key: str) -> None:
    with pytest.raises(MaxsimdError, match="API key") as error:
        client("http://127.0.0.1:1", key)
    assert key == "" or key not in str(error.value)


@both
@pytest.mark.parametrize(
    "url",
    ["", "host", "ftp://h", "http://", "http://[::1", "http://h\n", "http://h:x", "http://h:99999", "http://xn--/"]
    + ["http://u:p@h", "http://h?a=1", "http://h#a", "http://h/\ud83d", "http://" + "h" * 70_000],
    ids=lambda url: ascii(url[:20]),
)
def test_an_address_that_is_none(client: Client, url: str) -> None:
    with pytest.raises(MaxsimdError, match="address"):
        client(url, "k")


def test_an_address_with_an_empty_query_or_a_slash_at_its_end() -> None:
    with recorder() as service:
        for end in ("/", "?", "/?", "#", "/below/"):
            with Maxsimd(service.url + end, "k") as client:
                client.delete_index(INDEX)
        assert [target for _, target in service.requests] == [f"/v1/indexes/{INDEX}"] * 4 + [
            f"/below/v1/indexes/{INDEX}"
        ]


@both
@pytest.mark.parametrize("proxy", ["strange://h", "socks5://h:1"])
def test_a_proxy_of_the_environment_that_is_none(
    client: Client, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(MaxsimdError, match="proxy"):
        client("http://service.test", "k")


@Integral.register
class Whole:
    """As an integer of numpy: one by its interface, and no int."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __int__(self) -> int:
        return self._value


@Real.register
class Single:
    """As a float32 of numpy, whose value has more digits than its text."""

    def __init__(self, value: float) -> None:
        self._value = value

    def __float__(self) -> float:
        return float(struct.unpack("f", struct.pack("f", self._value))[0])

    def __str__(self) -> str:
        return str(self._value)


class Level(Enum):
    HIGH = "high"


@dataclass
class Point:
    x: int


CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE
DEEP: dict[str, Any] = {}
for _ in range(100_000):
    DEEP = {"d": DEEP}


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"n": math.nan}, ".n"),
        ({"n": [1.5, -math.inf]}, ".n.1"),
        (CIRCLE, ".self.self.self"),
        (DEEP, ".d.d.d"),
        ({"n": object()}, ".n"),
        ({"n": b"\xff"}, ".n"),
        ({"n": [{"set": {1}}]}, ".n.0.set"),
        ({"n": Decimal("1.10")}, ".n"),
        ({"n": Fraction(1, 3)}, ".n"),
        ({"n": 1j}, ".n"),
        ({"n": (one for one in "ab")}, ".n"),
        ({"n": Single(math.nan)}, ".n"),
        ({"n": {(1, 2): 3}}, ".n"),
        ({"n": {math.nan: 3}}, ".n"),
    ],
    ids=["nan", "infinity", "circle", "deep", "object", "bytes", "set", "decimal", "fraction", "complex", "generator"]
    + ["numpy nan", "key", "nan key"],
)
def test_metadata_that_json_cannot_hold(metadata: dict[str, Any], place: str) -> None:
    plain = {"doc_id": "d", "text": "t", "metadata": metadata}
    stored = {"doc_id": "other", "text": "t"}
    with recorder() as service:
        with Maxsimd(service.url, "k") as client:
            documents: list[Any] = [plain]
            if isinstance(next(iter(metadata)), str) and metadata is not DEEP:
                documents.append(DocumentInput(doc_id="d", text="t").model_copy(update={"metadata": metadata}))
            for document in documents:
                in_list = rf"^documents\.1\.metadata{re.escape(place)}.* \(doc_id \"d\"\): .*JSON"
                with pytest.raises(MaxsimdError, match=in_list):
                    client.upsert(INDEX, [stored, document])
                with pytest.raises(MaxsimdError, match=in_list):
                    client.score("q", [stored, document])
            with pytest.raises(MaxsimdError, match=rf"^metadata{re.escape(place)}.*JSON"):
                client.update_metadata(INDEX, "d", metadata)
            with pytest.raises(MaxsimdError, match=rf"^filter{re.escape(place)}.*JSON"):
                client.search(INDEX, "q", filter=metadata)
            assert service.requests == []

        async def scenario() -> None:
            async with AsyncMaxsimd(service.url, "k") as client:
                with pytest.raises(MaxsimdError, match="JSON"):
                    await client.upsert(INDEX, [plain])

        asyncio.run(scenario())
        assert service.requests == []


@pytest.mark.parametrize(
    ("refused", "path"),
    [
        ({"metadata": {"n": math.nan}}, "metadata.n"),
        ({"metadata": {"n": {1, 2}}}, "metadata.n"),
        ({"metadata": CIRCLE}, "metadata.self"),
        ({"expires_at": datetime(2030, 1, 1)}, "expires_at"),
        ({"expires_at": date(2030, 1, 1)}, "expires_at"),
    ],
    ids=["nan", "set", "circle", "no zone", "a day"],
)
def test_an_import_goes_on_beside_a_document_that_no_request_can_carry(refused: dict[str, Any], path: str) -> None:
    usage = {"input_tokens": 1, "document_count": 2, "chunk_count": 2, "candidate_count": 0, "latency_ms": 1}
    answer = {"index_id": INDEX, "upserted_documents": 2, "upserted_chunks": 2, "failed": [], "usage": usage}
    given = [{"doc_id": "a", "text": "t"}, {"doc_id": "b", "text": "t", **refused}, {"doc_id": "c", "text": "t"}]
    reports: list[ImportReport] = []
    with recorder() as service:
        service.answer = answer
        with Maxsimd(service.url, "k") as client:
            reports.append(client.import_documents(INDEX, given))

        async def scenario() -> None:
            async with AsyncMaxsimd(service.url, "k") as client:
                reports.append(await client.import_documents(INDEX, given))

        asyncio.run(scenario())
        assert service.bodies == [{"documents": [given[0], given[2]]}] * 2
    for report in reports:
        assert (report.documents, [failure.doc_id for failure in report.failed]) == (2, ["b"])
        assert report.failed[0].error.startswith(path)


def test_an_import_of_refused_documents_alone_sends_nothing() -> None:
    seen: list[int] = []
    given = [{"doc_id": str(number), "text": "t", "metadata": {"n": math.nan}} for number in range(120)]
    with recorder() as service, Maxsimd(service.url, "k") as client:
        report = client.import_documents(INDEX, given, on_progress=lambda progress: seen.append(progress.failed))
        assert (len(report.failed), max(seen), service.requests) == (120, 120, [])


def test_a_document_whose_expiry_is_none_does_not_expire() -> None:
    usage = {"input_tokens": 1, "document_count": 1, "chunk_count": 1, "candidate_count": 0, "latency_ms": 1}
    with recorder() as service, Maxsimd(service.url, "k") as client:
        service.answer = {"index_id": INDEX, "upserted_documents": 1, "upserted_chunks": 1, "failed": [], "usage": usage}
        client.import_documents(INDEX, [{"doc_id": "a", "text": "t", "expires_at": None}])
        assert service.bodies == [{"documents": [{"doc_id": "a", "text": "t"}]}]
        assert service.requests == [("POST", f"/v1/indexes/{INDEX}/documents")]


def test_numbers_of_other_libraries_are_numbers() -> None:
    metadata = {"whole": Whole(7), "single": Single(0.1), "list": [Whole(1)], "level": Level.HIGH, "point": Point(1)}
    with recorder() as service, Maxsimd(service.url, "k") as client:
        service.answer = {"doc_id": "d", "metadata": {}, "chunk_count": 1}
        client.update_metadata(INDEX, "d", metadata)
        expected = {"whole": 7, "single": 0.1, "list": [1], "level": "high", "point": {"x": 1}}
        assert service.bodies == [{"metadata": expected}]


def test_dates_and_uuids_in_metadata_are_strings() -> None:
    metadata = {"day": date(2026, 11, 27), "of": UUID(INDEX), "list": (1, 2)}
    with recorder() as service, Maxsimd(service.url, "k") as client:
        service.answer = {"doc_id": "d", "metadata": {}, "chunk_count": 1}
        client.update_metadata(INDEX, "d", metadata)
        assert service.bodies == [{"metadata": {"day": "2026-11-27", "of": INDEX, "list": [1, 2]}}]


def test_an_id_that_is_too_long_for_an_address() -> None:
    with recorder() as service:
        with Maxsimd(service.url, "k") as client, pytest.raises(MaxsimdError, match="address"):
            client.delete_document(INDEX, "x" * 70_000)

        async def scenario() -> None:
            async with AsyncMaxsimd(service.url, "k") as client:
                with pytest.raises(MaxsimdError, match="address"):
                    await client.delete_document(INDEX, "x" * 70_000)

        asyncio.run(scenario())
        assert service.requests == []


@both
def test_address_and_key_come_from_the_environment(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAXSIMD_URL", raising=False)
    with pytest.raises(MaxsimdError, match="address is missing: pass `url`, or set MAXSIMD_URL"):
        client()
    monkeypatch.setenv("MAXSIMD_URL", "http://service/behind")
    monkeypatch.delenv("MAXSIMD_API_KEY", raising=False)
    with pytest.raises(MaxsimdError, match="API key is missing: pass `api_key`, or set MAXSIMD_API_KEY"):
        client()
    monkeypatch.setenv("MAXSIMD_API_KEY", "of the environment")
    with pytest.raises(MaxsimdError, match="characters that no key has"):
        client()
    client(api_key="given")


def test_an_import_keeps_texts_and_identifiers_in_metadata_fields() -> None:
    given: list[Any] = [
        {"doc_id": "a", "text": "one"},
        {"doc_id": "b", "text": "two", "metadata": {"kind": "x"}},
        {"doc_id": "taken", "text": "four", "metadata": {"body": "before"}},
        DocumentInput(doc_id="c", text="E11.65"),
    ]
    usage = {"input_tokens": 1, "document_count": 3, "chunk_count": 3, "candidate_count": 0, "latency_ms": 1}
    stored = {"index_id": INDEX, "upserted_documents": 3, "upserted_chunks": 3, "failed": [], "usage": usage}
    sent = [
        {"doc_id": "a", "text": "one", "metadata": {"body": "one"}},
        {"doc_id": "b", "text": "two", "metadata": {"kind": "x", "body": "two"}},
        {"doc_id": "c", "text": "E11.65", "metadata": {"body": "E11.65", "codes": ["E11.65"]}},
    ]

    async def import_at_once(url: str) -> None:
        async with AsyncMaxsimd(url, "k") as client:
            await client.import_documents(INDEX, given, keep_text="body", identifiers="codes")

    with recorder() as service:
        service.answer = stored
        with Maxsimd(service.url, "k") as client:
            report = client.import_documents(INDEX, given, keep_text="body", identifiers="codes")
        assert [(one.doc_id, one.error) for one in report.failed] == [
            ("taken", "metadata.body: the import adds a field of this name")
        ]
        asyncio.run(import_at_once(service.url))
        assert service.bodies == [{"documents": sent}, {"documents": sent}]
    assert given[0] == {"doc_id": "a", "text": "one"}
