"""Base models that are not built here: from the hub, from a folder, or from a package's GGUF file."""

from __future__ import annotations

import shutil
from pathlib import Path

from rolewise.config import Config, GgufModel, HubModel, PathModel
from rolewise.errors import ConfigError, DataError
from rolewise.models.folder import MANIFEST, check_folder, finish_folder, start_folder
from rolewise.tasks.datasets.hub import pinned_revision

WANTED = ("*.json", "*.safetensors", "*.jinja", "merges.txt", "vocab.txt", "tokenizer.model")


def fetch(config: Config, scale: str, out_folder: Path) -> dict:
    """Put the model of `scale` into `out_folder` and give back its manifest.

    Large files of a hub snapshot or a local folder are linked, not copied. A revision that was
    resolved once stays.
    """
    spec = config.models.get(scale)
    if spec is None:
        known = ", ".join(config.models)
        raise ConfigError([f"models: '{scale}' is not configured (scales: {known})"])
    if isinstance(spec, HubModel):
        facts = _from_hub(spec, out_folder)
    elif isinstance(spec, PathModel):
        source = Path(spec.path).expanduser()
        check_folder(source)
        _link(source, out_folder)
        facts = {}
    elif isinstance(spec, GgufModel):
        from rolewise.models.gguf import convert

        facts = convert(spec, out_folder)
    else:
        raise DataError(f"models.{scale}: kind '{spec.kind}' is built, not fetched")
    return finish_folder(out_folder, {"scale": scale, "spec": spec.model_dump(), **facts})


def _from_hub(spec: HubModel, out_folder: Path) -> dict:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    revision = pinned_revision(spec.repo, "model", spec.revision, out_folder)
    try:
        snapshot = snapshot_download(spec.repo, revision=revision, allow_patterns=list(WANTED))
    except (HfHubHTTPError, HTTPError, OSError) as error:
        raise DataError(
            f"model {spec.repo} at {revision}: cannot be downloaded "
            f"({' '.join(str(error).split())[:200]}); connect, or set HF_HOME to a filled cache"
        ) from error
    _link(Path(snapshot), out_folder)
    return {"revision": revision}


def _link(source: Path, out_folder: Path) -> None:
    """Mirror the wanted files of `source`: weights as links, the small ones as copies."""
    start_folder(out_folder)
    for pattern in WANTED:
        for file in sorted(source.glob(pattern)):
            if file.name == MANIFEST:
                continue
            target = out_folder / file.name
            target.unlink(missing_ok=True)
            if file.suffix == ".safetensors":
                target.symlink_to(file.resolve())
            else:
                shutil.copyfile(file, target)
