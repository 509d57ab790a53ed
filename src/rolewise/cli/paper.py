"""Subcommands: to be registered."""

import typer


def register(app: typer.Typer) -> None:
    """Add the subcommands of this module to `app`."""
