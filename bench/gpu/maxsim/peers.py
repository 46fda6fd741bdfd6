"""The same work in torch or Triton on the same device, with the best 100 chosen there.

    python3 bench/gpu/maxsim/peers.py triton|eager|compiled [--device cpu] [--chunks 1000000]

`eager` and `compiled` are products in half precision and maxima over blocks of chunks. `triton` is one kernel over int8 rows with a
scale each, as ours is: it keeps its products to itself. Prints one JSON object. Rows and queries are random, 64 rows of 128 dimensions
a chunk, 32 query tokens. With TRITON_INTERPRET=1 and --device cpu the kernel is tried without a GPU.
"""

import argparse
import json
import statistics
import time

import torch
import triton
import triton.language as tl

ROWS, DIM, TOKENS, TOP = 64, 128, 32, 100


def scores(chunks: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """f16 [chunks, ROWS, DIM] and [TOKENS, DIM]: f32 [chunks]."""
    products = chunks @ query.T
    return products.amax(dim=1).float().sum(dim=1)


@triton.jit
def maxsim(vectors, scales, query, query_scales, out, ROWS: tl.constexpr, DIM: tl.constexpr, TOKENS: tl.constexpr):
    """One chunk a program: int8 [chunks, ROWS, DIM], f16 [chunks, ROWS], int8 [TOKENS, DIM], f32 [TOKENS], f32 [chunks]."""
    chunk = tl.program_id(0).to(tl.int64)
    row, part, token = tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, TOKENS)
    document = tl.load(vectors + (chunk * ROWS + row)[:, None] * DIM + part[None, :])
    wanted = tl.load(query + token[None, :] * DIM + part[:, None])
    similarities = tl.dot(document, wanted, out_dtype=tl.int32).to(tl.float32)
    similarities *= tl.load(scales + chunk * ROWS + row).to(tl.float32)[:, None]
    best = tl.max(similarities, axis=0)
    tl.store(out + chunk, tl.sum(best * tl.load(query_scales + token), axis=0))


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


def half_search(options: argparse.Namespace, score):
    on = {"device": options.device, "dtype": torch.float16}
    blocks = [
        torch.randn(min(options.block, options.chunks - at), ROWS, DIM, **on)
        for at in range(0, options.chunks, options.block)
    ]
    query = torch.randn(TOKENS, DIM, **on)
    return lambda: torch.topk(torch.cat([score(block, query) for block in blocks]), TOP).indices


def triton_search(options: argparse.Namespace):
    on = {"device": options.device}
    vectors = torch.randint(-128, 128, (options.chunks, ROWS, DIM), dtype=torch.int8, **on)
    scales = torch.rand(options.chunks, ROWS, **on).half() / 64
    query = torch.randint(-128, 128, (TOKENS, DIM), dtype=torch.int8, **on)
    query_scales = torch.rand(TOKENS, **on)
    out = torch.empty(options.chunks, **on)

    def score() -> torch.Tensor:
        maxsim[(options.chunks,)](vectors, scales, query, query_scales, out, ROWS, DIM, TOKENS)
        return out

    # A sample by plain products: a peer that is wrong is no peer.
    some = slice(0, 100)
    wanted = ((vectors[some].float() @ query.float().T) * scales[some].float()[:, :, None]).amax(dim=1) @ query_scales
    torch.testing.assert_close(score()[some], wanted, rtol=1e-3, atol=1e-2)
    return lambda: torch.topk(score(), TOP).indices


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["triton", "eager", "compiled"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--block", type=int, default=50_000, help="chunks a product")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.manual_seed(1)
    if options.kind == "triton":
        search = triton_search(options)
    else:
        search = half_search(options, scores if options.kind == "eager" else torch.compile(scores, dynamic=False))
    milliseconds = median_ms(search, options.device, options.rounds)
    print(
        json.dumps(
            {
                "versions": {"torch": torch.__version__, "triton": triton.__version__},
                "chunks": options.chunks,
                "p50_ms": round(milliseconds, 3),
                "token_vectors_per_second": options.chunks * ROWS / milliseconds * 1000,
            }
        )
    )


if __name__ == "__main__":
    main()
