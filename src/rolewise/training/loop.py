"""The training loop of one cell: sample, grade, update, log, checkpoint; resumable at any moment."""

from __future__ import annotations

import json
import logging
import resource
import time
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors.torch import load_file, save

from rolewise.config import Config, for_cell, training_subset
from rolewise.errors import ConfigError, Interrupted, StateError, TrainingError
from rolewise.grid import SINGLE, Cell
from rolewise.policy.adapters import Adapter
from rolewise.policy.policy import fresh_policy, routes
from rolewise.records import GRADIENTS, METRICS, TIMINGS, write_text
from rolewise.runs import provenance
from rolewise.runs.layout import layout
from rolewise.runs.meter import Meter
from rolewise.runs.signals import Stop, stop_requested
from rolewise.runs.state import StateDir
from rolewise.sampling import parallel
from rolewise.sampling.base import Sampler, call_seed
from rolewise.sampling.stage import (
    Graded,
    Stage,
    clock,
    open_sampler,
    open_stage,
    sample_and_grade,
    since,
)
from rolewise.tasks.grade import reward_of
from rolewise.tasks.problem import Problem
from rolewise.training import credit
from rolewise.training.advantages import assign_advantages
from rolewise.training.capture import capture, shape_rates
from rolewise.training.metrics import ALL, raise_alarms, step_metrics
from rolewise.training.rows import rows_of
from rolewise.training.update import Updater
from rolewise.workflows.base import Topology
from rolewise.workflows.base import topology as topology_of

log = logging.getLogger(__name__)

LOGS = {"metrics": METRICS, "gradients": GRADIENTS, "timings": TIMINGS}
SAVE_EVERY_S = 600.0


def checkpoint_steps(config: Config) -> list[int]:
    """Steps whose adapters are kept and evaluated: every `checkpoint_every`, and the last."""
    settings = config.training
    steps = list(range(settings.checkpoint_every, settings.steps + 1, settings.checkpoint_every))
    return steps if steps and steps[-1] == settings.steps else [*steps, settings.steps]


def problems_of_step(problems: list[Problem], step: int, count: int, seed: int) -> list[Problem]:
    """The problems of a step (from 1): epochs of differently shuffled problems, cut into steps."""
    chosen = []
    for position in range((step - 1) * count, step * count):
        epoch, offset = divmod(position, len(problems))
        order = np.random.default_rng(call_seed(seed, "order", epoch)).permutation(len(problems))
        chosen.append(problems[order[offset]])
    return chosen


def starts_of_step(problems: list[Problem], episodes: int) -> list[tuple[Problem, int]]:
    """(problem, sample) of every episode of a step; a problem that comes twice gets new samples.

    Draws follow problem and sample, so that the same pair twice would be the same episode twice.
    """
    seen: Counter[str] = Counter()
    starts = []
    for problem in problems:
        starts += [(problem, seen[problem.id] + k) for k in range(episodes)]
        seen[problem.id] += episodes
    return starts


def check_roles(config: Config, topology: Topology) -> None:
    """ConfigError if settings by role name a role that no workflow has, or leave none to train."""
    settings, workflows = config.training, {SINGLE, *config.grid.workflows}
    known = {role for name in workflows for role in topology_of(config, name).roles}
    named = {
        "train_roles": settings.train_roles or [],
        "loss.kl_anchor": list(settings.loss.kl_anchor),
    }
    problems = [
        f"training.{key}: '{role}' is not one of {', '.join(sorted(known))}"
        for key, roles in named.items()
        for role in roles
        if role not in known
    ]
    if settings.train_roles is not None and not set(settings.train_roles) & set(topology.roles):
        problems.append(f"training.train_roles: {topology.name} has none of {settings.train_roles}")
    if problems:
        raise ConfigError(problems)


def train(config: Config, cell: Cell, seed: int) -> Path:
    """Train `cell` to `training.steps`, continuing what an earlier attempt left; returns its manifest.

    Raises Interrupted after saving when a signal or the wall limit asks to stop.
    """
    subset = training_subset(config, cell)
    state = StateDir(layout(config).training_state(config, cell, seed))
    own = for_cell(config, cell)
    target = layout(config).cell(cell, seed) / "manifest.json"
    with parallel.joined(bool(own.resources.gpu)), stop_requested(own.training.max_wall) as stop:
        if parallel.rank() > 0:
            _advance(config, cell, seed, state, None, stop)
            return target
        with state.lock():
            state.check_identity(provenance.identity(config, cell, subset))
            meter = Meter(state, own.resources.gpu)
            _advance(config, cell, seed, state, meter, stop)
            content = _manifest(config, cell, seed, subset, state, meter)
            write_text(target, json.dumps(content, indent=1))
    return target


