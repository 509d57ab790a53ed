"""The linear layers that training differentiates: frozen weight plus adapter, gradients kept flat.

Only the adapter and the activations need gradients, so the backward pass is written out: it adds the
adapter's gradient straight into flat accumulators, one for every part of the tokens that the caller
wants to tell apart. That is how every role's gradient is known at no extra backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rolewise.policy.adapters import Adapter, Site
from rolewise.policy.backbone import Backbone


@dataclass(frozen=True)
class Segment:
    """Adjacent tokens of one part: how many there are, and how many go on behind the last attention."""

    every: int
    kept: int


@dataclass(frozen=True)
class Targets:
    """Where a backward pass adds its gradients: row `p` of `flats_PS` for a segment of part `p`.

    The segments cover all tokens in their order; None stands for one that holds them all.
    """

    flats_PS: Tensor
    segments: Sequence[tuple[int, Segment]] | None

    @staticmethod
    def whole(flat: Tensor) -> Targets:
        """All tokens add up in `flat`."""
        return Targets(flat[None], None)

    def split(self, tensor: Tensor, kept: bool) -> Sequence[Tensor]:
        """Pieces of a tensor of tokens, one per segment."""
        if self.segments is None:
            return (tensor,)
        return tensor.split([s.kept if kept else s.every for _, s in self.segments])

    def parts(self) -> list[int]:
        """The part of every segment."""
        return [0] if self.segments is None else [part for part, _ in self.segments]


class AdapterLinear:
    """`linear(layer, group, x)` of a backbone under one adapter.

    In fp32 the adapter is merged into the weight once per version, so that a forward pass costs what
    the base model costs and equals the sampler's. In lower precision the factors stay apart, because
    merging would round a small update away.
    """

    def __init__(self, backbone: Backbone, adapter: Adapter):
        self.backbone, self.adapter = backbone, adapter
        self.targets: Targets | None = None
        self._merge = backbone.dtype == torch.float32
        self._version = -1
        self._weights: dict[tuple[int, str], Tensor] = {}
        # Autograd runs a node only if an input asks for a gradient; the embedding does not.
        self._anchor = torch.zeros((), requires_grad=True, device=backbone.device)

    def refresh(self) -> None:
        """Bring the merged weights up to the adapter's version."""
        if self._version != self.adapter.version:
            self._weights = (
                self.adapter.merged(self.backbone)
                if self._merge
                else {k: self.backbone.layers[k[0]].linear[k[1]] for k in self.adapter.sites}
            )
            self._version = self.adapter.version

    def __call__(self, layer: int, group: str, x: Tensor) -> Tensor:
        """Apply one linear group to `x_N*`; the backward pass adds to `targets` as they are now."""
        self.refresh()
        if torch.is_grad_enabled():
            return _Linear.apply(x, self._anchor, self, layer, group)
        return _forward(self, layer, group, x)


def _forward(linear: AdapterLinear, layer: int, group: str, x: Tensor) -> Tensor:
    y = torch.nn.functional.linear(x, linear._weights[layer, group])
    if linear._merge:
        return y
    a, bs = _factors(linear, layer, group)
    low = x @ a.T
    parts = [part @ b.T for part, b in zip(low.split(linear.adapter.rank, dim=-1), bs, strict=True)]
    return y + torch.cat(parts, dim=-1) * linear.adapter.scale


def _factors(linear: AdapterLinear, layer: int, group: str) -> tuple[Tensor, list[Tensor]]:
    adapter = linear.adapter
    a, bs = adapter.factors(adapter.theta, adapter.sites[layer, group])
    dtype = linear.backbone.dtype
    return a.to(dtype), [b.to(dtype) for b in bs]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, anchor, linear, layer, group):
        ctx.save_for_backward(x)
        ctx.linear, ctx.key, ctx.targets = linear, (layer, group), linear.targets
        return _forward(linear, layer, group, x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        linear, (layer, group) = ctx.linear, ctx.key
        adapter = linear.adapter
        site: Site = adapter.sites[layer, group]
        a, bs = _factors(linear, layer, group)
        low = (x @ a.T).split(adapter.rank, dim=-1)
        grads_y = grad_y.split([shape[0] for shape in site.b_shapes], dim=-1)
        grads_low = [part @ b for part, b in zip(grads_y, bs, strict=True)]
        grad_low = torch.cat(grads_low, dim=-1) if len(grads_low) > 1 else grads_low[0]
        kept = layer == linear.backbone.shape.layers - 1 and group != "qkv"
        _accumulate(ctx.targets, kept, site.a, site.a_shape, grad_low, x, adapter.scale)
        for place, shape, y_part, low_part in zip(site.b, site.b_shapes, grads_y, low, strict=True):
            _accumulate(ctx.targets, kept, place, shape, y_part, low_part, adapter.scale)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_y @ linear._weights[layer, group]
            if not linear._merge:
                grad_x = grad_x + (grad_low @ a) * adapter.scale
        return grad_x, None, None, None, None


def _accumulate(
    targets: Targets,
    kept: bool,
    place: slice,
    shape: tuple[int, int],
    left: Tensor,
    right: Tensor,
    scale: float,
) -> None:
    """Add `scale * left^T right` of every segment to the factor at `place` of its part's accumulator."""
    totals = targets.flats_PS[:, place].view(-1, *shape).unbind(0)
    pieces = zip(
        targets.parts(), targets.split(left, kept), targets.split(right, kept), strict=True
    )
    for part, own_left, own_right in pieces:
        if left.dtype == targets.flats_PS.dtype:
            totals[part].addmm_(own_left.T, own_right, alpha=scale)
        else:
            totals[part].add_(own_left.T @ own_right, alpha=scale)
