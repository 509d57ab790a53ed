"""Attention of packed rows: within prompts, and of completions to their prompt and themselves.

Padding exists only in here and never carries a gradient. Suffixes: N tokens (all prompts, then the
inputs of all completions), U prompts, R rows, P and I their greatest lengths, H heads, K key-value
heads, G = H / K, E head size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

# Up to this many keys per query the score matrix is cheap to keep; beyond it a fused kernel wins.
KEPT_SCORES = 512


class PackedAttention:
    """`attend(layer, q, k, v)` of a `Packing`: rows of one prompt share its keys and values."""

    def __init__(
        self, prompt_lengths: Tensor, input_lengths: Tensor, owner_R: Tensor, device: torch.device
    ):
        self.prompt_tokens = int(prompt_lengths.sum())
        self._lengths = (prompt_lengths, input_lengths)
        self._owner = owner_R
        self._device = device
        self._widths = (int(prompt_lengths.max()), int(input_lengths.max()))
        self._layouts: dict[tuple[int, int], _Layout] = {}

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mixed values `(N, H, E)`."""
        heads = (q.shape[1], k.shape[1])
        if heads not in self._layouts:
            self._layouts[heads] = self._layout(*heads)
        layout = self._layouts[heads]
        if q.device.type == "cpu" and sum(self._widths) <= KEPT_SCORES:
            return _Attention.apply(q, k, v, layout)
        return _fused(q, k, v, layout)

    def _layout(self, heads: int, kv: int) -> _Layout:
        (p, i), (prompts, inputs) = self._widths, self._lengths
        owner, device = self._owner, self._device
        causal = torch.ones(p, p, dtype=torch.bool).tril()
        sees_prompt = torch.arange(p)[None, :] < prompts[owner][:, None]
        mask = torch.cat(
            [
                sees_prompt[:, None, :].expand(-1, i, -1),
                torch.ones(i, i, dtype=torch.bool).tril().expand(len(owner), i, i),
            ],
            dim=2,
        )
        return _Layout(
            heads,
            kv,
            self.prompt_tokens,
            owner.to(device),
            _Grid.of(prompts, p, heads, kv, device),
            _Grid.of(inputs, i, heads, kv, device),
            _bias(causal[None], heads // kv).to(device),
            _bias(mask, heads // kv).to(device),
        )


@dataclass(frozen=True)
class _Grid:
    """Where the tokens of rows of different length lie in a padded grid.

    `query` and `key` name, for every place of `(rows, K, G, width)` and `(rows, K, width)`, a token's
    head (padding names any); `of_query` and `of_key` name the places of every token's heads.
    """

    rows: int
    width: int
    query: Tensor
    key: Tensor
    of_query: Tensor
    of_key: Tensor

    @staticmethod
    def of(lengths: Tensor, width: int, heads: int, kv: int, device: torch.device) -> _Grid:
        rows, groups = len(lengths), heads // kv
        within = torch.arange(width)
        starts = lengths.cumsum(0) - lengths
        real = within[None, :] < lengths[:, None]
        token = torch.where(real, starts[:, None] + within[None, :], 0)
        head = torch.arange(heads).view(kv, groups)
        query = token[:, None, None, :] * heads + head[None, :, :, None]
        key = token[:, None, :] * kv + torch.arange(kv)[None, :, None]
        row, place = real.nonzero(as_tuple=True)
        of_query = (row[:, None] * heads + torch.arange(heads)) * width + place[:, None]
        of_key = (row[:, None] * kv + torch.arange(kv)) * width + place[:, None]
        flat = (t.flatten().to(device) for t in (query, key, of_query, of_key))
        return _Grid(rows, width, *flat)


@dataclass(frozen=True)
class _Layout:
    heads: int
    kv: int
    prompt_tokens: int
    owner: Tensor
    prompt: _Grid
    input: _Grid
    prompt_bias: Tensor
    input_bias: Tensor


def _bias(mask: Tensor, groups: int) -> Tensor:
    """0 where a query sees a key and -inf elsewhere, `(rows, 1, G x queries, keys)`."""
    zero = torch.zeros(mask.shape).masked_fill_(~mask, float("-inf"))
    return zero.repeat(1, groups, 1)[:, None]


def _gather(x: Tensor, index: Tensor, rows: int, kv: int) -> Tensor:
    """Heads of tokens in a padded grid, `(rows x K, places, E)`."""
    picked = x.reshape(-1, x.shape[-1]).index_select(0, index)
    return picked.view(rows * kv, -1, x.shape[-1])


def _scatter(x: Tensor, index: Tensor, places: int) -> Tensor:
    """Heads of tokens in a grid of `places` places, zeros where there is no token."""
    return x.new_zeros(places, x.shape[-1]).index_copy_(0, index, x.reshape(-1, x.shape[-1]))


class _Attention(torch.autograd.Function):
    """Softmax attention that keeps its probabilities; scores are small, so this beats a fused kernel."""

    @staticmethod
    def forward(ctx, q, k, v, layout):
        n, kv = layout.prompt_tokens, layout.kv
        scale = q.shape[-1] ** -0.5
        out, kept = torch.empty_like(q, memory_format=torch.contiguous_format), []
        keys, values = (_gather(t[:n], layout.prompt.key, layout.prompt.rows, kv) for t in (k, v))
        blocks = [(layout.prompt, slice(0, n), layout.prompt_bias, keys, values)]
        if layout.input.width:
            blocks.append(
                (
                    layout.input,
                    slice(n, None),
                    layout.input_bias,
                    _with_prompt(keys, k[n:], layout),
                    _with_prompt(values, v[n:], layout),
                )
            )
        for grid, tokens, bias, key, value in blocks:
            query = _gather(q[tokens], grid.query, grid.rows, kv).mul_(scale)
            scores = query @ key.transpose(1, 2)
            scores.view(grid.rows, kv, *scores.shape[1:]).add_(bias)
            p = scores.softmax(-1)
            mixed = (p @ value).view(-1, q.shape[-1])
            out[tokens] = mixed.index_select(0, grid.of_query).view(-1, *q.shape[1:])
            kept += [query, key, value, p]
        ctx.save_for_backward(*kept)
        ctx.layout, ctx.scale = layout, scale
        return out

    @staticmethod
    def backward(ctx, grad):
        layout, size = ctx.layout, grad.shape[-1]
        n, kv = layout.prompt_tokens, layout.kv
        grad_q = torch.empty_like(grad, memory_format=torch.contiguous_format)
        grad_k, grad_v = (grad.new_empty(len(grad), kv, size) for _ in range(2))
        shared, saved = None, ctx.saved_tensors
        blocks = [(layout.prompt, slice(0, n), saved[:4])]
        if layout.input.width:
            blocks.insert(0, (layout.input, slice(n, None), saved[4:]))
        for grid, tokens, (query, key, value, p) in blocks:
            places = grid.rows * layout.heads * grid.width
            up = _scatter(grad[tokens], grid.of_query, places).view(query.shape)
            value_grad = p.transpose(1, 2) @ up
            scores_grad = torch._softmax_backward_data(up @ value.transpose(1, 2), p, -1, p.dtype)
            query_grad = (scores_grad @ key).mul_(ctx.scale).view(-1, size)
            key_grad = scores_grad.transpose(1, 2) @ query
            grad_q[tokens] = query_grad.index_select(0, grid.of_query).view(-1, *grad.shape[1:])
            if grid is layout.input:
                shared = [_to_owner(t, layout) for t in (key_grad, value_grad)]
                key_grad, value_grad = (
                    t[:, layout.prompt.width :].reshape(-1, size) for t in (key_grad, value_grad)
                )
            elif shared is not None:
                key_grad, value_grad = key_grad + shared[0], value_grad + shared[1]
            for target, source in ((grad_k, key_grad), (grad_v, value_grad)):
                picked = source.view(-1, size).index_select(0, grid.of_key)
                target[tokens] = picked.view(-1, kv, size)
        return grad_q, grad_k, grad_v, None


def _with_prompt(prompt: Tensor, own: Tensor, layout: _Layout) -> Tensor:
    """Keys (or values) of every row: its prompt's, then its own, `(R x K, P + I, E)`."""
    rows, kv, size = layout.input.rows, layout.kv, own.shape[-1]
    whole = own.new_empty(rows, kv, layout.prompt.width + layout.input.width, size)
    by_prompt = prompt.view(layout.prompt.rows, kv, -1, size)
    whole[:, :, : layout.prompt.width] = by_prompt.index_select(0, layout.owner)
    whole[:, :, layout.prompt.width :] = _gather(own, layout.input.key, rows, kv).view(
        rows, kv, -1, size
    )
    return whole.view(rows * kv, -1, size)


def _to_owner(grad: Tensor, layout: _Layout) -> Tensor:
    """Gradients of the prompt part of every row's keys, summed over the rows of a prompt."""
    rows = grad.view(layout.input.rows, layout.kv, -1, grad.shape[-1])[:, :, : layout.prompt.width]
    total = grad.new_zeros(layout.prompt.rows, *rows.shape[1:])
    total.index_add_(0, layout.owner, rows)
    return total.view(layout.prompt.rows * layout.kv, -1, grad.shape[-1])


def _fused(q: Tensor, k: Tensor, v: Tensor, layout: _Layout) -> Tensor:
    """The same through PyTorch's fused attention, whose memory does not grow with the score matrix."""
    n, kv, size = layout.prompt_tokens, layout.kv, q.shape[-1]

    def pad(x: Tensor, grid: _Grid, heads: int, index: Tensor) -> Tensor:
        places = grid.rows * heads * grid.width
        flat = x.new_zeros(places, size).index_copy(0, index, x.reshape(-1, size))
        return flat.view(grid.rows, heads, grid.width, size)

    def mix(grid: _Grid, query: Tensor, key: Tensor, value: Tensor, attend: Callable) -> Tensor:
        key, value = (t.repeat_interleave(layout.heads // kv, dim=1) for t in (key, value))
        mixed = attend(query, key, value)
        return mixed.reshape(-1, size)[grid.of_query].view(-1, layout.heads, size)

    grid = layout.prompt
    query = pad(q[:n], grid, layout.heads, grid.of_query)
    keys, values = (pad(t[:n], grid, kv, grid.of_key) for t in (k, v))
    causal = lambda *args: F.scaled_dot_product_attention(*args, is_causal=True)  # noqa: E731
    out = [mix(grid, query, keys, values, causal)]
    if layout.input.width:
        grid = layout.input
        query = pad(q[n:], grid, layout.heads, grid.of_query)
        own = [pad(t[n:], grid, kv, grid.of_key) for t in (k, v)]
        key, value = (
            torch.cat([shared[layout.owner], mine], dim=2)
            for shared, mine in zip((keys, values), own, strict=True)
        )
        visible = layout.input_bias[:, :, : grid.width].to(q.dtype)
        masked = lambda *args: F.scaled_dot_product_attention(*args, attn_mask=visible)  # noqa: E731
        out.append(mix(grid, query, key, value, masked))
    return torch.cat(out)
