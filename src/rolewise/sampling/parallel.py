"""Data parallelism over the processes of torchrun; a single process needs none of it.

Every process samples its share of the episodes, sees all rows, and adds up its share of the gradient.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@contextlib.contextmanager
def joined(gpu: bool) -> Iterator[None]:
    """Join the process group if torchrun started this process; leave it in the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    if gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if gpu else "gloo")
    try:
        yield
    finally:
        # A vLLM engine that shared the group has ended it already.
        if dist.is_initialized():
            dist.destroy_process_group()


def rank() -> int:
    """Index of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def world() -> int:
    """Number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def share(items: Sequence[Any]) -> list[Any]:
    """This process's items: every `world`-th, from its rank."""
    return list(items[rank() :: world()])


def add_up(tensor: Tensor) -> None:
    """Replace `tensor` by its sum over all processes."""
    if dist.is_initialized():
        dist.all_reduce(tensor)


def collect(own: list[Any]) -> list[Any]:
    """All items in their order before `share`, known to every process."""
    if not dist.is_initialized():
        return own
    parts: list[list[Any]] = [[] for _ in range(world())]
    dist.all_gather_object(parts, own)
    merged: list[Any] = [None] * sum(map(len, parts))
    for r, part in enumerate(parts):
        merged[r :: world()] = part
    return merged


def agree(flag: bool) -> bool:
    """Whether any process raised `flag`."""
    return any(collect([flag]))
