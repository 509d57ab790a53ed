"""Everything that sampling episodes of a cell needs, opened once: model, tokenizer, task, problems."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rolewise.config import Config, for_cell
from rolewise.errors import TrainingError
from rolewise.grid import Cell
from rolewise.policy.backbone import Backbone
from rolewise.policy.policy import Policy, load_backbone
from rolewise.policy.tokenizer import ChatTokenizer
from rolewise.runs import provenance
from rolewise.runs.layout import Layout, layout
from rolewise.sampling import parallel
from rolewise.sampling.base import Sampler
from rolewise.sampling.episodes import Episode, Rollout, run_episodes
from rolewise.sampling.torch_sampler import TorchSampler
from rolewise.tasks.grade import Grade
from rolewise.tasks.problem import Problem, read_problems
from rolewise.tasks.task import Task, open_task
from rolewise.workflows.base import Topology, topology


@dataclass(frozen=True)
class Stage:
    """A cell's model, task and topology. `config` has the cell's overrides filled in."""

    config: Config
    cell: Cell
    layout: Layout
    topology: Topology
    task: Task
    tokenizer: ChatTokenizer
    backbone: Backbone
    problems: list[Problem]

    def rollout(self, adapter_of) -> Rollout:
        """What stays the same over the episodes of one policy."""
        return Rollout(self.topology, self.task, self.config, self.tokenizer, adapter_of)


@contextlib.contextmanager
def open_stage(config: Config, cell: Cell, split: str) -> Iterator[Stage]:
    """The stage of `cell` with the problems of `split` (train or validation); closes the grader."""
    import torch

    own = for_cell(config, cell)
    torch.set_num_threads(own.resources.threads)
    places = layout(config)
    file = places.data(cell.task) / f"{split}.jsonl"
    provenance.require_unchanged(file)
    problems = read_problems(file)
    folder = places.model(cell.scale)
    shape = topology(own, cell.workflow)
    task = open_task(own, cell.task, shape.prompts)
    stage = Stage(
        own,
        cell,
        places,
        shape,
        task,
        ChatTokenizer(folder, own.enable_thinking),
        load_backbone(own, folder),
        problems,
    )
    with task.grader:
        yield stage


@contextlib.contextmanager
def open_sampler(stage: Stage, policy: Policy) -> Iterator[Sampler]:
    """The configured sampling backend, serving `policy` as it changes."""
    settings = stage.config.sampling
    if settings.backend == "vllm":
        from rolewise.sampling.vllm_sampler import open_vllm

        with open_vllm(stage, policy) as sampler:
            yield sampler
        return
    yield TorchSampler(
        policy.backbone,
        policy.linear,
        eos_ids=stage.tokenizer.eos_ids,
        temperature=settings.temperature,
        processed=settings.logprobs == "processed",
        max_rows=settings.max_rows,
    )


@dataclass(frozen=True)
class Graded:
    """Episodes with their grades, and the seconds that sampling and grading took."""

    episodes: list[Episode]
    grades: list[Grade]
    sample_s: tuple[float, float]
    grade_s: tuple[float, float]

    @property
    def tokens(self) -> int:
        """Completion tokens of all calls."""
        return sum(len(c.completion.ids) for e in self.episodes for c in e.calls)

    def gathered(self) -> Graded:
        """The episodes and grades of all processes, in the order before `parallel.share`."""
        pairs = parallel.collect(list(zip(self.episodes, self.grades, strict=True)))
        return dataclasses.replace(
            self, episodes=[e for e, _ in pairs], grades=[g for _, g in pairs]
        )


def sample_and_grade(
    rollout: Rollout,
    sampler: Sampler,
    starts: Sequence[tuple[Problem, int]],
    seed_parts: Sequence[object],
) -> Graded:
    """Episodes of all `starts` and the grades of their outputs; abnormal ones are graded as empty.

    TrainingError if not a single episode could run.
    """
    began = clock()
    with sampler.serving():
        episodes = run_episodes(rollout, sampler, starts, seed_parts)
    if episodes and all(episode.abnormal for episode in episodes):
        raise TrainingError(
            f"no episode of {rollout.topology.name} on {rollout.task.name} could run: "
            f"{episodes[0].abnormal}; raise caps.{rollout.task.name}.prompt or shorten the prompts"
        )
    sampled = clock()
    grades = rollout.task.grader.grade_many([(e.problem, e.graded_text) for e in episodes])
    graded = clock()
    return Graded(episodes, grades, since(began, sampled), since(sampled, graded))


def clock() -> tuple[float, float]:
    """Wall and CPU seconds now."""
    return time.perf_counter(), time.process_time()


def since(
    start: tuple[float, float], end: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Wall and CPU seconds from `start` to `end` (default: now)."""
    stop = clock() if end is None else end
    return stop[0] - start[0], stop[1] - start[1]
