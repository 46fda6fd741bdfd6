"""kernels.cpp, compiled for this processor and loaded."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("kernels.cpp")


def _load() -> ctypes.CDLL:
    name = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"maxsimd-candidates-{name}.so"
    if not library.exists():
        built = library.with_suffix(f".{id(library)}")
        subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
        built.rename(library)
    return ctypes.CDLL(str(library))


_library = _load()
_library.list_gains.restype = ctypes.c_uint64


def _pointer(array: np.ndarray | None):
    if array is None:
        return None
    assert array.flags.c_contiguous, "this is a bug: kernels take contiguous arrays"
    return ctypes.c_void_p(array.ctypes.data)


def quantised(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 [count, dim] and f32 scales [count]: row = value * scale."""
    scales = np.maximum(np.abs(rows).max(axis=1), 1e-12).astype(np.float32) / 127
    return np.rint(rows / scales[:, None]).astype(np.int8), scales


def nearest_columns(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """For each int8 row the number of the f32 column vector with the largest dot product: u32 [rows]."""
    values, scales = quantised(columns)
    nearest = np.empty(len(rows), np.uint32)
    rows = np.ascontiguousarray(rows)
    _library.nearest_columns(
        _pointer(rows), len(rows), _pointer(values), _pointer(scales), len(values), _pointer(nearest)
    )
    return nearest


def chunk_maxima(rows: np.ndarray, scales: np.ndarray, offsets: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """MaxSim per chunk and f32 column vector: f32 [chunks, columns]. Chunk c has rows offsets[c] to offsets[c + 1]."""
    values, column_scales = quantised(columns)
    best = np.empty((len(offsets) - 1, len(columns)), np.float32)
    _library.chunk_maxima(
        _pointer(rows), _pointer(scales), _pointer(offsets), len(best),
        _pointer(values), _pointer(column_scales), len(values), _pointer(best),
    )  # fmt: skip
    return best


def code_scores(
    levels: np.ndarray, codes: np.ndarray, offsets: np.ndarray, which: np.ndarray | None = None
) -> np.ndarray:
    """Sums of maxima of `levels`, u8 [centroids, tokens], over the codes of chunks (all, or u32 `which`): u32."""
    scores = np.empty(len(offsets) - 1 if which is None else len(which), np.uint32)
    _library.code_scores(
        _pointer(levels), levels.shape[1], _pointer(codes), _pointer(offsets), _pointer(which), len(scores),
        _pointer(scores),
    )  # fmt: skip
    return scores


def residual_scores(coarse, fine, row_codes, row_parts, offsets, which) -> np.ndarray:
    """Sums of maxima over the rows of chunks `which`, i32; coarse i16 [centroids, tokens], fine i16 [parts, entries,
    tokens]; row_parts u8 [rows, parts], or two of 16 entries a byte."""
    scores = np.empty(len(which), np.int32)
    _library.residual_scores(
        _pointer(coarse), _pointer(fine), coarse.shape[1], _pointer(row_codes), _pointer(row_parts), len(fine),
        4 if fine.shape[1] == 16 else 8, _pointer(offsets), _pointer(which), len(which), _pointer(scores),
    )  # fmt: skip
    return scores


def list_gains(entries, list_offsets, centroids, probe_offsets, probe_centroids, probe_gains, gains) -> int:
    """Fills gains, u32 [chunks]; returns the list entries walked."""
    return _library.list_gains(
        _pointer(entries), _pointer(list_offsets), centroids, len(gains), _pointer(probe_offsets),
        _pointer(probe_centroids), _pointer(probe_gains), len(probe_offsets) - 1, _pointer(gains),
    )  # fmt: skip


def threshold(sums: np.ndarray, wanted: int) -> int:
    """The largest value that at least `wanted` of the u32 sums reach."""
    return _library.threshold(_pointer(sums), len(sums), wanted)


def chunk_encodings(projected, cells, offsets, cell_count: int, out: np.ndarray) -> None:
    """One repetition of fixed dimensional encodings into `out`, f32 [chunks, cells * size], rows may be strided."""
    assert out.strides[1] == 4, "this is a bug: encodings are rows"
    _library.chunk_encodings(
        _pointer(projected), _pointer(cells), _pointer(offsets), len(out), cell_count, projected.shape[1],
        ctypes.c_uint64(out.strides[0] // 4), ctypes.c_void_p(out.ctypes.data),
    )  # fmt: skip
