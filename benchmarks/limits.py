"""What bounds a step on this core: peak of matrix products, and a bare decode loop. One JSON line.

The loop decodes the same number of rows with the same model on merged weights and a static cache: all
rows equally long, the likeliest token, no bookkeeping, no log-probabilities. No sampler on this stack can be faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import pin_threads
from benchmarks.workload import LOADS, Load

PROMPT = 46


def seconds(function: Callable, repeats: int) -> list[float]:
    """Wall times of `repeats` calls, after one that does not count."""
    function()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return times


def gemm_peak(repeats: int) -> float:
    """Floating-point operations per second of the fastest of a few square products."""
    import torch

    best = 0.0
    for size in (768, 1024, 1536):
        a, b = torch.ones(size, size), torch.ones(size, size)
        out = torch.empty(size, size)
        fastest = min(seconds(lambda a=a, b=b, out=out: torch.mm(a, b, out=out), repeats))
        best = max(best, 2 * size**3 / fastest)
    return best


def bare_decode(model: Path, load: Load, repeats: int) -> float:
    """Tokens per second of a decode loop on `load`, median over repeats."""
    import torch
    import torch.nn.functional as F

    from rolewise.policy.backbone import Backbone

    backbone = Backbone.load(model)
    shape, rows = backbone.shape, load.prompts * load.generations
    groups = shape.heads // shape.kv_heads
    cache = torch.zeros(shape.layers, 2, rows, shape.kv_heads, PROMPT + load.tokens, shape.head_dim)
    prompts = torch.randint(0, 256, (load.prompts, PROMPT))

    def prefill(layer: int, q, k, v):
        q, k, v = (t.unflatten(0, (load.prompts, PROMPT)).transpose(1, 2) for t in (q, k, v))
        for kind, new in enumerate((k, v)):
            cache[layer, kind, :, :, :PROMPT] = new.repeat_interleave(load.generations, 0)
        k, v = (t.repeat_interleave(groups, 1) for t in (k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(0, 1)

    def run() -> None:
        positions = torch.arange(PROMPT).repeat(load.prompts)
        ends = torch.arange(1, load.prompts + 1) * PROMPT - 1
        hidden = backbone.forward(
            prompts.flatten(), positions, prefill, backbone.plain_linear, keep_M=ends
        ).repeat_interleave(load.generations, 0)
        for at in range(PROMPT, PROMPT + load.tokens):
            ids = backbone.logits(hidden).argmax(-1)

            def decode(layer: int, q, k, v, at=at):
                cache[layer, 0, :, :, at], cache[layer, 1, :, :, at] = k, v
                keys, values = cache[layer, :, :, :, : at + 1]
                q = q.unflatten(1, (shape.kv_heads, groups)) * shape.head_dim**-0.5
                return ((q @ keys.transpose(-1, -2)).softmax(-1) @ values).flatten(1, 2)

            hidden = backbone.forward(ids, torch.full((rows,), at), decode, backbone.plain_linear)

    with torch.inference_mode():
        return rows * load.tokens / statistics.median(seconds(run, repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--load", choices=list(LOADS), default="A")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    opts = parser.parse_args()
    pin_threads(opts.threads)
    print(
        json.dumps(
            {
                "gemm_flops": gemm_peak(opts.repeats),
                "decode_tok_s": bare_decode(opts.model, LOADS[opts.load], opts.repeats),
            }
        )
    )


if __name__ == "__main__":
    main()
