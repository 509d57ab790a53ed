"""Log-probabilities of completions under a policy: the forward pass that training differentiates.

Rows with the same prompt share its computation: prompt tokens are run once, and every completion
attends to its prompt's keys and values. Linear layers see real tokens only; padding exists only
inside attention and never carries a gradient. Suffixes: U distinct prompts, R rows, T tokens of all
completions.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rolewise.policy.backbone import Backbone, Linear

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    """Per completion token, rows one after the other (`T` in all)."""

    logprobs_T: Tensor
    entropies_T: Tensor | None
    top_probs_T: Tensor | None


class Packing:
    """How rows of (prompt, completion) are laid out as flat tokens: all prompts, then all completions.

    `parts_R` labels the rows whose gradients are to be told apart; rows of a part must be adjacent, and
    parts share no prompt. `segments` says which tokens belong to which part.
    """

    def __init__(
        self,
        rows: Sequence[tuple[Ids, Ids]],
        device: torch.device,
        parts_R: Sequence[Hashable] | None = None,
    ):
        parts_R = [None] * len(rows) if parts_R is None else parts_R
        owned = [(part, prompt) for part, (prompt, _) in zip(parts_R, rows, strict=True)]
        index = {key: u for u, key in enumerate(dict.fromkeys(owned))}
        prompts = [prompt for _, prompt in index]
        owner_R = [index[key] for key in owned]
        # The last token of a completion predicts nothing, so it is not run.
        inputs = [completion[:-1] for _, completion in rows]
        prompt_lengths = torch.tensor([len(p) for p in prompts])
        input_lengths = torch.tensor([len(i) for i in inputs])
        self.lengths_R = torch.tensor([len(c) for _, c in rows])
        self.prompt_tokens = int(prompt_lengths.sum())
        self.segments = [
            *_segments([part for part, _ in index], prompt_lengths.tolist(), 0),
            *_segments(parts_R, input_lengths.tolist(), self.prompt_tokens),
        ]

        flat = [t for p in prompts for t in p] + [t for i in inputs for t in i]
        self.ids_N = torch.tensor(flat, device=device)
        starts = torch.tensor([len(prompts[u]) for u in owner_R])
        self.positions_N = torch.cat(
            [
                _ranges(prompt_lengths),
                _ranges(input_lengths) + starts.repeat_interleave(input_lengths),
            ]
        ).to(device)
        self.targets_T = torch.tensor([t for _, c in rows for t in c], device=device)

        prompt_ends = prompt_lengths.cumsum(0) - 1
        input_starts = self.prompt_tokens + input_lengths.cumsum(0) - input_lengths
        # The hidden state that predicts token j of a row: the prompt's last for j = 0, else input j - 1.
        within_T = _ranges(self.lengths_R)
        row_T = torch.arange(len(rows)).repeat_interleave(self.lengths_R)
        owner = torch.tensor(owner_R)
        predict_T = torch.where(
            within_T == 0, prompt_ends[owner[row_T]], input_starts[row_T] + within_T - 1
        )
        self.predict_T = predict_T.to(device)
        self.row_T = row_T.to(device)

        self.owner_R = owner.to(device)
        self.shape_prompt = (len(prompts), int(prompt_lengths.max()))
        self.shape_input = (len(rows), int(input_lengths.max()))
        self.pad_prompt = _padded_index(prompt_lengths, self.shape_prompt[1]).to(device)
        self.pad_input = _padded_index(input_lengths, self.shape_input[1]).to(device)
        p, i = self.shape_prompt[1], self.shape_input[1]
        sees_prompt = torch.arange(p)[None, :] < prompt_lengths[owner][:, None]
        causal = torch.ones(i, i, dtype=torch.bool).tril()
        mask = torch.cat(
            [sees_prompt[:, None, :].expand(-1, i, -1), causal.expand(len(rows), i, i)], dim=2
        )
        self.mask_R1IJ = mask[:, None].to(device)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal attention within prompts, and of completions to their prompt and themselves."""
        heads, repeat = q.shape[1], q.shape[1] // k.shape[1]
        n = self.prompt_tokens
        qp, kp, vp = (self._pad(t[:n], self.pad_prompt, self.shape_prompt) for t in (q, k, v))
        kp_all, vp_all = (t.repeat_interleave(repeat, dim=1) for t in (kp, vp))
        prompt = F.scaled_dot_product_attention(qp, kp_all, vp_all, is_causal=True)
        out = [self._unpad(prompt, self.pad_prompt)]
        if self.shape_input[1]:
            qi, ki, vi = (self._pad(t[n:], self.pad_input, self.shape_input) for t in (q, k, v))
            ki = torch.cat([kp[self.owner_R], ki], dim=2).repeat_interleave(repeat, dim=1)
            vi = torch.cat([vp[self.owner_R], vi], dim=2).repeat_interleave(repeat, dim=1)
            mixed = F.scaled_dot_product_attention(qi, ki, vi, attn_mask=self.mask_R1IJ)
            out.append(self._unpad(mixed, self.pad_input))
        return torch.cat(out).view(-1, heads, q.shape[2])

    @staticmethod
    def _pad(flat: Tensor, index: Tensor, shape: tuple[int, int]) -> Tensor:
        """`(tokens, heads, E)` to `(rows, heads, length, E)`, zeros where there is no token."""
        rows, length = shape
        padded = flat.new_zeros(rows * length, *flat.shape[1:]).index_copy(0, index, flat)
        return padded.view(rows, length, *flat.shape[1:]).transpose(1, 2)

    @staticmethod
    def _unpad(padded: Tensor, index: Tensor) -> Tensor:
        return padded.transpose(1, 2).flatten(0, 1)[index]


