"""What turns hidden states into scores: a head (384 -> 128, unit vectors), weights of query tokens, and the losses.

The head is linear, or has a second, non-linear path of two layers beside the linear one (Takehi et al.,
arXiv:2510.12327), or reads the embedding layer beside the last one. Weights of query tokens are today's formula times
exp of what is learned: a number a word piece, and a linear function of the hidden state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import fit
from source import HIDDEN, VOCABULARY

INNER = 384
# What the teacher's scores are times, and the mean best matches times: with both, the softmaxes over a list of MaxSim's own scores
# and of the teacher's are about equally sharp at the start. (With 40 for 22, every distilled head lost.)
SHARPNESS, SCALE = 3.0, 22.0
FAST = ("pieces", "log_scale")


@dataclass(frozen=True)
class Form:
    projection: bool = True  # learned, or as it starts
    residual: bool = False  # the second path
    embedding: bool = False  # the embedding layer too
    pieces: bool = False  # learned weight of each word piece
    context: bool = False  # learned weight by hidden state


class Student(nn.Module):
    def __init__(self, form: Form, start: np.ndarray | None = None) -> None:
        super().__init__()
        self.form = form
        start = fit.orthogonal_projection() if start is None else start
        self.projection = nn.Parameter(torch.from_numpy(start.copy()), requires_grad=form.projection)
        self.register_buffer("formula", torch.from_numpy(fit.token_weights()))
        if form.residual:
            self.up = nn.Linear(HIDDEN, INNER)
            self.down = nn.Parameter(torch.zeros(INNER, start.shape[1]))
        if form.embedding:
            self.embedding = nn.Parameter(torch.zeros(HIDDEN, start.shape[1]))
        if form.pieces:
            self.pieces = nn.Parameter(torch.zeros(VOCABULARY))
        if form.context:
            self.context = nn.Parameter(torch.zeros(HIDDEN))
        self.log_scale = nn.Parameter(torch.tensor(float(np.log(SCALE))))

    def vectors(self, hidden: torch.Tensor, embedded: torch.Tensor | None = None) -> torch.Tensor:
        rows = hidden @ self.projection
        if self.form.residual:
            rows = rows + functional.gelu(self.up(hidden)) @ self.down
        if self.form.embedding:
            rows = rows + embedded @ self.embedding
        return functional.normalize(rows.float(), dim=-1)

    def weights(self, ids: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """0 for CLS, SEP and padding, as the formula has it."""
        learned = torch.zeros(())
        if self.form.pieces:
            learned = learned + self.pieces[ids]
        if self.form.context:
            learned = learned + (hidden @ self.context).float()
        return self.formula[ids] * learned.exp()

    def groups(self, rate: float) -> list[dict]:
        """Parameters by how fast they learn: weights of pieces, each seldom seen, and the scale ten times as fast."""
        slow = [value for name, value in self.named_parameters() if value.requires_grad and name not in FAST]
        fast = [value for name, value in self.named_parameters() if name in FAST]
        return [{"params": slow, "lr": rate}, {"params": fast, "lr": 10 * rate}]

    def towards(self, other: Student, share: float) -> Student:
        """self + share * (other - self), number by number."""
        found, to = Student(self.form, self.projection.detach().numpy()), other.state_dict()
        found.load_state_dict({name: value + share * (to[name] - value) for name, value in self.state_dict().items()})
        return found

    def strayed(self) -> torch.Tensor:
        """How far the weights of word pieces are from the formula."""
        return self.pieces.square().sum() if self.form.pieces else torch.zeros(())


def late_interaction(queries: torch.Tensor, weights: torch.Tensor, documents: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Mean best match by weight, [queries, ways]: from [queries, tokens, dim], their weights,
    [queries, ways, tokens, dim] and which of those tokens are real; or [1, ways, tokens, dim], the same for all queries."""
    batch, ways, tokens, dim = documents.shape
    products = queries @ documents.reshape(batch, ways * tokens, dim).transpose(1, 2)
    products = products.view(len(queries), -1, ways, tokens).masked_fill(~real[:, None], -1)
    best = products.amax(-1).float()
    return (best * weights[:, :, None]).sum(1) / weights.sum(1)[:, None].clamp_min(1e-6)


def distilled(logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """KL divergence from the softmax of the teacher's standardised scores over the list."""
    return functional.kl_div(logits.log_softmax(-1), (SHARPNESS * teacher).log_softmax(-1), log_target=True, reduction="batchmean")


def contrasted(logits: torch.Tensor, teacher: torch.Tensor, others: torch.Tensor | None = None) -> torch.Tensor:
    """Cross entropy of the right passage, the first; passages that the teacher puts before it are left out: many of them
    answer as well. `others` are logits of further passages, all of them wrong."""
    logits = logits.masked_fill(teacher > teacher[:, :1], -torch.inf)
    every = logits if others is None else torch.cat([logits, others], dim=1)
    return -every.log_softmax(-1)[:, 0].mean()


def parted(logits: torch.Tensor, candidates: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Of logits [queries, queries * ways], every query with the candidates [queries, ways] of all: those of its own list, and
    the others [queries, queries * ways], in which its list and its right passage are left out."""
    rows = torch.arange(len(candidates))
    every = logits.view(len(candidates), *candidates.shape)
    wrong = torch.from_numpy(candidates[None] != candidates[:, :1, None])
    wrong[rows, rows] = False
    return every[rows, rows], every.masked_fill(~wrong, -torch.inf).flatten(1)
