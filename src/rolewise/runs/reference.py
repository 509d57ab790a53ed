"""Reference results: a finished study up to the cut line, small enough to ship, with its hashes.

Long text files are shipped compressed, under their name and `.gz`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path

import pandas as pd

import rolewise
from rolewise.config import Config, digest
from rolewise.errors import DataError
from rolewise.records import write_bytes, write_text
from rolewise.runs.provenance import code_fingerprint, git_revision, package_versions

MANIFEST = "manifest.json"
TIDY = "tables/cells.csv"
COMPRESSED = (".csv", ".jsonl")
CUT_LINE = (
    TIDY,
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


def pack(config: Config, target: Path, *, tables_only: bool = False) -> dict:
    """Replace `target` by the cut-line files of `results_dir`; returns the manifest written last.

    `tables_only` leaves out everything but the tidy table, and the courses of training from that.
    """
    source = Path(config.results_dir)
    if not (source / "tables/cells.csv").is_file():
        raise DataError(
            f"{source}/tables/cells.csv is not there; run `snakemake --cores all` first"
        )
    if tables_only:
        files = {TIDY: _without_courses(source / TIDY)}
    else:
        files = {name: (source / name).read_bytes() for name in cut_line_files(source)}
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
        "files": _ship(fresh, files),
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
    for name in sorted(files, key=lambda name: name.startswith(TIDY)):
        content = (reference / name).read_bytes()
        packed = name.endswith(".gz")
        plain = gzip.decompress(content) if packed else content
        write_bytes(target / name.removesuffix(".gz"), plain)
    return len(files)


def _without_courses(tidy: Path) -> bytes:
    """The rows of a tidy table that are not of training steps, nine in ten of a study with variants."""
    table = pd.read_csv(tidy, dtype=str, keep_default_na=False)
    return table[table["split"] != "train"].to_csv(index=False).encode()


def _ship(target: Path, files: dict[str, bytes]) -> dict[str, str]:
    """Write `files` below `target`, long text compressed; returns the hash of each by its shipped name."""
    hashes = {}
    for name, content in files.items():
        packed = name.endswith(COMPRESSED)
        # Without a date, so that equal results give equal files.
        stored = gzip.compress(content, mtime=0) if packed else content
        shipped = f"{name}.gz" if packed else name
        write_bytes(target / shipped, stored)
        hashes[shipped] = hashlib.sha256(stored).hexdigest()
    return hashes


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