def score(
    backbone: Backbone,
    linear: Linear,
    packing: Packing,
    temperature: float,
    *,
    distribution: bool = False,
    recompute: bool = False,
    chunk: int = 4096,
) -> Scores:
    """Log-probability at `temperature` of every completion token, `(T,)` in fp32.

    `distribution` adds entropy (nats) and top probability; `recompute` trades time for memory
    (gradient checkpointing per layer). Logits exist for `chunk` tokens at a time.
    """

    def wrap(function, *args):
        return checkpoint(function, *args, use_reentrant=False)

    options = {"wrap": wrap} if recompute and torch.is_grad_enabled() else {}
    hidden_ND = backbone.forward(
        packing.ids_N, packing.positions_N, packing.attend, linear, **options
    )
    hidden_TD = hidden_ND[packing.predict_T]
    several = hidden_TD.shape[0] > chunk and torch.is_grad_enabled()
    parts = []
    for hidden, targets in zip(hidden_TD.split(chunk), packing.targets_T.split(chunk), strict=True):
        arguments = (backbone, hidden, targets, temperature, distribution)
        parts.append(wrap(_token_scores, *arguments) if several else _token_scores(*arguments))
    logprobs, entropies, tops = (
        torch.cat(column) if column[0] is not None else None for column in zip(*parts, strict=True)
    )
    return Scores(logprobs, entropies, tops)


def _token_scores(
    backbone: Backbone, hidden: Tensor, targets: Tensor, temperature: float, distribution: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    logits = backbone.logits(hidden).float() / temperature
    if not distribution:
        return -F.cross_entropy(logits, targets, reduction="none"), None, None
    log_p = logits.log_softmax(dim=-1)
    p = log_p.detach().exp()
    return (
        log_p.gather(1, targets[:, None])[:, 0],
        -(p * log_p.detach()).sum(-1),
        p.max(-1).values,
    )


def _segments(
    parts: Sequence[Hashable], lengths: Sequence[int], start: int
) -> list[tuple[Hashable, slice]]:
    """(part, its tokens) for runs of equal parts whose pieces have these lengths."""
    found = []
    pieces = zip(parts, lengths, strict=True)
    for part, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
        stop = start + sum(length for _, length in run)
        found.append((part, slice(start, stop)))
        start = stop
    return found


def _ranges(lengths: Tensor) -> Tensor:
    """0..n-1 for every n of `lengths`, one after the other."""
    starts = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum())) - starts.repeat_interleave(lengths)


def _padded_index(lengths: Tensor, width: int) -> Tensor:
    """Where each real token lies in the flattened `(rows, width)` grid."""
    rows = torch.arange(len(lengths)).repeat_interleave(lengths)
    return rows * width + _ranges(lengths)
