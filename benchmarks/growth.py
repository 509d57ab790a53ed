"""How the cost of an episode grows with the number of open episodes. One JSON line.

Episodes are sampled and graded, not trained; every size draws the same number of episodes in all.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import ours
from benchmarks.measuring import Laps, pin_threads, spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256, 1024, 4096])
    parser.add_argument("--episodes", type=int, default=4096, help="episodes per size")
    parser.add_argument("--threads", type=int, default=1)
    own = parser.parse_args()
    pin_threads(own.threads)
    seconds = {}
    for size in own.sizes:
        opts = ours.defaults(own.model, prompts=max(1, size // 8), sample_only=True)
        bench, laps = ours.Bench(opts), Laps()
        for step in range(max(1, own.episodes // size)):
            bench.step(step, laps)
        rows = bench.load.prompts * bench.load.generations
        seconds[rows] = spread(lap["step"] / rows for lap in laps.steps)
    print(json.dumps({"seconds_per_episode": seconds}))


if __name__ == "__main__":
    main()
