"""What measuring costs: the same rows of Voting trained with nothing told apart, by role, by slot.

A further kind tells roles apart and scores the rows again after the update (policy ratios). The kinds
take turns on the rows of one step, under Shared-Policy, where roles have to be told apart within one
adapter, and with the mini-batches of the default configuration. One JSON line.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time

from benchmarks import ours
from benchmarks.measuring import Laps, pin_threads, spread

KINDS = ("none", "roles", "slots", "ratios")


def main() -> None:
    sys.argv[1:] = ["--workflow", "voting", "--policy", "SP", *sys.argv[1:]]
    opts = ours.arguments()
    pin_threads(opts.threads)
    bench = ours.Bench(opts, {"training.update.steps": "natural"})
    laps = Laps()
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for step in range(opts.warmup + opts.steps):
        rows = bench.step(step, laps)
        # Trained as one role, all rows share an accumulator and prompts, and nothing is compared.
        merged = [dataclasses.replace(row, role="all") for row in rows]
        for turn in range(len(KINDS)):
            kind = KINDS[(step + turn) % len(KINDS)]
            began = time.perf_counter()
            bench.updater.update(
                step,
                merged if kind == "none" else rows,
                ledger=kind == "slots",
                probe=False,
                ratios=kind == "ratios",
            )
            times[kind].append(time.perf_counter() - began)
        laps.start()
    update = {kind: spread(values[opts.warmup :]) for kind, values in times.items()}
    rest = spread(step["step"] - step["update"] for step in laps.steps[opts.warmup :])
    whole = rest["median"] + update["none"]["median"]
    print(
        json.dumps(
            {
                "update": update,
                "rest": rest,
                "overhead": {
                    kind: (update[kind]["median"] - update["none"]["median"]) / whole
                    for kind in KINDS[1:]
                },
                "every": bench.config.ledger.every,
            }
        )
    )


if __name__ == "__main__":
    main()
