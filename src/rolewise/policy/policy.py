"""The policy of a workflow: one frozen backbone and the adapters that its roles use."""

from __future__ import annotations

from pathlib import Path

from rolewise.config import Config
from rolewise.grid import Cell
from rolewise.policy.adapters import Adapter
from rolewise.policy.backbone import Backbone, Linear
from rolewise.policy.lora import AdapterLinear
from rolewise.policy.routing import adapter_of, adapters_of
from rolewise.sampling.base import call_seed


class Policy:
    """Adapters by name over one backbone; `None` names the base model itself."""

    def __init__(self, backbone: Backbone, adapters: dict[str, Adapter]):
        self.backbone, self.adapters = backbone, adapters
        self.linears = {name: AdapterLinear(backbone, a) for name, a in adapters.items()}

    def linear(self, adapter: str | None) -> Linear:
        """The linear layers under an adapter."""
        return self.backbone.plain_linear if adapter is None else self.linears[adapter]


def load_backbone(config: Config, folder: Path) -> Backbone:
    """The base model of a scale in the configured precision, on the GPU if the job was given one."""
    import torch

    device = "cuda" if config.resources.gpu and torch.cuda.is_available() else "cpu"
    return Backbone.load(folder, getattr(torch, config.training.dtype), device)


def fresh_policy(
    config: Config, cell: Cell, roles: tuple[str, ...], seed: int, backbone: Backbone
) -> Policy:
    """New adapters for every role of the cell, each from its own seed; none for a base cell."""
    return Policy(
        backbone,
        {
            name: Adapter.fresh(
                backbone.shape,
                config.lora.rank,
                config.lora.alpha,
                call_seed(seed, "adapter", name) % 2**63,
                str(backbone.device),
            )
            for name in adapters_of(cell.policy, roles)
        },
    )


def saved_policy(cell: Cell, roles: tuple[str, ...], folder: Path, backbone: Backbone) -> Policy:
    """The adapters of a checkpoint: `folder/<adapter>/` for every adapter of the cell."""
    names = adapters_of(cell.policy, roles)
    device = str(backbone.device)
    return Policy(
        backbone, {name: Adapter.load(folder / name, backbone.shape, device) for name in names}
    )


def routes(policy: str):
    """Role -> adapter name under `policy`."""
    return lambda role: adapter_of(policy, role)
