"""Writes tables and figures: the numbers as csv beside every rendering, the same bytes every time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from rolewise.paper.text import EM_DASH
from rolewise.records import write_bytes, write_csv, write_text
from rolewise.runs.layout import Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Dates and program versions would make equal pictures differ.
METADATA = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}

# More rows than this are set as a longtable.
PAGE_ROWS = 40

TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "—": "---",
    "–": "--",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "²": r"$^2$",
    "χ": r"$\chi$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "Δ": r"$\Delta$",
    "ρ": r"$\rho$",
    "→": r"$\rightarrow$",
}


def write_table(
    layout: Layout,
    number: int,
    *,
    title: str,
    caption: str,
    data: pd.DataFrame,
    display: pd.DataFrame,
) -> list[Path]:
    """Write table_<n>.csv (`data`, full precision), .md and .tex (`display`, rounded text)."""
    stem = layout.tables / f"table_{number}"
    paths = [stem.with_suffix(suffix) for suffix in (".csv", ".md", ".tex")]
    write_csv(paths[0], data)
    write_text(paths[1], markdown(display, f"**Table {number}. {title}.** {caption}"))
    write_text(paths[2], latex(display, f"{title}. {caption}", f"tab:{number}"))
    return paths


def write_figure(
    layout: Layout,
    number: int,
    *,
    title: str,
    caption: str,
    data: pd.DataFrame,
    figure: Figure,
    formats: list[str],
) -> list[Path]:
    """Write figure_<n>.csv (what is drawn), .md (its caption) and the picture in every format.

    Call it inside `style.styled()`: fonts and resolution are looked up while saving.
    """
    stem = layout.figures / f"figure_{number}"
    paths = [stem.with_suffix(suffix) for suffix in (".csv", ".md")]
    write_csv(paths[0], data)
    write_text(paths[1], f"**Figure {number}. {title}.** {caption}\n")
    for kind in formats:
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata=METADATA[kind])
        paths.append(stem.with_suffix(f".{kind}"))
        write_bytes(paths[-1], buffer.getvalue())
    return paths


def markdown(display: pd.DataFrame, caption: str) -> str:
    """A caption and a pipe table; text columns to the left, all others to the right."""
    if display.empty:
        return f"{caption}\n"
    safe = display.map(lambda cell: str(cell).replace("|", r"\|"))
    alignment = ["left" if _is_text(display[name]) else "right" for name in display]
    table = safe.to_markdown(index=False, colalign=alignment, disable_numparse=True)
    return f"{caption}\n\n{table}\n"


def latex(display: pd.DataFrame, caption: str, label: str) -> str:
    """A table for a document that loads booktabs and graphicx, and longtable for the long ones."""
    safe = display.map(escape).rename(columns=escape)
    columns = "".join("l" if _is_text(display[name]) else "r" for name in display) or "l"
    if len(display) > PAGE_ROWS:
        return (
            "{\\scriptsize\n"
            + safe.to_latex(
                index=False,
                escape=False,
                column_format=columns,
                longtable=True,
                caption=escape(caption),
                label=label,
            )
            + "}\n"
        )
    body = safe.to_latex(index=False, escape=False, column_format=columns)
    return (
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{escape(caption)}}}\n\\label{{{label}}}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"{body.rstrip()}%\n}}\n\\end{{table}}\n"
    )


def escape(text: object) -> str:
    """Text for LaTeX: special characters escaped, the symbols of our tables in math mode."""
    return "".join(TEX.get(character, character) for character in str(text))


def _is_text(column: pd.Series) -> bool:
    """Whether a column holds words: anything but gaps that starts with a letter."""
    words = column.astype(str).str.strip(EM_DASH).str.strip()
    return bool(words.str.match(r"[A-Za-z]").any())
