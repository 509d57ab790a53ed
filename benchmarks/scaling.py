"""How a step grows: episodes, response length, roles, LoRA rank, model size, each with its exponent.

Run `python -m benchmarks.scaling`; wants a quiet machine, takes about two minutes. Prints a table and
writes `scaling.json` beside the results. The exponent is the slope of log seconds over log size.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path

from benchmarks import ours
from benchmarks.measuring import Laps, pin_threads

FOLDER = Path("build/bench")
STEPS, WARMUP = 4, 1
TINY = {"prompts": 1, "generations": 2, "tokens": 4}


def exponent(points: dict[float, float]) -> float:
    """Slope of the least-squares line through (log size, log seconds)."""
    x, y = ([math.log(v) for v in values] for values in (points, points.values()))
    return statistics.linear_regression(x, y).slope


def seconds_of(model: Path, steps: int, **changes) -> float:
    """Median seconds of a step."""
    bench, laps = ours.Bench(ours.defaults(model, **changes)), Laps()
    for step in range(WARMUP + steps):
        bench.step(step, laps)
    return statistics.median(laps.column("step", WARMUP))


def curves(folder: Path, steps: int, tiny: bool) -> dict[str, dict[float, float]]:
    """Seconds per step by size, for every quantity that is varied."""
    from benchmarks.model import build
    from rolewise.policy.backbone import Backbone

    model = build(folder / "model", steps=0) if tiny else build(folder / "model")
    sizes = [(64, 2), (128, 4)] if tiny else [(64, 2), (128, 4), (256, 6), (384, 8)]
    base = TINY if tiny else {}

    def measure(values: list[int], **how) -> dict[float, float]:
        return {
            value: seconds_of(model, steps, **base, **{k: f(value) for k, f in how.items()})
            for value in values
        }

    def same(value):
        return value

    models = {}
    for hidden, layers in sizes:
        grown = build(folder / f"model-{hidden}x{layers}", hidden, layers, steps=0)
        count = Backbone.load(grown).shape.linear_parameters
        models[count] = seconds_of(grown, steps, **base)
    found = {"model weights": models}
    found["LoRA rank"] = measure([4, 16] if tiny else [4, 16, 64], rank=same)
    found["roles (votes + 1)"] = {
        votes + 1: seconds_of(model, steps, **base, workflow="voting", votes=votes)
        for votes in ([1, 2] if tiny else [1, 3, 7])
    }
    if tiny:
        return found
    found["episodes per step"] = {
        8 * prompts: seconds_of(model, steps, prompts=prompts) for prompts in (2, 8, 32)
    }
    found["response length"] = {
        tokens: seconds_of(model, steps, load="B", prompts=4, tokens=tokens)
        for tokens in (24, 96, 384)
    }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/scaling.json"))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--tiny", action="store_true", help="two small sizes of a few quantities")
    opts = parser.parse_args()
    pin_threads(1)
    result = {}
    for name, points in curves(opts.folder, opts.steps, opts.tiny).items():
        result[name] = {"seconds": points, "exponent": exponent(points)}
        curve = "  ".join(f"{size}: {seconds:.3f} s" for size, seconds in points.items())
        print(f"{name:20} exponent {result[name]['exponent']:5.2f}   {curve}", flush=True)
    opts.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
