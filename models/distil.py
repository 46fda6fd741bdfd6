"""Teaches six layers to give the token states that the twelve of bge-small-en-v1.5 give, and projections to fewer dimensions.

    .venv/bin/python teacher.py TEACHER
    python distil.py TEACHER TEXT STUDENT SECONDS [DEVICE]

writes the file STUDENT (22 MB). It needs torch beside `requirements.txt`, and a GPU (DEVICE `cpu` tries it without one). TEXT holds
`docs-LENGTH-*.npy` and `queries-LENGTH-*.npy`: uint16 [windows, LENGTH], word pieces with CLS and SEP. The windows of a batch have
one length, so there is no padding. One window in a hundred is held back.

The student begins as every second layer of the teacher, and keeps its word embeddings. The loss adds up

    1 - cosine of the last states, of documents and of queries; in the first half of the time also of the states between
    KL of the softmax of each query token over all document tokens of the batch
    KL of the softmax of each query's MaxSim over all windows of the batch

The last two are taken for the states themselves and for two of the projections, which are the first rows of one matrix. The learning
rate follows the clock, so it has fallen to zero when the time is over.
"""

from __future__ import annotations

import math
import re
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import fit
from source import HEADS, HIDDEN, INNER, LAYER_NORM_EPSILON, POSITIONS, WORD_PIECES

TAKEN = (1, 3, 5, 7, 9, 11)
WIDTHS = (None, 64, 96, 128, 192, 256)  # None: the states themselves
BATCH_TOKENS = {"cuda": 49_152, "cpu": 3_072}
# A step has so many times fewer tokens of queries than of documents.
QUERY_SHARE = 12
QUERIES_SCORED = 40
RATES = {"cuda": 7e-4, "cpu": 4e-4}
WARM_UP_STEPS = {"cuda": 300, "cpu": 30}
MIDDLE, QUERY, TOKENS, MAXSIM = 0.2, 0.3, 0.1, 0.1  # shares of the loss
TEMPERATURE = 0.03
LOG_SECONDS, HALF_WAY = 15, 0.6


