"""A copy of the workflow in a folder of its own, with or without finished results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from rolewise.config import Config, load
from rolewise.runs.graph import Graph

ROOT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).parent / "snakemake"
SMOKE = "workflow/presets/smoke.yaml"
SMALL = "small.yaml"


@dataclass(frozen=True)
class Project:
    """The copy and how to run Snakemake in it."""

    path: Path

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run Snakemake; its output, both streams together, is in `stdout`."""
        return subprocess.run(
            [str(SNAKEMAKE), "--nocolor", *arguments],
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={k: v for k, v in os.environ.items() if k != "ROLEWISE_CONFIG"},
        )

    def planned(
        self, *targets: str, configfile: str = "config.yaml", settings: tuple[str, ...] = ()
    ) -> dict[str, int]:
        """Jobs of a dry run by rule, without the target rules; fails if the dry run fails."""
        quiet = ("--quiet", "rules", "reason", "host")
        done = self.snakemake(*targets, "-n", "--configfile", configfile, *quiet, *settings)
        assert done.returncode == 0, done.stdout[-3000:]
        jobs = re.findall(r"^(\w+) +(\d+)$", done.stdout, flags=re.MULTILINE)
        # The table of jobs is printed before and after a dry run.
        return {rule: int(count) for rule, count in jobs if rule not in ("total", *TARGETS)}

    def config(self, *overlays: str) -> Config:
        """The configuration of the copy."""
        return load([self.path / "config.yaml", *(self.path / name for name in overlays)])

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace `old` by `new` in a file that must contain it."""
        text = (self.path / name).read_text()
        assert old in text, f"{name} does not contain {old!r}"
        (self.path / name).write_text(text.replace(old, new, 1))


TARGETS = (
    "all", "data", "models", "base", "train", "evaluate", "tables", "figures", "claims", "report",
)  # fmt: skip
WORKFLOW = ("Snakefile", "config.yaml", "environment.yml", "workflow", "profiles")
CODE = ("paper", "analysis", "report")


def copy_project(path: Path) -> Project:
    """Copy the workflow and the source files that its rules name into `path`.

    `small.yaml` there is the smoke preset with one workflow: 6 trainings, 4 base cells.
    """
    for name in WORKFLOW:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, path / name)
    for name in CODE:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src/rolewise" / name, path / "src/rolewise" / name, ignore=ignored)
    overlay = yaml.safe_load((ROOT / SMOKE).read_text())
    overlay["results_dir"] = "results/small"
    overlay["grid"]["workflows"] = ["Voting"]
    (path / SMALL).write_text(yaml.safe_dump(overlay))
    return Project(path)


def finish(project: Project, *overlays: str) -> None:
    """Put a placeholder where every job would write, and have Snakemake accept them as finished."""
    graph = Graph(project.config(*overlays))
    root = graph.layout.root
    grid, kinds = graph.config.grid, graph.config.paper.figure_format
    everyone = ["evaluations.parquet", "accuracy.csv", "trajectories.parquet", "summary.json"]
    logs = ["manifest.json", "metrics.parquet", "gradients.parquet", "timings.parquet"]
    files = [f"{root}/data/{task}/manifest.json" for task in grid.tasks]
    files += [f"{root}/models/{scale}/manifest.json" for scale in grid.scales]
    files += graph.paths(graph.trained, *everyone, *logs) + graph.paths(graph.base, *everyone)
    files += graph.paths(graph.swaps, "swaps.parquet")
    files += [
        f"{root}/transfer/{workflow}-{scale}-{task}/seed{seed}/{name}"
        for workflow, scale, task, seed in graph.transfers
        for name in ("evaluations.parquet", "summary.json")
    ]
    files += [f"{root}/tables/table_{n}.{k}" for n in range(1, 11) for k in ("csv", "md", "tex")]
    files += [f"{root}/figures/figure_{n}.{k}" for n in range(1, 9) for k in (*kinds, "csv")]
    files += [f"{root}/tables/cells.csv", f"{root}/report/index.html"]
    files += [f"{root}/claims/claims.json", f"{root}/claims/claims.md"]
    for name in files:
        (project.path / name).parent.mkdir(parents=True, exist_ok=True)
        (project.path / name).write_text(f"{name}\n")
    touched = project.snakemake(
        "--cores", "1", "--touch", "--forceall", "--quiet", "all", *_overlay(overlays)
    )
    assert touched.returncode == 0, touched.stdout[-3000:]


def _overlay(overlays: tuple[str, ...]) -> list[str]:
    return ["--configfile", *overlays] if overlays else []
