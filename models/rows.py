"""Rows of few bits, as the service makes them (src/encoder/inference/rows.ts): rotation, codes, one scale a row."""

from __future__ import annotations

import hashlib

import numpy as np

ROUNDS = 4
# How many standard deviations of a row's components the codes span on either side.
CLIPS = {4: 2.4, 2: 2.0}


def rotated(vectors: np.ndarray) -> np.ndarray:
    """[rows, dim] times a pseudo-random orthogonal matrix: signs and Walsh-Hadamard transforms, in turn of the first and
    of the last 2^k dimensions, the largest power of two that fits."""
    dim = vectors.shape[1]
    size = 1 << (dim.bit_length() - 1)
    turned = vectors.astype(np.float32)
    for number in range(ROUNDS):
        turned = turned * _signs(number, dim)
        part = slice(0, size) if number % 2 == 0 else slice(dim - size, dim)
        turned[:, part] = _hadamard(turned[:, part])
    return turned


def quantised(vectors: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Odd components int8 [rows, dim] and scales f16 [rows]; a vector is about components * scale. The product of a row
    with its own vector is exact but for the rounding of the scale."""
    most = 2**bits - 1
    if bits == 1:
        components = np.where(vectors >= 0, 1, -1)
    else:
        deviation = np.sqrt((vectors * vectors).mean(axis=1, keepdims=True))
        levels = 2 ** (bits - 1)
        components = 2 * np.floor(vectors * (levels / CLIPS[bits]) / np.maximum(deviation, 1e-9)) + 1
        components = np.clip(components, -most, most)
    products = (components * vectors).sum(axis=1)
    scales = (vectors * vectors).sum(axis=1) / np.maximum(products, 1e-9)
    return components.astype(np.int8), scales.astype(np.float16)


def _hadamard(vectors: np.ndarray) -> np.ndarray:
    turned, width = vectors.copy(), 1
    while width < turned.shape[1]:
        pairs = turned.reshape(len(turned), -1, 2, width)
        turned = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(turned.shape)
        width *= 2
    return turned * np.float32(turned.shape[1] ** -0.5)


def _signs(number: int, dim: int) -> np.ndarray:
    """+1 or -1 by the bits of SHA-256, the highest bit of a byte first."""
    digests = [hashlib.sha256(f"{number}:{block}".encode()).digest() for block in range((dim + 255) // 256)]
    bits = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8))[:dim]
    return np.where(bits == 1, np.float32(-1), np.float32(1))
