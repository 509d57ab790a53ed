"""Subcommands to look at results: the report, and the same things in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rolewise.cli.options import CellName, ConfigFiles, Seed, read_config
from rolewise.errors import DataError, RolewiseError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from rolewise.config import Config
    from rolewise.grid import Cell
    from rolewise.runs.layout import Layout

Results = Annotated[
    Path | None, typer.Option("--results", help="Results folder; default: results_dir.")
]
Folders = Annotated[
    list[Path] | None,
    typer.Option("--results", help="Results folder; twice: A's folder, then B's."),
]


def register(app: typer.Typer) -> None:
    """Add the subcommands of this module to `app`."""
    for command in (report, show, trajectories, compare, tensorboard):
        app.command(rich_help_panel="Look at results")(command)


def report(configfile: ConfigFiles = None, results: Results = None) -> None:
    """Write the static report with the trajectory browser, `report/index.html`; works offline.

    Example: `rolewise report --configfile workflow/presets/smoke.yaml`
    """
    from rolewise.report.build import build_report

    typer.echo(build_report(_at(read_config(configfile), results)))


def show(
    cell: CellName, seed: Seed = 0, configfile: ConfigFiles = None, results: Results = None
) -> None:
    """Show a cell at a glance: accuracies with intervals, gain, curves as sparklines, cost.

    Example: `rolewise show Voting-IP-0.3M-Math`
    """
    from rolewise.analysis.sources import read_json, read_table
    from rolewise.report.study import if_there
    from rolewise.report.terminal import cell_summary

    folder = _folder(_at(read_config(configfile), results), cell, seed)
    summary = read_json(_made(folder / "summary.json"))
    evaluations = if_there(read_table, folder / "evaluations.parquet")
    metrics = if_there(read_table, folder / "metrics.parquet")
    _console().print(cell_summary(summary, evaluations, metrics))


def trajectories(
    cell: CellName,
    problem: Annotated[
        str | None, typer.Option(help="Problem id, or its number in the list, from 0.")
    ] = None,
    checkpoint: Annotated[str, typer.Option(help="base, early, best, terminal.")] = "best",
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Only problems, or role outputs, that are wrong.")
    ] = False,
    prompts: Annotated[bool, typer.Option("--prompts", help="Show the prompts too.")] = False,
    sample: Annotated[int, typer.Option(help="Sample of the problem.")] = 0,
    seed: Seed = 0,
    configfile: ConfigFiles = None,
    results: Results = None,
) -> None:
    """Read an episode: the problem, then every role's output. Without --problem: list the problems.

    Example: `rolewise trajectories Voting-IP-0.3M-Math --problem 3 --checkpoint terminal`
    """
    from rolewise.analysis.sources import read_table
    from rolewise.report.terminal import episode_view, problem_table

    config = _at(read_config(configfile), results)
    folder = _folder(config, cell, seed)
    calls = read_table(_made(folder / "trajectories.parquet"))
    if problem is None:
        _console().print(problem_table(calls, wrong))
        return
    chosen = _problem(calls, problem)
    episode = _episode(calls, chosen, checkpoint, sample)
    statement = _statement(config, cell, chosen)
    if wrong:
        episode = episode[episode["role_correct"].eq(False)]
        if episode.empty:
            typer.echo(f"{chosen}: no role output is wrong at {checkpoint}")
            return
    _console().print(episode_view(episode, statement, prompts))


def compare(
    a: Annotated[str | None, typer.Argument(help="First cell; none: every common cell.")] = None,
    b: Annotated[str | None, typer.Argument(help="Second cell; default: the first one.")] = None,
    split: Annotated[str, typer.Option(help="report, select or all.")] = "report",
    seed: Annotated[int | None, typer.Option(help="One seed; default: every common one.")] = None,
    configfile: ConfigFiles = None,
    results: Folders = None,
) -> None:
    """Compare two cells, or two results folders, on the same problems, with intervals.

    Example: `rolewise compare Voting-IP-0.3M-Math Voting-SP-0.3M-Math`;
    two runs of the study: `rolewise compare --results results --results results/reference`
    """
    from rolewise.analysis.outcomes import SPLITS
    from rolewise.grid import base_cells, parse_cell, trained_cells
    from rolewise.runs.layout import layout

    if split not in SPLITS:
        raise RolewiseError(f"--split {split}: choose one of {', '.join(SPLITS)}")
    folders = results or []
    if len(folders) > 2 or (len(folders) < 2 and b is None):
        raise RolewiseError(
            "name two cells (`rolewise compare A B`) or two folders (--results X --results Y)"
        )
    config = read_config(configfile)
    sides = [layout(_at(config, folder)) for folder in (folders or [None])]
    sides = (sides * 2)[:2]
    if a is None:
        pairs = [(cell, cell) for cell in trained_cells(config) + base_cells(config)]
    else:
        pairs = [(parse_cell(config, a), parse_cell(config, b or a))]
        _require_one_task(*pairs[0])
    names = (a or str(sides[0].root), b or a or str(sides[1].root))
    if names[0] == names[1]:
        names = (str(sides[0].root), str(sides[1].root))
    _compare(config, sides, pairs, names, split, seed, required=a is not None)


def tensorboard(
    cell: Annotated[str | None, typer.Argument(help="Cell; none: all that have begun.")] = None,
    to: Annotated[Path, typer.Option(help="Folder to write.")] = Path("tensorboard"),
    seed: Annotated[int | None, typer.Option(help="One seed; default: all.")] = None,
    configfile: ConfigFiles = None,
    results: Results = None,
) -> None:
    """Export training metrics, also of running cells, for TensorBoard: a run per cell, seed and role.

    Example: `rolewise tensorboard Voting-IP-0.3M-Math --to tensorboard`
    """
    import pandas as pd

    from rolewise.analysis.sources import read_table
    from rolewise.grid import parse_cell, seeds_of, trained_cells
    from rolewise.report.study import if_there
    from rolewise.report.tensorboard import write_events
    from rolewise.runs.layout import layout
    from rolewise.runs.state import StateDir

    config = _at(read_config(configfile), results)
    places = layout(config)
    written = 0
    for chosen in trained_cells(config) if cell is None else [parse_cell(config, cell)]:
        for number in seeds_of(config, chosen) if seed is None else [seed]:
            running = StateDir(places.training_state(config, chosen, number)).rows("metrics")
            finished = places.cell(chosen, number) / "metrics.parquet"
            metrics = pd.DataFrame(running) if running else if_there(read_table, finished)
            if metrics is not None:
                write_events(metrics, to / chosen.name / f"seed{number}")
                written += 1
    if not written:
        raise DataError(f"no training metrics in {places.root}; see `rolewise status`")
    typer.echo(f"{written} training(s) written; open them with: tensorboard --logdir {to}")


def _compare(
    config: Config,
    sides: list[Layout],
    pairs: list[tuple[Cell, Cell]],
    names: tuple[str, str],
    split: str,
    seed: int | None,
    required: bool,
) -> None:
    from rolewise.analysis.statistics import seed_interval
    from rolewise.grid import seeds_of
    from rolewise.report.comparison import conclusion, differences, read_side
    from rolewise.report.terminal import difference_table, interval_text

    rows = []
    for first, second in pairs:
        common = [s for s in seeds_of(config, first) if s in seeds_of(config, second)]
        for own in common if seed is None else [seed]:
            folders = [
                side.cell(cell, own) for side, cell in zip(sides, (first, second), strict=True)
            ]
            if not required and not all((f / "evaluations.parquet").is_file() for f in folders):
                continue
            made = [_made(f / "evaluations.parquet").parent for f in folders]
            found = differences(
                read_side(made[0], first),
                read_side(made[1], second),
                split,
                config.signatures.bootstrap,
            )
            label = f"seed {own}" if len(common) > 1 else ""
            label = label if required else f"{first} {label}".strip()
            rows += [(label, row) for row in found]
    if not rows:
        raise DataError(f"{names[0]} and {names[1]} have no evaluated cell in common")
    console = _console()
    console.print(difference_table(rows, names))
    if len(pairs) > 1:
        return
    for checkpoint in dict.fromkeys(row.checkpoint for _, row in rows):
        of_seed = [row for _, row in rows if row.checkpoint == checkpoint]
        over_seeds = seed_interval([row.difference.value for row in of_seed])
        if over_seeds is not None:
            text = interval_text(vars(over_seeds))
            console.print(f"{checkpoint}: mean of A - B over {over_seeds.n} seeds {text}")
        elif len(of_seed) == 1:
            console.print(conclusion(of_seed[0], names))


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def _at(config: Config, folder: Path | None) -> Config:
    """`config` with the results in `folder`, if one is named; the folder has to be there."""
    root = folder or Path(config.results_dir)
    if not root.is_dir():
        remedy = (
            f"--results takes the folder of a study's results, such as {config.results_dir}"
            if folder
            else "`snakemake --cores all` runs the study into it"
        )
        raise DataError(f"{root}: no such results folder; {remedy}")
    return config.model_copy(update={"results_dir": str(root)})


def _require_one_task(a: Cell, b: Cell) -> None:
    if a.task != b.task:
        raise RolewiseError(
            f"{a} and {b} are cells of different tasks and share no problem; "
            "compare two cells of one task"
        )


def _folder(config: Config, name: str, seed: int) -> Path:
    from rolewise.grid import parse_cell
    from rolewise.runs.layout import layout

    return layout(config).cell(parse_cell(config, name), seed)


def _made(path: Path) -> Path:
    """`path`, or a DataError that says which command makes it."""
    if not path.is_file():
        raise DataError(f"{path}: not there; `snakemake --cores 2 {path}` makes it")
    return path


def _problem(calls: pd.DataFrame, wanted: str) -> str:
    known = list(dict.fromkeys(calls["problem"]))
    if wanted in known:
        return wanted
    if wanted.isdecimal() and int(wanted) < len(known):
        return known[int(wanted)]
    raise RolewiseError(
        f"problem {wanted}: the trajectories hold {len(known)} problems, {known[0]} to {known[-1]}; "
        "leave --problem out to list them"
    )


def _episode(calls: pd.DataFrame, problem: str, checkpoint: str, sample: int) -> pd.DataFrame:
    named = calls["checkpoint"].map(lambda names: checkpoint in names.split("+"))
    found = calls[named & (calls["problem"] == problem) & (calls["sample"] == sample)]
    if found.empty:
        names = sorted({n for joined in calls["checkpoint"].unique() for n in joined.split("+")})
        raise RolewiseError(
            f"no episode of {problem} at checkpoint {checkpoint}, sample {sample}; this cell has "
            f"{', '.join(names)} (the untrained workflow is the cell's Base twin)"
        )
    return found.sort_values("call")


def _statement(config: Config, cell: str, problem: str) -> str | None:
    from rolewise.grid import parse_cell
    from rolewise.runs.layout import layout
    from rolewise.tasks.problem import read_problems

    path = layout(config).data(parse_cell(config, cell).task) / "validation.jsonl"
    if not path.is_file():
        return None
    return next((p.prompt for p in read_problems(path) if p.id == problem), None)
