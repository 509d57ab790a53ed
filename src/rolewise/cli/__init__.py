"""The `rolewise` command: one subcommand per rule, and everyday tools.

Modules of this package register their subcommands; heavy imports stay inside the commands, so that
`rolewise --help` is instant.
"""

from __future__ import annotations

import errno
import importlib
import sys
from typing import Annotated

import typer

from rolewise import __version__
from rolewise.cli.options import given_configfiles, with_configfiles
from rolewise.errors import RolewiseError

ELSEWHERE = "make it writable, or set results_dir to a folder that is"
SPACE = "free disk space or raise the quota (`rolewise clean` lists what can go), then try again"
REFUSALS = {
    errno.EACCES: ELSEWHERE,
    errno.EPERM: ELSEWHERE,
    errno.EROFS: ELSEWHERE,
    errno.ENOTDIR: "a part of this path is a file; move it, or set results_dir elsewhere",
    errno.ENOSPC: SPACE,
    errno.EDQUOT: SPACE,
    errno.EFBIG: SPACE,
}
GROUPS = ("run", "grade", "paper", "inspect", "browse", "paper_scale")

app = typer.Typer(
    name="rolewise",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rolewise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Train, evaluate and analyse multi-agent LLM workflows. Start with `rolewise doctor`."""


for group in GROUPS:
    importlib.import_module(f"rolewise.cli.{group}").register(app)


def main() -> None:
    """Run the command line; a RolewiseError becomes one line on stderr and its exit code.

    So does an OSError of `REFUSALS`: the machine refuses, nothing is wrong with the program.
    """
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    files = given_configfiles(sys.argv)
    try:
        app()
    except RolewiseError as error:
        if debug:
            raise
        for line in with_configfiles(str(error), files).split("\n"):
            print(f"rolewise: error: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if debug or error.errno not in REFUSALS:
            raise
        where = error.filename or "output"
        remedy = with_configfiles(REFUSALS[error.errno], files)
        print(f"rolewise: error: {where}: {error.strerror}; {remedy}", file=sys.stderr)
        sys.exit(RolewiseError.exit_code)
