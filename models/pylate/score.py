"""Scores of PyLate.

`python score.py FOLDER` scores the vectors in FOLDER/served.f32, which has the layout of expected.f32 (`checkpoints.py`). It prints a
row for each query.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from pylate import scores


def matrix(queries: list[np.ndarray], documents: list[np.ndarray]) -> list[list[float]]:
    """Every query against every document."""
    return [
        [float(scores.colbert_scores(torch.from_numpy(q)[None], torch.from_numpy(d)[None])[0, 0]) for d in documents] for q in queries
    ]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    expected = json.loads((folder / "expected.json").read_text())
    rows = np.fromfile(folder / "served.f32", "<f4").reshape(-1, expected["dim"])
    vectors = np.split(rows, np.cumsum(expected["rows"])[:-1])
    count = len(expected["queries"])
    print(json.dumps(matrix(vectors[:count], vectors[count:])))