class Layer(nn.Module):
    """The names are those of `source.Layer`."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.attended = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)
        self.attended_norm, self.down_norm = (nn.LayerNorm(HIDDEN, LAYER_NORM_EPSILON) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        texts, tokens, _ = x.shape
        query, key, value = self.qkv(x).view(texts, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(texts, tokens, HIDDEN)
        x = self.attended_norm(x + self.attended(attended))
        return self.down_norm(x + self.down(F.gelu(self.up(x))))


class Network(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORD_PIECES.size, HIDDEN), nn.Embedding(POSITIONS, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, LAYER_NORM_EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, ids: Tensor) -> list[Tensor]:
        """The states after each layer."""
        x, states = self.norm(self.words(ids) + self.positions.weight[: ids.shape[1]]), []
        for layer in self.layers:
            x = layer(x)
            states.append(x)
        return states


class Student(Network):
    def __init__(self, teacher: dict[str, Tensor]) -> None:
        super().__init__(len(TAKEN))
        own = {name: value for name, value in teacher.items() if not name.startswith("layers.")}
        for number, taken in enumerate(TAKEN):
            at = f"layers.{taken}."
            own |= {name.replace(at, f"layers.{number}."): value for name, value in teacher.items() if name.startswith(at)}
        self.load_state_dict(own)
        self.words.requires_grad_(False)
        self.projection = nn.Linear(HIDDEN, WIDTHS[-1], bias=False)
        self.sharpness = nn.Parameter(torch.zeros(len(WIDTHS)))

    def vectors(self, states: Tensor, choice: int) -> Tensor:
        width = WIDTHS[choice]
        return unit(states if width is None else F.linear(states, self.projection.weight[:width]))


class Text:
    """Windows of word pieces by length. No window comes again before all others of its length."""

    def __init__(self, directory: Path, kind: str, device: str) -> None:
        found: dict[int, list[np.ndarray]] = {}
        for file in sorted(directory.glob(f"{kind}-*.npy")):
            found.setdefault(int(re.split("[-.]", file.name)[1]), []).append(np.load(file))
        windows = {length: torch.from_numpy(np.concatenate(parts).astype(np.int32)).to(device) for length, parts in found.items()}
        self.held_back = max((own[: 1 + len(own) // 100] for own in windows.values()), key=Tensor.numel)
        self._windows = {length: own[1 + len(own) // 100 :] for length, own in windows.items()}
        self._next: dict[int, Tensor] = {}
        tokens = np.array([own.numel() for own in self._windows.values()], float)
        self.tokens, self._share = int(tokens.sum()), tokens / tokens.sum()

    def batch(self, random: np.random.Generator, tokens: int) -> Tensor:
        """A length comes as often as its share of the tokens."""
        length = int(random.choice(list(self._windows), p=self._share))
        own, following = self._windows[length], self._next.get(length, torch.empty(0))
        count = min(max(2, tokens // length), len(own))
        if len(following) < count:
            following = torch.randperm(len(own), device=own.device)
        self._next[length] = following[count:]
        return own[following[:count]].long()


class Lesson:
    def __init__(self, teacher_file: Path, text: Path, device: str) -> None:
        torch.manual_seed(1)
        self.device, self.random, self.batch_tokens = device, np.random.default_rng(1), BATCH_TOKENS[device]
        weights = load_file(teacher_file)
        weights["words.weight"] = weights.pop("words").float() * weights.pop("words_scale").float()
        weights = {name: value.float() for name, value in weights.items()}
        teacher = Network(TAKEN[-1] + 1)
        teacher.load_state_dict(weights)
        self.teacher = teacher.to(device, torch.float16 if device == "cuda" else torch.float32).requires_grad_(False)
        self.student = Student(weights).to(device)
        self.token_weights = torch.from_numpy(fit.token_weights(WORD_PIECES)).to(device)
        self.documents, self.queries = (Text(text, kind, device) for kind in ("docs", "queries"))
        # Many CPUs have no products of bf16.
        self.narrow = lambda: torch.autocast(device, torch.bfloat16, enabled=device == "cuda")
        with torch.no_grad():  # The projection begins as the directions in which the teacher's states are largest.
            states = unit(self.teacher(self.documents.batch(self.random, self.batch_tokens))[-1]).reshape(-1, HIDDEN)
            directions = torch.linalg.eigh((states.T @ states).double().cpu())[1].flip(1)
            self.student.projection.weight.copy_(directions[:, : WIDTHS[-1]].T)

    def batches(self) -> tuple[Tensor, Tensor]:
        tokens = self.batch_tokens
        return self.documents.batch(self.random, tokens), self.queries.batch(self.random, tokens // QUERY_SHARE)

    def loss(self, documents: Tensor, queries: Tensor, choices: list[int], middle: float) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and the cosine of its document states."""
        with torch.no_grad():
            aims, query_aim = self.teacher(documents), unit(self.teacher(queries)[-1])
        with self.narrow():
            states, query_states = self.student(documents), self.student(queries)[-1]
        away = lambda own, aim: 1 - (unit(own) * unit(aim)).sum(-1).mean()
        last = away(states[-1], aims[-1])
        loss = last + QUERY * away(query_states, query_aim)
        if middle > 0:
            loss = loss + middle * sum(away(states[at], aims[taken]) for at, taken in enumerate(TAKEN[:-1])) / (len(TAKEN) - 1)
        count = min(len(queries), QUERIES_SCORED)
        weights = self.token_weights[queries[:count]]
        aim = self.products(query_aim[:count], unit(aims[-1]))
        aim_scores = maxsim(aim, documents, weights)
        spread = aim_scores.std(1, keepdim=True, correction=0) / 2 + 1e-4
        for choice in choices:
            with self.narrow():
                rows, query_rows = (self.student.vectors(of, choice) for of in (states[-1], query_states[:count]))
            own, sharpness = self.products(query_rows, rows), self.student.sharpness[choice].exp()
            tokens = divergence(own * (sharpness / TEMPERATURE), aim / TEMPERATURE, weights.reshape(-1))
            scores = maxsim(own, documents, weights)
            windows = divergence(scores * sharpness / spread, aim_scores / spread, torch.ones_like(spread[:, 0]))
            loss = loss + (TOKENS * tokens + MAXSIM * windows) * (2 if WIDTHS[choice] else 1) / len(choices)
        return loss, 1 - last.detach()

    def products(self, queries: Tensor, rows: Tensor) -> Tensor:
        """f32 [query tokens, document tokens]"""
        kind = torch.bfloat16 if self.device == "cuda" else torch.float32
        return (queries.reshape(-1, queries.shape[-1]).to(kind) @ rows.reshape(-1, rows.shape[-1]).to(kind).T).float()

    @torch.no_grad()
    def held_back(self) -> str:
        """On text that is not learnt from: the cosine of states, and the share of the ten best windows that are the teacher's."""
        documents = self.documents.held_back[: 1024 if self.device == "cuda" else 40].long()
        queries = self.queries.held_back[:200].long()
        with self.narrow():
            states, query_states = (torch.cat([self.student(part)[-1] for part in ids.split(64)]) for ids in (documents, queries))
        aim = unit(torch.cat([self.teacher(part)[-1] for part in documents.split(64)]))
        ten, weights, shares = min(10, 1 + len(documents) // 2), self.token_weights[queries], []
        best = lambda own, rows: maxsim(self.products(own, rows), documents, weights).topk(ten, 1).indices
        wanted = best(unit(self.teacher(queries)[-1]), aim)
        for choice, width in enumerate(WIDTHS):
            found = best(*(self.student.vectors(of, choice) for of in (query_states, states)))
            same = (found[:, :, None] == wanted[:, None, :]).sum().item() / wanted.numel()
            shares.append(f"{width or HIDDEN} {same:.3f}")
        return f"held back: cosine {(unit(states) * aim).sum(-1).mean():.4f}, same of ten best: {', '.join(shares)}"

    def save(self, file: Path) -> None:
        """f16, without the word embeddings, which stay the teacher's."""
        state = self.student.state_dict().items()
        save_file({name: value.half().cpu() for name, value in state if name != "words.weight"}, file)


def unit(states: Tensor) -> Tensor:
    return F.normalize(states.float(), dim=-1)


def maxsim(products: Tensor, documents: Tensor, weights: Tensor) -> Tensor:
    """Weighted means [queries, windows] of the best products of each query token."""
    best = products.view(*weights.shape, *documents.shape).amax(3)
    return (best * weights[:, :, None]).sum(1) / weights.sum(1, keepdim=True).clamp(min=1e-3)


def divergence(own: Tensor, aim: Tensor, weights: Tensor) -> Tensor:
    rows = F.kl_div(own.log_softmax(-1), aim.log_softmax(-1), reduction="none", log_target=True).sum(-1)
    return (rows * weights).sum() / weights.sum().clamp(min=1e-3)


def train(teacher: Path, text: Path, student: Path, seconds: float, device: str = "cuda") -> None:
    lesson = Lesson(teacher, text, device)
    print(f"tokens: {lesson.documents.tokens:,} of documents, {lesson.queries.tokens:,} of queries\n{lesson.held_back()}", flush=True)
    learnt = [value for value in lesson.student.parameters() if value.requires_grad]
    groups = [{"params": [value for value in learnt if value.ndim > 1], "weight_decay": 0.01}]
    groups.append({"params": [value for value in learnt if value.ndim == 1], "weight_decay": 0})
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-6, fused=device == "cuda")
    start = logged = time.time()
    steps, tokens, saved = 0, 0, False
    while (passed := (time.time() - start) / seconds) < 1:
        for group in optimiser.param_groups:
            group["lr"] = RATES[device] * min(1, (steps + 1) / WARM_UP_STEPS[device]) * (1 + math.cos(math.pi * passed)) / 2
        documents, queries = lesson.batches()
        choices = [0, int(lesson.random.integers(1, 4)), int(lesson.random.integers(4, 6))]
        loss, cosine = lesson.loss(documents, queries, choices, MIDDLE * max(0, 1 - 2 * passed))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if nn.utils.clip_grad_norm_(learnt, 1).isfinite():
            optimiser.step()
        else:
            print(f"step {steps} is not finite", flush=True)
        steps, tokens, now = steps + 1, tokens + documents.numel() + queries.numel(), time.time()
        if now - logged > LOG_SECONDS:
            rate, logged = tokens / (now - start), now
            print(f"{now - start:.0f} s, step {steps}, {rate:,.0f} tokens/s, loss {loss:.4f}, cosine {cosine:.4f}", flush=True)
        if not saved and passed > HALF_WAY:
            saved = True
            lesson.save(student)
    lesson.save(student)
    print(f"{steps} steps, {tokens:,} tokens\n{lesson.held_back()}")


if __name__ == "__main__":
    train(*map(Path, sys.argv[1:4]), float(sys.argv[4]), *sys.argv[5:])
