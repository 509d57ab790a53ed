"""Prompt templates: text files under workflow/prompts/<set>/<task>/, filled in by jinja2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from rolewise.errors import ConfigError

ROOT = Path("workflow/prompts")


class Prompts:
    """The templates of one prompt set and task; an undefined variable is an error.

    Those of `own`, a folder of a workflow's own prompts in the same layout, come first.
    """

    def __init__(self, name: str, task: str, root: Path = ROOT, own: Path | None = None):
        self.folder = root / name / task
        if not self.folder.is_dir():
            known = ", ".join(sorted(p.name for p in root.glob("*"))) or "none"
            raise ConfigError([f"prompts: no folder {self.folder} (prompt sets: {known})"])
        folders = [self.folder] if own is None else [own / name / task, self.folder]
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folders),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
            # Looking for a newer file at every call costs as much as filling the template in.
            auto_reload=False,
        )

    def render(self, template: str, **variables: Any) -> str:
        """The prompt of `template`, stripped of surrounding blank space."""
        try:
            return self._environment.get_template(f"{template}.j2").render(**variables).strip()
        except jinja2.TemplateError as error:
            raise ConfigError([f"prompt {self.folder / template}.j2: {error}"]) from error
