"""From YAML files to a checked configuration, and to that of one cell; all mistakes at once."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from rolewise.config.schema import Config
from rolewise.consistency import contradictions
from rolewise.errors import ConfigError
from rolewise.grid import Cell, did_you_mean, matches


def deep_merge(base: dict, overlay: dict) -> dict:
    """`base` updated by `overlay`: mappings merge, everything else is replaced (as Snakemake does)."""
    merged = copy.copy(base)
    for key, value in overlay.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = deep_merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def read_raw(paths: list[str | Path]) -> dict:
    """The YAML files merged in order, unchecked; a missing or malformed file is an error."""
    raw: dict = {}
    for path in map(Path, paths):
        if not path.is_file():
            raise ConfigError([f"{path}: no such configuration file{_where_from(path)}"])
        try:
            content = yaml.safe_load(path.read_text())
        except yaml.YAMLError as error:
            raise ConfigError(
                [f"{path}: not valid YAML: {' '.join(str(error).split())}"]
            ) from error
        if not isinstance(content, dict):
            raise ConfigError([f"{path}: the file must be a mapping of keys"])
        raw = deep_merge(raw, content)
    return raw


def parse(raw: dict) -> Config:
    """The checked configuration; all mistakes are reported at once, each with its key and value."""
    problems: list[str] = []
    config = None
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        problems += _explain(error)
    if config is not None:
        problems += contradictions(config)
        for i, override in enumerate(config.grid.overrides):
            problems += _try_settings(raw, override.set, f"grid.overrides[{i}].set")
        for variant in config.grid.variants:
            problems += _try_settings(raw, variant.set, f"grid.variants[{variant.name}].set")
    if problems:
        raise ConfigError(problems)
    return config


def load(paths: list[str | Path]) -> Config:
    """`parse(read_raw(paths))`."""
    return parse(read_raw(paths))


def _where_from(path: Path) -> str:
    """What to do about a missing file: name a preset, or go where the presets are."""
    presets = ", ".join(sorted(p.name for p in Path("workflow/presets").glob("*.yaml")))
    if presets:
        return f" (presets, in workflow/presets: {presets})"
    return f" in {Path.cwd()}; change into the folder of the clone, where config.yaml is"


def _explain(error: ValidationError) -> list[str]:
    lines = []
    for item in error.errors():
        key = ".".join(str(part) for part in item["loc"]) or "configuration"
        if item["type"] == "extra_forbidden":
            hint = did_you_mean(str(item["loc"][-1]), _keys(item["loc"][:-1]))
            lines.append(f"{key}: unknown key{hint}")
        elif item["type"] == "missing":
            lines.append(f"{key}: required key is missing")
        elif item["type"] == "value_error" and not item["loc"]:
            lines += str(item["ctx"]["error"]).split("\n")
        else:
            lines.append(f"{key}: {item['msg']} (got {item['input']!r})")
    return lines


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys of the section at `location`; names and positions on the way are passed over."""
    sections: list[type[BaseModel]] = [Config]
    for part in location:
        inner = [
            found
            for section in sections
            if part in section.model_fields
            for found in _sections(section.model_fields[part].annotation)
        ]
        sections = inner or sections
    return [key for section in sections for key in section.model_fields]


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """The sections that a type is made of: itself, an item's, a value's, every alternative."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _sections(part)]


def _try_settings(raw: dict, settings: dict[str, Any], where: str) -> list[str]:
    try:
        Config.model_validate(with_settings(raw, settings))
    except ValidationError as error:
        return [f"{where}: {line}" for line in _explain(error)]
    except ConfigError as error:
        return [f"{where}: {line}" for line in error.problems]
    return []


def with_settings(raw: dict, settings: dict[str, Any]) -> dict:
    """A copy of `raw` in which each dotted key of `settings` holds its value."""
    result = copy.deepcopy(raw)
    for dotted, value in settings.items():
        *parents, last = dotted.split(".")
        node = result
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ConfigError([f"{dotted}: {parent} is a value and has no keys"])
        node[last] = value
    return result


def for_cell(config: Config, cell: Cell) -> Config:
    """The configuration with the overrides and the variant that apply to `cell` filled in."""
    settings: dict[str, Any] = {}
    for override in config.grid.overrides:
        if matches(cell, override.match):
            settings |= override.set
    for variant in config.grid.variants:
        if variant.name == cell.variant:
            settings |= variant.set
    if not settings:
        return config
    return Config.model_validate(with_settings(config.model_dump(), settings))
