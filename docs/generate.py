"""Writes docs/reference from the code: configuration keys, commands, file formats.

python docs/generate.py            rewrite the pages
python docs/generate.py --check    exit 1 if a page is not current
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from rolewise import records
from rolewise.analysis import measures
from rolewise.cli import app
from rolewise.config import Config, Section

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py; edit the code, then run `python docs/generate.py`. -->\n"
# Free-form keys whose content another schema describes.
DETAILS = {
    "models.<scale>.noise": "models.player.Noise",
    "tasks.<task>.options (arithmetic)": "tasks.generators.arithmetic.Options",
    "tasks.<task>.options (programs)": "tasks.generators.programs.Options",
}
FILES = {
    "cells/CELL/seedN/evaluations.parquet": (
        "A row per checkpoint, validation problem and sample.",
        records.EVALUATIONS,
    ),
    "cells/CELL/seedN/trajectories.parquet": (
        "A row per role call of the first `evaluation.trajectory_problems` problems, at the early, "
        "best and terminal checkpoints of a trained cell. Those of the base model are in the "
        "untrained workflow's cell, its Base twin (`Voting-Base-0.3M-Math` for Voting).",
        records.TRAJECTORIES,
    ),
    "cells/CELL/seedN/metrics.parquet": (
        "A row per training step and role, and one for the whole step.",
        records.METRICS,
    ),
    "cells/CELL/seedN/gradients.parquet": ("The gradient ledger, long form.", records.GRADIENTS),
    "cells/CELL/seedN/timings.parquet": ("Clocks, apart from results.", records.TIMINGS),
    "cells/CELL/seedN/swaps.parquet": (
        "Evaluations of mixtures of trained and base roles.",
        records.SWAPS,
    ),
    "tables/cells.csv": ("The tidy table behind every table and figure.", records.CELLS),
}
METRIC_GROUPS = {
    "Evaluated": measures.EVALUATED,
    "Compared": measures.COMPARED,
    "Swapped roles": measures.SWAPPED,
    "Detected": measures.DETECTED,
    "Cost": measures.COSTS,
    "Signatures": measures.SIGNATURES,
}


def pages() -> dict[str, str]:
    """Name -> text of every generated page."""
    return {"config.md": config_page(), "commands.md": commands_page(), "files.md": files_page()}


def config_page() -> str:
    """Every configuration key with what is allowed, its default and what it means."""
    schema = Config.model_json_schema()
    parts = [
        NOTE,
        "# Configuration keys\n",
        "`config.yaml` holds the embedded default; a preset or a file of yours is merged over it. "
        "`<scale>`, `<task>` and `<n>` stand for names and positions. A key without a default is "
        "required. `rolewise grid` checks a configuration and reports every mistake at once; "
        "`rolewise config-schema` prints the schema for an editor.\n",
    ]
    for path, title, definition in sections(schema, schema, "", ""):
        parts.append(_section(path, title, definition, schema))
    for path, name in DETAILS.items():
        module, _, attribute = f"rolewise.{name}".rpartition(".")
        section: type[Section] = getattr(importlib.import_module(module), attribute)
        own = section.model_json_schema()
        parts.append(_section(path, "", own, own))
    return "\n".join(parts)


def sections(
    node: dict, schema: dict, path: str, title: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, distinguishing title and definition of every mapping, parents first."""
    yield path, title, node
    for key, value in node["properties"].items():
        for suffix, kind, target in _targets(value, schema):
            here = f"{path}.{key}".lstrip(".") + suffix
            # Matches look alike everywhere; they are described once.
            if not (target.get("title") == "Match" and here != "grid.exclude[<n>]"):
                yield from sections(target, schema, here, kind)


def _targets(value: dict, schema: dict) -> Iterator[tuple[str, str, dict]]:
    """Sections below a key: itself, entries of a mapping, items of a list, alternatives by kind."""
    if "$ref" in value:
        yield "", "", _resolve(value, schema)
    elif "items" in value:
        yield from (("[<n>]" + s, k, t) for s, k, t in _targets(value["items"], schema))
    elif (inner := _entries(value)) is not None:
        name = "<scale>" if value["title"] == "Models" else "<task>"
        for suffix, kind, target in _targets(inner, schema):
            yield f".{name}{suffix}", kind, target
    elif "discriminator" in value:
        for target in (_resolve(option, schema) for option in value["oneOf"]):
            kind = target["properties"]["kind"]
            yield "", " or ".join(kind.get("enum", [kind.get("const")])), target


def _entries(value: dict) -> dict | None:
    """Schema of the entries of a mapping with free keys, None if there is none."""
    patterns = list(value.get("patternProperties", {}).values())
    inner = patterns[0] if patterns else value.get("additionalProperties")
    return inner if isinstance(inner, dict) else None


def _resolve(value: dict, schema: dict) -> dict:
    return schema["$defs"][value["$ref"].rpartition("/")[2]]


