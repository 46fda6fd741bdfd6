"""The network of `source.py` as a torch module, so that it can be trained, and back again.

The same arithmetic as `graph.py` in f32: BERT with exact GELU, attention inside each text only. Matrices keep the
orientation of `source.Layer` ([inputs, outputs]), so that weights go in and come out without a change of form.
Architecture: Devlin et al., arXiv:1810.04805.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from source import CLS_ID, HEADS, HIDDEN, LAYER_NORM_EPSILON, LAYERS, PAD_ID, SEP_ID, Layer, Weights

MATRICES = ("qkv", "attended", "up", "down")
NORMS = ("attended_norm", "down_norm")


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Written out where gradients are wanted: the backward pass of torch's fused one takes 2.5 times as long on a CPU."""
    if not torch.is_grad_enabled():
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    products = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    with torch.autocast("cpu", enabled=False):  # else softmax is in f32, which takes longer than the products
        return products.masked_fill(~mask, -3e4).softmax(-1) @ value


class Block(nn.Module):
    """One transformer layer."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        for name in MATRICES:
            self.register_parameter(name, _parameter(getattr(layer, name)))
            self.register_parameter(f"{name}_bias", _parameter(getattr(layer, f"{name}_bias")))
        for name in NORMS:
            gain, shift = getattr(layer, name)
            self.register_parameter(f"{name}_gain", _parameter(gain))
            self.register_parameter(f"{name}_shift", _parameter(shift))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        qkv = self._linear("qkv", x).view(batch, tokens, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        attended = attention(*qkv, mask)
        attended = attended.transpose(1, 2).reshape(batch, tokens, HIDDEN)
        x = self._norm("attended_norm", x + self._linear("attended", attended))
        return self._norm("down_norm", x + self._linear("down", functional.gelu(self._linear("up", x))))

    def _linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, getattr(self, name).t(), getattr(self, f"{name}_bias"))

    def _norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        gain, shift = getattr(self, f"{name}_gain"), getattr(self, f"{name}_shift")
        return functional.layer_norm(x, (HIDDEN,), gain, shift, LAYER_NORM_EPSILON)

    def layer(self) -> Layer:
        values = {name: _array(getattr(self, name)) for part in MATRICES for name in (part, f"{part}_bias")}
        norms = {name: (_array(getattr(self, f"{name}_gain")), _array(getattr(self, f"{name}_shift"))) for name in NORMS}
        return Layer(**values, **norms)


class Network(nn.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.words = _parameter(weights.words)
        self.positions = _parameter(weights.positions)
        self.gain, self.shift = map(_parameter, weights.norm)
        self.blocks = nn.ModuleList(map(Block, weights.layers))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, layers: int = LAYERS) -> torch.Tensor:
        """Word pieces and mask (true: a token), [batch, tokens] each -> states behind `layers` layers [batch, tokens, 384]."""
        x = functional.embedding(ids, self.words) + self.positions[: ids.shape[1]]
        x = functional.layer_norm(x, (HIDDEN,), self.gain, self.shift, LAYER_NORM_EPSILON)
        return self.through(x, mask, 0, layers)

    def through(self, x: torch.Tensor, mask: torch.Tensor, first: int, after: int = LAYERS) -> torch.Tensor:
        for block in self.blocks[first:after]:
            x = block(x, mask[:, None, None, :])
        return x

    def weights(self) -> Weights:
        layers = tuple(block.layer() for block in self.blocks)
        norm = (_array(self.gain), _array(self.shift))
        return Weights(words=_array(self.words), positions=_array(self.positions), norm=norm, layers=layers)


class Embedding:
    """The output of the embedding layer, for heads that read it."""

    def __init__(self, weights: Weights) -> None:
        self._words, self._positions = torch.from_numpy(weights.words), torch.from_numpy(weights.positions)
        self._norm = [torch.from_numpy(part) for part in weights.norm]

    def __call__(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        rows = self._words[ids] + self._positions[positions]
        return functional.layer_norm(rows, rows.shape[-1:], *self._norm, LAYER_NORM_EPSILON)


def mixed(start: Weights, trained: Weights, share: float) -> Weights:
    """start + share * (trained - start), number by number (Wortsman et al., arXiv:2109.01903)."""

    def mix(one: object, other: object) -> object:
        if isinstance(one, np.ndarray):
            return (one + np.float32(share) * (other - one)).astype(np.float32)
        if isinstance(one, tuple):
            return tuple(map(mix, one, other))
        names = [field.name for field in dataclasses.fields(one)]
        return type(one)(**{name: mix(getattr(one, name), getattr(other, name)) for name in names})

    return mix(start, trained)


def padded(contents: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Contents framed by CLS and SEP, as ids and mask [batch, tokens]."""
    tokens = max(map(len, contents)) + 2
    ids = np.full((len(contents), tokens), PAD_ID, np.int64)
    for row, content in enumerate(contents):
        ids[row, : len(content) + 2] = [CLS_ID, *content, SEP_ID]
    lengths = np.array([len(content) + 2 for content in contents])
    return torch.from_numpy(ids), torch.from_numpy(np.arange(tokens) < lengths[:, None])


def _parameter(value: np.ndarray) -> nn.Parameter:
    return nn.Parameter(torch.from_numpy(np.array(value, np.float32)))


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().float().numpy().copy()
