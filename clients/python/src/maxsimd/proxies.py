"""The proxy that the environment names for an address: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY.

NO_PROXY is read as curl reads it: names and their subdomains, addresses, and networks such as `10.0.0.0/8` and `fd00::/8`;
`*` is all. Names are not resolved. Beside this, other programs know brackets around IPv6, a port behind `:`, `*.` in front of
a name, and spaces for commas. The key would go to the proxy if they were not read here. httpx reads no networks, and fails
on brackets. The TypeScript client has the same in `no-proxy.ts`, and `test/clients/cases/no-proxy.json` has the cases for both.
"""

from __future__ import annotations

import os
import re
from ipaddress import ip_address, ip_network
from urllib.request import getproxies

import httpx

_IPV6 = re.compile(r"\[(?P<host>[^\]]+)\](?P<bits>/\d+)?(?::(?P<port>\d+))?")
_NAMED = re.compile(r"(?P<host>[^:]+):(?P<port>\d+)")
_THIS_MACHINE = re.compile(r"localhost|127\.[\d.]+|::1")
"""For a proxy, these names mean its own machine."""


def proxy_for(url: str) -> str | None:
    """The address of the proxy, or none for a direct connection."""
    address = httpx.URL(url)
    # An empty variable counts as none, as for curl.
    no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if _THIS_MACHINE.fullmatch(_host(address)) or is_unproxied(address, no_proxy):
        return None
    named = getproxies()
    proxy = named.get(address.scheme) or named.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def is_unproxied(address: httpx.URL, no_proxy: str) -> bool:
    host = _host(address)
    port = address.port or (443 if address.scheme == "https" else 80)
    return any(_matches(host, port, entry) for entry in re.split(r"[\s,]+", no_proxy))


def _host(address: httpx.URL) -> str:
    return address.raw_host.decode("ascii").strip("[]").lower().removesuffix(".")


def _matches(host: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    parts = _IPV6.fullmatch(entry) or _NAMED.fullmatch(entry)
    given = {} if parts is None else parts.groupdict()
    if given.get("port") is not None and int(given["port"]) != port:
        return False
    pattern = entry if parts is None else f"{given['host']}{given.get('bits') or ''}"
    try:
        ip_address(host)
    except ValueError:
        return _is_within_domain(host, pattern)
    return _is_within_network(host, pattern)


def _is_within_domain(host: str, pattern: str) -> bool:
    domain = re.sub(r"^\*?\.|\.$", "", pattern.lower())
    return domain != "" and f".{host}".endswith(f".{domain}")


def _is_within_network(host: str, pattern: str) -> bool:
    if re.fullmatch(r"[\da-f:.]+(/\d+)?", pattern, re.IGNORECASE) is None:
        return False
    try:
        return ip_address(host) in ip_network(pattern, strict=False)
    except ValueError:
        return False