def _advance(
    config: Config, cell: Cell, seed: int, state: StateDir, meter: Meter | None, stop: Stop
) -> None:
    """Train what is missing; only the process with the meter writes, the others help it."""
    steps = for_cell(config, cell).training.steps
    finished = meter is not None and (
        steps in state.steps() and state.latest(steps) == (steps, state.checkpoint(steps))
    )
    if not parallel.agree(finished):
        with open_stage(config, cell, "train") as stage:
            _Run(stage, state, meter, seed).to(steps, stop)


class _Run:
    """One attempt at a training, in one process or in each of several."""

    def __init__(self, stage: Stage, state: StateDir, meter: Meter | None, seed: int):
        self.stage, self.state, self.meter, self.seed = stage, state, meter, seed
        self.config = stage.config
        check_roles(self.config, stage.topology)
        self.policy = fresh_policy(
            self.config, stage.cell, stage.topology.roles, seed, stage.backbone
        )
        self.updater = Updater(self.policy, self.config, seed)
        self.counts = {"tokens_sampled": 0, "tokens_trained": 0, "prompt_tokens": 0, "episodes": 0}
        self.step = self._resume()
        self.first = {
            row["role"]: row for row in reversed(state.rows("metrics")) if row["role"] != ALL
        }
        odd = {key for row in self.first.values() for key in row.keys() ^ METRICS.keys()}
        if odd:
            raise StateError(
                f"{state.path / 'metrics.jsonl'}: keys missing or unknown: {', '.join(sorted(odd))}; "
                f"the log was written by another version, delete {state.path} to train afresh"
            )

    def to(self, steps: int, stop: Stop) -> None:
        """Run steps up to `steps`, saving on the way."""
        saved, began, start = time.monotonic(), time.monotonic(), self.step
        kept = set(checkpoint_steps(self.config))
        with open_sampler(self.stage, self.policy) as sampler:
            while self.step < steps:
                metrics = self._one_step(self.step + 1, sampler)
                self.step += 1
                stopping = parallel.agree(stop())
                if self.meter:
                    self._report(steps, (time.monotonic() - began) / (self.step - start), metrics)
                    late = time.monotonic() - saved > SAVE_EVERY_S
                    if self.step in kept or late or stopping:
                        self._save()
                        saved = time.monotonic()
                        self.state.prune(kept | {self.step})
                if stopping and self.step < steps:
                    parallel.agree(True)  # the others wait until the state is saved
                    stop.check(f"step {self.step} of {steps} is saved")
                    raise Interrupted("another process of this run was asked to stop", 143)

    def _one_step(self, step: int, sampler: Sampler) -> list[dict]:
        """Sample, grade, update and log one step; returns its metrics."""
        config, cell = self.config, self.stage.cell
        settings = config.training
        problems = problems_of_step(self.stage.problems, step, settings.prompts_per_step, self.seed)
        starts = starts_of_step(problems, settings.episodes_per_prompt)
        route = routes(cell.policy)
        graded = sample_and_grade(
            self.stage.rollout(route), sampler, parallel.share(starts), (self.seed, "train", step)
        ).gathered()
        if len(graded.episodes) != len(starts):
            raise TrainingError(
                f"step {step}: {len(starts) - len(graded.episodes)} episodes missing"
            )
        began = clock()
        rewards = [reward_of(cell.task, grade, config.reward) for grade in graded.grades]
        if settings.advantage.reward == "role":
            stage = self.stage
            by_call = credit.by_role(graded.episodes, rewards, stage.task, stage.topology, config)
        else:
            by_call = credit.broadcast(graded.episodes, rewards)
        rows = rows_of(graded.episodes, by_call, route)
        outcomes = [
            (episode.problem.id, reward)
            for episode, reward in zip(graded.episodes, rewards, strict=True)
        ]
        groups = assign_advantages(rows, settings.advantage, cell.workflow, cell.task, outcomes)

        def due(every: int) -> bool:
            return step == 1 or step % every == 0

        report = self.updater.update(
            step,
            rows,
            ledger=due(config.ledger.every),
            probe=due(config.ledger.kl_probe_every),
            ratios=due(config.ledger.ratios_every),
        )
        metrics = step_metrics(step, graded.episodes, graded.grades, rewards, rows, groups, report)
        rates = shape_rates(graded.episodes, config.signatures)
        metrics = [row | rates[row["role"]] for row in metrics]
        self._alarm(step, metrics)
        self._count(graded, rows)
        if self.meter:
            timings = _timings(self.meter.attempt, step, graded, since(began))
            self.state.append("metrics", metrics)
            self.state.append("gradients", report.gradients)
            self.state.append("timings", timings)
            self.meter.beat()
        return metrics

    def _alarm(self, step: int, metrics: list[dict]) -> None:
        roles = [row for row in metrics if row["role"] != ALL]
        self.first = {row["role"]: row for row in roles} | self.first
        for row in roles:
            role = row["role"]
            row["capture"] = capture(row, self.first)
            raised = raise_alarms(self.first[role], row, self.config.alarms)
            row["alarms"] = "+".join(raised)
            if raised:
                log.warning("step %d: drift of role %s: %s", step, role, ", ".join(raised))

    def _count(self, graded: Graded, rows: list) -> None:
        self.counts["tokens_sampled"] += graded.tokens
        self.counts["tokens_trained"] += sum(row.tokens for row in rows)
        self.counts["prompt_tokens"] += sum(len(row.prompt_ids) for row in rows)
        self.counts["episodes"] += len(graded.episodes)

    def _report(self, steps: int, seconds: float, metrics: list[dict]) -> None:
        row = next(row for row in metrics if row["role"] == ALL)
        left = seconds * (steps - self.step)
        log.info(
            "%s seed %d  step %d/%d  reward %.3f  success %.3f  %.2f s/step  ETA %d:%02d",
            self.stage.cell, self.seed, self.step, steps, row["reward"], row["success"],
            seconds, left // 60, left % 60,
        )  # fmt: skip

    def _resume(self) -> int:
        """Restore the newest checkpoint that the logs reach; returns its step, 0 for a fresh start."""
        step = 0
        if self.meter:
            reached = min(self.state.last_step(name) for name in ("metrics", "timings"))
            found = self.state.latest(min(reached, self.config.training.steps))
            step = found[0] if found else 0
            for name in LOGS:
                self.state.truncate(name, step)
        step = max(parallel.collect([step]))
        if step == 0:
            return 0
        folder = self.state.checkpoint(step)
        tensors = load_file(folder / "optimizer.safetensors")
        for name, adapter in self.policy.adapters.items():
            saved = Adapter.load(
                folder / "adapters" / name, adapter.shape, str(adapter.theta.device)
            )
            adapter.theta.copy_(saved.theta)
            adapter.version += 1
            own = {
                k.removeprefix(f"{name}/"): v
                for k, v in tensors.items()
                if k.startswith(f"{name}/")
            }
            self.updater.optimizers[name].restore(own)
        self.counts = json.loads((folder / "counts.json").read_text())
        log.info("%s seed %d continues after step %d", self.stage.cell, self.seed, step)
        return step

    def _save(self) -> None:
        def write(folder: Path) -> None:
            base = str(self.stage.layout.model(self.stage.cell.scale))
            for name, adapter in self.policy.adapters.items():
                adapter.save(folder / "adapters" / name, base)
            tensors = {
                f"{name}/{key}": value.detach().cpu().contiguous()
                for name, optimizer in self.updater.optimizers.items()
                for key, value in optimizer.state().items()
            }
            (folder / "optimizer.safetensors").write_bytes(save(tensors))
            (folder / "counts.json").write_text(json.dumps(self.counts))

        self.state.save(self.step, write)


