"""The base model of a scale: trained here or fetched, by the kind of its specification."""

from __future__ import annotations

from pathlib import Path

from rolewise.config import Config, EmbeddedModel


def make(config: Config, scale: str, data_root: Path, out_folder: Path) -> dict:
    """Write the model of `scale` to `out_folder`, manifest last; gives the manifest back.

    An embedded model learns from the training problems below `data_root`.
    """
    if isinstance(config.models[scale], EmbeddedModel):
        from rolewise.models.embedded import build

        return build(config, scale, data_root, out_folder)
    from rolewise.models.fetch import fetch

    return fetch(config, scale, out_folder)
