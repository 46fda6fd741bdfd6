"""The same work in torch on the same device: half-precision products and maxima over blocks of chunks, eager and compiled.

    python3 research/cuda/peers.py [--device cpu] [--chunks 1000000]

Prints one JSON object. Rows and queries are random, 64 rows of 128 dimensions a chunk, 32 query tokens, top 100.
"""

import argparse
import json
import statistics
import time

import torch

ROWS, DIM, TOKENS, TOP = 64, 128, 32, 100


def scores(chunks: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """f16 [chunks, ROWS, DIM] and [TOKENS, DIM]: f32 [chunks]."""
    products = chunks @ query.T
    return products.amax(dim=1).float().sum(dim=1)


def search(blocks: list[torch.Tensor], query: torch.Tensor, score) -> torch.Tensor:
    return torch.topk(torch.cat([score(block, query) for block in blocks]), TOP).indices


def median_ms(work, device: str, rounds: int) -> float:
    times = []
    for round_ in range(rounds + 3):
        if device != "cpu":
            torch.cuda.synchronize()
        started = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        if round_ >= 3:
            times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--block", type=int, default=50_000, help="chunks a product")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.manual_seed(1)
    on = {"device": options.device, "dtype": torch.float16}
    blocks = [
        torch.randn(min(options.block, options.chunks - at), ROWS, DIM, **on)
        for at in range(0, options.chunks, options.block)
    ]
    query = torch.randn(TOKENS, DIM, **on)
    result = {"torch": torch.__version__, "chunks": options.chunks}
    for name, score in {"eager": scores, "compiled": torch.compile(scores, dynamic=False)}.items():
        milliseconds = median_ms(lambda score=score: search(blocks, query, score), options.device, options.rounds)
        result[name] = {
            "p50_ms": round(milliseconds, 3),
            "token_vectors_per_second": options.chunks * ROWS / milliseconds * 1000,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
