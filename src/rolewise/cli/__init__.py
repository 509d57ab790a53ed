"""The `rolewise` command: one subcommand per rule, and everyday tools.

Modules of this package register their subcommands; heavy imports stay inside the commands, so that
`rolewise --help` is instant.
"""

from __future__ import annotations

import importlib
import sys

import typer

from rolewise.errors import RolewiseError

GROUPS = ("run", "grade", "paper", "inspect", "browse", "paper_scale")

app = typer.Typer(
    name="rolewise",
    help="Train, evaluate and analyse multi-agent LLM workflows. Start with `rolewise doctor`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for group in GROUPS:
    importlib.import_module(f"rolewise.cli.{group}").register(app)


def main() -> None:
    """Run the command line; a RolewiseError becomes one line on stderr and its exit code."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except RolewiseError as error:
        if debug:
            raise
        for line in str(error).split("\n"):
            print(f"rolewise: error: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
