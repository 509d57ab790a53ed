"""Proof that a sampler serves the adapters that the trainer holds, by log-probabilities of fixed tokens.

A sampler that silently serves the base model or an old adapter trains on data of another policy. Two
signs give it away: its log-probabilities are far from the trainer's, or they are nearer to those of
what it should have left behind. The second works in low precision too, where a small update drowns in
rounding on every single token but not in their sum. Suffix T: tokens of a probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rolewise.errors import TrainingError
from rolewise.policy.backbone import Backbone
from rolewise.policy.policy import Policy
from rolewise.policy.scoring import Packing, score

Ids = tuple[int, ...]

# Root mean square of the differences in nats per token that rounding alone explains.
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1}
# A movement is judged when it stands out from the differences by this factor.
CLEAR = 10.0
PROBE_TEXTS, PROBE_TOKENS = 32, 8


@dataclass(frozen=True)
class Probe:
    """Prompts, and for each the tokens whose log-probability as its continuation is asked for."""

    texts: tuple[Ids, ...]
    tokens: tuple[Ids, ...]


@dataclass(frozen=True)
class Served:
    """Log-probabilities of an adapter's probe: by the sampler, by the trainer, and by what went before."""

    sampler_T: np.ndarray
    trainer_T: np.ndarray
    references: Mapping[str, np.ndarray]


def make_probe(backbone: Backbone, texts: Sequence[Ids]) -> Probe:
    """A probe of the first distinct `texts` and the tokens that the base model finds likeliest there."""
    chosen = list(dict.fromkeys(texts))[:PROBE_TEXTS]
    packing = Packing([(text, (0,)) for text in chosen], backbone.device)
    with torch.no_grad():
        hidden = backbone.forward(
            packing.ids_N, packing.positions_N, packing.attend, backbone.plain_linear
        )
        likeliest = backbone.logits(hidden[packing.predict_T]).topk(PROBE_TOKENS).indices
    return Probe(tuple(chosen), tuple(map(tuple, likeliest.tolist())))


def trainer_logprobs(
    policy: Policy, adapter: str | None, probe: Probe, temperature: float
) -> np.ndarray:
    """The trainer's log-probability of every token of the probe, text by text."""
    rows = [
        (text, (token,))
        for text, tokens in zip(probe.texts, probe.tokens, strict=True)
        for token in tokens
    ]
    packing = Packing(rows, policy.backbone.device)
    with torch.no_grad():
        scores = score(policy.backbone, policy.linear(adapter), packing, temperature)
    return scores.logprobs_T.cpu().numpy()


def check_served(adapter: str, served: Served, dtype: torch.dtype) -> float:
    """Root mean square difference (nats) between sampler and trainer; TrainingError if it is too large.

    The sampler also fails if it lies nearer to one of `references` (the base model, the version before)
    than to the trainer, wherever the two are clearly apart.
    """
    difference = served.sampler_T - served.trainer_T
    spread = float(np.sqrt(np.mean(np.square(difference, dtype=np.float64))))
    where = f"adapter '{adapter}': the sampler does not serve what the trainer holds"
    advice = (
        "; stop using this sampler for this model (sampling.backend: torch) or report the engine"
    )
    nearer = {}
    for name, reference in served.references.items():
        moved = (served.trainer_T - reference).astype(np.float64)
        length = float(np.linalg.norm(moved))
        if length <= CLEAR * max(spread, np.finfo(np.float32).eps):
            continue
        departed = served.sampler_T - reference
        if departed @ moved < 0.5 * length**2:
            nearer[name] = float(np.linalg.norm(departed))
    if nearer:
        raise TrainingError(f"{where} but {min(nearer, key=nearer.get)}{advice}")
    if not spread <= TOLERANCE[dtype]:
        raise TrainingError(
            f"{where}: log-probs of a fixed probe differ by {spread:.2g} nats (root mean square; "
            f"{TOLERANCE[dtype]:g} is allowed in {dtype}){advice}"
        )
    return spread
