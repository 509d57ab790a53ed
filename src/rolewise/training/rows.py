"""The rows that training sees: one per role call, with its episode's reward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rolewise.sampling.episodes import Episode


@dataclass
class Row:
    """One call of a role. `reward` is NaN when it is unknown.

    The advantage and the index (position among a step's rows) are filled in later.
    """

    role: str
    slot: int
    turn: int
    adapter: str
    episode: int
    problem: str
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    old_logprobs_T: np.ndarray
    reward: float
    advantage: float = 0.0
    entropies_T: np.ndarray | None = None
    top_probs_T: np.ndarray | None = None
    truncated: bool = False
    index: int = -1

    @property
    def tokens(self) -> int:
        """Completion tokens."""
        return len(self.completion_ids)


def rows_of(
    episodes: list[Episode], rewards: list[dict[tuple[str, int, int], float]], adapter_of
) -> list[Row]:
    """One row per call of every episode; `rewards[i]` gives the reward of each call of episode i."""
    return [
        Row(
            role=record.call.role,
            slot=record.call.slot,
            turn=record.call.turn,
            adapter=adapter_of(record.call.role),
            episode=i,
            problem=episode.problem.id,
            prompt_ids=record.prompt_ids,
            completion_ids=record.completion.ids,
            old_logprobs_T=record.completion.logprobs_T,
            reward=rewards[i][record.call.key],
            entropies_T=record.completion.entropies_T,
            top_probs_T=record.completion.top_probs_T,
            truncated=record.completion.finish_reason == "length",
        )
        for i, episode in enumerate(episodes)
        for record in episode.calls
        if record.completion.ids
    ]
