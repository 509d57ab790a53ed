"""The steps between linear layers, with their backward passes written out.

Autograd would keep every intermediate of an elementary operation and read each one again; written
out, a step keeps its inputs only and touches them a few times, which on a CPU is what it costs.
Frozen weights get no gradient. Suffixes as in `backbone`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def rms_norm(x_ND: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    """`x / sqrt(mean(x^2) + eps) * weight` over the last dimension."""
    if torch.is_grad_enabled():
        return _RmsNorm.apply(x_ND, weight_D, eps)
    return _norm(x_ND, weight_D, eps)


def split_heads(
    qkv: Tensor, sizes: tuple[int, int, int], norm_HE: Tensor | None, eps: float, rope: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries `(N, H, E)`, keys and values `(N, K, E)` of a fused projection `(N, (H + 2 K) E)`.

    `sizes` is (H, K, E). Queries and keys are normalised per head if `norm_HE` (their weights,
    `(H + K, E)`) is given, then rotated by `rope`, cosines and signed sines `(2, N, 1, E)`.
    """
    if torch.is_grad_enabled():
        return _SplitHeads.apply(qkv, sizes, norm_HE, eps, rope)
    return _split(qkv, sizes, norm_HE, eps, rope)


def swiglu(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` of the two halves of `(N, 2 I)`."""
    if torch.is_grad_enabled():
        return _SwiGlu.apply(gate_up)
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate).mul_(up)


def take(x_ND: Tensor, index_M: Tensor) -> Tensor:
    """Rows `index_M` of `x_ND`; no row may be named twice."""
    return _Take.apply(x_ND, index_M)


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], None, eps).mul_(weight)


def _norm_backward(grad: Tensor, x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    scale = wide.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
    pulled = grad.float() * weight
    along = torch.linalg.vecdot(pulled, wide)[..., None].mul_(scale.pow(3)).div_(x.shape[-1])
    return pulled.mul_(scale).addcmul_(wide, along, value=-1).to(x.dtype)


def _split(
    qkv: Tensor, sizes: tuple[int, int, int], norm: Tensor | None, eps: float, rope: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    heads, kv, size = sizes
    split = qkv.view(-1, heads + 2 * kv, size)
    qk = split[:, : heads + kv]
    qk = qk.clone() if norm is None else _norm(qk, norm, eps)
    cos, sin = rope.unbind(0)
    turned = qk.roll(size // 2, -1)
    qk.mul_(cos).addcmul_(turned, sin)
    return qk[:, :heads], qk[:, heads:], split[:, heads + kv :]


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return _norm(x, weight, eps)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return _norm_backward(grad, x, weight, ctx.eps), None, None


class _SplitHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv, sizes, norm, eps, rope):
        ctx.sizes, ctx.eps = sizes, eps
        ctx.save_for_backward(*((qkv, norm, rope) if norm is not None else (rope,)))
        q, k, v = _split(qkv, sizes, norm, eps, rope)
        return q, k, v.clone()

    @staticmethod
    def backward(ctx, grad_q, grad_k, grad_v):
        heads, kv, size = ctx.sizes
        *normed, rope = ctx.saved_tensors
        cos, sin = rope.unbind(0)
        grad = grad_v.new_empty(len(grad_v), heads + 2 * kv, size)
        qk = torch.cat([grad_q, grad_k], dim=1)
        turned = (qk * sin).roll(size // 2, -1)
        qk.mul_(cos).add_(turned)
        if normed:
            qkv, norm = normed
            before = qkv.view(-1, heads + 2 * kv, size)[:, : heads + kv]
            qk = _norm_backward(qk, before, norm, ctx.eps)
        grad[:, : heads + kv] = qk
        grad[:, heads + kv :] = grad_v
        return grad.view(len(grad), -1), None, None, None, None


class _SwiGlu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate_up):
        ctx.save_for_backward(gate_up)
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx, grad):
        (gate_up,) = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        both = torch.empty_like(gate_up)
        grad_gate, grad_up = both.chunk(2, dim=-1)
        torch.mul(F.silu(gate), grad, out=grad_up)
        torch.ops.aten.silu_backward(grad * up, gate, grad_input=grad_gate)
        return both


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.length = len(x)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad.new_zeros(ctx.length, *grad.shape[1:]).index_copy_(0, index, grad), None
