"""Loading from the Hugging Face hub, or from local files in the same schema, at a pinned revision."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rolewise.errors import DataError
from rolewise.records import write_text

if TYPE_CHECKING:
    from datasets import Dataset

FORMATS = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".csv": "csv"}


RECORD = "revision.json"


def pinned_revision(
    repo: str, kind: Literal["dataset", "model"], wanted: str | None, folder: Path
) -> str:
    """The commit to use: the wanted one, else the one used here before, else the hub's newest.

    Recorded in `folder/revision.json`, which no rule declares as its output, so that a source stays
    pinned when Snakemake clears the outputs of a rule before running it again.
    """
    record = folder / RECORD
    try:
        earlier = json.loads(record.read_text())
        recorded = earlier["revision"] if earlier["repo"] == repo else None
    except (OSError, ValueError, KeyError, TypeError):
        recorded = None
    if recorded is not None and wanted in (None, recorded):
        return recorded
    revision = resolve_revision(repo, kind, wanted)
    write_text(record, json.dumps({"repo": repo, "revision": revision}) + "\n")
    return revision


def resolve_revision(repo: str, kind: Literal["dataset", "model"], wanted: str | None) -> str:
    """The hub's commit for a branch, tag or commit, its newest by default.

    Without a connection the newest commit in the local cache is taken; none is a DataError.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    api = HfApi()
    ask = api.dataset_info if kind == "dataset" else api.model_info
    try:
        return ask(repo, revision=wanted, timeout=20).sha
    except HfHubHTTPError as error:
        if error.response is not None and error.response.status_code < 500:
            raise DataError(
                f"{kind} {repo}, revision {wanted or 'main'}: the hub refuses it "
                f"({' '.join(str(error).split())[:200]}); check the name, the revision and "
                "`hf auth whoami`"
            ) from error
        return _cached_revision(repo, kind, wanted)
    except (HTTPError, OSError):
        return _cached_revision(repo, kind, wanted)


def _cached_revision(repo: str, kind: str, wanted: str | None) -> str:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        repos = frozenset()
    for cached in repos:
        if cached.repo_id != repo or cached.repo_type != kind:
            continue
        for revision in sorted(cached.revisions, key=lambda r: r.last_modified, reverse=True):
            if wanted in (None, revision.commit_hash) or wanted in revision.refs:
                return revision.commit_hash
    raise DataError(
        f"{kind} {repo}: the hub cannot be reached and the local cache has no copy; connect once, "
        "set HF_HOME to a filled cache, or give a local folder or file in the same schema as `repo`"
    )


def load_rows(repo: str, subset: str, revision: str | None) -> Dataset:
    """All rows: of a local file or folder if `repo` is one, else of the hub's data set."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetGenerationError

    place = Path(repo).expanduser()
    try:
        if place.is_file():
            if place.suffix not in FORMATS:
                raise DataError(f"{place}: unknown data format; use {', '.join(FORMATS)}")
            return load_dataset(FORMATS[place.suffix], data_files=str(place), split="train")
        if place.is_dir():
            inner = place / subset
            return load_dataset(str(inner if inner.is_dir() else place), split="train")
        return load_dataset(repo, subset, revision=revision, split="train")
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise DataError(
            f"data set {repo} ({subset}): cannot be read ({' '.join(str(error).split())[:300]}); "
            "check repo, subset and revision, or delete a damaged download from HF_HOME"
        ) from error


def local_revision(repo: str) -> str | None:
    """SHA-256 over the files of a local source, null if `repo` is not local."""
    place = Path(repo).expanduser()
    if not place.exists():
        return None
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    total = hashlib.sha256()
    for file in files:
        total.update(file.read_bytes())
    return f"sha256:{total.hexdigest()}"
