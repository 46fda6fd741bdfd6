"""What no request can carry is an error of the client, and nothing is sent."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from recorder import recorder

from maxsimd import AsyncMaxsimd, DocumentInput, ImportStopped, Maxsimd, MaxsimdError

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
        client("http://127.0.0.1:1", "k")


CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE
DEEP: dict[str, Any] = {}
for _ in range(100_000):
    DEEP = {"d": DEEP}


@pytest.mark.parametrize(
    "metadata",
    [{"n": math.nan}, {"n": [1.5, -math.inf]}, CIRCLE, DEEP, {"n": object()}, {"n": b"\xff"}, {(1, 2): 3}],
    ids=["nan", "infinity", "circle", "deep", "object", "bytes", "key"],
)
def test_metadata_that_json_cannot_hold(metadata: dict[str, Any]) -> None:
    plain = {"doc_id": "d", "text": "t", "metadata": metadata}
    with recorder() as service:
        with Maxsimd(service.url, "k") as client:
            documents: list[Any] = [plain]
            if isinstance(next(iter(metadata)), str) and metadata is not DEEP:
                documents.append(DocumentInput(doc_id="d", text="t").model_copy(update={"metadata": metadata}))
            for document in documents:
                with pytest.raises(MaxsimdError, match="JSON"):
                    client.upsert(INDEX, [document])
                with pytest.raises(ImportStopped, match="JSON"):
                    client.import_documents(INDEX, [document])
            with pytest.raises(MaxsimdError, match="JSON"):
                client.update_metadata(INDEX, "d", metadata)
            with pytest.raises(MaxsimdError, match="JSON"):
                client.search(INDEX, "q", filter=metadata)

        async def scenario() -> None:
            async with AsyncMaxsimd(service.url, "k") as client:
                with pytest.raises(MaxsimdError, match="JSON"):
                    await client.upsert(INDEX, [plain])

        asyncio.run(scenario())
        assert service.requests == []


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
