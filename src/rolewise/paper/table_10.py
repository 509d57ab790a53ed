"""Table 10: role swap, from saved adapters: which role learned and which is carried."""

from __future__ import annotations

import math

import pandas as pd

from rolewise.grid import Cell, base_of, trained_cells
from rolewise.paper.study import Study, labels
from rolewise.paper.text import interval
from rolewise.workflows.base import topology

TITLE = "Role swap and counterfactual credit"

# Column -> (metric, heading); the swaps are rows of a role in `tables/cells.csv`.
ONLY, WITHOUT = "accuracy_only", "accuracy_without"
HEADINGS = {
    "base": "no role trained",
    "only": "only this role",
    "without": "all but this role",
    "all": "every role",
}


def data(study: Study) -> pd.DataFrame:
    """A row per cell and role, accuracies as shares on the report half, with intervals.

    Cells for which a swap was evaluated; if there is none, the paper's cells with gaps.
    """
    plain = [c for c in trained_cells(study.config) if not c.variant and _roles(study, c)[1:]]
    swapped = [c for c in plain if any(_swapped(study, c, role) for role in _roles(study, c))]
    rows = []
    for cell in swapped or _named(study):
        for role in _roles(study, cell):
            found = {
                "base": study.one(base_of(study.config, cell), "accuracy", "base"),
                "only": study.one(cell, ONLY, "best", "report", role),
                "without": study.one(cell, WITHOUT, "best", "report", role),
                "all": study.one(cell, "accuracy", "best"),
            }
            row: dict[str, object] = labels(cell) | {"role": role}
            for name, estimate in found.items():
                row |= {name: estimate.value, f"{name}_lo": estimate.lo, f"{name}_hi": estimate.hi}
            rows.append(row | {"n": found["all"].n, "seeds": found["all"].seeds})
    return pd.DataFrame(rows)


def _roles(study: Study, cell: Cell) -> tuple[str, ...]:
    return topology(study.config, cell.workflow).roles


def _swapped(study: Study, cell: Cell, role: str) -> bool:
    values = (study.one(cell, metric, "best", "report", role).value for metric in (ONLY, WITHOUT))
    return not all(map(math.isnan, values))


def _named(study: Study) -> list[Cell]:
    paper = study.config.paper
    named = map(study.paper_cell, paper.amplification_cells + paper.capture_cells)
    return [cell for cell in named if cell]


def display(data: pd.DataFrame) -> pd.DataFrame:
    """Percent with intervals."""
    rows = []
    for row in data.to_dict("records"):
        shown = {"cell": row["cell"], "role": row["role"]}
        for name, heading in HEADINGS.items():
            ends = (row[name], row[f"{name}_lo"], row[f"{name}_hi"])
            shown[heading] = interval(*(100 * end for end in ends))
        rows.append(shown)
    return pd.DataFrame(rows)


def caption(study: Study, data: pd.DataFrame) -> str:
    """What was swapped, or that nothing was."""
    ran = not data.empty and data[["only", "without"]].notna().any(axis=None)
    said = "" if ran else "Not run in this preset: only the ends are known. "
    return (
        f"{said}Accuracy in percent on the report half with the adapters of the best checkpoint: of this "
        "role alone (who learned), and of all others (who is carried). Brackets: "
        f"{study.interval}. {study.footer()}"
    )
