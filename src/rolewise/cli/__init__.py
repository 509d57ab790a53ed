"""The `rolewise` command: one subcommand per rule, and everyday tools.

Modules of this package register their subcommands; heavy imports stay inside the commands, so that
`rolewise --help` is instant.
"""

from __future__ import annotations

import errno
import importlib
import sys

import typer

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
    help="Train, evaluate and analyse multi-agent LLM workflows. Start with `rolewise doctor`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for group in GROUPS:
    importlib.import_module(f"rolewise.cli.{group}").register(app)


def main() -> None:
    """Run the command line; a RolewiseError becomes one line on stderr and its exit code.

    So does an OSError of `REFUSALS`: the machine refuses, nothing is wrong with the program.
    """
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
    except OSError as error:
        if debug or error.errno not in REFUSALS:
            raise
        where = error.filename or "output"
        print(
            f"rolewise: error: {where}: {error.strerror}; {REFUSALS[error.errno]}", file=sys.stderr
        )
        sys.exit(RolewiseError.exit_code)
