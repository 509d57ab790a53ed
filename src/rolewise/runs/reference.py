"""Reference results: a finished study up to the cut line, small enough to ship, with its hashes."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import rolewise
from rolewise.config import Config, digest
from rolewise.errors import DataError
from rolewise.records import write_text
from rolewise.runs.provenance import code_fingerprint, git_revision, package_versions

MANIFEST = "manifest.json"
CUT_LINE = (
    "tables/cells.csv",
    "cells/*/seed*/*.*",
    "transfer/*/seed*/*.*",
    "data/*/manifest.json",
    "data/*/validation.jsonl",
    "models/*/manifest.json",
)


def cut_line_files(folder: Path) -> list[str]:
    """Files of a study that tables, figures, claims and report are made from, relative to it."""
    found = (path for pattern in CUT_LINE for path in folder.glob(pattern) if path.is_file())
    return sorted(
        path.relative_to(folder).as_posix() for path in found if not path.name.startswith(".")
    )


def pack(config: Config, target: Path) -> dict:
    """Replace `target` by the cut-line files of `results_dir`; returns the manifest written last."""
    source = Path(config.results_dir)
    if not (source / "tables/cells.csv").is_file():
        raise DataError(
            f"{source}/tables/cells.csv is not there; run `snakemake --cores all` first"
        )
    content = config.model_dump(mode="json")
    fresh = target.with_name(f".{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    manifest = {
        "rolewise": rolewise.__version__,
        "preset": config.preset,
        "config": content,
        "config_hash": digest(content),
        "code": code_fingerprint(),
        "git": git_revision(),
        "packages": package_versions(),
        "files": _copy(source, fresh, cut_line_files(source)),
    }
    write_text(fresh / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    shutil.rmtree(target, ignore_errors=True)
    fresh.replace(target)
    return manifest


def unpack(reference: Path, target: Path) -> int:
    """Copy the files of `reference` into `target`, cells.csv last; returns their number.

    A missing or altered file is a DataError that names it.
    """
    try:
        files = json.loads((reference / MANIFEST).read_text())["files"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{reference / MANIFEST}: no readable reference results: {error}"
        ) from error
    for name, sha256 in files.items():
        path = reference / name
        if not path.is_file() or _sha256(path) != sha256:
            raise DataError(f"{path} is missing or altered; restore it with `git checkout {path}`")
    _copy(reference, target, sorted(files, key=lambda name: name == "tables/cells.csv"))
    return len(files)


def _copy(source: Path, target: Path, names: list[str]) -> dict[str, str]:
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)
    return {name: _sha256(target / name) for name in names}


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