def _section(path: str, kind: str, definition: dict, schema: dict) -> str:
    heading = f"`{path}`" if path else "Top level"
    if kind:
        heading += f", kind {kind}"
    rows = []
    for key, value in definition["properties"].items():
        described = value.get("description") or _described(value, schema)
        default = json.dumps(value["default"]) if "default" in value else ""
        if list(_targets(value, schema)):
            default = ""
        rows.append((f"`{key}`", _allowed(value, schema), default and f"`{default}`", described))
    intro = definition.get("description", "").replace("\n", " ")
    table = _table(("key", "allowed", "default", "meaning"), rows)
    return f"## {heading}\n\n{intro}\n\n{table}"


def _described(value: dict, schema: dict) -> str:
    for _, _, target in _targets(value, schema):
        return target["description"].partition("\n")[0]
    return ""


def _allowed(value: dict, schema: dict) -> str:
    if "const" in value:
        return str(value["const"])
    if "enum" in value:
        return ", ".join(json.dumps(v).strip('"') for v in value["enum"])
    if "anyOf" in value:
        return " or ".join(_allowed(option, schema) for option in value["anyOf"])
    if "$ref" in value or "discriminator" in value:
        return "mapping"
    kind = value.get("type", "anything")
    if kind == "array":
        items = value.get("items") or value.get("prefixItems", [{}])[0]
        return f"list of {_allowed(items, schema)}"
    if kind == "object":
        inner = _entries(value)
        return "mapping" if inner is None else f"mapping to {_allowed(inner, schema)}"
    words = {"integer": "integer", "number": "number", "boolean": "true, false", "string": "text"}
    limits = (
        ("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"),
    )  # fmt: skip
    bounds = [f"{sign} {value[name]:g}" for name, sign in limits if name in value]
    return " ".join([words.get(kind, kind), ", ".join(bounds)]).strip()


def commands_page() -> str:
    """Every subcommand with its help, arguments and options."""
    parts = [
        NOTE,
        "# Commands\n",
        "`rolewise COMMAND --help` shows the same. Every command reads `config.yaml` of the current "
        "folder. `--debug` anywhere shows the traceback behind an error; "
        "`rolewise --install-completion` teaches the shell to complete. Exit codes: 0 done, 1 a check "
        "found something, 2 a mistake in the input, 3 training cannot go on, 75 stopped at "
        "`training.max_wall`, 130 and 143 stopped by a signal after saving.\n",
    ]
    for name, command in commands(typer.main.get_command(app), "rolewise"):
        usage = " ".join([name, *(_usage(p) for p in _parameters(command))])
        rows = [(f"`{_spelling(p)}`", _default(p), p.help or "") for p in _parameters(command)]
        table = _table(("argument or option", "default", "meaning"), rows) if rows else ""
        parts.append(f"## `{name}`\n\n{command.help}\n\n```text\n{usage}\n```\n\n{table}")
    return "\n".join(parts)


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every subcommand with its full name, in the order of `--help`."""
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command
        return
    for key, child in children.items():
        yield from commands(child, f"{name} {key}")


def _parameters(command: Any) -> list:
    return [p for p in command.params if not p.hidden and p.name != "help"]


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return parameter.metavar or parameter.name.upper()
    return ", ".join([*parameter.opts, *parameter.secondary_opts])


def _usage(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = _spelling(parameter)
        return name if parameter.required else f"[{name}]"
    value = "" if parameter.is_flag else f" {parameter.name.upper()}"
    return f"[{parameter.opts[0]}{value}]" + ("..." if parameter.multiple else "")


def _default(parameter: Any) -> str:
    value = parameter.default
    return "" if value is None or value is False or value == "" else f"`{value}`"


def files_page() -> str:
    """Columns of every file that a cell leaves behind, and the metrics of the tidy table."""
    parts = [
        NOTE,
        "# Files\n",
        "All paths are below `results_dir`. Parquet files are plain: "
        '`pandas.read_parquet(path)` or `datasets.load_dataset("parquet", data_files=path)` read '
        "them. `docs/concepts/results.md` says how they hang together.\n",
    ]
    for path, (intro, columns) in FILES.items():
        table = _table(("column", "meaning"), [(f"`{k}`", v) for k, v in columns.items()])
        parts.append(f"## `{path}`\n\n{intro}\n\n{table}")
    parts.append("## Metrics of `tables/cells.csv`\n")
    parts.append(
        "Column `metric` of the tidy table. Training metrics (split `train`) have the names of "
        "`metrics.parquet`; those of which the extremes are kept end in `_first`, `_max`, `_min` and "
        f"`_last`. A cell without results has one row, metric `{measures.MISSING}`.\n"
    )
    for title, metrics in METRIC_GROUPS.items():
        table = _table(("metric", "meaning"), [(f"`{k}`", v) for k, v in metrics.items()])
        parts.append(f"### {title}\n\n{table}")
    return "\n".join(parts)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text.replace("\n", " "))


def main() -> None:
    """Write or check the pages."""
    stale = []
    for name, text in pages().items():
        path = REFERENCE / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            records.write_text(path, text)
    print("\n".join(f"docs/reference/{name}" for name in stale) or "docs/reference is current")
    sys.exit("--check" in sys.argv and bool(stale))


if __name__ == "__main__":
    main()
