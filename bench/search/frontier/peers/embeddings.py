"""A directory of embeddings (bench/search/embedding-directory.ts), as rows of f32.

Engines get the unit vectors of the model as they were stored: a row of int8 times its scale, and the mean that was taken
out is added again. Rows that had 2 bits have lengths of about 1.05.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np


class Embeddings:
    def __init__(self, directory: str):
        self.directory = Path(directory)
        self.mean = self._read("centring.f32", np.float32)
        self.dim = len(self.mean)
        self.counts = self._read("chunk_rows.u32", np.uint32).astype(np.int64)
        # The first row of each chunk, and the number of rows.
        self.starts = np.concatenate(([0], np.cumsum(self.counts)))
        counts = self._read("query_rows.u32", np.uint32).astype(np.int64)
        rows = self._read("queries.f32", np.float32).reshape(-1, self.dim)
        # f32 [query rows x dim] each, token weights folded in.
        self.queries = [np.ascontiguousarray(one) for one in np.split(rows, np.cumsum(counts)[:-1])]
        self._components = np.memmap(self.directory / "vectors.i8", np.int8, mode="r").reshape(-1, self.dim)
        self._scales = np.memmap(self.directory / "scales.f16", np.float16, mode="r")

    @property
    def chunks(self) -> int:
        return len(self.counts)

    @property
    def token_vectors(self) -> int:
        return int(self.starts[-1])

    def rows(self, first: int, end: int) -> np.ndarray:
        """f32 [rows x dim] of the chunks from `first` (inclusive) to `end` (exclusive)."""
        part = slice(self.starts[first], self.starts[end])
        return self._components[part] * self._scales[part, None].astype(np.float32) + self.mean

    def runs(self, rows_max: int = 50_000) -> Iterator[tuple[int, int]]:
        """Runs of whole chunks of about so many rows: first chunk, and the one after the last."""
        first = 0
        while first < self.chunks:
            end = int(np.searchsorted(self.starts, self.starts[first] + rows_max, side="right")) - 1
            end = min(max(end, first + 1), self.chunks)
            yield first, end
            first = end

    def matrices(self, first: int, end: int) -> list[np.ndarray]:
        """The token matrix of each of these chunks: f32 [rows x dim]."""
        bounds = self.starts[first + 1 : end] - self.starts[first]
        return np.split(self.rows(first, end), bounds)

    def token_ids(self) -> np.ndarray | None:
        """Vocabulary ids, i64 [token vectors], where the vectors are of text."""
        file = self.directory / "token_ids.u32"
        return np.fromfile(file, np.uint32).astype(np.int64) if file.exists() else None

    def _read(self, name: str, kind: type) -> np.ndarray:
        return np.fromfile(self.directory / name, kind)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; rows without direction are left out."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    kept = lengths[:, 0] > 1e-6
    return rows[kept] / lengths[kept]


def write_whole(file: Path, text: str) -> None:
    """Writes a file of that name that is whole or not there."""
    unfinished = file.with_name(f"{file.name}.new")
    unfinished.write_text(text)
    unfinished.replace(file)
