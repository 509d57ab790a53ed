"""LoRA adapters as flat vectors: one per role (Isolated-Policy) or one for all (Shared-Policy).

A flat vector makes optimiser states, role gradients and their cosines plain vector arithmetic. On
disk an adapter is an ordinary PEFT folder.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from rolewise.errors import DataError
from rolewise.policy.backbone import GROUPS, Backbone, Shape


@dataclass(frozen=True)
class Site:
    """Where one linear group's factors lie in the flat vector: A stacked, then each B."""

    layer: int
    group: str
    a: slice
    a_shape: tuple[int, int]
    b: tuple[slice, ...]
    b_shapes: tuple[tuple[int, int], ...]


def sites_of(shape: Shape, rank: int) -> tuple[dict[tuple[int, str], Site], int]:
    """The sites of every linear group, and the length of the flat vector."""
    sites, offset = {}, 0
    for layer in range(shape.layers):
        for group, members in GROUPS.items():
            inputs = shape.linear_sizes(members[0])[1]
            a_shape = (len(members) * rank, inputs)
            a = slice(offset, offset + math.prod(a_shape))
            offset = a.stop
            b, b_shapes = [], []
            for member in members:
                outputs = shape.linear_sizes(member)[0]
                b.append(slice(offset, offset + outputs * rank))
                b_shapes.append((outputs, rank))
                offset = b[-1].stop
            sites[layer, group] = Site(layer, group, a, a_shape, tuple(b), tuple(b_shapes))
    return sites, offset


class Adapter:
    """One LoRA adapter. `theta` is the flat fp32 parameter; `version` counts its changes."""

    def __init__(self, shape: Shape, rank: int, alpha: float, theta: Tensor):
        self.shape, self.rank, self.alpha = shape, rank, alpha
        self.sites, size = sites_of(shape, rank)
        if theta.shape != (size,):
            raise ValueError(f"theta has shape {tuple(theta.shape)}, expected ({size},)")
        self.theta = theta
        self.version = 0

    @property
    def scale(self) -> float:
        """The factor alpha / rank in front of B A."""
        return self.alpha / self.rank

    @staticmethod
    def fresh(shape: Shape, rank: int, alpha: float, seed: int, device: str = "cpu") -> Adapter:
        """A new adapter as PEFT initialises it: A uniform within 1/sqrt(inputs), B zero."""
        sites, size = sites_of(shape, rank)
        theta = torch.zeros(size)
        generator = torch.Generator().manual_seed(seed)
        for site in sites.values():
            bound = 1 / math.sqrt(site.a_shape[1])
            theta[site.a] = (
                torch.rand(math.prod(site.a_shape), generator=generator) * 2 - 1
            ) * bound
        return Adapter(shape, rank, alpha, theta.to(device))

    def factors(self, flat: Tensor, site: Site) -> tuple[Tensor, list[Tensor]]:
        """Views of A `(members x rank, inputs)` and of each B `(outputs, rank)` in `flat`."""
        return (
            flat[site.a].view(site.a_shape),
            [flat[s].view(shape) for s, shape in zip(site.b, site.b_shapes, strict=True)],
        )

    def merged(self, backbone: Backbone) -> dict[tuple[int, str], Tensor]:
        """Every linear group with the adapter added: W + scale B A, in the backbone's precision."""
        result = {}
        for key, site in self.sites.items():
            base = backbone.layers[site.layer].linear[site.group]
            a, bs = self.factors(self.theta, site)
            deltas = [b @ part for b, part in zip(bs, a.split(self.rank), strict=True)]
            result[key] = base + (torch.cat(deltas) * self.scale).to(base.dtype)
        return result

    def save(self, folder: Path, base_model: str) -> None:
        """Write `adapter_model.safetensors` and `adapter_config.json`, loadable by PEFT."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {}
        for site in self.sites.values():
            a, bs = self.factors(self.theta.detach().cpu(), site)
            for member, part, b in zip(GROUPS[site.group], a.split(self.rank), bs, strict=True):
                stem = f"base_model.model.model.layers.{site.layer}.{member}"
                tensors[f"{stem}.lora_A.weight"] = part.contiguous()
                tensors[f"{stem}.lora_B.weight"] = b.contiguous()
        (folder / "adapter_model.safetensors").write_bytes(save(tensors, {"format": "pt"}))
        modules = sorted(m.rpartition(".")[2] for members in GROUPS.values() for m in members)
        description = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base_model,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": modules,
            "inference_mode": True,
        }
        (folder / "adapter_config.json").write_text(json.dumps(description, indent=1))

    @staticmethod
    def load(folder: Path, shape: Shape, device: str = "cpu") -> Adapter:
        """The adapter saved in `folder`; DataError if it does not fit the model."""
        try:
            description = json.loads((folder / "adapter_config.json").read_text())
            rank, alpha = int(description["r"]), float(description["lora_alpha"])
            tensors = load_file(folder / "adapter_model.safetensors")
        except OSError as error:
            raise DataError(f"{folder}: no adapter here ({error})") from error
        except (ValueError, KeyError, TypeError, SafetensorError) as error:
            raise DataError(f"{folder}: the adapter is damaged ({error!r})") from error
        sites, size = sites_of(shape, rank)
        theta = torch.empty(size)
        adapter = Adapter(shape, rank, alpha, theta)
        for site in sites.values():
            a, bs = adapter.factors(theta, site)
            for member, part, b in zip(GROUPS[site.group], a.split(rank), bs, strict=True):
                stem = f"base_model.model.model.layers.{site.layer}.{member}"
                try:
                    part.copy_(tensors.pop(f"{stem}.lora_A.weight"))
                    b.copy_(tensors.pop(f"{stem}.lora_B.weight"))
                except (KeyError, RuntimeError) as error:
                    raise DataError(
                        f"{folder}: does not fit the model at {stem}: {error}"
                    ) from error
        if tensors:
            raise DataError(
                f"{folder}: tensors that the model has no place for: {sorted(tensors)[:3]}"
            )
        adapter.theta = theta.to(device)
        return adapter
