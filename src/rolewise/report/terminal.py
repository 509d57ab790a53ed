"""What the browsing commands print. Text of models is shown literally, never interpreted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rolewise.report.comparison import Difference
from rolewise.report.curves import OF_ROLE
from rolewise.report.text import sparkline, visible

SPARK_WIDTH = 30
SHOWN_OF_ROLE = ("entropy", "role_grad_norm", "role_grad_share", "length_mean")


def literal(text: str, style: str = "") -> Text:
    """`text` as it is: no markup, no control character reaches the terminal."""
    return Text(visible(text), style=style)


def mark(correct: Any) -> Text:
    """A tick, a cross, or a dash where there is nothing to be right or wrong."""
    if correct is None or pd.isna(correct):
        return Text("–", style="dim")
    return Text("✓ correct", style="green") if correct else Text("✗ wrong", style="red")


def interval_text(interval: dict[str, Any] | None) -> str:
    """`0.412 [0.360, 0.464]` from `{value, lo, hi}`."""
    if not interval or interval["value"] is None:
        return "–"
    if interval["lo"] is None:
        return f"{interval['value']:.3f}"
    return f"{interval['value']:.3f} [{interval['lo']:.3f}, {interval['hi']:.3f}]"


def difference_table(rows: Iterable[tuple[str, Difference]], names: tuple[str, str]) -> Table:
    """Differences with their intervals; a label says what each row is of, empty for the obvious."""
    rows = list(rows)
    labelled = any(label for label, _ in rows)
    counts = sorted({row.difference.n for _, row in rows})
    title = f"{names[0]} (A) against {names[1]} (B), {' or '.join(map(str, counts))} problems"
    table = Table(title=literal(title), title_justify="left", box=None)
    if labelled:
        table.add_column("run", overflow="fold")
    table.add_column("checkpoint", no_wrap=True)
    for name in ("steps", "A", "B", "A - B", "only A, B", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for label, row in rows:
        interval = row.difference
        table.add_row(
            *([literal(label)] if labelled else []),
            row.checkpoint,
            f"{row.step_a}" if row.step_a == row.step_b else f"{row.step_a}, {row.step_b}",
            f"{row.a:.3f}",
            f"{row.b:.3f}",
            Text(interval_text(vars(interval)), style="bold" if interval.excludes_zero else ""),
            f"{row.only_a}, {row.only_b}",
            f"{row.p:.2g}",
        )
    return table


def cell_summary(
    summary: dict[str, Any], evaluations: pd.DataFrame | None, metrics: pd.DataFrame | None
) -> Group:
    """A cell at a glance: accuracies, gain, fall, curves as sparklines, cost."""
    steps = summary["steps"]
    table = Table("checkpoint", "step", box=None)
    for name in ("report half", "select half", "gain over base"):
        table.add_column(name, no_wrap=True)
    for name, accuracy in summary["accuracy"].items():
        gain = summary.get("gain", {}).get(name, {}).get("report")
        table.add_row(
            name,
            str(steps.get(name, 0)),
            interval_text(accuracy["report"]),
            f"{accuracy['select']['value']:.3f}",
            interval_text(gain),
        )
    parts: list[Any] = [Text(f"{summary['cell']}, seed {summary['seed']}", style="bold"), table]
    curves = Table.grid(padding=(0, 2))
    if evaluations is not None:
        held_out = evaluations[evaluations["split"] == "report"]
        _add_curve(curves, "validation accuracy", held_out.groupby("step")["correct"].mean())
    if metrics is not None:
        ordered = metrics.set_index("step").sort_index()
        for role, rows in ordered.groupby("role", sort=False):
            if role == "all":
                _add_curve(curves, "training success", rows["success"])
                continue
            for metric in SHOWN_OF_ROLE:
                name = OF_ROLE[metric].split(" by role")[0].lower()
                _add_curve(curves, f"{role}: {name}", rows[metric])
    if curves.row_count:
        parts.append(curves)
    parts += [Text(line) for line in _verdicts(summary)]
    return Group(*parts)


def _add_curve(table: Table, name: str, values: pd.Series) -> None:
    known = values.dropna().astype(float)
    if len(known):
        chosen = np.unique(np.linspace(0, len(known) - 1, SPARK_WIDTH).round().astype(int))
        drawn = sparkline(known.iloc[chosen].tolist())
        ends = f"{known.iloc[0]:.3g} → {known.iloc[-1]:.3g}"
        table.add_row(literal(name), Text(drawn, style="cyan"), ends)


def _verdicts(summary: dict[str, Any]) -> list[str]:
    lines = []
    if "cliff" in summary:
        fall = summary["cliff"]
        said = {True: "an accuracy cliff", False: "no cliff"}.get(fall["verdict"], "not decidable")
        lines.append(f"fall from best to terminal {interval_text(fall)}: {said}")
    if summary.get("cost"):
        cost = summary["cost"]
        lines.append(
            f"cost: {cost['cpu_s']:.0f} s of processor time, {cost['tokens_sampled']} tokens sampled, "
            f"{cost['tokens_trained']} trained"
        )
    return lines


def problem_table(calls: pd.DataFrame, wrong_only: bool) -> Table:
    """Every problem with its outcome at each checkpoint; `wrong_only` leaves out those always solved."""
    episodes = calls.drop_duplicates(["step", "problem", "sample"])
    solved = episodes.pivot_table(
        index="problem", columns="step", values="correct", aggfunc="mean", sort=False
    )
    names = episodes.drop_duplicates("step").set_index("step")["checkpoint"]
    table = Table("number", "problem", *(names[step] for step in sorted(solved)))
    for number, (problem, row) in enumerate(solved[sorted(solved)].iterrows()):
        if wrong_only and (row == 1).all():
            continue
        table.add_row(str(number), literal(str(problem)), *(mark(share == 1) for share in row))
    return table


def episode_view(calls: pd.DataFrame, statement: str | None, prompts: bool) -> Group:
    """One episode: the problem, then every role's call in order."""
    first = calls.iloc[0]
    head = Text.assemble(
        literal(str(first["problem"]), "bold"),
        f"  {first['checkpoint']}, step {first['step']}  ",
        mark(first["correct"]),
        f"  reward {first['reward']:.3g}",
    )
    parts: list[Any] = [head]
    if statement is not None:
        parts.append(Panel(literal(statement), title="problem", title_align="left"))
    for call in calls.to_dict("records"):
        parts.append(_call_panel(call, prompts))
    return Group(*parts)


def _call_panel(call: dict[str, Any], prompts: bool) -> Panel:
    title = Text(f"{call['role']} · slot {call['slot'] + 1} · turn {call['turn'] + 1}  ")
    title.append_text(mark(call["role_correct"]))
    for name in ("graded", "fallback"):
        if call[name]:
            title.append(f"  {name}")
    foot = [f"{call['tokens']} token{'' if call['tokens'] == 1 else 's'}"]
    if call["finish_reason"] != "stop":
        foot.append(str(call["finish_reason"]))
    if call["parsed"] is not None and not pd.isna(call["parsed"]):
        foot.append(f"parsed: {visible(str(call['parsed']))}")
    body = literal(call["text"])
    if prompts:
        body = Text("\n").join([literal(call["prompt"], "dim"), body])
    return Panel(
        body,
        title=title,
        title_align="left",
        subtitle=Text(" · ".join(foot)),
        subtitle_align="left",
    )
