"""One contender: steps of this project, through the code that trains its cells. Prints one JSON line."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import Laps, pin_threads, report_steps
from benchmarks.workload import (
    ALPHA,
    LEARNING_RATE,
    LOADS,
    RANK,
    TEMPERATURE,
    Load,
    Sum,
    boxed,
    candidates_of,
    marks,
    pick,
    solve,
    sums,
)

ROOT = Path(__file__).parents[1]
# Fields of the configuration that make a step the same as a peer's: one optimiser step on all rows.
SETTINGS = {
    "sampling.temperature": TEMPERATURE,
    "lora": {"rank": RANK, "alpha": ALPHA},
    "training.optimizer.lr": LEARNING_RATE,
    "training.optimizer.weight_decay": 0.0,
    "training.optimizer.warmup": 1,
    "training.update.steps": "one_per_adapter",
    "training.update.microbatch_tokens": 2048,
}


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--workflow", choices=["single", "pair", "voting"], default="single")
    parser.add_argument("--policy", choices=["IP", "SP"], default="IP")
    parser.add_argument("--load", choices=list(LOADS), default="A")
    parser.add_argument("--generations", type=int, help="episodes per prompt, if not the load's")
    parser.add_argument("--prompts", type=int, help="prompts per step, if not the load's")
    parser.add_argument("--tokens", type=int, help="response cap, if not the load's")
    parser.add_argument("--rank", type=int, default=RANK)
    parser.add_argument("--votes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--sample-only", action="store_true", help="sample and grade, never train")
    return parser.parse_args(given)


def defaults(model: Path, **changes) -> argparse.Namespace:
    """The options of a default run, some of them changed."""
    return argparse.Namespace(**(vars(arguments([str(model)])) | changes))


def load_of(opts: argparse.Namespace) -> Load:
    """The load with the changes that the options ask for."""
    names = ("generations", "prompts", "tokens")
    changes = {name: getattr(opts, name) for name in names if getattr(opts, name)}
    return dataclasses.replace(LOADS[opts.load], **changes)


class Bench:
    """A policy, its sampler and updater on the bench model."""

    def __init__(self, opts: argparse.Namespace, settings: dict | None = None):
        from rolewise.config import parse, read_raw, with_settings
        from rolewise.grid import Cell
        from rolewise.policy.backbone import Backbone
        from rolewise.policy.policy import fresh_policy, routes
        from rolewise.policy.tokenizer import ChatTokenizer
        from rolewise.sampling.episodes import Rollout
        from rolewise.sampling.torch_sampler import TorchSampler
        from rolewise.training.update import Updater

        self.opts, self.load = opts, load_of(opts)
        own = {
            "caps.Code.response": self.load.tokens,
            "caps.Code.prompt": {"default": 512},
            "lora.rank": opts.rank,
            "workflow.votes": opts.votes,
        } | (settings or {})
        self.config = parse(with_settings(read_raw([ROOT / "config.yaml"]), SETTINGS | own))
        topology = _topology(opts.workflow)
        policy = "SA" if opts.workflow == "single" else opts.policy
        self.cell = Cell(topology.name, policy, "0.8M", "Code")
        tokenizer = ChatTokenizer(opts.model)
        backbone = Backbone.load(opts.model)
        self.policy = fresh_policy(self.config, self.cell, topology.roles, 0, backbone)
        self.route = routes(policy)
        self.rollout = Rollout(topology, BenchTask(), self.config, tokenizer, self.route)
        self.sampler = TorchSampler(
            backbone,
            self.policy.linear,
            eos_ids=frozenset() if self.load.exact else tokenizer.eos_ids,
            temperature=TEMPERATURE,
            max_rows=self.config.sampling.max_rows,
        )
        self.updater = Updater(self.policy, self.config, 0)

    def problems(self, step: int):
        """The problems of a step, as every contender sees them."""
        from rolewise.tasks.problem import Problem

        return [
            Problem(f"{step}-{i}", "Code", problem.question, answer=str(problem.answer))
            for i, problem in enumerate(sums(self.load.prompts, seed=step))
        ]

    def step(self, step: int, laps: Laps) -> list:
        """One step: sample, grade, train; adds its times and counts to `laps`.

        Role ledger and drift metrics are on; rows are not scored again after the update, which no peer
        does (`benchmarks.ledger` says what that costs).
        """
        from rolewise.sampling.stage import sample_and_grade
        from rolewise.tasks.grade import reward_of
        from rolewise.training.advantages import assign_advantages
        from rolewise.training.credit import broadcast
        from rolewise.training.metrics import step_metrics
        from rolewise.training.rows import rows_of

        starts = [(p, k) for p in self.problems(step) for k in range(self.load.generations)]
        graded = sample_and_grade(self.rollout, self.sampler, starts, (0, "train", step))
        laps.add("sample", graded.sample_s[0])
        laps.add("grade", graded.grade_s[0])

        def update() -> list:
            rewards = [reward_of("Code", grade, self.config.reward) for grade in graded.grades]
            rows = rows_of(graded.episodes, broadcast(graded.episodes, rewards), self.route)
            settings = self.config.training.advantage
            outcomes = [(e.problem.id, r) for e, r in zip(graded.episodes, rewards, strict=True)]
            cell = self.cell
            groups = assign_advantages(rows, settings, cell.workflow, cell.task, outcomes)
            report = self.updater.update(step, rows, ledger=False, probe=False, ratios=False)
            step_metrics(step, graded.episodes, graded.grades, rewards, rows, groups, report)
            return rows

        if self.opts.sample_only:
            laps.close(sampled=graded.tokens, rows=len(graded.episodes))
            return []
        rows = laps.around("update", update)
        laps.close(
            sampled=graded.tokens,
            trained=sum(len(row.prompt_ids) + row.tokens for row in rows),
            computed=_computed(rows),
            rows=len(rows),
            skipped=float(sum(row.advantage == 0 for row in rows)),
        )
        return rows

    def mismatch_of(self, step: int) -> dict[str, float]:
        """Distance between log-probabilities of sampler and trainer over a step's tokens."""
        import numpy as np

        from rolewise.sampling.stage import sample_and_grade
        from rolewise.training.credit import broadcast
        from rolewise.training.rows import rows_of

        starts = [(p, k) for p in self.problems(step) for k in range(self.load.generations)]
        graded = sample_and_grade(self.rollout, self.sampler, starts, (0, "train", step))
        rows = rows_of(graded.episodes, broadcast(graded.episodes, [0.0] * len(starts)), self.route)
        for i, row in enumerate(rows):
            row.index = i
        trainer = self.updater.scorer.logprobs(rows)
        sampler = [row.old_logprobs_T for row in rows]
        distance = np.abs(np.concatenate(sampler) - np.concatenate(trainer))
        return {
            "mean": float(distance.mean()),
            "q999": float(np.quantile(distance, 0.999)),
            "max": float(distance.max()),
        }


