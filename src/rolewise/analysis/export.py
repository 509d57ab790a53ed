"""A checkpoint in a form that other programs load: PEFT folders, or whole models with an adapter merged."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from rolewise.analysis.outcomes import choose_checkpoints, outcomes
from rolewise.analysis.sources import DAMAGED, read_json, read_table
from rolewise.config import Config
from rolewise.errors import DataError, RolewiseError
from rolewise.grid import Cell
from rolewise.policy.adapters import Adapter
from rolewise.policy.backbone import GROUPS, Shape
from rolewise.runs.layout import layout
from rolewise.runs.provenance import content_hash, require_unchanged, vouched_files
from rolewise.runs.state import damage

CHECKPOINTS = ("early", "best", "terminal")
WEIGHTS = (".safetensors", ".index.json")


def export(
    config: Config, cell: Cell, seed: int, checkpoint: str, target: Path, merge: bool
) -> list[Path]:
    """Write `target/<adapter>/` for every adapter of a checkpoint; gives the folders back.

    `checkpoint` is early, best, terminal or a step. With `merge` each folder is a whole model in Hugging
    Face format, otherwise a PEFT adapter that names its base model. A folder that exists is refused, and so
    are a damaged checkpoint and a base model that is not the one it was trained on.
    """
    if target.exists() and not target.is_dir():
        raise RolewiseError(f"{target}: is a file; name a folder with --to")
    source = checkpoint_folder(config, cell, seed, checkpoint)
    model = layout(config).model(cell.scale).resolve()
    manifest = model / "manifest.json"
    if content_hash(manifest) != _recorded(config, cell, seed, "inputs").get("model"):
        raise DataError(
            f"{model}: not the model that {cell} was trained on; make that one again, or train anew"
        )
    if merge:
        for name in vouched_files(manifest):
            require_unchanged(model / name)
    written = []
    for folder in sorted(path for path in (source / "adapters").iterdir() if path.is_dir()):
        place = target / folder.name
        if place.exists():
            raise RolewiseError(f"{place}: exists already; name another folder with --to")
        if merge:
            _atomically(place, lambda out, folder=folder: merged_model(model, folder, out))
        else:
            _atomically(place, lambda out, folder=folder: _copy_adapter(folder, model, out))
        written.append(place)
    return written


def checkpoint_folder(config: Config, cell: Cell, seed: int, checkpoint: str) -> Path:
    """The folder of a checkpoint by its name (early, best, terminal) or step."""
    places = layout(config)
    if not cell.trained:
        raise RolewiseError(f"{cell}: is not trained, so there is no adapter to export")
    known = _recorded(config, cell, seed, "checkpoints")
    if checkpoint in CHECKPOINTS:
        table = read_table(places.cell(cell, seed) / "evaluations.parquet")
        step = str(choose_checkpoints(outcomes(table))[checkpoint])
    else:
        step = checkpoint
    if step not in known:
        raise RolewiseError(
            f"checkpoint '{checkpoint}' of {cell}: there are {', '.join(CHECKPOINTS)} and the steps "
            f"{', '.join(known)}"
        )
    folder = Path(known[step])
    if not (folder / "adapters").is_dir():
        raise DataError(f"{folder}: the checkpoint is gone; train {cell} again or choose another")
    found = damage(folder)
    if found:
        raise DataError(f"{folder}: damaged ({found}); train {cell} again or choose another")
    return folder


def _recorded(config: Config, cell: Cell, seed: int, key: str) -> dict:
    """What the manifest of a training says under `key`."""
    file = layout(config).cell(cell, seed) / "manifest.json"
    content = read_json(file)
    if not isinstance(content, dict) or not isinstance(content.get(key), dict):
        raise DataError(f"{file}: says nothing about its {key}; {DAMAGED}")
    return content[key]


def merged_model(model: Path, adapter: Path, out: Path) -> None:
    """Write the model of `model` with the PEFT adapter of `adapter` added to its weights.

    Sums are formed in fp32 and stored in the precision of the base model.
    """
    from safetensors import safe_open
    from safetensors.torch import save_file

    shape = Shape.of(json.loads((model / "config.json").read_text()), model)
    own = Adapter.load(adapter, shape)
    deltas = {}
    for site in own.sites.values():
        a, bs = own.factors(own.theta, site)
        for member, part, b in zip(GROUPS[site.group], a.split(own.rank), bs, strict=True):
            deltas[f"model.layers.{site.layer}.{member}.weight"] = (part, b)
    weights = {}
    for file in sorted(model.glob("*.safetensors")):
        with safe_open(file, framework="pt") as archive:
            for name in archive.keys():  # noqa: SIM118 - not a mapping
                weights[name] = archive.get_tensor(name)
    for name, (a, b) in deltas.items():
        base = weights[name]
        weights[name] = (base.to(torch.float32) + (b @ a) * own.scale).to(base.dtype)
    for file in model.iterdir():
        if file.is_file() and not file.name.endswith(WEIGHTS) and file.name != "manifest.json":
            shutil.copyfile(file, out / file.name)
    save_file(weights, out / "model.safetensors", {"format": "pt"})


def _copy_adapter(folder: Path, model: Path, out: Path) -> None:
    shutil.copytree(folder, out, dirs_exist_ok=True)
    file = out / "adapter_config.json"
    content = json.loads(file.read_text()) | {"base_model_name_or_path": str(model)}
    file.write_text(json.dumps(content, indent=1))


def _atomically(place: Path, write: Callable[[Path], None]) -> None:
    """Run `write` on a folder beside `place` and rename it: a crash leaves nothing half-written."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
        inner = Path(folder) / place.name
        inner.mkdir()
        write(inner)
        inner.rename(place)
