"""An address where nobody listens, and proxies that the environment names."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from recorder import recorder

from maxsimd import AsyncMaxsimd, ConnectionFailed, Maxsimd, asynchronous, synchronous
from maxsimd.proxies import proxy_for

INDEX = "ffffffff-ffff-4fff-8fff-ffffffffffff"
DELETED = {"deleted": True}


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that refuses connections: the port is held, and nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def silence() -> Iterator[str]:
    """An address that takes no connection: the queue of the kernel is full, and nobody empties it."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        queued = [socket.socket() for _ in range(4)]
        for one in queued:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield f"http://127.0.0.1:{full.getsockname()[1]}"
        for one in queued:
            one.close()


@pytest.mark.parametrize("end", ["", "/"])
def test_an_address_may_have_a_path(end: str) -> None:
    target = f"/tools/maxsimd/v1/indexes/{INDEX}/documents/a%2Fb"
    with recorder() as service:
        url = f"{service.url}/tools/maxsimd{end}"
        with Maxsimd(url, "k") as client:
            client.delete_document(INDEX, "a/b")

        async def scenario() -> None:
            async with AsyncMaxsimd(url, "k") as asynchronous_client:
                await asynchronous_client.delete_document(INDEX, "a/b")

        asyncio.run(scenario())
    assert service.requests == [("DELETE", target), ("DELETE", target)]


@pytest.mark.parametrize("address", ["nobody", "silence"])
def test_an_address_that_was_never_reached_is_given_up_within_5_s(
    address: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(address)
    waits: list[float] = []
    started = time.monotonic()
    with Maxsimd(url, "k", on_retry=lambda _, delay: waits.append(delay)) as client, pytest.raises(ConnectionFailed):
        client.usage()
    assert time.monotonic() - started < 60
    assert (len(waits) > 0) == (address == "nobody")

    async def scenario() -> None:
        async with AsyncMaxsimd(url, "k") as client:
            with pytest.raises(ConnectionFailed) as failed:
                await client.usage()
            assert failed.value.maybe_received is False

    started = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - started < 60


class Clock:
    """Time passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def sleep_in_loop(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (synchronous, asynchronous):
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(module, "random", lambda: 0.5)
    monkeypatch.setattr(asynchronous, "asyncio", SimpleNamespace(sleep=clock.sleep_in_loop))
    return clock


def waited(clock: Clock, first: dict[str, bool] | Exception | None, **options: Any) -> tuple[float, float]:
    """Seconds until each client gives up a service that is away, perhaps after a first reply."""

    def transport() -> httpx.MockTransport:
        replies = [] if first is None else [first]

        def reply(_request: httpx.Request) -> httpx.Response:
            given = replies.pop() if replies else httpx.ConnectError("refused")
            if isinstance(given, Exception):
                raise given
            return httpx.Response(200, json=given)

        return httpx.MockTransport(reply)

    client = Maxsimd("http://service", "k", transport=transport(), **options)
    asynchronous_client = AsyncMaxsimd("http://service", "k", transport=transport(), **options)

    async def scenario() -> None:
        if isinstance(first, dict):
            await asynchronous_client.delete_document(INDEX, "d")
        await asynchronous_client.usage()

    clock.now = 0.0
    with pytest.raises(ConnectionFailed):
        if isinstance(first, dict):
            client.delete_document(INDEX, "d")
        client.usage()
    of_first = clock.now
    clock.now = 0.0
    with pytest.raises(ConnectionFailed):
        asyncio.run(scenario())
    return of_first, clock.now


def test_a_service_that_was_reached_once_is_waited_for(clock: Clock) -> None:
    for seconds in waited(clock, None):
        assert 2 < seconds <= 5
    for seconds in waited(clock, DELETED):
        assert 60 < seconds <= 120
    for seconds in waited(clock, httpx.ReadError("gone")):
        assert 60 < seconds <= 120
    for seconds in waited(clock, None, retry_seconds_max=300):
        assert 200 < seconds <= 300


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


def delete(url: str) -> list[bool | str]:
    """By both clients: whether it was deleted, or the code of the error."""
    outcomes: list[bool | str] = []
    try:
        with Maxsimd(url, "k", retry_seconds_max=0) as client:
            outcomes.append(client.delete_index(INDEX).deleted)
    except ConnectionFailed as error:
        outcomes.append(error.code)
        assert error.maybe_received is False

    async def scenario() -> None:
        async with AsyncMaxsimd(url, "k", retry_seconds_max=0) as client:
            outcomes.append((await client.delete_index(INDEX)).deleted)

    try:
        asyncio.run(scenario())
    except ConnectionFailed as error:
        outcomes.append(error.code)
    return outcomes


def test_the_proxy_of_the_environment_is_asked(environment: pytest.MonkeyPatch) -> None:
    with recorder() as proxy:
        environment.setenv("HTTP_PROXY", proxy.url)
        assert delete("http://service.test") == [True, True]
        assert proxy.requests == [("DELETE", f"http://service.test/v1/indexes/{INDEX}")] * 2
    with recorder() as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        assert delete("https://service.test") == ["connection_failed"] * 2
        assert proxy.requests == [("CONNECT", "service.test:443")] * 2


def test_no_proxy_and_this_machine_are_left_out(environment: pytest.MonkeyPatch) -> None:
    with recorder() as proxy, recorder() as service:
        environment.setenv("HTTP_PROXY", proxy.url)
        assert delete(service.url) == [True, True]
        assert delete(service.url.replace("127.0.0.1", "localhost")) == [True, True]
        assert len(service.requests) == 4
        environment.setenv("NO_PROXY", "service.invalid")
        assert delete("http://service.invalid") == ["connection_failed"] * 2
        assert proxy.requests == []


def test_networks_of_no_proxy_are_left_out_and_brackets_stop_no_client(environment: pytest.MonkeyPatch) -> None:
    with recorder() as proxy:
        environment.setenv("HTTP_PROXY", proxy.url)
        # These addresses mean this machine, and nobody listens: a connection is refused at once.
        environment.setenv("NO_PROXY", "[::1], 0.0.0.0/8, ::/127")
        assert delete("http://0.0.0.0:1") == ["connection_failed"] * 2
        assert delete("http://[::]:1") == ["connection_failed"] * 2
        assert proxy.requests == []
        assert delete("http://service.test") == [True, True]
        assert len(proxy.requests) == 2


CASES = json.loads((Path(__file__).parents[3] / "test/clients/cases/no-proxy.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['no_proxy']} of {case['url']}")
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_which_addresses_no_proxy_leaves_out(
    case: dict[str, Any], variable: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("HTTP_PROXY", "http://proxy.test")
    environment.setenv("HTTPS_PROXY", "proxy.test")
    environment.setenv("no_proxy", "")
    environment.setenv(variable, case["no_proxy"])
    assert proxy_for(case["url"]) == (None if case["direct"] else "http://proxy.test")