def _computed(rows: Sequence) -> int:
    """Tokens that an update runs: prompts once for all rows of an adapter, completions but their last."""
    prompts = {(row.adapter, row.prompt_ids) for row in rows}
    return sum(len(ids) for _, ids in prompts) + sum(row.tokens - 1 for row in rows)


class BenchTask:
    """`workflows.base.TaskView` and grader at once, with the prompts of `workload`."""

    name = "Code"

    def __init__(self) -> None:
        self.grader = self

    def ask(self, template: str, problem, **variables) -> str:
        if template == "aggregator":
            return pick(problem.prompt, [boxed(text) for text in variables["candidates"]])
        return solve(problem.prompt)

    def extract(self, text: str) -> str | None:
        return boxed(text)

    def grade_many(self, items: Sequence) -> list:
        from rolewise.tasks.grade import Grade

        return [Grade("", "graded", *marks(text)) for _, text in items]


def _topology(name: str):
    from rolewise.workflows.base import Call, Outcome, Topology, user
    from rolewise.workflows.single import SINGLE
    from rolewise.workflows.voting import VOTING

    def pair(problem, task, config):
        solver = Call("generator", user(task.ask("generator", problem)))
        stored = candidates_of(Sum(problem.prompt, int(problem.answer)), seed=0)
        picker = Call("aggregator", user(pick(problem.prompt, stored)))
        yield [solver, picker]
        return Outcome(graded=solver.key)

    both = Topology("Pair", pair, roles=("generator", "aggregator"), main_role="generator")
    return {"single": SINGLE, "voting": VOTING, "pair": both}[name]


def main() -> None:
    opts = arguments()
    pin_threads(opts.threads)
    bench, laps = Bench(opts), Laps()
    laps.start()
    for step in range(opts.warmup + opts.steps):
        bench.step(step, laps)
    report_steps(
        laps,
        opts.warmup,
        computed_tokens=laps.column("computed", opts.warmup)[-1],
        skipped_rows=sum(laps.column("skipped", opts.warmup)),
        logprob_mismatch=bench.mismatch_of(0),
    )


if __name__ == "__main__":
    main()
