"""All contenders on the same work, taking turns; writes results.json and prints a table.

Every run is a process of its own; peers run in `--peers` (an environment with their pins). Only ratios
within one run of this script mean anything: seconds do not carry over between machines.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import busy_seconds, machine, spread
from benchmarks.workload import TRAINED_TOKEN_FLOP

ROOT = Path(__file__).parents[1]
NOISY_CORES = 0.25


@dataclass(frozen=True)
class Run:
    """One process: module and arguments; `peer` says in whose environment."""

    name: str
    module: str
    arguments: tuple[str, ...]
    peer: bool = False


def plan(tiny: bool) -> list[Run]:
    """The runs of one round, ours next to the peer it is compared with."""

    def steps(count: int, warmup: int) -> tuple[str, ...]:
        return ("--steps", "1" if tiny else str(count), "--warmup", "1" if tiny else str(warmup))

    def load(name: str) -> tuple[str, ...]:
        return ("--load", "tiny" if tiny else name)

    few = ("--repeats", "1") if tiny else ()
    return [
        Run("limits A", "limits", (*load("A"), *few)),
        Run("ours A", "ours", (*load("A"), *steps(15, 4))),
        Run("TRL A", "peer_trl", (*load("A"), *steps(15, 4)), peer=True),
        Run("limits B", "limits", (*load("B"), *few)),
        Run("ours B", "ours", (*load("B"), *steps(6, 2))),
        Run("TRL B", "peer_trl", (*load("B"), *steps(6, 2)), peer=True),
        Run("ours pair", "ours", ("--workflow", "pair", *load("A"), *steps(12, 3))),
        Run(
            "CoMLRL pair",
            "peer_comlrl",
            ("--workflow", "pair", *load("A"), *steps(6, 1)),
            peer=True,
        ),
        Run("ours Voting", "ours", ("--workflow", "voting", *load("A"), *steps(12, 3))),
        Run(
            "CoMLRL chain",
            "peer_comlrl",
            ("--workflow", "chain", *load("chain"), *steps(3, 1)),
            peer=True,
        ),
        Run("ledger", "ledger", (*load("A"), *steps(8, 2))),
    ]


def command(run: Run, model: Path, peers: Path) -> list[str]:
    python = peers / "bin" / "python" if run.peer else Path(sys.executable)
    return [str(python), "-m", f"benchmarks.{run.module}", str(model), *run.arguments]


def start(arguments: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def result_of(process: subprocess.Popen) -> dict:
    """The JSON line that a process printed; its errors if it failed."""
    out, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(process.args)} failed:\n{errors[-2000:]}")
    return json.loads(out.strip().splitlines()[-1])


def measure(run: Run, model: Path, peers: Path) -> dict:
    """One run, with the cores that something else kept busy meanwhile."""
    wall, busy, own = time.perf_counter(), busy_seconds(), _children_seconds()
    found = result_of(start(command(run, model, peers)))
    wall = time.perf_counter() - wall
    others = (busy_seconds() - busy - (_children_seconds() - own)) / wall
    return found | {"other_busy_cores": round(max(0.0, others), 2)}


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def side_by_side(model: Path, steps: tuple[str, ...], load: tuple[str, ...]) -> float:
    """Steps per second of two trainings at once, one thread each, over those of one alone."""
    run = command(Run("", "ours", ("--workflow", "voting", *load, *steps)), model, Path())
    alone = result_of(start(run))["seconds"]["step"]["median"]
    pair = [start(run), start(run)]
    together = [result_of(process)["seconds"]["step"]["median"] for process in pair]
    return sum(alone / seconds for seconds in together)


def start_up(model: Path) -> dict[str, float]:
    """Seconds until `rolewise --help` is done, and until a training has its modules and model."""
    job = (
        "from pathlib import Path\n"
        "from rolewise.training import loop\n"
        "from rolewise.policy.backbone import Backbone\n"
        "from rolewise.policy.tokenizer import ChatTokenizer\n"
        f"folder = Path({str(model)!r})\n"
        "Backbone.load(folder), ChatTokenizer(folder)\n"
    )
    times = {}
    for name, arguments in (
        ("help", [str(Path(sys.executable).with_name("rolewise")), "--help"]),
        ("job", [sys.executable, "-c", job]),
    ):
        taken = []
        for _ in range(3):
            began = time.perf_counter()
            subprocess.run(arguments, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            taken.append(time.perf_counter() - began)
        times[name] = statistics.median(taken)
    return times


def summarise(runs: dict[str, list[dict]], pairs: list[float]) -> dict[str, float]:
    """The flat summary, from medians over the rounds; ratios above 1 favour this project.

    `memory_vs_trl_*` are our peak over TRL's; `chain_vs_comlrl` compares seconds per trained row;
    `update_gemm_share_b` counts the FLOPs of every row's prompt and completion, as for the peers.
    Overheads are shares of a step without any ledger: `ledger_overhead` averages over the steps of the
    default cadence, in which every fifth tells slots apart; `_slot_step` is such a step alone.
    """

    def middle(name: str, value) -> float:
        return statistics.median(value(found) for found in runs[name])

    def step(name: str) -> float:
        return middle(name, lambda found: found["seconds"]["step"]["median"])

    def per_row(name: str) -> float:
        return middle(name, lambda found: found["seconds"]["step"]["median"] / found["rows"])

    def memory(name: str) -> float:
        return middle(name, lambda found: found["peak_memory_mb"])

    return {
        "sa_vs_trl_a": step("TRL A") / step("ours A"),
        "sa_vs_trl_b": step("TRL B") / step("ours B"),
        "memory_vs_trl_a": memory("ours A") / memory("TRL A"),
        "memory_vs_trl_b": memory("ours B") / memory("TRL B"),
        "pair_vs_comlrl": step("CoMLRL pair") / step("ours pair"),
        "chain_vs_comlrl": per_row("CoMLRL chain") / per_row("ours Voting"),
        "sampling_tok_s_a": middle("ours A", lambda found: found["sampled_tok_s"]),
        "sampling_tok_s_b": middle("ours B", lambda found: found["sampled_tok_s"]),
        "update_gemm_share_b": middle("ours B", lambda found: found["trained_tok_s"])
        * TRAINED_TOKEN_FLOP
        / middle("limits B", lambda found: found["gemm_flops"]),
        "ledger_overhead": middle("ledger", _mean_overhead),
        "ledger_overhead_roles": middle("ledger", lambda found: found["overhead"]["roles"]),
        "ledger_overhead_slot_step": middle("ledger", lambda found: found["overhead"]["slots"]),
        "ratio_pass_overhead": middle("ledger", _ratio_overhead),
        "side_by_side": statistics.median(pairs),
    }


def _mean_overhead(found: dict) -> float:
    """Overhead of the ledger per step when every `every`-th step tells slots apart."""
    roles, slots = found["overhead"]["roles"], found["overhead"]["slots"]
    return roles + (slots - roles) / found["every"]


def _ratio_overhead(found: dict) -> float:
    return found["overhead"]["ratios"] - found["overhead"]["roles"]


@dataclass(frozen=True)
class Contender:
    """Medians of one contender over the rounds; `step` is (median, least, greatest) seconds."""

    name: str
    step: tuple[float, float, float]
    parts: dict[str, float]
    rows: float
    sampled_tok_s: float
    trained_tok_s: float
    decode_share: float
    gemm_share: float
    peak_memory_mb: float
    other_busy_cores: float


def contenders(runs: dict[str, list[dict]]) -> list[Contender]:
    """Everyone who trained, beside the limits of the same load."""
    made = []
    for name, found in runs.items():
        if "seconds" not in found[0]:
            continue
        limits = runs["limits B" if name.endswith("B") else "limits A"]
        decode, flops = (
            statistics.median(limit[key] for limit in limits)
            for key in ("decode_tok_s", "gemm_flops")
        )
        steps = [one["seconds"]["step"] for one in found]

        def middle(key: str, found=found) -> float:
            return statistics.median(one[key] for one in found)

        made.append(
            Contender(
                name,
                (
                    statistics.median(step["median"] for step in steps),
                    min(step["min"] for step in steps),
                    max(step["max"] for step in steps),
                ),
                {
                    part: statistics.median(one["seconds"][part]["median"] for one in found)
                    for part in ("sample", "grade", "update")
                },
                middle("rows"),
                middle("sampled_tok_s"),
                middle("trained_tok_s"),
                middle("sampled_tok_s") / decode,
                middle("trained_tok_s") * TRAINED_TOKEN_FLOP / flops,
                middle("peak_memory_mb"),
                max(one["other_busy_cores"] for one in found),
            )
        )
    return made


def table(runs: dict[str, list[dict]]) -> Table:
    """A line per contender: medians over the rounds, with the extremes of the step."""
    heads = ["contender", "step s", "sampling", "grading", "update", "rows", "sampled tok/s"]
    heads += ["of limit", "trained tok/s", "of limit", "peak MB", "others' cores"]
    made = Table(*heads, title="one thread; limits: bare decode loop, peak of matrix products")
    for one in contenders(runs):
        made.add_row(
            one.name,
            f"{one.step[0]:.3f} ({one.step[1]:.3f}-{one.step[2]:.3f})",
            *(f"{seconds:.3f}" for seconds in one.parts.values()),
            f"{one.rows:.0f}",
            f"{one.sampled_tok_s:,.0f}",
            f"{one.decode_share:.0%}",
            f"{one.trained_tok_s:,.0f}",
            f"{one.gemm_share:.0%}",
            f"{one.peak_memory_mb:.0f}",
            f"{one.other_busy_cores:.2f}",
        )
    return made


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-bench")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results.json")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, to try the scripts")
    opts = parser.parse_args(given)
    os.environ["OMP_NUM_THREADS"] = "1"
    from benchmarks.model import build

    model = build(opts.folder / "model").resolve()
    console, runs = Console(width=160), defaultdict(list)
    sizes = ("--load", "tiny") if opts.tiny else ("--load", "A")
    steps = ("--steps", "2" if opts.tiny else "25", "--warmup", "1" if opts.tiny else "4")
    pairs = []
    for number in range(opts.repeats):
        for run in plan(opts.tiny):
            found = measure(run, model, opts.peers)
            runs[run.name].append(found)
            noisy = found["other_busy_cores"] > NOISY_CORES
            seconds = found.get("seconds", {}).get("step", {}).get("median")
            console.print(
                f"round {number + 1}  {run.name:14}"
                + (f"{seconds:8.3f} s per step" if seconds else "")
                + (f"  (others used {found['other_busy_cores']} cores)" if noisy else "")
            )
        pairs.append(side_by_side(model, steps, sizes))
    growth_sizes = ["--sizes", "8", "16", "--episodes", "16"] if opts.tiny else []
    growth = result_of(
        start([sys.executable, "-m", "benchmarks.growth", str(model), *growth_sizes])
    )
    content = {
        "machine": machine(),
        "versions": {
            name: importlib.metadata.version(name) for name in ("rolewise", "torch", "numpy")
        }
        | {
            name: runs[run][0]["version"]
            for name, run in (("trl", "TRL A"), ("comlrl", "CoMLRL pair"))
        },
        "repeats": opts.repeats,
        "summary": summarise(runs, pairs),
        "start_up": start_up(model),
        "side_by_side": spread(pairs),
        **growth,
        "runs": runs,
    }
    opts.out.write_text(json.dumps(content, indent=1) + "\n")
    console.print(table(runs))
    for name, value in content["summary"].items():
        console.print(f"{name:24}{value:12,.3f}")
    console.print(f"seconds per episode   {json.dumps(growth['seconds_per_episode'])}")
    console.print(f"start-up              {json.dumps(content['start_up'])}")


if __name__ == "__main__":
    main()
