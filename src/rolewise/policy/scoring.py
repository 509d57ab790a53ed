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

from rolewise.policy.attention import PackedAttention
from rolewise.policy.backbone import Backbone, Linear
from rolewise.policy.lora import Segment

Ids = tuple[int, ...]

# Logits that exist at a time. Their fp32 copy, probabilities and gradient are as large again, which for
# the vocabulary of Qwen3 would soon be more than the model.
LOGITS = 2**27


@dataclass(frozen=True)
class Scores:
    """Per completion token, rows one after the other (`T` in all)."""

    logprobs_T: Tensor
    entropies_T: Tensor | None
    top_probs_T: Tensor | None


class Packing:
    """How rows of (prompt, completion) are laid out as flat tokens: all prompts, then all completions.

    `parts_R` labels the rows whose gradients are to be told apart; rows of a part must be adjacent, and
    parts share no prompt. `segments` says which tokens belong to which part; `predict_T` names the
    token that predicts each completion token, `predict_kept_T` the same among the tokens `keep_M`.
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
            *_segments([part for part, _ in index], prompt_lengths.tolist(), ends=True),
            *_segments(parts_R, input_lengths.tolist()),
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

        # The hidden state that predicts token j of a row: the prompt's last for j = 0, else input j - 1.
        within_T = _ranges(self.lengths_R)
        row_T = torch.arange(len(rows)).repeat_interleave(self.lengths_R)
        owner = torch.tensor(owner_R)
        ends_U = prompt_lengths.cumsum(0) - 1
        input_starts_R = self.prompt_tokens + input_lengths.cumsum(0) - input_lengths
        predict_T = torch.where(
            within_T == 0, ends_U[owner[row_T]], input_starts_R[row_T] + within_T - 1
        )
        # Behind the last attention only these tokens are of use: prompts' last ones and inputs.
        keep_M = torch.cat([ends_U, torch.arange(self.prompt_tokens, len(flat))])
        place_N = torch.zeros(len(flat), dtype=torch.long).index_copy(
            0, keep_M, torch.arange(len(keep_M))
        )
        self.predict_T, self.keep_M = predict_T.to(device), keep_M.to(device)
        self.predict_kept_T = place_N[predict_T].to(device)
        self.row_T = row_T.to(device)
        self.attend = PackedAttention(prompt_lengths, input_lengths, owner, device)


def score(
    backbone: Backbone,
    linear: Linear,
    packing: Packing,
    temperature: float,
    *,
    distribution: bool = False,
    recompute: bool = False,
) -> Scores:
    """Log-probability at `temperature` of every completion token, `(T,)` in fp32.

    `distribution` adds entropy (nats) and top probability; `recompute` trades time for memory
    (gradient checkpointing per layer). At most `LOGITS` logits exist at a time.
    """

    def wrap(function, *args):
        return checkpoint(function, *args, use_reentrant=False)

    options = {"wrap": wrap} if recompute and torch.is_grad_enabled() else {}
    hidden_MD = backbone.forward(
        packing.ids_N, packing.positions_N, packing.attend, linear, keep_M=packing.keep_M, **options
    )
    hidden_TD = hidden_MD[packing.predict_kept_T]
    chunk = max(1, LOGITS // backbone.shape.vocab)
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
    parts: Sequence[Hashable], lengths: Sequence[int], *, ends: bool = False
) -> list[tuple[Hashable, Segment]]:
    """(part, its tokens) for runs of equal parts whose pieces have these lengths.

    With `ends`, one token of every piece goes on behind the last attention, otherwise all.
    """
    found = []
    pieces = zip(parts, lengths, strict=True)
    for part, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
        own = [length for _, length in run]
        found.append((part, Segment(sum(own), len(own) if ends else sum(own))))
    return found


def _ranges(lengths: Tensor) -> Tensor:
    """0..n-1 for every n of `lengths`, one after the other."""
    starts = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum())) - starts.repeat_interleave(lengths)
