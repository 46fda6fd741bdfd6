"""Makes the client that blocks of the one for asyncio whenever the package is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = Path("src/maxsimd/asynchronous.py")
_TARGET = Path("src/maxsimd/synchronous.py")
_REPLACEMENTS = (
    ("The client for asyncio. `hatch_build.py` makes its twin that blocks of this file.", "Made of `asynchronous.py`."),
    (", in one event loop; cancelling a call ends it.", "; safe to share between threads."),
    ("import asyncio\n", ""),
    ("import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable,", "import Callable, Iterable, Iterator,"),
    (" | AsyncIterable[Document]", ""),
    ("Awaitable[None]", "None"),
    ("asyncio.sleep", "time.sleep"),
    ("import_tasks", "import_threads"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("aclose", "close"),
    ("Async", ""),
    ("async ", ""),
    ("await ", ""),
)


class Synchronous(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        text = (root / _SOURCE).read_text(encoding="utf-8")
        for words, others in _REPLACEMENTS:
            text = text.replace(words, others)
        # Where `await` is gone, so are its parentheses.
        text = re.sub(r"\((client\.\w+\([^()]*\))\)\.", r"\1.", text)
        (root / _TARGET).write_text(text, encoding="utf-8")
