"""A real HTTP server that records the requests it gets, for what a transport in its place would not see.

It may stand as a proxy: it answers for every host, and refuses tunnels.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Recorder:
    url: str
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and target, as they came over the wire."""
    bodies: list[Any] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=lambda: {"deleted": True})


@contextmanager
def recorder() -> Iterator[Recorder]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _record(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            recorded.bodies.append(json.loads(sent) if sent else None)
            recorded.requests.append((self.command, self.path))
            body = json.dumps(recorded.answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_DELETE = do_GET = do_PATCH = do_POST = _record

        def do_CONNECT(self) -> None:
            recorded.requests.append((self.command, self.path))
            self.send_error(502)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        recorded = Recorder(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield recorded
        finally:
            server.shutdown()
