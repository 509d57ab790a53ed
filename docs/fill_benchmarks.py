"""Shows the measurements of `make bench` in docs/performance.md: python docs/fill_benchmarks.py."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

from rolewise.records import write_text

DOCS = Path(__file__).parent
PAGE = DOCS / "performance.md"
MEASURED = DOCS.parent / "benchmarks"
NOT_YET = "Not measured yet: `python -m benchmarks.scaling`.\n"
BLOCK = re.compile(r"(<!-- (\w+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """Markdown; the first column is text, the others are numbers."""
    rule = ["---"] + ["---:"] * (len(heads) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, rule, *rows]) + "\n"


def contenders(results: dict) -> str:
    """A line per contender: medians over the rounds, extremes of the step in brackets."""
    rows = []
    for name, found in results["runs"].items():
        if "seconds" not in found[0]:
            continue
        steps = [one["seconds"]["step"] for one in found]

        def middle(value, found=found) -> float:
            return statistics.median(value(one) for one in found)

        rows.append(
            [
                name,
                f"{statistics.median(s['median'] for s in steps):.2f} "
                f"({min(s['min'] for s in steps):.2f}-{max(s['max'] for s in steps):.2f})",
                *(
                    f"{middle(lambda one, part=part: one['seconds'][part]['median']):.2f}"
                    for part in ("sample", "update")
                ),
                f"{middle(lambda one: one['rows']):.0f}",
                f"{middle(lambda one: one['sampled_tok_s']):,.0f}",
                f"{middle(lambda one: one['trained_tok_s']):,.0f}",
                f"{middle(lambda one: one['peak_memory_mb'] or float('nan')):,.0f}",
            ]
        )
    heads = ["contender", "step, s", "sampling, s", "update, s", "rows", "sampled tok/s"]
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
        + f"; rounds: {results['repeats']}. {results.get('note', '')}\n"
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
        "contenders": contenders(results),
        "summary": summary(results),
        "scaling": scaling(json.loads(curves.read_text())) if curves.is_file() else NOT_YET,
    }
    return BLOCK.sub(lambda match: f"{match[1]}{made[match[2]]}{match[3]}", text)


if __name__ == "__main__":
    write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), MEASURED))
