"""Hidden states of many short texts, in one file of rows, gathered text by text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class States:
    """`values` [tokens, width], the rows of all texts one after another; text i has rows offsets[i] .. offsets[i + 1]."""

    values: np.ndarray
    offsets: np.ndarray

    def rows(self, text: int) -> torch.Tensor:
        return torch.from_numpy(self.values[self.offsets[text] : self.offsets[text + 1]].astype(np.float32))

    def gathered(self, texts: np.ndarray, tokens_max: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of several texts, cut and padded: [texts, tokens, width], and which are real."""
        lengths = (self.offsets[1:] - self.offsets[:-1])[texts]
        if tokens_max:
            lengths = np.minimum(lengths, tokens_max)
        rows = np.zeros((len(texts), int(lengths.max()), self.values.shape[1]), self.values.dtype)
        for row, text in enumerate(texts):
            rows[row, : lengths[row]] = self.values[self.offsets[text] :][: lengths[row]]
        return torch.from_numpy(rows), torch.from_numpy(np.arange(rows.shape[1]) < lengths[:, None])

    def part(self, texts: list[int]) -> States:
        """Some of the texts."""
        rows = [self.values[self.offsets[text] : self.offsets[text + 1]] for text in texts]
        return States(np.concatenate(rows), np.concatenate([[0], np.cumsum([len(one) for one in rows])]))

    def pooled(self, texts: list[int]) -> np.ndarray:
        """Unit means: all-MiniLM's own sentence vectors, f32 [texts, width]."""
        means = np.stack([self.values[self.offsets[text] : self.offsets[text + 1]].astype(np.float32).mean(0) for text in texts])
        return means / np.linalg.norm(means, axis=1, keepdims=True)
