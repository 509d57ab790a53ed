"""The one interface of samplers: requests of token ids in, completions of token ids out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Request:
    """One call to sample. `adapter` is None for the base model; `seed` makes the draw its own."""

    prompt_ids: tuple[int, ...]
    adapter: str | None
    seed: int
    max_tokens: int


@dataclass(frozen=True)
class Completion:
    """Sampled tokens, end-of-turn token included when it was drawn.

    `logprobs_T`: log-probability of each token under the distribution it was drawn from (`processed`)
    or at temperature 1 (`raw`). `entropies_T` (nats) and `top_probs_T` describe the full distribution
    at the sampling temperature; None when the backend does not give them. `finish_reason` is stop,
    length or error.
    """

    ids: tuple[int, ...]
    logprobs_T: np.ndarray
    finish_reason: str
    entropies_T: np.ndarray | None = None
    top_probs_T: np.ndarray | None = None


class Sampler(Protocol):
    """Draws completions. Results depend on a request only (up to float rounding), not on its batch."""

    def serving(self) -> AbstractContextManager[None]:
        """A block of sampling from the policy as it is now; TrainingError if the sampler serves another."""

    def submit(self, requests: Sequence[tuple[int, Request]]) -> None:
        """Queue requests, each under a ticket of the caller's choice."""

    def advance(self) -> list[tuple[int, Completion]]:
        """Work for a while and give back what finished; empty only while something is running."""

    @property
    def open(self) -> int:
        """Requests queued or running."""


def call_seed(*parts: object) -> int:
    """A 64-bit seed from what identifies a call; equal parts give equal seeds on every machine."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