def _timings(attempt: int, step: int, graded: Graded, update_s: tuple[float, float]) -> list[dict]:
    phases = {
        "sample": (graded.sample_s, graded.tokens),
        "grade": (graded.grade_s, len(graded.episodes)),
        "update": (update_s, graded.tokens),
    }
    return [
        {
            "attempt": attempt,
            "step": step,
            "phase": phase,
            "wall_s": wall,
            "cpu_s": cpu,
            "tokens": tokens,
        }
        for phase, ((wall, cpu), tokens) in phases.items()
    ]


def _manifest(
    config: Config, cell: Cell, seed: int, subset: dict, state: StateDir, meter: Meter
) -> dict:
    from rolewise.sandbox.tiers import probe

    own = for_cell(config, cell)
    steps = checkpoint_steps(own)
    counts = json.loads((state.checkpoint(own.training.steps) / "counts.json").read_text())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    extra = {
        "steps": own.training.steps,
        "state": str(state.path),
        "checkpoints": {str(step): str(state.checkpoint(step)) for step in steps},
        "code": meter.code(),
        **counts,
        **meter.totals(),
        "peak_memory_mb": round(peak / 1024, 1),
        "sandbox_tier": probe().tier if cell.task == "Code" else None,
    }
    return provenance.manifest(config, cell, seed, subset, extra)
