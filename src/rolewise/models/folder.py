"""Model folders in Hugging Face format: what must be in one, and the manifest that vouches for it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from rolewise.errors import DataError
from rolewise.records import write_text

MANIFEST = "manifest.json"


def start_folder(folder: Path) -> None:
    """Make the folder; an earlier manifest goes, as it would vouch for files about to change."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)


def finish_folder(folder: Path, facts: dict) -> dict:
    """Check the folder and write its manifest last: `facts` and the SHA-256 of every file."""
    check_folder(folder)
    files = {
        path.relative_to(folder).as_posix(): _sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST and not path.name.startswith(".")
    }
    manifest = {**facts, "files": files}
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    return manifest


def check_folder(folder: Path) -> None:
    """A DataError that names everything missing from a model folder."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such model folder")
    missing = [name for name in ("config.json", "tokenizer.json") if not (folder / name).is_file()]
    if not any(folder.glob("*.safetensors")):
        missing.append("*.safetensors")
    if missing:
        raise DataError(
            f"{folder}: not a model in Hugging Face format; missing: {', '.join(missing)}"
        )


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
