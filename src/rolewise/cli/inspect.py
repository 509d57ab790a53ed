"""Subcommands that look at a study and its machine: grid, status, audit, doctor, clean, reference."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rolewise.cli.options import ConfigFiles, read_config, with_configfiles

if TYPE_CHECKING:
    from rich.table import Table

    from rolewise.config import Config

PANEL = "Look after a study"
REFERENCE = "Pack or unpack the shipped reference results.\n\nExample: `rolewise reference unpack`"
COLOURS = {
    "done": "green", "evaluated": "green", "trained": "green", "ok": "green",
    "training": "cyan", "evaluating": "cyan", "stopped": "yellow", "note": "yellow",
    "failed": "bold red", "missing": "bold red",
}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the subcommands of this module to `app`."""
    for command in (grid, status, audit, doctor, clean):
        app.command(rich_help_panel=PANEL)(command)
    app.command("config-schema", rich_help_panel=PANEL)(config_schema)
    group = typer.Typer(no_args_is_help=True, help=REFERENCE)
    group.command()(pack)
    group.command()(unpack)
    app.add_typer(group, name="reference", rich_help_panel=PANEL)


def grid(
    configfile: ConfigFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the cells of the study, after checking its configuration.

    Example: `rolewise grid --configfile workflow/presets/smoke.yaml`
    """
    from rolewise.runs.extensions import check_extensions
    from rolewise.runs.graph import Graph

    study = Graph(read_config(configfile))
    check_extensions(study.config)
    cells: dict = {}
    for cell, seed in study.trained + study.base:
        cells.setdefault(cell, []).append(seed)
    rows = [
        {
            "cell": cell.name,
            "workflow": cell.workflow,
            "policy": cell.policy,
            "scale": cell.scale,
            "task": cell.task,
            "variant": cell.variant,
            "trained": cell.trained,
            "seeds": seeds,
        }
        for cell, seeds in cells.items()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = _table("cell", "workflow", "policy", "scale", "task", "variant", "seeds")
    for row in rows:
        seeds = ", ".join(map(str, row["seeds"]))
        table.add_row(
            *(row[k] for k in ("cell", "workflow", "policy", "scale", "task", "variant")), seeds
        )
    table.caption = f"{len(study.trained)} trainings, {len(study.base)} evaluations of base models"
    _print(table)


def status(
    configfile: ConfigFiles = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until interrupted.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between refreshes.", min=0.2)] = 5.0,
) -> None:
    """Show the state of every cell: progress, reward, accuracy, time left, last line of failures.

    Example: `rolewise status --watch`
    """
    config = read_config(configfile)
    if not watch:
        _print(_status_table(config, configfile or []))
        return
    from rich.live import Live

    try:
        with Live(_status_table(config, configfile or []), auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(_status_table(config, configfile or []), refresh=True)
    except KeyboardInterrupt:
        return


def _status_table(config: Config, files: list[Path]) -> Table:
    from collections import Counter

    from rich.markup import escape

    from rolewise.runs.status import study_status

    table = _table("cell", "seed", "state", "step", "reward", "accuracy", "left", "note")
    found = study_status(config)
    for item in found:
        progress = "" if item.steps is None else f"{item.step or 0}/{item.steps}"
        table.add_row(
            item.cell,
            str(item.seed),
            _coloured(item.state),
            progress,
            _number(item.reward),
            _number(item.accuracy),
            _duration(item.eta_s),
            escape(item.note[:160]),
        )
    counts = Counter(item.state for item in found)
    table.caption = f"{config.results_dir}: " + ", ".join(f"{n} {s}" for s, n in counts.items())
    if not Path(config.results_dir).is_dir():
        remedy = with_configfiles("`snakemake --cores all` runs the study into it", files)
        table.caption += f"; no such results folder yet, {remedy}"
    return table


def audit(configfile: ConfigFiles = None) -> None:
    """Say which results are older than the configuration, data or code behind them; exit 1 if any.

    Prints the exact command that renews each. Example: `rolewise audit`
    """
    from rolewise.runs.audit import audit as find
    from rolewise.runs.audit import has_results

    config = read_config(configfile)
    if not has_results(config):
        print(f"{config.results_dir} has no finished results of this study yet.")
        return
    stale = find(config, configfile or [])
    for item in stale:
        print(f"{item.cell} seed {item.seed} is stale")
        for reason in item.reasons:
            print(f"    {with_configfiles(reason, configfile or [])}")
        print(f"    renew: {item.command}")
    if stale:
        sys.exit(1)
    print("Every finished result belongs to the present configuration, data and code.")


def doctor(configfile: ConfigFiles = None) -> None:
    """Say what this machine can run, what is missing and how to get it; exit 1 if something will fail.

    Example: `rolewise doctor`
    """
    from rolewise.runs.doctor import examine

    config = read_config(configfile)
    findings = examine(Path(config.results_dir), config.sandbox.min_tier)
    table = _table("what", "", "found", "advice")
    for item in findings:
        advice = with_configfiles(item.advice, configfile or [])
        table.add_row(item.what, _coloured(item.level), item.found, advice)
    _print(table)
    if any(item.level == "missing" for item in findings):
        sys.exit(1)


def clean(
    configfile: ConfigFiles = None,
    state: Annotated[
        bool, typer.Option("--state", help="Also resumable state of this study.")
    ] = False,
    cell: Annotated[
        list[str] | None, typer.Option(help="Only state of this cell; repeatable.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Only state of this seed; repeatable.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it nothing is.")] = False,
) -> None:
    """List what can be deleted without losing a result; `--yes` deletes it.

    By default the state behind results that newer ones, of this configuration, have replaced, and
    settled configurations of old runs; with `--state` also this study's resumable state. Tables,
    figures and cells are never touched. Example: `rolewise clean --state --cell Voting-IP-0.3M-Math --yes`
    """
    from rolewise.runs import clean as cleaning

    config = read_config(configfile)
    selected = cell or seed
    items = [] if selected else cleaning.leftovers(config)
    if state:
        items += cleaning.state_of(config, cell or [], seed or [])
    elif selected:
        raise typer.BadParameter("--cell and --seed select resumable state; add --state")
    for item in items:
        print(f"{item.size / 2**20:9.1f} MiB  {item.path}  ({item.reason})")
    total = sum(item.size for item in items) / 2**20
    if yes:
        cleaning.remove(items)
        print(f"deleted {len(items)} item(s), {total:.1f} MiB")
    else:
        print(f"{len(items)} item(s), {total:.1f} MiB; nothing is deleted without --yes")
    spared = [] if selected else cleaning.kept(config)
    if spared:
        size = sum(item.size for item in spared) / 2**20
        print(
            f"kept: {len(spared)} state folder(s), {size:.1f} MiB, of other configurations that no "
            "result of this one replaces; `rolewise clean --state --configfile THEIRS` lists them"
        )


def config_schema() -> None:
    """Print the JSON schema of the configuration, for editors that complete and check YAML.

    Example: `rolewise config-schema > config.schema.json`
    """
    from rolewise.config import Config

    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema"
    } | Config.model_json_schema()
    print(json.dumps(schema, indent=1))


def pack(
    configfile: ConfigFiles = None,
    out: Annotated[Path, typer.Option(help="Folder to replace.")] = Path("results/reference"),
    tables_only: Annotated[
        bool, typer.Option(help="Only the tidy table, without training steps.")
    ] = False,
) -> None:
    """Copy a finished study up to the cut line, with hashes, into a folder to ship.

    Example: `rolewise reference pack`
    """
    from rolewise.runs import reference

    manifest = reference.pack(read_config(configfile), out, tables_only=tables_only)
    print(f"{out}: {len(manifest['files'])} files of preset {manifest['preset']}")


def unpack(
    configfile: ConfigFiles = None,
    source: Annotated[Path, typer.Option(help="Folder that was packed.")] = Path(
        "results/reference"
    ),
) -> None:
    """Copy reference results into `results_dir`, checking their hashes; frozen mode does it by itself.

    Example: `snakemake --cores 2 figures --config frozen=true`
    """
    from rolewise.runs import reference

    config = read_config(configfile)
    print(f"{config.results_dir}: {reference.unpack(source, Path(config.results_dir))} files")


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print(table: Table) -> None:
    from rich.console import Console

    console = Console()
    # In a pipe nothing is gained by folding.
    Console(width=None if console.is_terminal else 200).print(table)


def _coloured(word: str) -> str:
    colour = COLOURS.get(word)
    return f"[{colour}]{word}[/]" if colour else word


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
