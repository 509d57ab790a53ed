"""The trainer's own view of rows, without gradients: log-probabilities, their spread, KL to the base model."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch

from rolewise.config import Config
from rolewise.policy.policy import Policy
from rolewise.policy.scoring import Packing, Scores, score
from rolewise.sampling import parallel
from rolewise.training.batches import microbatches
from rolewise.training.objective import k3
from rolewise.training.rows import Row

PROBE_ROWS = 64


class RowScorer:
    """Scores rows under a policy as it is now, at the sampling temperature."""

    def __init__(self, policy: Policy, config: Config):
        self.policy = policy
        self._temperature = config.sampling.temperature
        self._tokens = config.training.update.microbatch_tokens

    def logprobs(self, rows: list[Row]) -> list[np.ndarray]:
        """Log-probabilities of every row under its own adapter; `index` names each row's place."""
        return [values[0] for values in self._each(rows, distribution=False)]

    def distributions(self, rows: list[Row]) -> list[list[np.ndarray]]:
        """The same, with entropy (nats) and top probability of every token."""
        return self._each(rows, distribution=True)

    def kl_base(self, rows: list[Row]) -> dict[str, float]:
        """KL(role || base) in nats per token, on the first `PROBE_ROWS` rows of every role."""
        values = {}
        for role in dict.fromkeys(row.role for row in rows):
            probe = [row for row in rows if row.role == role][:PROBE_ROWS]
            terms = []
            for micro in microbatches(probe, self._tokens):
                packing = self._packing(micro)
                own, base = (self.score(packing, name) for name in (micro[0].adapter, None))
                terms.append(k3(own.logprobs_T, base.logprobs_T))
            values[role] = float(torch.cat(terms).mean())
        return values

    @torch.no_grad()
    def score(self, packing: Packing, adapter: str | None, *, distribution: bool = False) -> Scores:
        """Scores of packed rows under `adapter`, None for the base model."""
        linear = self.policy.linear(adapter)
        return score(
            self.policy.backbone, linear, packing, self._temperature, distribution=distribution
        )

    def _packing(self, rows: list[Row]) -> Packing:
        return Packing(
            [(r.prompt_ids, r.completion_ids) for r in rows], self.policy.backbone.device
        )

    def _each(self, rows: list[Row], *, distribution: bool) -> list[list[np.ndarray]]:
        own = parallel.share(rows)
        result: dict[int, list[np.ndarray]] = {}
        by_adapter: dict[str, list[Row]] = defaultdict(list)
        for row in own:
            by_adapter[row.adapter].append(row)
        for name, mine in by_adapter.items():
            for micro in microbatches(mine, self._tokens):
                packing = self._packing(micro)
                scores = self.score(packing, name, distribution=distribution)
                columns = [scores.logprobs_T, scores.entropies_T, scores.top_probs_T]
                lengths = packing.lengths_R.tolist()
                split = [c.cpu().split(lengths) for c in columns if c is not None]
                for row, values in zip(micro, zip(*split, strict=True), strict=True):
                    result[row.index] = [v.numpy() for v in values]
        return parallel.collect([result[row.index] for row in own])
