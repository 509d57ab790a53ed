"""Shows the measurements of `make bench` in docs/performance.md: python -m docs.fill_benchmarks."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

from tabulate import tabulate

from benchmarks.run import contenders
from rolewise.records import write_text

DOCS = Path(__file__).parent
PAGE = DOCS / "performance.md"
MEASURED = DOCS.parent / "benchmarks"
NOT_YET = "Not measured yet: `python -m benchmarks.scaling`.\n"
BLOCK = re.compile(r"(<!-- (\w+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """Markdown; the first column is text, the others are numbers."""
    align = ["left"] + ["right"] * (len(heads) - 1)
    return tabulate(rows, heads, "pipe", disable_numparse=True, colalign=align) + "\n"


def trainers(results: dict) -> str:
    """A line per contender: medians over the rounds, extremes of the step in brackets."""
    rows = [
        [
            one.name,
            f"{one.step[0]:.2f} ({one.step[1]:.2f}-{one.step[2]:.2f})",
            f"{one.parts['sample']:.2f}",
            f"{one.parts['update']:.2f}",
            f"{one.sampled_tok_s:,.0f}",
            f"{one.trained_tok_s:,.0f}",
            f"{one.peak_memory_mb:,.0f}",
        ]
        for one in contenders(results["runs"])
    ]
    heads = ["contender", "step, s", "sampling, s", "update, s", "sampled tok/s"]
    return _table([*heads, "trained tok/s", "peak, MB"], rows)


def summary(results: dict) -> str:
    """The flat summary, start-up times and seconds per episode."""
    values = dict(results["summary"])
    values |= {f"start_up_{name}_s": value for name, value in results["start_up"].items()}
    values |= {
        f"ms_per_episode_{size}_open": 1000 * spread["median"]
        for size, spread in results["seconds_per_episode"].items()
    }
    rows = [
        [f"`{name}`", f"{value:,.0f}" if value > 100 else f"{value:.3f}"]
        for name, value in values.items()
    ]
    return _table(["measure", "value"], rows)


def machine(results: dict) -> str:
    """Where and with what was measured."""
    host, versions = results["machine"], results["versions"]
    peak = statistics.median(one["gemm_flops"] for one in results["runs"]["limits B"])
    return (
        f"{host['processor']}, {host['cores']} cores, {host['vector']}; one thread multiplies float32 "
        f"matrices at {peak / 1e9:.0f} GFLOP/s. "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f"; medians of {results['repeats']} alternating rounds.\n"
    )


def scaling(results: dict) -> str:
    """Seconds per step by size, and the fitted exponent, for every quantity that was varied."""
    return _table(
        ["varied", "exponent", "seconds per step"],
        [
            [
                name,
                f"{curve['exponent']:.2f}",
                ", ".join(f"{size}: {seconds:.2f}" for size, seconds in curve["seconds"].items()),
            ]
            for name, curve in results.items()
        ],
    )


def filled(text: str, measured: Path) -> str:
    """`text` with every block between marks replaced by what is in the folder `measured`."""
    results = json.loads((measured / "results.json").read_text())
    curves = measured / "scaling.json"
    made = {
        "machine": machine(results),
        "contenders": trainers(results),
        "summary": summary(results),
        "scaling": scaling(json.loads(curves.read_text())) if curves.is_file() else NOT_YET,
    }
    return BLOCK.sub(lambda match: f"{match[1]}{made[match[2]]}{match[3]}", text)


if __name__ == "__main__":
    write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), MEASURED))
