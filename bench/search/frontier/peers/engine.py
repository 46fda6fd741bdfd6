"""An engine as `measure.py` sees it: some indexes, each with some settings of a search."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Setting:
    text: str
    # Query rows, f32 [rows x dim], to chunk numbers, best first.
    search: Callable[[np.ndarray], list[int]]
    # Bytes that this setting reads beside the files of its index.
    more_bytes: int = 0


@dataclass(frozen=True)
class Index:
    # The name of its folder.
    name: str
    # Builds it in an empty folder.
    build: Callable[[Path], None]
    # Opens it for so many threads. A setting is used before the next one is asked for.
    settings: Callable[[Path, int], Iterator[Setting]]


# Chunks that a search returns.
top_k = 100
